"""Check that an engine computes what was exported: the loss of a book beyond L, by the engine and by transformers 5.

    python -m tools.beyond.engines --model smollm2               DPRoPE and YaRN, by every installed engine
    python -m tools.beyond.engines --engine vllm --model DIR     an export as it is

Both read the same token ids and score the last of --tokens, at most 1,024. The model without extension is scored too,
because an engine that silently drops the scaling computes that. Each engine runs in its own environment, which
`make env-serving` creates from requirements-serving/: vLLM as a server, the others by a small program. `transformers`
is this environment, in a fresh process. llama.cpp reads the model's own GGUF file, extended and in float32. Nothing is
recorded; results/MODEL/beyond/served/ holds what this check measured until commit 03e13ea.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import torch
from huggingface_hub.utils import httpx

from core import files, rope
from core.beyond.gguf_file import dequantised, extend_gguf
from core.errors import InputError
from core.extend import export, extend
from eval import special_tokens
from eval.endpoint import Endpoint
from eval.perplexity import window_losses
from experiments import base_models
from experiments.kit import command_line, records, texts
from experiments.kit.base_model import BaseModel
from experiments.kit.command_line import count, option

AT_MOST = 1024  # tokens to score
STARTS_WITHIN = 600  # seconds
ENVIRONMENTS = records.ROOT / "build" / "engines"
# By engine, the program that runs in its environment; vLLM is asked as a server.
ENGINES = {
    "transformers": "on_transformers.py",
    "transformers4.51": "on_transformers.py",
    "transformers4.57": "on_transformers.py",
    "vllm": "",
    "llama.cpp": "on_llama_cpp.py",
    "mlx": "on_mlx.py",
}


def main() -> None:
    arguments = _parse()
    name, factor = arguments.model, arguments.factor
    base = BaseModel(name, as_it_is=not arguments.method)
    length = arguments.tokens or base.context_length * 9 // 8
    if length <= base.context_length:
        raise InputError(f"tokens beyond L = {base.context_length} are scored; give --tokens above it.")
    scored = min(length - base.context_length, AT_MOST)
    tokenizer = base.tokenizer
    ids = texts.sequence(tokenizer, texts.books(1)[0], length, special_tokens.beginning(tokenizer, None))[:length]
    stated = max(round(base.context_length * factor), length + 1)
    request = {"ids": ids.tolist(), "scored": scored, "length": stated, "threads": os.cpu_count()}
    model = base.load("float32")
    as_it_is = _losses(model, ids, scored)
    for method, options in _settings(base, arguments):
        here = _losses(extend(model, method, factor, **options), ids, scored) if method else as_it_is
        with tempfile.TemporaryDirectory() as folder:
            if method:
                checkpoint = export(model, Path(folder) / "exported", base.stock_tokenizer())
            else:
                checkpoint = base.snapshot()
            for engine in _installed(arguments):
                if engine == "llama.cpp":
                    weights = _gguf(base, Path(folder) / "extended.gguf", method, factor, options)
                    if weights is None:
                        print("note: llama.cpp reads GGUF files, and these weights are none.")
                        continue
                else:
                    weights = checkpoint
                ask = ask_program if ENGINES[engine] else ask_vllm
                answer = ask(engine, arguments.environments, weights, request)
                row = [engine, answer["version"], records.run_name(method or "as-it-is", factor, options)]
                print(*row, differences(engine, answer["losses"], here, as_it_is if method else None), sep=", ")


def _parse():
    parser = command_line.parser(__doc__, prog="python -m tools.beyond.engines")
    base_models.add_argument(parser)
    methods = f"for a base model, {rope.PROPOSED} and {rope.BASELINE}; else the checkpoint as it is"
    command_line.add_method_arguments(parser, several=methods)
    every = f"engines to check: {', '.join(ENGINES)} (default: all that are installed)"
    parser.add_argument("--engine", nargs="+", choices=tuple(ENGINES), metavar="NAME", help=every)
    option(parser, "--environments", Path, "DIR", "where `make env-serving` installed the engines", ENVIRONMENTS)
    option(parser, "--tokens", count, "N", "tokens of the text to read (default: 9/8 L)")
    return parser.parse_args()


def _settings(base: BaseModel, arguments) -> list[tuple[str | None, dict]]:
    if arguments.method:
        return command_line.chosen_methods(arguments)
    if base.model:
        n_hat = base.model.n_hat.get(arguments.factor)
        return [(rope.PROPOSED, {"n_hat": n_hat} if n_hat else {}), (rope.BASELINE, {})]
    return [(None, {})]


def _installed(arguments) -> Iterator[str]:
    """The engines to run; InputError if one that was named is not installed."""
    for engine in arguments.engine or ENGINES:
        if python(engine, arguments.environments).is_file():
            yield engine
        elif arguments.engine:
            raise InputError(f"{engine} is not installed in {arguments.environments}; `make env-serving` installs it.")


def python(engine: str, environments: Path) -> Path:
    """The interpreter of an engine's environment; of `transformers`, this one."""
    return Path(sys.executable) if engine == "transformers" else environments.absolute() / engine / "bin" / "python"


