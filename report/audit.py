"""Check the paper against itself: its tables, and every sentence that follows from them
(tables/paper/audit.tex).

Reads nothing but the published numbers in results/paper/. Every average of its tables is added
again, every bold entry compared with its column, and rows that are printed twice with each other.
Sentences that compare methods are checked by one RULE. A difference within what rounding to two
decimals can produce counts as agreement; what does not agree is of one of the KINDS.
"""

import os
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

import pandas as pd

from analysis import published
from analysis.scores import number
from core import files, rope
from experiments.kit import command_line
from experiments.kit.records import ROOT
from tables.kit import latex, markdown
from tables.kit.table import NONE, Block, Cell, Table, sentence_case

RULE = (
    "A sentence is recomputed from the printed averages against every method that it names or, "
    "where it names none, "
    "every method of the table that its words cover: “up to” must be the most over all of them, "
    "and “best” must hold "
    "against each of them, in each average that the table has."
)
OUTPUT = ROOT / "tables" / "paper" / "audit.tex"
_NO_NUMBER = "no number"  # of a sentence that prints none
_GEOMETRY = "LLaMA2"  # whose disturbance is the same for both models
_MODELS = _SEVEN, _THIRTEEN = ("LLaMA2-7B", "LLaMA2-13B")
# Methods that a sentence may cover; “existing methods” are PI, YaRN and CLEX.
_EXISTING = _, _, _CLEX = tuple(published.rivals("perplexity"))
_ALL = (*_EXISTING, rope.ORIGINAL)
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
_LENGTHS = ("0-4k", "4-8k", "8k+")
_PARTS = {
    ("longbench_e", "Avg."): _LENGTHS,
    ("longbench_e", "Avg.>4k"): _LENGTHS[1:],
    ("open_llm", "Avg."): ("TruthfulQA", "HellaSwag", "MMLU", "ARC-c"),
    ("ruler", "Avg."): ("4k", "8k", "16k"),
    ("n_hat_longbench_e", "Avg."): _LENGTHS,
    ("intervals_longbench_e", "Avg."): _LENGTHS,
}
_KEYS = {
    "model": "",
    "method": "",
    "factor": "s = ",
    "n_hat": "n̂ = ",
    "intervals": "b = ",
}  # what was run


@dataclass(frozen=True)
class Check:
    """One thing the paper prints, and what its own tables give.

    Attributes:
        where: the table or section.
        what: the statement.
        printed, derived: as text.
        kind: of what does not agree, one of KINDS; empty where it agrees.
        why: a sentence about what does not agree.
    """

    where: str
    what: str
    printed: str
    derived: str
    kind: str = ""
    why: str = ""

    @property
    def holds(self) -> bool:
        """Whether they agree."""
        return not self.kind


def averages() -> Iterator[Check]:
    """Each printed average against the mean of its row."""
    for table, metric in _PARTS:
        for row in averaged(table, metric).to_dict("records"):
            printed = row["score"]
            derived = row["derived"]
            kind = "" if abs(printed - derived) <= ROUNDING else SLIP
            why = "It is not the mean of its row."
            yield Check(
                TITLES[table],
                f"{metric} of {_run(row)}",
                f"{printed:.2f}",
                f"{derived:.3f}",
                kind,
                why,
            )


def averaged(table: str, metric: str) -> pd.DataFrame:
    """A column of averages: what was run, the printed `score`, and `derived`, the mean of the row's
    parts."""
    frame = published.table(table)
    parts = _PARTS[table, metric]
    keys = [key for key in _KEYS if key in frame]
    rows = frame[frame["metric"].isin(parts)].groupby(keys, dropna=False)["score"]
    return frame[frame["metric"] == metric].merge(
        rows.mean().rename("derived").reset_index(), on=keys
    )


