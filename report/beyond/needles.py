"""What templates can say of keys in books."""

from dataclasses import replace

from analysis.beyond import needles
from analysis.beyond.books import BEYOND
from analysis.comparison import Comparison, Row
from analysis.results import Results
from analysis.scores import Score
from analysis.settings import Setting
from report.model_view import BASELINE, find


class Needles:
    """The rows of keys at the least factor, on the most books.

    Args:
        trained: those of fine-tunes.
    """

    def __init__(self, results: Results, trained: bool = False) -> None:
        self._results = results
        factors = needles.measured_factors(results)
        self.rows = Comparison(())
        if factors:
            self.rows = needles.sampled(results, min(factors), trained)

    @property
    def names(self) -> list[str]:
        """Of the rows."""
        return [row.setting.name for row in self.rows.rows]

    def nats(self, name: str, where: str = BEYOND) -> Score:
        """Nats a key of a row."""
        return needles.level(self._row(name), where)

    def gap(self, name: str, than: str = BASELINE, where: str = BEYOND) -> Score:
        """Nats a key of a row minus another's, paired by book."""
        return needles.gap(self._row(name), self._row(than), where)

    def found(self, name: str, where: str = BEYOND) -> str:
        """How many keys a row finds, of how many."""
        return "{} of {}".format(*needles.found(self._row(name), where))

    def off_float32(self, name: str, where: str = BEYOND) -> list[float]:
        """Of each book that a row was asked in float32, too: its nats a key minus those in
        float32."""
        row = self._row(name)
        (exact,) = (
            run
            for run in self._results.records("needles")
            if run.run["dtype"] == "float32" and Setting.of(run.run) == row.setting
        )
        keys = {title: row.first.scores["keys"][title] for title in exact.scores["keys"]}
        same = replace(row.first, scores=row.first.scores | {"keys": keys})
        ours, others = needles.by_text(same, exact, where=where)
        return (ours - others).tolist()

    def _row(self, name: str) -> Row:
        return find(self.rows, "needles", name, None)
