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


@dataclass(frozen=True)
class Extended:
    """An extended model, as transformers has it.

    Attributes:
        base: what --model names.
        method: None if the checkpoint states one that is not known here.
        is_stated: whether the checkpoint is extended already; else the method is applied to it.
    """

    base: Model
    method: str | None
    options: dict
    factor: float
    is_stated: bool

    @property
    def longer(self) -> int:
        """L' in tokens."""
        return round(self.base.context_length * self.factor)

    def load(self, dtype: str) -> PreTrainedModel:
        """The model with its weights."""
        model = self.base.load(dtype)
        if self.is_stated:
            return model
        return extend.extend(model, self.method, self.factor, **self.options)


def compare(arguments) -> dict:
    """The comparison that a command line asks for, as --json prints it.

    Raises:
        InputError: the server or the model cannot be compared.
        NonFiniteError: a loss is not finite.
    """
    extended = _extended(arguments)
    base = extended.base
    context_length = base.context_length
    added = None if extended.is_stated else extended.method
    at = endpoint.Endpoint(
        arguments.url,
        serving.served_name(base, added, extended.factor, extended.options),
        configuration.text_config(base.config).vocab_size,
        by_name=False,
    )
    read = min(extended.longer, at.most_tokens) - 1  # the server makes one token more
    if read <= context_length:
        raise InputError(
            f"the server takes {at.most_tokens:,} tokens, so none beyond L = {context_length:,} "
            f"can be compared; start it with {extended.longer:,} (vLLM: --max-model-len)."
        )
    tokenizer = base.tokenizer
    bos = special_tokens.beginning(tokenizer, arguments.bos)
    books = texts.sequences(tokenizer, texts.chosen(arguments), read - max(len(bos), 1), bos)
    served = [ask(at, book.title, tokens) for book, tokens in books.items()]
    rounded = losses(extended.load("bfloat16"), served)
    model = extended.load("float32")
    ours = losses(model, served)
    found = judged(served, ours, rounded, context_length, arguments.tolerance)
    close = None
    if not found["agrees"]:
        suspects = mistakes(base.geometry, extended)
        close = nearest(model, base.geometry, suspects, served, ours, found)
    return {
        **found,
        "nearest": close,
        "model": base.name,
        "method": extended.method,
        "options": extended.options,
        "factor": extended.factor,
        "context_length": context_length,
        "longer": extended.longer,
        "read": read,
        "url": arguments.url,
        "server": at.server,
        "fingerprint": at.fingerprint,
        "served": at.model,
    }


def _extended(arguments) -> Extended:
    """The model that a command line names.

    Raises:
        InputError: it is not extended, or its frequencies depend on a prompt's length.
    """
    base = models.resolve(arguments.model, as_it_is=not arguments.method)
    method = None
    if arguments.method:
        if len(arguments.method) > 1:
            raise InputError("a server has one model; give one --method.")
        ((method, options),) = command_line.chosen_methods(arguments)
        rope.scale(base.geometry, method, arguments.factor, **options)  # refused before any work
        extended = Extended(base, method, options, arguments.factor, is_stated=False)
    elif stated := base.extension:
        extended = Extended(
            base, stated["method"], stated["options"], stated["factor"], is_stated=True
        )
    else:
        raise InputError(
            f"{base.name} does not say how it was extended; give the checkpoint that the server "
            "runs, or --method and --factor."
        )
    if serving.follows_length(base, method):
        raise InputError(
            f"{extended.method or base.name} chooses its frequencies by the input's length, which "
            "no server does; give another."
        )
    return extended


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
    made = {}
    for answer in at.answers(
        Request(key, tuple(ids[:length]), 1, min_new_tokens=1) for key, length in beginnings.items()
    ):
        position = beginnings[answer.key] - 1
        predicted[position] = answer.tokens[0]
        made[position] = -answer.log_probs[0]
    positions = np.array(sorted(made))
    here = np.array([made[position] for position in sorted(made)])
    return Served(tokens, predicted, positions, here, generated=True)


def losses(model: PreTrainedModel, served: Sequence[Served]) -> list[np.ndarray]:
    """A model's losses at every position of each text, in nats, [n − 1] each."""
    return [
        perplexity.position_losses(model, text.tokens, predicted=text.predicted) for text in served
    ]


def apart(served: Sequence[Served], of_texts: Sequence[np.ndarray], shift: int = 0) -> np.ndarray:
    """|the server's loss − another's| at the compared positions of all texts, in nats.

    Args:
        of_texts: the other's, from :func:`losses`.
        shift: of how many positions later.
    """
    return np.concatenate(
        [
            np.abs(text.losses - theirs[np.clip(text.positions + shift, 0, len(theirs) - 1)])
            for text, theirs in zip(served, of_texts, strict=True)
        ]
    )


