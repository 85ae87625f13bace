"""The method that suits a model: ranked as a plain loop and SciPy rank, and exported with its reasons."""

import json

import numpy as np
import pytest
import torch
from scipy import stats
from transformers import AutoConfig, AutoModelForCausalLM

from core import rope
from core.extend import extend
from experiments.best import ranked, taken
from tests.models import byte_tokenizer, checkpoint

L, LONGER = 64, 128


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    return checkpoint(tmp_path_factory.mktemp("best") / "model", max_position_embeddings=L)


@pytest.fixture
def texts(tmp_path):
    letters = np.random.default_rng(0).choice(list("abcdefgh "), (5, 200))
    files = [tmp_path / f"{i}.txt" for i in range(5)]
    for file, line in zip(files, letters):
        file.write_text("".join(line))
    return files


def line(model, tmp_path, texts, *more):
    return ["--model", model, "--method", "best", "--texts", *texts, "--results", tmp_path / "results", *more]


def record(tmp_path):
    (file,) = (tmp_path / "results" / "model" / "best").glob("*.json")
    return json.loads(file.read_text())


def plain(model, method, options, texts):
    """The mean losses [texts, 2] within L and beyond it."""
    extended, found = extend(AutoModelForCausalLM.from_pretrained(model), method, 2, **options), []
    for file in texts:
        ids = byte_tokenizer()(file.read_text(), add_special_tokens=False, return_tensors="pt").input_ids[0]
        with torch.inference_mode():
            logits = extended(ids[None, :LONGER]).logits[0]
        losses = torch.nn.functional.cross_entropy(logits, ids[1 : LONGER + 1], reduction="none")
        found.append([losses[:L].mean().item(), losses[L:].mean().item()])
    return np.array(found)


def test_every_method_is_ranked_and_the_simplest_of_the_best_is_exported(call, model, texts, tmp_path):
    status, out, err = call("extend", *line(model, tmp_path, texts, "--no-bos", "--output", tmp_path / "made"))
    assert status == 0, err
    rows = record(tmp_path)["ranking"]
    ready = {name for name, method in rope.METHODS.items() if method.ready}
    assert {row["method"] for row in rows} == ready and len(rows) == len(ready) + 1  # DPRoPE at t = 0 and at n̂
    losses = [plain(model, row["method"], row["options"], texts) for row in rows]
    beyond = np.array([loss[:, 1] for loss in losses])  # [methods, texts]
    assert np.array([row["beyond"] for row in rows]) == pytest.approx(beyond, abs=1e-4)
    assert np.array([row["within"] for row in rows]) == pytest.approx(np.array([x[:, 0] for x in losses]), abs=1e-4)
    assert list(beyond.mean(axis=1)) == pytest.approx(sorted(beyond.mean(axis=1)), abs=1e-4)
    for row in rows[1:]:
        gaps = np.subtract(row["beyond"], rows[0]["beyond"])
        if gaps.any():
            low, high = stats.ttest_1samp(gaps, 0).confidence_interval()
            assert (row["difference"]["low"], row["difference"]["high"]) == pytest.approx((low, high))
            assert row["level"] == (low <= 0)
        else:
            assert row["level"]  # the same pairs by another rule
    (fewest,) = {min(row["numbers"] for row in rows if row["level"])}
    chosen = taken(rows)
    assert chosen["level"] and chosen["numbers"] == fewest and chosen["method"] in out
    stated = AutoConfig.from_pretrained(tmp_path / "made").rope_extension
    assert (stated["method"], stated["options"]) == (chosen["method"], chosen["options"])
    card = (tmp_path / "made" / "README.md").read_text()
    assert all(f"| {row['method']} " in card for row in rows)


