"""Suites, how a rerun measures them, and a user's own model."""

import importlib
import json
import shlex
import sys

import numpy as np
import pytest

from core import files, rope
from core.rope import RopeGeometry
from experiments import base_models, suites
from experiments.base_models.model import Model
from experiments.kit import records
from experiments.suites import measure
from experiments.suites.steps import Suite, merged
from tests.models import checkpoint

KNOWN = ("tiny", "smollm2", "llama2-7b", "llama2-13b")


def suite_of(name, tmp_path, **given):
    return Suite(name, base_models.get(name), tmp_path, tmp_path / "results", **given)


def of_own(tmp_path, **given):
    model = Model("mine", "mine", RopeGeometry(64, 1e4, 1024), factors=(2,))
    return Suite("mine", model, tmp_path, tmp_path / "results", path="/mine", **given)


def chains(suite, only=None):
    return merged(measure.of_parts(suites.find(suites.OWN if suite.path else suite.name), suite, only))


def test_the_ablations_are_parts_of_the_suite_and_scripts_of_their_own(call, tmp_path):
    whole = call("rerun", "--model", "tiny", "--list", "--output", tmp_path)[1].splitlines()
    for option, values in (("n-hat", (48, 44, 40, 36, 32, 28)), ("intervals", (90, 180, 720))):
        script = f"ablation_{option.replace('-', '_')}"
        status, out, _ = call(script, "--model", "tiny", "--list", "--output", tmp_path)
        assert status == 0 and {line for line in out.splitlines() if line[0] != "#"} <= set(whole)
        trained = [line for line in out.splitlines() if "finetune" in line]
        for value in values:
            assert sum(f"--{option} {value} " in line for line in trained) == 1
        assert not any("time_cost" in line for line in out.splitlines())


@pytest.mark.parametrize("name", [*KNOWN, "own"])
def test_every_command_of_a_suite_is_one_that_its_script_takes(tmp_path, name, monkeypatch):
    """Each distinct set of options is parsed by the script itself, which stops before it measures."""
    parsed = []

    class Stop(Exception):
        pass

    def stop(parser, *_):
        parsed.append(parser.parse_known_args(sys.argv[1:])[1])
        raise Stop

    for quick in (False, True):
        suite = of_own(tmp_path, quick=quick) if name == "own" else suite_of(name, tmp_path, quick=quick)
        modules = suites.find(suites.OWN if suite.path else name)
        kinds = {}
        apart = measure.alone(modules, suite)
        for chain in [*chains(suite), *apart]:
            for command in chain.commands:
                options = tuple(word for word in command if word.startswith("--"))
                kinds.setdefault((command[0], options), command)
        for module, *arguments in kinds.values():
            monkeypatch.setattr(sys, "argv", [module, *arguments])
            with monkeypatch.context() as patched, pytest.raises(Stop):
                patched.setattr("argparse.ArgumentParser.parse_args", stop)
                patched.setattr("experiments.kit.experiment.suite_arguments", stop)
                importlib.import_module(module).main()
    assert parsed and not any(parsed)


@pytest.mark.parametrize(
    ("experiment", "model", "factor"),
    [
        *((name, "tiny", factor) for name in ("passkey", "perplexity") for factor in (2, 4)),
        ("angle_distribution", "llama2-7b", 2),
    ],
)
def test_a_command_without_sizes_asks_what_the_committed_records_were_asked(call, experiment, model, factor):
    method = [] if experiment == "angle_distribution" else ["--method", rope.BASELINE]
    status, out, err = call(experiment, "--model", model, *method, "--factor", factor)
    assert (status, out.count("done already"), out.count("\n")) == (0, 1, 1), err


@pytest.mark.parametrize(
    ("experiment", "model", "wanted"),
    [
        ("ruler", "tiny", {"samples": 4}),
        ("longbench_e", "tiny", {"margin": 128, "new_tokens": 64, "limit": None}),
        ("perplexity", "smollm2", {"lengths": None, "stride": [256], "tokens": 20480, "parts": 17}),
        ("perplexity --tokens all", "tiny", {"tokens": None, "lengths": [1024, 2048, 4096]}),
        ("perplexity --lengths 512", "smollm2", {"lengths": [512], "stride": [256]}),
        ("perplexity --books 1", "smollm2", {"books": 1, "parts": None}),
        ("open_llm", "smollm2", {"limit": 500, "shots": 5, "data": None}),
        ("open_llm --limit all", "smollm2", {"limit": None}),
        ("perplexity --factor 3", "tiny", {"tokens": 4352}),  # which the suite does not have
        ("time_cost", "tiny", {"length": 512, "method": None, "weights": None}),
        ("passkey --keys 5 --factor 2", "mine", {"lengths": [64, 128, 192, 256, 320], "keys": 5, "depths": 3}),
        ("perplexity --factor 3", "mine", {"lengths": [128, 384], "stride": [64], "tokens": 512, "books": 1}),
    ],
)
def test_what_a_command_leaves_open_is_as_in_its_models_suite(monkeypatch, tmp_path, experiment, model, wanted):
    name, *given = experiment.split()
    model = checkpoint(tmp_path / "mine") if model == "mine" else model
    monkeypatch.setattr(sys, "argv", [name, "--model", str(model), *given])
    module = importlib.import_module(records.program(name))
    arguments = module._parse() if name == "finetune" else module.main.__self__.parse()
    assert {key: getattr(arguments, key) for key in wanted} == wanted


