"""What the templates of pages can say of a model: tables, figures, and numbers with their intervals, from its records.

A row is named as tables print it, "DPRoPE (n̂ = 28)"; one that is not there is an error, and so is a sentence whose
condition no longer holds: a page never says what its records do not.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np

from analysis import disturbance, metrics, perplexity_windows, published, record_types, time_taken
from analysis.beyond import learned, loss_by_position, serving, short_text, whole_texts
from analysis.comparison import Comparison, Row, compared, gap, in_comparison
from analysis.results import NotMeasured, Results, root
from analysis.scores import Score, Scores, SignTest, sign_test, stacked
from analysis.settings import Setting, tokens
from core import rope
from core.errors import InputError
from core.geometry import RopeGeometry
from experiments.kit.records import RESULTS
from figures.kit import command as figures
from tables.kit import benchmark_table, command, markdown
from tables.kit.table import Table, interval, number

RIVAL = rope.METHODS[rope.RIVAL].title


class View:
    """A model's records.

    Args:
        measured: the records.
        page: the folder of the page, which its links start from.
    """

    def __init__(self, measured: Results, page: Path):
        self.results, self.page, self.model = measured, page, measured.model
        self._shown: set[str] = set()

    # Tables and figures

    def has(self, name: str) -> bool:
        """Whether there is such a table of the model."""
        return _built(self.results, name) is not None

    def table(self, name: str, caption: bool = True) -> str:
        """A table of what was measured; the paper's own rows of it are left to tables/.

        Raises:
            NotMeasured: no record of what it shows.
        """
        made = _built(self.results, name)
        if made is None:
            raise NotMeasured(f"no table {name} of {self.model.name}: there is no record of it.")
        self._shown.add(name)
        return markdown.render(made, caption)

    def figure(self, name: str, text: str) -> str:
        """The image and how to read it; empty where it was not rendered."""
        file = root(self.results.folder) / "figures" / self.model.name / f"{figures.place(name)}.png"
        caption = markdown.text(" ".join(figures.caption(name)))
        return f"![{text}]({os.path.relpath(file, self.page)})\n\n*{caption}*" if file.is_file() else ""

    def part(self, heading: str, tables: list[str], figures: dict[str, str] | None = None) -> str:
        """A section of those tables and figures that there are; empty where there is none."""
        shown = [self.table(name) for name in tables if self.has(name)]
        shown += [link for name, text in (figures or {}).items() if (link := self.figure(name, text))]
        return "\n\n".join([f"## {heading}", *shown]) if shown else ""

    def others(self) -> list[str]:
        """The tables that the page has not shown."""
        return [name for name in named(self.results) if name not in self._shown and self.has(name)]

    # Numbers

    def row(self, experiment: str, name: str, trained: bool = False, factor: float | None = None) -> Row:
        """A row by the name that tables print, at the least factor that has it if none is given.

        Raises:
            InputError: there is none.
        """
        return _find(self._rows(experiment, trained, factor), experiment, name, factor)

    def score(
        self, experiment: str, name: str, metric: str, trained: bool = False, factor: float | None = None
    ) -> Score:
        """One metric of a row, over seeds."""
        return self.row(experiment, name, trained, factor).scores(getattr(metrics, experiment))[metric]

    def gap(
        self, experiment: str, ours: str, other: str, metric: str, trained: bool = False, factor: float | None = None
    ) -> Score:
        """The difference of two rows, paired by seed where there are several."""
        pair = [self.row(experiment, name, trained, factor) for name in (ours, other)]
        return gap(*pair, getattr(metrics, experiment), metric)

    @functools.cache  # noqa: B019 (a view lives as long as its page is made)
    def loss(self, name: str, than: str = RIVAL, trained: bool = False, factor: float | None = None) -> Score:
        """On the beginnings of books beyond L, a row's loss minus another's, in nats per token, paired by block."""
        return loss_by_position.gap(*(self.row("loss_by_position", each, trained, factor) for each in (name, than)))

    @functools.cache  # noqa: B019 (a view lives as long as its page is made)
    def books(
        self, name: str, than: str = RIVAL, trained: bool = False, start: int = 0, end: int | None = None
    ) -> Score:
        """Over whole books, a row's loss minus another's at the positions from start to end, paired by window."""
        rows = whole_texts.runs(self.results, trained)
        gaps = perplexity_windows.differences(*(_find(rows, "whole texts", each, None) for each in (name, than)))
        bucket = rows.first["bucket"]
        return perplexity_windows.average(gaps[:, start // bucket : end and end // bucket])

    def more_context(self, trained: bool = False) -> dict[str, Score]:
        """By row, what a stride's tokens more before them change of the loss."""
        rows = whole_texts.runs(self.results, trained).rows
        average = perplexity_windows.average
        return {row.setting.name: average(whole_texts.more_context(row.first)[:, 1:]) for row in rows}

    def found(self, name: str, length: int | None = None, trained: bool = False, factor: float | None = None) -> str:
        """Passkeys found of those asked, of all seeds; at one length or at all."""
        runs = self.row("passkey", name, trained, factor).runs
        rows = [row for run in runs for row in run["scores"]["by_length"] if length in (None, row["length"])]
        return f"{round(sum(row['mean'] * row['n'] for row in rows))} of {sum(row['n'] for row in rows)}"

    def keys(self, name: str, trained: bool = False) -> dict[tuple[int, float], float]:
        """Passkeys found, 0…1, by length in tokens and depth."""
        rows = self.row("passkey", name, trained).first["scores"]["by_depth"]
        return {(row["length"], row["depth"]): row["mean"] for row in rows}

    def asked(self) -> int:
        """How many prompts RULER has, of all lengths and tasks."""
        return len(_prompts(self.results.require("ruler")[0]))

    def prompts(self, name: str, than: str = RIVAL, trained: bool = False) -> SignTest:
        """RULER's prompts that a row answers better and worse than another."""
        return sign_test(*(_prompts(self.row("ruler", each, trained).first) for each in (name, than)))

    def short_text(self, trained: bool = False, factor: float | None = None) -> dict[str, Scores]:
        """By row and metric, what extending changes on texts that fit in L."""
        factor = factor or min(loss_by_position.measured_factors(self.results))
        found = short_text.differences(self.results, factor, trained)
        return {setting.name: scores for setting, scores in found.items()}

    def names(self, experiment: str, trained: bool = False, factor: float | None = None) -> list[str]:
        """Of an experiment's rows."""
        return [row.setting.name for row in self._rows(experiment, trained, factor).rows]

    def ranked(self, trained: bool = False, factor: float | None = None) -> list[tuple[str, Score]]:
        """The comparison's methods with their loss beyond L minus the rival's, least first; learned factors apart."""
        rows = self._rows("loss_by_position", trained, factor).only(in_comparison(self.model)).rows
        names = [row.setting.name for row in rows if not learned.start_of(row.setting)]
        found = [(name, self.loss(name, trained=trained, factor=factor)) for name in names]
        return sorted(found, key=lambda entry: entry[1].mean)

    def to_learned(self, name: str, factor: float) -> Score:
        """A method's loss beyond L without training minus that of the best learned factors, paired by block."""
        found = learned.scored(self.results, factor)
        if not (found and found.bound):
            raise InputError(f"no learned factors of s = {factor:g} were scored; see table_learned.")
        return loss_by_position.gap(found.rows[name], found.rows[found.bound])

    def pairs(self, name: str, factor: float | None = None) -> set[int]:
        """Those that a row without training interpolates."""
        return set(_interpolated(self.model.geometry, self.row("loss_by_position", name, factor=factor).setting))

    def disturbance(self, name: str, factor: float | None = None) -> float:
        """The averaged disturbance of a row without training, in 10⁻³ nat."""
        return 1e3 * disturbance.averaged(self.results, self.row("loss_by_position", name, factor=factor).setting)

    def published(self, precision: str, convention: str) -> list[tuple[str, float, float, float]]:
        """The disturbances that the paper prints: method, s, the printed one and the recomputed, in 10⁻³ nat."""
        numbers, found = published.disturbance(), []
        for run in self.results.require("disturbance"):
            for row in run["scores"]:
                printed = numbers.get((row["method"], float(run["factor"])))
                if (row["precision"], row["convention"]) == (precision, convention) and printed and not row["options"]:
                    title = rope.METHODS[row["method"]].title
                    found.append((title, float(run["factor"]), printed, 1e3 * row["average"]))
        return found

    def deviations(self, precision: str, convention: str) -> list[float]:
        """How far the disturbances that the paper prints are from the recomputed ones, each as a share of its own."""
        return [abs(ours / printed - 1) for _, _, printed, ours in self.published(precision, convention)]

    def record(self, experiment: str, file: str | None = None) -> dict:
        """The only record of an experiment, or that of a file's name."""
        found = [run for run in self.results.require(experiment) if file in (None, run["file"])]
        if len(found) != 1:
            raise InputError(f"{len(found)} records of {experiment}/{file or '*'} at {self.model.name}, not one.")
        return found[0]

    def order(self, convention: str) -> Score:
        """Spearman's ρ of disturbance and loss beyond L over selections of pairs."""
        return Score.of(self.record("selections")["spearman"][convention])

    def repeated(self, folder: str) -> dict[bool, float]:
        """How far fine-tunes that were run again part in their losses, the most and as a share: {learned: share}."""
        found: dict[bool, float] = {}
        for again, first in self._repeated(folder, "finetune"):
            learned = rope.get(again["method"]).start is not None
            losses = stacked([again["losses"], first["losses"]])
            change = float(np.abs(losses[0] / losses[1] - 1).max())
            found[learned] = max(change, found.get(learned, 0.0))
        return found

    def remeasured(self, folder: str) -> float:
        """How far losses by position that were measured again part, the most over all blocks, in nats per token."""
        pairs = self._repeated(folder, "loss_by_position")
        return max(
            float(np.abs(loss_by_position.blocks(again) - loss_by_position.blocks(first)).max())
            for again, first in pairs
        )

    def wavelength(self, pair: int) -> float:
        """Of a pair in pre-training, in tokens."""
        return float(self.model.geometry.wavelength[pair])

    def relearned(self, folder: str) -> float:
        """How far factors that were learned again part, the most over pairs whose wavelength is below L, as a share."""
        seen = self.model.geometry.wavelength < self.model.geometry.context_length
        ratios = (np.divide(again["factors"], first["factors"]) for again, first in self._repeated(folder, "learned"))
        return max(float(np.abs(ratio[seen] - 1).max()) for ratio in ratios)

    def _repeated(self, folder: str, experiment: str) -> Iterator[tuple[dict, dict]]:
        """The records of an experiment that a subfolder repeats, each with the first one."""
        for file in sorted((self.results.folder / self.model.name / folder / experiment).glob("*.json")):
            yield record_types.read(file, experiment), self.record(experiment, file.stem)

    def took(self, *experiments: str) -> str:
        """What the records of some experiments, or of all, took to measure, to be read."""
        return time_taken.took(self.results, *(experiments or self.results.experiments()))

    def costs(self) -> list[tuple[str, int, str]]:
        """By experiment, how many records there are of it and what they took to measure."""
        measured = self.results.experiments()
        return [(name, len(self.results.records(name)), self.took(name)) for name in measured]

    def served_right(self) -> set[str]:
        """The engines that compute every export that was measured or read in their source."""
        lines = serving.matrix(serving.served(self.results))
        return {line.engine for line in lines if line.frequencies == line.attention_factor == serving.RIGHT}

    @functools.cache  # noqa: B019 (a view lives as long as its page is made)
    def _rows(self, experiment: str, trained: bool, factor: float | None) -> Comparison:
        if experiment != "loss_by_position":
            return compared(self.results, experiment, trained)
        untrained = loss_by_position.untrained(
            self.results, factor or min(loss_by_position.measured_factors(self.results))
        )
        return loss_by_position.fine_tuned(self.results, untrained) if trained else untrained


