"""Rehearse a large model's suite on this machine in minutes, on a made-up model of the same widths.

    python -m experiments.beyond.rehearse --model llama2-7b

The made-up model has its configuration and vocabulary, but few layers and random weights. Benchmarks are generated, and
texts come from a package. First a fine-tune is killed and resumed. Then the suite's own commands run with very few
samples, for one model whose scaling is learned and one whose scaling is not (with --whole, for every model). If the
rehearsal succeeds, then environment, launch, memory layout, data formats, resuming, records and tables work here. Its
scores mean nothing; they are kept apart from measured ones, under build/rehearse/.
"""

from __future__ import annotations

import contextlib
import importlib.util
import os
import re
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from pathlib import Path

import psutil
import torch

from core import files
from core.errors import InputError
from experiments import suites
from experiments.base_models import llama2
from experiments.beyond import rehearsal
from experiments.kit import command_line, pool, records
from experiments.kit.pool import Chain
from experiments.suites import measure
from experiments.suites.commands import Suite, merged, step
from experiments.training import checkpoint

# Without --whole, one model of each kind: fine-tuned with a fixed scaling and with a learned one, and not fine-tuned;
# then what needs no weights.
BRIEF = "dprope_n-hat=80_s=2_seed=0", "clex_s=2_seed=0", "dprope_s=2", "disturbance", "angle_distribution"


def main() -> None:
    parser = command_line.parser(__doc__, prog="python -m experiments.beyond.rehearse")
    parser.add_argument("--model", default="llama2-7b", help="the model to rehearse (default llama2-7b)")
    parser.add_argument("--whole", action="store_true", help="rehearse every model of the suite, not one of each kind")
    parser.add_argument("--replace", action="store_true", help="replace the records of a rehearsal by other code")
    arguments = parser.parse_args()
    started = time.monotonic()

    name, preset = rehearsal.get(arguments.model)
    here, on_gpu = pool.Machine.found(), torch.cuda.is_available()
    if not on_gpu:
        here = here.single  # two fine-tunes of such widths side by side would need 20 GB
    output = records.ROOT / rehearsal.FOLDER / arguments.model
    suite = Suite(name, preset, output, output / "results", replace=arguments.replace, instead=smaller(output, on_gpu))
    modules = suites.find(arguments.model)
    whole, after = merged(measure.of_parts(modules, suite)), measure.alone(modules, suite, "after")
    chains = whole if arguments.whole else brief(whole)
    files.check_writable(output)
    logs = output / "logs"
    with files.lock(output):
        _say(f"the model of {arguments.model}'s widths")
        rehearsal.make(preset, output / "model", rehearsal.LAYERS if on_gpu else rehearsal.LAYERS_ON_CPU)
        pool.run([suite.generated(step("miniature"))], here.single, logs)
        _say("a fine-tune, killed after its first checkpoint")
        # Without a GPU, two processes train under ZeRO-3, as on two GPUs. With GPUs the command starts one for each.
        resumed = resume(next(chain for chain in chains if chain.trains), logs, processes=1 if on_gpu else 2)
        _say("the suite")
        pool.run(chains, here, logs)
        for chain in chains:
            pool.share(chain, suite.results / name)
        pool.run(after, here.single, logs)
    print(f"rehearsed in {(time.monotonic() - started) / 60:.1f} minutes; not exercised here:")
    for what in missing([*whole, *after], [*chains, *after], resumed):
        print(f"- {what}")
    print(f"records in {suite.results}, which `make rehearse MODEL={arguments.model}` renders now")


def smaller(output: Path, on_gpu: bool) -> dict[str, dict]:
    """The options that a rehearsal changes, by experiment.

    On a GPU it has the paper's lengths and layouts with very few samples. On a CPU, where L tokens of one layer take
    half a minute, prompts have a few hundred tokens, with one prompt per model that exceeds L.
    """
    beyond = llama2.GEOMETRY.context_length + 64
    items = {name: {"data": output / "miniature" / name} for name in ("longbench_e", "open_llm")}
    changed = {
        "finetune": {},
        "miniature": {"samples": 1, "documents": 5},
        "longbench_e": items["longbench_e"],
        "open_llm": {**items["open_llm"], "limit": 5},
        "ruler": {"samples": 1},
        "perplexity": {"books": 1, "tokens": 20480, "stride": 8192 - 256, "lengths": (8192, 16384)},
        "passkey": {"depths": 1, "keys": 1},
        "time_cost": {"repeats": 1},
    }
    on_cpu = {
        "finetune": {"length": 64, "batch": 2},
        "longbench_e": {"limit": 1, "tasks": ("qasper", "trec"), "window": 640, "margin": 128, "new_tokens": 4},
        "open_llm": {"limit": 1, "shots": 1},
        "ruler": {"lengths": (1024,), "tasks": ("vt",)},
        "perplexity": {"tokens": 384, "lengths": (256,), "stride": 128},
        "passkey": {"lengths": (256, beyond)},
        "time_cost": {"length": 64},
    }
    return changed if on_gpu else {name: options | on_cpu.get(name, {}) for name, options in changed.items()}


