"""What the benchmark tables share: the paper's rows, and below them, never mixed, what was measured.

A table is a list of blocks, each with its own header line, so that evaluation lengths may differ between the paper's
models and ours. Rows come from records (one per method, factor and training seed) and from results/paper/.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
from scipy import stats

from experiments import records, scales
from tables import common

Scores = dict[str, dict | None]  # metric → {"mean", "low", "high", "n"}; None where there is nothing to compare
STATES = ((False, "without training"), (True, "fine-tuned"))
INTERVALS = r"with 95\,\% intervals for samples (bootstrap) and, where there are several, training seeds (Student's)"
_ORDER = list(common.METHOD_NAMES)
# What tells apart the rows of one table; all else a record states must agree between them.
_VARYING = {"method", "factor", "options", "model", "training", "identity", "scores", "seconds", "environment"}
_VARYING |= {"same_selection_as", "buckets", "ranges", "blocks", "by_document", "by_window", "by_position"}


@dataclass(frozen=True)
class Row:
    """One line: how it is called, and its score under each metric."""

    name: str
    scores: Scores


@dataclass(frozen=True)
class Block:
    """Rows under a title and a header of their own."""

    title: str
    rows: list[Row]


def stacked(
    name: str,
    blocks: list[Block],
    caption: str,
    digits: int = 1,
    best: Callable[[list[float]], float] | None = max,
    row_title: str = "Method",
) -> str:
    """A table of blocks as LaTeX; where nothing was measured, it says so.

    Args:
        name: tab:<name> is its label.
        blocks: each with a header line of its own.
        caption: LaTeX.
        digits: decimals of measured scores; published ones are printed with two.
        best: which mean of a column is marked bold; None for none.
        row_title: what names the rows.
    """
    if all("published" in block.title for block in blocks):
        blocks.append(Block("No record at this scale.", []))
    columns = max(len(_metrics(block)) for block in blocks) + 1
    lines = []
    for block in blocks:
        lines += [
            rf"\multicolumn{{{columns}}}{{l}}{{\emph{{{block.title}}}}} \\",
            *_lines(block, columns, digits, best, row_title),
        ]
        lines.append(r"\midrule" if block is not blocks[-1] else r"\bottomrule")
    return "\n".join(
        [
            r"\begin{table*}",
            r"\centering",
            common.SIZE,
            rf"\caption{{{caption}}}",
            rf"\label{{tab:{name}}}",
            r"\smallskip",
            rf"\begin{{tabular}}{{l{'r' * (columns - 1)}}}",
            r"\toprule",
            *lines,
            r"\end{tabular}",
            r"\end{table*}",
            "",
        ]
    )


def _lines(block: Block, columns: int, digits: int, best: Callable | None, row_title: str) -> Iterator[str]:
    if not block.rows:
        return
    metrics = _metrics(block)
    empty = [""] * (columns - 1 - len(metrics))
    yield " & ".join([row_title, *map(_escape, metrics), *empty]) + r" \\"
    yield r"\cmidrule(r){1-" + str(len(metrics) + 1) + "}"
    means = {m: [row.scores[m]["mean"] for row in block.rows if row.scores.get(m)] for m in metrics}
    chosen = {metric: best(values) if best and values else None for metric, values in means.items()}
    for row in block.rows:
        cells = []
        for metric in metrics:
            score = row.scores.get(metric)
            text = _cell(score, digits) if score else "--" if metric in row.scores else "no record"
            bold = score is not None and len(block.rows) > 1 and score["mean"] == chosen[metric]
            cells.append(common.bold(text) if bold else text)
        yield " & ".join([row.name, *cells, *empty]) + r" \\"


def _cell(score: dict, digits: int) -> str:
    return f"{score['mean']:.2f}" if "low" not in score else common.interval(score, digits)


def published(name: str) -> Iterator[Block]:
    """The paper's rows, a block for each of its models."""
    frame = common.paper(name)
    if "model" not in frame:  # an ablation: one model, rows named by the option's value
        by_value = frame.groupby(frame.columns[0], sort=False)
        rows = [
            Row(str(value), {m: {"mean": v} for m, v in zip(own["metric"], own["score"])}) for value, own in by_value
        ]
        yield Block("LLaMA2-13B, published, $s=2$", rows)
        return
    value = "score" if "score" in frame else "perplexity" if "perplexity" in frame else "relative_to_pi"
    metric = {"score": "metric", "perplexity": "context_length", "relative_to_pi": "phase"}[value]
    for model, own in frame.groupby("model", sort=False):
        keys = ["method", "factor"] if "factor" in own else ["method"]
        rows = []
        for key, group in own.groupby(keys, sort=False, dropna=False):
            method, *factor = key
            rows.append(Row(_name(method, *factor), {m: {"mean": v} for m, v in zip(group[metric], group[value])}))
        yield Block(f"{model}, published", rows)


