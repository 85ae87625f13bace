"""What every table shares: its command line, number formats and LaTeX with booktabs."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pandas as pd

from experiments import cli, records

OUTPUT = records.ROOT / "tables"
SIZE = r"\small\setlength{\tabcolsep}{3pt}"  # of print and of the space between columns
METHOD_NAMES = {
    "original": "Original",
    "pi": "PI",
    "ntk": "NTK-aware",
    "yarn": "YaRN",
    "clex": "CLEX",
    "dprope": "DPRoPE",
    "dprope-significant": "DPRoPE, significant",
}


def method_name(record: dict) -> str:
    """How a method and its options are called in print."""
    name = METHOD_NAMES[record["method"]]
    if record["method"] == "dprope":
        symbols = {"n_hat": r"\hat n", "intervals": "b"}
        given = [f"${symbols[option]}={value}$" for option, value in record["options"].items() if option in symbols]
        name += f" ({', '.join(given) or '$t=0$'})"
    if "attention_factor" in record["options"]:
        name += rf", attention $\times {record['options']['attention_factor']:.2f}$"
    return name


def paper(table: str) -> pd.DataFrame:
    """The paper's published numbers: results/paper/<table>.csv."""
    return pd.read_csv(records.RESULTS / "paper" / f"{table}.csv")


def interval(score: dict, digits: int = 2) -> str:
    """A mean with its 95 % interval in small print."""
    mean, low, high = (f"{score[key]:.{digits}f}".replace("-", "$-$") for key in ("mean", "low", "high"))
    return rf"{mean} {{\scriptsize[{low}, {high}]}}"


def bold(text: str) -> str:
    """A cell with its value in bold; an interval behind it stays as it is, which saves the width."""
    value, space, rest = text.partition(" ")
    return rf"\textbf{{{value}}}{space}{rest}"


def narrower(table: str) -> str:
    """The same table in smaller print, where its cells would push it off the page."""
    return table.replace(SIZE, r"\footnotesize\setlength{\tabcolsep}{2pt}", 1)


def latex(frame: pd.DataFrame, caption: str, label: str, column_format: str, wide: bool = False) -> str:
    """A floating booktabs table; cells, headers and caption are LaTeX already."""
    text = frame.style.hide(axis="index").to_latex(
        hrules=True,
        column_format=column_format,
        multicol_align="c",
        caption=caption,
        label=label,
        position_float="centering",
        environment="table*" if wide else "table",
    )
    return text.replace("\\centering\n", f"\\centering\n{SIZE}\n", 1)


def run(name: str, doc: str, default_scale: str, build: Callable[[Path, str], str]) -> None:
    """The command line of a table: read records, write tables/<name>.tex."""

    def main() -> None:
        arguments = cli.rendering_arguments(doc, f"python -m tables.{name}", default_scale, OUTPUT)
        text = build(arguments.results, arguments.scale)
        arguments.output.mkdir(parents=True, exist_ok=True)
        file = arguments.output / f"{name}.tex"
        file.write_text(text)
        print(os.path.relpath(file))

    cli.run(main)
