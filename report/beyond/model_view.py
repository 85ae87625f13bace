"""What templates beyond the paper can say of a model besides: losses, learned factors, engines."""

from __future__ import annotations

import functools

import numpy as np

from analysis import disturbance
from analysis.beyond import learned, loss_by_position, serving
from analysis.comparison import Comparison, in_comparison
from analysis.scores import Score
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

    def served_right(self) -> set[str]:
        """The engines that compute every export that was measured."""
        return serving.right_engines(self.results)

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
