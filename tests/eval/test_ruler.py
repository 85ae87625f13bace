"""RULER against the package's own entry points (its prepare.py and evaluate.py), and hand-worked cases."""

import json
import os
import random
import re
import runpy
import shlex
import subprocess
import sys
import types
from collections import Counter

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

NEEDLE = "One of the special magic {} for {} is: {}."
RETRIEVAL = [name for name, task in TASKS.items() if task.category == "retrieval"]


@pytest.fixture(scope="module")
def tokenizer():
    """2048 byte pairs learned from a stretch of the essays; like LLaMA's, it puts a token before every text."""
    essays = json.loads((scripts.folder() / "data/synthetic/json/PaulGrahamEssays.json").read_text())["text"]
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


def tokens(tokenizer, text):
    return len(tokenizer(text, add_special_tokens=False).input_ids)


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
    """The package's prepare.py, unmodified, as a process; the script that it starts runs in the same one."""
    folder = scripts.folder() / "data"
    for name in [name for name in sys.modules if name.startswith("long_context_eval")]:
        del sys.modules[name]  # nothing of what this repository made of them
    # The package imports tenacity to retry calls of a server; here nothing calls one.
    once = {"retry": lambda **_: lambda function: function}
    sys.modules["tenacity"] = types.SimpleNamespace(**once, stop_after_attempt=int, wait_fixed=int, wait_random=min)

    def run(command, **_):
        sys.argv = shlex.split(command)[1:]
        runpy.run_path(sys.argv[0], run_name="__main__")
        return subprocess.CompletedProcess(command, 0)

    subprocess.run = run
    sys.path[:0] = [str(folder), str(folder / "synthetic")]
    sys.argv = [str(folder / "prepare.py"), *arguments]
    runpy.run_path(sys.argv[0], run_name="__main__")


def test_same_samples_as_the_packages_entry_point(tokenizer, tmp_path, monkeypatch):
    """Its prepare.py: the words, of which a tenth of the nouns are enough here, the essays, vt's quirks."""
    listed = random_word._get_words_from_text_file
    fewer = {"nounlist.txt": 10}
    monkeypatch.setattr(random_word, "_get_words_from_text_file", lambda name: listed(name)[:: fewer.get(name, 1)])
    saved = tmp_path / "tokenizer"
    tokenizer.save_pretrained(saved)
    scripts._find_sentence_model()
    length, count = 1536, 4
    processes = {}
    for task in ("niah_multikey_1", "vt"):
        options = [f"--save_dir={tmp_path}", f"--task={task}", f"--tokenizer_path={saved}", "--tokenizer_type=hf"]
        options += [f"--max_seq_length={length}", f"--num_samples={count}"]
        processes[task] = fork(lambda: prepare(*options))
    for task, process in processes.items():
        assert wait(process) == 0
        theirs = [json.loads(line) for line in (tmp_path / task / "validation.jsonl").read_text().splitlines()]
        ours = samples(task, length, tokenizer, count)
        assert [(row["input"], row["outputs"]) for row in theirs] == [(s["prompt"], s["references"]) for s in ours]


def test_same_scores_as_the_packages_entry_point(tmp_path):
    """Its evaluate.py, unmodified: how it cleans a prediction, and the metric."""
    cases = {
        "niah_multivalue": [
            ("  12, 34 and\t56\x00", ["12", "34", "56", "78"]),
            ("", ["1"]),
            ("a\tb", ["a\tb", "b"]),
            (" edge ", [" edge", "edge"]),
        ],
        "qa_2": [("\n YES indeed", ["yes", "maybe"]), ("no", ["yes"]), ("Paris\x1f", ["paris\n", "London"])],
    }
    for task, rows in cases.items():
        lines = [
            {"input": "", "pred": prediction, "outputs": references, "others": {}, "index": index}
            for index, (prediction, references) in enumerate(rows)
        ]
        (tmp_path / f"{task}.jsonl").write_text("\n".join(map(json.dumps, lines)))
    (tmp_path / "nltk/tokenizers/punkt").mkdir(parents=True)  # it would download this model, and never use it
    subprocess.run(
        [sys.executable, str(scripts.folder() / "eval" / "evaluate.py"), f"--data_dir={tmp_path}"],
        env=os.environ | {"NLTK_DATA": str(tmp_path / "nltk"), "PYTHONDONTWRITEBYTECODE": "1"},
        check=True,
        capture_output=True,
        timeout=120,
    )
    theirs = json.loads((tmp_path / "per_sample_scores.json").read_text())
    for task, rows in cases.items():
        assert [100 * score(task, *row) for row in rows] == pytest.approx(theirs[task])


# ---- samples


