"""Fine-tune a model whose RoPE a method has extended: the paper's training runs (section 4.1).

    python -m experiments.finetune --model tiny --method dprope --factor 2
    python -m experiments.finetune --model llama2-13b --method yarn --factor 4 --dry-run --gpus 8

The first command trains as the model's suite does, else on sequences of L' = s·L tokens with the
base model's settings; those of the llama2 models and of a model of your own are the paper's. DPRoPE
is the formula's, t = 0; the paper's experiments fine-tune it with --n-hat 80 at s = 2 and 64 at
s = 4. The second command only prints what a run needs.

Training uses a CPU, a GPU, or all GPUs under DeepSpeed ZeRO-3. It writes a stock checkpoint to
checkpoints/MODEL/RUN, which every evaluation takes as --model. Its record goes to
build/own/results/, and so do those of its evaluations. If a run is stopped or killed, the same
command resumes it, with the same result.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import statistics
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import records
from core import files, rope
from core.discovery import later
from core.errors import InputError
from core.setting import Setting
from experiments.base_models.model import Training
from experiments.kit import command_line, processes, texts
from experiments.kit.command import Command
from experiments.kit.command_line import count, number, option, two_or_more

if TYPE_CHECKING:
    import torch
    from transformers import utils as transformers_utils

    from core import clex, extend
    from core.huggingface import embedding
    from experiments.kit import loading
    from experiments.kit.model import Model
    from experiments.training import budget, state
    from experiments.training import corpus as training_text
    from experiments.training import trainer as trainers
    from experiments.training.state import Output
else:
    (
        torch,
        clex,
        extend,
        embedding,
        loading,
        budget,
        state,
        training_text,
        trainers,
        transformers_utils,
    ) = later(
        "torch",
        "core.clex",
        "core.extend",
        "core.huggingface.embedding",
        "experiments.kit.loading",
        "experiments.training.budget",
        "experiments.training.state",
        "experiments.training.corpus",
        "experiments.training.trainer",
        "transformers.utils",
    )

CHECKPOINTS = records.ROOT / "checkpoints"
# Settings that change how a run is computed, not its result.
_FREE = ("steps", "corpus", "device_batch", "checkpointing", "save_every")
# Settings of the base model that an option of the same name changes.
_STATED = (
    *("corpus", "per_book", "batch", "device_batch"),
    *("checkpointing", "learning_rate", "dtype"),
)


class FineTune(Command):
    """What it makes is a checkpoint, and its record says how the training went."""

    name = "finetune"
    unit = "training loss in nats per token"

    @staticmethod
    def add_arguments(parser: command_line.Parser) -> None:
        command_line.add_method_arguments(parser, several=rope.PROPOSED)
        parser.set_defaults(method=[rope.PROPOSED])
        option(parser, "--seed", command_line.seed, "N", "seed of the data's order", 0)
        option(
            parser,
            "--output",
            command_line.directory,
            "DIR",
            "the new checkpoint (default checkpoints/MODEL/RUN)",
        )
        data = (
            "train on the .txt or .parquet files in DIR; or on `hub` (PG19) or `books` (the "
            "packaged books)"
        )
        option(parser, "--corpus", str, "DIR", f"{data} (default: the base model's)")
        each = "at most N sequences of each book, from a place that the seed decides"
        option(parser, "--per-book", count, "N", f"{each} (default: all, one after the other)")
        texts.add_bos_argument(parser, "each text")
        group = parser.add_argument_group("settings (default: the base model's)")
        option(group, "--steps", count, "N", "optimizer steps")
        option(
            group,
            "--length",
            two_or_more,
            "TOKENS",
            "tokens per sequence (default L' = s·L; for CLEX, L)",
        )
        option(
            group,
            "--batch",
            count,
            "N",
            "sequences per step, on all devices together (for CLEX, s times as many)",
        )
        fitting = "sequences per device at a time"
        option(group, "--device-batch", count, "N", fitting)
        rate = "learning rate, constant without warm-up"
        option(group, "--learning-rate", number, "RATE", rate)
        dtype = (
            "dtype of matrix products (default bfloat16 on a GPU that supports it, else float32)"
        )
        group.add_argument("--dtype", choices=("float32", "bfloat16"), help=dtype)
        saving = "recompute activations to save memory"
        group.add_argument("--checkpointing", action=argparse.BooleanOptionalAction, help=saving)
        group = parser.add_argument_group("planning")
        group.add_argument(
            "--dry-run", action="store_true", help="print what the run needs and do nothing else"
        )
        option(group, "--gpus", count, "N", "A100s to plan for (default: as many as GPUs are here)")

    def __init__(self, arguments: argparse.Namespace, model: Model) -> None:
        super().__init__(arguments, model)
        self.results = arguments.results or records.OWN

    def run(self) -> None:
        """Train, unless the checkpoint exists, and write its record."""
        given = self.arguments
        method, options = self.setting()
        training = self.training()
        steps = given.steps or training.steps.get(self.factor)
        if not steps:
            raise InputError(f"no number of steps is set for s = {self.factor:g}; give --steps.")
        name = Setting.make(method, options, self.factor).run_name(given.seed)
        first = processes.rank()[0] == 0
        if first:
            print(f"run           {name}")
            print(f"method        {Setting.make(method, options).name}", flush=True)
        if given.dry_run:
            print_needs(self, training, steps)
            return

        self.check_place(name)
        self.model.source.check_access()
        # refuses a batch that cannot be divided
        budget.device_batch(training, processes.expected())
        facts = settings_of_run(self, method, options, training, steps)
        output = state.Output(given.output or CHECKPOINTS / self.model.folder / name, facts)
        file = records.path(self.results, self.model.folder, self.name, name)
        is_recorded = records.is_done(file, facts, given.replace)
        self.check_model()
        if output.is_done:
            print(f"done already: {output.path}")
        else:
            files.check_writable(output.path.parent)
            loading.check_trainable(self.model.source, self.model.config)
            processes.start(records.program(self.name))
            try:
                train(self, output, training)
            except BaseException as error:
                error.add_note(f"last checkpoint: {state.last(output.unfinished) or 'none'}")
                raise
        if first and not is_recorded:
            print(output.path)
            record(self, state.training(output.path), facts, file)

    def check_place(self, name: str) -> None:
        """As for evaluations; and a run of other settings than the suite's is none of it."""
        changed = {*_STATED, "steps", "length", "bos"} - {"device_batch", "checkpointing"}
        if any(getattr(self.arguments, option) is not None for option in changed):
            name = f"{name} with other settings"
        super().check_place(name)

    def setting(self) -> tuple[str, dict]:
        """The method and its options."""
        if len(self.arguments.method) > 1:
            raise InputError("a checkpoint is fine-tuned with one method; give --method one name.")
        ((method, options),) = command_line.chosen_methods(self.arguments)
        rope.check_fixed(method)
        if self.learns and options:
            raise InputError(f"the method {method!r} has no option {next(iter(options))!r} here.")
        # refuses a bad method, factor or option
        known = rope.TIME_REFERENCE if self.learns else method
        rope.scale(self.model.geometry, known, self.factor, **options)
        return method, options

    @property
    def learns(self) -> bool:
        """Whether the method learns its scaling, as CLEX does."""
        return bool(rope.get(self.arguments.method[0]).start)

    @property
    def length(self) -> int:
        """Tokens per sequence: L', but L for a method that learns its scaling, as CLEX's authors
        train it."""
        return self.arguments.length or (
            self.context_length if self.learns else self.extended_length
        )

    @property
    def default(self) -> Training:
        """The base model's settings."""
        return self.model.origin.training if self.model.origin else Training()

    def training(self) -> Training:
        """The base model's settings with the changes of the command line.

        A method that learns its scaling reads s times as many sequences of L tokens, so as many
        tokens as the others.
        """
        training = self.default
        if self.learns and not self.arguments.length:
            training = dataclasses.replace(training, batch=round(training.batch * self.factor))
        given = vars(self.arguments)
        stated = {name: given[name] for name in _STATED if given[name] is not None}
        training = dataclasses.replace(training, **stated)
        if (
            training.dtype == "bfloat16"
            and torch.cuda.is_available()
            and trainers.default_dtype() != "bfloat16"
        ):
            raise InputError("this GPU has no bfloat16 arithmetic; give --dtype float32.")
        return dataclasses.replace(training, dtype=training.dtype or trainers.default_dtype())

    def rows(self, scores: dict) -> Iterator[tuple[str, ...]]:
        yield "first step", f"{scores['first_loss']:.3f}"
        yield f"mean of the last {scores['final_steps']}", f"{scores['final_loss']:.3f}"