def measured(
    results: Path,
    scale: str,
    experiment: str,
    scores: Callable[[dict], Scores],
    extent: Callable[[dict], str] = lambda record: "",
    of: Callable[[dict], bool] = lambda record: True,
) -> Iterator[Block]:
    """The records' rows for the scale's comparison: without training, then fine-tuned (means over seeds).

    Args:
        extent: what of the benchmark a record holds, for the block's title.
        of: which records to show.
    """
    preset = scales.get(scale)
    for trained, state in STATES:
        rows = []
        for group in comparable(results, scale, experiment, trained, of):
            first = group[0]
            if first["method"] == "clex" or (first["method"], first["options"]) in preset.comparison(first["factor"]):
                name = _name(common.method_name(first), first["factor"])
                rows.append(Row(name, over_seeds([scores(record) for record in group])))
        if rows:
            yield Block(f"{preset.title}, {_what(first)}measured {state}{extent(first)}", _one_original(rows))


def _one_original(rows: list[Row]) -> list[Row]:
    """The unextended model does not depend on s, unless its samples do: one line where it scores the same at all."""
    original, others = [], []
    for row in rows:
        (original if row.name.startswith(common.METHOD_NAMES["original"]) else others).append(row)
    if any(row.scores != original[0].scores for row in original):
        return rows
    return [Row(common.METHOD_NAMES["original"], row.scores) for row in original[:1]] + others


def ablated(
    results: Path, scale: str, experiment: str, scores: Callable[[dict], Scores], option: str, default: object = None
) -> Iterator[Block]:
    """DPRoPE's records by the value of one option, all others equal; the family with most values, two at least.

    Args:
        default: the option's value where a record does not state it.
    """
    for trained, state in STATES:
        families: dict[str, dict] = {}
        for group in comparable(results, scale, experiment, trained):
            others = {key: value for key, value in group[0]["options"].items() if key != option}
            value = group[0]["options"].get(option, default)
            if group[0]["method"] == "dprope" and value is not None:
                families.setdefault(records.identity(options=others, factor=group[0]["factor"]), {})[value] = group
        family = max(families.values(), key=len, default={})
        if len(family) > 1:
            # One value may have been trained with more seeds than the rest, for another table.
            seeds = set.intersection(*({seed(record) for record in group} for group in family.values()))
            rows = [
                Row(str(value), over_seeds([scores(r) for r in family[value] if not seeds or seed(r) in seeds]))
                for value in sorted(family)
            ]
            first = next(iter(family.values()))[0]
            title = f"{scales.get(scale).title}, {_what(first)}measured {state}, $s={first['factor']:g}$"
            yield Block(title, rows)


def comparable(
    results: Path, scale: str, experiment: str, trained: bool, of: Callable[[dict], bool] = lambda record: True
) -> list[list[dict]]:
    """Records of the same samples and settings, the seeds of one method together; the setting with most records."""
    settings: dict[str, list[dict]] = {}
    for file in sorted((Path(results) / scale / experiment).glob("*.json")):
        record = json.loads(file.read_text())
        if record["method"] and ("training" in record) == trained and of(record):
            shared = {key: value for key, value in record.items() if key not in _VARYING}
            settings.setdefault(records.identity(**shared), []).append(record)
    if not settings:
        return []
    methods: dict[str, list[dict]] = {}
    for record in max(settings.values(), key=len):
        key = records.run_name(record["method"], record["factor"], record["options"])
        methods.setdefault(key, []).append(record)
    return sorted(
        methods.values(),
        key=lambda group: (
            _ORDER.index(group[0]["method"]),
            group[0]["factor"],
            -(group[0]["options"].get("n_hat") or 1e9),
            group[0]["options"].get("intervals", 0),
        ),
    )


def over_seeds(scores: list[Scores]) -> Scores:
    """One run's scores as they are; of several seeds, their mean with a 95 % interval for seeds and samples together.

    Student's interval over the seeds alone would be a point where all seeds answer the same few samples alike. The two
    errors are independent, so the half-widths add as squares: Student's, and the seeds' mean one over samples. No
    score here is negative, and no interval's end either.
    """
    if len(scores) == 1:
        return scores[0]
    found = {}
    for metric in scores[0]:
        runs = [score[metric] for score in scores]
        mean = float(np.mean([run["mean"] for run in runs]))
        seeds = float(stats.t.ppf(0.975, len(runs) - 1) * stats.sem([run["mean"] for run in runs]))
        below, above = (float(np.mean([abs(run[end] - run["mean"]) for run in runs])) for end in ("low", "high"))
        found[metric] = {"mean": mean, "n": len(runs)}
        found[metric] |= {"low": max(mean - np.hypot(seeds, below), 0.0), "high": mean + np.hypot(seeds, above)}
    return found


def seed(record: dict) -> int | None:
    """The training seed; None without training."""
    return record.get("training", {}).get("seed")


def _what(record: dict) -> str:
    """The name of generated samples, where the benchmark's own were not used."""
    return f"{record['benchmark']}, " if "benchmark" in record else ""


def tokens(length: int) -> str:
    """A length in tokens as tables print it: 512, 1k, 12k."""
    return str(length) if length % 1024 else f"{length // 1024}k"


def _name(method: str, factor: float | None = None) -> str:
    name = common.METHOD_NAMES.get(method, method)
    if factor is None or pd.isna(factor):
        return name
    relation = r"\le " if method == "clex" else "="  # CLEX takes its scale from the input's length
    return f"{name} ($s{relation}{factor:g}$)"


def _metrics(block: Block) -> list[str]:
    return list(dict.fromkeys(metric for row in block.rows for metric in row.scores))


def _escape(text: str) -> str:
    return text.replace("%", r"\%").replace(">", "$>$").replace("_", r"\_")
