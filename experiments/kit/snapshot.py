"""Download a repository from the Hugging Face hub to a local directory."""

from __future__ import annotations

from pathlib import Path

from huggingface_hub import snapshot_download

from eval import hub

# Weights in formats that are not used here.
OTHER_FORMATS = ["*.h5", "*.msgpack", "*.onnx*", "*.gguf", "*.pth", "*.ot"]


def snapshot(name: str) -> Path:
    """The repository's local directory, at the pinned commit if there is one; downloaded if needed."""
    commit = hub.REVISIONS.get(name)
    pickled = ["*.bin", "*.bin.index.json"]
    directory = Path(snapshot_download(name, revision=commit, ignore_patterns=[*OTHER_FORMATS, *pickled]))
    if not any(directory.glob("*.safetensors")):
        directory = Path(snapshot_download(name, revision=commit, ignore_patterns=OTHER_FORMATS))
    return directory
