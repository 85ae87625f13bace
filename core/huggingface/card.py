"""What the users of an export are told: its model card, README.md, and the commands by which
engines serve the base model's own files as if they were the export.

What extending changed in the configuration is an argument of such a command. There is no copy, and
no weight changes.
"""

import contextlib
import json
import re
import shlex
from pathlib import Path

from huggingface_hub import ModelCardData, metadata_load
from transformers import PreTrainedConfig

from ..methods.registry import METHODS
from . import schema
from .configuration import (
    EXTENSION,
    changes,
    layer_type,
    older_keys,
    rope_parameters,
    text_config,
    text_section,
)
from .rotation import loader

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

It was made by the Python package `dprope`, a reproduction of
[Wu et al., EMNLP 2024](https://aclanthology.org/2024.emnlp-main.414), whose method is DPRoPE.
Its licence is that of the base model{bases}.

Plain `{loader}.from_pretrained(..., dtype="auto")` loads it; give the dtype there,
not by a cast afterwards. Give an engine the length: `vllm serve . --max-model-len {longer}`.
Short prompts are answered differently, too: try some of your own before you serve it.
{commands}
An engine that does not know the RoPE type may serve the model as if it were not extended, and give
no warning.{of_lists}
To check one, run `dprope check URL --model DIR --texts FILE`: it compares its losses with those of
transformers.
"""


_OF_LISTS = (
    " The converters of llama.cpp and Ollama drop the factors of single pairs. Keys that\n"
    "transformers may call unrecognized, `short_mscale` and `long_mscale`, are read by engines."
)
_COMMANDS = """
Without a copy, engines serve {base}'s own files so, given where these lie:

```sh
{commands}
```
"""


# The model types whose class in an engine takes every RoPE that is written here: it hands the
# parameters to the engine's get_rope, and rotates halves of a head, as the engine's longrope
# requires. Source: vllm/model_executor/models of vLLM 0.32 and python/sglang/srt/models of SGLang
# 0.5.23; of these, llama was run, in vLLM. Other classes there read no scaling (Mixtral and
# StableLM in SGLang), YaRN alone (GPT-OSS in vLLM), no longrope (Cohere and GLM-4, which rotate
# neighbours, and Qwen2-VL), or no mscale beside an original length below L', where SGLang does not
# rotate a token (Phi-3).
VLLM = (
    "llama",
    "mistral",
    "mixtral",
    "phi3",
    "qwen2",
    "qwen2_moe",
    "qwen3",
    "qwen3_moe",
    "gemma3_text",
    "granite",
    "gpt_neox",
    "olmo",
    "olmo2",
    "stablelm",
)
SGLANG = ("llama", "mistral", "qwen2", "qwen3", "granite")
# The architecture in a GGUF file, by model type, where llama.cpp's flags reach every layer that
# rotates; tried with llama-cpp-python 0.3.36.
_GGUF = {"mistral": "llama", "mixtral": "llama"} | {
    name: name.replace("_", "")
    for name in (
        "llama",
        "qwen2",
        "qwen2_moe",
        "qwen3",
        "qwen3_moe",
        "granite",
        "smollm3",
        "stablelm",
        "olmo",
        "olmoe",
    )
}
# The types of RoPE that these flags set, and undo in a file.
_FLAGS = {"default", "linear", "yarn"}
# The model types whose GGUF file takes a divisor for each pair (core.beyond.gguf_file).
_DIVISORS = ("llama", "mistral", "mixtral", "granite", "granitemoe", "arcee", "phi3")


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
    of_base = directory / BASES
    extension = getattr(text, EXTENSION, {})
    method = METHODS.get(extension.get("method", ""))
    if method is None:  # not extended, or by another version
        return
    if card.is_file() and not of_base.exists():  # an export's own card is not the base's
        card.rename(of_base)
    rope_type = rope_parameters(text)["rope_type"]
    options = ", ".join(f"`{key} = {value}`" for key, value in extension["options"].items())
    content = _CARD.format(
        data=data,
        loader=loader(config),
        base=name,
        longer=text.max_position_embeddings,
        context_length=extension["context_length"],
        factor=extension["factor"],
        before=before(extension.get("scaled", {}).get("rope_type", "default")),
        title=method.title,
        method=method.name,
        about=method.about,
        settings=options or "its defaults",
        rope_type=rope_type,
        weights="those of the base model, unchanged"
        if unextended
        else "those of the model in memory",
        bases=f", whose own card is `{BASES}`" if of_base.exists() else "",
        of_lists=_OF_LISTS if rope_type == "longrope" else "",
        commands=_COMMANDS.format(base=name, commands=commands(name, unextended, config))
        if unextended
        else "",
    )
    card.write_text(content, encoding="utf-8")


def commands(source: str, before: PreTrainedConfig, config: PreTrainedConfig) -> str:
    """Lines for a shell, each below a comment with the engine's name; a comment alone where the
    engine cannot do it, or is not known to.

    Args:
        source: where the engines find the checkpoint: its directory, or its name on the hub.
        before: its configuration.
        config: that of the extended model.
    """
    text = text_config(config)
    section = text_section(config)
    longer = text.max_position_embeddings
    changed = _changed(text_config(before), text)
    vllm = sglang = llama_cpp = f"# Not known to read scaled RoPE of {config.model_type!r} models."
    if text.model_type in VLLM:
        override = json.dumps({section: changed} if section else changed)
        vllm = _shell("vllm serve", source, "--hf-overrides", override, "--max-model-len", longer)
    if config.model_type in SGLANG:
        # With transformers 4 it reads rope_theta and rope_scaling; with 5, rope_scaling sets
        # rope_parameters.
        changed |= older_keys(text) | {"rope_scaling": changed.pop("rope_parameters")}
        program = "python -m sglang.launch_server --model-path"
        override = json.dumps(changed)
        sglang = _shell(
            program, source, "--json-model-override-args", override, "--context-length", longer
        )
    if config.model_type in (*_GGUF, *_DIVISORS):
        llama_cpp = _llama_cpp(before, config)
    return f"# vLLM, from 0.12 on\n{vllm}\n# SGLang\n{sglang}\n# llama.cpp\n{llama_cpp}"


def _changed(before: PreTrainedConfig, text: PreTrainedConfig) -> dict:
    """What an extension changed, with every key that an engine reads of the RoPE.

    SGLang merges the parameters into those in the files, and so does vLLM within a section of a
    multimodal model. So each key there that the method does not set is undone.
    """
    changed = changes(before, text)
    changed.pop(EXTENSION, None)  # which no engine reads
    pretrained = getattr(text, EXTENSION)["context_length"]
    longer = text.max_position_embeddings
    for key in schema.LENGTHS:  # as in an export, as engines take the least or the first
        if pretrained <= (getattr(before, key, None) or 0) < longer:
            changed[key] = longer
    parameters = dict(rope_parameters(text))
    for key in rope_parameters(before):
        if key in schema.SCALING:
            parameters.setdefault(key, 1.0 if key == "factor" else None)
    layers = layer_type(text)
    changed["rope_parameters"] = (
        parameters if layers is None else {**text.rope_parameters, layers: parameters}
    )
    return changed


def _llama_cpp(before: PreTrainedConfig, config: PreTrainedConfig) -> str:
    """The line for llama.cpp, whose flags replace the type of RoPE that a GGUF file states."""
    parameters = rope_parameters(config)
    longer = config.max_position_embeddings
    kind = parameters["rope_type"]
    architecture = _GGUF.get(config.model_type)
    if architecture is None or {kind, rope_parameters(before)["rope_type"]} - _FLAGS:
        if config.model_type in _DIVISORS and "scaled" not in getattr(config, EXTENSION):
            return (
                "# Its flags cannot say this; convert the checkpoint without scaling, and extend "
                "that file alike (dprope extend --model FILE.gguf … --output NEW.gguf)."
            )
        return "# llama.cpp is not known to serve this."
    line = (
        f"llama-server -m MODEL.gguf -c {longer} --rope-freq-base {parameters['rope_theta']} "
        f"--rope-scaling {'none' if kind == 'default' else kind} "
        f"--rope-scale {parameters.get('factor', 1.0)} "
    )
    if kind == "yarn":  # llama.cpp computes the attention factor itself
        line += (
            f"--yarn-orig-ctx {parameters['original_max_position_embeddings']} "
            f"--yarn-beta-fast {parameters['beta_fast']} "
            f"--yarn-beta-slow {parameters['beta_slow']} "
        )
    # llama-server takes no longer prompts than the file states.
    return f"{line}--override-kv {architecture}.context_length=int:{longer}"


def _shell(program: str, *arguments) -> str:
    return f"{program} {shlex.join(map(str, arguments))}"
