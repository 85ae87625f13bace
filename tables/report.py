"""The report: each claim of the paper beside what was measured, with every table and figure, as one HTML file.

    python -m tables.report

reads records, tables/*.tex and figures/*.png, and writes report/index.html, which needs nothing else to be read.
"""

from __future__ import annotations

import base64
import html
from pathlib import Path

from experiments import cli, records, scales
from tables import audit, reasons
from tables import html as latex
from tables.claims import CLAIMS
from tables.comparisons import EXACT, KIND, NONE, NOT

OUTPUT = records.ROOT / "report"
_MARKS = {EXACT: "exact", KIND: "kind", NOT: "no", NONE: "none"}
_DIFFERENCES = (
    ("direction of the KL", "equation (7): KL(P_L' ‖ P_L)", "KL(P_L ‖ P_L')", "the published table needs the code's"),
    ("ε", "“extremely small”, on frequencies", "6.1e-5 on each count", "equation (7) depends on it strongly"),
    ("“Ours” in the disturbance table", "n̂ = 80 / 64 by section 4.1", "argmin, t = 0", "the table is the argmin's"),
    ("YaRN's ramp", "linear in rotations", "–", "the published 25.55 / 35.44 need the official index-space ramp"),
)
_STYLE = """
body{font:15px/1.45 system-ui,sans-serif;max-width:70rem;margin:2rem auto;padding:0 1rem;color:#1a1a1a}
h1{font-size:1.6rem;margin-bottom:.2rem}h2{margin-top:2.2rem;border-bottom:1px solid #ccc;font-size:1.2rem}
table{border-collapse:collapse;margin:1rem 0;font-size:.82rem;display:block;overflow-x:auto}
caption{text-align:left;padding-bottom:.4rem;color:#444}td,th{padding:.18rem .55rem;text-align:right;white-space:nowrap}
td:first-child,th:first-child{text-align:left}tr.rule td,tr.rule th{border-top:1px solid #999}
.claims td{border-top:1px solid #ddd}
.claims td,.words td,.claims th,.words th{white-space:normal;text-align:left;vertical-align:top}
small{color:#666}figure{margin:1.2rem 0}figure img{max-width:100%;height:auto}figcaption{color:#444;font-size:.85rem}
.v{font-weight:600;white-space:nowrap}.exact{color:#00664d}.kind{color:#0072B2}.no{color:#b03a00}.none{color:#777}
"""


def build(results: Path, tables: Path, figures: Path) -> str:
    """The whole page."""
    found = {claim: claim.findings(results) for claim in CLAIMS}
    counts = {verdict: sum(f.verdict == verdict for own in found.values() for f in own) for verdict in _MARKS}
    rows = []
    for claim, own in found.items():
        for index, finding in enumerate(own):
            title = scales.SCALES[finding.scale].title if finding.scale in scales.SCALES else finding.scale
            head = f"<td rowspan={len(own)}><b>{_e(claim.text)}</b><br><small>{_e(claim.where)}</small></td>"
            rows.append(
                f"<tr>{head if index == 0 else ''}<td>{_e(title)}</td><td>{_e(finding.measured)}</td>"
                f"<td class='v {_MARKS[finding.verdict]}'>{finding.verdict}</td></tr>"
            )
    checks = audit.findings()
    failed = [check for check in checks if not check.holds]
    parts = [
        "<!doctype html><html lang=en><meta charset=utf-8><meta name=viewport content='width=device-width'>",
        f"<title>DPRoPE, reproduced</title><style>{_STYLE}</style><h1>DPRoPE, reproduced</h1>",
        (
            "<p>Wu et al., <i>Extending Context Window of Large Language Models from a Distributional Perspective</i>, "
            "EMNLP 2024. Every number is read from a record under <code>results/</code>; brackets are 95 % intervals. "
            f"{'; '.join(f'{count} {verdict}' for verdict, count in counts.items() if count)}.</p>"
        ),
        "<h2>Claims</h2><table class=claims><tr><th>the paper's claim<th>measured on<th>what came out<th>verdict</tr>",
        *rows,
        (
            "</table><p><small>“Reproduced exactly”: the paper's own numbers. “In kind”: the same finding on another model, "
            "beyond the interval's noise, for every factor measured. A comparison takes DPRoPE's better variant (t = 0 or the "
            "scale's n̂) against the best rival; where there are several training seeds it is paired by seed, on the same samples, "
            "and its interval is that of training alone. The paper's own scores need its models and eight A100s.</small></p>"
        ),
        "<h2>Where methods fail, and why</h2><p>Beyond the paper; with intervals in the tables below.</p><ul>",
        *(f"<li>{_e(scales.get(scale).title)}, {_e(sentence)}</li>" for scale, sentence in reasons.sentences(results)),
        "</ul>",
        "<h2>The paper against its released code</h2><table class=words><tr><th><th>paper<th>released code<th>finding</tr>",
        *("<tr>" + "".join(f"<td>{_e(cell)}</td>" for cell in line) + "</tr>" for line in _DIFFERENCES),
        (
            f"</table><h2>The paper against itself</h2><p>{len(checks)} averages, bold entries, repeated rows and claims were "
            f"derived again from the published tables; {len(checks) - len(failed)} agree.</p>"
        ),
        latex.tables((tables / "audit.tex").read_text()),
        "<h2>Figures</h2>",
        *(_figure(file) for file in sorted(figures.glob("*.png"))),
        "<h2>Tables</h2>",
        *(latex.tables(file.read_text()) for file in sorted(tables.glob("*.tex")) if file.stem != "audit"),
        "</html>",
    ]
    return "\n".join(parts)


def _figure(file: Path) -> str:
    data = base64.b64encode(file.read_bytes()).decode()
    name = file.stem.replace("_", " ")
    return f"<figure><img alt='{name}' src='data:image/png;base64,{data}'><figcaption>{name}</figcaption></figure>"


def _e(text: str) -> str:
    return html.escape(text, quote=False)


def main() -> None:
    parser = cli.parser(__doc__, prog="python -m tables.report")
    parser.add_argument("--output", type=cli.directory, default=OUTPUT, metavar="DIR", help="default report/")
    cli.add_results_argument(parser)
    arguments = parser.parse_args()
    page = build(arguments.results, records.ROOT / "tables", records.ROOT / "figures")
    arguments.output.mkdir(parents=True, exist_ok=True)
    (arguments.output / "index.html").write_text(page)
    print(arguments.output / "index.html")


if __name__ == "__main__":
    cli.run(main)
