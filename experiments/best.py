"""Which method suits a model: its loss on your texts under every method that needs no training.

    python -m experiments.best --model PATH_OR_NAME --factor 2 --texts FILES

The first L' tokens of each text are scored within L and beyond it. The methods are printed by their
loss beyond L, and then the command that extends the model by the best. Methods that these texts do
not tell apart from the best are level with it. Nothing is recorded.
"""

from __future__ import annotations

import shlex
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from tqdm import tqdm

from core import rope
from core.discovery import later
from core.errors import InputError, check_choice
from eval import special_tokens
from eval.intervals import LEAST_TEXTS, students_half
from experiments import base_models
from experiments.base_models.model import BaseModel, papers_n_hat
from experiments.kit import command_line, records, texts
from experiments.suites.suite import Setting, flags

if TYPE_CHECKING:
    from experiments.kit.checkpoint import Checkpoint

checkpoint = later("experiments.kit.checkpoint")
extend = later("core.extend")
perplexity = later("eval.perplexity")
rotation = later("core.huggingface.rotation")

EQUAL = 5e-5  # nats; a smaller difference is printed as 0.0000


def main() -> None:
    parser = command_line.parser(__doc__, prog="python -m experiments.best")
    base_models.add_argument(parser, required=True)
    wanted = "rank these methods alone (default: all that need no training)"
    command_line.list_option(parser, "--method", str, "NAME", wanted)
    command_line.add_factor_argument(parser)
    command_line.add_dtype_argument(parser)
    texts.add_arguments(parser)
    arguments = parser.parse_args()
    name = arguments.model
    factor = arguments.factor
    base = checkpoint.Checkpoint(name, as_it_is=True)
    if base.training:
        raise InputError(
            f"{name} was fine-tuned to fit {base.training['run']['method']}; give the model before."
        )
    books = texts.chosen(arguments)
    settings = expressible(base, factor, arguments.method)
    context_length = base.context_length
    length = round(context_length * factor)
    tokenizer = base.tokenizer
    bos = special_tokens.beginning(tokenizer, arguments.bos)
    tokens = [ids for (ids,) in texts.sequences(tokenizer, books, length, bos).values()]
    model = base.load(base.chosen_dtype(arguments.dtype))
    rows: list[dict] = []
    count = len(settings) * len(tokens)
    methods = "1 method" if len(settings) == 1 else f"{len(settings)} methods"
    description = f"{methods}, texts of {length:,} tokens"
    with tqdm(total=count, unit="text", desc=description) as bar:
        try:
            for method, options in settings:
                extend.extend(model, method, factor, **options)
                losses = []
                for ids in tokens:
                    losses.append(perplexity.position_losses(model, ids, length))
                    bar.update()
                within = np.array([of_text[:context_length].mean() for of_text in losses])
                beyond = np.array([of_text[context_length:].mean() for of_text in losses])
                rows.append({"setting": (method, options), "within": within, "beyond": beyond})
        except KeyboardInterrupt as stop:
            if rows:
                print(f"\n{table(ranked(rows))}")
                stop.add_note("the methods above are those that were scored")
            raise
    rows = ranked(rows)
    method, options = rows[0]["setting"]
    command = flags({"model": name, "method": method, "factor": factor, **options, "output": "DIR"})
    scored = f"texts of {length:,} tokens: {len(tokens)}; L = {context_length:,}"
    print(f"{table(rows)}\n\nMean loss in nats per token over {scored}. {verdict(rows)}\n")
    print(command_line.as_called(f"python -m experiments.extend {shlex.join(command)}"))


def expressible(base: Checkpoint, factor: float, wanted: list[str] | None = None) -> list[Setting]:
    """Every setting that needs no training and that the model's configuration can express; of those
    that make the same model the first.

    Args:
        wanted: the names of the methods; None for all.

    Raises:
        InputError: the factor adds no token, or one of these methods is none that can be ranked.
    """
    geometry = base.geometry
    rope.scale(geometry, rope.ORIGINAL, factor)
    every = BaseModel("", base.name, geometry, n_hat=papers_n_hat(geometry)).comparison(factor)
    for name in wanted or ():
        ready = dict.fromkeys(method for method, _ in every)
        check_choice(name, "method that needs no training", ready)
    model = rotation.skeleton(base.config)
    settings: dict[str, Setting] = {}
    for method, options in every:
        if wanted and method not in wanted:
            continue
        reason = None
        made = records.fingerprint(rope.scale(geometry, method, factor, **options))
        if made in settings:
            reason = f"it makes the same model as {as_typed(*settings[made])}"
        else:
            try:
                extend.extend(model, method, factor, **options)
                settings[made] = (method, options)
            except InputError as error:
                reason = str(error)
        if reason:
            print(f"note: {as_typed(method, options)} is left out: {reason}", file=sys.stderr)
    return list(settings.values())


def ranked(rows: Sequence[dict]) -> list[dict]:
    """Settings by their mean loss beyond L, each with its difference from the least, paired by
    text.

    The difference has Student's 95 % interval over texts. A setting is level with the best if its
    interval holds zero. Below LEAST_TEXTS texts there is no interval, and a setting is level only
    if its loss is the same.

    Args:
        rows: {"beyond", …}, the loss of each text [texts].

    Returns:
        the rows with "gap" and "half", half the width of its interval, in nats (0 without one),
        and with "level".
    """
    rows = sorted(rows, key=lambda row: np.mean(row["beyond"]))
    for row in rows:
        gaps = np.subtract(row["beyond"], rows[0]["beyond"])
        row["gap"] = float(gaps.mean())
        row["half"] = students_half(gaps) if len(gaps) >= LEAST_TEXTS else 0.0
        row["level"] = row["gap"] < max(row["half"], EQUAL)
    return rows


def table(rows: Sequence[dict]) -> str:
    """A ranking as lines of text."""
    lines = [f"{'method':28}  within L  beyond L  minus the least"]
    for row in rows:
        name = as_typed(*row["setting"])
        within = np.mean(row["within"])
        beyond = np.mean(row["beyond"])
        gap = row["gap"]
        half = row["half"]
        interval = f" [{gap - half:+.4f}, {gap + half:+.4f}]" if half else ""
        lines.append(f"{name:28}  {within:8.4f}  {beyond:8.4f}  {gap:+.4f}{interval}")
    return "\n".join(lines)


def verdict(rows: Sequence[dict]) -> str:
    """What a ranking says of its first setting."""
    best, *others = (as_typed(*row["setting"]) for row in rows if row["level"])
    said = f"{best} has the least loss beyond L."
    if others:
        verb = "is" if len(others) == 1 else "are"
        level = ", ".join(others)
        said = f"A tie: {best} has the least loss beyond L, and level with it {verb} {level}."
    if len(rows[0]["beyond"]) < LEAST_TEXTS:
        said += f" Fewer than {LEAST_TEXTS} texts give no interval, so the order may be chance."
    return said


def as_typed(method: str, options: dict) -> str:
    """A setting as --method takes it, such as "dprope --n-hat 40"."""
    return shlex.join([method, *flags(options)])


if __name__ == "__main__":
    command_line.run(main)
