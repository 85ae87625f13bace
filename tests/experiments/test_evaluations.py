"""Every evaluation from the command line to its record, on a small random model, against a plain
recomputation."""

import json
import statistics

import numpy as np
import pytest
import torch

import records
from eval import longbench, open_llm, ruler
from experiments import time_cost
from tests.eval.test_open_llm import write_benchmarks
from tests.experiments.written import PASSKEY, journal, record, record_file
from tests.files import edit, read
from tests.models import byte_tokenizer, checkpoint, random_model, token_losses

LENGTH = 2048
TOKENIZER = byte_tokenizer()


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    return checkpoint(tmp_path_factory.mktemp("model") / "toy", max_position_embeddings=LENGTH)


@pytest.fixture(scope="module")
def reference():
    """The same model by transformers alone."""
    return random_model(max_position_embeddings=LENGTH)


@pytest.fixture
def measure(done, model, results):
    """measure("perplexity …", …) -> its record, after a second call, which states defaults, has
    found nothing left to do."""

    def run(line, *arguments, defaults=""):
        command = [line, "--model", model, "--results", results, *arguments]
        assert done(*command).splitlines()[-1] == str(record_file(results))
        written = record(results)
        assert "done already" in done(f"{line} {defaults}", *command[1:])
        assert record(results) == written
        return written

    return run


def continuation(model, prompt, count):
    """transformers' own greedy continuation of a text."""
    ids = TOKENIZER(prompt, return_tensors="pt", add_special_tokens=False).input_ids
    made = model.generate(ids, do_sample=False, max_new_tokens=count)
    return TOKENIZER.decode(made[0, ids.shape[1] :], skip_special_tokens=True)


def test_ruler(measure, reference, results):
    record = measure("ruler --lengths 1900 --tasks fwe --samples 1")
    assert record["scores"]["tasks"]["1900"]["fwe"]["n"] == 1
    (sample,) = ruler.samples("fwe", 1900, TOKENIZER, 1, 42, TOKENIZER.encode)
    value = journal(results)[f"1900/fwe/{sample['index']}"]
    count = ruler.TASKS["fwe"]
    assert value["prediction"] == continuation(reference, sample["prompt"], count)
    assert value["tokens"] == sample["length"] <= 1900


def test_kept_samples_that_were_changed_are_refused(measure, call, model, results):
    line = "ruler --lengths 1900 --tasks fwe --samples 1"
    measure(line)
    (file,) = (results.resolve().parent / "runs/samples").glob("ruler_*.json")
    edit(file, samples=[{"prompt": "another"}])
    status, _, said = call(f"{line} --replace --model", model, "--results", results)
    assert status == 2 and "make the samples again" in said and "index" in said


def test_longbench_e(measure, reference, results, tmp_path):
    """The second sample's right answer is what the model will say, so that scores are neither all 0
    nor all 1."""
    count = longbench.TASKS["qasper"].max_new_tokens
    file = tmp_path / "data/longbench_e/qasper.jsonl"
    file.parent.mkdir(parents=True)
    rows = [
        {"_id": "0", "input": "", "context": "def f(): ", "length": 10},
        {"_id": "1", "input": "x = 1", "context": "def f(): def f(): ", "length": 4000},
    ]
    said = [continuation(reference, longbench.prompt("qasper", row), count) for row in rows]
    for row, right in zip(rows, ("?", said[1])):
        row |= {"answers": [right], "all_classes": None}
    file.write_text("\n".join(map(json.dumps, rows)))
    expected = {
        f"qasper/{row['_id']}": longbench.score("qasper", answer, row["answers"], None)
        for row, answer in zip(rows, said)
    }
    record = measure(
        "longbench_e --tasks qasper",
        "--benchmarks",
        tmp_path / "data",
        defaults=f"--window {LENGTH}",
    )
    assert {key: value["score"] for key, value in journal(results).items()} == expected
    assert expected["qasper/1"] == 1 > expected["qasper/0"]
    assert json.dumps(record["scores"]).count('"mean"') >= 3


def test_open_llm(measure, reference, results, tmp_path):
    data = write_benchmarks(tmp_path / "data/open_llm")
    line = "open_llm --tasks hellaswag --limit 4"
    record = measure(line, "--benchmarks", data.parent, defaults="--shots 0")
    tasks = open_llm.load("hellaswag", data)
    keys = open_llm.documents(tasks, 4)
    values = dict(open_llm.evaluate(reference, TOKENIZER, tasks, keys))
    assert journal(results) == values
    scores = [values[key]["score"] for key in keys]
    assert record["scores"]["tasks"]["hellaswag"]["mean"] == pytest.approx(100 * np.mean(scores))
    assert record["scores"]["tasks"]["hellaswag"]["n"] == 4
    assert record["scores"]["by_document"]["hellaswag"] == [round(score, 4) for score in scores]


def test_time_cost(measure, monkeypatch):
    rounds = []
    timed = time_cost.time_round
    monkeypatch.setattr(
        time_cost, "time_round", lambda *given: rounds.append(timed(*given)) or rounds[-1]
    )
    record = measure("time_cost --method pi yarn --length 64 --repeats 3")
    rows = {(row["run"], row["phase"]): row for row in record["scores"]["rows"]}
    # The last against the first is the clock's own noise.
    runs = ("pi_s=2", "yarn_s=2", "pi_s=2_again")
    assert rows.keys() == {(run, phase) for run in runs for phase in ("train", "test")}
    del rounds[0]  # which warms up
    for (run, phase), row in rows.items():
        ratios = sorted(found[run][phase] / found["pi_s=2"][phase] for found in rounds)
        assert [row["low"], row["relative_to_pi"], row["high"]] == ratios
        assert row["seconds"] == statistics.median(found[run][phase] for found in rounds) > 0


def test_numbers_that_are_not_finite_stop_the_run_with_the_samples_name(refusal, tmp_path):
    broken = random_model(max_position_embeddings=LENGTH)
    with torch.no_grad():
        broken.lm_head.weight.fill_(float("nan"))
    broken.save_pretrained(tmp_path / "broken")
    TOKENIZER.save_pretrained(tmp_path / "broken")
    said = refusal(PASSKEY, "--model", tmp_path / "broken", "--results", tmp_path / "results")
    assert "400/1/0" in said and "not finite" in said
    assert not (tmp_path / "results").exists()


def test_a_model_that_no_method_can_extend_is_evaluated_as_it_is(done, tmp_path, results):
    dynamic = {"rope_type": "dynamic", "rope_theta": 1e4, "factor": 4.0}
    sizes = {"max_position_embeddings": 400, "rope_parameters": dynamic}
    checkpoint(tmp_path / "toy", **sizes)
    reference = random_model(**sizes)
    text = "All happy families are alike. " * 20
    (tmp_path / "book.txt").write_text(text)
    line = ["--model", tmp_path / "toy", "--texts", tmp_path / "book.txt", "--results", results]
    done("perplexity --tokens 401", *line)
    assert record_file(results).stem == "as-it-is"
    found = record(results)
    run = found["run"]
    assert (run["method"], run["factor"], run["lengths"]) == (None, 1.0, [400])
    ids = TOKENIZER.encode(text)[:401]
    losses = [*token_losses(reference, ids[:400]), token_losses(reference, ids[200:])[-1]]
    (scores,) = found["scores"]["by_length"]
    assert scores["token"]["mean"] == pytest.approx(np.exp(np.mean(losses)), rel=1e-4)
    facts = read(results / "toy" / records.MODEL)
    assert facts["geometry"] == {"context_length": 400}
