"""Whether a server that runs an extended model computes what transformers computes.

    python -m experiments.beyond.check http://127.0.0.1:8000 --model DIR
    python -m experiments.beyond.check http://127.0.0.1:8000 --model BASE --method yarn --factor 2

DIR is the extended checkpoint that is served. The losses of a text's tokens, within L and beyond
it, are compared by the server's log-probabilities and by transformers in float32. A server that
gives none of a prompt, such as llama-server, makes the next token after 64 beginnings of the text;
the log-probabilities of these tokens are compared instead.

What rounding to bfloat16 changes is measured here with the same tokens, and twice as much may
differ. If the server parts from transformers, it says at which position, and which mistake gives
the server's losses. The exit status is 0 if they agree, 1 if they part, and 2 if they cannot be
compared.
"""

from __future__ import annotations

import contextlib
import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from tqdm import tqdm

import records
from core import rope
from core.discovery import later
from core.errors import InputError
from core.setting import Setting
from eval import Request, special_tokens
from experiments import base_models
from experiments.kit import command_line, texts
from experiments.kit.beyond import serving

if TYPE_CHECKING:
    from torch import Tensor
    from transformers import PreTrainedModel

    from core import extend
    from core.geometry import RopeGeometry, RopeScaling
    from core.huggingface import configuration, embedding
    from eval import perplexity
    from eval.beyond import endpoint
    from eval.beyond.endpoint import Endpoint
    from experiments.kit import model as models
    from experiments.kit.model import Model
else:
    models, configuration, embedding, endpoint, extend, perplexity = later(
        "experiments.kit.model",
        "core.huggingface.configuration",
        "core.huggingface.embedding",
        "eval.beyond.endpoint",
        "core.extend",
        "eval.perplexity",
    )


BEGINNINGS = 64  # of a text, whose next tokens are compared if those of the text cannot be
PARTS = 32  # of the compared tokens, so that a mistake beyond some position is seen
LEAST = 16  # tokens in a part, whose mean else is chance
# A server in bfloat16 rounds as much as is measured here, but elsewhere, so that every second one
# has a larger maximum. Of tiny's differences, drawn at random, hardly one has twice as large a one.
MARGIN = 2
OTHER_FACTORS = (2, 4, 8, 16, 32)


@dataclass(frozen=True)
class Served:
    """What a server says of one text.

    Attributes:
        tokens: the ids of the text, int64 [n].
        predicted: at each position the id whose loss is compared, int64 [n − 1].
        positions: those that are compared, int [compared].
        losses: the server's there, in nats.
        generated: whether the server made these ids; they are the text's own otherwise.
    """

    tokens: Tensor
    predicted: Tensor
    positions: np.ndarray
    losses: np.ndarray
    generated: bool


def main() -> None:
    arguments = _parse()
    # what is left out is said beside the verdict, which a program may read
    with contextlib.redirect_stdout(sys.stderr):
        found = compare(arguments)
    print(json.dumps(found, indent=2) if arguments.json else in_words(found))
    sys.exit(0 if found["agrees"] else 1)


def _parse():
    parser = command_line.parser(__doc__, prog="python -m experiments.beyond.check")
    parser.add_argument("url", type=serving.address, metavar="URL", help="the server's address")
    base_models.add_argument(parser, required=True)
    command_line.add_method_arguments(parser, several="what the checkpoint states")
    parser.usage = "%(prog)s URL --model NAME [options]"
    texts.add_arguments(parser, "read")
    tolerance = (
        "how much the loss of a token may differ on average (default: twice what bfloat16 changes)"
    )
    command_line.option(parser, "--tolerance", command_line.number, "NATS", tolerance)
    parser.add_argument("--json", action="store_true", help="print the comparison as JSON")
    arguments, stated = parser.read()
    command_line.check_method(arguments)
    if "factor" in stated and not arguments.method:
        raise command_line.UsageError("--factor is of a --method; give that too, or neither.")
    return arguments


