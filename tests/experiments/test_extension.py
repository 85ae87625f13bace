"""The extension experiment end to end on a small random model, killed and resumed for real."""

import json
import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
import torch

from core.extend import extend
from core.rope import RopeGeometry
from experiments import extension, scales, texts
from experiments.records import ROOT
from tests.models import byte_tokenizer, checkpoint, random_model

GEOMETRY = RopeGeometry(16, 10000.0, 1024)


@pytest.fixture
def toy(tmp_path, monkeypatch):
    """A scale of a random model with L = 1024, and two books of random letters."""
    path = checkpoint(tmp_path / "model", max_position_embeddings=1024)
    monkeypatch.setitem(scales.SCALES, "toy", scales.Scale("Toy", str(path), GEOMETRY, n_hat={2: 4}))
    letters = np.random.default_rng(0).choice(list("abcdefgh "), 6000)
    return [texts.Book("one", "".join(letters[:3000])), texts.Book("two", "".join(letters[3000:]))]


def test_records_hold_what_a_plain_loop_measures(toy, tmp_path):
    results = tmp_path / "results"
    extension.measure("toy", scales.get("toy").comparison(2), 2, toy, results)
    written = {file.stem: json.loads(file.read_text()) for file in (results / "toy" / "extension").iterdir()}
    names = ("original", "pi", "ntk", "yarn", "dprope", "dprope_n-hat=4", "dprope-significant")
    assert set(written) == {f"{name}_s=2_books=2" for name in names}
    record = written["yarn_s=2_books=2"]
    model = extend(random_model(max_position_embeddings=1024), "yarn", 2)
    for book in toy:
        tokens = byte_tokenizer()(book.text, add_special_tokens=False, return_tensors="pt").input_ids[0, :2049]
        with torch.inference_mode():
            logits = model(tokens[None, :-1]).logits[0]
        losses = torch.nn.functional.cross_entropy(logits, tokens[1:], reduction="none").numpy()
        assert record["blocks"][book.title] == pytest.approx(losses.reshape(16, 128).mean(1), abs=1e-4)
    blocks = np.array(list(record["blocks"].values()))
    assert [b["mean"] for b in record["buckets"]] == pytest.approx([blocks[:, :8].mean(), blocks[:, 8:].mean()])
    assert [(s["start"], s["end"], s["tokens"]) for s in record["ranges"]] == [
        (0, 1024, 2048),
        (1024, 1536, 1024),
        (1536, 2048, 1024),
    ]
    assert all(s["low"] <= s["mean"] <= s["high"] for s in record["buckets"])
    assert record["model"]["sha256"].keys() == {"model.safetensors"}


def test_what_is_done_is_skipped_without_loading_the_model(toy, tmp_path, capsys, monkeypatch):
    arguments = ("toy", [("pi", {})], 2, toy, tmp_path / "results")
    extension.measure(*arguments)
    monkeypatch.setattr("experiments.models.load", lambda *_: pytest.fail("the model was loaded"))
    extension.measure(*arguments)
    assert "done already" in capsys.readouterr().out


def test_killed_at_any_moment_it_goes_on_where_it_was(toy, tmp_path):
    """SIGKILL after the first journalled part; the second run keeps that part and ends as one run would."""
    program = tmp_path / "program.py"
    program.write_text(
        "import json, sys\n"
        "from experiments import extension, scales, texts\n"
        "from core.rope import RopeGeometry\n"
        "model, books, results = sys.argv[1:]\n"
        "scales.SCALES['toy'] = scales.Scale('Toy', model, RopeGeometry(16, 10000.0, 1024))\n"
        "library = [texts.Book(*book) for book in json.loads(open(books).read())]\n"
        "extension.measure('toy', [('pi', {}), ('yarn', {})], 2, library, results)\n"
    )
    (tmp_path / "books.json").write_text(json.dumps([[book.title, book.text] for book in toy]))
    command = [sys.executable, str(program), str(tmp_path / "model"), str(tmp_path / "books.json")]
    environment = os.environ | {"PYTHONPATH": str(ROOT)}

    killed = subprocess.Popen([*command, str(tmp_path / "a" / "results")], env=environment, stderr=subprocess.DEVNULL)
    journals = tmp_path / "a" / "runs" / "toy" / "extension"
    deadline = time.monotonic() + 60
    while not any(file.stat().st_size for file in journals.glob("*.jsonl")) and time.monotonic() < deadline:
        time.sleep(0.002)
    killed.send_signal(signal.SIGKILL)
    assert killed.wait() == -signal.SIGKILL
    (first,) = journals.glob("*.jsonl")
    kept = first.read_text().splitlines()[0]

    for name in ("a", "b"):
        subprocess.run(
            [*command, str(tmp_path / name / "results")], env=environment, check=True, stderr=subprocess.DEVNULL
        )
    resumed, uninterrupted = (
        {
            file.name: json.loads(file.read_text())["blocks"]
            for file in (tmp_path / name / "results" / "toy" / "extension").iterdir()
        }
        for name in ("a", "b")
    )
    assert resumed == uninterrupted and len(resumed) == 2
    lines = first.read_text().splitlines()
    assert lines[0] == kept and len(lines) == 2  # nothing twice


def test_a_text_too_short_is_refused(toy, tmp_path):
    with pytest.raises(Exception, match="'short' has 5 tokens; scoring 2048 positions needs a longer text"):
        extension.measure("toy", [("pi", {})], 2, [texts.Book("short", "hello")], tmp_path / "results")
    assert not (tmp_path / "results").exists()
