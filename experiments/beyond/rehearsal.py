"""The model of a rehearsal: another model's configuration and vocabulary, a few layers and random weights."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING

from core import files
from core.errors import InputError
from experiments.base_models.model import Model

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

SUFFIX = "-rehearsal"
FOLDER = "build/rehearse"  # in the repository; it has a folder for each model
SHARD = "500MB"  # so that the weights take several files, as LLaMA2's do
LAYERS = 4
# On a CPU, one such layer takes half a minute for L tokens.
LAYERS_ON_CPU = 1


def rehearsed(name: str, preset: Model) -> Model:
    """The rehearsal of a model: two steps of fine-tuning, in batches that up to 16 GPUs can divide."""
    return dataclasses.replace(
        preset,
        title=f"{preset.title}, rehearsal",
        model=f"repository:{FOLDER}/{name}/model",
        training=dataclasses.replace(preset.training, steps={2: 2, 4: 2}, batch=16, save_every=2, data="books"),
        architecture={**preset.architecture, "num_hidden_layers": LAYERS},
    )


def get(name: str) -> tuple[str, Model]:
    """The name of a model's rehearsal, and what it is.

    Raises:
        InputError: the model has no rehearsal.
    """
    from experiments import base_models

    if name + SUFFIX not in base_models.MODELS:
        some = ", ".join(known.removesuffix(SUFFIX) for known in base_models.MODELS if known.endswith(SUFFIX))
        raise InputError(f"there is no rehearsal of {name!r}; choose one of {some}.")
    return name + SUFFIX, base_models.MODELS[name + SUFFIX]


def make(preset: Model, directory: Path, layers: int) -> Path:
    """Write the model and its tokenizer to `directory`, unless they are there: random weights in float16, as LLaMA2's.

    Raises:
        InputError: `directory` holds another model.
    """
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedConfig
    from transformers.utils import logging

    from experiments.kit import load_model  # noqa: F401  (before DeepSpeed, which saving imports, guesses the accelerator)

    logging.disable_progress_bar()
    config = LlamaConfig(**{**preset.architecture, "num_hidden_layers": layers, "rope_theta": preset.geometry.base})
    if directory.is_dir():
        there = PreTrainedConfig.get_config_dict(directory)[0]
        if any(there.get(key) != getattr(config, key) for key in preset.architecture):
            raise InputError(f"{directory} holds another model; remove that directory.")
        return directory
    torch.manual_seed(0)
    with files.new(directory) as made:
        LlamaForCausalLM(config).to(torch.float16).save_pretrained(made, max_shard_size=SHARD)
        tokenizer(config.vocab_size, config.max_position_embeddings).save_pretrained(made)
    return directory


def tokenizer(vocabulary: int, length: int) -> PreTrainedTokenizerBase:
    """A tokenizer of as many tokens as LLaMA2's, learned from a book, that begins every text with <s> as LLaMA2's."""
    from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers, processors, trainers
    from transformers import PreTrainedTokenizerFast

    from experiments.kit import texts

    backend = Tokenizer(models.BPE())
    backend.pre_tokenizer, backend.decoder = pre_tokenizers.ByteLevel(add_prefix_space=False), decoders.ByteLevel()
    special, alphabet = ["<s>", "</s>"], pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(
        vocab_size=vocabulary, special_tokens=special, initial_alphabet=alphabet, show_progress=False
    )
    backend.train_from_iterator([texts.books(1)[0].text], trainer)
    missing = vocabulary - backend.get_vocab_size()
    backend.add_tokens([AddedToken(f"<unused{number}>") for number in range(missing)])
    backend.post_processor = processors.TemplateProcessing(
        single="<s> $A", pair="<s> $A <s> $B", special_tokens=[("<s>", backend.token_to_id("<s>"))]
    )
    return PreTrainedTokenizerFast(tokenizer_object=backend, bos_token="<s>", eos_token="</s>", model_max_length=length)