def test_it_goes_on_from_its_journal(call, model, texts, tmp_path, monkeypatch):
    assert call("extend", *line(model, tmp_path, texts))[0] == 0
    whole = record(tmp_path)
    (journal,) = (tmp_path / "runs" / "model" / "best").glob("*.jsonl")
    lines = journal.read_text().splitlines(keepends=True)
    assert len(lines) == 5 * len(whole["ranking"])
    journal.write_text("".join(lines[:-7]) + lines[-7][:9])  # as a kill leaves it
    for file in (tmp_path / "results" / "model" / "best").iterdir():
        file.unlink()
    read = []
    from experiments import best

    scores = best.position_losses
    monkeypatch.setattr(best, "position_losses", lambda *given: read.append(given) or scores(*given))
    assert call("extend", *line(model, tmp_path, texts))[0] == 0
    assert len(read) == 7 and record(tmp_path)["ranking"] == whole["ranking"]
    monkeypatch.setattr("experiments.kit.base_model.BaseModel.load", lambda *_: pytest.fail("measured again"))
    assert call("extend", *line(model, tmp_path, texts))[0] == 0


def test_few_texts_have_no_interval_and_the_least_loss_decides():
    rows = [{"method": name, "options": {}, "numbers": i, "within": [0.0], "beyond": [loss]}
            for i, (name, loss) in enumerate([("a", 2.0), ("b", 1.0), ("c", 3.0)])]  # fmt: skip
    found = ranked(rows)
    assert [row["method"] for row in found] == ["b", "a", "c"] and taken(found)["method"] == "b"
    assert found[1]["difference"] == {"mean": 1.0, "low": None, "high": None, "n": 1}
    # With five, zero lies in the first's interval and not in the last's.
    more = {"a": [1.0, 1.1, 0.9, 1.3, 0.8], "b": [1.0, 1.0, 1.0, 1.0, 1.0], "c": [2.0, 2.1, 2.0, 2.1, 2.0]}
    found = ranked([row | {"beyond": more[row["method"]]} for row in rows])
    assert [(row["method"], row["level"]) for row in found] == [("b", True), ("a", True), ("c", False)]
    assert taken(found)["method"] == "a"


@pytest.mark.parametrize(
    ("given", "says"),
    [
        (["--texts", "{short}"], "longer text"),
        (["--texts", "{nothing}"], "no text file"),
        ([], "--texts"),
        (["--texts", "{text}", "--n-hat", "8"], "--n-hat"),
        (["--texts", "{text}", "--factor", "1.001"], "adds no token"),
        (["--texts", "{text}", "--method", "dprope"], "--method best"),
        (["--texts", "{text}", "--push", "me/mine"], "--output"),
        (["--texts", "{text}", "--output", "{model}/made"], "lies within"),
        (["--texts", "{text}", "--output", "{model}"], "exists already"),
        (["--texts", "{text}", "--model", "{tuned}"], "fine-tuned"),
        (["--texts", "{text}", "--model", "some.gguf"], "GGUF"),
    ],
)
def test_what_cannot_be_scored_is_refused_before_a_model_is_loaded(
    call, model, texts, tmp_path, monkeypatch, given, says
):
    monkeypatch.setattr("experiments.kit.base_model.BaseModel.load", lambda *_: pytest.fail("a model was loaded"))
    (tmp_path / "short.txt").write_text("a" * LONGER)  # one token less than is read
    tuned = checkpoint(tmp_path / "tuned", max_position_embeddings=L)
    how = {"scale": "toy", "method": "yarn", "factor": 2, "options": {}, "seed": 0, "steps": 1, "length": LONGER}
    (tuned / "training.json").write_text(json.dumps(how | {"identity": "a", "model": {"sha256": {}}}))
    places = {"short": tmp_path / "short.txt", "nothing": tmp_path / "no.txt", "text": texts[0], "model": model,
              "tuned": tuned}  # fmt: skip
    before = sorted(tmp_path.rglob("*"))
    words = ["--model", str(model), "--method", "best", "--no-bos", "--results", str(tmp_path / "results"), *given]
    status, _, err = call("extend", *(word.format(**places) for word in words))
    assert status == 2 and says in err and err.splitlines()[-1].startswith("error: ")
    assert sorted(tmp_path.rglob("*")) == before
