"""The Open LLM benchmarks against lm-eval itself on the same documents, and against hand-worked
items.

The documents are generated ones in the hub's schema; nothing is downloaded.
"""

import lm_eval
import numpy as np
import pyarrow
import pyarrow.parquet
import pytest
import torch
from lm_eval.api.group import Group
from lm_eval.api.instance import Instance
from lm_eval.config.group import AggMetricConfig
from lm_eval.models.huggingface import HFLM
from lm_eval.tasks import TaskManager
from scipy.stats import norm

from core.errors import InputError, NonFiniteError
from eval import open_llm
from eval.log_likelihood import SharedPrefixLM
from eval.open_llm import TASKS, aggregate, documents, evaluate, load
from experiments.kit.records import ROOT
from tests.models import byte_tokenizer, random_model

SUBJECTS = {"abstract_algebra": 2, "virology": 4}  # test documents of each
MINIATURES = ROOT / "models" / "tiny" / "benchmarks" / "open_llm"
TOKENIZER = byte_tokenizer()
SIZES = {"truthfulqa": 4, "hellaswag": 4, "mmlu": 6, "arc_challenge": 4}


def write_benchmarks(directory):
    """The first rows of tiny's miniature benchmarks, MMLU's as if of two subjects, in `directory`;
    returned."""
    for name, benchmark in TASKS.items():
        for split, file in benchmark.files.items():
            rows = pyarrow.parquet.read_table(MINIATURES / file).to_pylist()
            rows = rows[: 30 if split in ("train", "dev") else SIZES[name]]
            if name == "mmlu":
                count = SUBJECTS if split == "test" else dict.fromkeys(reversed(SUBJECTS), 5)
                of_subject = [subject for subject in count for _ in range(count[subject])]
                rows = [
                    {**rows[i % len(rows)], "subject": subject}
                    for i, subject in enumerate(of_subject)
                ]
            (directory / file).parent.mkdir(parents=True, exist_ok=True)
            pyarrow.parquet.write_table(pyarrow.Table.from_pylist(rows), directory / file)
    return directory


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    return write_benchmarks(tmp_path_factory.mktemp("benchmarks"))


@pytest.fixture(scope="module")
def model():
    return random_model(max_position_embeddings=2048, num_hidden_layers=1)


@pytest.fixture(scope="module")
def reference(data, model):
    """What lm-eval's own evaluator and model say: {benchmark: (aggregate, {key: logged
    sample})}."""
    loaded = {name: load(name, data) for name in TASKS}
    groups = []
    for name, tasks in loaded.items():  # lm-eval's own mmlu group aggregates with these settings
        groups.append(
            Group(
                name,
                aggregate_metric_list=[AggMetricConfig(TASKS[name].metric, weight_by_size=True)],
            )
        )
        for task in tasks.values():
            groups[-1].add(task)
    results = lm_eval.simple_evaluate(
        HFLM(pretrained=model, tokenizer=TOKENIZER, batch_size=4),
        tasks=groups,
        task_manager=TaskManager(include_defaults=False),
        bootstrap_iters=0,
    )
    return {
        name: (
            results["groups"][name],
            {
                f"{prefix}/{sample['doc_id']}": sample
                for prefix, task in tasks.items()
                for sample in results["samples"][task.config.task]
            },
        )
        for name, tasks in loaded.items()
    }


@pytest.mark.parametrize("name", TASKS)
def test_scores_are_lm_evals_own_also_of_a_run_in_two(monkeypatch, data, model, reference, name):
    """Above all the few-shot examples: those of the whole benchmark's run, whatever is asked
    for."""
    monkeypatch.setattr(open_llm, "CHUNK", 2)
    whole, samples = reference[name]
    keys = documents(name, data)
    assert keys == list(samples) and len(keys) == SIZES[name]
    first = evaluate(model, TOKENIZER, name, reversed(keys), data, batch_size=3)
    rows = dict(next(first) for _ in range(3))  # killed in the second chunk
    assert list(rows) == keys[:3]
    rows |= evaluate(model, TOKENIZER, name, keys[3:], data, batch_size=1)
    for key, sample in samples.items():
        assert rows[key]["score"] == pytest.approx(sample[TASKS[name].metric], abs=1e-5)
        assert rows[key]["tokens"] == len(sample["arguments"][0][0])  # a byte is a token
    table = aggregate({"task": name, "key": key, **row} for key, row in rows.items())
    assert table[name]["mean"] == pytest.approx(100 * whole[f"{TASKS[name].metric},none"], abs=1e-3)
    assert table[name]["n"] == SIZES[name] and "average" not in table


def test_log_likelihoods_are_those_of_hflm():
    model = random_model("MistralConfig", sliding_window=24)
    texts = [
        "",
        "a",
        "amber birch",
        "amber birch cedar",
        "amber birch " * 8,
        "delta " * 40,
        "amber birch " * 8 + "x",
    ]
    answers = [" e", " fjord", " grove haven", " amber", " " + "inlet " * 8]
    requests = [
        Instance("loglikelihood", {}, (text, answer), 0) for text in texts for answer in answers
    ]
    expected = HFLM(pretrained=model, tokenizer=TOKENIZER, batch_size=4).loglikelihood(
        requests, disable_tqdm=True
    )
    for batch_size in (1, 8):
        lm = SharedPrefixLM(
            pretrained=model, tokenizer=TOKENIZER, batch_size=batch_size, softmax_dtype="float32"
        )
        assert max(len(text) for text in texts) > lm.max_length == 128  # truncation is covered
        found = lm.loglikelihood(requests, disable_tqdm=True)
        assert [value for value, _ in found] == pytest.approx(
            [value for value, _ in expected], abs=1e-3
        )
        assert [greedy for _, greedy in found] == [greedy for _, greedy in expected]