def print_needs(command: FineTune, training: Training, steps: int) -> None:
    """Print which pairs the method interpolates, and what the run needs."""
    if command.learns:
        divided = "what each pair is divided by is learned"
    else:
        geometry = command.model.geometry
        method, options = command.setting()
        scaling = rope.scale(geometry, method, command.factor, **options)
        divided = budget.pairs(geometry, scaling, command.factor)
    gpus = command.arguments.gpus or torch.cuda.device_count()
    print(f"method        {divided}")
    print(*budget.plan(command.model.architecture, training, command.length, steps, gpus), sep="\n")
    if not gpus:
        print(f"expected      {hours_here(command, training, steps)}")


def hours_here(command: FineTune, training: Training, steps: int) -> str:
    """The hours that a run takes on this CPU, by the records of those that trained this model on
    it."""
    config = command.model.architecture
    work = budget.flops(config, command.length * training.batch * steps, command.length)
    device = records.environment()["device"]
    seconds = []
    for results in {command.results, records.OWN, records.RESULTS}:
        folder = records.folder(results, command.model.folder, command.name)
        for file in sorted(folder.glob("*.json")):
            known = records.read(file)
            run = known["run"]
            environment = known["environment"]
            if environment.get("device") != device or run["dtype"] != training.dtype:
                continue
            done = budget.flops(config, known["scores"]["tokens"], run["length"])
            seconds.append(environment["seconds"] * work / done)
    if not seconds:
        return (
            f"unknown: no training of this model in {training.dtype} is recorded of this CPU "
            f"({device})"
        )
    hours = statistics.median(seconds) / 3600
    count = len(seconds)
    return f"{hours:.2g} hours, as this model's training took on {device} (records: {count})"