def environment(view: View) -> dict[str, object]:
    """The names that a model's template has, besides the filters."""
    public = {name: getattr(view, name) for name in dir(view) if name[0] != "_"}
    geometry = view.model.geometry
    return public | {"L": geometry.context_length, "d": geometry.head_dim, "base": geometry.base}


def holds(condition: bool, sentence: str) -> str:
    """Nothing, where the condition is true.

    Raises:
        InputError: the sentence that stands behind it is not what the records say.
    """
    if not condition:
        raise InputError(f"the records no longer say that {sentence}; change the page's template.")
    return ""


def shown(score: Score, digits: int = 2, sign: bool = False) -> str:
    """A number with its interval."""
    return f"{number(score.mean, digits, sign)} {interval(score, digits)}".strip()


def named(measured: Results) -> list[str]:
    """The tables that there may be of a model: those of tables/, and of an experiment that has none, its scores."""
    known = command.names()
    plain = (name for name in measured.experiments() if name not in known)
    return known + [name for name in plain if any(map(metrics.generic, measured.records(name)))]


@functools.lru_cache(maxsize=512)
def _build(folder: Path, model: str, name: str) -> Table | None:
    try:
        made = command.build(name, Results.of(model, folder))
    except NotMeasured:
        return None
    return replace(made, blocks=tuple(block for block in made.blocks if block.title not in _published(name)))


