"""Rehearse a scale's suite on this machine in minutes, on a made-up model of the same widths.

    python -m experiments.beyond.rehearse --model llama2-7b

The model has the scale's configuration and vocabulary, but few layers and random weights. Benchmarks are generated, and
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
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import psutil
import torch

from core import files, rope
from core.errors import InputError
from experiments.beyond import rehearsal
from experiments.kit import command_line, pool, records
from experiments.kit.plan import Chain, Plan
from experiments.training import checkpoint


def main() -> None:
    parser = command_line.parser(__doc__, prog="python -m experiments.beyond.rehearse")
    parser.add_argument("--model", default="llama2-7b", help="the scale to rehearse (default llama2-7b)")
    parser.add_argument("--whole", action="store_true", help="rehearse every model of the suite, not one of each kind")
    parser.add_argument("--replace", action="store_true", help="replace the records of a rehearsal by other code")
    arguments = parser.parse_args()
    started = time.monotonic()

    name, preset = rehearsal.get(arguments.scale)
    here, on_gpu = pool.Machine.found(), torch.cuda.is_available()
    if not on_gpu:
        here = here.single  # two fine-tunes of such widths side by side would need 20 GB
    output = records.ROOT / rehearsal.FOLDER / arguments.scale
    plan = Plan(
        name,
        preset,
        output,
        output / "results",
        quick=not on_gpu,
        methods=None if arguments.whole else kinds(),
        brief=not arguments.whole,
        replace=arguments.replace,
    )
    files.check_writable(output)
    logs, chains = output / "logs", plan.chains()
    with files.lock(output):
        _say(f"the model of {arguments.scale}'s widths")
        rehearsal.make(preset, output / "model", rehearsal.LAYERS if on_gpu else rehearsal.LAYERS_ON_CPU)
        pool.run(plan.miniature(), here.single, logs)
        _say("a fine-tune, killed after its first checkpoint")
        # Without a GPU, two processes train under ZeRO-3, as on two GPUs. With GPUs the command starts one for each.
        resumed = resume(next(chain for chain in chains if chain.trains), logs, processes=1 if on_gpu else 2)
        _say("the suite")
        pool.run([plan.alone(), *chains], here, logs)
        for chain in chains:
            pool.share(chain, plan.results / name)
        pool.run(plan.timing(), here.single, logs)
    print(f"rehearsed in {(time.monotonic() - started) / 60:.1f} minutes; not exercised here:")
    for what in missing(plan, resumed):
        print(f"- {what}")
    print(f"records in {plan.results}, which `make rehearse` renders now")


def kinds() -> list[str]:
    """The paper's own method, whose scaling is not learned, and the methods whose scaling is."""
    return [rope.OURS, *(name for name, method in rope.METHODS.items() if method.start)]


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
                one.kill()
    if process.wait() and not killed:
        lines = log.read_text(encoding="utf-8", errors="replace").splitlines()
        *_, last = ["no output", *(line.strip() for line in lines if re.search(r"\w", line))]
        raise InputError(f"the fine-tune failed ({last.removeprefix('error: ')}); see {log}.")
    return killed


def missing(plan: Plan, resumed: bool) -> Iterator[str]:
    """What this machine or this call did not exercise."""
    gpus = torch.cuda.device_count()
    if not gpus:
        yield "a GPU: NCCL, bfloat16, what fits in its memory, most prompts beyond L, side-by-side evaluations"
    elif gpus == 1:
        yield "several GPUs: NCCL, ZeRO-3, side-by-side evaluations"
    if not (gpus and importlib.util.find_spec("flash_attn")):
        yield "FlashAttention-2: PyTorch's own attention was used instead"
    if not gpus:
        yield "Liger's fused loss: the chunked loss was used instead"
    yield "the hub: the real weights, tokenizer, PG19 and benchmarks"
    if plan.brief:
        counts = f"of {_count(plan)} commands, {_count(plan, True)} ran"
        yield f"the suite's other models, which differ only in numbers ({counts})"
    if not resumed:
        yield "killing and resuming a fine-tune: it was finished before"


def _count(plan: Plan, as_asked: bool = False) -> int:
    chains = plan.chains() if as_asked else replace(plan, brief=False, methods=None).chains()
    return sum(len(chain.commands) for chain in [*chains, *plan.timing()])


if __name__ == "__main__":
    command_line.run(main)
