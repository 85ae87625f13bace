"""How a model rotates: which of its layers, by which rotary embedding and over what distance, found
by running it; and by which frequencies, where these follow the length of the input.

A model's class decides in its forward pass which layers rotate: some families rotate only layers
that see a window of tokens, some keep a second rotary embedding for images, some build one that
they never use. No key of the configuration says so for all of them. So a copy of the model without
weights runs once, and what each layer takes from which rotary embedding is noted.
"""

from __future__ import annotations

import copy
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import torch
import transformers
from torch import nn
from torch.overrides import TorchFunctionMode
from transformers import AutoModelForCausalLM, PreTrainedConfig, PreTrainedModel
from transformers.modeling_rope_utils import ROPE_INIT_FUNCTIONS

from ..errors import InputError, in_one_line
from .configuration import text_config


@dataclass
class Layer:
    """A decoder layer.

    Attributes:
        window: how many tokens it sees; None if all.
        attends: whether it compares tokens with each other; a state-space or a linear layer does
            not.
        rotations: (the name of a rotary embedding in the model, the layer type it is called with or
            None) for each rotation that the layer applies.
        ran: whether the model came to it.
        failed: whether it could not be run to its end.
    """

    window: int | None
    attends: bool
    rotations: set[tuple[str, str | None]] = field(default_factory=set)
    ran: bool = False
    failed: bool = False


def skeleton(config: PreTrainedConfig, like: PreTrainedModel | None = None) -> PreTrainedModel:
    """A model built from a configuration, with weights that take no memory.

    Args:
        like: a model with the same class and layers; by default the class is the one that the
            configuration names, else its causal language model's.

    Raises:
        InputError: no language model can be built from the configuration.
    """
    architecture = getattr(transformers, next(iter(config.architectures or ()), ""), None)
    is_model = isinstance(architecture, type) and issubclass(architecture, PreTrainedModel)
    cls = type(like) if like is not None else architecture if is_model else None
    try:
        model = weightless(cls or AutoModelForCausalLM._model_mapping[type(config)], config)
        if like is not None:
            _LAYERS[model] = layers(like)
        for name in {name for layer in layers(model) for name, _ in layer.rotations}:
            rotary = model.get_submodule(name)
            model.set_submodule(name, type(rotary)(rotary.config))  # with real frequencies
    except InputError:
        raise
    except (
        Exception
    ) as error:  # a contradictory configuration can make the model's class raise anything
        raise InputError(
            f"no causal language model can be built from this {config.model_type!r} configuration "
            f"({in_one_line(error)}); give the checkpoint of a language model."
        ) from error
    return model


def weightless(cls: type[PreTrainedModel], config: PreTrainedConfig) -> PreTrainedModel:
    """A model of this class and configuration whose tensors have no values, frequencies
    included."""
    config = copy.deepcopy(config)
    config._attn_implementation = (
        None  # transformers' choice: what a file names may not be installed
    )
    if isinstance(config.dtype, str):  # as it stands in a file
        config.dtype = getattr(torch, config.dtype)
    with torch.device("meta"):
        return cls(config).eval()


_LAYERS: weakref.WeakKeyDictionary[PreTrainedModel, list[Layer]] = weakref.WeakKeyDictionary()


def layers(model: PreTrainedModel) -> list[Layer]:
    """The decoder layers of a model's language model, in order; none if the model has no rotary
    embedding at all.

    Raises:
        InputError: the model cannot be run on tokens alone.
    """
    if model not in _LAYERS:
        _LAYERS[model] = _observed(model)
    return _LAYERS[model]


def _observed(model: PreTrainedModel) -> list[Layer]:
    twin = weightless(type(model), model.config).bfloat16()  # the dtype that most operators know
    embeddings = {
        name: module
        for name, module in twin.named_modules()
        if any(buffer.endswith("inv_freq") for buffer, _ in module.named_buffers(recurse=False))
    }
    if not embeddings:
        return []
    uses = _Uses()
    every = []
    for name, module in embeddings.items():
        module.register_forward_hook(uses.notes(name), with_kwargs=True)
    for index, module in _decoder_layers(twin):
        every.append(_layer(text_config(twin.config), index))
        module.forward = uses.within(every[-1], module.forward)
    try:
        with torch.no_grad(), uses:
            twin(input_ids=torch.zeros(1, 4, dtype=torch.long, device="meta"), use_cache=False)
    except Exception as error:
        if not uses.rotations:
            raise InputError(
                f"how {type(model).__name__} rotates cannot be found out ({in_one_line(error)}); "
                "give a language model that reads tokens."
            ) from error
    seen = [layer for layer in every if layer.ran]
    if not any(layer.rotations for layer in seen):  # each failed before it rotated
        for layer in seen:
            layer.rotations |= set(uses.rotations.values()) if layer.failed else set()
    return seen


