"""What the templates of pages can say of a model: tables, figures, and numbers with their
intervals, from its records.

A row is named as tables print it, "DPRoPE (n̂ = 28)"; one that is not there is an error, and so is
a sentence whose condition no longer holds: a page never says what its records do not.
"""

import functools
import os
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from urllib.parse import quote

from analysis import differences, disturbance, drawing, metrics
from analysis.comparison import Comparison, Row, compared
from analysis.results import NotMeasured, Results
from analysis.scores import Score, number, spread
from analysis.settings import Setting, tokens
from core import rope
from core.errors import InputError
from records import RESULTS
from tables.benchmarks import PUBLISHED
from tables.kit import draw as tables_drawn
from tables.kit import markdown
from tables.kit.table import Table

BASELINE = rope.METHODS[rope.BASELINE].title


class View:
    """A model's records.

    Args:
        measured: the records.
        page: the folder of the page, which its links start from.
    """

    beyond = False  # whether the page shows what is beyond the paper

    def __init__(self, measured: Results, page: Path):
        self.results = measured
        self.page = page.absolute()
        self._shown: set[tuple[str, str]] = set()  # ("tables" or "figures", name)

    def offered(self) -> dict[str, object]:
        """What a model's template can name, besides the filters."""
        plain = self.results.plain
        return {
            "d": plain and plain.head_dim,
            "base": plain and plain.base,
            "L": self.results.context_length,
            "reading": self.to(RESULTS / "README.md"),
            "model": self.results,
            "has": self.has,
            "part": self.part,
            "others": self.others,
            "benchmark": self.benchmark,
            "row": self.row,
            "score": self.score,
            "gap": self.gap,
            "passkeys": self.passkeys,
            "keys": self.keys,
            "names": self.names,
            "disturbance": self.disturbance,
        }

    # Tables and figures

    def has(self, name: str) -> bool:
        """Whether there is such a table of the model."""
        return _build(self.results, name) is not None

    def part(self, heading: str, tables: list[str], figures: dict[str, str] | None = None) -> str:
        """A section of those tables and figures that there are; empty where there is none."""
        shown = []
        for name in tables:
            self._shown.add(("tables", name))
            if table := _build(self.results, name):
                shown.append(markdown.render(table))
        for name, text in (figures or {}).items():
            self._shown.add(("figures", name))
            file = drawing.place("figures", name, self.results).with_suffix(".png")
            if file.is_file():
                caption = markdown.text(" ".join(drawing.caption(name)))
                shown.append(f"![{text}]({self.to(file)})\n\n*{caption}*")
        return "\n\n".join([f"## {heading}", *shown]) if shown else ""

    def benchmark(self, experiment: str, title: str) -> str:
        """A benchmark's title, or the name that its records give: a generated miniature is called
        so."""
        measured = self.results.records(experiment)
        return (measured[0].benchmark or title) if measured else title

    def others(self) -> str:
        """A section for each table and figure of the page's kind that it has not shown."""
        tables = self._left("tables", table_names(self.results))
        figures = self._left("figures", drawing.declared("figures"))
        sections = [self.part(markdown.text(name), [name]) for name in tables]
        for name in figures:
            title, _ = drawing.caption(name)
            sections.append(self.part(title.rstrip("."), [], {name: name}))
        return "\n\n".join(filter(None, sections))

    def _left(self, kind: str, names: Iterable[str]) -> list[str]:
        """Those of the page's kind that it has not shown."""
        of_kind = [name for name in names if drawing.is_beyond(kind, name) == self.beyond]
        return [name for name in of_kind if (kind, name) not in self._shown]

    # Numbers

    def row(
        self, experiment: str, name: str, trained: bool = False, factor: float | None = None
    ) -> Row:
        """A row by the name that tables print, at the least factor that has it if none is given.

        Raises:
            InputError: there is none.
        """
        return find(self._rows(experiment, trained, factor), experiment, name, factor)

    def score(
        self,
        experiment: str,
        name: str,
        metric: str,
        trained: bool = False,
        factor: float | None = None,
    ) -> Score:
        """One metric of a row, over seeds."""
        return self.row(experiment, name, trained, factor).scores(getattr(metrics, experiment))[
            metric
        ]

    def gap(
        self,
        experiment: str,
        ours: str,
        other: str,
        metric: str,
        trained: bool = False,
        factor: float | None = None,
    ) -> Score:
        """The difference of two rows, paired by seeds and samples; of perplexities, in nats per
        token."""
        rows = self._rows(experiment, trained, factor)
        pair = [find(rows, experiment, name, factor) for name in (ours, other)]
        of = metrics.log_perplexity if experiment == "perplexity" else getattr(metrics, experiment)
        return differences.between(*pair, experiment, of, metric, rows)

    def passkeys(self, name: str, length: int, trained: bool, factor: float) -> str:
        """Passkeys found of those asked, of all seeds, at one length."""
        by_length = metrics.passkeys_by_length(self.row("passkey", name, trained, factor))
        found, asked, _ = by_length[tokens(length)]
        return f"{found} of {asked}"

    def keys(self, name: str) -> dict[tuple[int, float], float]:
        """Passkeys found without training, 0…1, by length in tokens and depth."""
        rows = self.row("passkey", name).first.scores["by_depth"]
        return {(row["length"], row["depth"]): row["mean"] for row in rows}

    def names(self, experiment: str, factor: float | None = None) -> list[str]:
        """Of an experiment's rows without training."""
        return [row.setting.name for row in self._rows(experiment, False, factor).rows]

    def disturbance(self, name: str, factor: float) -> float:
        """The averaged disturbance in 10⁻³ nat (released convention, float64) of a setting by its
        name."""
        settings = disturbance.settings(self.results, factor)
        for n_hat in range(1, self.results.geometry.head_dim + 1):
            settings.append(Setting(rope.PROPOSED, (("n_hat", n_hat),), factor))
        by_name = {setting.name: setting for setting in settings}
        return disturbance.compute(self.results.geometry, by_name[name]).average

    def to(self, file: Path) -> str:
        """The link from the page to a file."""
        return quote(os.path.relpath(file, self.page))

    @functools.cache  # noqa: B019 (a view lives as long as its page is made)
    def _rows(self, experiment: str, trained: bool, factor: float | None) -> Comparison:
        return compared(self.results, experiment, trained)


