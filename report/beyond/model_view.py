"""What templates beyond the paper can say of a model besides: losses, learned factors, repeats, engines."""

from __future__ import annotations

import functools
from collections.abc import Iterator

import numpy as np

from analysis import disturbance, record_types
from analysis.beyond import learned, loss_by_position, serving, short_text, whole_texts
from analysis.comparison import Comparison, in_comparison
from analysis.scores import Score, Scores, stacked
from analysis.settings import Setting
from core import rope
from core.errors import InputError
from core.geometry import RopeGeometry
from experiments.kit.records import BEYOND, RESULTS, ROOT
from report import model_view
from report.model_view import BASELINE, find

# The repository's own pages beyond the paper, by their templates: where each belongs.
OVERALL = {
    "experiments.md": ROOT / "experiments" / BEYOND / "README.md",
    "serving.md": RESULTS / BEYOND / "serving.md",
}


class View(model_view.View):
    """A model's records; a row of loss_by_position is of the least factor if none is given."""

    beyond = True

    @functools.cache  # noqa: B019 (a view lives as long as its page is made)
    def loss(self, name: str, than: str = BASELINE, trained: bool = False, factor: float | None = None) -> Score:
        """On the beginnings of books beyond L, a row's loss minus another's, in nats per token, paired by text."""
        return loss_by_position.gap(*(self.row("loss_by_position", each, trained, factor) for each in (name, than)))

    def on_sample(self, name: str, than: str = BASELINE) -> Score:
        """:meth:`loss` without training at the least factor, on the texts that are enough for a sample."""
        rows = loss_by_position.sampled(self.results, min(loss_by_position.measured_factors(self.results)))
        return loss_by_position.gap(*(find(rows, "the sample of texts", each, None) for each in (name, than)))

    @functools.cache  # noqa: B019 (a view lives as long as its page is made)
    def books(
        self, name: str, than: str = BASELINE, trained: bool = False, start: int = 0, end: int | None = None
    ) -> Score:
        """Over whole books, a row's loss minus another's at the positions from start to end, paired by text."""
        rows = whole_texts.runs(self.results, trained)
        gaps = whole_texts.differences(*(find(rows, "whole texts", each, None) for each in (name, than)))
        bucket = rows.first["bucket"]
        return whole_texts.average(gaps, slice(start // bucket, end and end // bucket))

    def families(self) -> dict[str, list[str]]:
        """What came out for transformers' model types."""
        return serving.families()

    def servers(self) -> list[dict[str, str]]:
        """The rows of servers whose answers were compared with those of this process."""
        return serving.servers()

    def more_context(self, trained: bool = False) -> dict[str, Score]:
        """By row, what a stride's tokens more before them change of the loss."""
        rows = whole_texts.runs(self.results, trained).rows
        return {row.setting.name: change for row in rows if (change := whole_texts.more_context(row))}

    def short_text(self, trained: bool = False, factor: float | None = None) -> dict[str, Scores]:
        """By row and metric, what extending changes on texts that fit in L."""
        factor = factor or min(loss_by_position.measured_factors(self.results))
        changes = short_text.differences(self.results, factor, trained)
        return {setting.name: scores for setting, scores in changes.items()}

    def ranked(self, trained: bool = False, factor: float | None = None) -> list[tuple[str, Score]]:
        """The comparison's methods with their loss beyond L minus the rival's, least first; learned factors apart."""
        rows = self._rows("loss_by_position", trained, factor).only(in_comparison(self.model)).rows
        names = [row.setting.name for row in rows if not learned.start_of(row.setting)]
        losses = [(name, self.loss(name, trained=trained, factor=factor)) for name in names]
        return sorted(losses, key=lambda entry: entry[1].mean)

    def to_learned(self, name: str, factor: float) -> Score:
        """A method's loss beyond L without training minus that of factors found by gradient descent, paired by text."""
        scored = learned.scored(self.results, factor)
        if not scored:
            raise InputError(f"no learned factors of s = {factor:g} were scored; see table_learned.")
        rows, least = scored
        return loss_by_position.gap(rows[name], least)

    def pairs(self, name: str, factor: float | None = None) -> set[int]:
        """Those that a row without training interpolates."""
        return set(_interpolated(self.model.geometry, self.row("loss_by_position", name, factor=factor).setting))

    def disturbance(self, name: str, factor: float | None = None) -> float:
        """The averaged disturbance of a row of loss_by_position without training, in 10⁻³ nat."""
        return 1e3 * disturbance.averaged(self.results, self.row("loss_by_position", name, factor=factor).setting)

    def wavelength(self, pair: int) -> float:
        """Of a pair in pre-training, in tokens."""
        return float(self.model.geometry.wavelength[pair])

    def repeated(self, repeat: str) -> dict[bool, float]:
        """How far fine-tunes that were run again part in their losses, the most and as a share: {learned: share}."""
        changes: dict[bool, float] = {}
        for again, first in self._repeated(repeat, "finetune"):
            is_learned = rope.get(again["method"]).start is not None
            losses = stacked([again["losses"], first["losses"]])
            change = float(np.abs(losses[0] / losses[1] - 1).max())
            changes[is_learned] = max(change, changes.get(is_learned, 0.0))
        return changes

    def remeasured(self, repeat: str) -> float:
        """How far losses by position that were measured again part, the most over all blocks, in nats per token."""
        pairs = self._repeated(repeat, "loss_by_position")
        return max(float(np.abs(np.subtract(*loss_by_position.blocks(*pair))).max()) for pair in pairs)

    def relearned(self, repeat: str) -> float:
        """How far factors that were learned again part, the most over pairs whose wavelength is below L, as a share."""
        seen = self.model.geometry.wavelength < self.model.geometry.context_length
        ratios = (np.divide(again["factors"], first["factors"]) for again, first in self._repeated(repeat, "learned"))
        return max(float(np.abs(ratio[seen] - 1).max()) for ratio in ratios)

    def served_right(self) -> set[str]:
        """The engines that compute every export that was measured or read in their source."""
        lines = serving.matrix(serving.served(self.results))
        return {line.engine for line in lines if line.frequencies == line.attention_factor == serving.RIGHT}

    def _repeated(self, repeat: str, experiment: str) -> Iterator[tuple[dict, dict]]:
        """The records of an experiment that were measured again in repeats/REPEAT, each with the first one."""
        folder = self.results.folder / self.model.name / BEYOND / "repeats" / repeat
        for file in sorted(folder.glob(f"{experiment}/*.json")):
            yield record_types.read(file, experiment), self.record(experiment, file.stem)

    @functools.cache  # noqa: B019 (a view lives as long as its page is made)
    def _rows(self, experiment: str, trained: bool, factor: float | None) -> Comparison:
        if experiment != "loss_by_position":
            return super()._rows(experiment, trained, factor)
        least = min(loss_by_position.measured_factors(self.results))
        untrained = loss_by_position.untrained(self.results, factor or least)
        return loss_by_position.fine_tuned(self.results, untrained) if trained else untrained


@functools.cache
def _interpolated(geometry: RopeGeometry, setting: Setting) -> list[int]:
    options = {key: value for key, value in setting.options if key != "attention_factor"}  # moves no angle
    scaling = rope.scale(geometry, setting.method, setting.factor, **options)
    return np.flatnonzero(scaling.interpolated).tolist()