def test_help_says_what_the_suite_asks(call):
    assert "(default 512 1024 2048 3072 4096" in " ".join(call("passkey", "--help")[1].split())


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (["--model", "smollm2", "--texts", "{empty}"], "no text file in"),
        (["--model", "smollm2", "--benchmarks", "{empty}"], "no folder open_llm or longbench_e"),
        (["--model", "tiny", "--corpus", "{empty}/none"], "--corpus: '{empty}/none' is not a directory"),
        (["--model", "tiny", "--experiments", "passkeys"], "no experiment 'passkeys'"),
        (["--model", "tiny", "--factor", "2"], "give --factor for a model of your own only"),
        (["--model", "tiny", "--workers", "0"], "--workers"),
        (["--model", "tiny", "--methods", "yarn2"], "unknown method 'yarn2'"),
        (["--model", "llama2-7b", "--only", "learned"], "has no part 'learned'"),
        (["--model", "", "--factor", "2"], "--model is empty"),
    ],
)
def test_bad_input_is_refused_before_any_work(call, tmp_path, monkeypatch, given, said):
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    output = tmp_path / "output"
    (tmp_path / "empty").mkdir()
    arguments = [word.format(empty=tmp_path / "empty") for word in given]
    status, out, err = call("rerun", *arguments, "--output", output)
    assert (status, out) == (2, "") and said.format(empty=tmp_path / "empty") in err and err.count("\n") == 1
    assert not output.exists()


def test_a_listed_command_can_be_given_to_a_shell(call, tmp_path):
    book = tmp_path / "Dragon's Blood.txt"
    book.write_text("text")
    listed = ["rerun", "--model", "smollm2", "--experiments", "perplexity", "--list", "--texts", tmp_path]
    scored = [line for line in call(*listed)[1].splitlines() if "experiments.perplexity" in line]
    assert scored and all(str(book) in shlex.split(line) for line in scored)


def test_a_model_of_ones_own_is_measured_and_what_cannot_be_is_said(call, tmp_path, monkeypatch):
    """A real run on a random Llama with L = 256, given by a relative path; a second call finds all done."""
    checkpoint(tmp_path / "mine", max_position_embeddings=256)
    letters = np.random.default_rng(0).choice(list("abcdefgh "), 3000)
    (tmp_path / "texts").mkdir()
    (tmp_path / "texts" / "book.txt").write_text("".join(letters))
    monkeypatch.chdir(tmp_path)
    wanted = ["perplexity", "passkey", "--methods", rope.TIME_REFERENCE, rope.PROPOSED]
    command = ["rerun", "--model", "mine", "--factor", 2, "--texts", "texts", "--output", "out", "--workers", 2]
    status, out, err = call(*command, "--experiments", *wanted)
    assert status == 0, err
    for length in (128, 256):  # the other lengths are measured
        assert f"skipped passkey {length}: a passkey prompt does not fit in {length} tokens." in out
    assert out.count("skipped") == 2
    assert "MODEL=mine" in out and str(tmp_path / "out" / "results") in out
    folder = tmp_path / "out" / "results" / "mine"
    facts = json.loads((folder / "model.json").read_text())
    assert facts["geometry"] == {"head_dim": 16, "base": 10000.0, "context_length": 256} and facts["factors"] == [2]
    settings = {
        f"{method}_s=2" for method in (rope.TIME_REFERENCE, rope.PROPOSED, f"{rope.PROPOSED}_n-hat=10")
    }  # 5/8 of d = 16
    assert {path.stem for path in (folder / "perplexity").iterdir()} == settings
    of_passkeys = [json.loads(path.read_text()) for path in (folder / "passkey").iterdir()]
    assert [record["lengths"] for record in of_passkeys] == [[384, 512, 640]] * 3
    assert json.loads((folder / "perplexity" / f"{rope.PROPOSED}_s=2.json").read_text())["data"].keys() == {"book"}


def test_another_model_under_the_name_of_one_that_was_measured_is_refused(call, tmp_path):
    first, second = (checkpoint(tmp_path / where / "mine", seed=seed) for where, seed in (("a", 0), ("b", 1)))
    (tmp_path / "b" / "mine" / "training.json").write_text("{}")
    results = ["--results", tmp_path / "results", "--output", tmp_path / "out"]
    assert call("disturbance", "--model", first, *results[:2])[0] == 0
    status, out, err = call("rerun", "--model", second, *results)
    assert (status, out) == (2, "") and "fine-tuned for a longer context already" in err and err.count("\n") == 1
    (tmp_path / "b" / "mine" / "training.json").unlink()
    facts = json.loads((tmp_path / "results/mine/model.json").read_text())
    files.write_json(tmp_path / "results/mine/model.json", facts | {"sha256": {"model.safetensors": "another's"}})
    status, out, err = call("rerun", "--model", second, *results)
    assert (status, out) == (2, "") and "another model of that name" in err and err.count("\n") == 1
    assert not (tmp_path / "out").exists()
