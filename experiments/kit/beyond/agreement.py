"""What a server says of texts, beside what transformers computes of them: the losses of the same
tokens, and the mistake that explains where they part."""

import contextlib
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from torch import Tensor
from tqdm import tqdm
from transformers import PreTrainedModel

import records
from core import rope
from core.errors import InputError
from core.extend import extend
from core.geometry import RopeGeometry, RopeScaling
from core.huggingface import embedding
from core.huggingface.configuration import text_config
from core.setting import Setting
from eval import Request, perplexity, special_tokens
from eval.beyond.endpoint import Endpoint
from experiments.kit import command_line, texts
from experiments.kit.beyond import serving
from experiments.kit.model import Model, resolve

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
    at = Endpoint(
        arguments.url,
        serving.served_name(base, added, factor, options),
        text_config(base.config).vocab_size,
        by_name=False,
    )
    read = min(longer, at.most_tokens) - 1  # the server makes one token more
    if read <= context_length + 1:  # the first token has no loss
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
        return extend(model, added, factor, **options) if added else model

    rounded = losses(load("bfloat16"), served)
    model = load("float32")
    ours = losses(model, served)
    found = judged(positions, theirs, ours, rounded, context_length, arguments.tolerance)
    close = None
    if not found["agrees"]:
        after = positions >= found["position"]
        wrong = {
            "the right losses, each given for the token before": np.roll(ours, -1),
            "the right losses, each given for the token after": np.roll(ours, 1),
            **mistaken(model, base.geometry, extension, served),
        }
        wrong = {words: each[after] for words, each in wrong.items()}
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
    base = resolve(arguments.model, as_it_is=not arguments.method)
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


def mistaken(
    model: PreTrainedModel, geometry: RopeGeometry, extension: dict, served: Sequence[Served]
) -> dict[str, np.ndarray]:
    """The losses of :func:`mistakes`, by words for them. The model is scaled otherwise
    afterwards."""
    found = {}
    suspects = mistakes(geometry, extension)
    for words, (scaling, factor) in tqdm(suspects.items(), unit="mistake", desc="comparing"):
        with contextlib.suppress(InputError):  # no configuration of this architecture says that
            embedding.apply_scaling(model, geometry, scaling, factor)
            found[words] = losses(model, served)
    return found


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
