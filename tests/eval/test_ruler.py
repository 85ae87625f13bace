"""RULER against the package's own entry points (its prepare.py and evaluate.py), and hand-worked
cases."""

import functools
import json
import random
import runpy
import shlex
import subprocess
import sys
import types

import nltk
import numpy as np
import pytest
from scipy.stats import binomtest
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors, trainers
from transformers import PreTrainedTokenizerFast
from wonderwords import random_word

from core.errors import InputError
from eval import ruler_scripts as scripts
from eval.ruler import TASKS, aggregate, samples, score
from tests.processes import fork, wait


@pytest.fixture(scope="module")
def tokenizer():
    """2048 byte pairs learned from a stretch of the essays; like LLaMA's, it puts a token before
    every text."""
    essays = json.loads(
        (scripts.folder() / "data/synthetic/json/PaulGrahamEssays.json").read_text()
    )["text"]
    backend = Tokenizer(models.BPE())
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    backend.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(
        vocab_size=2048, special_tokens=["<s>"], initial_alphabet=alphabet, show_progress=False
    )
    backend.train_from_iterator([essays[:300_000]], trainer)
    backend.post_processor = processors.TemplateProcessing("<s> $A", special_tokens=[("<s>", 0)])
    return PreTrainedTokenizerFast(tokenizer_object=backend, bos_token="<s>")


@pytest.fixture(scope="module")
def drawn(tokenizer):
    """drawn(task): three samples of 2048 tokens; of 4096 where a question has that much text."""
    return functools.cache(
        lambda task: samples(task, 4096 if task.startswith("qa") else 2048, tokenizer, 3)
    )


# ---- against the package


def test_tasks_are_the_packages():
    from long_context_eval.data.synthetic import constants as data
    from long_context_eval.eval.synthetic import constants as metrics

    recipes = scripts.recipes()
    assert list(TASKS) == list(recipes)
    for name, task in TASKS.items():
        script = recipes[name]["task"]
        assert task.tokens_to_generate == data.TASKS[script]["tokens_to_generate"]
        assert metrics.TASKS[script]["metric_fn"].__name__ == f"string_match_{task.metric}"


def prepare(*arguments):
    """The package's prepare.py, unmodified, as a process; the script that it starts runs in the
    same one."""
    folder = scripts.folder() / "data"
    for name in [name for name in sys.modules if name.startswith("long_context_eval")]:
        del sys.modules[name]  # nothing of what this repository made of them
    # The package imports tenacity to retry calls of a server; here nothing calls one.
    once = {"retry": lambda **_: lambda function: function}
    sys.modules["tenacity"] = types.SimpleNamespace(
        **once, stop_after_attempt=int, wait_fixed=int, wait_random=min
    )

    def run(command, **_):
        sys.argv = shlex.split(command)[1:]
        runpy.run_path(sys.argv[0], run_name="__main__")
        return subprocess.CompletedProcess(command, 0)

    subprocess.run = run
    sys.path[:0] = [str(folder), str(folder / "synthetic")]
    sys.argv = [str(folder / "prepare.py"), *arguments]
    runpy.run_path(sys.argv[0], run_name="__main__")


def test_same_samples_as_the_packages_entry_point(tokenizer, tmp_path, monkeypatch):
    """Its prepare.py: the words, of which a hundredth of the nouns are enough here, the essays,
    vt's quirks."""
    listed = random_word._get_words_from_text_file
    fewer = {"nounlist.txt": 100}
    monkeypatch.setattr(
        random_word, "_get_words_from_text_file", lambda name: listed(name)[:: fewer.get(name, 1)]
    )
    saved = tmp_path / "tokenizer"
    tokenizer.save_pretrained(saved)
    scripts._find_sentence_model()
    length = 1536
    count = 3
    processes = {}
    for task in ("niah_multikey_1", "vt"):
        options = [
            f"--save_dir={tmp_path}",
            f"--task={task}",
            f"--tokenizer_path={saved}",
            "--tokenizer_type=hf",
        ]
        options += [f"--max_seq_length={length}", f"--num_samples={count}"]
        processes[task] = fork(lambda: prepare(*options))
    for task, process in processes.items():
        assert wait(process) == 0
        theirs = [
            json.loads(line)
            for line in (tmp_path / task / "validation.jsonl").read_text().splitlines()
        ]
        ours = samples(task, length, tokenizer, count)
        assert [(row["input"], row["outputs"]) for row in theirs] == [
            (s["prompt"], s["references"]) for s in ours
        ]


