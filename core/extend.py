"""Apply a RoPE scaling to a loaded Hugging Face model or to a checkpoint on disk, and write a stock
checkpoint."""

import os
import shutil
from pathlib import Path

from huggingface_hub import ModelCardData
from transformers import AutoConfig, PreTrainedConfig, PreTrainedModel

from . import clex, files, rope
from .errors import InputError, in_one_line
from .huggingface import card, checkpoint, configuration
from .huggingface.configuration import text_config
from .huggingface.embedding import apply_scaling, difference, rope_geometry, rotates_by
from .huggingface.rotation import rotary_module, skeleton
from .rope import scale

IN_MEMORY = " (extended in memory)"  # ends a name that loads nothing
_BASE = "_loaded_from"  # of a model, the name under which it was loaded


def extend(model: PreTrainedModel, method: str, factor: float, **options) -> PreTrainedModel:
    """Scale the model's RoPE by `method` for a context `factor` times as long, in place.

    If the model was extended here before, scaling starts again from the geometry that it had. Where
    its maker scaled RoPE (``llama3``, ``linear``, ``yarn``, ``longrope``), the method divides the
    inverse frequencies that this gave, and attention factors are multiplied.

    The inverse frequencies stay float32 when this model is cast. A model loaded from an export has
    no such protection, like any other model: pass it the dtype (``from_pretrained(...,
    dtype=...)``), because ``.bfloat16()`` afterwards casts the inverse frequencies too.

    An adapter (LoRA) records ``name_or_path`` as its base model, which would be the model before
    extension. So this call changes it to a name that loads nothing, and :func:`export` sets it to
    the export's directory.

    Args:
        model: a causal language model with a stock rotary embedding (Llama, Mistral, Qwen,
            GPT-NeoX, …).
        method: one of those that `dprope.methods()` names.
        factor: s = L'/L > 1.
        options: the method's own, such as ``n_hat=40`` of ``"dprope"``, which else has t = 0;
            `dprope extend --help-methods` explains all.

    Returns:
        the same model, with its rotary embedding and configuration changed.

    Raises:
        InputError: the model is inside a wrapper, has no rotary embedding that can be extended, its
            configuration states no context length, or an option is wrong; the model is as it was.
    """
    _check_model(model)
    check_extension(model)
    geometry = rope_geometry(model)
    scaling = scale(geometry, method, factor, **options)
    before = text_config(model.config).max_position_embeddings
    if scaling.install:
        scaling.install(model, geometry, factor)
    else:
        apply_scaling(model, geometry, scaling, factor)
        clex.remove(model)
    note(model, method, options)
    longer = text_config(model.config).max_position_embeddings
    answers = getattr(model, "generation_config", None)
    # as in an export: a length below L, or beyond L', is a limit that somebody chose
    if answers and geometry.context_length <= (answers.max_length or 0) <= max(before, longer):
        answers.max_length = longer
    _base_of(model)
    model.name_or_path = f"{model.name_or_path.removesuffix(IN_MEMORY)}{IN_MEMORY}"
    return model


def _base_of(model: PreTrainedModel) -> str:
    """The name under which a model was loaded, whatever was made of it since."""
    return vars(model).setdefault(_BASE, model.name_or_path.removesuffix(IN_MEMORY))


def note(model: PreTrainedModel, method: str, options: dict) -> None:
    """State in an extended model's configuration which method extended it."""
    getattr(text_config(model.config), configuration.EXTENSION).update(
        method=method, options=rope.stated_options(method, options)
    )


def _check_model(model: PreTrainedModel) -> None:
    """Refuse what is no model, and a configuration that was set to what transformers refuses."""
    if not isinstance(model, PreTrainedModel):
        raise InputError(
            f"{type(model).__name__} is no model of transformers, or wraps a model; give the model "
            f"inside it (of torch.compile: _orig_mod), with any adapter merged into it "
            f"(merge_and_unload)."
        )
    try:
        type(model.config).from_dict(model.config.to_dict())
    except Exception as error:  # what was set may be anything
        raise InputError(
            f"the configuration of {type(model).__name__} cannot be read again "
            f"({in_one_line(error)}); correct what was set in it."
        ) from error


def check_extension(model: PreTrainedModel) -> dict | None:
    """What a model's configuration says of how this project extended it; None if it says nothing.

    Raises:
        InputError: the model does not rotate so. A method of another version, or one with a file,
            is taken at its word.
    """
    config = text_config(model.config)
    extension = getattr(config, configuration.EXTENSION, None)
    if extension is None:
        return None
    geometry = rope_geometry(model)
    method = extension.get("method")
    options = extension.get("options")
    registered = None if options is None else rope.METHODS.get(method)
    if registered is None or registered.start or rope.named_files(method, options):
        return extension
    try:
        scaling = scale(geometry, method, extension["factor"], **options)
    except InputError as error:
        raise InputError(
            f"{configuration.EXTENSION} in the configuration cannot be read ({error}); extend the "
            f"original model again."
        ) from error
    _, _, rotary = rotary_module(model)
    if not rotates_by(rotary, config, scaling):
        raise InputError(
            f"the configuration states that {type(model).__name__} was extended by {method} "
            f"(s = {extension['factor']:g}), and it rotates otherwise; extend the original model "
            f"again."
        )
    return extension


