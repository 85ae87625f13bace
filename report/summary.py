"""What was rendered, where, and the numbers to look at first."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from analysis import results
from analysis.beyond import loss_by_position
from analysis.claims import claims
from analysis.claims.finding import VERDICTS
from analysis.comparison import in_comparison
from analysis.results import Results, root
from experiments.kit import command_line
from report import claims_page
from tables.kit.table import interval, number

_OUTPUTS = (("tables", ".tex"), ("figures", ".pdf"))


def build(folder: Path) -> str:
    """The summary as text for a terminal."""
    lines = ["", "Made:"]
    for measured in results.every(folder):
        lines += [f"  {line}" for line in _made(measured)]
    disturbance = claims()[0]
    for finding in (found for found in disturbance.findings(folder) if found.facts):
        lines += ["", f"{disturbance.text}, {finding.about}: {finding.verdict}"]
        lines += [f"  {claims_page.fact_line(fact)}" for fact in finding.facts]
    for measured in results.every(folder):
        lines += _losses(measured)
    found = claims_page.counts(claims_page.tested(folder))
    counts = ", ".join(f"{found[verdict]} {verdict}" for verdict in VERDICTS if found[verdict])
    return "\n".join([*lines, "", f"The paper's claims, model by model: {counts}. `make report` shows each."])


def _made(measured: Results) -> Iterator[str]:
    """A line for each kind of output of a model."""
    for kind, suffix in _OUTPUTS:
        names = sorted(file.stem for file in (root(measured.folder) / kind / measured.model.name).glob(f"*{suffix}"))
        if names:
            yield f"{kind}/{measured.model.name}/: {len(names)} {kind if len(names) > 1 else kind[:-1]}"
    if (measured.folder / measured.model.name / "README.md").is_file():
        yield f"results/{measured.model.name}/README.md"


def _losses(measured: Results) -> list[str]:
    """The comparison without training at each factor, by range of positions."""
    lines = []
    for factor in loss_by_position.measured_factors(measured):
        rows = loss_by_position.untrained(measured, factor).only(in_comparison(measured.model))
        if not rows:
            continue
        spans = ", ".join(loss_by_position.ranges(rows.first))
        lines += ["", f"{measured.model.title}, s = {factor:g}, without training, nats per token at {spans}:"]
        width = max(len(row.setting.name) for row in rows.rows)
        for row in rows.rows:
            scores = "  ".join(
                f"{number(s.mean, 3)} {interval(s, 3)}" for s in loss_by_position.ranges(row.first).values()
            )
            lines.append(f"  {row.setting.name:<{width}}  {scores}")
    return lines


def main() -> None:
    parser = command_line.parser(__doc__, prog="python -m report.summary")
    command_line.add_results_argument(parser)
    print(build(results.place(None, parser.parse_args().results)))


if __name__ == "__main__":
    command_line.run(main)
