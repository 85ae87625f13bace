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
from typing import TYPE_CHECKING

import numpy as np

from core import rope
from core.discovery import later
from core.errors import InputError
from core.setting import Setting
from eval import special_tokens
from experiments import base_models
from experiments.kit import command_line, texts
from experiments.kit.beyond import serving

if TYPE_CHECKING:
    from transformers import PreTrainedModel

    from core import extend
    from core.huggingface import configuration
    from eval.beyond import endpoint
    from experiments.kit import model as models
    from experiments.kit.beyond import agreement
    from experiments.kit.model import Model
else:
    models, configuration, agreement, endpoint, extend = later(
        "experiments.kit.model",
        "core.huggingface.configuration",
        "experiments.kit.beyond.agreement",
        "eval.beyond.endpoint",
        "core.extend",
    )


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
    arguments = parser.parse_args()
    command_line.check_method(arguments)
    if "factor" in parser.stated and not arguments.method:
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
    served = [agreement.ask(at, book.title, tokens) for book, tokens in books.items()]
    positions = np.concatenate([text.positions for text in served])
    theirs = np.concatenate([text.losses for text in served])

    def load(dtype: str) -> PreTrainedModel:
        model = base.load(dtype)
        return extend.extend(model, added, factor, **options) if added else model

    rounded = agreement.losses(load("bfloat16"), served)
    model = load("float32")
    ours = agreement.losses(model, served)
    found = agreement.judged(positions, theirs, ours, rounded, context_length, arguments.tolerance)
    close = None
    if not found["agrees"]:
        after = positions >= found["position"]
        wrong = {
            "the right losses, each given for the token before": np.roll(ours, -1),
            "the right losses, each given for the token after": np.roll(ours, 1),
            **agreement.mistaken(model, base.geometry, extension, served),
        }
        wrong = {words: each[after] for words, each in wrong.items()}
        close = agreement.nearest(theirs[after], ours[after], wrong, found["tolerance"])
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
