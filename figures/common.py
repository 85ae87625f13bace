"""What every figure shares: its command line, sizes, colours, and the same bytes for the same numbers."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
from matplotlib.figure import Figure

from experiments import cli, records

OUTPUT = records.ROOT / "figures"
COLUMN, PAGE = 3.3, 6.9  # widths in inches of a column and of a page of a two-column paper

# Okabe and Ito's colour-blind safe palette; line styles tell the methods apart in grey.
STYLES = {
    "original": {"color": "#000000", "linestyle": (0, (1, 1))},
    "pi": {"color": "#E69F00", "linestyle": "--"},
    "ntk": {"color": "#009E73", "linestyle": (0, (5, 1, 1, 1))},
    "yarn": {"color": "#0072B2", "linestyle": "-."},
    "clex": {"color": "#CC79A7", "linestyle": (0, (3, 1, 1, 1, 1, 1))},
    "dprope": {"color": "#D55E00", "linestyle": "-"},
    "dprope-significant": {"color": "#777777", "linestyle": (0, (7, 1.5))},
}
BY_HAND = {"color": "#56B4E9", "linestyle": (0, (4, 1))}  # DPRoPE with n̂ given
METHOD_NAMES = {
    "original": "original",
    "pi": "PI",
    "ntk": "NTK-aware",
    "yarn": "YaRN",
    "clex": "CLEX",
    "dprope": "DPRoPE",
    "dprope-significant": "DPRoPE, significant",
}


def label(run: dict) -> str:
    """What a record's method is called in a legend."""
    name = METHOD_NAMES[run["method"]]
    if run["method"] == "dprope":
        n_hat = run["options"].get("n_hat")
        name += " (t = 0)" if n_hat is None else f" (n̂ = {n_hat})"
    return name


def style(run: dict) -> dict:
    """How its line is drawn."""
    return BY_HAND if run["options"].get("n_hat") is not None else STYLES[run["method"]]


def use_style() -> None:
    """Small sans serif type, light grid, embedded fonts."""
    plt.rcParams.update(
        {
            "font.size": 8,
            "axes.titlesize": 8,
            "axes.labelsize": 8,
            "legend.fontsize": 7,
            "xtick.labelsize": 7,
            "ytick.labelsize": 7,
            "axes.spines.top": False,
            "axes.spines.right": False,
            "axes.grid": True,
            "grid.color": "#dddddd",
            "grid.linewidth": 0.5,
            "axes.axisbelow": True,
            "lines.linewidth": 1.2,
            "legend.frameon": False,
            "figure.constrained_layout.use": True,
            "pdf.fonttype": 42,
            "savefig.dpi": 300,
        }
    )


def save(figure: Figure, name: str, output: Path) -> None:
    """Write NAME.pdf and NAME.png without a date, so that the same records give the same files."""
    output.mkdir(parents=True, exist_ok=True)
    figure.savefig(output / f"{name}.pdf", metadata={"CreationDate": None})
    figure.savefig(output / f"{name}.png", metadata={"Software": None})
    plt.close(figure)
    print(*(os.path.relpath(output / f"{name}.{suffix}") for suffix in ("pdf", "png")))


def run(name: str, doc: str, default_scale: str, build: Callable[[Path, str], Figure]) -> None:
    """The command line of a figure: read records, write figures/<name>.pdf and .png."""

    def main() -> None:
        arguments = cli.rendering_arguments(doc, f"python -m figures.{name}", default_scale, OUTPUT)
        use_style()
        save(build(arguments.results, arguments.scale), name, arguments.output)

    cli.run(main)
