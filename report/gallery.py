"""A model's figures and tables, each with an id that a claim's row links to."""

from __future__ import annotations

import base64
import functools
import importlib
import inspect
import re
import struct
from collections.abc import Iterable
from html import escape

from analysis.results import NotMeasured, Results, root
from figures.kit import command as figures
from report.model_view import named
from tables.kit import command as tables
from tables.kit import html
from tables.kit.table import Table

# CSS pixels for each pixel of a file: one for all, so that the letters of all figures are of one size.
_SHOWN = 0.6
_WIDE = 900  # pixels of a file from which on a figure takes the whole line


class Gallery:
    """Of one model.

    Args:
        measured: its records; figures are those that stand beside them.
    """

    def __init__(self, measured: Results):
        self.measured, self.model = measured, measured.model
        self._folder = root(measured.folder) / "figures" / self.model.name

    @functools.cached_property
    def figures(self) -> list[str]:
        """Those that were rendered, the paper's first."""
        found = (file.stem for file in self._folder.glob("*.png"))
        return sorted(found, key=lambda name: _place(_caption(name)[0]))

    @functools.cached_property
    def tables(self) -> dict[str, Table]:
        """Those that there are records of, the paper's first."""
        found = {}
        for name in named(self.measured):
            try:
                found[name] = tables.build(name, self.measured)
            except NotMeasured:
                continue
        return dict(sorted(found.items(), key=lambda entry: _place(entry[1].paper)))

    def figure(self, name: str) -> str:
        """A figure with its caption, the image within the page; empty where it was not rendered."""
        if name not in self.figures:
            return ""
        data = (self._folder / f"{name}.png").read_bytes()
        title, reading = _caption(name)
        width, height = struct.unpack(">II", data[16:24]) if data[1:4] == b"PNG" and len(data) > 24 else (0, 0)
        size = f" width={round(_SHOWN * width)} height={round(_SHOWN * height)}" if width else ""
        kind = "plot wide" if width >= _WIDE else "plot"
        source = f"data:image/png;base64,{base64.b64encode(data).decode()}"
        return (
            f'<figure class="{kind}" id="{self._id("figure", name)}"><div class=scroll>'
            f'<img alt="{escape(title)}"{size} src="{source}"></div>'
            f"<figcaption><b>{escape(title)}</b> <span class=reading>{escape(reading)}</span></figcaption></figure>"
        )

    def table(self, name: str) -> str:
        """A table behind its title, closed."""
        made, target = self.tables[name], self._id("table", name)
        title = f"{made.paper} of the paper: {_title(name)}" if made.paper else _title(name)
        return (
            f'<details id="{target}"><summary>{escape(title)}</summary><p>{html.text(made.caption)}</p>'
            f"{html.render(made, f'{target}-rows', caption=False)}</details>"
        )

    def links(self, names: Iterable[str]) -> str:
        """To figures and tables of these names; the script puts a figure's image below its link."""
        found = [
            f'<li><a class=figure href="#{self._id("figure", name)}">{escape(_caption(name)[0])}</a></li>'
            for name in names
            if name in self.figures
        ]
        found += [
            f'<li><a href="#{self._id("table", name)}">Table: {escape(_title(name))}</a></li>'
            for name in names
            if name in self.tables
        ]
        return f"<ul class=shown>{''.join(found)}</ul>" if found else ""

    def _id(self, kind: str, name: str) -> str:
        return html.anchor(kind, self.model.name, name)


def _place(title: str) -> tuple[bool, int, str]:
    """By which "Table 3 of the paper" comes before Table 10, and both before what the paper does not have."""
    found = re.match(r"\w+ (\d+)", title)
    return found is None, int(found[1]) if found else 0, title


def _caption(name: str) -> tuple[str, str]:
    return figures.caption(name) if name in figures.names() else (_words(name), "")


def _title(name: str) -> str:
    """The first line of a table's module, which `make help` shows, too."""
    if name not in tables.names():
        return _words(name)
    written = inspect.getdoc(importlib.import_module(f"tables.{name}")) or _words(name)
    return written.partition("\n")[0]


def _words(name: str) -> str:
    return name.replace("_", " ").capitalize() + "."
