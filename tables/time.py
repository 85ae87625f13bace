"""Training-step and inference time relative to PI (tables/time.tex)."""

from __future__ import annotations

import json
from pathlib import Path

from experiments import scales
from tables import common
from tables.benchmarks import Block, Row, published, stacked

CAPTION = (
    r"Time of a training step and of a forward pass relative to PI. Measured rows: median over rounds that time every "
    r"method once, in an order of their own, with its 95\,\% interval in brackets. \emph{PI, again} is PI timed a second "
    r"time in every round: what the clock makes of no difference."
)


def build(results: Path, scale: str) -> str:
    """LaTeX from the records of experiments.time_cost."""
    blocks = list(published("time"))
    for file in sorted((Path(results) / scale / "time_cost").glob("*.json")):
        record = json.loads(file.read_text())
        rows: dict[str, dict] = {}
        for row in record["scores"]:
            rows.setdefault(row["run"], {})[row["phase"]] = row | {"mean": row["relative_to_pi"]}
        title = f"{scales.get(scale).title}, measured at {record['length']} tokens, {record['scores'][0]['rounds']} rounds, $s={record['factor']:g}$"
        blocks.append(Block(title, [Row(_name(run), scores) for run, scores in rows.items()]))
    return stacked("time", blocks, CAPTION, digits=3, best=None)


def _name(run: str) -> str:
    """A run's name as records spell it, in print."""
    method, *options = run.split("_")
    (n_hat,) = [option for option in options if option.startswith("n-hat=")] or [""]
    again = ", again" if "again" in options else ""
    return common.METHOD_NAMES[method] + again + (rf" ($\hat n={n_hat.removeprefix('n-hat=')}$)" if n_hat else "")


if __name__ == "__main__":
    common.run("time", __doc__, "tiny", build)
