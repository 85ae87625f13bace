"""What `make reproduce` made, where, and the numbers to look at first."""

from __future__ import annotations

from pathlib import Path

from experiments import cli, records, scales
from tables import common, extension


def build(results: Path) -> str:
    """The summary as text for a terminal."""
    lines = ["", "Made:"]
    for folder, suffixes in (("tables", (".tex",)), ("figures", (".pdf", ".png"))):
        files = sorted(f for f in (records.ROOT / folder).iterdir() if f.suffix in suffixes)
        names = sorted({f.stem for f in files})
        lines.append(f"  {folder}/*{{{','.join(suffixes)}}}: {', '.join(names)}")

    published = common.paper("disturbance").set_index(["method", "factor"])["disturbance_e3"]
    lines += ["", "Disturbance, 10^-3 nat (paper | recomputed, released convention, float32):"]
    for run in sorted(records.load(results, "llama2-7b", "disturbance"), key=lambda record: record["factor"]):
        cells = [
            f"{common.METHOD_NAMES[row['method']]} {published[row['method'], run['factor']]:.2f} | "
            f"{1e3 * row['average']:.2f}"
            for row in run["scores"]
            if row["precision"] == "float32" and row["method"] in ("pi", "yarn", "dprope") and not row["options"]
        ]
        lines.append(f"  s = {run['factor']:g}: " + ",  ".join(cells))

    runs = extension.comparison(results, "smollm2")
    spans = [f"{span['start'] // 1024}k-{span['end'] // 1024}k" for span in runs[0]["ranges"]]
    lines += ["", f"{scales.get('smollm2').title} extended without training, nats per token at {', '.join(spans)}:"]
    for run in runs:
        scores = "  ".join(f"{s['mean']:.3f} [{s['low']:.3f}, {s['high']:.3f}]" for s in run["ranges"])
        lines.append(f"  {records.run_name(run['method'], run['factor'], run['options']):<22} {scores}")
    return "\n".join(lines)


def main() -> None:
    parser = cli.parser(__doc__, prog="python -m tables.summary")
    cli.add_results_argument(parser)
    print(build(parser.parse_args().results))


if __name__ == "__main__":
    cli.run(main)
