"""Every evaluation from the command line to its record, on a small random model, against a plain recomputation."""

import json
import shutil
import statistics

import numpy as np
import pytest
import torch

from core import clex
from core.extend import extend
from eval import longbench, open_llm, passkey, ruler
from experiments import perplexity
from experiments.kit import texts
from tests.core.clex.made import clex_model
from tests.eval.test_open_llm import write_benchmarks
from tests.models import byte_tokenizer, checkpoint, random_model

LENGTH = 2048
TASKS = ("qasper", "multifieldqa_en")


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    return checkpoint(tmp_path_factory.mktemp("model") / "toy", max_position_embeddings=LENGTH)


@pytest.fixture
def measure(call, model, tmp_path):
    """measure("perplexity", options…) -> its record, after a second call has found nothing left to do."""

    def run(name, *arguments):
        command = [name, "--model", model, "--results", tmp_path / "results", *arguments]
        status, out, err = call(*command)
        assert status == 0, err
        (file,) = (tmp_path / "results" / "toy" / name).glob("*.json")
        *scores, last = out.strip().splitlines()  # numbers first
        assert scores and last == str(file)
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
    made = reference.generate(**tokens, do_sample=False, max_new_tokens=count)[0, tokens.input_ids.shape[1] :]
    return byte_tokenizer().decode(made, skip_special_tokens=True)


