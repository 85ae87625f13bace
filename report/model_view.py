"""What the templates of pages can say of a model: tables, figures, and numbers with their
intervals, from its records.

A row is named as tables print it, "DPRoPE (n̂ = 28)"; one that is not there is an error.
"""

import functools
import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from urllib.parse import quote

import records
from analysis import differences, disturbance, drawing, metrics
from analysis.comparison import Comparison, Row, compared
from analysis.results import NotMeasured, Results
from analysis.scores import Score, number, shown
from analysis.settings import BASELINE
from core import rope
from core.errors import InputError
from core.setting import Setting
from records import RESULTS
from tables.benchmarks import PUBLISHED
from tables.kit import draw as tables_drawn
from tables.kit import markdown
from tables.kit.table import NONE, Block, Cell, Table

# The sections of pages by name: the heading and, by the figure's name, what it shows.
SECTIONS = {
    "longbench_e": (
        "LongBench-E",
        {"disturbance_longbench_e": "LongBench-E's score against the disturbance"},
    ),
    "open_llm": ("Open LLM", {}),
    "passkey": ("Passkeys", {"passkey": "Passkeys found by length and depth"}),
    "disturbance": (
        "Disturbance",
        {
            "angle_distribution": "Angles of two pairs, pre-trained and extended",
            "frequency": "The same by frequency, first intervals",
            "distribution_complete": "The same, all intervals",
            "interpolation": "What interpolation and extrapolation show a model",
            "disturbance_strategies": "Disturbance of interpolating and of extrapolating each pair",
            "disturbance": "Disturbance by pair and method",
        },
    ),
    "ablations": ("The choice of n̂ and b", {}),
    "ruler": ("RULER", {}),
    "time_cost": ("Time", {}),
    "perplexity": ("Long texts", {}),
}
# The tables of a section that has others than the one of its name.
_TABLES = {
    "ablations": (
        "n_hat_longbench_e",
        "n_hat_open_llm",
        "intervals_longbench_e",
        "intervals_open_llm",
    ),
}
_OFFERED: dict[str, Callable] = {}


def offered(function: Callable) -> Callable:
    """Has templates name a function of a view, which they call without it."""
    _OFFERED[function.__name__] = function
    return function


