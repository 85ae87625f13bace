"""Whether to extend a model, by which method, and what it costs: on your texts, without training.

    python -m experiments.beyond.best --model PATH_OR_NAME --factor 2 --texts FILES

In the first L' tokens of each text keys are hidden. One reading under each method gives the loss
within L and beyond it, and then the keys are asked for. Beside the methods stands the model as it
is, which reads the last L tokens, with and without YaRN's attention factor. What follows from it is
said in sentences. The last line is the command that extends the model by the best method. Nothing
is recorded.
"""

from __future__ import annotations

import contextlib
import json
import shlex
import sys
import textwrap
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from core.discovery import later
from core.errors import NonFiniteError
from core.setting import flags
from eval.beyond import ranking
from eval.beyond.ranking import Ranking
from experiments import base_models
from experiments.kit import command_line, texts
from experiments.kit.beyond import ranking_figure

if TYPE_CHECKING:
    import pandas
    import transformers
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

    from experiments.kit.beyond import comparison as comparisons
    from experiments.kit.beyond.comparison import Comparison
else:
    comparisons, transformers = later("experiments.kit.beyond.comparison", "transformers")


def main() -> None:
    parser = command_line.parser(__doc__, prog="python -m experiments.beyond.best")
    base_models.add_argument(parser, required=True)
    wanted = "rank these methods alone (default: all that need no training)"
    command_line.list_option(parser, "--method", str, "NAME", wanted)
    command_line.add_factor_argument(parser)
    by = "rank by keys or by loss beyond L (default: by keys where they tell methods apart)"
    parser.add_argument("--by", choices=(ranking.KEYS, ranking.LOSS), help=by)
    command_line.add_dtype_argument(parser)
    texts.add_arguments(parser)
    parser.add_argument("--json", action="store_true", help="print all of it as JSON alone")
    picture = "also draw it to FILE, such as best.png or best.pdf (needs matplotlib)"
    command_line.option(parser, "--plot", command_line.path, "FILE", picture)
    arguments = parser.parse_args()
    if arguments.plot:
        ranking_figure.check(arguments.plot)
    with contextlib.redirect_stdout(sys.stderr):  # what is left out is said beside the ranking
        subject = comparisons.named(arguments.model, arguments.dtype)
        books = texts.chosen(arguments)
        comparison = comparisons.prepare(
            subject, books, arguments.factor, arguments.method, arguments.bos
        )
    comparison.check_order(arguments.by)
    read: list[dict[str, dict]] = []
    try:
        read.extend(comparison.readings())
    except (KeyboardInterrupt, NonFiniteError) as stop:
        if read:
            show(comparison, read, arguments)
            stop.add_note(f"the ranking is of {comparisons.counted(len(read), 'text')}")
        raise
    show(comparison, read, arguments)


def best(
    model: str | Path | PreTrainedModel,
    given: Sequence[str | Path],
    factor: float = 2,
    tokenizer: PreTrainedTokenizerBase | None = None,
    methods: Sequence[str] | None = None,
    by: str | None = None,
) -> pandas.DataFrame:
    """What :func:`main` prints, as a table of pandas: a row for each method, the best first, and
    for the model as it is. It is documented as `dprope.best`, in package/."""
    pandas = ranking_figure.optional("pandas", "a DataFrame")
    verbosity = transformers.logging.get_verbosity()
    transformers.logging.set_verbosity_error()  # it does not know the keys of some scalings
    try:
        with contextlib.redirect_stdout(sys.stderr):
            in_memory = not isinstance(model, str | Path)
            subject = (
                comparisons.loaded(model, tokenizer) if in_memory else comparisons.named(str(model))
            )
            books = comparisons.as_books(given)
            wanted = [methods] if isinstance(methods, str) else methods
            comparison = comparisons.prepare(subject, books, factor, wanted)
            comparison.check_order(by)
            order = comparison.ranked(list(comparison.readings()), by)
    finally:
        transformers.logging.set_verbosity(verbosity)
    said = facts(comparison, order)
    table = pandas.DataFrame(said.pop("rows")).set_index("method")
    table.attrs = said
    return table


def facts(comparison: Comparison, order: Ranking) -> dict:
    """All of it, for programs."""
    name = comparison.subject.name
    first = order.methods[0]
    command = {"model": name, "method": first.setting.method, "factor": comparison.factor}
    words = shlex.join(flags({**command, **dict(first.setting.options), "output": "DIR"}))
    count = len(first.texts)
    return {
        "model": name,
        "quantised": comparison.subject.quantised or None,
        "factor": comparison.factor,
        "context_length": comparison.context_length,
        "extended_length": comparison.extended_length,
        "texts": list(comparison.read)[:count],
        "left_out": comparison.left_out,
        "notes": notes(comparison, count),
        "ranked_by": order.by,
        "verdict": ranking.verdict(order, comparison.context_length),
        "command": command_line.as_called(f"python -m experiments.extend {words}"),
        "rows": ranking.facts(order),
    }


def notes(comparison: Comparison, count: int) -> list[str]:
    """What the numbers of the table are, of so many texts."""
    number = comparisons.counted(count, "text")
    said = [
        f"{number} of {comparison.extended_length:,} tokens; L = {comparison.context_length:,}. "
        "Means over texts, less is better."
    ]
    if comparison.keys:
        said += [
            "Loss: nats a token of the text's own tokens, the first L and those after them. "
            f"The sentences of {comparison.keys} keys stand between, so it is not quite that of "
            "the plain text.",
            "Keys: nats for five digits that are asked for after the text; a guess costs "
            f"{ranking.GUESS:.1f}. A key within L begins at most L tokens before the question.",
        ]
    else:
        said.append("Loss: nats a token, the first L tokens and those after them.")
    said.append(
        "'as it is, last L' is not extended and never reads more than L tokens: a token beyond "
        "L is predicted from the last L/2 to L, and keys from the last L. '×' is YaRN's "
        "attention factor alone."
    )
    if comparison.subject.quantised:
        said.append(f"The weights are quantised ({comparison.subject.quantised}).")
    return said


def show(comparison: Comparison, read: list[dict[str, dict]], arguments) -> None:
    """Print the ranking of the texts that were read, and draw it."""
    order = comparison.ranked(read, arguments.by)
    said = facts(comparison, order)
    if arguments.json:
        print(json.dumps(said, indent=1, ensure_ascii=False, allow_nan=False))
    else:
        print(f"\n{ranking.table(order)}\n")
        for line in (*said["notes"], "", *said["verdict"]):
            print(textwrap.fill(line, 100))
        print(f"\n{said['command']}")
    if arguments.plot:
        title = (
            f"{comparison.subject.name}, s = {comparison.factor:g}, "
            f"L = {comparison.context_length:,}, {comparisons.counted(len(read), 'text')}"
        )
        ranking_figure.draw(order, title, arguments.plot)


if __name__ == "__main__":
    command_line.run(main)
