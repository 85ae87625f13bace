"""CLEX (continuous length extrapolation, Chen et al. 2023) in a loaded model.

One embedding (:mod:`core.clex.rotary`), shared by all layers, holds the two matrices of the neural
ODE in :mod:`core.clex.ode`.

Training draws a factor t and random positions up to t times the sequence length, so that one model
learns all factors. Each forward pass has one draw; within :func:`drawing` each sample has its own.

Evaluation uses t = ⌈length / L⌉. A batch has one t, that of its longest row, unless
:func:`core.huggingface.rotation.at_length` states another. Use it where a result must not depend on
what else is in the batch, and where a text is read in chunks or continued: what a cache holds was
computed at one t, and a pass at another is refused.
"""

import json
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path

import safetensors
import safetensors.torch
import torch
from torch import nn
from transformers import PreTrainedModel

from .. import CLEX_FILE, files
from ..errors import InputError
from ..geometry import RopeGeometry, RopeScaling
from ..huggingface.configuration import EXTENSION, text_config
from ..huggingface.embedding import apply_scaling, cosines, rope_geometry
from ..huggingface.rotation import rotary_module
from .rotary import MAX_FACTOR, ClexRotaryEmbedding, Draw, cos_sin

_TRAIN = "train them with `python -m experiments.finetune --model MODEL --method clex`"


def install(
    model: PreTrainedModel,
    geometry: RopeGeometry,
    factor: float,
    weights: str | os.PathLike | None = None,
) -> PreTrainedModel:
    """Give a loaded model the CLEX embedding, in place; its context length becomes `factor` times
    L.

    Args:
        geometry: the pre-trained RoPE.
        factor: s = L'/L; an export of the model, loaded without this repository, has the fixed
            scale of t = ⌈s⌉.
        weights: a file that :func:`save` wrote, or a directory that holds one; None for untrained
            matrices.

    Raises:
        InputError: the weights are missing or belong to another geometry, the model's embedding is
            unlike Llama's, or the factor is too large.
    """
    _, _, stock = rotary_module(model)
    if not _is_llama_style(stock):
        raise InputError(
            f"{type(model).__name__} has no Llama-style rotary embedding for all layers, as CLEX "
            f"needs."
        )
    rotary = ClexRotaryEmbedding(geometry) if weights is None else read(weights, geometry)
    apply_scaling(model, geometry, rotary.scaling(factor), factor)
    remove(model)
    parent, name, rotary.stock = rotary_module(model)
    setattr(parent, name, rotary.to(model.device).train(model.training))
    return model


def is_installed(model: nn.Module) -> bool:
    """Whether the model has a CLEX embedding."""
    return bool(_installed(model))


def remove(model: nn.Module) -> None:
    """Put the fixed embedding back. A model without CLEX stays as it is."""
    for name, rotary in _installed(model).items():
        model.set_submodule(name, rotary.stock)


def restore(model: PreTrainedModel, directory: str | os.PathLike) -> PreTrainedModel:
    """Make the scale of a loaded export follow the input's length again, if CLEX weights lie in its
    directory."""
    if (Path(directory) / CLEX_FILE).is_file():
        geometry = rope_geometry(model)
        longer = text_config(model.config).max_position_embeddings
        install(model, geometry, longer / geometry.context_length, weights=directory)
    return model


@contextmanager
def fixed(model: PreTrainedModel) -> Iterator[None]:
    """Inside the context, the model has a stock embedding at the fixed scale of its context length.

    A model without CLEX stays as it is.
    """
    installed = _installed(model)
    config = text_config(model.config)
    for rotary in installed.values():
        factor = config.max_position_embeddings / rotary.geometry.context_length
        extension = getattr(config, EXTENSION)
        apply_scaling(model, rotary.geometry, rotary.scaling(factor), factor)
        setattr(config, EXTENSION, extension)
    remove(model)
    try:
        yield
    finally:
        for name, rotary in installed.items():
            model.set_submodule(name, rotary)


class Draws:
    """The random draws of a run's samples, by each sample's place in the data.

    Sample k has the k-th draw of one stream of random numbers. It depends on the seed and k alone:
    not on which process computes it, how many samples share its batch, or where the run was
    resumed. Every process generates the draws of all samples in order, which costs a millisecond or
    two each; of an earlier sample, from the first one on.
    """

    def __init__(self, seed: int) -> None:
        self._seed = seed
        self._begin()

    def _begin(self) -> None:
        self._generator = torch.Generator().manual_seed(self._seed)
        self._next = 0
        # Single-process runs once drew from torch's global generator, after the data loader. This
        # keeps their draws.
        torch.empty((), dtype=torch.int64).random_(generator=self._generator)

    def of(self, samples: Sequence[int], rotary: ClexRotaryEmbedding, length: int) -> list[Draw]:
        """The draws of these samples; all samples of a run have the same length."""
        if min(samples) < self._next:
            self._begin()
        drawn = {}
        for index in range(self._next, max(samples) + 1):
            draw = rotary.draw(length, self._generator)
            if index in samples:
                drawn[index] = draw
        self._next = max(samples) + 1
        return [drawn[index] for index in samples]


