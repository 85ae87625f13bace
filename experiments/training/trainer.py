"""Hugging Face's Trainer with what a reproducible run needs.

- The loss never holds all logits (:mod:`experiments.training.loss`).
- The data come in the dataset's own order, so the number of steps done is the position in the data.
  With the optimizer, scheduler and random states that the Trainer saves, a killed run continues
  exactly, to the last bit.
- CLEX's random draws belong to the sample, so a run is the same on any number of processes.
- A checkpoint counts once its manifest is written (:mod:`experiments.training.state`). Ctrl-C,
  SIGTERM and SIGUSR1 leave one.
- A loss or gradient that is not finite stops the run before it reaches the weights.
"""

import contextlib
import math
import signal
import sys
import time
import warnings
from collections.abc import Iterator
from pathlib import Path

import torch
import transformers
from torch.utils.data import Dataset
from tqdm import tqdm
from transformers import PreTrainedModel, PrinterCallback, TrainingArguments

import records
from core import clex
from core.errors import InputError, NonFiniteError
from experiments.base_models.model import Training
from experiments.kit import processes
from experiments.training import attention, budget, state
from experiments.training.loss import HeadLoss

LIBRARIES = "deepspeed", "liger_kernel", "flash_attn"  # that a run may use, if they are installed
# Seconds that processes wait for one of them that tokenises a corpus, or reads or hashes hundreds
# of gigabytes.
PATIENCE = 4 * 3600
_REMEDY = "lower the learning rate, or check the data"
DEEPSPEED = Path(__file__).with_name("deepspeed_zero3.json")
# DeepSpeed still uses old names in torch, and torch warns of them several times per step.
warnings.filterwarnings("ignore", message="`torch.distributed", category=FutureWarning)


class Trainer(transformers.Trainer):
    """Trains `model` on the items of `data` in their order; see the module's docstring.

    Args:
        model: a causal language model.
        arguments: from :func:`training_arguments`.
        data: a map-style dataset of `input_ids` and `labels` [length], labels -100 where a token
            does not count, and of what else the model reads.
        facts: the contents of the manifests of its checkpoints.

    Raises:
        InputError: the model's class cannot compute activations again.
    """

    def __init__(
        self,
        model: PreTrainedModel,
        arguments: TrainingArguments,
        data: Dataset,
        facts: dict,
    ) -> None:
        if arguments.activation_checkpointing and not model.supports_gradient_checkpointing:
            raise InputError(
                f"{type(model).__name__} cannot recompute activations; give --no-checkpointing."
            )
        self._loss = HeadLoss(model)
        self.facts = facts
        self._kernel = None
        if arguments.bf16 and arguments.use_cpu:
            self._kernel = attention.kernel(len(data[0]["input_ids"]))
        if arguments.activation_checkpointing and self._kernel:
            arguments.activation_checkpointing = False  # which would compute attention again, too
            how = {"use_reentrant": False, "context_fn": attention.keep_attention}
            model.activation_checkpointing_enable(how)
        transformers.logging.disable_progress_bar()  # it would show the saving of each checkpoint
        super().__init__(model=model, args=arguments, train_dataset=data)
        self.remove_callback(PrinterCallback)
        # asks for num_items_in_batch: the tokens of all micro-batches
        self.model_accepts_loss_kwargs = True
        self._loss_shifts_labels = True
        self._draws = clex.Draws(arguments.seed)

    @contextlib.contextmanager
    def whole_model(self) -> Iterator[None]:
        """Inside the context, the model has its whole weights, which ZeRO-3 divides among the
        processes. Every process calls this."""
        gathered = contextlib.nullcontext()
        if self.is_deepspeed_enabled:
            import deepspeed

            gathered = deepspeed.zero.GatheredParameters(list(self.model.parameters()))
        with gathered:
            yield
        self.accelerator.wait_for_everyone()

    def train(self):
        """Train to the end, from the last checkpoint in the output directory if there is one.

        A progress bar shows the last loss.

        Raises:
            KeyboardInterrupt: Ctrl-C came; a checkpoint of the step in which it came is kept.
            SystemExit: SIGTERM or SIGUSR1 came; so for it.
        """
        folder = Path(self.args.output_dir)
        checkpoint = state.last(folder)
        self._last_log = time.perf_counter()
        self._signal = 0
        done = state.step(checkpoint) if checkpoint else 0
        self._micro_batches = done * self.args.gradient_accumulation_steps  # in this process
        with (
            # closed before an error is printed, which so has a line of its own
            tqdm(
                total=self.args.max_steps,
                initial=done,
                unit="step",
                desc=folder.stem,
                disable=not self.is_world_process_zero(),
            ) as self._bar,
            self._heeding_signals(),
        ):
            super().train(resume_from_checkpoint=str(checkpoint) if checkpoint else None)
        if self._signal and self.state.global_step < self.args.max_steps:
            if self._signal == signal.SIGINT:
                raise KeyboardInterrupt
            sys.exit(128 + self._signal)

    @contextlib.contextmanager
    def _heeding_signals(self) -> Iterator[None]:
        """Inside the context, Ctrl-C, SIGTERM and SIGUSR1 end training after the step in which
        they come, with a checkpoint.

        A second one ends the process at once. A signal that is ignored stays so.
        """

        def heed(number: int, _) -> None:
            self._signal = number
            restore()
            print("\nstopping after this step, with a checkpoint", file=sys.stderr)

        before = {
            number: signal.signal(number, heed)
            for number in (signal.SIGINT, signal.SIGTERM, signal.SIGUSR1)
            if signal.getsignal(number) is not signal.SIG_IGN
        }

        def restore() -> None:
            for number, handler in before.items():
                signal.signal(number, handler)

        try:
            yield
        finally:
            restore()

    def _save_checkpoint(self, model, trial):
        folder = Path(self.args.output_dir)
        try:
            super()._save_checkpoint(model, trial)
            self.accelerator.wait_for_everyone()
            if self.is_world_process_zero():
                saved = folder / f"{state.NAME}{self.state.global_step}"
                state.write_manifest(saved, self.facts)
        finally:
            # those before; and a part of one, for which a full disk has no use
            if self.is_world_process_zero():
                state.remove_but(state.last(folder), folder)

    def compute_loss(self, model, inputs, return_outputs=False, num_items_in_batch=None):
        """This micro-batch's share of the mean loss over all tokens of the step."""
        labels = inputs.pop("labels")
        total = self._loss(model, inputs, labels)
        # Gradients are averaged over processes afterwards, so each process multiplies its share by
        # their number.
        loss = total * (self.accelerator.num_processes / num_items_in_batch)
        if not math.isfinite(loss.item()):
            where = f"sequences {self._items().start} to {self._items().stop - 1} of its data"
            raise NonFiniteError(
                f"the loss is {loss.item()} at step {self.state.global_step + 1} ({where}); "
                f"{_REMEDY}"
            )
        return loss

    def _items(self) -> range:
        """The indices of the data's items in this process's micro-batch."""
        first = self._micro_batches * self.args.world_size + self.accelerator.process_index
        return range(first * self._train_batch_size, (first + 1) * self._train_batch_size)

    def _get_grad_norm(self, model, grad_norm=None):
        norm = super()._get_grad_norm(model, grad_norm)
        if norm is not None and not math.isfinite(norm):
            raise NonFiniteError(
                f"the gradient's norm is {norm} at step {self.state.global_step + 1}; {_REMEDY}"
            )
        return norm

    def ran_on(self) -> dict:
        """What computed the run (for a resumed run, its last part); this is not part of the run's
        identity."""
        config = self.model.config.get_text_config(decoder=True)
        used = self._kernel and self._kernel.used
        return {
            "processes": self.args.world_size,
            "device_batch": self._train_batch_size,
            "accumulated": self.args.gradient_accumulation_steps,
            "attention": attention.NAME if used else config._attn_implementation,
            "loss": self._loss.kernel(self.args.device),
            **dict.fromkeys(LIBRARIES),
            **records.versions(*LIBRARIES),
        }

    def training_step(self, model, inputs, num_items_in_batch=None):
        """One micro-batch, counted so that an error can name it and every sample has its own
        draws."""
        drawing = clex.drawing(self.model, self._draws, self._items())
        attending = self._kernel.installed() if self._kernel else contextlib.nullcontext()
        with drawing, attending:  # also while activations are recomputed
            loss = super().training_step(model, inputs, num_items_in_batch)
        self._micro_batches += 1
        return loss

    def log(self, logs, start_time=None):
        """Log a step, with the seconds since the previous one, and at the end the whole run.

        After a step in which a signal has come to any of the processes, all stop together.
        """
        if "loss" in logs:
            now = time.perf_counter()
            logs["seconds"] = now - self._last_log
            self._last_log = now
            self._bar.set_postfix(loss=f"{logs['loss']:.4f}", refresh=False)
            self._bar.update()
            came = torch.tensor(self._signal, device=self.args.device)
            self._signal = int(self.accelerator.reduce(came, "max"))
            if self._signal:
                self.control.should_save = self.control.should_training_stop = True
        super().log(logs, start_time)