class View:
    """A model's records.

    Args:
        measured: the records.
        page: the folder of the page, which its links start from.
        beyond: whether the page shows what is beyond the paper.
    """

    def __init__(self, measured: Results, page: Path, beyond: bool = False):
        self.results = measured
        self.page = page
        self.beyond = beyond
        self._shown: set[tuple[str, str]] = set()  # ("tables" or "figures", name)

    def context(self) -> dict[str, object]:
        """What a model's template can name, besides the filters."""
        facts = {"reading": self.to(RESULTS / "README.md"), "model": self.results}
        return facts | {
            name: functools.partial(function, self) for name, function in _OFFERED.items()
        }

    # Tables and figures

    @offered
    def section(self, name: str) -> str:
        """One of SECTIONS with those tables and figures that there are, and the folders of their
        records; empty where there is none. A generated miniature of a benchmark is called so."""
        heading, figures = SECTIONS[name]
        named = (record.benchmark for record in self.results.records(name))
        tables = _TABLES.get(name, (name,))
        return self._part(next(filter(None, named), heading), tables, figures)

    @offered
    def others(self) -> str:
        """A section for each table and figure of the page's kind that it has not shown; the table
        of an experiment that has none is of its scores."""
        declared = drawing.declared("tables")
        others = (name for name in self.results.experiments() if name not in declared)
        scored = (name for name in others if any(map(metrics.generic, self.results.records(name))))
        tables = self._left("tables", [*declared, *scored])
        figures = self._left("figures", drawing.declared("figures"))
        sections = [self._part(markdown.text(name), [name], {}) for name in tables]
        sections += [
            self._part(drawing.caption(name)[0].rstrip("."), [], {name: name}) for name in figures
        ]
        return "\n\n".join(filter(None, sections))

    def _part(self, heading: str, tables: Sequence[str], figures: dict[str, str]) -> str:
        shown = []
        for name in tables:
            self._shown.add(("tables", name))
            if table := _build(self.results, name):
                shown.append(markdown.render(table))
        if shown:
            shown.append(self._sources(tables))
        for name, text in figures.items():
            self._shown.add(("figures", name))
            file = drawing.place("figures", name, self.results).with_suffix(".png")
            if file.is_file():
                caption = markdown.text(" ".join(drawing.caption(name)))
                shown.append(f"![{text}]({self.to(file)})\n\n*{caption}*")
        return "\n\n".join([f"## {heading}", *filter(None, shown)]) if shown else ""

    def _sources(self, tables: Sequence[str]) -> str:
        """The folders of the records of tables; an ablation's has the end of its name."""
        links = []
        for name in self.results.experiments():
            if any(table.endswith(name) for table in tables):
                folder = records.folder(self.results.folder, self.results.name, name)
                links.append(f"[{markdown.text(name)}]({self.to(folder)})")
        return f"Records: {', '.join(links)}." if links else ""

    def _left(self, kind: str, names: Iterable[str]) -> list[str]:
        """Those of the page's kind that it has not shown."""
        of_kind = [name for name in names if drawing.is_beyond(kind, name) == self.beyond]
        return [name for name in of_kind if (kind, name) not in self._shown]

    # Numbers

    @offered
    def row(
        self, experiment: str, name: str, trained: bool = False, factor: float | None = None
    ) -> Row:
        """A row by the name that tables print, at the least factor that has it if none is given.

        Raises:
            InputError: there is none.
        """
        return find(self._rows(experiment, trained), experiment, name, factor)

    @offered
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

    @offered
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
        rows = self._rows(experiment, trained)
        pair = [find(rows, experiment, name, factor) for name in (ours, other)]
        of = metrics.log_perplexity if experiment == "perplexity" else getattr(metrics, experiment)
        return differences.between(*pair, experiment, of, metric, rows)

    @offered
    def passkeys(
        self, name: str, *lengths: str, trained: bool = False, factor: float | None = None
    ) -> str:
        """Passkeys found of those asked, of all seeds, at some lengths or at all."""
        by_length = metrics.passkeys_by_length(self.row("passkey", name, trained, factor))
        counts = [by_length[length][:2] for length in lengths or (metrics.ALL,)]
        return "{} of {}".format(*map(sum, zip(*counts)))

    def passkeys_by_place(self, name: str, trained: bool = False) -> dict[tuple[int, float], float]:
        """Passkeys found, 0…1, by length in tokens and depth: the mean over seeds."""
        runs = self.row("passkey", name, trained).runs
        found = [
            {(cell["length"], cell["depth"]): cell["mean"] for cell in run.scores["by_depth"]}
            for run in runs
        ]
        return {place: sum(of[place] for of in found) / len(found) for place in found[0]}

    @offered
    def disturbance(self, name: str, factor: float) -> float:
        """The averaged disturbance in 10⁻³ nat (released convention, float64) of a setting by its
        name."""
        settings = disturbance.settings(self.results, factor) + [
            Setting(rope.PROPOSED, (("n_hat", n_hat),), factor)
            for n_hat in range(1, self.results.geometry.head_dim + 1)
        ]
        by_name = {setting.name: setting for setting in settings}
        return disturbance.compute(self.results.geometry, by_name[name]).average

    def to(self, file: Path) -> str:
        """The link from the page to a file."""
        return quote(os.path.relpath(file, self.page))

    @functools.cache  # noqa: B019 (a view lives as long as its page is made)
    def _rows(self, experiment: str, trained: bool) -> Comparison:
        return compared(self.results, experiment, trained)


def table(header: Sequence[str], rows: Iterable[Sequence[str]], words: bool = False) -> str:
    """Cells in Markdown as a table.

    Args:
        words: whether its columns are of text rather than of numbers.
    """
    return markdown.rows(Block("", header, [[*map(Cell, row)] for row in rows]), words, str)


def _build(measured: Results, name: str) -> Table | None:
    """A table, if there is a record of it; the paper's own rows of it are left to tables/."""
    try:
        table = tables_drawn.table(name, measured)
    except NotMeasured:
        return None
    blocks = [block for block in table.blocks if not block.title.endswith(PUBLISHED)]
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
    "text": markdown.text,
}


@offered
def overview(
    view: View,
    heading: str,
    names: Sequence[str],
    columns: Sequence[Sequence[str]],
    trained: bool = False,
    factor: float | None = None,
) -> str:
    """Several measures of a few rows; the original is not fine-tuned.

    Args:
        columns: each one's words, and what :func:`_measured` measures.
    """
    rows = []
    for name in names:
        tuned = trained and name != "original"
        cells = (_measured(view, name, tuned, factor, *measure) for _, *measure in columns)
        title = name if tuned == trained else f"{name}, not fine-tuned"
        rows.append((title, *cells))
    return table((heading, *(words for words, *_ in columns)), rows)


def _measured(
    view: View, name: str, trained: bool, factor: float | None, what: str, *metrics: str
) -> str:
    """A row's disturbance, its passkeys of some lengths, its loss in whole texts minus YaRN's, or
    its score of an experiment."""
    if what == "disturbance":
        return number(view.disturbance(name, factor), 1)
    if what == "passkey":
        return view.passkeys(name, *metrics, trained=trained, factor=factor)
    if what != "loss minus YaRN's":
        return shown(view.score(what, name, *metrics, trained, factor), 1)
    if name == BASELINE:
        return NONE
    return shown(view.gap("perplexity", name, BASELINE, *metrics, trained, factor), 3, True)