def holds(condition: bool, sentence: str) -> str:
    """Nothing, where the condition is true.

    Raises:
        InputError: the sentence that stands behind it is not what the records say.
    """
    if not condition:
        raise InputError(f"the records no longer say that {sentence}; change the page's template.")
    return ""


def shown(score: Score, digits: int = 2, sign: bool = False) -> str:
    """A number with its interval, or with the value of each text."""
    return f"{number(score.mean, digits, sign)} {spread(score, digits, sign)}".strip()


def table_names(measured: Results) -> list[str]:
    """The tables that there may be of a model: those of tables/, and of an experiment that has
    none, its scores."""
    declared = list(drawing.declared("tables"))
    plain = (name for name in measured.experiments() if name not in declared)
    return declared + [name for name in plain if any(map(metrics.generic, measured.records(name)))]


@functools.lru_cache(maxsize=512)
def _build(measured: Results, name: str) -> Table | None:
    """A table, if there is a record of it; the paper's own rows of it are left to tables/."""
    try:
        table = tables_drawn.table(name, measured)
    except NotMeasured:
        return None
    blocks = tuple(block for block in table.blocks if not block.title.endswith(PUBLISHED))
    return replace(table, blocks=blocks) if blocks else None


def find(rows: Comparison, experiment: str, name: str, factor: float | None) -> Row:
    for row in rows.rows:
        if row.setting.name == name and factor in (None, row.setting.factor):
            return row
    names = ", ".join(dict.fromkeys(row.setting.name for row in rows.rows)) or "none"
    raise InputError(
        f"no row {name!r} of {experiment} (there is {names}); change the page's template."
    )


FILTERS = {
    "shown": shown,
    "number": number,
    "tokens": tokens,
    "text": markdown.text,
    "code": "`{}`".format,
}
