"""The rotary embedding of a model: where a longer context concerns it, and by which frequencies it
turns where these follow the length of the input."""

import copy
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
import transformers
from torch import nn
from transformers import AutoModelForCausalLM, PreTrainedConfig, PreTrainedModel
from transformers.modeling_rope_utils import ROPE_INIT_FUNCTIONS

from ..errors import InputError, in_one_line
from .configuration import layer_type, rope_parameters, text_config

# The model types that rotate only in layers that see a window of tokens, so that no rotated pair
# gets beyond pre-training. They were found by running every causal language model of transformers
# 5.23 that its defaults build; the others with one rotary embedding rotate where they see all
# tokens.
_IN_WINDOWS = (
    "afmoe",
    "cohere2",
    "cohere2_moe",
    "exaone4",
    "exaone_moe",
    "flint",
    "kolibri1",
    "llama4_text",
)

WITHIN_WINDOWS = (
    "so no rotated pair gets beyond pre-training; leave the RoPE as it is and raise "
    "max_position_embeddings in config.json."
)


def skeleton(config: PreTrainedConfig, rotates: bool = True) -> PreTrainedModel:
    """A model built from a configuration, with weights that take no memory, and rotary embeddings
    with real frequencies.

    Args:
        rotates: False builds a model without RoPE that can be extended, too, and no frequencies.

    Raises:
        InputError: no language model can be built from the configuration.
    """
    cls = model_class(config)
    config = copy.deepcopy(config)
    # transformers' choice: what a file names may not be installed
    config._attn_implementation = None
    if isinstance(config.dtype, str):  # as it stands in a file
        config.dtype = getattr(torch, config.dtype)
    try:
        with torch.device("meta"):
            model = cls(config).eval()
        if rotates:
            parent, name, rotary = rotary_module(model)
            setattr(parent, name, type(rotary)(rotary.config))
    except InputError:
        raise
    # a contradictory configuration can make the model's class raise anything
    except Exception as error:
        raise InputError(
            f"no causal language model can be built from this {config.model_type!r} configuration "
            f"({in_one_line(error)}); give the checkpoint of a language model."
        ) from error
    return model


def model_class(config: PreTrainedConfig) -> type[PreTrainedModel]:
    """The class by which a checkpoint is extended, evaluated and trained alike: the one that
    ``AutoModelForCausalLM`` takes, else, of a composite model, the one that it names.

    Raises:
        InputError: there is none that continues a text.
    """
    automatic = AutoModelForCausalLM._model_mapping.get(type(config), None)
    # of some composite models it is a class of their language model alone
    if automatic and automatic.config_class not in config.sub_configs.values():
        return automatic
    named: Any = getattr(transformers, next(iter(config.architectures or ()), ""), None)
    is_model = isinstance(named, type) and issubclass(named, PreTrainedModel)
    if is_model and named.can_generate() and not config.is_encoder_decoder:
        return named
    raise InputError(
        f"no causal language model can be built from this {config.model_type!r} configuration "
        f"(architectures: {config.architectures}); give the checkpoint of a language model."
    )


def loader(config: PreTrainedConfig) -> str:
    """The name of the class of transformers that loads a checkpoint."""
    cls = model_class(config)
    automatic = AutoModelForCausalLM._model_mapping.get(type(config), None)
    return "AutoModelForCausalLM" if cls is automatic else cls.__name__


def rotary_module(model: nn.Module) -> tuple[nn.Module, str, nn.Module]:
    """(parent, attribute, rotary embedding): the stock embedding that turns every layer of a
    language model that sees all tokens, and where the model keeps it.

    Raises:
        InputError: there is not exactly one.
    """
    config = text_config(model.config)
    rope_parameters(config)  # refuses a model without RoPE
    if config.model_type in _IN_WINDOWS:
        raise InputError(
            f"a {config.model_type!r} model rotates only in layers that see a window of tokens, "
            f"{WITHIN_WINDOWS}"
        )
    # CLEX's embedding, and a learned one, are parents of the stock one that they replace.
    buffer = buffer_name(layer_type(config))
    found = [
        (parent, name, child)
        for parent in model.get_decoder().modules()
        for name, child in parent.named_children()
        if buffer in dict(child.named_buffers(recurse=False))
    ]
    if len(found) != 1 or getattr(config, "alibi", False):
        raise InputError(
            f"{type(model).__name__} has no rotary embedding that turns all its layers; "
            "the method needs a RoPE model such as Llama, Mistral or Qwen."
        )
    return found[0]