def _losses(model, ids: torch.Tensor, scored: int) -> np.ndarray:
    (losses,) = window_losses(model, ids, [(0, len(ids), len(ids) - scored)])
    return losses


def _gguf(base: BaseModel, target: Path, method: str | None, factor: float, options: dict) -> Path | None:
    """The model's own GGUF file in float32, extended; None if its weights are not GGUF, or no method is given."""
    if method is None or not base.gguf_file:
        return None
    plain = dequantised(Path(base.source) / base.gguf_file, target.with_name("float32.gguf"))
    return Path(extend_gguf(plain, target, method, factor, **options))


def differences(engine: str, losses: list[float], here: np.ndarray, plain: np.ndarray | None) -> str:
    """The mean loss, and its largest difference in nats from transformers here, and without extension.

    Raises:
        InputError: a loss is missing or not finite.
    """
    if len(losses) != len(here) or not np.isfinite(losses).all():
        raise InputError(f"{engine} does not give a finite loss for every token.")
    words = f"mean loss {np.mean(losses):.4f}, largest difference {np.abs(losses - here).max():.1e}"
    return words if plain is None else f"{words}, without extension {np.abs(losses - plain).max():.1e}"


def ask_program(engine: str, environments: Path, weights: Path, request: dict) -> dict:
    """The answer of an engine's program: the losses and the version; its output goes to a log.

    Raises:
        InputError: the program gives no answer.
    """
    environments.mkdir(parents=True, exist_ok=True)
    log, program = environments / f"{engine}.log", Path(__file__).with_name(ENGINES[engine])
    with tempfile.TemporaryDirectory() as folder:
        answer = Path(folder) / "answer.json"
        files.write_json(Path(folder) / "request.json", request)
        command = [python(engine, environments), "-I", program, weights, Path(folder) / "request.json", answer]
        with open(log, "w", encoding="utf-8") as output:
            subprocess.run(list(map(str, command)), check=False, stdout=output, stderr=output, cwd=folder)
        if not answer.is_file():
            raise InputError(f"{engine} cannot serve the model: {_last_line(log)}; see {log}.")
        return files.read_json(answer, f"see {log}")


def ask_vllm(engine: str, environments: Path, weights: Path, request: dict) -> dict:
    """As :func:`ask_program`, by a server."""
    with serving(python(engine, environments), weights, request["length"], environments / f"{engine}.log") as url:
        endpoint = Endpoint(url, str(weights), BaseModel(str(weights)).config, scores=True)
        (scored,) = endpoint.scored([request["ids"]], [request["scored"]])
    version = re.search(r"\d+(\.\d+)+", endpoint.fingerprint)
    return {"losses": [-nats for nats, _ in scored], "version": version[0] if version else ""}


@contextlib.contextmanager
def serving(program: Path, weights: Path, length: int, log: Path) -> Iterator[str]:
    """The URL of a server of vLLM, which ends with the context, and with this process.

    Raises:
        InputError: it ends by itself, or does not answer in time.
    """
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    options = {"--model": weights, "--port": port, "--dtype": "float32", "--max-model-len": length,
               "--max-num-seqs": 1, "--max-num-batched-tokens": 1024}  # fmt: skip
    words = [program, "-m", "vllm.entrypoints.openai.api_server", "--enforce-eager", *sum(options.items(), ())]
    with open(log, "w", encoding="utf-8") as output:
        server = subprocess.Popen(
            list(map(str, words)), stdout=output, stderr=output, stdin=subprocess.DEVNULL,
            env=os.environ | {"VLLM_CPU_KVCACHE_SPACE": "4"},
            preexec_fn=lambda: ctypes.CDLL(None).prctl(1, signal.SIGTERM),  # PR_SET_PDEATHSIG
        )  # fmt: skip
    url, until = f"http://127.0.0.1:{port}/v1", time.monotonic() + STARTS_WITHIN
    try:
        while True:
            with contextlib.suppress(httpx.HTTPError):
                httpx.get(f"{url}/models", timeout=10, trust_env=False).raise_for_status()
                break
            if server.poll() is not None or time.monotonic() > until:
                raise InputError(f"vLLM does not serve the model: {_last_line(log)}; see {log}.")
            time.sleep(0.2)
        yield url
    finally:
        server.terminate()
        server.wait()


def _last_line(log: Path) -> str:
    lines = log.read_text(encoding="utf-8", errors="replace").strip().splitlines()
    return lines[-1] if lines else "it says nothing"


if __name__ == "__main__":
    command_line.run(main)
