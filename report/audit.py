"""Check the paper against itself: its tables, and every sentence that follows from them
(tables/paper/audit.tex).

Reads nothing but the published numbers in results/paper/. Every average of its tables is added
again, every bold entry compared with its column, and rows that are printed twice with each other.
Sentences that compare methods are those of sentences.csv, and are checked by one RULE. A difference
within what rounding to two decimals can produce counts as agreement; what does not agree is of one
of the KINDS.
"""

import itertools
import os
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from analysis import published
from analysis.scores import number
from core import files, rope
from experiments.kit import command_line
from records import ROOT
from tables.kit import latex, markdown
from tables.kit.table import Block, Cell, Table

RULE = (
    "A sentence is recomputed from the printed averages against every method that it names or, "
    "where it names none, "
    "every method of the table that its words cover: “up to” must be the most over all of them, "
    "and “best” must hold "
    "against each of them, in each average that the table has."
)
OUTPUT = ROOT / "tables" / "paper" / "audit.tex"
SENTENCES = Path(__file__).parent / "sentences.csv"
_SEVEN = "LLaMA2-7B"
_THIRTEEN = "LLaMA2-13B"
_CLEX = published.rivals("perplexity")[-1]
_UNITS = {
    "points": lambda own, other: own - other,
    "% more": lambda own, other: 100 * (own / other - 1),
    "% less": lambda own, other: 100 * (1 - own / other),
}

