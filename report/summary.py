"""The numbers to look at first, and how many claims have which verdict."""

from __future__ import annotations

from pathlib import Path

from analysis import results
from analysis.claims import claims
from analysis.claims.finding import VERDICTS
from analysis.comparison import compared, in_comparison
from analysis.metrics import perplexity
from analysis.results import Results
from analysis.settings import extended_length, tokens
from experiments.kit import command_line
from report import claims_page
from report.model_view import shown


def build(folder: Path) -> str:
    """The summary as text for a terminal."""
    lines = []
    disturbance = claims()[0]
    for finding in (finding for finding in disturbance.findings(folder) if finding.facts):
        lines += ["", f"{disturbance.text}, {finding.about}: {finding.verdict}"]
        lines += [f"  {claims_page.fact_line(fact)}" for fact in finding.facts]
    for measured in results.every(folder):
        lines += _perplexities(measured)
    verdicts = claims_page.counts(claims_page.tested(folder))
    counts = ", ".join(f"{verdicts[verdict]} × {verdict}" for verdict in VERDICTS if verdicts[verdict])
    return "\n".join([*lines, "", f"The paper's claims, model by model: {counts}. `make report` shows each."])


def _perplexities(measured: Results) -> list[str]:
    """The comparison without training at each factor, by its perplexity at L'."""
    rows = compared(measured, "perplexity", trained=False).only(in_comparison(measured.model)).rows
    lines = []
    for factor in sorted({row.setting.factor for row in rows}):
        length = tokens(extended_length(measured, factor))
        scores = {row.setting.name: row.scores(perplexity) for row in rows if row.setting.factor == factor}
        lines += ["", f"{measured.model.title}, s = {factor:g}, without training, perplexity at {length}:"]
        width = max(map(len, scores))
        lines += [f"  {name:<{width}}  {shown(score[length])}" for name, score in scores.items() if length in score]
    return lines


def main() -> None:
    parser = command_line.parser(__doc__, prog="python -m report.summary")
    command_line.add_results_argument(parser)
    print(build(results.folder_of(None, parser.parse_args().results)))


if __name__ == "__main__":
    command_line.run(main)
