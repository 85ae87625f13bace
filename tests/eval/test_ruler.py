"""RULER against the package's own entry points (its prepare.py and evaluate.py), and hand-worked
cases."""

import json
import random
import runpy
import shlex
import subprocess
import sys
import types
from importlib import resources

import nltk
import numpy as np
import pytest
from scipy.stats import binomtest
from tokenizers import processors
from transformers import AutoTokenizer
from wonderwords import random_word

from core.errors import InputError
from eval import ruler
from eval.ruler import TASKS, aggregate, score
from records import ROOT
from tests.files import read
from tests.processes import fork, wait

FOLDER = resources.files(ruler.PACKAGE)


@pytest.fixture(scope="module")
def tokenizer():
    """That of tiny; like LLaMA's, it puts a token before every text."""
    tokenizer = AutoTokenizer.from_pretrained(ROOT / "models/tiny")
    end = tokenizer.eos_token
    template = processors.TemplateProcessing(f"{end} $A", special_tokens=[(end, 0)])
    tokenizer.backend_tokenizer.post_processor = template
    return tokenizer


def samples(task, length, tokenizer, count):
    """The benchmark's own, which have the seed 42."""
    return ruler.samples(task, length, tokenizer, count, 42, tokenizer.encode)


# one task of each script
SCRIPTS = pytest.mark.parametrize("task", ["niah_single_1", "vt", "cwe", "fwe", "qa_1"])


# ---- against the package


def test_tasks_are_the_packages():
    from long_context_eval.data.synthetic import constants as data
    from long_context_eval.eval.synthetic import constants as metrics

    recipes = ruler.recipes()
    assert list(TASKS) == list(recipes)
    for name, generated in TASKS.items():
        script = recipes[name]["task"]
        assert generated == data.TASKS[script]["tokens_to_generate"]
        metric = "part" if name in ruler.QUESTIONS else "all"
        assert metrics.TASKS[script]["metric_fn"].__name__ == f"string_match_{metric}"


def prepare(*arguments):
    """The package's prepare.py, unmodified, as a process; the script that it starts runs in the
    same one."""
    folder = FOLDER / "data"
    for name in [name for name in sys.modules if name.startswith("long_context_eval")]:
        del sys.modules[name]  # nothing of what this repository made of them
    # The package imports tenacity to retry calls of a server; here nothing calls one.
    sys.modules["tenacity"] = types.SimpleNamespace(
        retry=lambda **_: lambda function: function,
        stop_after_attempt=int,
        wait_fixed=int,
        wait_random=min,
    )

    def run(command, **_):
        sys.argv = shlex.split(command)[1:]
        runpy.run_path(sys.argv[0], run_name="__main__")
        return subprocess.CompletedProcess(command, 0)

    subprocess.run = run
    sys.path[:0] = [str(folder), str(folder / "synthetic")]
    sys.argv = [str(folder / "prepare.py"), *arguments]
    runpy.run_path(sys.argv[0], run_name="__main__")


@pytest.mark.parametrize("task", ["niah_multikey_1", "vt"])
def test_same_samples_as_the_packages_entry_point(task, tokenizer, tmp_path, monkeypatch):
    """Its prepare.py: the words, of which a hundredth of the nouns are enough here, the essays,
    vt's quirks."""
    listed = random_word._get_words_from_text_file

    def fewer(name):
        return listed(name)[::100] if name == "nounlist.txt" else listed(name)

    monkeypatch.setattr(random_word, "_get_words_from_text_file", fewer)
    tokenizer.save_pretrained(tmp_path / "tokenizer")
    ruler._find_sentence_model()
    options = [
        f"--save_dir={tmp_path}",
        f"--task={task}",
        f"--tokenizer_path={tmp_path / 'tokenizer'}",
        "--tokenizer_type=hf",
        "--max_seq_length=1536",
        "--num_samples=3",
    ]
    assert wait(fork(lambda: prepare(*options))) == 0
    lines = (tmp_path / task / "validation.jsonl").read_text().splitlines()
    for ours, line in zip(samples(task, 1536, tokenizer, 3), lines, strict=True):
        theirs = json.loads(line)
        assert ours["prompt"] == theirs["input"]
        assert ours["references"] == theirs["outputs"]


def test_same_scores_as_the_packages_entry_point(tmp_path):
    """Its evaluate.py, unmodified: how it cleans a prediction, and the metric."""
    cases = {
        "niah_multivalue": [
            ("  12, 34 and\t56\x00", ["12", "34", "56", "78"]),
            ("a\tb", ["a\tb", "b"]),
            (" edge ", [" edge", "edge"]),
        ],
        "qa_2": [
            ("\n YES indeed", ["yes", "maybe"]),
            ("Paris\x1f", ["paris\n", "London"]),
        ],
    }
    for task, rows in cases.items():
        lines = [
            {"input": "", "pred": prediction, "outputs": references, "others": {}, "index": index}
            for index, (prediction, references) in enumerate(rows)
        ]
        (tmp_path / f"{task}.jsonl").write_text("\n".join(map(json.dumps, lines)))
    # It would download this model, and never use it.
    (tmp_path / "nltk/tokenizers/punkt").mkdir(parents=True)

    def evaluate():
        nltk.data.path.append(str(tmp_path / "nltk"))
        sys.path.insert(0, str(FOLDER / "eval"))
        sys.argv = [str(FOLDER / "eval/evaluate.py"), f"--data_dir={tmp_path}"]
        runpy.run_path(sys.argv[0], run_name="__main__")

    assert wait(fork(evaluate)) == 0
    theirs = read(tmp_path / "per_sample_scores.json")
    for task, rows in cases.items():
        assert [100 * score(task, *row) for row in rows] == pytest.approx(theirs[task])


