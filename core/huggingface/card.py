"""The model card of an export, its README.md: what was extended and how, how to serve it, the
licence."""

from __future__ import annotations

import contextlib
import re
from pathlib import Path

from huggingface_hub import ModelCardData, metadata_load
from transformers import PreTrainedConfig

from ..methods.registry import METHODS
from . import serving
from .configuration import EXTENSION, rope_parameters, text_config

# the export's card, and the one that came with the base model
FILE = "README.md"
BASES = "README.base.md"
_KEPT = ("license", "license_name", "license_link", "tags")

_CARD = """---
{data}
---

# {base}, extended to {longer:,} tokens

This is {base} with a longer context.
Its rotary position embedding (RoPE) was scaled by {title}. {about}

| | |
| --- | --- |
| base model | {base}, trained for L = {context_length:,} tokens |
| its RoPE | {before} |
| extended to | L' = {longer:,} tokens, s = {factor:g} |
| method | `{method}`, {settings} |
| in `config.json` | RoPE type `{rope_type}`; the method and its settings in `rope_extension` |
| weights | {weights} |

It was made by a reproduction of
[Wu et al., EMNLP 2024](https://aclanthology.org/2024.emnlp-main.414), whose method is DPRoPE.
Its licence is that of the base model, whose own card is `README.base.md` if it came with one.

Plain `AutoModelForCausalLM.from_pretrained(..., dtype="auto")` loads it; give the dtype there,
not by a cast afterwards. Give an engine the length: `vllm serve . --max-model-len {longer}`.

Without a copy, engines serve {base}'s own files so:

```sh
{commands}
```

An engine that does not know the RoPE type serves the model as if it were not extended, and gives no
warning. The converters of llama.cpp and Ollama drop a factor for each pair.
To check one, compare its loss on a text of L' tokens with that of transformers.
"""


def before(rope_type: str) -> str:
    """What a method of this project divides, in words, by the type of RoPE that the base model
    has."""
    of_two = (
        ": those of its long factors, now for prompts of every length"
        if rope_type == "longrope"
        else ""
    )
    scaled = (
        f"scaled before (`{rope_type}`), and its inverse frequencies are divided further{of_two}"
    )
    return "plain" if rope_type == "default" else scaled


def base(source: str) -> tuple[str, ModelCardData]:
    """The name of a model, and what an export's card keeps of its card's metadata.

    Args:
        source: a checkpoint's directory, also one in the hub's cache, whose path holds the model's
            name; or a name on the hub, whose card is not read.
    """
    path = Path(source).resolve()
    cached = re.search(r"/models--([^/]+)--([^/]+)/snapshots/", f"{path}/")
    on_disk = bool(source) and path.is_dir()
    name = "/".join(cached.groups()) if cached else path.name if on_disk else source or "a model"
    kept = {}
    if on_disk and (path / FILE).is_file():
        with contextlib.suppress(
            Exception
        ):  # YAML that cannot be read says nothing, and stops no export
            metadata = metadata_load(path / FILE) or {}
            kept = {key: metadata[key] for key in _KEPT if key in metadata}
    if cached or (not on_disk and re.fullmatch(r"[\w-][\w.-]*/[\w-][\w.-]*", name)):
        kept["base_model"] = name
    return name, ModelCardData(library_name="transformers", pipeline_tag="text-generation", **kept)


def write(
    directory: Path,
    config: PreTrainedConfig,
    of: tuple[str, ModelCardData],
    unextended: PreTrainedConfig | None = None,
) -> None:
    """Write the card of a model that was extended; the base model's, if it was copied, gets another
    name.

    Args:
        directory: the export.
        config: the extended model's.
        of: from :func:`base`.
        unextended: the base model's configuration, if the weights are the base model's.
    """
    name, data = of
    text = text_config(config)
    card = directory / FILE
    extension = getattr(text, EXTENSION, {})
    if (
        method := METHODS.get(extension.get("method", ""))
    ) is None:  # not extended, or by another version
        return
    if (
        card.is_file() and not (directory / BASES).exists()
    ):  # an export's own card is not the base's
        card.rename(directory / BASES)
    options = ", ".join(f"`{key} = {value}`" for key, value in extension["options"].items())
    content = _CARD.format(
        data=data,
        base=name,
        longer=text.max_position_embeddings,
        context_length=extension["context_length"],
        factor=extension["factor"],
        before=before(extension.get("scaled", {}).get("rope_type", "default")),
        title=method.title,
        method=method.name,
        about=method.about,
        settings=options or "its defaults",
        rope_type=rope_parameters(text)["rope_type"],
        weights="those of the base model, unchanged"
        if unextended
        else "those of the model in memory",
        commands=serving.commands(name, unextended, config)
        if unextended
        else "# not so: its weights may be others",
    )
    card.write_text(content, encoding="utf-8")
