"""The report: each claim of the paper beside what was measured, with every table and figure, as one HTML page."""

from __future__ import annotations

from html import escape
from pathlib import Path

from analysis import cost, published, results
from analysis.results import Results
from report import audit, verdict_table
from report.differences import DIFFERENCES
from report.gallery import Gallery
from report.verdict_table import Tested
from tables.kit import html

_HERE = Path(__file__).parent
_PAPER = "Extending Context Window of Large Language Models from a Distributional Perspective"
_HEAD = """<!doctype html>
<html lang=en>
<head>
<meta charset=utf-8>
<meta name=viewport content="width=device-width, initial-scale=1">
<meta name=color-scheme content="light dark">
<title>DPRoPE, reproduced</title>
<style>
{style}</style>
</head>
<body>
<main>"""
_TAIL = """</main>
<script>
{script}</script>
</body>
</html>
"""


def build(folder: Path) -> str:
    """The whole page.

    Args:
        folder: of the records; figures are those that stand beside it.
    """
    claims, models = verdict_table.tested(folder), list(map(Gallery, results.every(folder)))
    sections = [
        ("verdicts", "The verdicts", _verdicts(claims, models)),
        ("code", "The paper against its released code", html.render(DIFFERENCES, caption=False)),
        ("itself", "The paper against itself", _audit()),
        *((html.anchor("model", one.scale.name), one.scale.title, _model(one)) for one in models),
    ]
    sections = [section for section in sections if section[2]]
    contents = "".join(f'<li><a href="#{name}">{escape(title)}</a></li>' for name, title, _ in sections)
    parts = [
        _HEAD.format(style=_embedded("style.css")),
        "<h1>DPRoPE, reproduced</h1>",
        _opening(folder, claims, models),
        f"<nav aria-label=Contents><ol>{contents}</ol></nav>",
        *(f'<section id="{name}"><h2>{escape(title)}</h2>{body}</section>' for name, title, body in sections),
        _TAIL.format(script=_embedded("script.js")),
    ]
    return "\n".join(parts)


def _embedded(file: str) -> str:
    return (_HERE / file).read_text(encoding="utf-8")


def _opening(folder: Path, claims: list[Tested], models: list[Gallery]) -> str:
    """Six lines: what this is, the verdicts, the models, how to read, how to rerun, what is missing."""
    verdicts = sum(verdict_table.counts(claims).values())
    named_models = [f"<b>{escape(one.scale.title)}</b> ({_known(one.measured)})" for one in models]
    records = sum(found.records for found in cost.compute(folder).values())
    lines = {
        "What": f"A check of <i>{_PAPER}</i> (Wu et al., EMNLP 2024). To extend a model from L to L' = s·L tokens, the "
        "paper's method, DPRoPE, either interpolates or leaves each pair of rotary dimensions, whichever disturbs the "
        "distribution of the pair's angles less.",
        "Verdicts": f"{len(claims)} claims, each tested on every model that has records of it: {verdicts} verdicts. "
        f"Open a claim for its numbers and its figure.{verdict_table.legend(claims)}",
        "Models": f"{_listed(named_models)}.",
        "Numbers": f"Every number is read from one of {records:,} records under <code>results/</code>. "
        "Brackets are 95 % intervals; statements that are tested together have wider ones (Holm's correction).",
        "Rerun": "<code>make reproduce</code> renders everything and measures a part anew. <code>make rerun "
        "SCALE=tiny</code> measures the whole suite of one model. <code>make report</code> makes this page.",
    }
    if not any(one.scale.geometry == published.GEOMETRY and _was_run(one.measured) for one in models):
        lines["Missing"] = (
            "The paper's own scores. They need LLaMA2's weights and eight A100s, so the method is tested on smaller "
            "models."
        )
    return "<dl class=opening>" + "".join(f"<dt>{name}</dt><dd>{text}</dd>" for name, text in lines.items()) + "</dl>"


def _known(measured: Results) -> str:
    return f"L = {measured.scale.context_length:,}" + ("" if _was_run(measured) else ", its geometry alone")


def _was_run(measured: Results) -> bool:
    """Whether any record is of a model's weights; the disturbance needs the geometry alone."""
    return any("model" in record for name in measured.experiments() for record in measured.records(name))


def _listed(parts: list[str]) -> str:
    return ", ".join(parts[:-1]) + (" and " if len(parts) > 1 else "") + "".join(parts[-1:])


def _verdicts(claims: list[Tested], models: list[Gallery]) -> str:
    return _READING + verdict_table.render(claims, models)


_READING = (
    "<p class=note>A claim of several statements is contradicted where one of them is, and reproduced where all are; "
    "“2 of 6” says how many have the verdict that is shown. A comparison takes DPRoPE at the model's n̂, the number of "
    "dimensions that it interpolates, against each method that the paper compares it with. In the plots the shaded "
    "part is where the claim says that the number lies, the dot and the line are what was measured with its interval, "
    "and the diamond is the paper's own number.</p>"
)


def _audit() -> str:
    checks = audit.findings()
    agree = sum(check.holds for check in checks)
    return (
        f"<p>{len(checks)} averages, bold entries, repeated rows and claims were derived again from the paper's own "
        f"tables. {agree} agree with what the paper prints. The others are these.</p>"
        + html.render(audit.build(checks), caption=False)
    )


def _model(model: Gallery) -> str:
    """A model's geometry, its figures, and its tables."""
    geometry = model.scale.geometry
    figures = "".join(map(model.figure, model.figures))
    tables = "".join(map(model.table, model.tables))
    length = f"L = {geometry.context_length:,} tokens"
    facts = f"Head dimension d = {geometry.head_dim}, base {geometry.base:,g}, trained on {length}"
    took = cost.took(model.measured, *model.measured.experiments())
    return (
        f"<p>{facts}. Its records took {took} to measure.</p>"
        + (f"<h3>Figures</h3><div class=plots>{figures}</div>" if figures else "")
        + (f"<h3>Tables</h3><div class=tables>{tables}</div>" if tables else "")
    )