@pytest.mark.parametrize("task", TASKS)
def test_prompts_fill_the_length_and_hold_the_answer(task, tokenizer):
    length = 4096
    for index, sample in enumerate(samples(task, length, tokenizer, 3)):
        assert sample["index"] == index
        assert sample["length"] == tokens(tokenizer, sample["prompt"]) + 1  # <s>, which the model reads as well
        assert length / 2 < sample["length"] + TASKS[task].tokens_to_generate <= length
        assert sample["references"]
        if task != "qa_2":  # some of its answers are yes and no
            assert all(reference in sample["prompt"] for reference in sample["references"])
        assert "{" not in sample["prompt"].splitlines()[-1]  # every place of the template is filled


@pytest.mark.parametrize("task", RETRIEVAL)
def test_needles_are_in_the_haystack(task, tokenizer):
    values = {"niah_single_3": "uuids", "niah_multikey_3": "uuids"}.get(task, "numbers")
    for sample in samples(task, 2048, tokenizer, 3):
        haystack, question = sample["prompt"].rsplit("\n", 1)
        asked = re.search(
            r"are all the special magic \w+ for (.*?) mentioned|is the special magic \w+ for (.*?) m", question
        )
        keys = re.split(r", and |, ", next(filter(None, asked.groups())))
        # One key for one reference, one key for its several values, or several keys in the order of the references.
        keys = keys * len(sample["references"]) if len(keys) == 1 else keys
        for key, value in zip(keys, sample["references"], strict=True):
            assert NEEDLE.format(values, key, value) in haystack
        prefix = question.split("?")[1]
        assert prefix.endswith(("provided text are", "provided text is")) and all(key in prefix for key in keys)


def test_vt_references_follow_the_chain(tokenizer):
    for sample in samples("vt", 2048, tokenizer, 3):
        example, text = sample["prompt"].split("\n\n\n\n")
        first, *hops = sample["references"]
        value = re.search(rf"VAR {first} = (\d{{5}})", text)[1]
        for before, after in zip(sample["references"], hops):
            assert f"VAR {after} = VAR {before} " in text
        assert text.endswith(f"5 variables are assgined the value {value}, they are: ")
        assert "they are: " in example


def test_cwe_and_fwe_references_are_the_most_frequent(tokenizer):
    for sample in samples("cwe", 2048, tokenizer, 3):
        listed = sample["prompt"].rsplit("Below is a numbered list", 1)[1]
        words = Counter(re.findall(r"\d+\. (.*?)(?= \d+\. |\n)", listed))
        assert {word for word, _ in words.most_common(10)} == set(sample["references"])
        assert words.most_common(11)[10][1] < words.most_common(10)[9][1]
    for length in (512, 2048):
        for sample in samples("fwe", length, tokenizer, 3):
            text = sample["prompt"].split("coded words. ")[1].split("\nQuestion")[0]
            counts = Counter(word for word in text.split() if word != "...").most_common(4)
            assert [word for word, _ in counts[:3]] == sample["references"]
            assert counts[2][1] > counts[3][1]


def test_deterministic_and_a_larger_count_appends(tokenizer):
    for task, length in (("niah_multikey_3", 1024), ("vt", 1536), ("cwe", 1536), ("fwe", 512), ("qa_1", 4096)):
        three = samples(task, length, tokenizer, 3)
        assert samples(task, length, tokenizer, 8)[:3] == three
        assert samples(task, length, tokenizer, 3, seed=7) != three