def bold_entries() -> Iterator[Check]:
    """Whether what is printed in bold is the best of its column."""
    columns = {"perplexity": "perplexity", "disturbance": "disturbance_e3"}  # where less is better
    for table, title in TITLES.items():
        frame = published.table(table)
        score = columns.get(table, "score")
        by = [
            name
            for name in ("model", "metric" if "metric" in frame else "context_length")
            if name in frame
        ]
        for key, group in frame.groupby(by, sort=False):
            best = group[
                group[score] == (group[score].min() if table in columns else group[score].max())
            ]
            marked = group[group["bold"] == 1]
            some = 0 < len(marked) < len(best) and set(marked.index) < set(best.index)
            yield Check(
                title,
                f"best of {', '.join(map(str, key))} in bold",
                " and ".join(map(_run, marked.to_dict("records"))) or "none",
                " and ".join(map(_run, best.to_dict("records"))),
                "" if marked.index.equals(best.index) else TIE if some else SLIP,
                f"{best[score].iloc[0]:.2f} is the "
                f"best{', and stands in each of these rows' if some else ''}.",
            )


def repeated_rows() -> Iterator[Check]:
    """The ablations' default setting is LLaMA2-13B with s = 2: the same run must print the same
    scores."""
    for table, main, key, default in (
        ("n_hat_longbench_e", "longbench_e", "n_hat", 80),
        ("n_hat_open_llm", "open_llm", "n_hat", 80),
        ("intervals_longbench_e", "longbench_e", "intervals", 360),
        ("intervals_open_llm", "open_llm", "intervals", 360),
    ):
        own = published.table(table)
        rows = published.table(main)
        there = rows[
            (rows["model"] == "LLaMA2-13B")
            & (rows["method"] == rope.PROPOSED)
            & (rows["factor"] == 2)
        ]
        scores = there.set_index("metric")["score"]
        for row in own[own[key] == default].itertuples():
            elsewhere = float(scores[row.metric])
            kind = ""
            why = ""
            if row.score != elsewhere:
                kind = SLIP
                why = "It is the same run."
                if (table, row.metric) in _PARTS and abs(row.score - elsewhere) <= ROUNDING:
                    means = averaged(table, row.metric).set_index(key)["derived"]
                    kind = ROUNDED
                    why = f"It is the same run, whose printed scores average {means[default]:.3f}."
            what = f"{row.metric} of {_KEYS[key]}{default} repeats the {TITLES[main]}"
            yield Check(TITLES[table], what, f"{row.score:.2f}", f"{elsewhere:.2f}", kind, why)


def _run(row: dict) -> str:
    """What a row of a table is of, to be read."""
    keys = {key: row[key] for key in _KEYS if pd.notna(row.get(key))}
    if method := keys.get("method"):
        keys["method"] = rope.METHODS[method].title
    return ", ".join(
        value if isinstance(value, str) else f"{_KEYS[key]}{value:g}" for key, value in keys.items()
    )


# Sentences that compare methods


@dataclass(frozen=True)
class Sentence:
    """A sentence that compares a method with others, by an average of a table.

    Attributes:
        where, what: the section, and the statement.
        table, metric: where the numbers are.
        against: the methods that the sentence names or covers; the table need not have all.
        printed: the number; None where the sentence says that the method is ahead.
        unit: of the number, one of _UNITS.
        least: whether the number is the least of the values that it covers, not the most.
        of: the method that is compared.
        models, factors: the runs that the sentence covers.
    """

    where: str
    what: str
    table: str
    metric: str = "Avg."
    against: tuple[str, ...] = _EXISTING
    printed: float | None = None
    unit: str = "points"
    least: bool = False
    of: str = rope.PROPOSED
    models: tuple[str, ...] = _MODELS
    factors: tuple[int, ...] = (2, 4)

    @property
    def printed_as(self) -> str:
        """The number as it is printed."""
        return "ahead" if self.printed is None else self._value(self.printed, self._digits)

    @property
    def _digits(self) -> int:
        return 0 if self.printed and self.printed == int(self.printed) else 2

    def _decides(self, values):
        """Where the value is that the number is compared with: the least, or the most."""
        return values.idxmin() if self.least or self.printed is None else values.idxmax()

    def _value(self, value: float, digits: int) -> str:
        return f"{number(value, digits, sign=self.unit == 'points')} {self.unit}"

    def values(self) -> pd.DataFrame:
        """By other method of the table, the run that decides: its model, factor, both scores and
        their `value`.

        One that is ahead must be so in its least favourable run.
        """
        rows = _scores(self.table, self.metric)
        rows = rows[rows["model"].isin((*self.models, _GEOMETRY))]
        own = rows[(rows["method"] == self.of) & rows["factor"].isin(self.factors)]
        pairs = own.merge(rows[rows["method"] != self.of], on="model", suffixes=("", "_other"))
        # The original model and CLEX have one row, which stands at every factor.
        one_row = pairs["method_other"].isin((rope.ORIGINAL, _CLEX))
        pairs = pairs[one_row | (pairs["factor"] == pairs["factor_other"])]
        pairs = pairs.assign(value=_UNITS[self.unit](pairs["score"], pairs["score_other"]))
        return pairs.loc[self._decides(pairs.groupby("method_other")["value"])].set_index(
            "method_other"
        )

    def check(self) -> Check:
        """By the RULE."""
        rows = self.values()
        covered = rows["value"][rows.index.isin(self.against)]
        decides = self._decides(covered)
        row = rows.loc[decides]
        title = rope.METHODS[decides].title
        value = self._value(row["value"], self._digits or 1)
        derived = f"{value} against {title} ({row['model']}, s = {row['factor']:g})"
        if self.printed is None:
            kind = "" if row["value"] > 0 else OMISSION
            why = (
                f"{title} has {row['score_other']:.2f} there, {rope.METHODS[self.of].title} "
                f"{row['score']:.2f}."
            )
        else:
            same = (rows["value"] - self.printed).abs() <= 0.5 * 10**-self._digits + 1e-9
            named = " and ".join(rope.METHODS[method].title for method in rows.index[same])
            kind = "" if same[decides] else OMISSION if named else SLIP
            why = (
                f"It is the number against {named}."
                if named
                else "The table gives it against no method."
            )
        printed = _NO_NUMBER if self.printed is None else self.printed_as
        return Check(self.where, f"{self.what} ({self.metric})", printed, derived, kind, why)


