"""The Open LLM benchmarks against lm-eval itself on the same documents, and against hand-worked
items.

The documents are generated ones in the hub's schema; nothing is downloaded.
"""

import itertools

import lm_eval
import pyarrow
import pyarrow.parquet
import pytest
import torch
from lm_eval.api.group import Group
from lm_eval.api.instance import Instance
from lm_eval.config.group import AggMetricConfig
from lm_eval.models.huggingface import HFLM
from lm_eval.tasks import TaskManager

from core.errors import InputError, NonFiniteError
from eval import open_llm
from eval.open_llm import TASKS, SharedPrefixLM, aggregate, documents, evaluate, load
from records import ROOT
from tests.core.huggingface.test_families import HYBRIDS
from tests.models import byte_tokenizer, random_model

MINIATURES = ROOT / "models/tiny/benchmarks/open_llm"
TOKENIZER = byte_tokenizer()
SIZES = {"truthfulqa": 4, "hellaswag": 4, "mmlu": 6, "arc_challenge": 4}
# of MMLU, as if it had two subjects
TESTED = ["abstract_algebra"] * 2 + ["virology"] * 4
EXAMPLES = ["virology"] * 5 + ["abstract_algebra"] * 5


def write_benchmarks(directory):
    """The first rows of tiny's miniature benchmarks, in `directory`; returned."""
    for name, benchmark in TASKS.items():
        for split, (file, _) in benchmark.files.items():
            examples = split in ("train", "dev")
            rows = pyarrow.parquet.read_table(MINIATURES / file).to_pylist()
            rows = rows[: 30 if examples else SIZES[name]]
            if name == "mmlu":
                subjects = zip(EXAMPLES if examples else TESTED, itertools.cycle(rows))
                rows = [row | {"subject": subject} for subject, row in subjects]
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
    """What lm-eval's own evaluator and model say: {benchmark: (aggregate, logged samples)}."""
    groups = {}
    tasks = {name: load(name, data) for name in TASKS}
    for name, benchmark in TASKS.items():
        # lm-eval's own mmlu group aggregates so
        metric = AggMetricConfig(benchmark.metric, weight_by_size=True)
        groups[name] = Group(name, aggregate_metric_list=[metric])
        for task in tasks[name].values():
            groups[name].add(task)
    results = lm_eval.simple_evaluate(
        HFLM(pretrained=model, tokenizer=TOKENIZER, batch_size=4),
        tasks=list(groups.values()),
        task_manager=TaskManager(include_defaults=False),
        bootstrap_iters=0,
    )
    said = {}
    for name in TASKS:
        members = [task.config.task for task in tasks[name].values()]
        samples = [sample for task in members for sample in results["samples"][task]]
        said[name] = results["groups"][name], samples
    return said


@pytest.mark.parametrize("name", TASKS)
def test_scores_are_lm_evals_own_also_of_a_run_in_two(monkeypatch, data, model, reference, name):
    """Above all the few-shot examples: those of the whole benchmark's run, whatever is asked
    for."""
    monkeypatch.setattr(open_llm, "CHUNK", 2)
    metric = TASKS[name].metric
    whole, samples = reference[name]
    tasks = load(name, data)
    keys = documents(tasks)
    assert len(keys) == SIZES[name]
    monkeypatch.setattr(open_llm, "ANSWERS", 3)
    first = evaluate(model, TOKENIZER, tasks, reversed(keys))
    rows = dict(next(first) for _ in range(3))  # killed in the second chunk
    assert list(rows) == keys[:3]
    monkeypatch.setattr(open_llm, "ANSWERS", 1)
    rows |= evaluate(model, TOKENIZER, tasks, keys[3:])
    for key, sample in zip(keys, samples, strict=True):
        assert key.endswith(f"/{sample['doc_id']}")
        assert rows[key]["score"] == pytest.approx(sample[metric], abs=1e-5)
        assert rows[key]["tokens"] == len(sample["arguments"][0][0])  # a byte is a token
    table = aggregate({name: [row["score"] for row in rows.values()]})
    assert list(table) == [name]
    assert table[name]["mean"] == pytest.approx(100 * whole[f"{metric},none"], abs=1e-3)
    assert table[name]["n"] == SIZES[name]


