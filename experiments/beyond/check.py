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

import contextlib
import json
import sys

from core.setting import Setting
from experiments import base_models
from experiments.kit import command_line, texts
from experiments.kit.beyond import serving


def main() -> None:
    arguments = _parse()

    from experiments.kit.beyond import agreement  # with torch, which --help does without

    # what is left out is said beside the verdict, which a program may read
    with contextlib.redirect_stdout(sys.stderr):
        found = agreement.compare(arguments)
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
