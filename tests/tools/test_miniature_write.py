"""The miniature benchmarks through their command line: made once, and the same or refused."""

import json

import pytest

from tests.models import byte_tokenizer, checkpoint
from tools.tiny.miniature import write


@pytest.fixture
def made(call, tmp_path, monkeypatch):
    """made("--seed", 1, …) -> (status, stdout, stderr) for a small model; the samples themselves are left out."""
    model = checkpoint(tmp_path / "model")
    for name in ("write_longbench", "write_open_llm"):
        monkeypatch.setattr(write, name, lambda folder, *_: folder.mkdir(parents=True))
    usual = ["--model", model, "--output", tmp_path / "out", "--samples", 1, "--documents", 6]
    return lambda *more: call("tools.tiny.miniature.write", *usual, *more)


def sentence(err):
    lines = err.splitlines()
    return lines[0] if len(lines) == 1 and lines[0].startswith("error: ") else None


def test_what_is_there_is_the_same_or_refused(made, tmp_path):
    assert made()[0] == 0
    status, out, _ = made()
    assert status == 0 and "done already" in out
    assert str(tmp_path / "out") in sentence(made("--seed", 1)[2])
    # As many tokens, of other texts.
    file = tmp_path / "model" / "tokenizer.json"
    other = byte_tokenizer()
    state = json.loads(other.backend_tokenizer.to_str())
    vocabulary = state["model"]["vocab"]
    vocabulary["a"], vocabulary["b"] = vocabulary["b"], vocabulary["a"]
    file.write_text(json.dumps(state))
    assert str(tmp_path / "out") in sentence(made()[2])
    (tmp_path / "out" / write.FACTS).write_text("{")
    assert str(tmp_path / "out") in sentence(made()[2])
