"""Which of YaRN's two parts helps: pairs and temperature, each with and without the other (tables/temperature.tex)."""

from __future__ import annotations

from pathlib import Path

from experiments import records, scales
from tables import common, perplexity
from tables.benchmarks import INTERVALS, STATES, Block, Row, Scores, comparable, over_seeds, stacked, tokens

CAPTION = (
    r"Beyond the paper: YaRN without its temperature (attention $\times 1.00$) and DPRoPE with it. Sliding-window "
    r"perplexity at $L$ and $L'$, and passkeys found at both, in per cent, "
    rf"{INTERVALS}; samples are windows and prompts."
)


def build(results: Path, scale: str) -> str:
    """LaTeX from the records of experiments.perplexity and experiments.passkey."""
    preset = scales.get(scale)
    blocks = []
    for trained, state in STATES:
        found = {
            experiment: {
                records.run_name(group[0]["method"], group[0]["factor"], group[0]["options"]): group
                for group in comparable(results, scale, experiment, trained)
            }
            for experiment in ("perplexity", "passkey")
        }
        for factor in preset.factors:
            n_hat = {"n_hat": preset.n_hat[factor]} if factor in preset.n_hat else {}
            rows = []
            without, with_it = preset.sharpened(factor)
            for method, options in (("yarn", {}), without, ("dprope", n_hat), with_it):
                name = records.run_name(method, factor, options)
                if all(name in groups for groups in found.values()):
                    title = common.method_name({"method": method, "options": options})
                    rows.append(Row(title, _scores(*(found[experiment][name] for experiment in found), preset, factor)))
            if any("attention" in row.name for row in rows):
                blocks.append(Block(f"{preset.title}, measured {state}, $s={factor:g}$", rows))
    return stacked("temperature", blocks, CAPTION, digits=2, best=None)


def _scores(perplexities: list[dict], passkeys: list[dict], preset: scales.Scale, factor: float) -> Scores:
    found = {}
    by_length = over_seeds([perplexity.scores(record) for record in perplexities])
    keys = over_seeds(
        [
            {
                tokens(row["length"]): {k: 100 * row[k] for k in ("mean", "low", "high")} | {"n": row["n"]}
                for row in rows
            }
            for rows in (record["scores"]["by_length"] for record in passkeys)
        ]
    )
    for score in keys.values():  # over seeds, an interval may pass what there is to find
        score["high"] = min(score["high"], 100.0)
    for kind, scores in (("perplexity", by_length), ("passkeys", keys)):
        for length in (preset.geometry.context_length, round(preset.geometry.context_length * factor)):
            if tokens(length) in scores:
                found[f"{kind}, {tokens(length)}"] = scores[tokens(length)]
    return found


if __name__ == "__main__":
    common.run("temperature", __doc__, "tiny", build)