def test_what_requests_share_is_read_once(data, model, monkeypatch):
    read = []
    scored = []
    forward = model.forward

    def count(inputs, **options):
        output = forward(inputs, **options)
        read.append(inputs.numel())
        scored.append(output.logits.shape[0] * output.logits.shape[1])
        return output

    monkeypatch.setattr(model, "forward", count)
    keys = [key for key in documents("mmlu", data) if "virology" in key]
    rows = dict(evaluate(model, TOKENIZER, "mmlu", keys, data, batch_size=4))
    longest = max(row["tokens"] for row in rows.values())
    assert sum(read) < 2 * longest < sum(row["tokens"] for row in rows.values())
    assert max(scored) == 8  # four answers " A": a space and a letter, each a byte


def test_a_limit_samples_the_whole_benchmark(data, monkeypatch):
    tasks = load("mmlu", data)
    monkeypatch.setattr(open_llm, "load", lambda *_: tasks)  # once, not for each of the seeds
    everything = documents("mmlu", data)
    assert everything[0] == "mmlu/abstract_algebra/0" and len(set(everything)) == 6
    assert documents("mmlu", data, limit=6) == documents("mmlu", data, limit=99) == everything
    drawn = [documents("mmlu", data, limit=3, seed=seed) for seed in range(30)]
    assert drawn[0] == documents("mmlu", data, limit=3)
    for sample in drawn:  # one of each third
        assert [everything.index(key) // 2 for key in sample] == [0, 1, 2]
    assert {key for sample in drawn for key in sample} == set(everything)


def test_aggregate_of_all_four():
    rng = np.random.default_rng(1)
    scores = {name: rng.random(100 + 20 * number) for number, name in enumerate(TASKS)}
    rows = [
        {"task": name, "key": f"{name}/{i}", "score": x}
        for name, values in scores.items()
        for i, x in enumerate(values)
    ]
    table = aggregate(rows)
    assert list(table) == [*TASKS, "average"] and table == aggregate(rows)
    for name, values in scores.items():
        assert table[name]["mean"] == pytest.approx(100 * np.mean(values)) and table[name][
            "n"
        ] == len(values)
    average = table["average"]
    assert average["n"] == 520 and average["mean"] == pytest.approx(
        25 * sum(map(np.mean, scores.values()))
    )
    # The normal interval: variances of the four means add up.
    half = norm.ppf(0.975) * 25 * sum(np.var(v, ddof=1) / len(v) for v in scores.values()) ** 0.5
    for difference in (average["high"] - average["mean"], average["mean"] - average["low"]):
        assert difference == pytest.approx(half, rel=0.1)


@pytest.mark.filterwarnings("ignore:invalid value:RuntimeWarning")  # lm-eval divides 0 by 0 there
def test_a_non_finite_score_names_its_document(data):
    keys = documents("truthfulqa", data)
    model = random_model(max_position_embeddings=4096)
    with torch.no_grad():
        model.lm_head.weight.mul_(1e5)  # every answer becomes less probable than float64 can hold
    with pytest.raises(NonFiniteError, match="the score of truthfulqa/0 is not finite"):
        list(evaluate(model, TOKENIZER, "truthfulqa", keys, data))
    with torch.no_grad():
        model.lm_head.weight.fill_(float("nan"))
    with pytest.raises(NonFiniteError, match="an answer to truthfulqa/2 is not finite"):
        list(evaluate(model, TOKENIZER, "truthfulqa", keys[2:], data))


@pytest.mark.parametrize(
    ("name", "split", "change", "message"),
    [
        ("arc_challenge", "train", None, "train.parquet cannot be read"),
        (
            "hellaswag",
            "validation",
            lambda rows: [row.pop("endings") for row in rows],
            "HellaSwag .*endings",
        ),
        ("hellaswag", "validation", lambda rows: rows[1].update(ctx_a=None), "HellaSwag"),
        ("mmlu", "test", lambda rows: rows[0].update(subject="cooking"), "MMLU .*cooking"),
        (
            "arc_challenge",
            "train",
            lambda rows: rows.__delitem__(slice(24, None)),
            "document arc_challenge/0",
        ),
        (
            "arc_challenge",
            "test",
            lambda rows: rows[2].update(answerKey="Z"),
            "document arc_challenge/2 .*ValueError",
        ),
    ],
)
def test_damaged_data_is_named(tmp_path, name, split, change, message):
    directory = write_benchmarks(tmp_path)
    file = directory / TASKS[name].files[split]
    rows = pyarrow.parquet.read_table(file).to_pylist()
    file.unlink()
    if change:
        change(rows)
        pyarrow.parquet.write_table(pyarrow.Table.from_pylist(rows), file)
    with pytest.raises(InputError, match=message):
        open_llm.content_hashes(name, documents(name, directory), directory)
