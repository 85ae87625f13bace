"""Check the paper against itself: re-add every average, re-derive every claim (tables/paper/audit.tex).

Reads nothing but the published numbers in results/paper/. A difference within what rounding to two decimals can
produce counts as agreement.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterator
from dataclasses import dataclass

import pandas as pd

from analysis import published
from core import files, rope
from core.errors import InputError
from experiments.kit import command_line
from experiments.kit.records import ROOT
from tables.kit import latex
from tables.kit.table import Block, Cell, Table

# Two decimals are printed: an average of rounded entries may differ by half a unit for each side.
ROUNDING = 0.01
OUTPUT = ROOT / "tables" / "paper"
_TITLES = {
    "longbench_e": "LongBench-E table",
    "open_llm": "Open LLM table",
    "disturbance": "disturbance table",
    "n_hat_longbench_e": "LongBench-E over n̂",
    "n_hat_open_llm": "Open LLM over n̂",
    "intervals_longbench_e": "LongBench-E over b",
    "intervals_open_llm": "Open LLM over b",
    "ruler": "RULER table",
    "perplexity": "perplexity table",
}
_KEYS = ("model", "method", "factor", "n_hat", "intervals")  # the columns that say what was run
_MODELS = ("LLaMA2-7B", "LLaMA2-13B")
# What the paper compares: methods with a fixed RoPE model, and all that are not its own.
_SCALED = (rope.UNIT, rope.RIVAL, rope.OURS)
_RIVALS = tuple(name for name, method in rope.METHODS.items() if method.published and name != rope.OURS)


@dataclass(frozen=True)
class Finding:
    """One thing the paper prints, and what its own tables give.

    Attributes:
        where: the table or section.
        what: the statement.
        printed, derived: as text.
        holds: whether they agree.
    """

    where: str
    what: str
    printed: str
    derived: str
    holds: bool


def findings() -> list[Finding]:
    """Every check, in the paper's order; InputError where a published number that one needs is gone."""
    try:
        return [*averages(), *bold_entries(), *repeated_rows(), *claims()]
    except InputError:
        raise
    except (LookupError, ValueError, TypeError) as error:
        raise InputError(
            f"results/paper lacks numbers that the paper prints ({error}); take it from the repository again."
        ) from error


def averages() -> Iterator[Finding]:
    """Each printed average against the mean of its row."""
    sets = (
        ("longbench_e", "Avg.", ["0-4k", "4-8k", "8k+"]),
        ("longbench_e", "Avg.>4k", ["4-8k", "8k+"]),
        ("open_llm", "Avg.", ["TruthfulQA", "HellaSwag", "MMLU", "ARC-c"]),
        ("ruler", "Avg.", ["4k", "8k", "16k"]),
        ("n_hat_longbench_e", "Avg.", ["0-4k", "4-8k", "8k+"]),
        ("intervals_longbench_e", "Avg.", ["0-4k", "4-8k", "8k+"]),
    )
    for table, average, parts in sets:
        frame = published.table(table)
        keys = [key for key in _KEYS if key in frame]
        for run, rows in frame.groupby(keys, dropna=False, sort=False):
            scores = dict(zip(rows["metric"], rows["score"]))
            derived = sum(scores[part] for part in parts) / len(parts)
            known = {key: x for key, x in zip(keys, run) if pd.notna(x)}
            name = ", ".join(x if isinstance(x, str) else f"{key} = {x:g}" for key, x in known.items())
            yield Finding(
                _TITLES[table],
                f"{average} of {name}",
                f"{scores[average]:.2f}",
                f"{derived:.3f}",
                abs(scores[average] - derived) <= ROUNDING + 1e-9,
            )


def bold_entries() -> Iterator[Finding]:
    """Whether what is printed in bold is the best of its column."""
    columns = {"perplexity": "perplexity", "disturbance": "disturbance_e3"}  # where less is better
    for table, title in _TITLES.items():
        frame = published.table(table)
        score = columns.get(table, "score")
        by = [name for name in ("model", "metric" if "metric" in frame else "context_length") if name in frame]
        for key, group in frame.groupby(by, sort=False):
            best = group[group[score] == (group[score].min() if table in columns else group[score].max())][score]
            marked = group[group["bold"] == 1][score]
            yield Finding(
                title,
                f"best of {', '.join(map(str, key))} in bold",
                ", ".join(f"{x:.2f}" for x in marked) or "none",
                ", ".join(f"{x:.2f}" for x in best),
                marked.tolist() == best.tolist(),
            )