def test_same_scores_as_the_packages_entry_point(tmp_path):
    """Its evaluate.py, unmodified: how it cleans a prediction, and the metric."""
    cases = {
        "niah_multivalue": [
            ("  12, 34 and\t56\x00", ["12", "34", "56", "78"]),
            ("", ["1"]),
            ("a\tb", ["a\tb", "b"]),
            (" edge ", [" edge", "edge"]),
        ],
        "qa_2": [
            ("\n YES indeed", ["yes", "maybe"]),
            ("no", ["yes"]),
            ("Paris\x1f", ["paris\n", "London"]),
        ],
    }
    for task, rows in cases.items():
        lines = [
            {"input": "", "pred": prediction, "outputs": references, "others": {}, "index": index}
            for index, (prediction, references) in enumerate(rows)
        ]
        (tmp_path / f"{task}.jsonl").write_text("\n".join(map(json.dumps, lines)))
    (tmp_path / "nltk/tokenizers/punkt").mkdir(
        parents=True
    )  # it would download this model, and never use it

    def evaluate():
        nltk.data.path.append(str(tmp_path / "nltk"))
        sys.path.insert(0, str(scripts.folder() / "eval"))
        sys.argv = [str(scripts.folder() / "eval" / "evaluate.py"), f"--data_dir={tmp_path}"]
        runpy.run_path(sys.argv[0], run_name="__main__")

    assert wait(fork(evaluate)) == 0
    theirs = json.loads((tmp_path / "per_sample_scores.json").read_text())
    for task, rows in cases.items():
        assert [100 * score(task, *row) for row in rows] == pytest.approx(theirs[task])


# ---- samples


@pytest.mark.parametrize(
    "task", ["niah_single_1", "niah_multikey_2", "niah_multivalue", "vt", "cwe", "fwe", "qa_1"]
)
def test_prompts_fill_the_length_and_hold_the_answer(task, tokenizer, drawn):
    length = 4096 if task.startswith("qa") else 2048
    for index, sample in enumerate(drawn(task)):
        assert sample["index"] == index
        assert sample["length"] == len(
            tokenizer(sample["prompt"]).input_ids
        )  # <s>, which the model reads, is counted
        assert length / 2 < sample["length"] + TASKS[task].tokens_to_generate <= length
        assert sample["references"]
        assert all(reference in sample["prompt"] for reference in sample["references"])
        assert "{" not in sample["prompt"].splitlines()[-1]  # every place of the template is filled


def test_a_larger_count_appends_and_another_seed_gives_others(tokenizer, drawn):
    for task in ("niah_multivalue", "vt"):
        assert samples(task, 2048, tokenizer, 5)[:3] == drawn(task)
        assert samples(task, 2048, tokenizer, 3, seed=7) != drawn(task)


