"""Training-step and inference time of every method, normalised to PI (the paper's time table).

    python -m experiments.time_cost --scale smollm2 --length 2048 --repeats 7

Methods are timed in turn, round after round, so that a machine that slows down slows all of them; the ratio to PI is
taken within each round, and the median and quartiles over the rounds are recorded.
"""

from __future__ import annotations

import time
from collections import defaultdict
from pathlib import Path

import numpy as np
import torch

from core.errors import InputError
from core.extend import extend
from experiments import cli, harness, models, records


def main() -> None:
    parser = harness.parser(__doc__, "time_cost")
    parser.add_argument("--length", type=int, default=2048, metavar="TOKENS", help="of a sequence (default 2048)")
    parser.add_argument("--repeats", type=int, default=7, metavar="N", help="rounds (default 7, after one warm-up)")
    arguments = parser.parse_args()
    if arguments.repeats < 1 or arguments.length < 2:
        raise InputError("give at least one repeat and two tokens.")

    evaluation = harness.Evaluation(arguments, "time_cost")
    comparison = evaluation.comparison()
    if "pi" not in [method for method, _ in comparison]:
        raise InputError("times are normalised to PI; put pi among the methods.")
    run = {
        "scale": evaluation.scale,
        "experiment": "time_cost",
        "factor": arguments.factor,
        "methods": [records.run_name(method, arguments.factor, options) for method, options in comparison],
        "model": models.provenance(evaluation.name),
        "dtype": arguments.dtype,
        "length": arguments.length,
        "repeats": arguments.repeats,
    }
    for _, options in comparison:
        run |= harness.weights(options)
    run["identity"] = records.identity(**run)
    file = records.path(arguments.results, evaluation.scale, "time_cost", f"s={arguments.factor:g}")
    if records.is_done(file, run["identity"]):
        print(f"done already: {file}")
        return
    started = time.perf_counter()
    scores = measure(evaluation.loaded.model, comparison, arguments.factor, arguments.length, arguments.repeats)
    print(records.write(Path(file), run | {"scores": scores, "seconds": round(time.perf_counter() - started, 1)}))


def measure(model, comparison: list[tuple[str, dict]], factor: float, length: int, repeats: int) -> list[dict]:
    """Seconds per training step (forward and backward) and per forward pass, and their ratios to PI."""
    tokens = torch.randint(
        model.config.get_text_config().vocab_size, (1, length), generator=torch.Generator().manual_seed(0)
    ).to(model.device)
    seconds: dict[tuple[str, str], list[float]] = defaultdict(list)
    for turn in range(repeats + 1):
        for method, options in comparison:
            extend(model, method, factor, **options)
            name = records.run_name(method, factor, options)
            for phase, work in (("train", _step), ("test", _forward)):
                taken = _seconds(work, model, tokens)
                if turn:  # the first round warms up
                    seconds[name, phase].append(taken)
    reference = next(records.run_name(m, factor, o) for m, o in comparison if m == "pi")
    found = []
    for (name, phase), taken in seconds.items():
        ratios = np.array(taken) / np.array(seconds[reference, phase])
        low, middle, high = np.percentile(ratios, [25, 50, 75])
        found.append(
            {"run": name, "phase": phase, "seconds": float(np.median(taken)), "rounds": len(taken)}
            | {"relative_to_pi": float(middle), "low": float(low), "high": float(high)}
        )
    return found


def _seconds(work, model, tokens: torch.Tensor) -> float:
    _finish()
    started = time.perf_counter()
    work(model, tokens)
    _finish()
    return time.perf_counter() - started


def _step(model, tokens: torch.Tensor) -> None:
    model.train()  # CLEX solves its ODE anew in every training step
    model(tokens, labels=tokens, use_cache=False).loss.backward()
    model.zero_grad(set_to_none=True)
    model.eval()


@torch.inference_mode()
def _forward(model, tokens: torch.Tensor) -> None:
    model(tokens, use_cache=False, logits_to_keep=1)


def _finish() -> None:
    if torch.cuda.is_available():
        torch.cuda.synchronize()


if __name__ == "__main__":
    cli.run(main)
