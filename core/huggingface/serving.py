"""The commands by which engines serve a checkpoint as it was extended, from its own files: what
extending changed in its configuration is an argument. There is no copy, and no weight changes."""

from __future__ import annotations

import json
import shlex

from transformers import PreTrainedConfig

from .configuration import (
    EXTENSION,
    changes,
    older_keys,
    rope_parameters,
    text_config,
    text_section,
)

# The architecture in a GGUF file, by model type, where llama.cpp's flags reach every layer that
# rotates.
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


def commands(source: str, before: PreTrainedConfig, config: PreTrainedConfig) -> str:
    """Lines for a shell, each below a comment with the engine's name; a comment alone where the
    engine cannot do it.

    Args:
        source: where the engines find the checkpoint: its directory, or its name on the hub.
        before: its configuration.
        config: that of the extended model.
    """
    text, section = text_config(config), text_section(config)
    changed, longer = changes(before, config), text.max_position_embeddings
    changed.pop(EXTENSION, None)  # which no engine reads
    vllm = sglang = f"# Its argument does not replace what stands in {section}; export the model."
    # vLLM merges parameters into those of a multimodal model's text part, where an export's own
    # would stay.
    if not (section and hasattr(text_config(before), EXTENSION)):
        override = json.dumps({section: changed} if section else changed)
        vllm = _shell("vllm serve", source, "--hf-overrides", override, "--max-model-len", longer)
    if not section:
        # transformers 4 reads rope_theta and rope_scaling; in transformers 5, rope_scaling sets
        # rope_parameters.
        if (parameters := changed.pop("rope_parameters", None)) is not None:
            changed |= older_keys(text) | {"rope_scaling": parameters}
        override = json.dumps(changed)
        program = "python -m sglang.launch_server --model-path"
        sglang = _shell(
            program, source, "--json-model-override-args", override, "--context-length", longer
        )
    return (
        f"# vLLM, from 0.11.1 on\n{vllm}\n# SGLang\n{sglang}\n# "
        f"llama.cpp\n{_llama_cpp(before, text)}"
    )


def _llama_cpp(before: PreTrainedConfig, text: PreTrainedConfig) -> str:
    parameters, longer = rope_parameters(text), text.max_position_embeddings
    kind, base, architecture = (
        parameters["rope_type"],
        parameters["rope_theta"],
        _GGUF.get(text.model_type),
    )
    if kind not in ("default", "linear", "yarn") or architecture is None:
        return (
            f"# It has no flags for {kind!r} RoPE of {text.model_type!r} models; extend the "
            f"GGUF file."
        )
    flags = ["-c", longer]
    if kind != "default":
        flags += ["--rope-scaling", kind, "--rope-scale", parameters["factor"]]
    if kind == "yarn":  # llama.cpp computes the attention factor itself
        flags += ["--yarn-orig-ctx", parameters["original_max_position_embeddings"]]
        flags += [
            "--yarn-beta-fast",
            parameters["beta_fast"],
            "--yarn-beta-slow",
            parameters["beta_slow"],
        ]
    if base != rope_parameters(text_config(before))["rope_theta"]:
        flags += ["--rope-freq-base", base]
    # llama-server takes no longer prompts than the file states.
    return _shell(
        "llama-server -m MODEL.gguf",
        *flags,
        "--override-kv",
        f"{architecture}.context_length=int:{longer}",
    )


def _shell(program: str, *arguments) -> str:
    return f"{program} {shlex.join(map(str, arguments))}"
