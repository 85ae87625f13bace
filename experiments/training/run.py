"""A fine-tune, from its settings to its record: what it needs, what decides its result, how it is
trained, and what is written of it. The command is that of experiments.finetune."""

import dataclasses
import json
import statistics
from pathlib import Path

import torch
from transformers.trainer_pt_utils import get_model_param_count
from transformers.utils import is_flash_attn_2_available

import records
from core import clex, extend, files, rope
from core.errors import InputError
from core.huggingface.embedding import rope_geometry
from experiments.base_models.model import Training
from experiments.kit import loading, processes, texts
from experiments.kit.command import Command
from experiments.training import budget, state
from experiments.training import corpus as training_text
from experiments.training import trainer as trainers
from experiments.training.state import Output
from records import trained

CHECKPOINTS = records.ROOT / "checkpoints"
# Settings that change how a run is computed, not its result.
_FREE = ("steps", "corpus", "device_batch", "checkpointing", "save_every")


def with_dtype(training: Training) -> Training:
    """The settings with a dtype, by default bfloat16 on a GPU that supports it, else float32.

    It is float32 on every CPU, because only some CPUs have bfloat16 and a run must not depend on
    the CPU.

    Raises:
        InputError: the settings state bfloat16, and this GPU does not support it.
    """
    on_gpu = torch.cuda.is_available()
    supported = on_gpu and torch.cuda.is_bf16_supported(including_emulation=False)
    if training.dtype == "bfloat16" and on_gpu and not supported:
        raise InputError("this GPU has no bfloat16 arithmetic; give --dtype float32.")
    return dataclasses.replace(
        training, dtype=training.dtype or ("bfloat16" if supported else "float32")
    )


def fine_tune(command: Command, name: str, asked: dict, training: Training) -> None:
    """Train, unless the checkpoint exists, and write its record. With --replace, train again; the
    checkpoint stays until the new one is there.

    Args:
        name: of the run, which its record and by default its checkpoint have.
        asked: what the command line asks for: the method, the factor, its options, the seed of the
            data's order, the length of a sequence and the steps of the optimizer.
        training: the other settings.
    """
    # refuses a batch that cannot be divided
    number = _processes(training)
    budget.device_batch(training, number)
    run = settings_of_run(command, asked, training)
    folder = command.arguments.output or CHECKPOINTS / command.model.folder / name
    output = Output(folder, run, command.arguments.replace)
    file = records.path(command.results, command.model.folder, command.name, name)
    is_recorded = records.is_done(file, run, command.arguments.replace)
    command.check_model()
    before = command.model.learned_from  # refuses a training.json that no fine-tune wrote
    if output.is_done:
        print(f"done already: {output.path}")
    else:
        files.check_writable(output.path.parent)
        loading.check_trainable(command.model.source, command.model.config)
        processes.start(records.program(command.name), number)
        try:
            train(command, output, training, before)
        except BaseException as error:
            error.add_note(f"last checkpoint: {state.last(output.unfinished) or 'none'}")
            raise
    if processes.is_first() and not is_recorded:
        print(output.path)
        record(command, trained.in_folder(output.path), run, file)


def _processes(training: Training) -> int:
    """How many processes train: those that a launcher started, else one for each GPU, or for as
    many of them as share a batch."""
    number = processes.expected()
    return number if processes.launched() else budget.sharing(training, number)


def print_needs(command: Command, training: Training, length: int, steps: int) -> None:
    """Print what the run needs."""
    gpus = budget.sharing(training, command.arguments.gpus or torch.cuda.device_count())
    config = command.model.architecture
    print(*budget.plan(config, training, length, steps, gpus), sep="\n")
    if not gpus:
        work = budget.flops(config, length * training.batch * steps, length)
        print(f"expected      {hours_here(command, training.dtype, work)}")


def hours_here(command: Command, dtype: str | None, work: float) -> str:
    """The hours that a run takes on this CPU, by the records of those that trained this model on
    it.

    Args:
        work: its floating-point operations.
    """
    device = records.environment()["device"]
    seconds = []
    for results in {command.results, records.OWN, records.RESULTS}:
        folder = records.folder(results, command.model.folder, command.name)
        for known in map(records.read, folder.glob("*.json")):
            run = known["run"]
            environment = known["environment"]
            if (environment.get("device"), run["dtype"]) == (device, dtype):
                tokens = known["scores"]["tokens"]
                done = budget.flops(command.model.architecture, tokens, run["length"])
                seconds.append(environment["seconds"] * work / done)
    if not seconds:
        return f"unknown: no training of this model in {dtype} is recorded of this CPU ({device})"
    hours = statistics.median(seconds) / 3600
    took = f"as this model's training took on {device} (records: {len(seconds)})"
    return f"{hours:.2g} hours, {took}"


def settings_of_run(command: Command, asked: dict, training: Training) -> dict:
    """All that decides the result, as a file states it and in this order: a run's identity is its
    hash, and its manifest, training.json and record repeat it."""
    configuration = command.model.config.to_dict()
    facts = {
        "scale": command.model.folder,
        "experiment": command.name,
        **asked,
        **{
            name: value
            for name, value in dataclasses.asdict(training).items()
            if name not in _FREE and value is not None
        },
        **_weights(training),
        "data": training_text.content(training.corpus),
        "model": command.model.identity,
        **{
            name: value
            for name, value in configuration.items()
            if name.endswith(loading.DROPOUT) and value
        },
        **records.of_method(
            command.model.geometry, asked["method"], asked["factor"], asked["options"]
        ),
        **texts.bos_for_record(command.bos),
    }
    return json.loads(json.dumps(facts, default=str))


def _weights(training: Training) -> dict:
    """The dtype of the weights that a fine-tune ends with, where it is not float32: ZeRO-3 in
    bfloat16 keeps float32 copies, and computes with rounded ones."""
    sharded = training.dtype == "bfloat16" and _processes(training) > 1
    return {"weights": "bfloat16"} if sharded else {}


def train(command: Command, output: Output, training: Training, before: list[dict]) -> None:
    """Train from the last checkpoint, or from the start, to the end; every process calls this.

    Args:
        before: the books that earlier fine-tunes of the model read.
    """
    settings = output.settings
    steps = settings["steps"]
    seed = settings["seed"]
    arguments = trainers.training_arguments(training, steps, seed, output.unfinished)
    with output.held():
        if output.is_done:  # another command finished it meanwhile
            return
        cache = command.results.resolve().parent / "runs" / "data"
        wanted = training_text.Wanted(
            training.corpus,
            settings["length"],
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
            extend.note(model, settings["method"], {})
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
            "parameters": get_model_param_count(model),
            "data_facts": data.facts | {"order": data.order()},
            "ran_on": trainer.ran_on(),
        }
        if before:
            facts["before"] = before
        tokenizer = loading.stock_tokenizer(command.model.source)
        with trainer.whole_model():
            if processes.is_first():
                output.finish(model, tokenizer, trainer.state.log_history, facts)


def record(command: Command, facts: dict, run: dict, file: Path) -> None:
    """Write the record of a finished run.

    Args:
        facts: its `training.json`.
        run: its settings.
    """
    read = facts["data_facts"]
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
            "epochs": round(sequences / read["sequences"], 3),
            "losses": losses,
        },
        # of the text: its tokens' hash, its books with their numbers of sequences, and the book of
        # each sequence in training order
        data_facts={name: read[name] for name in ("sha256", "books", "order")},
        seconds=seconds,
        # that of the training, which an earlier command may have done elsewhere
        environment=facts.get("environment"),
        of_machine={"ran_on": facts["ran_on"]},
    )