def test_leaves_the_process_as_it_was(tokenizer, capfd, monkeypatch, tmp_path):
    monkeypatch.setattr(scripts.tempfile, "tempdir", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    random.seed(5), np.random.seed(5)
    expected = random.random(), np.random.rand()
    random.seed(5), np.random.seed(5)
    argv, path = list(sys.argv), list(sys.path)
    monkeypatch.setitem(
        sys.modules, "tokenizer", random
    )  # a module of the caller's under the same name
    for task in ("niah_single_2", "vt"):
        samples(task, 1536, tokenizer, 2)
    assert (random.random(), np.random.rand()) == expected
    assert (sys.argv, sys.path, sys.modules["tokenizer"]) == (argv, path, random)
    assert "constants" not in sys.modules
    assert not list(tmp_path.iterdir())
    assert capfd.readouterr() == ("", "")


def test_overshooting_samples_are_replaced_alone(tokenizer):
    """fwe's script fills the whole length with the prompt; the samples that do leave room stay as
    they are."""
    length = 512
    count = 12
    generated = TASKS["fwe"].tokens_to_generate
    raw = [row["input"] for row in scripts.generate("fwe", length, generated, tokenizer, count, 42)]
    fits = [len(tokenizer(prompt).input_ids) + generated <= length for prompt in raw]
    assert True in fits and False in fits
    for sample, prompt, fit in zip(
        samples("fwe", length, tokenizer, count), raw, fits, strict=True
    ):
        assert (sample["prompt"] == prompt) == fit
        assert sample["length"] + generated <= length


# ---- lengths that are too short, and other errors


@pytest.mark.parametrize(
    ("task", "length"),
    [
        ("vt", 160),
        (
            "niah_single_2",
            512,
        ),  # below 500 words of the essays, the script asks for a needle in nothing
    ],
)
def test_too_short_is_refused(task, length, tokenizer):
    with pytest.raises(InputError, match=f"{task} does not fit in {length}"):
        samples(task, length, tokenizer, 1)


@pytest.mark.parametrize(
    "task", ["niah_single_1", "vt", "cwe", "fwe", "qa_1"]
)  # one of each script
def test_a_length_that_does_not_grow_is_refused(task, tokenizer):
    cutting = types.SimpleNamespace(tokenize=lambda text: tokenizer.tokenize(text)[:600])
    with pytest.raises(InputError, match="no more tokens"):
        samples(task, 1536, cutting, 1)


def test_an_interrupt_is_not_swallowed(tokenizer, monkeypatch):
    """The scripts catch everything; a script that then tries again would never end."""
    original = tokenizer.tokenize
    calls = []
    last = None

    def tokenize(text):
        calls.append(text)
        if len(calls) == last:
            raise KeyboardInterrupt("enough")
        return original(text)

    monkeypatch.setattr(tokenizer, "tokenize", tokenize)
    samples("niah_single_1", 1024, tokenizer, 3)
    for last in (2, len(calls)):  # noqa: B007
        calls.clear()
        with pytest.raises(KeyboardInterrupt, match="enough"):
            samples("niah_single_1", 1024, tokenizer, 3)


# ---- scores


def test_aggregate_by_hand():
    """Every task counts alike whatever its number of samples, and every length; Wilson's intervals
    are scipy's."""
    scores = {
        4096: {"vt": [1.0, 1.0, 0.0], "qa_1": [1.0]},
        8192: {"vt": [0.2, 0.2, 0.2], "qa_1": [0.0]},
    }
    rows = [
        {"task": task, "length": length, "index": index, "score": value}
        for length, by_task in scores.items()
        for task, values in by_task.items()
        for index, value in enumerate(values)
    ]
    result = aggregate(rows)
    assert list(result["tasks"]) == ["4096", "8192"] and result["lengths"]["4096"]["tasks"] == 2
    four, eight = result["lengths"].values()
    cells = [
        result["tasks"][length][task]
        for length, task in (("4096", "vt"), ("4096", "qa_1"), ("8192", "qa_1"))
    ]
    for cell, ones, n in zip(cells, (2, 1, 0), (3, 1, 1)):
        wilson = binomtest(ones, n).proportion_ci(method="wilson")
        assert (cell["mean"], cell["n"]) == (pytest.approx(100 * ones / n), n)
        assert (cell["low"], cell["high"]) == pytest.approx(
            (100 * wilson.low, 100 * wilson.high), abs=1e-9
        )
    # qa_1's one sample has half the weight, as if there were two samples; a quarter of both
    # lengths' four.
    for cell, mean, n, weighs in (
        (four, 250 / 3, 4, 2),
        (eight, 10, 4, 2),
        (result["average"], 140 / 3, 8, 4),
    ):
        assert (cell["mean"], cell["n"]) == (pytest.approx(mean), n)
        p = mean / 100
        z = 1.959963984540054
        width = (
            200 * z * (p * (1 - p) / weighs + z**2 / (4 * weighs**2)) ** 0.5 / (1 + z**2 / weighs)
        )
        assert cell["high"] - cell["low"] == pytest.approx(width)
    assert aggregate(rows[::-1]) == result == json.loads(json.dumps(result))
