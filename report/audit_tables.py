"""Check the paper's tables: re-add every average, compare every bold entry with its column, and
rows printed twice.

A difference within what rounding to two decimals can produce counts as agreement. What does not
agree is of one of the KINDS.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import pandas as pd

from analysis import published
from core import rope

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