def judged(
    served: Sequence[Served],
    ours: Sequence[np.ndarray],
    rounded: Sequence[np.ndarray],
    context_length: int,
    tolerance: float | None = None,
) -> dict:
    """Whether the server's losses are ours.

    The tokens are divided by their positions into parts of one size. The server parts from us
    in the first part whose mean difference is above the tolerance.

    Args:
        ours, rounded: in float32 and in bfloat16, from :func:`losses`.
        tolerance: in nats; by default from what rounding changes in these parts at most.

    Returns:
        differences within L, beyond it and by rounding alone, and the position at which the server
        parts from us: the first in its part with a larger difference than rounding makes anywhere.
    """
    positions = np.concatenate([text.positions for text in served])
    differences = apart(served, ours)
    by_rounding = np.abs(
        np.concatenate([(a - b)[text.positions] for a, b, text in zip(rounded, ours, served)])
    )
    beyond = positions >= context_length
    by_position = np.argsort(positions, kind="stable")
    parts = np.array_split(by_position, max(min(PARTS, len(positions) // LEAST), 1))
    if tolerance is None:
        tolerance = MARGIN * max(by_rounding[part].mean() for part in parts)
    parted = next((part for part in parts if differences[part].mean() > tolerance), None)
    position = None
    if parted is not None:
        first = np.argmax(differences[parted] > max(by_rounding.max(), tolerance))
        position = int(positions[parted][first])
    return {
        "agrees": parted is None,
        "compared": "generated tokens" if served[0].generated else "the text's tokens",
        "within": _summary(differences[~beyond]),
        "beyond": _summary(differences[beyond]),
        "bfloat16": _summary(by_rounding),
        "tolerance": float(tolerance),
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
    model: PreTrainedModel,
    geometry: RopeGeometry,
    suspects: dict[str, tuple[RopeScaling, float]],
    served: Sequence[Served],
    ours: Sequence[np.ndarray],
    found: dict,
) -> dict:
    """The mistake whose losses are nearest to the server's from the position on at which it parts
    from us, and whether it explains them. The model is scaled otherwise afterwards.

    Args:
        suspects: from :func:`mistakes`.
        found: from :func:`judged`.
    """
    after = np.concatenate([text.positions for text in served]) >= found["position"]
    wrong = {
        "the right losses, each given for the token before": apart(served, ours, 1),
        "the right losses, each given for the token after": apart(served, ours, -1),
    }
    for words, (scaling, factor) in tqdm(suspects.items(), unit="mistake", desc="comparing"):
        with contextlib.suppress(InputError):  # no configuration of this architecture says that
            embedding.apply_scaling(model, geometry, scaling, factor)
            wrong[words] = apart(served, losses(model, served))
    means = {words: float(differences[after].mean()) for words, differences in wrong.items()}
    words = min(means, key=means.__getitem__)
    return {
        "mistake": words,
        "mean": means[words],
        "explains": means[words] <= found["tolerance"],
        "right": float(apart(served, ours)[after].mean()),
    }


def mistakes(geometry: RopeGeometry, extended: Extended) -> dict[str, tuple[RopeScaling, float]]:
    """What a server may compute in place of an extended model, by words for it: scalings and their
    factors."""
    s = extended.factor
    found = {"the model without scaling": (rope.scale(geometry, rope.ORIGINAL, s), s)}
    for other in ("pi", rope.BASELINE):
        found[f"{other} at s = {s:g}"] = (rope.scale(geometry, other, s), s)
    method = extended.method
    options = extended.options
    if method is None or rope.named_files(method, options):
        return found  # its frequencies are not known here
    right = rope.scale(geometry, method, s, **options)
    name = Setting.make(method, options).name
    plain = replace(right, attention_factor=geometry.attention_factor, stock=None)
    found[f"{name} without its attention factor"] = (plain, s)
    if right.stock:  # engines compute it themselves, from a length that may be stated wrongly
        longer = replace(geometry, context_length=extended.longer)
        scaling = rope.scale(longer, method, s, **options)
        found[f"{name} as if L' were the original length"] = (scaling, s)
    for other in OTHER_FACTORS:
        found[f"{name} at s = {other:g}"] = (rope.scale(geometry, method, other, **options), other)
    return {words: each for words, each in found.items() if not _same(each[0], right)}


def _same(one: RopeScaling, other: RopeScaling) -> bool:
    frequencies = np.allclose(one.inv_freq, other.inv_freq, rtol=1e-6, atol=0)
    return bool(frequencies and np.isclose(one.attention_factor, other.attention_factor))


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