def compare(arguments) -> dict:
    """The comparison that a command line asks for, as --json prints it.

    Raises:
        InputError: the server or the model cannot be compared.
        NonFiniteError: a loss is not finite.
    """
    base, extension = extended(arguments)
    method = extension["method"]
    options = extension["options"]
    factor = extension["factor"]
    context_length = base.context_length
    longer = round(context_length * factor)
    added = method if arguments.method else None
    at = endpoint.Endpoint(
        arguments.url,
        serving.served_name(base, added, factor, options),
        configuration.text_config(base.config).vocab_size,
        by_name=False,
    )
    read = min(longer, at.most_tokens) - 1  # the server makes one token more
    if read <= context_length:
        raise InputError(
            f"the server takes {at.most_tokens:,} tokens, so none beyond L = {context_length:,} "
            f"can be compared; start it with {longer:,} (vLLM: --max-model-len)."
        )
    tokenizer = base.tokenizer
    bos = special_tokens.beginning(tokenizer, arguments.bos)
    books = texts.sequences(tokenizer, texts.chosen(arguments), read - max(len(bos), 1), bos)
    served = [ask(at, book.title, tokens) for book, tokens in books.items()]
    positions = np.concatenate([text.positions for text in served])
    theirs = np.concatenate([text.losses for text in served])

    def load(dtype: str) -> PreTrainedModel:
        model = base.load(dtype)
        return extend.extend(model, added, factor, **options) if added else model

    rounded = losses(load("bfloat16"), served)
    model = load("float32")
    ours = losses(model, served)
    found = judged(positions, theirs, ours, rounded, context_length, arguments.tolerance)
    close = None
    if not found["agrees"]:
        after = positions >= found["position"]
        wrong = {
            "the right losses, each given for the token before": np.roll(ours, -1)[after],
            "the right losses, each given for the token after": np.roll(ours, 1)[after],
        }
        suspects = mistakes(base.geometry, extension)
        for words, (scaling, s) in tqdm(suspects.items(), unit="mistake", desc="comparing"):
            with contextlib.suppress(InputError):  # no configuration of this model says that
                embedding.apply_scaling(model, base.geometry, scaling, s)
                wrong[words] = losses(model, served)[after]
        close = nearest(theirs[after], ours[after], wrong, found["tolerance"])
    return {
        **found,
        "compared": "generated tokens" if served[0].generated else "the text's tokens",
        "nearest": close,
        "model": base.name,
        "method": method,
        "options": options,
        "factor": factor,
        "context_length": context_length,
        "longer": longer,
        "read": read,
        "url": arguments.url,
        "server": at.server,
        "fingerprint": at.fingerprint,
        "served": at.model,
    }


def extended(arguments) -> tuple[Model, dict]:
    """The model that a command line names, and by what it is extended: "method", "options" and
    "factor". The method is None if the checkpoint states one that is not known here.

    Raises:
        InputError: it is not extended, or its frequencies depend on a prompt's length.
    """
    base = models.resolve(arguments.model, as_it_is=not arguments.method)
    extension = base.extension
    method = None
    if arguments.method:
        if len(arguments.method) > 1:
            raise InputError("a server has one model; give one --method.")
        ((method, options),) = command_line.chosen_methods(arguments)
        rope.scale(base.geometry, method, arguments.factor, **options)  # refused before any work
        extension = {"method": method, "options": options, "factor": arguments.factor}
    if not extension:
        raise InputError(
            f"{base.name} does not say how it was extended; give the checkpoint that the server "
            "runs, or --method and --factor."
        )
    if serving.follows_length(base, method):
        raise InputError(
            f"{extension['method'] or base.name} chooses its frequencies by the input's length, "
            "which no server does; give another."
        )
    return base, extension