def _scores(table: str, metric: str) -> pd.DataFrame:
    """Model, method, factor and score of every run, with a misprinted average put right."""
    if table == "disturbance":
        frame = published.table(table).rename(columns={"disturbance_e3": "score"})
        return frame[["method", "factor", "score"]].assign(model=_GEOMETRY)
    frame = averaged(table, metric)
    right = (frame["score"] - frame["derived"]).abs() <= ROUNDING
    return frame.assign(score=frame["score"].where(right, frame["derived"]))[
        ["model", "method", "factor", "score"]
    ]


_LESS = {"table": "disturbance", "metric": "mean over pairs", "unit": "% less"}
_LONG = ("longbench_e", "Avg.")
_BEYOND = ("longbench_e", "Avg.>4k")
_SHORT = ("open_llm", "Avg.")
_BEFORE = {"against": (rope.ORIGINAL,)}
SENTENCES = (
    Sentence(
        "abstract",
        "less disturbance than the strong baselines at 8k, by up to",
        **_LESS,
        printed=72,
        factors=(2,),
    ),
    Sentence(
        "abstract",
        "less disturbance than the strong baselines at 16k, by up to",
        **_LESS,
        printed=32,
        factors=(4,),
    ),
    Sentence(
        "abstract",
        "LongBench-E above existing methods, by up to",
        *_LONG,
        printed=4.33,
        unit="% more",
    ),
    Sentence(
        "abstract", "Open LLM after extension, from", *_SHORT, **_BEFORE, printed=-0.12, least=True
    ),
    Sentence("abstract", "Open LLM after extension, to", *_SHORT, **_BEFORE, printed=0.22),
    Sentence("introduction", "LongBench-E above PI and YaRN", *_LONG, _EXISTING[:2]),
    Sentence("introduction", "LongBench-E above PI and YaRN", *_BEYOND, _EXISTING[:2]),
    Sentence("introduction", "a new state of the art on LongBench-E", *_LONG, _ALL, factors=(4,)),
    Sentence("introduction", "a new state of the art on LongBench-E", *_BEYOND, _ALL, factors=(4,)),
    Sentence("introduction, section 4", "LongBench-E above existing methods", *_LONG),
    Sentence("introduction, section 4", "LongBench-E above existing methods", *_BEYOND),
    Sentence("introduction, section 4", "RULER above existing methods", "ruler"),
    Sentence("introduction, section 4", "Open LLM above existing methods", *_SHORT),
    Sentence("section 4.2", "LongBench-E best at each extension", *_LONG, _ALL),
    Sentence("section 4.2", "LongBench-E best at each extension", *_BEYOND, _ALL),
    Sentence(
        "section 4.2",
        "LongBench-E above PI for 7B at 16k, by up to",
        *_LONG,
        (rope.TIME_REFERENCE,),
        4.33,
        "% more",
        models=(_SEVEN,),
        factors=(4,),
    ),
    Sentence(
        "section 4.3",
        "Open LLM of 7B after extension to 8k",
        *_SHORT,
        **_BEFORE,
        printed=-0.12,
        models=(_SEVEN,),
        factors=(2,),
    ),
    Sentence(
        "section 4.3",
        "Open LLM of YaRN, 7B, after extension to 16k",
        *_SHORT,
        **_BEFORE,
        printed=-0.53,
        of=rope.BASELINE,
        models=(_SEVEN,),
        factors=(4,),
    ),
    Sentence(
        "section 4.3",
        "Open LLM of YaRN above PI there",
        *_SHORT,
        (rope.TIME_REFERENCE,),
        of=rope.BASELINE,
        models=(_SEVEN,),
        factors=(4,),
    ),
    Sentence(
        "section 4.3", "Open LLM of 13B above the original", *_SHORT, **_BEFORE, models=(_THIRTEEN,)
    ),
    Sentence("sections 5.1, A.2", "the least disturbance", **_LESS, against=_ALL),
    Sentence("section B.2", "RULER best", "ruler", "Avg.", _ALL),
)