def repeated_rows() -> Iterator[Finding]:
    """The ablations' default setting is LLaMA2-13B with s = 2: the same run must print the same scores."""
    for table, main, key, default in (
        ("n_hat_longbench_e", "longbench_e", "n_hat", 80),
        ("n_hat_open_llm", "open_llm", "n_hat", 80),
        ("intervals_longbench_e", "longbench_e", "intervals", 360),
        ("intervals_open_llm", "open_llm", "intervals", 360),
    ):
        for row in _rows(table, **{key: default}).itertuples():
            elsewhere = _score(main, row.metric, model="LLaMA2-13B", method=rope.OURS, factor=2)
            yield Finding(
                _TITLES[table],
                f"{row.metric} of {key} = {default} repeats the {_TITLES[main]}",
                f"{row.score:.2f}",
                f"{elsewhere:.2f}",
                row.score == elsewhere,
            )


def claims() -> Iterator[Finding]:
    """The abstract's and the text's numbers, re-derived from the tables."""

    def near(where: str, what: str, printed: float, derived: float, unit: str = "", digits: int = 2) -> Finding:
        agrees = abs(printed - derived) <= 0.5 * 10**-digits + 1e-9
        return Finding(where, what, f"{printed:+.{digits}f}{unit}", f"{derived:+.{digits + 1}f}{unit}", agrees)

    def true(where: str, what: str, holds: bool, derived: str) -> Finding:
        return Finding(where, what, "stated", derived, holds)

    moved = published.disturbance()
    for factor, length, printed in ((2, "8k", 72), (4, "16k", 32)):
        reduction = 100 * (1 - moved[rope.OURS, factor] / moved[rope.UNIT, factor])
        yield near("abstract", f"disturbance reduced against PI at {length}", printed, reduction, " %", 0)

    long = _longest("longbench_e", "LLaMA2-7B", "Avg.")
    gain = {method: 100 * (long[rope.OURS] / score - 1) for method, score in long.items() if method in _RIVALS}
    over_pi = gain.pop(rope.UNIT)
    yield near("abstract, section 4.2", "LongBench-E gain over PI(s=4), 7B, relative", 4.33, over_pi, " %")
    yield true(
        "abstract",
        "4.33 % is the most over existing methods (7B, 16k)",
        over_pi >= max(gain.values()),
        ", ".join(f"over {rope.METHODS[method].title} {value:.2f} %" for method, value in gain.items()),
    )

    change = {}
    for model, method, factor in itertools.product(_MODELS, _SCALED, (2, 4)):
        before = _score("open_llm", "Avg.", model=model, method=rope.ORIGINAL)
        after = _score("open_llm", "Avg.", model=model, method=method, factor=factor)
        change[model, method, factor] = after - before
    ours = [value for (_, method, _), value in change.items() if method == rope.OURS]
    yield near("abstract", "Open LLM average, ours, worst change", -0.12, min(ours))
    yield near("abstract", "Open LLM average, ours, best change", +0.22, max(ours))
    yield near("section 4.3", "Open LLM change, ours (s=2), 7B", -0.12, change["LLaMA2-7B", rope.OURS, 2])
    yield near("section 4.3", "Open LLM change, YaRN (s=4), 7B", -0.53, change["LLaMA2-7B", rope.RIVAL, 4])
    worst_pi = min(change["LLaMA2-7B", rope.UNIT, s] for s in (2, 4))
    yield true(
        "section 4.3",
        "PI (7B) loses more than YaRN",
        worst_pi < change["LLaMA2-7B", rope.RIVAL, 4],
        f"PI {worst_pi:+.2f} as printed",
    )
    yield Finding(
        "section 4.3",
        "table that the drops of 0.12 and 0.53 are read from",
        "LongBench-E, by its reference",
        "Open LLM",
        False,
    )
    gains_13b = [change["LLaMA2-13B", rope.OURS, s] for s in (2, 4)]
    yield true(
        "section 4.3",
        "ours improves Open LLM at 13B",
        min(gains_13b) > 0,
        ", ".join(f"{value:+.2f}" for value in gains_13b),
    )

    for model, factor in itertools.product(_MODELS, (2, 4)):
        scores = {m: _score("longbench_e", "Avg.", model=model, method=m, factor=factor) for m in _SCALED}
        yield true(
            "section 4.2",
            f"ours has the best LongBench-E average, {model}, s={factor}",
            max(scores, key=scores.get) == rope.OURS,
            ", ".join(f"{m} {v:.2f}" for m, v in scores.items()),
        )
    for model, other in (("LLaMA2-7B", rope.UNIT), ("LLaMA2-13B", rope.RIVAL)):
        drop = {}
        for method in (rope.OURS, other):
            far, near_by = (_score("longbench_e", m, model=model, method=method, factor=4) for m in ("8k+", "4-8k"))
            drop[method] = far - near_by
        yield true(
            "section 4.2",
            f"{model}, s=4: ours keeps its level from 4-8k to 8k+ (loses less than half as much), {other} does not",
            drop[rope.OURS] > drop[other] / 2,
            f"ours {drop[rope.OURS]:+.2f}, {other} {drop[other]:+.2f}",
        )

    n_hat = _rows("n_hat_longbench_e", metric="Avg.").set_index("n_hat")["score"]
    top = n_hat.loc[[80, 88, 96]]
    yield true(
        "section 5.2",
        "n̂ = 80, 88, 96 differ little",
        float(top.max() - top.min()) < 0.1,
        f"range {top.max() - top.min():.2f}",
    )
    falling = n_hat.loc[[56, 64, 72, 80]]
    yield true(
        "section 5.2",
        "the average falls as n̂ falls below 80",
        falling.is_monotonic_increasing,
        ", ".join(f"{x:.2f}" for x in falling),
    )
    intervals = _rows("intervals_longbench_e", metric="Avg.").set_index("intervals")["score"]
    fine = intervals.loc[[90, 180, 360]]
    spread, loss = fine.max() - fine.min(), fine.min() - intervals.loc[720]
    yield true(
        "section 5.3",
        "b = 720 loses more than b = 90 … 360 differ",
        loss > spread,
        f"loses {loss:.2f}, range {spread:.2f}",
    )
    means = published.table("intervals_open_llm").groupby("intervals")["score"].mean()
    spread = float(means.max() - means.min())
    yield true(
        "section 5.3", "b does not influence Open LLM (mean of four tasks)", spread < 0.22, f"range {spread:.2f}"
    )

    for model in _MODELS:
        short, far = (_longest("ruler", model, metric) for metric in ("4k", "Avg."))
        yield true(
            "section B.2",
            f"RULER: all lose at 4k, ours retrieves best on average, {model}",
            max(short, key=short.get) == rope.ORIGINAL and max(far, key=far.get) == rope.OURS,
            ", ".join(f"{m} {v:.2f}" for m, v in far.items()),
        )
    for row in published.table("perplexity").drop_duplicates("model").itertuples():
        label, size = row.printed_label, row.model.removeprefix("LLaMA2-")
        yield Finding(_TITLES["perplexity"], f"label of the {row.model} rows", label, size, label == size)