def ask(at: Endpoint, title: str, tokens: Tensor) -> Served:
    """What the server says of a text: of its tokens, or else of those that it makes itself after
    its beginnings."""
    ids = tokens.tolist()
    predicted = tokens[1:].clone()
    of_text = at.scored(title, ids)
    if of_text is not None:
        positions = np.arange(len(of_text))
        return Served(tokens, predicted, positions, -np.array(of_text), generated=False)
    lengths = np.linspace(len(ids) // BEGINNINGS or 1, len(ids) - 1, BEGINNINGS, dtype=int)
    beginnings = {f"{length} tokens of {title}": length for length in lengths.tolist()}
    nats = np.full(len(predicted), np.nan)
    for answer in at.answers(
        Request(key, tuple(ids[:length]), 1, min_new_tokens=1) for key, length in beginnings.items()
    ):
        position = beginnings[answer.key] - 1
        predicted[position] = answer.tokens[0]
        nats[position] = -answer.log_probs[0]
    positions = np.flatnonzero(np.isfinite(nats))
    return Served(tokens, predicted, positions, nats[positions], generated=True)


def losses(model: PreTrainedModel, served: Sequence[Served]) -> np.ndarray:
    """A model's losses at the compared positions of all texts, in nats."""
    return np.concatenate(
        [
            perplexity.position_losses(model, text.tokens, predicted=text.predicted)[text.positions]
            for text in served
        ]
    )


def judged(
    positions: np.ndarray,
    theirs: np.ndarray,
    ours: np.ndarray,
    rounded: np.ndarray,
    context_length: int,
    tolerance: float | None = None,
) -> dict:
    """Whether the server's losses are ours.

    The tokens are divided by their positions into parts of one size. The server parts from us
    in the first part whose mean difference is above the tolerance.

    Args:
        positions: those of the losses.
        theirs, ours, rounded: the server's, and ours in float32 and in bfloat16, in nats.
        tolerance: in nats; by default from what rounding changes in these parts at most.

    Returns:
        differences within L, beyond it and by rounding alone, and the position at which the server
        parts from us: the first in its part with a larger difference than rounding makes anywhere.
    """
    differences = np.abs(theirs - ours)
    by_rounding = np.abs(rounded - ours)
    beyond = positions >= context_length
    by_position = np.argsort(positions, kind="stable")
    parts = np.array_split(by_position, max(min(PARTS, len(positions) // LEAST), 1))
    if tolerance is None:
        tolerance = MARGIN * float(max(by_rounding[part].mean() for part in parts))
    parted = next((part for part in parts if differences[part].mean() > tolerance), None)
    position = None
    if parted is not None:
        first = np.argmax(differences[parted] > max(by_rounding.max(), tolerance))
        position = int(positions[parted][first])
    return {
        "agrees": parted is None,
        "within": _summary(differences[~beyond]),
        "beyond": _summary(differences[beyond]),
        "bfloat16": _summary(by_rounding),
        "tolerance": tolerance,
        "part": len(parts[0]),
        "position": position,
    }


def _summary(differences: np.ndarray) -> dict:
    return {
        "tokens": len(differences),
        "mean": float(differences.mean()),
        "largest": float(differences.max()),
    }


def nearest(
    theirs: np.ndarray, ours: np.ndarray, wrong: dict[str, np.ndarray], tolerance: float
) -> dict:
    """The mistake whose losses are nearest to the server's, whether it explains them, and how far
    the right ones are from them, in nats a token.

    Args:
        wrong: the losses of mistakes, by words for them.
    """
    means = {words: float(np.abs(theirs - each).mean()) for words, each in wrong.items()}
    words = min(means, key=means.__getitem__)
    return {
        "mistake": words,
        "mean": means[words],
        "explains": means[words] <= tolerance,
        "right": float(np.abs(theirs - ours).mean()),
    }


def mistakes(geometry: RopeGeometry, extension: dict) -> dict[str, tuple[RopeScaling, float]]:
    """What a server may compute in place of an extended model, by words for it: scalings and their
    factors.

    Args:
        extension: from :func:`extended`.
    """
    method = extension["method"]
    options = extension["options"]
    s = extension["factor"]
    found = {"the model without scaling": (rope.scale(geometry, rope.ORIGINAL, s), s)}
    for other in ("pi", rope.BASELINE):
        found[f"{other} at s = {s:g}"] = (rope.scale(geometry, other, s), s)
    if method is None or rope.named_files(method, options):
        return found  # its frequencies are not known here
    right = rope.scale(geometry, method, s, **options)
    name = Setting.make(method, options).name
    plain = replace(right, attention_factor=geometry.attention_factor, stock=None)
    found[f"{name} without its attention factor"] = (plain, s)
    if right.stock:  # engines compute it themselves, from a length that may be stated wrongly
        longer = replace(geometry, context_length=round(geometry.context_length * s))
        scaling = rope.scale(longer, method, s, **options)
        found[f"{name} as if L' were the original length"] = (scaling, s)
    for other in OTHER_FACTORS:
        found[f"{name} at s = {other:g}"] = (rope.scale(geometry, method, other, **options), other)
    known = records.of_scaling(right)
    return {words: each for words, each in found.items() if records.of_scaling(each[0]) != known}


def in_words(found: dict) -> str:
    """A comparison as text for a terminal."""
    setting = Setting.make(found["method"], found["options"]).name
    lines = [
        f"{found['served']} by {found['server']} ({found['fingerprint'] or 'no version stated'}), "
        f"{found['model']} by transformers in float32",
        f"{setting}, s = {found['factor']:g}: L = {found['context_length']:,}, "
        f"L' = {found['longer']:,}",
        "",
        f"{'difference in nats':36}  tokens     mean  largest",
    ]
    for name, words in (
        ("within", f"within L, {found['compared']}"),
        ("beyond", f"beyond L, {found['compared']}"),
        ("bfloat16", "of bfloat16 from float32, both here"),
    ):
        row = found[name]
        lines.append(f"{words:36}  {row['tokens']:6,}  {row['mean']:.1e}  {row['largest']:.1e}")
    return "\n".join([*lines, "", _verdict(found)])


def _verdict(found: dict) -> str:
    allowed = (
        f"A mean difference of {found['tolerance']:.2g} nats over {found['part']:,} tokens counts "
        "as rounding."
    )
    position = found["position"]
    if position is None:
        end = found["read"]
        beyond = f" of {found['longer']:,}" if end < found["longer"] - 1 else ""
        return f"They agree on {end:,} tokens{beyond}. {allowed}"
    where = "within L already" if position < found["context_length"] else "beyond L"
    close = found["nearest"]
    said = f"They part from position {position:,} on, {where}. {allowed}\n"
    if close["explains"]:
        return f"{said}The server computes {close['mistake']}: to {close['mean']:.1e} nats a token."
    if close["mean"] < close["right"]:
        return (
            f"{said}No mistake that was tried explains it. The nearest is {close['mistake']}, at "
            f"{close['mean']:.1e} nats a token; the right model is at {close['right']:.1e}."
        )
    return (
        f"{said}No mistake that was tried is nearer than the right model, at {close['right']:.1e} "
        "nats a token. Quantised or other weights would do this; --tolerance lets it pass."
    )


if __name__ == "__main__":
    command_line.run(main)