def checks() -> list[Check]:
    """Every check."""
    compared_methods = (sentence.check() for sentence in SENTENCES)
    return [*averages(), *bold_entries(), *repeated_rows(), *compared_methods, *other_sentences()]


def other_sentences() -> Iterator[Check]:
    """What else the text says of the tables."""

    def true(
        where: str, what: str, holds: bool, derived: str, kind: str = SLIP, why: str = ""
    ) -> Check:
        return Check(where, what, _NO_NUMBER, derived, "" if holds else kind, why)

    what = "table that the drops of 0.12 and 0.53 are read from"
    why = "The text refers to the wrong table."
    yield Check("section 4.3", what, "LongBench-E", "Open LLM", SLIP, why)
    for model, other in ((_SEVEN, rope.TIME_REFERENCE), (_THIRTEEN, rope.BASELINE)):
        near, far = (_rows("longbench_e", model=model, metric=m) for m in ("4-8k", "8k+"))
        near, far = (rows[rows["factor"] >= 4].set_index("method")["score"] for rows in (near, far))
        change = (far - near).round(2)
        less = [
            rope.METHODS[method].title
            for method in change.index
            if change[method] > change[rope.PROPOSED]
        ]
        what = (
            f"{model}, 16k: DPRoPE keeps its level from 4-8k to 8k+ (here: loses less than "
            f"half as much), "
            f"{rope.METHODS[other].title} does not"
        )
        why = (
            f"The paper does not say what “maintain” means; {' and '.join(less)} fall less than "
            f"DPRoPE."
        )
        holds = change[rope.PROPOSED] > change[other] / 2
        yield true("section 4.2", what, holds, _list(change.to_dict()), JUDGEMENT, why)

    n_hat = _rows("n_hat_longbench_e", metric="Avg.").set_index("n_hat")["score"]
    spread = n_hat.loc[[80, 88, 96]].max() - n_hat.loc[[80, 88, 96]].min()
    what = "n̂ = 80, 88, 96 differ little (here: by less than 0.1)"
    yield true("section 5.2", what, spread < 0.1, f"range {spread:.2f}", JUDGEMENT)
    falling = n_hat.loc[[56, 64, 72, 80]]
    listed = ", ".join(f"{score:.2f}" for score in falling)
    yield true(
        "section 5.2",
        "the average falls as n̂ falls below 80",
        falling.is_monotonic_increasing,
        listed,
    )
    intervals = _rows("intervals_longbench_e", metric="Avg.").set_index("intervals")["score"]
    fine = intervals.loc[[90, 180, 360]]
    spread = fine.max() - fine.min()
    loss = fine.min() - intervals.loc[720]
    what = "b = 720 falls (here: by more than b = 90 … 360 differ)"
    yield true(
        "section 5.3", what, loss > spread, f"falls {loss:.2f}, range {spread:.2f}", JUDGEMENT
    )
    means = published.table("intervals_open_llm").groupby("intervals")["score"].mean()
    spread = float(means.max() - means.min())
    what = "b does not influence Open LLM (here: four tasks' mean by less than 0.22)"
    yield true("section 5.3", what, spread < 0.22, f"range {spread:.2f}", JUDGEMENT)

    ruler = published.table("ruler").pivot(
        index=["model", "method"], columns="metric", values="score"
    )
    for model, scores in ruler.groupby("model", sort=False):
        scores = scores.droplevel("model")
        before = scores.loc[rope.ORIGINAL]
        after = scores.drop(rope.ORIGINAL)
        holds = after["4k"].max() < before["4k"] and all(
            after[m].min() > before[m] for m in ("8k", "16k")
        )
        what = f"RULER: every extended {model} loses at 4k and gains at 8k and 16k"
        yield true("section B.2", what, holds, f"at 4k: {_list(scores['4k'].to_dict())}")
    for model, rows in _rows("time_cost", phase="test").groupby("model", sort=False):
        times = rows.set_index("method")["relative_to_pi"].to_dict()
        what = f"DPRoPE takes no more time than PI and YaRN, CLEX more, {model}"
        holds = (
            times[rope.PROPOSED]
            <= min(times[rope.TIME_REFERENCE], times[rope.BASELINE])
            < times[_CLEX]
        )
        yield true("sections 3.2, B.2", what, holds, _list(times))
    for row in published.table("perplexity").drop_duplicates("model").itertuples():
        label = row.printed_label
        size = row.model.removeprefix("LLaMA2-")
        kind = "" if label == size else SLIP
        why = "The table has two blocks of 7B; the second is of 13B."
        yield Check(TITLES["perplexity"], f"label of the {row.model} rows", label, size, kind, why)