def brief(chains: Iterable[Chain]) -> list[Chain]:
    """The chains of BRIEF; a model that is not fine-tuned runs only its first evaluation."""
    chosen = {chain.name: chain for chain in chains if chain.name in BRIEF}
    return [chain if chain.trains else replace(chain, commands=chain.commands[:1]) for chain in chosen.values()]


def _say(what: str) -> None:
    print(f"{time.strftime('%H:%M')} {what}", file=sys.stderr, flush=True)


def resume(chain: Chain, logs: Path, processes: int = 1) -> bool:
    """Kill a chain's fine-tune once its first checkpoint is complete, and run the same command again.

    Args:
        processes: how many processes train together.

    Returns:
        False if the fine-tune was finished before.

    Raises:
        InputError: the fine-tune failed, or the second command did not resume from the checkpoint.
    """
    module, *options = chain.commands[0]
    output = Path(options[options.index("--output") + 1])
    if output.is_dir():
        return False
    launcher = ["torch.distributed.run", "--standalone", f"--nproc-per-node={processes}", "-m"] if processes > 1 else []
    command = [sys.executable, "-m", *launcher, module, *options, "--save-every", "1"]
    log = logs / f"{chain.name}.log"
    logs.mkdir(parents=True, exist_ok=True)
    folder = Path(f"{output}.unfinished")
    _train(command, log, until=lambda: checkpoint.last(folder) is not None)
    first = checkpoint.last(folder)
    if output.is_dir() or first is None:
        raise InputError(f"a fine-tune that was killed left no checkpoint in {folder}; see {log}.")
    manifest = first / checkpoint.MANIFEST
    written = manifest.stat().st_mtime_ns

    def begins_anew() -> bool:
        with contextlib.suppress(FileNotFoundError):  # the next checkpoint has replaced it
            return manifest.stat().st_mtime_ns != written
        return False

    if _train(command, log, until=begins_anew):
        raise InputError(f"a fine-tune that was killed did not go on from {first}; see {log}.")
    return True


def _train(command: list[str], log: Path, until: Callable[[], bool]) -> bool:
    """Run a command to its end, or kill it and the processes it started once `until()` is true.

    Returns:
        whether it was killed.

    Raises:
        InputError: the command failed.
    """
    environment = os.environ | {"OMP_NUM_THREADS": str(max((os.cpu_count() or 2) // 2, 1))}  # two processes may run
    with open(log, "a", encoding="utf-8") as out:
        process, killed = psutil.Popen(command, stdout=out, stderr=out, cwd=records.ROOT, env=environment), False
        try:
            while process.poll() is None and not (killed := until()):
                time.sleep(0.2)
        finally:
            for one in [*process.children(recursive=True), process] if process.poll() is None else ():
                with contextlib.suppress(psutil.NoSuchProcess):  # ended since it was listed
                    one.kill()
    if process.wait() and not killed:
        lines = log.read_text(encoding="utf-8", errors="replace").splitlines()
        *_, last = ["no output", *(line.strip() for line in lines if re.search(r"\w", line))]
        raise InputError(f"the fine-tune failed ({last.removeprefix('error: ')}); see {log}.")
    return killed


def missing(whole: list[Chain], ran: list[Chain], resumed: bool) -> Iterator[str]:
    """What this machine or this call did not exercise, of the chains of the whole suite."""
    gpus = torch.cuda.device_count()
    if not gpus:
        yield "a GPU: bfloat16, what fits in its memory, most prompts beyond L, Liger's fused loss"
    if gpus < 2:
        yield "several GPUs: NCCL, ZeRO-3, side-by-side evaluations"
    if not (gpus and importlib.util.find_spec("flash_attn")):
        yield "FlashAttention-2: PyTorch's own attention was used instead"
    yield "the hub: the real weights, tokenizer, PG19 and benchmarks"
    commands, done = (sum(len(chain.commands) for chain in chains) for chains in (whole, ran))
    if done < commands:
        yield f"the suite's other models, which differ only in numbers (of {commands} commands, {done} ran)"
    if not resumed:
        yield "killing and resuming a fine-tune: it was finished before"


if __name__ == "__main__":
    command_line.run(main)
