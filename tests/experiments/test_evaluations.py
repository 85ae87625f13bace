"""Every evaluation from the command line to its record, on a small random model, against a plain
recomputation."""

import json
import statistics

import numpy as np
import pytest
import torch

from eval import longbench, open_llm, passkey, ruler
from tests.eval.test_open_llm import write_benchmarks
from tests.models import byte_tokenizer, checkpoint, random_model, token_losses

LENGTH = 2048


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    return checkpoint(tmp_path_factory.mktemp("model") / "toy", max_position_embeddings=LENGTH)


@pytest.fixture
def measure(call, model, tmp_path):
    """measure("perplexity", options…) -> its record, after a second call has found nothing left to
    do."""

    def run(name, *arguments):
        command = [name, "--model", model, "--results", tmp_path / "results", *arguments]
        status, out, err = call(*command)
        assert status == 0, err
        (file,) = (tmp_path / "results" / "toy" / name).glob("*.json")
        assert out.strip().splitlines()[-1] == str(file)
        written = file.read_bytes()
        assert "done already" in call(*command)[1] and file.read_bytes() == written
        return json.loads(written)

    return run


def journal(tmp_path, name):
    """{key: value} of the only journal."""
    (file,) = (tmp_path / "runs" / "toy" / name).glob("*.jsonl")
    return {key: part["value"] for key, part in map(json.loads, file.read_text().splitlines())}


def continuation(reference, prompt, count):
    """transformers' own greedy continuation of a text."""
    tokens = byte_tokenizer()(prompt, return_tensors="pt", add_special_tokens=False)
    made = reference.generate(**tokens, do_sample=False, max_new_tokens=count)[
        0, tokens.input_ids.shape[1] :
    ]
    return byte_tokenizer().decode(made, skip_special_tokens=True)


def test_ruler(measure, tmp_path):
    record = measure("ruler", "--lengths", "1900", "--tasks", "fwe", "--samples", "1")
    assert record["scores"]["tasks"]["1900"]["fwe"]["n"] == 1
    reference = random_model(max_position_embeddings=LENGTH)
    values = journal(tmp_path, "ruler")
    for sample in ruler.samples("fwe", 1900, byte_tokenizer(), 1, 42):
        value = values[f"1900/fwe/{sample['index']}"]
        expected = continuation(reference, sample["prompt"], ruler.TASKS["fwe"])
        assert value["prediction"] == expected and value["tokens"] == sample["length"] <= 1900


def test_longbench_e(measure, tmp_path):
    """Every other sample's reference is what the model will say, so that scores are neither all 0
    nor all 1."""
    reference = random_model(max_position_embeddings=LENGTH)
    expected = {}
    rows = []
    for number, length in enumerate((10, 4000)):
        row = {
            "_id": str(number),
            "input": "x = 1" * number,
            "context": "def f(): " * (number + 1),
            "length": length,
        }
        answer = continuation(
            reference, longbench.prompt("qasper", row), longbench.TASKS["qasper"].max_new_tokens
        )
        rows.append(row | {"answers": [answer if number % 2 else "?"], "all_classes": None})
        expected[f"qasper/{number}"] = longbench.score("qasper", answer, rows[-1]["answers"], None)
    file = tmp_path / "data" / "longbench_e" / "qasper.jsonl"
    file.parent.mkdir(parents=True)
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    record = measure("longbench_e", "--benchmarks", tmp_path / "data", "--tasks", "qasper")
    scores = {key: value["score"] for key, value in journal(tmp_path, "longbench_e").items()}
    assert scores == expected and scores["qasper/1"] == 1 > scores["qasper/0"]
    assert json.dumps(record["scores"]).count('"mean"') >= 3