def extend_checkpoint(
    source: str | os.PathLike,
    directory: str | os.PathLike,
    method: str,
    factor: float,
    **options,
) -> Path:
    """Write the checkpoint `source`, scaled by `method` for a context `factor` times as long, to
    `directory`.

    The weights are not read. The files that a loader opens are copied byte for byte, whatever their
    dtype, shards or quantisation, with four exceptions. In ``config.json`` the keys that describe
    the scaling change. In ``generation_config.json`` and ``tokenizer_config.json`` a maximum length
    below L' is raised, and a tokenizer's class that transformers 4 does not know is renamed.
    ``README.md`` is a new model card, and the source's is ``README.base.md``; a fine-tune's
    ``training.json`` is ``training.base.json``. The licence comes
    along; code, hidden files and whatever else lies there do not. If the checkpoint was extended
    before, scaling starts again from its pre-training geometry.

    Args:
        source: the directory of a Hugging Face checkpoint.
        directory: must not exist; an interruption leaves nothing there.
        method, factor, options: as for :func:`extend`.

    Returns:
        `directory`.

    Warns:
        UserWarning: files are left out; the sentence names them.

    Raises:
        InputError: the checkpoint is incomplete or cannot be extended, an option is wrong,
            `directory` exists, or the method is learned (extend a model in memory by it and export
            that) or scales by a prompt's length.
    """
    source = Path(source)
    directory = Path(directory)
    rope.check_fixed(method)
    if rope.get(method).start:
        raise InputError(
            f"the method {method!r} needs the model in memory; load the model, extend it and "
            f"export it."
        )
    if directory.resolve().is_relative_to(source.resolve()):
        raise InputError(f"{directory} lies within {source}; give a directory elsewhere.")
    before, model = checkpoint.read(source)
    base = card.base(str(source))
    extend(model, method, factor, **options)
    with files.new(directory) as partial:
        checkpoint.copy(source, partial)
        _write(model, partial, base, before)
    return directory


def export(model: PreTrainedModel, directory: str | os.PathLike, tokenizer=None) -> Path:
    """Write a checkpoint that plain ``AutoModelForCausalLM.from_pretrained`` loads, with identical
    logits.

    It is for a model in memory; :func:`extend_checkpoint` extends one on disk without reading its
    weights. The export of a CLEX model has the fixed scale of its context length, with the trained
    ODE beside it for :func:`core.clex.restore`.

    Args:
        model: a model, extended or not.
        directory: must not exist; an interruption leaves nothing there.
        tokenizer: saved alongside, its maximum length set to the model's.

    Raises:
        InputError: `directory` exists, the model has no weights or others than its class has
            (LoRA), the tokenizer is none, or no configuration makes the model's class compute what
            it computes now.
    """
    _check_model(model)
    if any(parameter.is_meta for parameter in model.parameters()):
        raise InputError("the model is on the meta device, without weights; give it loaded.")
    if tokenizer is not None and not hasattr(tokenizer, "save_pretrained"):
        raise InputError(f"{tokenizer!r} is no tokenizer of transformers; give one, or none.")
    directory = Path(directory)
    base = card.base(_base_of(model))
    method = getattr(text_config(model.config), configuration.EXTENSION, {}).get("method")
    if method in rope.METHODS:
        rope.check_fixed(method)
    with files.new(directory) as partial:
        with clex.fixed(model):
            checkpoint.check_held(model)
            _save(model, partial)
            if tokenizer is not None:
                tokenizer.model_max_length = text_config(model.config).max_position_embeddings
                tokenizer.save_pretrained(partial)
            _write(model, partial, base)
        if clex.is_installed(model):
            clex.save(model, partial)
        for file in partial.glob("*.safetensors"):  # which safetensors lets nobody else read
            shutil.copymode(partial / "config.json", file)
    model.name_or_path = str(directory)
    return directory


def _save(model: PreTrainedModel, directory: Path) -> None:
    try:
        model.save_pretrained(directory)
    except OSError:
        raise
    except Exception as error:  # defaults of generation that contradict each other
        raise InputError(
            f"transformers cannot write {type(model).__name__} ({in_one_line(error)}); correct "
            "what was set in its generation_config."
        ) from error


def _write(
    model: PreTrainedModel,
    directory: Path,
    base: tuple[str, ModelCardData],
    before: PreTrainedConfig | None = None,
) -> None:
    """Write the model's configuration and its card, and fail now rather than at the next load if a
    load would make something else of it.

    Args:
        base: from :func:`card.base`.
        before: as for :func:`configuration.write`.
    """
    configuration.write(directory, model.config, before)
    try:
        config = AutoConfig.from_pretrained(directory, trust_remote_code=False)
        wrong = difference(model, skeleton(config))
    except Exception as error:  # a class that does not know the keys may raise anything
        wrong = in_one_line(error)
    if wrong:
        raise InputError(
            f"a checkpoint cannot say how {type(model).__name__} was extended ({wrong}); give "
            f"another model."
        )
    card.write(directory, model.config, base, before)
