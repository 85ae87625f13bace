"""A repository on the Hugging Face hub as a directory here."""

from __future__ import annotations

from pathlib import Path

from huggingface_hub import snapshot_download

from eval import hub

# Weights in other formats than the one that is used.
OTHER_FORMATS = ["*.h5", "*.msgpack", "*.onnx*", "*.gguf", "*.pth", "*.ot"]


def snapshot(name: str) -> Path:
    """Its directory, at the commit that is pinned where one is; downloaded where it is not here yet."""
    commit = hub.REVISIONS.get(name)
    pickled = ["*.bin", "*.bin.index.json"]
    directory = Path(snapshot_download(name, revision=commit, ignore_patterns=[*OTHER_FORMATS, *pickled]))
    if not any(directory.glob("*.safetensors")):
        directory = Path(snapshot_download(name, revision=commit, ignore_patterns=OTHER_FORMATS))
    return directory
