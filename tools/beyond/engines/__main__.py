"""Check that an engine computes what was exported: the loss of a book beyond L, by the engine and
by transformers 5.

    python -m venv build/mlx && build/mlx/bin/pip install -r requirements-serving/mlx.lock
    python -m tools.beyond.engines --model smollm2 --engine mlx --python build/mlx/bin/python

Both read the same token ids and score the last of --tokens, at most 1,024. The model without
extension is scored too, because an engine that silently drops the scaling computes that. An engine
runs a small program in an environment of its own. llama.cpp reads the model's own GGUF file,
extended and in float32. Nothing is recorded; results/MODEL/beyond/served/ holds what this check
measured until commit 03e13ea.
"""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import torch

import records
from core import files, rope
from core.beyond.gguf_file import dequantised, extend_gguf
from core.errors import InputError
from core.extend import export, extend
from eval import special_tokens
from eval.perplexity import window_losses
from experiments import base_models
from experiments.kit import command_line, texts
from experiments.kit.checkpoint import Checkpoint
from experiments.kit.command_line import count, option

AT_MOST = 1024  # tokens to score
PROGRAMS = {
    "transformers": "on_transformers.py",
    "llama.cpp": "on_llama_cpp.py",
    "mlx": "on_mlx.py",
}


def main() -> None:
    arguments = _parse()
    factor = arguments.factor
    base = Checkpoint(arguments.model, as_it_is=not arguments.method)
    length = arguments.tokens or base.context_length * 9 // 8
    if length <= base.context_length:
        raise InputError(
            f"tokens beyond L = {base.context_length} are scored; give --tokens above it."
        )
    scored = min(length - base.context_length, AT_MOST)
    tokenizer = base.tokenizer
    bos = special_tokens.beginning(tokenizer, None)
    ((ids,),) = texts.sequences(tokenizer, texts.books(1), length, bos).values()
    ids = ids[:length]
    model = base.load("float32")
    as_it_is = _losses(model, ids, scored)
    for method, options in _settings(base, arguments):
        here = (
            _losses(extend(model, method, factor, **options), ids, scored) if method else as_it_is
        )
        longest = max(round(base.context_length * factor), length + 1)
        request = {
            "ids": ids.tolist(),
            "scored": scored,
            "length": longest,
            "threads": os.cpu_count(),
        }
        with tempfile.TemporaryDirectory() as folder:
            if not method:
                weights = base.snapshot()
            elif arguments.engine == "llama.cpp":
                weights = _gguf(base, Path(folder) / "extended.gguf", method, factor, options)
            else:
                weights = export(model, Path(folder) / "exported", base.stock_tokenizer())
            answer = ask_program(arguments.engine, arguments.python, weights, request, Path(folder))
        row = [
            arguments.engine,
            answer["version"],
            records.run_name(method or "as-it-is", factor, options),
        ]
        print(*row, differences(answer["losses"], here, as_it_is if method else None), sep=", ")


def _parse():
    parser = command_line.parser(__doc__, prog="python -m tools.beyond.engines")
    base_models.add_argument(parser)
    methods = f"for a base model, {rope.PROPOSED} and {rope.BASELINE}; else the checkpoint as it is"
    command_line.add_method_arguments(parser, several=methods)
    parser.add_argument(
        "--engine", choices=tuple(PROGRAMS), required=True, help="the engine to check"
    )
    option(
        parser,
        "--python",
        Path,
        "PATH",
        "the interpreter that has the engine",
        Path(sys.executable),
    )
    option(parser, "--tokens", count, "N", "tokens of the text to read (default: 9/8 L)")
    return parser.parse_args()


def _settings(base: Checkpoint, arguments) -> list[tuple[str | None, dict]]:
    if arguments.method:
        return [*command_line.chosen_methods(arguments)]
    if base.model:
        n_hat = base.model.n_hat.get(arguments.factor)
        return [(rope.PROPOSED, {"n_hat": n_hat} if n_hat else {}), (rope.BASELINE, {})]
    return [(None, {})]


def _losses(model, ids: torch.Tensor, scored: int) -> np.ndarray:
    (losses,) = window_losses(model, ids, [(0, len(ids), len(ids) - scored)])
    return losses


def _gguf(base: Checkpoint, target: Path, method: str, factor: float, options: dict) -> Path:
    """The model's own GGUF file in float32, extended."""
    if not base.gguf_file:
        raise InputError(
            "llama.cpp reads GGUF files, and these weights are none; give --model one that is."
        )
    plain = dequantised(Path(base.source) / base.gguf_file, target.with_name("float32.gguf"))
    return Path(extend_gguf(plain, target, method, factor, **options))


def differences(losses: list[float], here: np.ndarray, plain: np.ndarray | None) -> str:
    """The mean loss, and its largest difference in nats from transformers here, and without
    extension.

    Raises:
        InputError: a loss is missing or not finite.
    """
    if len(losses) != len(here) or not np.isfinite(losses).all():
        raise InputError(
            "the engine does not give a finite loss for every token; try another version of it."
        )
    words = f"mean loss {np.mean(losses):.4f}, largest difference {np.abs(losses - here).max():.1e}"
    return (
        words if plain is None else f"{words}, without extension {np.abs(losses - plain).max():.1e}"
    )


def ask_program(engine: str, python: Path, weights: Path, request: dict, folder: Path) -> dict:
    """The answer of an engine's program: the losses and the version.

    Args:
        python: the interpreter that runs it.
        folder: where the request and the answer go.

    Raises:
        InputError: the program gives no answer.
    """
    answer = folder / "answer.json"
    program = Path(__file__).with_name(PROGRAMS[engine])
    files.write_json(folder / "request.json", request)
    command = [python.absolute(), "-I", program, weights, folder / "request.json", answer]
    try:
        done = subprocess.run(
            list(map(str, command)), check=False, capture_output=True, text=True, cwd=folder
        )
    except OSError as error:
        raise InputError(
            f"{python} does not run ({error}); give --python an interpreter that has {engine}."
        ) from error
    if not answer.is_file():
        reason = (done.stderr.strip().splitlines() or ["it says nothing"])[-1]
        raise InputError(f"{engine} cannot serve the model: {reason}.")
    return files.read_json(answer, "run the check again")


if __name__ == "__main__":
    command_line.run(main)
