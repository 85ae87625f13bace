"""What templates beyond the paper can say of a model besides: losses within and beyond L, learned
factors."""

import functools
from collections.abc import Collection

import numpy as np

from analysis.beyond import decision, learned, loss_by_position, training
from analysis.beyond.loss_by_position import BEYOND as BEYOND_L
from analysis.beyond.loss_by_position import WITHIN
from analysis.comparison import Comparison, Row
from analysis.results import Record, read
from analysis.scores import Score, over_texts
from analysis.settings import Setting
from core import ORIGINAL
from core.errors import InputError
from eval.beyond import ranking
from experiments.kit import records
from experiments.kit.records import BEYOND, ROOT
from experiments.suites.suite import as_typed
from report import model_view
from report.beyond.needles import Needles
from report.model_view import BASELINE, find

# The repository's own pages beyond the paper, by their templates: where each belongs.
OVERALL = {"experiments.md": ROOT / "experiments" / BEYOND / "README.md"}


class View(model_view.View):
    """A model's records; a row of loss_by_position is of the least factor if none is given."""

    beyond = True
    decision = decision
    training = training

    def offered(self) -> dict[str, object]:
        return super().offered() | {
            "best": self.best,
            "by_training": self.by_training,
            "cost": self.cost,
            "decision": self.decision,
            "fine_tuned": self.fine_tuned,
            "fine_tuned_on": self.fine_tuned_on,
            "fine_tuning": self.fine_tuning,
            "gained": self.gained,
            "needles": self.needles,
            "loss": self.loss,
            "of_windows": self.of_windows,
            "on_sample": self.on_sample,
            "pairs": self.pairs,
            "passkeys_in": self.passkeys_in,
            "ranked": self.ranked,
            "record": self.record,
            "attention_factor": self.attention_factor,
            "sample_names": self.sample_names,
            "to_learned": self.to_learned,
            "training": self.training,
            "trained_on": self.trained_on,
            "training_gaps": self.training_gaps,
            "was_fine_tuned": self.was_fine_tuned,
            "wavelength": self.wavelength,
        }

    @functools.cache  # noqa: B019 (a view lives as long as its page is made)
    def loss(
        self,
        name: str,
        than: str = BASELINE,
        factor: float | None = None,
        where: str = BEYOND_L,
        trained: bool = False,
    ) -> Score:
        """At the beginnings of books, beyond L or elsewhere, a row's loss minus another's, paired
        by book (nats)."""
        rows = (self.row("loss_by_position", each, trained, factor) for each in (name, than))
        return loss_by_position.gap(*rows, where)

    def sample_names(self) -> list[str]:
        """The rows without training on the texts that are enough for a sample."""
        return [row.setting.name for row in self._untrained.rows]

    @functools.cached_property
    def needles(self) -> Needles:
        """Keys in books without training."""
        return Needles(self.results)

    def on_sample(self, name: str, than: str = BASELINE, where: str = BEYOND_L) -> Score:
        """:meth:`loss` at the least factor, on the texts that are enough for a sample."""
        row, reference = (
            find(self._untrained, "the sample of texts", each, None) for each in (name, than)
        )
        return loss_by_position.gap(row, reference, where)

    def of_windows(self, name: str, window: str, than: str, other_window: str) -> Score:
        """The loss of whole texts in windows of one length minus another row's in windows of
        another, paired by text (nats per token)."""
        ours, others = (
            self.score("perplexity", each, length).texts
            for each, length in ((name, window), (than, other_window))
        )
        return over_texts([np.log(ours) - np.log(others)])

    def best(self, count: int) -> str:
        """The first rows that `dprope best` prints of these texts and methods, without keys."""
        rows = []
        for row in self._untrained.rows:
            if row.setting.method != ORIGINAL:
                sides = (loss_by_position.level(row, side).texts for side in (WITHIN, BEYOND_L))
                losses = zip(*sides, strict=True)
                by_text = [
                    {"loss_within": within, "loss_beyond": beyond} for within, beyond in losses
                ]
                name = as_typed(row.setting.method, dict(row.setting.options))
                rows.append(ranking.Row(name, by_text))
        return ranking.table(ranking.ranked(rows), count)

    def fine_tuning(self, folder: str, where: str = BEYOND_L) -> Score:
        """What a fine-tune changed of the loss, paired by text; its only scored record is in a
        folder of beyond/.

        Raises:
            InputError: there is no such record, or not the same method's on these texts untrained.
        """
        place = self.results.folder / self.results.name / BEYOND / folder / "loss_by_position"
        runs = [read(file) for file in place.glob("*.json")]
        if len(runs) != 1:
            raise InputError(f"{len(runs)} records in {place}, not one.")
        tuned = Row(Setting.of(runs[0].run), tuple(runs))
        rows = loss_by_position.sampled(self.results, tuned.setting.factor)
        untrained = find(rows, "the sample of texts", tuned.setting.name, None)
        if tuned.first.alike != untrained.first.alike:
            raise InputError(f"{place} is of other texts than {tuned.setting.name} untrained.")
        return loss_by_position.gap(tuned, untrained, where)

    def passkeys_in(self, folder: str) -> list[tuple[int, int, int]]:
        """Length in tokens, passkeys found and asked, of the only such record in a folder of
        beyond/."""
        place = self.results.folder / self.results.name / BEYOND / folder / "passkey"
        (file,) = place.glob("*.json")
        rows = read(file).scores["by_length"]
        return [(row["length"], round(row["mean"] * row["n"]), row["n"]) for row in rows]

    def was_fine_tuned(self, name: str) -> bool:
        """Whether the fine-tuned row was scored on the texts that are enough for a sample."""
        return name in self._fine_tuned

    def fine_tuned(self, name: str, than: str = BASELINE, where: str = BEYOND_L) -> Score | None:
        """On these texts a fine-tuned row's loss minus another's; None until both were scored."""
        if not {name, than} <= self._fine_tuned.keys():
            return None
        return loss_by_position.gap(self._fine_tuned[name], self._fine_tuned[than], where)

    def fine_tuned_on(
        self, texts: Collection[str], name: str, without: bool = False, where: str = BEYOND_L
    ) -> Score:
        """:meth:`fine_tuned`, on some of the texts alone, or without them.

        Raises:
            InputError: one of them was not scored.
        """
        titles = np.unique(loss_by_position.texts(self._fine_tuned[name].first))
        if unknown := set(texts) - {*titles}:
            raise InputError(f"{unknown} were not scored; change the page's template.")
        gaps = np.array(self.fine_tuned(name, where=where).texts)
        return over_texts([gaps[np.isin(titles, [*texts]) != without]])

    def trained_on(self, name: str) -> dict:
        """What the first seed of a fine-tuned row read: its books, and the book of each
        sequence."""
        return self._fine_tune(self._fine_tuned[name].first).data_facts

    def _fine_tune(self, run: Record) -> Record:
        """The record of the fine-tune that a record is of."""
        source = run.run["model"]["source"]
        return read(records.path(self.results.folder, self.results.name, "finetune", source))

    def cost(self, name: str) -> str:
        """The records of a fine-tuned row, each with the hours that it took."""
        shown = []
        for run in self._fine_tuned[name].runs:
            trained = self._fine_tune(run)
            for what, record in (("training", trained), ("losses", run)):
                hours = records.read(record.path)["environment"]["seconds"] / 3600
                shown.append(f"[{what}]({self.to(record.path)}) {hours:.1f} h")
        return ", ".join(shown)

    def by_training(self, name: str, where: str = BEYOND_L) -> Score:
        """What fine-tuning changed of a row's loss on these texts."""
        untrained = find(self._untrained, "the sample of texts", name, None)
        return loss_by_position.gap(self._fine_tuned[name], untrained, where)

    @functools.cached_property
    def _fine_tuned(self) -> dict[str, Row]:
        """By name, the fine-tuned rows on the texts of :attr:`_untrained`."""
        factor = self._untrained.first.run["factor"]
        rows = loss_by_position.sampled(self.results, factor, trained=True).rows
        alike = self._untrained.first.alike
        return {row.setting.name: row for row in rows if row.first.alike == alike}

    @functools.cached_property
    def _untrained(self) -> Comparison:
        """The rows without training on the texts that are enough for a sample, at the least
        factor."""
        factor = min(loss_by_position.measured_factors(self.results))
        return loss_by_position.sampled(self.results, factor)

    def gained(self, tuned: str, untrained: str, factor: float) -> Score:
        """The loss of a fine-tuned row minus that of one without training, beyond L, paired by
        text."""
        after = self.row("loss_by_position", tuned, trained=True, factor=factor)
        before = self.row("loss_by_position", untrained, factor=factor)
        return loss_by_position.gap(after, before)

    def attention_factor(self, name: str) -> float:
        """What a row without training multiplies queries and keys by; 1 if nothing."""
        rows = (*self._rows("loss_by_position", False, None).rows, *self.needles.rows.rows)
        setting = find(Comparison(rows), "losses or keys", name, None).setting
        return setting.scaling(self.results.geometry).attention_factor

    def training_gaps(self, name: str, batch: int, than: str = BASELINE) -> list[np.ndarray]:
        """Of each seed of a fine-tune at `batch` sequences a step, by step: its loss minus that of
        another, on the same sequences longer than L (nats per token, [steps])."""
        gaps = [gap for gap in training.gaps(self.results) if gap.batch == batch]
        ours, others = (
            {
                (gap.setting.factor, len(gap.by_step), gap.seed): gap.by_step
                for gap in gaps
                if gap.setting.name == each
            }
            for each in (name, than)
        )
        if than == BASELINE:  # which the gaps are to
            return list(ours.values())
        return [ours[run] - others[run] for run in sorted(ours.keys() & others.keys())]

    def ranked(self, factor: float | None = None) -> list[tuple[str, Score]]:
        """The comparison's methods with their loss beyond L minus YaRN's, least first; learned
        factors apart."""
        rows = learned.methods(self.results, self._rows("loss_by_position", False, factor))
        losses = [(row.setting.name, self.loss(row.setting.name, factor=factor)) for row in rows]
        return sorted(losses, key=lambda entry: entry[1].mean)

    def to_learned(self, name: str, factor: float) -> Score:
        """A method's loss beyond L without training minus that of factors found by gradient
        descent, paired by text."""
        scored = learned.scored(self.results, factor)
        if not scored:
            raise InputError(
                f"no learned factors of s = {factor:g} were scored; see table_learned."
            )
        rows, least = scored
        return loss_by_position.gap(rows[name], least)

    def pairs(self, name: str, factor: float | None = None) -> set[int]:
        """Those that a row without training interpolates."""
        scaling = self.row("loss_by_position", name, factor=factor).setting.scaling(
            self.results.geometry
        )
        return set(np.flatnonzero(scaling.interpolated).tolist())

    def wavelength(self, pair: int) -> float:
        """Of a pair in pre-training, in tokens."""
        return float(self.results.geometry.wavelength[pair])

    def record(self, experiment: str, file: str | None = None) -> Record:
        """The only record of an experiment, or that of a file's name."""
        runs = [run for run in self.results.require(experiment) if file in (None, run.file)]
        if len(runs) != 1:
            raise InputError(
                f"{len(runs)} records of {experiment}/{file or '*'} at {self.results.name}, "
                "not one."
            )
        return runs[0]

    @functools.cache  # noqa: B019 (a view lives as long as its page is made)
    def _rows(self, experiment: str, trained: bool, factor: float | None) -> Comparison:
        if experiment != "loss_by_position":
            return super()._rows(experiment, trained, factor)
        if trained:
            return loss_by_position.sampled(self.results, factor, trained)
        return loss_by_position.untrained(
            self.results, factor or min(loss_by_position.measured_factors(self.results))
        )
