"""A scale's rehearsal: its suite, step by step, on a made-up model of the same widths.

The model has the scale's configuration and vocabulary, a few layers and random weights. So environment, launch, memory
layout, data formats, resuming, records and tables are those of the real suite, but the scores mean nothing.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from pathlib import Path

from core import files
from core.errors import InputError
from experiments.base_models.model import Training
from experiments.kit.suite import Data, Options, Step

SUFFIX = "-rehearsal"
FOLDER = "build/rehearse"  # in the repository; it has a folder for each scale
SHARD = "500MB"  # so that the weights take several files, as LLaMA2's do
LAYERS = 4
# On a CPU, one such layer takes half a minute for L tokens.
LAYERS_ON_CPU = 1


def scale(name: str, preset: Scale, less: Mapping[str, tuple[Options, Options]], training: Training) -> Scale:
    """The rehearsal of a scale.

    Args:
        name: the scale's name.
        preset: the scale.
        less: by experiment, two sets of smaller options: those of the rehearsal, and those that a CPU changes. The
            latter are the suite's options under --quick.
        training: the fine-tune's settings.
    """

    def small(step: Step) -> Step:
        on_gpu, on_cpu = less.get(step.experiment, ({}, {}))
        data = Data.MINIATURE if step.data is Data.BENCHMARKS else step.data
        return dataclasses.replace(step, options={**step.options, **on_gpu}, quick=on_cpu, data=data)

    suite = preset.suite
    return dataclasses.replace(
        preset,
        title=f"{preset.title}, rehearsal",
        model=f"repository:{FOLDER}/{name}/model",
        training=training,
        suite=dataclasses.replace(
            suite,
            evaluations=tuple(map(small, suite.evaluations)),
            alone=tuple(map(small, suite.alone)),
            books=1,
            miniature=small(Step("miniature")),
            training=small(suite.training),
            timing=suite.timing and small(suite.timing),
        ),
        architecture={**preset.architecture, "num_hidden_layers": LAYERS},
    )


def get(name: str) -> tuple[str, Scale]:
    """The name and the preset of a scale's rehearsal.

    Raises:
        InputError: the scale has no rehearsal.
    """
    from experiments import base_models

    if name + SUFFIX not in base_models.MODELS:
        some = ", ".join(known.removesuffix(SUFFIX) for known in base_models.MODELS if known.endswith(SUFFIX))
        raise InputError(f"there is no rehearsal of the scale {name!r}; choose one of {some}.")
    return name + SUFFIX, base_models.MODELS[name + SUFFIX]


def make(preset: Scale, directory: Path, layers: int) -> Path:
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


def tokenizer(vocabulary: int, length: int):
    """A tokenizer like LLaMA2's, learned from a book.

    It has byte-pair encoding that falls back on bytes, ▁ for spaces, and <s> before every text.
    """
    from tokenizers import AddedToken, Tokenizer, decoders, normalizers, pre_tokenizers, processors, trainers
    from transformers import PreTrainedTokenizerFast

    from experiments.kit import texts

    special = ["<unk>", "<s>", "</s>"]
    backend = Tokenizer(load_model.BPE(unk_token="<unk>", byte_fallback=True))
    backend.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
    backend.pre_tokenizer = pre_tokenizers.Split("▁", "merged_with_next")
    backend.decoder = decoders.Sequence(
        [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)]
    )
    bytes_ = [f"<0x{byte:02X}>" for byte in range(256)]
    trainer = trainers.BpeTrainer(vocab_size=vocabulary, special_tokens=special + bytes_, show_progress=False)
    (book,) = texts.books(1)
    backend.train_from_iterator(book.text.splitlines(), trainer)
    # Bytes had to be special tokens for the trainer. Here they become ordinary ones, which decoding never leaves out.
    state = json.loads(backend.to_str())
    state["added_tokens"] = [token for token in state["added_tokens"] if token["content"] in special]
    backend = Tokenizer.from_str(json.dumps(state))
    missing = vocabulary - backend.get_vocab_size()
    backend.add_tokens([AddedToken(f"<unused{number}>") for number in range(missing)])
    backend.post_processor = processors.TemplateProcessing(
        single="<s> $A", pair="<s> $A <s> $B", special_tokens=[("<s>", backend.token_to_id("<s>"))]
    )
    return PreTrainedTokenizerFast(
        tokenizer_object=backend, unk_token="<unk>", bos_token="<s>", eos_token="</s>", model_max_length=length
    )