def settings_of_run(
    command: FineTune, method: str, options: dict, training: Training, steps: int
) -> dict:
    """All that decides the result, as a file states it and in this order: a run's identity is its
    hash, and its manifest, training.json and record repeat it."""
    settings = dataclasses.asdict(training)
    configuration = command.model.config.to_dict()
    facts = {
        "scale": command.model.folder,
        "experiment": command.name,
        "method": method,
        "factor": float(command.factor),
        "options": options,
        "seed": command.arguments.seed,
        "length": command.length,
        "steps": steps,
        **{
            name: value
            for name, value in settings.items()
            if name not in _FREE and value is not None
        },
        "data": training_text.content(training.corpus),
        "model": command.model.identity,
        **{
            name: value
            for name, value in configuration.items()
            if name.endswith(loading.DROPOUT) and value
        },
        **records.of_method(command.model.geometry, method, command.factor, options),
        **texts.bos_for_record(command.bos),
    }
    return json.loads(json.dumps(facts, default=str))


def train(command: FineTune, output: Output, training: Training) -> None:
    """Train from the last checkpoint, or from the start, to the end; every process calls this."""
    settings = output.settings
    length = settings["length"]
    steps = settings["steps"]
    seed = settings["seed"]
    arguments = trainers.training_arguments(training, steps, seed, output.unfinished)
    with output.held():
        if output.is_done:  # another command finished it meanwhile
            return
        cache = command.results.resolve().parent / "runs" / "data"
        wanted = training_text.Wanted(
            training.corpus,
            length,
            settings["batch"],
            steps,
            seed,
            command.bos,
            training.per_book,
        )
        data = training_text.pack(wanted, command.model.tokenizer, cache)
        manifest = output.begin(data.facts["sha256"])
        # ZeRO keeps a float32 master copy of its own.
        sharded_bf16 = arguments.deepspeed and arguments.bf16
        model = command.model.load("bfloat16" if sharded_bf16 else "float32")
        torch.manual_seed(seed)  # newly initialised matrices are the same in every process
        if start := rope.get(settings["method"]).start:
            model = start(model, embedding.rope_geometry(model), settings["factor"])
        else:
            options = settings["options"]
            model = extend.extend(model, settings["method"], settings["factor"], **options)
        if sharded_bf16:
            clex.narrow(model, torch.bfloat16)  # ZeRO-3 wants one dtype
        if arguments.bf16 and transformers_utils.is_flash_attn_2_available():
            model.set_attn_implementation("flash_attention_2")  # packed, so without a mask
        trainer = trainers.Trainer(model, arguments, data, manifest)
        trainer.train()
        facts = {
            "parameters": sum(getattr(p, "ds_numel", p.numel()) for p in model.parameters()),
            "data_facts": data.facts | {"order": data.order()},
            "ran_on": trainer.ran_on(),
        }
        output.finish(trainer, loading.stock_tokenizer(command.model.source), facts)


def record(command: FineTune, facts: dict, run: dict, file: Path) -> None:
    """Write the record of a finished run.

    Args:
        facts: its `training.json`.
        run: its settings.
    """
    losses = facts["losses"]
    last = losses[-max(1, len(losses) // 10) :]
    sequences = run["batch"] * run["steps"]
    tokens = run["length"] * sequences
    seconds = sum(facts["seconds_per_step"])
    command.finish(
        file,
        run,
        scores={
            "first_loss": losses[0],
            "final_loss": sum(last) / len(last),
            "final_steps": len(last),
            "tokens_per_second": round(tokens / seconds, 1),
            "parameters": facts["parameters"],
            "tokens": tokens,
            "epochs": round(sequences / facts["data_facts"]["sequences"], 3),
            "losses": losses,
        },
        data_facts=read_by(facts["data_facts"]),
        seconds=seconds,
        of_machine={"ran_on": facts["ran_on"]},
    )


def read_by(data_facts: dict) -> dict:
    """What a record says of the text that a fine-tune read: its tokens' hash, its books with their
    numbers of sequences, and the book of each sequence in training order."""
    return {name: data_facts[name] for name in ("sha256", "books", "order") if name in data_facts}


main = FineTune.main

if __name__ == "__main__":
    command_line.run(main)