def test_leaves_the_process_as_it_was(tokenizer, capfd, monkeypatch, tmp_path):
    monkeypatch.setattr(scripts.tempfile, "tempdir", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    random.seed(5), np.random.seed(5)
    expected = random.random(), np.random.rand()
    random.seed(5), np.random.seed(5)
    argv, path = list(sys.argv), list(sys.path)
    monkeypatch.setitem(sys.modules, "tokenizer", random)  # a module of the caller's under the same name
    for task in ("niah_single_2", "vt", "cwe"):
        samples(task, 1536, tokenizer, 2)
    assert (random.random(), np.random.rand()) == expected
    assert (sys.argv, sys.path, sys.modules["tokenizer"]) == (argv, path, random)
    assert "constants" not in sys.modules
    assert not list(tmp_path.iterdir())
    assert capfd.readouterr() == ("", "")


def test_overshooting_samples_are_replaced_alone(tokenizer):
    """fwe's script fills the whole length with the prompt; the samples that do leave room stay as they are."""
    length, count = 512, 12
    generated = TASKS["fwe"].tokens_to_generate
    raw = [row["input"] for row in scripts.generate("fwe", length, generated, tokenizer, count, 42)]
    fits = [1 + tokens(tokenizer, prompt) + generated <= length for prompt in raw]
    assert True in fits and False in fits
    for sample, prompt, fit in zip(samples("fwe", length, tokenizer, count), raw, fits, strict=True):
        assert (sample["prompt"] == prompt) == fit
        assert sample["length"] + generated <= length


# ---- lengths that are too short, and other errors


@pytest.mark.parametrize("task", ["niah_single_1", "niah_multikey_3", "vt", "fwe"])
def test_too_short_is_refused(task, tokenizer):
    with pytest.raises(InputError, match=f"{task} does not fit in 160 tokens"):
        samples(task, 160, tokenizer, 1)


def test_needles_without_hay_are_refused(tokenizer):
    """The essays come in steps of 500 words; below the first the script asks for a needle in nothing."""
    with pytest.raises(InputError, match=r"niah_single_2 does not fit in 512"):
        samples("niah_single_2", 512, tokenizer, 1)


@pytest.mark.parametrize("failure", [KeyboardInterrupt, OSError])
@pytest.mark.parametrize("task", ["niah_single_1", "fwe"])
def test_interrupts_and_tokenizer_failures_are_not_swallowed(task, failure, tokenizer):
    """The scripts catch everything; a script that then tries again would never end."""

    class Failing:
        calls = 0

        def tokenize(self, text):
            self.calls += 1
            if self.calls == last:
                raise failure("enough")
            return tokenizer.tokenize(text)

        def __call__(self, text):
            return tokenizer(text)

    counting = Failing()
    last = None
    samples(task, 1024, counting, 3)
    for last in (2, counting.calls):  # noqa: B007  (while it looks for a size, and while it makes a sample)
        with pytest.raises(failure, match="enough"):
            samples(task, 1024, Failing(), 3)


# ---- scores


def test_aggregate_by_hand():
    """Every task counts alike whatever its number of samples, and every length; Wilson's intervals are scipy's."""
    found = {4096: {"vt": [1.0, 1.0, 0.0], "qa_1": [1.0]}, 8192: {"vt": [0.2, 0.2, 0.2], "qa_1": [0.0]}}
    rows = [
        {"task": task, "length": length, "index": index, "score": value}
        for length, scores in found.items()
        for task, values in scores.items()
        for index, value in enumerate(values)
    ]
    result = aggregate(rows)
    assert list(result["tasks"]) == ["4096", "8192"]
    assert result["lengths"]["4096"]["tasks"] == 2
    four, eight = result["lengths"].values()
    for interval, mean, n in (
        (result["tasks"]["4096"]["vt"], 200 / 3, 3),
        (result["tasks"]["4096"]["qa_1"], 100, 1),
        (result["tasks"]["8192"]["qa_1"], 0, 1),
        (four, (200 / 3 + 100) / 2, 4),
        (eight, 10, 4),
        (result["average"], ((200 / 3 + 100) / 2 + 10) / 2, 8),
    ):
        assert (interval["mean"], interval["n"]) == (pytest.approx(mean), n)
    for interval, ones, n in (
        (result["tasks"]["4096"]["vt"], 2, 3),
        (result["tasks"]["4096"]["qa_1"], 1, 1),
        (result["tasks"]["8192"]["qa_1"], 0, 1),
    ):
        wilson = binomtest(ones, n).proportion_ci(method="wilson")
        assert (interval["low"], interval["high"]) == pytest.approx((100 * wilson.low, 100 * wilson.high), abs=1e-9)
    # qa_1's one sample has half the weight, as if there were two samples; a quarter of both lengths' four.
    assert width(four) == pytest.approx(width({"mean": four["mean"]}, 2))
    assert width(result["average"]) == pytest.approx(width({"mean": result["average"]["mean"]}, 4))

    assert aggregate(rows[::-1]) == result
    assert json.loads(json.dumps(result)) == result


def width(interval, n=None):
    """Of an interval, or of Wilson's by his formula for a mean of n zeros and ones."""
    if n is None:
        return interval["high"] - interval["low"]
    p, z = interval["mean"] / 100, 1.959963984540054
    return 100 * 2 * z * (p * (1 - p) / n + z**2 / (4 * n**2)) ** 0.5 / (1 + z**2 / n)


def test_aggregate_refuses():
    row = {"task": "vt", "length": 4096, "index": 0, "score": 1.0}
    with pytest.raises(InputError, match="sample 0 of vt at 4096 tokens was scored twice"):
        aggregate([row, row])
    with pytest.raises(InputError, match="no RULER scores"):
        aggregate([])
    with pytest.raises(InputError, match="unknown RULER task"):
        aggregate([row | {"task": "x"}])
