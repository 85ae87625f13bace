"""A fine-tune, from its settings to its record: what it needs, what decides its result, how it is
trained, and what is written of it. The command is that of experiments.finetune."""

from __future__ import annotations

import dataclasses
import json
import statistics
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import torch
from transformers.utils import is_flash_attn_2_available

import records
from core import clex, extend, files, rope
from core.errors import InputError
from core.huggingface.embedding import rope_geometry
from experiments.base_models.model import Training
from experiments.kit import loading, processes, texts
from experiments.training import budget, state
from experiments.training import corpus as training_text
from experiments.training import trainer as trainers
from experiments.training.state import Output
from records import trained

if TYPE_CHECKING:
    from experiments.kit.command import Command

CHECKPOINTS = records.ROOT / "checkpoints"
# Settings that change how a run is computed, not its result.
_FREE = ("steps", "corpus", "device_batch", "checkpointing", "save_every")


@dataclass(frozen=True)
class Asked:
    """What a command line asks for.

    Attributes:
        name: of the run, which its record and by default its checkpoint have.
        options: the method's.
        factor: s.
        seed: of the data's order.
        length: tokens per sequence.
        steps: of the optimizer.
        training: the other settings.
    """

    name: str
    method: str
    options: dict
    factor: float
    seed: int
    length: int
    steps: int
    training: Training


def with_dtype(training: Training) -> Training:
    """The settings with a dtype, by default that of this machine; InputError if it lacks the one
    that is given."""
    default = trainers.default_dtype()
    if training.dtype == "bfloat16" and torch.cuda.is_available() and default != "bfloat16":
        raise InputError("this GPU has no bfloat16 arithmetic; give --dtype float32.")
    return dataclasses.replace(training, dtype=training.dtype or default)


def fine_tune(command: Command, asked: Asked) -> None:
    """Train, unless the checkpoint exists, and write its record."""
    command.model.source.check_access()
    # refuses a batch that cannot be divided
    budget.device_batch(asked.training, processes.expected())
    run = settings_of_run(command, asked)
    folder = command.arguments.output or CHECKPOINTS / command.model.folder / asked.name
    output = Output(folder, run)
    file = records.path(command.results, command.model.folder, command.name, asked.name)
    is_recorded = records.is_done(file, run, command.arguments.replace)
    command.check_model()
    if output.is_done:
        print(f"done already: {output.path}")
    else:
        files.check_writable(output.path.parent)
        loading.check_trainable(command.model.source, command.model.config)
        processes.start(records.program(command.name))
        try:
            train(command, output, asked.training)
        except BaseException as error:
            error.add_note(f"last checkpoint: {state.last(output.unfinished) or 'none'}")
            raise
    if processes.is_first() and not is_recorded:
        print(output.path)
        record(command, trained.read(output.path), run, file)


def print_needs(command: Command, asked: Asked) -> None:
    """Print what the run needs."""
    gpus = command.arguments.gpus or torch.cuda.device_count()
    config = command.model.architecture
    print(*budget.plan(config, asked.training, asked.length, asked.steps, gpus), sep="\n")
    if not gpus:
        print(f"expected      {hours_here(command, asked)}")


def hours_here(command: Command, asked: Asked) -> str:
    """The hours that a run takes on this CPU, by the records of those that trained this model on
    it."""
    config = command.model.architecture
    training = asked.training
    work = budget.flops(config, asked.length * training.batch * asked.steps, asked.length)
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


def settings_of_run(command: Command, asked: Asked) -> dict:
    """All that decides the result, as a file states it and in this order: a run's identity is its
    hash, and its manifest, training.json and record repeat it."""
    training = asked.training
    settings = dataclasses.asdict(training)
    configuration = command.model.config.to_dict()
    facts = {
        "scale": command.model.folder,
        "experiment": command.name,
        "method": asked.method,
        "factor": float(asked.factor),
        "options": asked.options,
        "seed": asked.seed,
        "length": asked.length,
        "steps": asked.steps,
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
        **records.of_method(command.model.geometry, asked.method, asked.factor, asked.options),
        **texts.bos_for_record(command.bos),
    }
    return json.loads(json.dumps(facts, default=str))


def train(command: Command, output: Output, training: Training) -> None:
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
            model = start(model, rope_geometry(model), settings["factor"])
        else:
            options = settings["options"]
            model = extend.extend(model, settings["method"], settings["factor"], **options)
        if sharded_bf16:
            clex.narrow(model, torch.bfloat16)  # ZeRO-3 wants one dtype
        if arguments.bf16 and is_flash_attn_2_available():
            model.set_attn_implementation("flash_attention_2")  # packed, so without a mask
        trainer = trainers.Trainer(model, arguments, data, manifest)
        trainer.train()
        facts = {
            "parameters": sum(getattr(p, "ds_numel", p.numel()) for p in model.parameters()),
            "data_facts": data.facts | {"order": data.order()},
            "ran_on": trainer.ran_on(),
        }
        tokenizer = loading.stock_tokenizer(command.model.source)
        with trainer.whole_model() as whole:
            if processes.is_first():
                output.finish(whole, tokenizer, trainer.state.log_history, facts)


def record(command: Command, facts: dict, run: dict, file: Path) -> None:
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