def _list(values: dict[str, float]) -> str:
    return ", ".join(
        f"{rope.METHODS[method].title} {number(value, 2)}" for method, value in values.items()
    )


def _rows(table: str, **values: str | int) -> pd.DataFrame:
    """A table's rows with these values, by column."""
    frame = published.table(table)
    for column, value in values.items():
        frame = frame[frame[column] == value]
    return frame


def kinds(checked: list[Check]) -> dict[str, int]:
    """How many there are of each kind of what does not agree."""
    counted = Counter(check.kind for check in checked)
    return {kind: counted[kind] for kind in KINDS if counted[kind]}


def build(checked: list[Check]) -> Table:
    """What does not agree, by kind."""
    wrong = [check for kind in KINDS for check in checked if check.kind == kind]
    caption = (
        f"The paper checked against its own tables: {len(checked)} averages, bold entries, "
        f"repeated rows and "
        f"sentences, of which these {len(wrong)} do not agree."
    )
    rows = []
    for check in wrong:
        printed = ": ".join(x for x in (check.where, check.what, check.printed) if x != _NO_NUMBER)
        rows.append(tuple(map(Cell, (check.kind, printed, check.derived, check.why))))
    header = ("Kind", "What is printed", "By the tables", "Why")
    return Table("audit", caption, (Block("", header, tuple(rows)),), words=True)


def compared() -> Table:
    """What each sentence that compares methods gives against each method of its table."""
    rows = []
    for sentence in SENTENCES:
        values = sentence.values()["value"]
        check = sentence.check()
        texts = {
            method: number(value, 2, sign=sentence.unit == "points")
            for method, value in values.items()
        }
        cells = [
            Cell(texts.get(each, NONE), bold=each in texts and each in sentence.against)
            for each in _ALL
        ]
        first = Cell(f"{check.where}: {check.what}")
        rows.append((first, Cell(sentence.printed_as), *cells, Cell(check.kind or "agrees")))
    header = (
        "Sentence",
        "Printed",
        *(sentence_case(rope.METHODS[method].title) for method in _ALL),
        "Outcome",
    )
    caption = (
        f"Sentences of the paper that compare methods. {RULE} In bold: the methods that the "
        f"sentence covers."
    )
    return Table("audit_sentences", caption, (Block("", header, tuple(rows)),))


def main() -> None:
    parser = command_line.parser(__doc__, prog="python -m report.audit")
    parser.parse_args()
    checked = checks()
    table = build(checked)
    print(markdown.render(table, escape=False))
    print(os.path.relpath(files.write(OUTPUT, latex.render(table))))


if __name__ == "__main__":
    command_line.run(main)
