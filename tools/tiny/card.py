"""The model card of a base model that was trained here: its loss curve, its curriculum and its scores.

python -m tools.tiny.card --model tiny
"""

from __future__ import annotations

import json
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
from matplotlib.figure import Figure

from core.errors import InputError
from experiments.kit import command_line, journal, records
from tools.tiny.recipe import RECIPES, Recipe


def main() -> None:
    parser = command_line.parser(__doc__, prog="python -m tools.tiny.card")
    parser.add_argument("--model", default="tiny", help="the model (default tiny)")
    parser.add_argument(
        "--journal",
        type=Path,
        metavar="FILE",
        help="the training's journal, to keep beside the weights (default: journal.json there)",
    )
    arguments = parser.parse_args()
    directory = records.ROOT / "models" / arguments.model
    kept = directory / "journal.json"
    if arguments.journal:
        kept.write_text(_compact(journal.read(arguments.journal)))
    if not kept.exists():
        raise InputError(f"there is no journal at {kept}; give that of the training by --journal.")
    entries = json.loads(kept.read_text())
    plot(entries).savefig(directory / "loss.png", dpi=150)
    print(stages(RECIPES[arguments.model]), scores(records.RESULTS, arguments.model), sep="\n\n")


def _compact(entries: dict) -> str:
    """The entries as JSON, one per line."""
    lines = (f"{json.dumps(key)}: {json.dumps(_rounded(value))}" for key, value in entries.items())
    return "{\n" + ",\n".join(lines) + "\n}\n"


def _rounded(entry: dict) -> dict:
    return {key: round(value, 6) if isinstance(value, float) else value for key, value in entry.items()}


def plot(entries: dict) -> Figure:
    """The training loss, and the held-out accuracy of each kind, against the step."""
    losses = {int(key.split()[1]): value for key, value in entries.items() if key.startswith("step ")}
    scores = {int(key.split()[1]): value for key, value in entries.items() if key.startswith("scores ")}
    figure, (above, below) = plt.subplots(2, 1, figsize=(6.5, 5.6), sharex=True, layout="constrained")
    above.plot(list(losses), [value["loss"] for value in losses.values()], color="0.3", linewidth=0.8)
    above.set_ylabel("training loss (nats)")
    kinds = list(dict.fromkeys(kind for score in scores.values() for kind in score))
    for kind, colour in zip(
        (k for k in kinds if k not in ("length", "text")),
        plt.get_cmap("tab20").colors[::2] + plt.get_cmap("tab20").colors[1::2],
    ):
        own = {step: 100 * score[kind] for step, score in scores.items() if kind in score}
        below.plot(list(own), list(own.values()), color=colour, label=kind, marker=".")
    below.set(ylabel="held-out answers right (%)", xlabel="step", ylim=(-3, 103))
    figure.legend(*below.get_legend_handles_labels(), loc="outside lower center", fontsize=7, ncols=6)
    for axes in (above, below):
        previous = None
        for step, value in losses.items():
            if value["length"] != previous:
                axes.axvline(step, color="0.8", linewidth=0.8, zorder=0)
                if axes is above:
                    axes.text(step, above.get_ylim()[1], f"{value['length']} tokens", fontsize=7, va="bottom")
            previous = value["length"]
    return figure


def stages(recipe: Recipe) -> str:
    """The curriculum as a Markdown table."""
    kinds = list(dict.fromkeys(kind for stage in recipe.stages for kind in stage.mixture))
    head = ["tokens a row", "positions up to", "tokens read", "tokens a step", "questions a row", *kinds]
    rows = [
        [
            str(stage.length), str(max(stage.reach, stage.length)), f"{stage.tokens / 1e6:.2f} M", str(stage.batch),
            f"1-{stage.turns}",
            *(f"{100 * stage.mixture[kind]:.0f} %" if kind in stage.mixture else "" for kind in kinds),
        ]
        for stage in recipe.stages
    ]  # fmt: skip
    return "\n".join("| " + " | ".join(row) + " |" for row in [head, ["---"] * len(head), *rows])


def scores(results: Path, model: str) -> str:
    """The model's scores without any scaling method, from the records, as a Markdown table."""
    rows = []

    def add(what: str, score: dict, digits: int, times: int = 1) -> None:
        mean, low, high = (f"{times * score[end]:.{digits}f}" for end in ("mean", "low", "high"))
        rows.append(f"| {what} | {mean} [{low}, {high}] |")

    for record in _of_the_model(results, model, "passkey"):
        for row in record["scores"]["by_length"]:
            add(f"passkey at {row['length']:,} tokens, {row['n']} prompts, %", row, 0, 100)
    for record in _of_the_model(results, model, "ruler"):
        for length, tasks in record["scores"]["tasks"].items():
            for task, score in tasks.items():
                add(f"RULER `{task}` at {int(length):,} tokens, {score['n']} samples, %", score, 0)
    return "\n".join(["| | measured |", "|---|---|", *rows])


def _of_the_model(results: Path, model: str, experiment: str) -> list[dict]:
    """The records of the model without any scaling method."""
    files = sorted((Path(results) / model / experiment).glob("as-it-is*.json"))
    return [json.loads(file.read_text()) for file in files]


if __name__ == "__main__":
    command_line.run(main)