# Two decimals are printed: an average of rounded entries may differ by half a unit for each side.
ROUNDING = 0.01 + 1e-9
SLIP = "slip"
OMISSION = "omission"
TIE = "tie"
ROUNDED = "rounding"
JUDGEMENT = "judgement"
KINDS = {
    SLIP: "a number, a label or a reference is wrong by the paper's own tables",
    OMISSION: "the sentence holds against some of the methods that it covers, not against all",
    TIE: "entries are equal and best, and not all of them are in bold",
    ROUNDED: "one number is rounded in two ways",
    JUDGEMENT: "the paper states no measure, and the criterion is ours",
}
TITLES = {
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
# Whether it agrees and, of one that does not, its kind, what is printed, what the tables give, and
# why.
Check = tuple[bool, str, str, str, str]


def checks() -> list[Check]:
    """Every check."""
    compared_methods = map(outcome, sentences())
    return [
        *averages(),
        *bold_entries(),
        *repeated_rows(),
        *compared_methods,
        *sentences_of_section_4(),
        *sentences_of_section_5(),
        *sentences_of_the_appendix(),
        *labels(),
    ]


def averages() -> Iterator[Check]:
    """Each printed average against the mean of its row."""
    for table, title in TITLES.items():
        for run, scores in published.runs(table):
            for metric, score in scores.items():
                if metric.startswith("Avg"):
                    derived = published.average(scores, metric)
                    same = abs(score - derived) <= ROUNDING
                    printed = f"{title}: {metric} of {_run(run)}: {score:.2f}"
                    yield same, SLIP, printed, f"{derived:.3f}", "It is not the mean of its row."


def bold_entries() -> Iterator[Check]:
    """Whether what is printed in bold is the best of its column."""
    less_is_better = {"perplexity": ("perplexity", min), "disturbance": ("disturbance_e3", min)}
    for table, title in TITLES.items():
        frame = published.table(table)
        score, best_of = less_is_better.get(table, ("score", max))
        columns = [name for name in ("model", "metric", "context_length") if name in frame]
        for key, group in frame.groupby(columns, sort=False):
            top = best_of(group[score])
            best = group[group[score] == top]
            marked = group[group["bold"] == 1]
            kind = TIE if set() < set(marked.index) < set(best.index) else SLIP
            printed, derived = (
                " and ".join(map(_run, rows.to_dict("records"))) for rows in (marked, best)
            )
            yield (
                marked.index.equals(best.index),
                kind,
                f"{title}: best of {', '.join(key)} in bold: {printed or 'none'}",
                derived,
                f"{top:.2f} is the best, and stands in each of these rows.",
            )


def repeated_rows() -> Iterator[Check]:
    """The ablations' default setting is LLaMA2-13B with s = 2: the same run must print the same
    scores."""
    for key, default in (("n_hat", 80), ("intervals", 360)):
        for main in ("longbench_e", "open_llm"):
            table = f"{key}_{main}"
            elsewhere = _by_method(main, _THIRTEEN, 2)[rope.PROPOSED]
            by_value = {run[key]: scores for run, scores in published.runs(table)}
            scores = by_value[default]
            for metric, score in scores.items():
                kind = SLIP
                why = "It is the same run."
                if metric.startswith("Avg") and abs(score - elsewhere[metric]) <= ROUNDING:
                    kind = ROUNDED
                    mean = published.average(scores, metric)
                    why = f"It is the same run, whose printed scores average {mean:.3f}."
                printed = (
                    f"{TITLES[table]}: {metric} of {_run({key: default})} repeats the "
                    f"{TITLES[main]}: {score:.2f}"
                )
                yield score == elsewhere[metric], kind, printed, f"{elsewhere[metric]:.2f}", why


def _title(method: str) -> str:
    return rope.METHODS[method].title


# What was run, by the columns that say it.
_KEYS = {
    "model": str,
    "method": _title,
    "factor": "s = {:g}".format,
    "n_hat": "n̂ = {:g}".format,
    "intervals": "b = {:g}".format,
}


def _run(row: dict) -> str:
    """What a row of a table is of, to be read."""
    return ", ".join(shown(row[key]) for key, shown in _KEYS.items() if pd.notna(row.get(key)))


def _by_method(table: str, model: str, factor: int) -> dict[str, dict[str, float]]:
    """The scores of a model at a factor by method, where a table says of which they are; CLEX has
    one row, which stands at every factor."""
    return {
        run["method"]: scores
        for run, scores in published.runs(table)
        if run.get("model", model) == model
        and (run["method"] == _CLEX or run.get("factor", factor) == factor)
    }


# Sentences that compare methods


def sentences() -> list[Any]:
    """Each sentence that compares a method with others, by one average of a table.

    Its `where` and `what` are the section and the statement; `table` and `metric` say where the
    numbers are. `printed` is the number and its `unit`, one of _UNITS; there is no `number` where
    the method is said to be ahead. The least or the most of the values that the sentence covers
    `decides`. `method` is compared with those that it `covers`; the table need not have all.
    `models` and `factors` are the runs.
    """
    frame = pd.read_csv(SENTENCES, dtype=str, keep_default_na=False)
    return list(frame.itertuples(index=False))


def against_each(sentence: Any) -> dict[str, tuple]:
    """By other method of the table, the run that decides: (other method, value, model, factor,
    score, the other's score).

    One that is ahead must be so in its least favourable run.
    """
    value = _UNITS[sentence.unit]
    runs: dict[str, list[tuple]] = {}
    for model, factor in itertools.product(sentence.models.split(), sentence.factors.split()):
        by_method = _by_method(sentence.table, model, int(factor))
        scores = {method: _average(of, sentence.metric) for method, of in by_method.items()}
        own = scores.pop(sentence.method, None)
        for other, score in scores.items() if own is not None else ():
            run = (other, value(own, score), model, factor, own, score)
            runs.setdefault(other, []).append(run)
    return {other: _deciding(sentence, of) for other, of in sorted(runs.items())}


def _average(scores: dict[str, float], metric: str) -> float:
    """An average as it is printed, or put right where that is a misprint."""
    derived = published.average(scores, metric)
    printed = scores.get(metric, derived)
    return printed if abs(printed - derived) <= ROUNDING else derived


def _deciding(sentence: Any, runs: list[tuple]) -> tuple:
    decides = min if sentence.decides == "least" else max
    return decides(runs, key=lambda run: run[1])


def outcome(sentence: Any) -> Check:
    """Whether a sentence agrees, by the RULE."""
    runs = against_each(sentence)
    covered = [run for method, run in runs.items() if method in sentence.covers.split()]
    decides = _deciding(sentence, covered)
    method, value, model, factor, own, others = decides
    printed = f"{sentence.where}: {sentence.what} ({sentence.metric})"
    kind = OMISSION
    if sentence.number:
        printed += f": {sentence.printed}"
        digits = len(sentence.number.partition(".")[2])
        off = 0.5 * 10**-digits + 1e-9
        same = [run for run in runs.values() if abs(run[1] - float(sentence.number)) <= off]
        holds = decides in same
        if not same:
            kind = SLIP
        against = " and ".join(_title(run[0]) for run in same) or "no method"
        why = f"It is the number against {against}."
    else:
        digits = 2
        holds = value > 0
        why = f"{_title(method)} has {others:.2f} there, {_title(sentence.method)} {own:.2f}."
    text = number(value, digits or 1, sign=sentence.unit == "points")
    derived = f"{text} {sentence.unit} against {_title(method)} ({model}, s = {factor})"
    return holds, kind, printed, derived, why


# What else the text says of the tables


def sentences_of_section_4() -> Iterator[Check]:
    """Where the drops of Open LLM are read from, and which methods keep their level."""
    yield (
        False,
        SLIP,
        "section 4.3: table that the drops of 0.12 and 0.53 are read from: LongBench-E",
        "Open LLM",
        "The text refers to the wrong table.",
    )
    for model, other in ((_SEVEN, rope.TIME_REFERENCE), (_THIRTEEN, rope.BASELINE)):
        change = {
            method: round(scores["8k+"] - scores["4-8k"], 2)
            for method, scores in _by_method("longbench_e", model, 4).items()
            if method != rope.ORIGINAL
        }
        less = [_title(method) for method in change if change[method] > change[rope.PROPOSED]]
        yield (
            change[rope.PROPOSED] > change[other] / 2,
            JUDGEMENT,
            f"section 4.2: {model}, 16k: DPRoPE keeps its level from 4-8k to 8k+ (here: loses less "
            f"than half as much), {_title(other)} does not",
            _list(change),
            f"The paper does not say what “maintain” means; {' and '.join(less)} fall less than "
            "DPRoPE.",
        )


def sentences_of_section_5() -> Iterator[Check]:
    """The ablations over n̂ and b."""
    n_hat = published.ablated("n_hat_longbench_e", "Avg.")
    spread = np.ptp([n_hat[value] for value in (80, 88, 96)])
    yield (
        spread < 0.1,
        JUDGEMENT,
        "section 5.2: n̂ = 80, 88, 96 differ little (here: by less than 0.1)",
        f"range {spread:.2f}",
        "",
    )
    falling = [n_hat[value] for value in (56, 64, 72, 80)]
    yield (
        falling == sorted(falling),
        SLIP,
        "section 5.2: the average falls as n̂ falls below 80",
        str(falling),
        "",
    )
    intervals = published.ablated("intervals_longbench_e", "Avg.")
    fine = [intervals[value] for value in (90, 180, 360)]
    loss = min(fine) - intervals[720]
    yield (
        loss > np.ptp(fine),
        JUDGEMENT,
        "section 5.3: b = 720 falls (here: by more than b = 90 … 360 differ)",
        f"falls {loss:.2f}",
        "",
    )
    spread = np.ptp([*published.ablated("intervals_open_llm", "Avg.").values()])
    yield (
        spread < 0.22,
        JUDGEMENT,
        "section 5.3: b does not influence Open LLM (here: four tasks' mean by less than 0.22)",
        f"range {spread:.2f}",
        "",
    )


def sentences_of_the_appendix() -> Iterator[Check]:
    """RULER, and the time that methods take."""
    for model in (_SEVEN, _THIRTEEN):
        ruler = _by_method("ruler", model, 4)
        before = ruler.pop(rope.ORIGINAL)
        yield (
            all(
                scores["4k"] < before["4k"]
                and scores["8k"] > before["8k"]
                and scores["16k"] > before["16k"]
                for scores in ruler.values()
            ),
            SLIP,
            f"section B.2: RULER: every extended {model} loses at 4k and gains at 8k and 16k",
            str(ruler),
            "",
        )
        times = {method: of["test"] for method, of in _by_method("time_cost", model, 4).items()}
        least = min(times[rope.TIME_REFERENCE], times[rope.BASELINE])
        yield (
            times[rope.PROPOSED] <= least < times[_CLEX],
            SLIP,
            f"sections 3.2, B.2: DPRoPE takes no more time than PI and YaRN, CLEX more, {model}",
            _list(times),
            "",
        )


def labels() -> Iterator[Check]:
    """The model that each block of the perplexity table names."""
    for row in published.table("perplexity").drop_duplicates("model").itertuples():
        size = row.model.removeprefix("LLaMA2-")
        yield (
            row.printed_label == size,
            SLIP,
            f"{TITLES['perplexity']}: label of the {row.model} rows: {row.printed_label}",
            size,
            "The table has two blocks of 7B; the second is of 13B.",
        )


def _list(values: dict[str, float]) -> str:
    return ", ".join(f"{_title(method)} {number(value, 2)}" for method, value in values.items())


def kinds(checked: list[Check]) -> Counter:
    """How many there are of each kind of what does not agree."""
    return Counter(kind for holds, kind, *_ in checked if not holds)


def build(checked: list[Check]) -> Table:
    """What does not agree, by kind."""
    wrong = [differs for holds, *differs in checked if not holds]
    wrong.sort(key=lambda differs: [*KINDS].index(differs[0]))
    caption = (
        f"The paper checked against its own tables: {len(checked)} averages, bold entries, "
        f"repeated rows and sentences, of which these {len(wrong)} do not agree."
    )
    header = ("Kind", "What is printed", "By the tables", "Why")
    rows = [[*map(Cell, differs)] for differs in wrong]
    return Table("audit", caption, [Block("", header, rows)], words=True)


def main() -> None:
    command_line.parser(__doc__, prog="python -m report.audit").parse_args()
    table = build(checks())
    print(markdown.render(table, escape=False))
    print(os.path.relpath(files.write(OUTPUT, latex.render(table))))


if __name__ == "__main__":
    command_line.run(main)
