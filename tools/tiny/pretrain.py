"""Train a small base model from scratch: a tokenizer, a curriculum of generated tasks and books,
and the weights.

    python -m tools.tiny.pretrain --corpus DIR

DIR holds parquet files (column `text`) or .txt files. If a run is killed, the same command resumes
it from its last checkpoint. A finished run is left alone.
"""

import dataclasses
import hashlib
import json
from pathlib import Path

import torch
import transformers
from transformers import LlamaConfig, TrainingArguments

import records
from core import files
from experiments.kit import command_line
from experiments.kit.command_line import option
from experiments.training import state, trainer
from tools.tiny import corpus, curriculum, network
from tools.tiny.miniature import Source
from tools.tiny.muon import Muon
from tools.tiny.recipe import TINY, Recipe

BETAS = 0.9, 0.95  # AdamW's
SEED = 0  # of the weights and the batches
TRAINED_BY = "tools/tiny/**/*.py", "experiments/training/*.py"


def main() -> None:
    parser = command_line.parser(__doc__, prog="python -m tools.tiny.pretrain")
    books = "train on the parquet or .txt files in DIR"
    parser.add_argument(
        "--corpus", type=command_line.existing_directory, required=True, metavar="DIR", help=books
    )
    default = records.ROOT / "build" / "tiny"
    option(parser, "--output", command_line.directory, "DIR", "where the model goes", default)
    arguments = parser.parse_args()
    if (arguments.output / "model.safetensors").exists():
        print(f"done already: {arguments.output}; remove it to train it again.")
        return
    unfinished = arguments.output.with_name(f"{arguments.output.name}.unfinished")
    with files.lock(unfinished), files.new(arguments.output) as target:
        train(TINY, arguments.corpus, unfinished, target)


def train(recipe: Recipe, books: Path, unfinished: Path, target: Path) -> None:
    """Train to the end, from the last checkpoint if there is one.

    Args:
        books: a directory.
        unfinished: where checkpoints go.
        target: where the model goes.
    """
    data = corpus.load(books)
    data_sha256 = hashlib.sha256(json.dumps(data).encode()).hexdigest()
    sizes = recipe.model["vocab_size"], recipe.model["max_position_embeddings"]
    tokens = corpus.train_tokenizer(data, *sizes, SEED)
    model = network.build(architecture(recipe, tokens), recipe.looking_back, SEED)
    print(f"{model.num_parameters() / 1e6:.2f} M parameters; {len(data)} books", flush=True)

    run = {
        "seed": SEED,
        "data_sha256": data_sha256,
        **json.loads(json.dumps(dataclasses.asdict(recipe))),
    }
    facts = state.facts(run, *TRAINED_BY)
    last = state.whole(unfinished, facts)
    state.remove_but(last, unfinished)
    source = Source("train", tokens, data)
    begin = state.step(last) if last else 0
    batches = curriculum.Batches(recipe.stages, source, SEED, begin)
    settings = trainer.joined(training_arguments(recipe, unfinished))
    saving = Saving(
        model=model,
        args=settings,
        train_dataset=batches,
        data_collator=batches.collate,
        optimizers=(Muon(model, settings.learning_rate, BETAS, settings.weight_decay), None),
    )
    saving.facts = facts
    saving.train(resume_from_checkpoint=str(last) if last else None)
    network.plain(model).to(torch.bfloat16).save_pretrained(target)
    tokens.save_pretrained(target)


class Saving(transformers.Trainer):
    """A Trainer whose checkpoints have a manifest of these facts."""

    facts: dict

    def _save_checkpoint(self, model, trial):
        super()._save_checkpoint(model, trial)
        state.complete(self, self.facts)


def architecture(recipe: Recipe, tokens) -> LlamaConfig:
    """The configuration of the recipe's model, with the vocabulary of the tokenizer `tokens`."""
    special = {
        "bos_token_id": None,
        "eos_token_id": tokens.eos_token_id,
        "pad_token_id": tokens.pad_token_id,
    }
    return LlamaConfig(**recipe.model | special | {"vocab_size": len(tokens)})


def training_arguments(recipe: Recipe, folder: Path) -> TrainingArguments:
    """The Trainer's arguments; checkpoints go to `folder`."""
    steps = curriculum.steps(recipe.stages)
    return TrainingArguments(
        **recipe.training,
        output_dir=str(folder),
        seed=SEED,
        max_steps=steps,
        per_device_train_batch_size=1,  # an item of the dataset is one part of a batch
        gradient_accumulation_steps=curriculum.PARTS,
        lr_scheduler_type="warmup_stable_decay",
        lr_scheduler_kwargs={"num_decay_steps": round(recipe.decay * steps), "min_lr_ratio": 0.02},
        logging_nan_inf_filter=False,
        report_to=[],
        remove_unused_columns=False,
        ignore_data_skip=True,  # the dataset starts at the right batch by itself
        use_cpu=not torch.cuda.is_available(),
    )


if __name__ == "__main__":
    command_line.run(main)