@pytest.mark.parametrize(("given", "stated"), [(["100"], 100), (["80", "160"], [80, 160])])
def test_perplexity(measure, tmp_path, given, stated):
    text = "".join(np.random.default_rng(0).choice(list("abcdefgh "), 900))
    (tmp_path / "book.txt").write_text(text)
    options = ["--method", "yarn", "--lengths", "256", "512", "--stride", *given, "--texts", tmp_path / "book.txt"]
    record = measure("perplexity", *options)
    assert record["data"].keys() == {"book"} and record["stride"] == stated

    reference = extend(random_model(max_position_embeddings=LENGTH), "yarn", 2)
    tokens = torch.tensor(byte_tokenizer()(text, add_special_tokens=False).input_ids)
    for row, length, stride in zip(record["scores"], (256, 512), map(int, given * 2)):
        losses, means = [], []
        for end in [*range(length, len(tokens), stride), len(tokens)]:  # the window that ends there scores what is new
            begin = 0 if end == length else max(stride * -(-(end - length) // stride), 0)
            with torch.no_grad():
                log_probs = reference(tokens[None, begin:end]).logits[0].log_softmax(-1)
            new = range(max(len(losses) + 1, begin + 1), end)
            losses += (own := [-float(log_probs[i - 1 - begin, tokens[i]]) for i in new])
            means.append(np.mean(own))
        assert (row["windows"], row["tokens"]) == (len(means), len(losses)) and row["tokens"] == len(tokens) - 1
        windows = [sums for key, sums in record["by_window"].items() if key.startswith(f"book/{length}/")]
        assert np.array(windows)[:, 0] / np.array(windows)[:, 1] == pytest.approx(means, rel=1e-4)
        assert row["token"]["mean"] == pytest.approx(np.exp(np.mean(losses)), rel=1e-4)
        assert row["window"]["mean"] == pytest.approx(np.exp(np.mean(means)), rel=1e-4)
        for convention in ("token", "window"):
            assert row[convention]["low"] < row[convention]["mean"] < row[convention]["high"]


def test_perplexity_by_position_of_every_window(measure, monkeypatch, tmp_path):
    """Against the logits of the window alone, in one pass; the scores are those without it."""
    monkeypatch.setattr(perplexity, "BUCKET", 100)
    (tmp_path / "book.txt").write_text("".join(np.random.default_rng(0).choice(list("abcdefgh "), 900)))
    options = ["--method", "pi", "--lengths", "256", "512", "--stride", "128", "256", "--texts", tmp_path / "book.txt"]
    plain, record = (measure("perplexity", *options, *more) for more in ([], ["--by-position", "--replace"]))
    assert record["bucket"] == 100 and "by_position" not in plain
    for row, other in zip(plain["scores"], record["scores"]):
        assert row["token"] == pytest.approx(other["token"], rel=1e-6)

    reference = extend(random_model(max_position_embeddings=LENGTH), "pi", 2)
    tokens = torch.tensor(byte_tokenizer()((tmp_path / "book.txt").read_text(), add_special_tokens=False).input_ids)
    assert record["by_position"].keys() == record["by_window"].keys()
    for key, means in record["by_position"].items():
        _, length, begin = key.split("/")
        window = tokens[int(begin) : int(begin) + int(length)]
        with torch.no_grad():
            losses = torch.nn.functional.cross_entropy(
                reference(window[None, :-1]).logits[0], window[1:], reduction="none"
            )
        assert means == pytest.approx([float(part.mean()) for part in losses.split(100)], abs=1e-5)


def test_perplexity_of_clex_reads_each_window_at_the_scale_of_its_length(call, tmp_path):
    base = checkpoint(tmp_path / "base", max_position_embeddings=16)
    weights = clex.save(clex_model(max_position_embeddings=16), tmp_path / "weights").parent
    (tmp_path / "book.txt").write_text("".join(np.random.default_rng(0).choice(list("abcdefgh "), 90)))
    command = ["perplexity", "--model", base, "--method", "clex", "--factor", "4", "--weights", weights]
    command += ["--stride", "8", "--texts", tmp_path / "book.txt", "--lengths"]
    scores = {}
    for lengths in (("16", "48"), ("16",), ("48",)):  # the short windows alone, and where they begin longer ones
        assert call(*command, *lengths, "--results", tmp_path / "-".join(lengths))[0] == 0
        (file,) = (tmp_path / "-".join(lengths) / "base" / "perplexity").glob("*.json")
        scores[lengths] = [row["token"]["mean"] for row in json.loads(file.read_text())["scores"]]
    assert scores["16", "48"] == pytest.approx(scores[("16",)] + scores[("48",)], rel=1e-6)


def test_time_cost_names_weights_without_where_they_lie(call, tmp_path):
    base = checkpoint(tmp_path / "base", max_position_embeddings=16)
    weights = clex.save(clex_model(max_position_embeddings=16), tmp_path / "weights").parent
    command = ["time_cost", "--model", base, "--method", "pi", "clex", "--factor", "4", "--weights", weights]
    assert call(*command, "--length", "8", "--repeats", "1", "--results", tmp_path / "results")[0] == 0
    (file,) = (tmp_path / "results" / "base" / "time_cost").glob("*.json")
    assert {"weights": "weights"} in [row["options"] for row in json.loads(file.read_text())["scores"]]


def test_passkey(measure, tmp_path):
    record = measure("passkey", "--lengths", "512", "--depths", "2", "--keys", "2")
    assert [row["n"] for row in record["scores"]["by_depth"]] == [2, 2]
    high = pytest.approx(1.96**2 / (4 + 1.96**2), abs=1e-3)  # Wilson's upper bound of none of n: z² / (n + z²)
    shown = {"length": 512, "tokens": 427, "mean": 0.0, "low": 0.0, "high": high, "n": 4}
    assert record["scores"]["by_length"] == [shown]
    reference = random_model(max_position_embeddings=LENGTH)
    for key, value in journal(tmp_path, "passkey").items():
        sample = passkey.sample(byte_tokenizer().encode, 512, float(key.split("/")[1]), int(key.split("/")[2]))
        assert value["prediction"] == continuation(reference, sample.prompt, passkey.MAX_NEW_TOKENS)


def test_ruler(measure, tmp_path):
    record = measure("ruler", "--lengths", "1900", "2000", "--tasks", "niah_single_1", "--samples", "2")
    assert {length: cells["niah_single_1"]["n"] for length, cells in record["scores"]["tasks"].items()} == {
        "1900": 2,
        "2000": 2,
    }
    reference, found = random_model(max_position_embeddings=LENGTH), journal(tmp_path, "ruler")
    for length in (1900, 2000):
        for sample in ruler.samples("niah_single_1", length, byte_tokenizer(), 2, 42):
            value = found[f"{length}/niah_single_1/{sample['index']}"]
            expected = continuation(reference, sample["prompt"], ruler.TASKS["niah_single_1"].tokens_to_generate)
            assert value["prediction"] == expected and value["tokens"] == sample["length"] <= length


def test_longbench_e(measure, tmp_path):
    """Every other sample's reference is what the model will say, so that scores are neither all 0 nor all 1."""
    reference = random_model(max_position_embeddings=LENGTH)
    (tmp_path / "data").mkdir()
    expected = {}
    for task in TASKS:
        rows = []
        for number, length in enumerate((10, 4000, 5000, 9000)):
            row = {"input": "x = 1" * number, "context": "def f(): " * (number + 1), "answers": ["?"], "length": length}
            row |= {"all_classes": None, "_id": f"{task}{number}", "language": "en", "dataset": task}
            said = continuation(reference, longbench.prompt(task, row), longbench.TASKS[task].max_new_tokens)
            if number % 2:
                row["answers"] = [said]
            rows.append(row)
            expected[f"{task}/{number}"] = longbench.score(task, said, row["answers"], None)
        (tmp_path / "data" / f"{task}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    record = measure("longbench_e", "--benchmarks", tmp_path / "data", "--tasks", *TASKS)
    found = {key: value["score"] for key, value in journal(tmp_path, "longbench_e").items()}
    assert found == expected
    assert all(found[f"{task}/1"] == found[f"{task}/3"] == 1 > found[f"{task}/0"] for task in TASKS)
    assert json.dumps(record["scores"]).count('"mean"') >= 6


@pytest.mark.parametrize(("more", "room", "new"), [([], 400, 128), (["--margin", "100", "--new-tokens", "5"], 800, 5)])
def test_longbench_e_cuts_the_middle_of_what_is_too_long(measure, tmp_path, more, room, new):
    (tmp_path / "data").mkdir()
    row = {"input": "?", "context": "".join(f"{i} " for i in range(900)), "answers": ["1"], "length": 900}
    row |= {"all_classes": None, "_id": "0", "language": "en", "dataset": "trec"}
    (tmp_path / "data" / "qasper.jsonl").write_text(json.dumps(row) + "\n")
    measure("longbench_e", "--benchmarks", tmp_path / "data", "--tasks", "qasper", "--window", "900", *more)
    text = longbench.prompt("qasper", row)
    cut = text[: room // 2] + text[-room // 2 :]  # 900 tokens of a byte each, less the margin
    ((_, value),) = journal(tmp_path, "longbench_e").items()
    assert value["prediction"] == continuation(random_model(max_position_embeddings=LENGTH), cut, new)


def test_open_llm(measure, model, tmp_path):
    data = write_benchmarks(tmp_path / "data")
    record = measure("open_llm", "--benchmarks", data, "--tasks", "hellaswag", "mmlu", "--limit", "4")
    assert {task: cell["n"] for task, cell in record["scores"].items()} == {"hellaswag": 4, "mmlu": 4}
    reference, found = random_model(max_position_embeddings=LENGTH), journal(tmp_path, "open_llm")
    for task in ("hellaswag", "mmlu"):
        keys = open_llm.documents(task, data, 4)
        scores = dict(open_llm.evaluate(reference, byte_tokenizer(), task, keys, data))
        assert {key: found[key] for key in keys} == scores
        assert record["scores"][task]["mean"] == pytest.approx(25 * sum(row["score"] for row in scores.values()))
        assert record["by_document"][task] == [round(scores[key]["score"], 4) for key in keys]


def test_time_cost(measure, tmp_path):
    options = ["--method", "pi", "yarn", "dprope", "--length", "64", "--repeats", "3"]
    record = measure("time_cost", *options)
    rows = {(row["run"], row["phase"]): row for row in record["scores"]}
    runs = ("pi_s=2", "yarn_s=2", "dprope_s=2", "pi_s=2_again")  # the last against the first: the clock's own noise
    assert rows.keys() == {(run, phase) for run in runs for phase in ("train", "test")}
    (file,) = (tmp_path / "runs" / record["scale"] / "time_cost").glob("*.jsonl")
    rounds = [json.loads(line)[1] for line in file.read_text().splitlines()]
    for (run, phase), row in rows.items():
        ratios = sorted(found[run][phase] / found["pi_s=2"][phase] for found in rounds)
        assert [row["low"], row["relative_to_pi"], row["high"]] == ratios and row["rounds"] == 3
        assert (ratios == [1, 1, 1]) == (run == "pi_s=2")
        assert row["seconds"] == statistics.median(found[run][phase] for found in rounds) > 0


def test_time_cost_ends_when_pi_against_itself_is_known_whatever_the_others_are(measure, monkeypatch):
    clock = iter(range(10**6))
    monkeypatch.setattr("experiments.time_cost._seconds", lambda work, model, tokens: 1 + next(clock) % 97 / 1e4)
    record = measure("time_cost", "--method", "pi", "dprope", "--length", "8", "--precision", "0.006")
    (again, _) = [row for row in record["scores"] if row["run"] == "pi_s=2_again"]
    assert 10 <= again["rounds"] < 1000 and again["high"] - again["low"] <= 0.012
    other = measure("time_cost", "--method", "pi", "dprope", "--length", "8", "--precision", "1", "--replace")
    assert other["scores"][0]["rounds"] == 10


def test_numbers_that_are_not_finite_stop_the_run_with_the_samples_name(call, tmp_path):
    broken = random_model(max_position_embeddings=LENGTH)
    with torch.no_grad():
        broken.lm_head.weight.fill_(float("nan"))
    broken.save_pretrained(tmp_path / "broken")
    byte_tokenizer().save_pretrained(tmp_path / "broken")
    (tmp_path / "book.txt").write_text("abcdefg" * 100)
    for name, options, says in (
        ("perplexity", ["--lengths", "300", "--texts", tmp_path / "book.txt"], "in the window at tokens 0 to 300"),
        ("passkey", ["--lengths", "512", "--depths", "1", "--keys", "1"], "512/0/0: the logits after 0 new tokens"),
    ):
        command = [name, "--model", tmp_path / "broken", "--results", tmp_path / "results", *options]
        status, _, err = call(*command)
        assert status == 2 and says in err and "are not finite" in err.replace("is not", "are not"), err
    assert not (tmp_path / "results").exists()


def test_a_text_that_the_checkpoint_was_trained_on_is_refused(call, model, tmp_path):
    tuned = tmp_path / "tuned"
    shutil.copytree(model, tuned)
    (tmp_path / "book.txt").write_text("abcdefg" * 100)
    seen = {"title": "A Book", "sha256": texts.files([tmp_path / "book.txt"])[0].sha256}
    facts = {"scale": "toy", "method": "pi", "factor": 2, "options": {}, "identity": "x", "seed": 0, "steps": 1}
    facts["model"] = {"sha256": {}}
    (tuned / "training.json").write_text(json.dumps(facts | {"length": 64, "data_facts": {"books": [seen]}}))
    line = ["--lengths", "256", "--stride", "64", "--texts", tmp_path / "book.txt", "--results", tmp_path / "results"]
    status, _, err = call("perplexity", "--model", tuned, *line)
    assert status == 2 and "was trained on 'A Book'; score another text" in err
    assert not (tmp_path / "results").exists()
