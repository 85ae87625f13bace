"""The Open LLM benchmarks against lm-eval itself on the same documents, and against hand-worked items.

The documents are random words in the hub's schema; nothing is downloaded.
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
from tests.models import byte_tokenizer, random_model

SUBJECTS = {"abstract_algebra": 3, "high_school_us_history": 6, "virology": 4}  # test documents of each
SIZES = {"truthfulqa": 5, "hellaswag": 6, "mmlu": 13, "arc_challenge": 7}


def write_benchmarks(directory):
    rng = np.random.default_rng(0)

    def words(count=None):
        vocabulary = ["amber", "birch", "cedar", "delta", "ember", "fjord", "grove", "haven", "inlet"]
        return " ".join(rng.choice(vocabulary, count or rng.integers(1, 5)))

    def choices(count=4):
        return [words() for _ in range(count)]

    def write(file, rows):
        (directory / file).parent.mkdir(parents=True, exist_ok=True)
        pyarrow.parquet.write_table(pyarrow.Table.from_pylist(rows), directory / file)

    def truthfulqa(row):
        labels = [1, 1, 0, 0, 1, 0][: 4 + row % 3]
        targets = {"choices": choices(len(labels)), "labels": labels}
        return {"question": words(4) + "?", "mc1_targets": targets, "mc2_targets": targets}

    def hellaswag(row):
        return {
            "ind": row,
            "activity_label": words(2),
            "ctx_a": words(4) + ".",
            "ctx_b": words(2),
            "endings": [f"{words()} [title] {words()}  [step]", *choices(3)],
            "label": str(row % 4),
        }

    def mmlu(subject):
        return {"question": words(4), "subject": subject, "choices": choices(), "answer": int(rng.integers(4))}

    def arc(row):
        labels = ["A", "B", "C", "D", "E"][: 3 + row % 3] if row % 2 else ["1", "2", "3", "4"]
        answers = {"text": choices(len(labels)), "label": labels}
        return {"id": str(row), "question": words(4) + "?", "choices": answers, "answerKey": labels[row % len(labels)]}

    write("truthfulqa/multiple_choice/validation.parquet", [truthfulqa(row) for row in range(5)])
    write("hellaswag/validation.parquet", [hellaswag(row) for row in range(6)])
    write("mmlu/test.parquet", [mmlu(subject) for subject, count in SUBJECTS.items() for _ in range(count)])
    write("mmlu/dev.parquet", [mmlu(subject) for subject in reversed(SUBJECTS) for _ in range(5)])
    write("arc_challenge/train.parquet", [arc(row) for row in range(40)])
    write("arc_challenge/test.parquet", [arc(row) for row in range(7)])
    return directory


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    return write_benchmarks(tmp_path_factory.mktemp("benchmarks"))


@pytest.fixture(scope="module")
def tokenizer():
    return byte_tokenizer()


@pytest.fixture(scope="module")
def model():
    return random_model(max_position_embeddings=4096)


@pytest.fixture(scope="module")
def reference(data, model, tokenizer):
    """What lm-eval's own evaluator and model say: {benchmark: (aggregate, {key: logged sample})}."""
    loaded = {name: load(name, data) for name in TASKS}
    groups = []
    for name, tasks in loaded.items():  # lm-eval's own mmlu group aggregates with these settings
        groups.append(Group(name, aggregate_metric_list=[AggMetricConfig(TASKS[name].metric, weight_by_size=True)]))
        for task in tasks.values():
            groups[-1].add(task)
    results = lm_eval.simple_evaluate(
        HFLM(pretrained=model, tokenizer=tokenizer, batch_size=4),
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


@pytest.fixture
def asked(monkeypatch):
    """The (context, continuation) pairs that reach the model."""
    seen = []
    original = SharedPrefixLM.loglikelihood

    def spy(self, requests, **options):
        seen.extend(request.args for request in requests)
        return original(self, requests, **options)

    monkeypatch.setattr(SharedPrefixLM, "loglikelihood", spy)
    return seen


@pytest.mark.parametrize("name", TASKS)
def test_scores_are_lm_evals_own(data, model, tokenizer, reference, asked, name):
    whole, samples = reference[name]
    found = dict(evaluate(model, tokenizer, name, documents(name, data), data))
    assert list(found) == list(samples) == documents(name, data) and len(found) == SIZES[name]
    assert asked == [pair for sample in samples.values() for pair in sample["arguments"]]
    for key, sample in samples.items():
        assert found[key]["score"] == pytest.approx(sample[TASKS[name].metric], abs=1e-5)
        assert found[key]["tokens"] == len(sample["arguments"][0][0])  # a byte is a token
    table = aggregate({"task": name, "key": key, **row} for key, row in found.items())
    assert table[name]["mean"] == pytest.approx(100 * whole[f"{TASKS[name].metric},none"], abs=1e-3)
    assert table[name]["n"] == SIZES[name] and "average" not in table


def test_paper_shots_are_in_the_prompts(reference):
    counts = {"truthfulqa": "\nA:", "hellaswag": "\n\n", "mmlu": "Answer:", "arc_challenge": "Answer:"}
    expected = {"truthfulqa": 7, "hellaswag": 0, "mmlu": 6, "arc_challenge": 26}  # TruthfulQA's six are its preamble
    for name, (_, samples) in reference.items():
        assert {sample["arguments"][0][0].count(counts[name]) for sample in samples.values()} == {expected[name]}


def test_mmlu_prompt_by_hand(data, reference):
    dev = pyarrow.parquet.read_table(data / "mmlu/dev.parquet").to_pylist()
    test = pyarrow.parquet.read_table(data / "mmlu/test.parquet").to_pylist()

    def question(row):
        options = "\n".join(f"{letter}. {choice}" for letter, choice in zip("ABCD", row["choices"]))
        return f"{row['question']}\n{options}\nAnswer:"

    shots = [f"{question(row)} {'ABCD'[row['answer']]}\n\n" for row in dev if row["subject"] == "virology"]
    opening = "The following are multiple choice questions (with answers) about virology.\n\n"
    (document,) = [row for row in test if row["subject"] == "virology"][2:3]
    prompt = opening + "".join(shots) + question(document)
    assert reference["mmlu"][1]["mmlu/virology/2"]["arguments"] == [(prompt, f" {letter}") for letter in "ABCD"]


def log_likelihood(model, tokenizer, prompt, continuation):
    """By one plain forward pass over the whole text, in float64."""
    tokens = torch.tensor(tokenizer.encode(prompt + continuation))
    with torch.inference_mode():
        log_probs = model(tokens[None]).logits[0].double().log_softmax(-1)
    start = len(tokenizer.encode(prompt))
    return sum(log_probs[i - 1, tokens[i]].item() for i in range(start, len(tokens)))


def test_hellaswag_and_truthfulqa_by_hand(data, model, tokenizer):
    row = pyarrow.parquet.read_table(data / "hellaswag/validation.parquet").to_pylist()[3]
    prompt = f"{row['activity_label']}: {row['ctx_a']} {row['ctx_b'].capitalize()}"
    bracketed, *plain = row["endings"]
    endings = [bracketed.replace(" [title]", ". ").replace("[step]", "").replace("  ", " "), *plain]
    per_letter = [log_likelihood(model, tokenizer, prompt, f" {ending}") / len(ending) for ending in endings]
    ((_, found),) = evaluate(model, tokenizer, "hellaswag", ["hellaswag/3"], data)
    assert found["score"] == (np.argmax(per_letter) == int(row["label"]))

    row = pyarrow.parquet.read_table(data / "truthfulqa/multiple_choice/validation.parquet").to_pylist()[1]
    task = load("truthfulqa", data)["truthfulqa"]
    prompt = task.doc_to_text(row)
    assert prompt.endswith(f"\n\nQ: {row['question']}\nA:")
    answers, labels = row["mc2_targets"]["choices"], np.array(row["mc2_targets"]["labels"])
    mass = np.exp([log_likelihood(model, tokenizer, prompt, f" {answer}") for answer in answers])
    ((_, found),) = evaluate(model, tokenizer, "truthfulqa", ["truthfulqa/1"], data)
    assert 1e-4 < found["score"] < 1 - 1e-4
    assert found["score"] == pytest.approx(mass[labels == 1].sum() / mass.sum(), abs=1e-5)


@pytest.mark.parametrize("name", TASKS)
def test_a_run_in_parts_gives_what_one_run_gives(monkeypatch, data, model, tokenizer, reference, asked, name):
    monkeypatch.setattr(open_llm, "CHUNK", 2)
    keys = documents(name, data)
    parts = evaluate(model, tokenizer, name, reversed(keys), data, batch_size=3)
    first = dict(next(parts) for _ in range(3))  # killed in the second chunk
    assert list(first) == keys[:3]
    asked.clear()
    rest = dict(evaluate(model, tokenizer, name, keys[3:], data, batch_size=1))
    samples = reference[name][1]
    # Above all the few-shot examples: those of the whole benchmark's run, whatever is asked for.
    assert asked == [pair for key in keys[3:] for pair in samples[key]["arguments"]]
    for key, row in (first | rest).items():
        assert row["score"] == pytest.approx(samples[key][TASKS[name].metric], abs=1e-5)


@pytest.mark.parametrize(
    "architecture, options",
    [("LlamaConfig", {}), ("MistralConfig", {"sliding_window": 24}), ("Qwen2Config", {}), ("GPTNeoXConfig", {})],
)
def test_log_likelihoods_are_those_of_hflm(tokenizer, architecture, options):
    model = random_model(architecture, **options)
    texts = ["", "a", "amber birch", "amber birch cedar", "amber birch " * 8, "delta " * 40, "amber birch " * 8 + "x"]
    answers = [" e", " fjord", " grove haven", " amber", " " + "inlet " * 8]
    requests = [Instance("loglikelihood", {}, (text, answer), 0) for text in texts for answer in answers]
    expected = HFLM(pretrained=model, tokenizer=tokenizer, batch_size=4).loglikelihood(requests, disable_tqdm=True)
    for batch_size in (1, 2, 8):
        lm = SharedPrefixLM(pretrained=model, tokenizer=tokenizer, batch_size=batch_size, softmax_dtype="float32")
        assert max(len(text) for text in texts) > lm.max_length == 128  # truncation is covered
        found = lm.loglikelihood(requests, disable_tqdm=True)
        assert [value for value, _ in found] == pytest.approx([value for value, _ in expected], abs=1e-3)
        assert [greedy for _, greedy in found] == [greedy for _, greedy in expected]


def test_what_requests_share_is_read_once(data, model, tokenizer, monkeypatch):
    read, scored = [], []
    forward = model.forward

    def count(inputs, **options):
        output = forward(inputs, **options)
        read.append(inputs.numel())
        scored.append(output.logits.shape[0] * output.logits.shape[1])
        return output

    monkeypatch.setattr(model, "forward", count)
    keys = [key for key in documents("mmlu", data) if "virology" in key]
    rows = dict(evaluate(model, tokenizer, "mmlu", keys, data, batch_size=4))
    longest = max(row["tokens"] for row in rows.values())
    assert sum(read) < 2 * longest < sum(row["tokens"] for row in rows.values())
    assert max(scored) == 8  # four answers " A": a space and a letter, each a byte


def test_fewer_shots(data, model, tokenizer, asked):
    rows = dict(evaluate(model, tokenizer, "arc_challenge", ["arc_challenge/1"], data, shots=2))
    assert list(rows) == ["arc_challenge/1"]
    assert {context.count("Answer:") for context, _ in asked} == {3}


def test_a_limit_samples_the_whole_benchmark(data, monkeypatch):
    tasks = load("mmlu", data)
    monkeypatch.setattr(open_llm, "load", lambda *_: tasks)  # once, not for each of the seeds
    everything = documents("mmlu", data)
    assert everything[0] == "mmlu/abstract_algebra/0" and len(set(everything)) == 13
    assert documents("mmlu", data, limit=13) == documents("mmlu", data, limit=99) == everything
    drawn = [documents("mmlu", data, limit=6, seed=seed) for seed in range(200)]
    assert drawn[0] == documents("mmlu", data, limit=6) != drawn[1]
    for sample in drawn:
        assert len(set(sample)) == 6 and sample == sorted(sample, key=everything.index)
        assert {key.split("/")[1] for key in sample} == set(SUBJECTS)
    counts = np.bincount([everything.index(key) for sample in drawn for key in sample], minlength=13)
    assert counts.min() > 50  # 200 · 6/13 ≈ 92 expected: no document is out of reach


def test_aggregate_of_all_four():
    rng = np.random.default_rng(1)
    scores = {"arc_challenge": rng.random(300) < 0.3, "hellaswag": rng.random(500) < 0.6}
    scores |= {"truthfulqa": rng.random(200), "mmlu": rng.random(400) < 0.25}
    rows = [
        {"task": task, "key": f"{task}/{i}", "score": float(x)} for task in scores for i, x in enumerate(scores[task])
    ]
    table = aggregate(rows)
    assert list(table) == [*TASKS, "average"] and table == aggregate(rows)
    for name, values in scores.items():
        assert table[name]["mean"] == pytest.approx(100 * np.mean(values)) and table[name]["n"] == len(values)
    average = table["average"]
    assert average["n"] == 1400 and average["mean"] == pytest.approx(25 * sum(np.mean(v) for v in scores.values()))
    # The normal interval: variances of the four means add up.
    half = norm.ppf(0.975) * 25 * sum(np.var(v, ddof=1) / len(v) for v in scores.values()) ** 0.5
    assert average["high"] - average["mean"] == pytest.approx(half, rel=0.1)
    assert average["mean"] - average["low"] == pytest.approx(half, rel=0.1)
    assert aggregate(rows[:1])["arc_challenge"]["n"] == 1 and aggregate([]) == {}


@pytest.mark.filterwarnings("ignore:invalid value:RuntimeWarning")  # lm-eval divides 0 by 0 there
def test_a_non_finite_score_names_its_document(data, tokenizer):
    keys = documents("truthfulqa", data)
    model = random_model(max_position_embeddings=4096)
    with torch.no_grad():
        model.lm_head.weight.mul_(1e5)  # every answer becomes less probable than float64 can hold
    with pytest.raises(NonFiniteError, match="the score of truthfulqa/0 is not finite"):
        list(evaluate(model, tokenizer, "truthfulqa", keys, data))
    with torch.no_grad():
        model.lm_head.weight.fill_(float("nan"))
    with pytest.raises(NonFiniteError, match="an answer to truthfulqa/2 is not finite"):
        list(evaluate(model, tokenizer, "truthfulqa", keys[2:], data))


def rewrite(file, change):
    table = pyarrow.parquet.read_table(file)
    pyarrow.parquet.write_table(change(table), file)


DAMAGE = {
    "no file": ("arc_challenge", lambda d: (d / "arc_challenge/train.parquet").unlink(), "no file .*train.parquet"),
    "no column": (
        "hellaswag",
        lambda d: rewrite(d / "hellaswag/validation.parquet", lambda t: t.drop_columns("endings")),
        "validation.parquet has no column 'endings'",
    ),
    "a subject of one's own": (
        "mmlu",
        lambda d: rewrite(
            d / "mmlu/test.parquet", lambda t: t.set_column(1, "subject", pyarrow.array(["cooking"] * len(t)))
        ),
        "a subject that is not MMLU's: 'cooking'",
    ),
    "too few examples": (
        "arc_challenge",
        lambda d: rewrite(d / "arc_challenge/train.parquet", lambda t: t.slice(0, 24)),
        "arc_challenge has 24 few-shot examples; 25 shots",
    ),
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_damaged_data_is_named(tmp_path, damage):
    name, change, message = DAMAGE[damage]
    directory = write_benchmarks(tmp_path / "data")
    change(directory)
    with pytest.raises(InputError, match=message):
        documents(name, directory)


def test_impossible_requests_are_refused(data, model, tokenizer):
    with pytest.raises(InputError, match="at least 1"):
        documents("hellaswag", data, limit=0)
    with pytest.raises(InputError, match="shots of ARC-c is 26"):
        load("arc_challenge", data, shots=26)
    with pytest.raises(InputError, match="HellaSwag has no document 'hellaswag/6'"):
        next(evaluate(model, tokenizer, "hellaswag", ["hellaswag/6"], data))