@pytest.mark.parametrize(
    "architecture, options", [("MistralConfig", {"sliding_window": 24}), *HYBRIDS.items()]
)
def test_log_likelihoods_are_those_of_hflm(architecture, options):
    model = random_model(architecture, **options)
    long = "amber birch " * 8
    texts = ["", "a", "amber birch", long, "delta " * 40, long + "x"]
    answers = [" e", " grove haven", " amber", " " + "inlet " * 8]
    requests = [
        Instance("loglikelihood", {}, pair, 0) for pair in itertools.product(texts, answers)
    ]
    hflm = HFLM(pretrained=model, tokenizer=TOKENIZER, batch_size=4)
    expected = hflm.loglikelihood(requests, disable_tqdm=True)
    for batch_size in (1, 8):
        lm = SharedPrefixLM(
            pretrained=model, tokenizer=TOKENIZER, batch_size=batch_size, softmax_dtype="float32"
        )
        assert lm.max_length == 128  # texts of 240 tokens are cut
        found = lm.loglikelihood(requests, disable_tqdm=True)
        for ours, theirs in zip(found, expected, strict=True):
            assert ours[0] == pytest.approx(theirs[0], abs=1e-3)
            assert ours[1] == theirs[1]


def test_what_requests_share_is_read_once(data, model, monkeypatch):
    read = []
    scored = []
    forward = model.forward

    def count(inputs, **options):
        output = forward(inputs, **options)
        read.append(inputs.numel())
        scored.append(output.logits[..., 0].numel())
        return output

    monkeypatch.setattr(model, "forward", count)
    tasks = load("mmlu", data)
    keys = [key for key in documents(tasks) if "virology" in key]
    rows = dict(evaluate(model, TOKENIZER, tasks, keys))
    lengths = [row["tokens"] for row in rows.values()]
    assert sum(read) < 2 * max(lengths) < sum(lengths)
    assert max(scored) == 8  # four answers " A": a space and a letter, each a byte


def test_a_limit_samples_the_whole_benchmark(data):
    tasks = load("mmlu", data)
    everything = documents(tasks)
    assert everything[0] == "mmlu/abstract_algebra/0"
    assert documents(tasks, limit=6) == documents(tasks, limit=99) == everything
    sample = documents(tasks, limit=3)
    assert [everything.index(key) // 2 for key in sample] == [0, 1, 2]  # one of each third


def test_aggregate_of_all_four_by_hand():
    scores = {"truthfulqa": [1, 0], "hellaswag": [1], "mmlu": [1], "arc_challenge": [0.5]}
    table = aggregate(scores)
    assert list(table) == [*TASKS, "average"]
    # Resampled, TruthfulQA is 0, 50 or 100; benchmarks weigh the same.
    assert table["truthfulqa"] == {"mean": 50, "low": 0, "high": 100, "n": 2}
    assert table["arc_challenge"] == {"mean": 50, "low": 50, "high": 50, "n": 1}
    assert table["average"] == {"mean": 75, "low": 62.5, "high": 87.5, "n": 5}


@pytest.mark.filterwarnings("ignore:invalid value:RuntimeWarning")  # lm-eval divides 0 by 0 there
def test_a_non_finite_score_names_its_document(data):
    tasks = load("truthfulqa", data)
    keys = documents(tasks)
    model = random_model(max_position_embeddings=4096)
    with torch.no_grad():
        model.lm_head.weight.mul_(1e5)  # every answer becomes less probable than float64 can hold
    with pytest.raises(NonFiniteError, match="the score of truthfulqa/0 is not finite"):
        list(evaluate(model, TOKENIZER, tasks, keys))
    with torch.no_grad():
        model.lm_head.weight.fill_(float("nan"))
    with pytest.raises(NonFiniteError, match="an answer to truthfulqa/2 is not finite"):
        list(evaluate(model, TOKENIZER, tasks, keys[2:]))


@pytest.mark.parametrize(
    "name, split, change, message",
    [
        ("arc_challenge", "train", None, "train.parquet cannot be read"),
        ("hellaswag", "validation", {"endings": None}, "HellaSwag .*TypeError"),
        ("mmlu", "test", {"subject": "cooking"}, "MMLU .*cooking"),
        ("arc_challenge", "test", {"answerKey": "Z"}, "document arc_challenge/3 .*ValueError"),
        ("hellaswag", "validation", "no rows", "validation.parquet has no rows"),
        ("mmlu", "test", "no rows", "test.parquet has no rows"),
        ("arc_challenge", "train", "no rows", "arc_challenge has 0 examples .*--shots 0"),
        ("mmlu", "dev", "one row", "mmlu/abstract_algebra has 0 examples .*--shots 0"),
    ],
)
def test_damaged_data_is_named(tmp_path, name, split, change, message):
    directory = write_benchmarks(tmp_path)
    file = directory / TASKS[name].files[split][0]
    rows = pyarrow.parquet.read_table(file).to_pylist()
    file.unlink()
    table = pyarrow.Table.from_pylist(rows)
    if isinstance(change, str):
        pyarrow.parquet.write_table(table.slice(0, change == "one row"), file)
    elif change:
        rows[-1] |= change
        pyarrow.parquet.write_table(pyarrow.Table.from_pylist(rows), file)
    with pytest.raises(InputError, match=message):
        tasks = load(name, directory)
        open_llm.content_hashes(tasks, documents(tasks))