@contextmanager
def drawing(model: nn.Module, draws: Draws, samples: Sequence[int]) -> Iterator[None]:
    """Inside the context, row r of every training pass has the t and positions drawn for sample
    `samples[r]`.

    A model without CLEX stays as it is.
    """
    installed = _installed(model).values()
    for rotary in installed:
        rotary.drawn = partial(draws.of, samples, rotary)
    try:
        yield
    finally:
        for rotary in installed:
            rotary.drawn = None


def narrow(model: nn.Module, dtype: torch.dtype) -> None:
    """Cast the matrices, which otherwise stay float32, for an optimizer that needs all weights in
    one dtype.

    A model without CLEX stays as it is.
    """
    for rotary in _installed(model).values():
        for matrix in rotary.parameters():
            matrix.data = matrix.data.to(dtype)


def from_weights(
    geometry: RopeGeometry, factor: float, weights: str | os.PathLike | None
) -> RopeScaling:
    """What the registry of methods returns for trained weights: θ̂ at t = ⌈factor⌉, and how to
    install them in a model.

    Raises:
        InputError: no weights, or any of the reasons of :func:`install`.
    """
    if weights is None:
        raise InputError(
            f"CLEX needs trained weights; {_TRAIN}, and give their directory (--weights DIR)."
        )
    scaling = read(weights, geometry).scaling(factor)
    return replace(scaling, install=partial(install, weights=weights))


def save(model: nn.Module, directory: str | os.PathLike) -> Path:
    """Write the matrices and the geometry they were trained for to `directory`/clex.safetensors,
    atomically."""
    (rotary,) = _installed(model).values()
    tensors = {
        name: getattr(rotary, name).detach().float().cpu().contiguous() for name in ("up", "down")
    }
    # All metadata in one entry: safetensors writes several in arbitrary order, and equal weights
    # should be equal files.
    trained_for = {"max_factor": MAX_FACTOR, "geometry": rotary.geometry.to_dict()}
    return files.write(
        Path(directory) / CLEX_FILE,
        safetensors.torch.save(tensors, {"trained_for": json.dumps(trained_for)}),
    )


def read(weights: str | os.PathLike, geometry: RopeGeometry) -> ClexRotaryEmbedding:
    """The embedding that :func:`save` wrote, not yet in a model.

    Raises:
        InputError: there is no file, :func:`save` did not write it, or it was trained for another
            geometry.
    """
    file = Path(weights) / CLEX_FILE if Path(weights).is_dir() else Path(weights)
    if not file.is_file():
        raise InputError(f"no CLEX weights at {file}; {_TRAIN}.")
    try:
        with safetensors.safe_open(file, "pt") as tensors:
            up = tensors.get_tensor("up")
            down = tensors.get_tensor("down")
            trained_for = json.loads(tensors.metadata()["trained_for"])
        trained = RopeGeometry(**trained_for["geometry"])
        longest = trained_for["max_factor"]
    except (safetensors.SafetensorError, TypeError, KeyError, ValueError) as error:
        raise InputError(
            f"{file} does not hold CLEX weights as core.clex.save writes them ({error})."
        ) from error
    if longest != MAX_FACTOR:
        raise InputError(
            f"the CLEX weights in {file} were trained for s up to {longest}, and this version "
            f"takes {MAX_FACTOR}; {_TRAIN}."
        )
    if trained != geometry:
        raise InputError(
            f"the CLEX weights in {file} were trained for {_words(trained)}, and this model has "
            f"{_words(geometry)}; give weights that were trained from the same model."
        )
    rotary = ClexRotaryEmbedding(geometry)
    rotary.up.data = up
    rotary.down.data = down
    return rotary


def _installed(model: nn.Module) -> dict[str, ClexRotaryEmbedding]:
    """The model's CLEX embedding by its name, if it has one."""
    return {
        name: module
        for name, module in model.named_modules()
        if isinstance(module, ClexRotaryEmbedding)
    }


def _words(geometry: RopeGeometry) -> str:
    return f"d = {geometry.head_dim}, base {geometry.base:g} and L = {geometry.context_length}"


def _is_llama_style(stock: nn.Module) -> bool:
    """Whether an embedding orders pairs as :func:`cos_sin` does (Cohere interleaves them) and has
    one layer type."""
    if not hasattr(stock, "inv_freq"):
        return False
    cos = cosines(stock, None, [0, 1, 2, 3, 4])
    positions = torch.arange(5, device=cos.device)[None]
    expected = stock.attention_scaling * cos_sin(positions, stock.inv_freq)[0]
    return cos.shape == expected.shape and torch.allclose(cos, expected, atol=1e-5)
