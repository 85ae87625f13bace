"""The report: each claim of the paper beside what was measured, with every table and figure, as one HTML page."""

from __future__ import annotations

import base64
from html import escape
from pathlib import Path

from analysis import results
from analysis.decisions import CONTRADICTED, REPRODUCED, UNDECIDED
from analysis.findings import EXACT, NONE, Finding
from analysis.results import NotMeasured, Results, root
from report import audit, reasons
from report.claims import CLAIMS
from report.differences import DIFFERENCES
from report.phrases import finding_lines
from tables.kit import command, html

_CLASSES = {EXACT: "exact", REPRODUCED: "yes", CONTRADICTED: "no", UNDECIDED: "open", NONE: "none"}
_STYLE = """
body{font:15px/1.45 system-ui,sans-serif;max-width:70rem;margin:2rem auto;padding:0 1rem;color:#1a1a1a}
h1{font-size:1.6rem;margin-bottom:.2rem}h2{margin-top:2.2rem;border-bottom:1px solid #ccc;font-size:1.2rem}
table{border-collapse:collapse;margin:1rem 0;font-size:.82rem;display:block;overflow-x:auto}
caption{text-align:left;padding-bottom:.4rem;color:#444}td,th{padding:.18rem .55rem;text-align:right;white-space:nowrap}
td:first-child,th:first-child{text-align:left}tr.rule td,tr.rule th{border-top:1px solid #999}
.claims td{border-top:1px solid #ddd}
.claims td,.words td,.claims th,.words th{white-space:normal;text-align:left;vertical-align:top}
small,.note{color:#666}.note{font-size:.8rem}figure{margin:1.2rem 0}figure img{max-width:100%;height:auto}
figcaption{color:#444;font-size:.85rem}
.v{font-weight:600}.exact,.yes{background:#d8f0df;color:#0b5a2a}.no{background:#fbdcd8;color:#9c1c10}
.open{background:#f7edd2;color:#6b4e00}.none{font-weight:400}
"""
_READING = (
    "“Reproduced exactly”: the paper's own numbers, recomputed. “Reproduced”: the whole interval lies where the claim "
    "says. “Contradicted”: the whole interval lies elsewhere. “Undecided”: the interval holds the border. A claim of "
    "several statements is contradicted where one of them is, and reproduced where all are. "
    "A comparison takes DPRoPE at the scale's n̂ and each method that the paper compares it with. "
    "An interval covers the samples, and training seeds where there are several. "
    "How many samples would decide is said for the measured spread, and for four of five repetitions. "
    "The paper's own scores need its models and eight A100s."
)


def build(folder: Path) -> str:
    """The whole page.

    Args:
        folder: of the records; figures are those that stand beside it.
    """
    checks = audit.findings()
    agree = sum(check.holds for check in checks)
    why = reasons.build(folder)
    parts = [
        "<!doctype html><html lang=en><head><meta charset=utf-8><meta name=viewport content='width=device-width'>",
        f"<title>DPRoPE, reproduced</title><style>{_STYLE}</style></head><body><h1>DPRoPE, reproduced</h1>",
        *_claims(folder),
        *(["<h2>Where methods fail, and why</h2>", html.render(why)] if why else []),
        "<h2>The paper against its released code</h2>",
        html.render(DIFFERENCES),
        "<h2>The paper against itself</h2>",
        f"<p>{len(checks)} averages, bold entries, repeated rows and claims were derived again from the published "
        f"tables; {agree} agree.</p>",
        html.render(audit.build(checks)),
        *(part for measured in results.every(folder) for part in _scale(measured)),
        "</body></html>",
    ]
    return "\n".join(parts)


def _claims(folder: Path) -> list[str]:
    found = [(claim, claim.findings(folder)) for claim in CLAIMS]
    verdicts = [finding.verdict for _, own in found for finding in own]
    counts = "; ".join(f"{verdicts.count(verdict)} {verdict}" for verdict in _CLASSES if verdict in verdicts)
    rows = [
        f"<tr>{_claim(claim, len(own)) if index == 0 else ''}{_finding(finding)}</tr>"
        for claim, own in found
        for index, finding in enumerate(own)
    ]
    return [
        "<p>Wu et al., <i>Extending Context Window of Large Language Models from a Distributional Perspective</i>, "
        "EMNLP 2024. Every number is read from a record under <code>results/</code>; brackets are 95 % intervals. "
        f"{escape(counts)}.</p>",
        "<h2>Claims</h2><table class=claims><tbody><tr><th>the paper's claim</th><th>measured on</th>"
        "<th>what came out</th><th>verdict</th></tr>",
        *rows,
        f"</tbody></table><p><small>{escape(_READING)}</small></p>",
    ]


def _claim(claim, rows: int) -> str:
    return f"<td rowspan={rows}><b>{escape(claim.text)}</b><br><small>{escape(claim.where)}</small></td>"


def _finding(finding: Finding) -> str:
    title = finding.scale.title if finding.scale else "–"
    lines = map(escape, finding_lines(finding))
    mark = _CLASSES[finding.verdict]
    return f"<td>{escape(title)}</td><td>{'<br>'.join(lines)}</td><td class='v {mark}'>{escape(finding.verdict)}</td>"


def _scale(measured: Results) -> list[str]:
    """A scale's figures and tables."""
    folder = root(measured.folder) / "figures" / measured.scale.name
    parts = [f"<h2>{escape(measured.scale.title)}</h2>", *map(_figure, sorted(folder.glob("*.png")))]
    for name in command.names():
        try:
            parts.append(html.render(command.build(name, measured)))
        except NotMeasured:
            continue
    return parts


def _figure(file: Path) -> str:
    data = base64.b64encode(file.read_bytes()).decode()
    name = escape(file.stem.replace("_", " "))
    return f"<figure><img alt='{name}' src='data:image/png;base64,{data}'><figcaption>{name}</figcaption></figure>"