@functools.cache
def _published(name: str) -> set[str]:
    """The titles of the paper's blocks, of a table that has some of its own beside the measured ones."""
    whole = (RESULTS / "paper" / f"{name}.csv").is_file() and "model" in published.table(name)
    return {block.title for block in benchmark_table.published_blocks(name)} if whole else set()


def _built(measured: Results, name: str) -> Table | None:
    return _build(measured.folder, measured.model.name, name)


@functools.cache
def _interpolated(geometry: RopeGeometry, setting: Setting) -> list[int]:
    options = {key: value for key, value in setting.options if key != "attention_factor"}  # moves no angle
    scaling = rope.scale(geometry, setting.method, setting.factor, **options)
    return np.flatnonzero(scaling.interpolated).tolist()


def _find(rows: Comparison, experiment: str, name: str, factor: float | None) -> Row:
    for row in rows.rows:
        if row.setting.name == name and factor in (None, row.setting.factor):
            return row
    known = ", ".join(dict.fromkeys(row.setting.name for row in rows.rows)) or "none"
    raise InputError(f"no row {name!r} of {experiment} (there is {known}); change the page's template.")


def _prompts(run: dict) -> np.ndarray:
    tasks = run["scores"]["tasks"].values()
    return np.array([score["mean"] for scores in tasks for score in scores.values()])


FILTERS = {"shown": shown, "number": number, "tokens": tokens, "text": markdown.text, "code": "`{}`".format}