def test_open_llm(measure, model, tmp_path):
    data = write_benchmarks(tmp_path / "data" / "open_llm")
    record = measure(
        "open_llm", "--benchmarks", data.parent, "--tasks", "hellaswag", "--limit", "4"
    )
    reference = random_model(max_position_embeddings=LENGTH)
    values = journal(tmp_path, "open_llm")
    keys = open_llm.documents("hellaswag", data, 4)
    scores = dict(open_llm.evaluate(reference, byte_tokenizer(), "hellaswag", keys, data))
    of_task = record["scores"]["tasks"]["hellaswag"]
    assert {key: values[key] for key in keys} == scores and of_task["n"] == 4
    assert of_task["mean"] == pytest.approx(25 * sum(row["score"] for row in scores.values()))
    assert record["scores"]["by_document"]["hellaswag"] == [
        round(scores[key]["score"], 4) for key in keys
    ]


def test_time_cost(measure, tmp_path):
    options = ["--method", "pi", "yarn", "dprope", "--length", "64", "--repeats", "3"]
    record = measure("time_cost", *options)
    rows = {(row["run"], row["phase"]): row for row in record["scores"]["rows"]}
    runs = (
        "pi_s=2",
        "yarn_s=2",
        "dprope_s=2",
        "pi_s=2_again",
    )  # the last against the first: the clock's own noise
    assert rows.keys() == {(run, phase) for run in runs for phase in ("train", "test")}
    (file,) = (tmp_path / "runs" / record["run"]["scale"] / "time_cost").glob("*.jsonl")
    rounds = [json.loads(line)[1] for line in file.read_text().splitlines()]
    for (run, phase), row in rows.items():
        ratios = sorted(found[run][phase] / found["pi_s=2"][phase] for found in rounds)
        assert [row["low"], row["relative_to_pi"], row["high"]] == ratios and row["rounds"] == 3
        assert (ratios == [1, 1, 1]) == (run == "pi_s=2")
        assert row["seconds"] == statistics.median(found[run][phase] for found in rounds) > 0


def test_numbers_that_are_not_finite_stop_the_run_with_the_samples_name(call, tmp_path):
    broken = random_model(max_position_embeddings=LENGTH)
    with torch.no_grad():
        broken.lm_head.weight.fill_(float("nan"))
    broken.save_pretrained(tmp_path / "broken")
    byte_tokenizer().save_pretrained(tmp_path / "broken")
    line = ["--results", tmp_path / "results", "--lengths", "512", "--depths", "1", "--keys", "1"]
    status, _, err = call("passkey", "--model", tmp_path / "broken", *line)
    assert status == 2 and "512/0/0: the logits after 0 new tokens are not finite" in err, err
    assert not (tmp_path / "results").exists()


DYNAMIC = {"rope_parameters": {"rope_type": "dynamic", "rope_theta": 1e4, "factor": 4.0}}


def test_a_model_that_no_method_can_extend_is_evaluated_as_it_is_and_shown(call, tmp_path):
    results = tmp_path / "results"
    reference = random_model(max_position_embeddings=400, **DYNAMIC)
    checkpoint(tmp_path / "toy", max_position_embeddings=400, **DYNAMIC)
    (tmp_path / "book.txt").write_text("All happy families are alike. " * 20)
    for line in (
        ["passkey", "--depths", "1", "--keys", "1", "--lengths", "420"],
        ["perplexity", "--texts", tmp_path / "book.txt", "--tokens", "401"],
    ):
        status, _, err = call(*line, "--model", tmp_path / "toy", "--results", results)
        assert status == 0, err
    record = json.loads((results / "toy" / "perplexity" / "as-it-is.json").read_text())
    run = record["run"]
    assert (run["method"], run["factor"], run["lengths"]) == (None, 1.0, [400])
    ids = byte_tokenizer().encode((tmp_path / "book.txt").read_text())[:401]
    losses = [*token_losses(reference, ids[:400]), token_losses(reference, ids[200:])[-1]]
    assert record["scores"]["by_length"][0]["token"]["mean"] == pytest.approx(
        np.exp(np.mean(losses)), rel=1e-4
    )
    sample = passkey.sample(byte_tokenizer().encode, 420, 0.0, 0)
    ((_, value),) = journal(tmp_path, "passkey").items()
    assert value["prediction"] == continuation(reference, sample["prompt"], passkey.MAX_NEW_TOKENS)
    assert json.loads((results / "toy" / "model.json").read_text())["geometry"] == {
        "context_length": 400
    }
    assert call("tables.__main__", "--results", results)[0] == 0
