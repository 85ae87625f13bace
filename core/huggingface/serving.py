"""The commands by which engines serve a checkpoint as it was extended, from its own files: what
extending changed in its configuration is an argument. There is no copy, and no weight changes."""

from __future__ import annotations

import json
import shlex

from transformers import PreTrainedConfig

from .configuration import (
    EXTENSION,
    SCALING_KEYS,
    changes,
    layer_type,
    older_keys,
    rope_parameters,
    text_config,
    text_section,
)

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
    return f"# vLLM, from 0.11.1 on\n{vllm}\n# SGLang\n{sglang}\n# llama.cpp\n{llama_cpp}"


def _changed(before: PreTrainedConfig, text: PreTrainedConfig) -> dict:
    """What an extension changed, with every key that an engine reads of the RoPE.

    SGLang merges the parameters into those in the files, and so does vLLM within a section of a
    multimodal model. So each key there that the method does not set is undone.
    """
    changed = changes(before, text)
    changed.pop(EXTENSION, None)  # which no engine reads
    parameters = dict(rope_parameters(text))
    for key in rope_parameters(before).keys() & SCALING_KEYS - parameters.keys():
        parameters[key] = 1.0 if key == "factor" else None
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
        if "scaled" in getattr(config, EXTENSION):
            return "# llama.cpp cannot serve this."
        if config.model_type in _DIVISORS:
            return (
                "# Its flags cannot say this; extend a GGUF file that was made without scaling "
                "(python -m experiments.extend --model FILE.gguf --output NEW.gguf)."
            )
        return "# llama.cpp cannot serve this; of files without scaling, yarn, pi and ntk it can."
    flags = ["-c", longer, "--rope-freq-base", parameters["rope_theta"]]
    flags += ["--rope-scaling", "none" if kind == "default" else kind]
    flags += ["--rope-scale", parameters.get("factor", 1.0)]
    if kind == "yarn":  # llama.cpp computes the attention factor itself
        flags += ["--yarn-orig-ctx", parameters["original_max_position_embeddings"]]
        flags += ["--yarn-beta-fast", parameters["beta_fast"]]
        flags += ["--yarn-beta-slow", parameters["beta_slow"]]
    # llama-server takes no longer prompts than the file states.
    flags += ["--override-kv", f"{architecture}.context_length=int:{longer}"]
    return _shell("llama-server -m MODEL.gguf", *flags)


def _shell(program: str, *arguments) -> str:
    return f"{program} {shlex.join(map(str, arguments))}"
