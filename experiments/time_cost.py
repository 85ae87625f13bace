"""Training-step and inference time of every method, normalised to PI (the paper's time table).

    python -m experiments.time_cost --scale smollm2 --length 2048 --repeats 31

Every round times every method once, in an order of its own, so that a machine that slows down slows all of them. The
ratio to PI is taken within each round; the median over the rounds is recorded with its 95 % interval. PI is timed twice
a round: its second time against its first says what the clock alone makes of no difference.
"""

from __future__ import annotations

import random
import time
from pathlib import Path

import numpy as np
import torch
from scipy.stats import quantile_test
from tqdm import tqdm

from core.errors import InputError
from core.extend import extend
from experiments import cli, harness, models, records


def main() -> None:
    parser = harness.parser(__doc__, "time_cost")
    parser.add_argument("--length", type=int, default=2048, metavar="TOKENS", help="of a sequence (default 2048)")
    parser.add_argument("--repeats", type=int, default=31, metavar="N", help="rounds (default 31, after one warm-up)")
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
    settings = {records.run_name(method, factor, options): (method, options) for method, options in comparison}
    reference = next(name for name, (method, _) in settings.items() if method == "pi")
    settings[f"{reference}_again"] = settings[reference]
    seconds: dict[tuple[str, str], list[float]] = {(name, phase): [] for name in settings for phase in _PHASES}
    shuffled = random.Random(0)
    for turn in tqdm(range(repeats + 1), desc="rounds"):
        for name in shuffled.sample(list(settings), len(settings)):
            method, options = settings[name]
            extend(model, method, factor, **options)
            _forward(model, tokens)  # choosing pairs leaves caches cold; that is not what a step costs
            for phase, work in _PHASES.items():
                taken = _seconds(work, model, tokens)
                if turn:  # the first round warms up
                    seconds[name, phase].append(taken)
    return [
        {"run": name, "phase": phase, "seconds": float(np.median(taken)), "rounds": repeats}
        | _median_ratio(np.divide(taken, seconds[reference, phase]))
        for (name, phase), taken in seconds.items()
    ]


def _median_ratio(values: np.ndarray) -> dict[str, float]:
    """The median with its 95 % interval, from order statistics; of fewer than six values, too few for one, their range."""
    interval = (
        quantile_test(values, q=1, p=0.5).confidence_interval() if len(values) > 5 else (min(values), max(values))
    )
    return {"relative_to_pi": float(np.median(values)), "low": float(interval[0]), "high": float(interval[1])}


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


_PHASES = {"train": _step, "test": _forward}


def _finish() -> None:
    if torch.cuda.is_available():
        torch.cuda.synchronize()


if __name__ == "__main__":
    cli.run(main)