# ---- samples


@SCRIPTS
def test_prompts_fill_the_length_and_hold_the_answer(task, tokenizer):
    length = 4096  # a question needs that much to fill half of it
    for index, sample in enumerate(samples(task, length, tokenizer, 3)):
        prompt = sample["prompt"]
        assert sample["index"] == index
        # <s>, which the model reads, is counted
        assert sample["length"] == len(tokenizer(prompt).input_ids)
        assert length / 2 < sample["length"] + TASKS[task] <= length
        assert sample["references"]
        assert all(reference in prompt for reference in sample["references"])
        assert "{" not in prompt.splitlines()[-1]  # every place of the template is filled


def test_leaves_the_process_as_it_was_and_the_same_seed_gives_the_same(tokenizer, monkeypatch):
    # a module of the caller's under the name of one of the package's
    monkeypatch.setitem(sys.modules, "tokenizer", random)

    def state():
        generators = random.getstate(), np.random.get_state()[1].tolist()
        return generators, list(sys.argv), list(sys.path)

    before = state()
    two = samples("vt", 1536, tokenizer, 2)
    assert samples("vt", 1536, tokenizer, 4)[:2] == two
    assert state() == before
    assert sys.modules["tokenizer"] is random
    assert "constants" not in sys.modules


def test_a_sample_with_less_room_is_as_hard_as_the_others(tokenizer):
    """cwe repeats its words 30 times from 4,096 tokens on, and six times below."""
    (row,) = ruler.run_script("cwe", 4096, tokenizer, 1, 42, 3976)
    words = row["input"].split()
    assert all(words.count(word) == 30 for word in row["outputs"])


def test_overshooting_samples_are_replaced_alone(tokenizer):
    """fwe's script fills the whole length with the prompt; the samples that do leave room stay as
    they are."""
    length = 512
    count = 12
    generated = TASKS["fwe"]
    raw = [row["input"] for row in ruler.run_script("fwe", length, tokenizer, count, 42, length)]
    fits = [len(tokenizer(prompt).input_ids) + generated <= length for prompt in raw]
    assert set(fits) == {True, False}
    for sample, prompt, fit in zip(
        samples("fwe", length, tokenizer, count), raw, fits, strict=True
    ):
        assert (sample["prompt"] == prompt) == fit
        assert sample["length"] + generated <= length


# ---- lengths that are too short, and other errors


@pytest.mark.parametrize(
    "task, length",
    [
        ("vt", 160),
        # below 500 words of the essays, the script asks for a needle in nothing
        ("niah_single_2", 512),
    ],
)
def test_too_short_is_refused(task, length, tokenizer):
    with pytest.raises(InputError, match=f"{task} does not fit in {length}"):
        samples(task, length, tokenizer, 1)


def test_an_interrupt_is_not_swallowed(tokenizer):
    """The scripts catch everything and try again."""
    calls = []

    def tokenize(text):
        calls.append(text)
        if len(calls) == interrupted_at:
            raise KeyboardInterrupt("enough")
        return tokenizer.tokenize(text)

    def generate():
        watched = types.SimpleNamespace(tokenize=tokenize)
        ruler.samples("niah_single_1", 1024, watched, 3, 42, tokenizer.encode)

    interrupted_at = None
    generate()
    interrupted_at = len(calls)
    calls.clear()
    with pytest.raises(KeyboardInterrupt, match="enough"):
        generate()


# ---- scores


def assert_solved(cell, solved, of, n):
    """The cell of n samples states a share with Wilson's interval, which SciPy computes."""
    wilson = binomtest(solved, of).proportion_ci(method="wilson")
    expected = {"mean": solved / of, "low": wilson.low, "high": wilson.high}
    assert cell["n"] == n
    for name, share in expected.items():
        assert cell[name] == pytest.approx(100 * share, abs=1e-9)


def test_aggregate_by_hand():
    """Every task counts alike whatever its number of samples, and every length whatever its
    tasks."""
    scores = {
        (4096, "vt"): [0.0, 0.0, 0.0],
        (4096, "qa_1"): [1.0],
        (8192, "vt"): [0.0, 0.0],
    }
    values = {
        f"{length}/{task}/{index}": {"score": score}
        for (length, task), of_task in scores.items()
        for index, score in enumerate(of_task)
    }
    result = aggregate(values)
    assert_solved(result["tasks"]["4096"]["vt"], solved=0, of=3, n=3)
    assert_solved(result["tasks"]["4096"]["qa_1"], solved=1, of=1, n=1)
    # qa_1's one sample has half the weight, as if there were two samples.
    assert result["lengths"]["4096"]["tasks"] == 2
    assert_solved(result["lengths"]["4096"], solved=1, of=2, n=4)
    assert_solved(result["lengths"]["8192"], solved=0, of=2, n=2)
    # It has a quarter of the weight of both lengths.
    assert_solved(result["average"], solved=1, of=4, n=6)
    assert aggregate(dict(reversed(values.items()))) == result == json.loads(json.dumps(result))