def _decoder_layers(model: nn.Module) -> list[tuple[int, nn.Module]]:
    """(index, layer) of every member of the model's outermost lists of layers that know their
    index."""
    indexed = []
    inner = set()
    for module in model.modules():
        if isinstance(module, nn.ModuleList) and module not in inner:
            inner |= set(module.modules())
            members = list(enumerate(module))
            indexed += [
                (i, layer)
                for i, layer in members
                if any(hasattr(m, "layer_idx") for m in layer.modules())
            ]
    return indexed


def _layer(config: PreTrainedConfig, index: int) -> Layer:
    """What the configuration says about a layer."""
    types = getattr(config, "layer_types", None)
    kind = types[index] if types and index < len(types) else None
    window = None
    if kind == "chunked_attention":
        window = getattr(config, "attention_chunk_size", None)
    elif kind == "sliding_attention" or (
        kind is None and getattr(config, "use_sliding_window", True)
    ):
        window = getattr(config, "sliding_window", None)
    return Layer(
        window, attends=kind is None or (kind.endswith("attention") and kind != "linear_attention")
    )


class _Uses(TorchFunctionMode):
    """While it is active, notes which layer computes with what a rotary embedding returned.

    A layer may fail on tensors without values, as experts do that look at which tokens they get;
    attention comes first.
    """

    def __init__(self) -> None:
        super().__init__()
        self.rotations: dict[int, tuple[str, str | None]] = {}
        self.kept: list[torch.Tensor] = []  # so that no other tensor gets the same id
        self.layer: Layer | None = None

    def notes(self, name: str):
        """A hook for a rotary embedding of this name."""

        def hook(module, arguments, keywords, output) -> None:
            layer_type = keywords.get("layer_type") or next(
                (each for each in arguments if isinstance(each, str)), None
            )
            for tensor in output if isinstance(output, tuple | list) else (output,):
                self.rotations[id(tensor)] = name, layer_type
                self.kept.append(tensor)

        return hook

    def within(self, layer: Layer, forward):
        """The forward pass of a layer, which returns its input if it fails."""

        def run(hidden_states, *arguments, **keywords):
            self.layer = layer
            layer.ran = True
            try:
                return forward(hidden_states, *arguments, **keywords)
            except Exception:
                layer.failed = True
                return hidden_states
            finally:
                self.layer = None

        return run

    def __torch_function__(self, func, types, args=(), kwargs=None):
        if func in (torch.Tensor.__bool__, torch.Tensor.item):  # a mask's check of its values
            return False
        if self.layer is not None:
            for argument in (*args, *(kwargs or {}).values()):
                for tensor in argument if isinstance(argument, tuple | list) else (argument,):
                    if id(tensor) in self.rotations:
                        self.layer.rotations.add(self.rotations[id(tensor)])
        return func(*args, **(kwargs or {}))


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
    values = [value for _, state in _following(model, length) for value in state.values()]
    return b"".join(
        x.cpu().numpy().tobytes() if torch.is_tensor(x) else repr(x).encode() for x in values
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
            device = next(module.buffers()).device
            inv_freq, _ = ROPE_INIT_FUNCTIONS[kind](
                module.config, device, seq_len=length, layer_type=layers
            )
            name = "inv_freq" if layers is None else f"{layers}_inv_freq"
            yield module, {name: inv_freq, "rope_type": fixed.get(None, fixed)}
            if layers is None and "long_mscale" in module.config.rope_parameters:
                yield module, {"config": _with_one_mscale(module.config, length)}


def _with_one_mscale(config: PreTrainedConfig, length: int) -> PreTrainedConfig:
    """A configuration whose two temperatures are both that of an input of `length` tokens.

    PhiMoE's class takes one of them from its configuration in each pass.
    """
    parameters = config.rope_parameters
    far = length > parameters["original_max_position_embeddings"]
    mscale = parameters["long_mscale" if far else "short_mscale"]
    result = copy.copy(config)
    result.rope_parameters = parameters | {"short_mscale": mscale, "long_mscale": mscale}
    return result