def training_arguments(
    settings: Training, steps: int, seed: int, folder: Path
) -> TrainingArguments:
    """The Trainer's arguments for these settings on the hardware at hand.

    Several processes train under DeepSpeed ZeRO-3. Create the arguments before loading the model:
    then ZeRO-3 loads only each process's share.

    Args:
        folder: where checkpoints and logs go.

    Raises:
        InputError: the processes cannot divide the batch evenly.
    """
    count = processes.count()
    each = budget.device_batch(settings, count)
    on_gpu = torch.cuda.is_available()
    return joined(
        TrainingArguments(
            output_dir=str(folder),
            max_steps=steps,
            per_device_train_batch_size=each,
            gradient_accumulation_steps=settings.batch // (each * count),
            learning_rate=settings.learning_rate,
            lr_scheduler_type="constant",
            weight_decay=settings.weight_decay,
            adam_beta1=settings.betas[0],
            adam_beta2=settings.betas[1],
            max_grad_norm=settings.clip,
            optim="adamw_torch_fused" if count == 1 else "adamw_torch",
            bf16=settings.dtype == "bfloat16",
            use_cpu=not on_gpu,
            activation_checkpointing=settings.checkpointing,
            seed=seed,
            report_to=[],
            train_sampling_strategy="sequential",
            save_steps=settings.save_every,
            logging_steps=1,
            logging_nan_inf_filter=False,
            remove_unused_columns=False,
            dataloader_pin_memory=on_gpu,
            disable_tqdm=True,  # our Trainer draws the bar
            deepspeed=str(DEEPSPEED) if count > 1 else None,
            ddp_timeout=PATIENCE,
        )
    )


def joined(arguments: TrainingArguments) -> TrainingArguments:
    """The arguments, after the processes have joined, which ZeRO-3 needs before a model is loaded.

    A single process trains on one GPU.
    """
    assert arguments.device  # reading this joins them
    # otherwise the Trainer would use a batch per GPU, several times what was asked for
    if arguments.n_gpu > 1:
        arguments._n_gpu = 1
    return arguments