def _longest(table: str, model: str, metric: str) -> dict[str, float]:
    """A metric of a model by method, at the largest factor that is printed of each."""
    by_method = _rows(table, model=model, metric=metric).groupby("method", sort=False)
    return {str(method): float(rows.sort_values("factor")["score"].iloc[-1]) for method, rows in by_method}


def _score(table: str, metric: str, **run: str | int) -> float:
    """The one score of a run; ValueError if it is not printed."""
    return float(_rows(table, metric=metric, **run)["score"].item())


def _rows(table: str, **values: str | int) -> pd.DataFrame:
    """A table's rows with these values, by column."""
    frame = published.table(table)
    for column, value in values.items():
        frame = frame[frame[column] == value]
    return frame


def build(checked: list[Finding]) -> Table:
    """What does not add up."""
    wrong = [finding for finding in checked if not finding.holds]
    caption = (
        f"The paper checked against its own tables: {len(checked)} averages, bold entries, repeated rows and claims, "
        f"of which these {len(wrong)} do not agree."
    )
    rows = tuple(tuple(map(Cell, (f.where, f.what, f.printed, f.derived))) for f in wrong)
    return Table("audit", caption, (Block("", ("Where", "What", "Printed", "Derived"), rows),), words=True)


def main() -> None:
    parser = command_line.parser(__doc__, prog="python -m report.audit")
    parser.add_argument("--all", action="store_true", help="list what agrees, too")
    parser.add_argument(
        "--output", type=command_line.directory, default=OUTPUT, metavar="DIR", help="default tables/paper/"
    )
    arguments = parser.parse_args()

    checked = findings()
    for finding in checked:
        if arguments.all or not finding.holds:
            mark = "ok   " if finding.holds else "DIFF "
            print(f"{mark} {finding.where}: {finding.what}: printed {finding.printed}, derived {finding.derived}")
    wrong = sum(not finding.holds for finding in checked)
    print(f"\n{len(checked)} checks, {len(checked) - wrong} agree, {wrong} do not.")
    file = files.write(arguments.output / "audit.tex", latex.render(build(checked)))
    print(os.path.relpath(file))


if __name__ == "__main__":
    command_line.run(main)