class Float32(nn.Module):
    """A mixin for rotary embeddings: their numbers stay float32 when the model is cast.

    In bfloat16 the angle of the fastest pair is off by radians after a few hundred positions.
    ``.to(dtype)``, ``.half()`` and DeepSpeed's engine would all cast them through
    ``nn.Module._apply``.
    """

    def _apply(self, fn, recurse=True):
        return super()._apply(lambda tensor: tensor.to(fn(tensor).device), recurse)


def buffer_name(layer_type: str | None) -> str:
    """The name of the inverse frequencies of a type of layers in a rotary embedding."""
    return "inv_freq" if layer_type is None else f"{layer_type}_inv_freq"


def factor_name(layer_type: str | None) -> str:
    """The name of the attention factor of a type of layers in a rotary embedding."""
    return "attention_scaling" if layer_type is None else f"{layer_type}_attention_scaling"


# ------------------------------------------------------------------------------------------
# Frequencies that follow the length of the input: stock `dynamic` and two-list `longrope`, CLEX,
# and methods by length. Transformers chooses them in each forward pass by that pass's last
# position, and `dynamic` keeps those of a long input for shorter ones after it. Keys in one cache
# would then be rotated by different frequencies, and a score would depend on what was read before.
# So an evaluation fixes them for each input by `at_length`. An embedding of this project that
# follows the length has a function `for_length`: from a number of tokens to the attributes, by
# name, that the embedding has for an input of so many.

_FOLLOWING = ("dynamic", "longrope")


def scale_for(model: nn.Module, length: int) -> bytes:
    """What an input of `length` tokens makes of all embeddings that follow it; empty if none does.

    Inputs for which it is equal may share a batch or a cache.
    """
    return b"".join(
        value.cpu().numpy().tobytes() if torch.is_tensor(value) else repr(value).encode()
        for _, wanted in _following(model, length)
        for value in wanted.values()
    )


@contextmanager
def at_length(model: nn.Module, length: int) -> Iterator[None]:
    """Inside the context, every evaluation pass has the frequencies of an input of `length` tokens.

    A model whose RoPE does not follow the length stays as it is.
    """
    before = []
    try:
        for rotary, wanted in list(_following(model, length)):
            before += [(rotary, name, getattr(rotary, name)) for name in wanted]
            for name, value in wanted.items():
                setattr(rotary, name, value)
        yield
    finally:
        for change in reversed(before):
            setattr(*change)


def state(rotary: nn.Module) -> dict:
    """An embedding's frequencies and attention factors by attribute, for all types of layers."""
    names = [*dict(rotary.named_buffers(recurse=False)), *vars(rotary)]
    return {
        name: getattr(rotary, name)
        for name in names
        if name.endswith(("inv_freq", "attention_scaling"))
    }


def _following(model: nn.Module, length: int) -> Iterator[tuple[nn.Module, dict]]:
    """(embedding, the attributes that it has for an input of `length` tokens) of those that follow
    the length."""
    for module in model.modules():
        if hasattr(module, "for_length"):
            yield module, module.for_length(length)
        kinds = getattr(module, "rope_type", None)
        of_layers = kinds if isinstance(kinds, dict) else {None: kinds}
        fixed = {
            layers: "default" if kind in _FOLLOWING else kind for layers, kind in of_layers.items()
        }
        for layers, kind in of_layers.items():
            if kind not in _FOLLOWING:
                continue
            inv_freq, _ = ROPE_INIT_FUNCTIONS[kind](
                module.config,
                next(module.buffers()).device,
                seq_len=length,
                layer_type=layers,
            )
            yield module, {buffer_name(layers): inv_freq, "rope_type": fixed.get(None, fixed)}
            if layers is None and "long_mscale" in module.config.rope_parameters:
                yield module, {"config": _with_one_mscale(module.config, length)}


def _with_one_mscale(config: PreTrainedConfig, length: int) -> PreTrainedConfig:
    """A configuration whose two attention factors are both that of an input of `length` tokens.

    PhiMoE's class takes one of them from its configuration in each pass.
    """
    parameters = config.rope_parameters
    far = length > parameters["original_max_position_embeddings"]
    mscale = parameters["long_mscale" if far else "short_mscale"]
    result = copy.copy(config)
    result.rope_parameters = parameters | {"short_mscale": mscale, "long_mscale": mscale}
    return result
