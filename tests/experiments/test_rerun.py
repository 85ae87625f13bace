"""Suites, how a rerun measures them, and a user's own model."""

import importlib
import os
import shlex
import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import records
from core import files, rope
from core.rope import RopeGeometry
from experiments import base_models, rerun, suites
from experiments.base_models.model import BaseModel
from experiments.suites.suite import Suite, chains_of
from tests.files import read
from tests.models import checkpoint, fine_tuned


def suite_of(name, tmp_path):
    return Suite(name, base_models.MODELS[name], tmp_path, tmp_path / "results")


def of_own(tmp_path, path="/mine"):
    """Of a model with L = 128."""
    model = BaseModel("mine", path, RopeGeometry(16, 1e4, 128), factors=(2, 4))
    return Suite("mine", model, tmp_path, tmp_path / "results", own_checkpoint=path)


def chains(suite):
    return chains_of(suites.find(suites.OWN if suite.own_checkpoint else suite.name), suite)


def commands(suite):
    return [command for chain in chains(suite) for command in chain.commands]


def experiment(module):
    """The class whose script this is."""
    return importlib.import_module(module).main.__self__


@pytest.mark.parametrize(
    "option, values",
    [("n-hat", (48, 44, 40, 36, 32, 28)), ("intervals", (90, 180, 720))],
)
def test_an_ablation_is_a_part_of_the_suite_and_a_script_of_its_own(done, tmp_path, option, values):
    line = ["--model", "tiny", "--list", "--output", tmp_path]
    whole = done("rerun", *line).splitlines()
    lines = done(f"ablation_{option.replace('-', '_')}", *line).splitlines()
    assert {line for line in lines if line[0] != "#"} <= {*whole}
    trained = [line for line in lines if "finetune" in line]
    for value in values:
        assert sum(f"--{option} {value} " in line for line in trained) == 1
    assert not any("time_cost" in line for line in lines)


def test_a_chain_that_needs_another_ones_checkpoint_comes_last_and_waits_for_it(
    call, done, tmp_path, monkeypatch
):
    suite = suite_of("tiny", tmp_path)
    *others, last = chains(suite)
    assert last.needs == suite.checkpoint(("clex", {}), 2, seed=0)
    assert not any(chain.needs for chain in others)
    assert any(last.needs in command for chain in others for command in chain.commands)
    command = ["rerun --model tiny --output", tmp_path, "--chain", len(others)]
    status, out, _ = call(*command)
    assert status == os.EX_TEMPFAIL and "needs" in out
    measured = []
    monkeypatch.setattr(rerun, "measure", lambda chain, *_, **__: measured.append(chain.name))
    Path(last.needs).mkdir(parents=True)
    done(*command)
    assert measured == [last.name]


@pytest.mark.parametrize("quick", [False, True])
@pytest.mark.parametrize("name", ["tiny", "smollm2", "llama2-13b", "own"])
def test_every_command_of_a_suite_is_one_that_its_script_takes(tmp_path, name, quick):
    """Each distinct set of options is parsed by the script itself."""
    suite = of_own(tmp_path) if name == "own" else suite_of(name, tmp_path)
    kinds = {}
    for module, *words in commands(replace(suite, quick=quick)):
        kinds[module, *(word for word in words if word.startswith("--"))] = words
    assert kinds
    for (module, *_), words in kinds.items():
        experiment(module).parser().parse_args(words)


def test_a_command_without_sizes_asks_what_the_committed_records_were_asked(done):
    out = done("perplexity --model tiny --factor 4 --method", rope.BASELINE)
    assert out.count("done already") == out.count("\n") == 1


def check_asked(monkeypatch, words, wanted):
    """These options are those with which the command of these words measures."""
    monkeypatch.setattr(sys, "argv", words)
    arguments = experiment(words[0]).read().arguments
    assert {key: getattr(arguments, key) for key in wanted} == wanted


LENGTHS = [512, 1024, 2048, 3072, 4096]


@pytest.mark.parametrize(
    "line, model, wanted",
    [
        # As in the suite of tiny, which has two keys and leaves the depths to the script.
        ("passkey", "tiny", {"lengths": LENGTHS, "keys": 2, "depths": 5, "factor": 2}),
        ("passkey --lengths 800 400", "tiny", {"lengths": [400, 800], "keys": 2, "depths": 5}),
        # What is stated holds, be it the script's own default.
        ("passkey --keys 3 --depths 4", "tiny", {"lengths": LENGTHS, "keys": 3, "depths": 4}),
        ("longbench_e", "tiny", {"margin": 128, "new_tokens": 64, "limit": None}),
        ("perplexity --tokens all", "tiny", {"tokens": None, "lengths": [1024, 2048, 4096]}),
        ("perplexity --lengths 512", "smollm2", {"lengths": [512], "stride": None}),
        ("perplexity --texts packaged:1", "smollm2", {"texts": ["packaged:1"]}),
        ("open_llm --limit all", "smollm2", {"limit": None, "shots": 5, "benchmarks": None}),
        (
            "passkey --keys 5 --factor 2",
            "mine",
            {"lengths": [64, 128, 192, 256, 320], "keys": 5, "depths": 3},
        ),
        (
            "perplexity --factor 3",
            "mine",
            {"lengths": [128, 384], "stride": 64, "tokens": 512, "texts": ["packaged:1"]},
        ),
    ],
)
def test_what_a_command_leaves_open_is_as_in_its_models_suite(
    monkeypatch, tmp_path, line, model, wanted
):
    if model == "mine":
        model = str(checkpoint(tmp_path / "mine"))
    name, *words = line.split()
    check_asked(monkeypatch, [records.program(name), "--model", model, *words], wanted)


def test_a_model_of_ones_own_in_a_folder_of_a_base_models_name_is_none(monkeypatch, tmp_path):
    """Neither by a command nor by its suite."""
    path = str(checkpoint(tmp_path / "tiny"))
    wanted = {"lengths": [128, 256], "stride": 64, "tokens": 384}
    check_asked(monkeypatch, [records.program("perplexity"), "--model", path], wanted)
    suite = replace(of_own(tmp_path, path), name="tiny")
    assert suite.stated is suites.find(suites.OWN)[0]
    assert commands(suite) == commands(of_own(tmp_path, path))


@pytest.mark.parametrize(
    "program, quick, wanted",
    [
        ("perplexity", False, {"lengths": [128, 256, 512], "stride": 64, "tokens": 640}),
        ("passkey", True, {"lengths": [128, 256, 384, 512, 640], "keys": 1, "depths": 1}),
    ],
)
def test_a_command_of_a_suite_asks_for_the_suites_sizes(
    tmp_path, monkeypatch, program, quick, wanted
):
    """One command holds for all factors of a model of one's own, and a script alone knows one."""
    path = str(checkpoint(tmp_path / "mine"))
    suite = replace(of_own(tmp_path, path), quick=quick)
    asking = [command for command in commands(suite) if command[0] == records.program(program)]
    for command in (asking[0], asking[-1]):  # of the first factor and the last
        check_asked(monkeypatch, command, wanted)


@pytest.mark.parametrize("method", ["dprope", "pi", "original"])
def test_a_method_of_the_suite_is_measured_as_the_suite_does(done, tmp_path, method):
    """Though results/ has no record of this model: by no fine-tune that the suite does not have."""
    command = f"rerun --model llama2-7b --output {tmp_path} --list"
    whole, some = (
        {line for line in done(each).splitlines() if line.startswith("python")}
        for each in (command, f"{command} --methods {method}")
    )
    assert some and some < whole


def test_only_the_chain_that_is_asked_for_is_listed(done, tmp_path):
    command = ["rerun --model tiny --list --output", tmp_path]
    out = done(*command, "--chain", 3)
    assert out.startswith("# 3 ")
    assert out.count("# ") == 1
    assert "python -m" in out
    assert out in done(*command)


@pytest.mark.parametrize(
    "script, programs",
    [
        ("rerun", [["tables"], ["figures"], ["report.pages"]]),
        ("ablation_n_hat", [["tables", "n_hat_open_llm", "n_hat_longbench_e"]]),
    ],
)
@pytest.mark.parametrize("given", [False, True])
def test_what_was_measured_is_rendered_of_several_models_in_a_folder_its_own_alone(
    done, tmp_path, monkeypatch, script, programs, given
):
    rendered = []

    def run(command, **_):
        rendered.append(command[2:])
        return SimpleNamespace(returncode=0)

    monkeypatch.setattr(rerun, "run", lambda *_: [])
    monkeypatch.setattr(rerun.subprocess, "run", run)
    place = ["--results", str(tmp_path / "results")]
    done(f"{script} --model tiny", "--output", tmp_path, *(place if given else []))
    of_model = ["--model", "tiny"] if given else []
    assert rendered == [[*program, *of_model, *place] for program in programs]


@pytest.mark.parametrize(
    "line, says",
    [
        ("--model smollm2 --texts empty", ".parquet"),
        ("--model smollm2 --texts parts:18", "parts:17"),
        ("--model smollm2 --benchmarks empty", "longbench_e"),
        ("--model tiny --corpus empty/none", "empty/none"),
        ("--model tiny --factor 2", "give --factor"),
        ("--model tiny --methods yarn2", "'yarn2'"),
        ("--model tiny --chain 999", "--list"),
        ("--model tuned", "fine-tuned"),
        ("--model other --results results", "another model of that name"),
        ("--model other --quick --results results", "--quick"),
        ("--model other --results x-quick/results", "--quick"),
    ],
)
def test_bad_input_is_refused_before_any_work(refusal, tmp_path, monkeypatch, line, says):
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "empty").mkdir()
    checkpoint(tmp_path / "other")
    fine_tuned(checkpoint(tmp_path / "tuned"))
    measured = {
        "title": "other",
        "model": "other",
        "geometry": {"context_length": 256},
        "sha256": {"another": "hash"},
        "factors": [2],
        "n_hat": {},
        "ablated": [],
    }
    files.write_json(tmp_path / "results/other" / records.MODEL, measured)
    assert says in refusal(f"rerun {line}", "--output", tmp_path / "output")
    assert not (tmp_path / "output").exists()


def test_a_listed_command_can_be_given_to_a_shell(done, tmp_path):
    book = tmp_path / "Dragon's Blood.txt"
    book.write_text("text")
    listed = done("rerun --model smollm2 --list --texts", tmp_path).splitlines()
    scored = [shlex.split(line) for line in listed if "experiments.perplexity" in line]
    assert scored
    assert all(str(book) in words for words in scored)


@pytest.mark.parametrize("more, wanted", [([], "plays:3"), (["--quick"], "plays:1")])
def test_texts_of_packages_are_handed_on_by_name(done, more, wanted):
    listed = done("rerun --model smollm2 --list --texts plays:3", *more).splitlines()
    scored = [line for line in listed if "experiments.perplexity" in line]
    assert scored
    assert all(f" --texts {wanted} " in line for line in scored)


def test_a_model_of_ones_own_is_measured_and_what_cannot_be_is_said(done, tmp_path, monkeypatch):
    """On a random Llama of L = 256, with relative paths; the chain runs in this process."""
    checkpoint(tmp_path / "mine", max_position_embeddings=256)
    letters = np.random.default_rng(0).choice(list("abcdefgh "), 3000)
    (tmp_path / "texts").mkdir()
    (tmp_path / "texts/book.txt").write_text("".join(letters))
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "out-quick/results/mine"

    def run(chains, *_):
        (chain,) = chains.values()
        return rerun.measure(chain, lenient=True)

    monkeypatch.setattr(rerun, "run", run)
    monkeypatch.setattr(rerun, "_render", lambda *_: None)
    line = "rerun --model mine --factor 2 --texts texts --output out-quick --quick --methods"
    out = done(line, rope.TIME_REFERENCE)
    for length in (128, 256):  # the other lengths are measured
        assert f"skipped passkey {length}: " in out
    assert out.count("skipped passkey") == 2
    assert str(folder.parent) in out
    facts = read(folder / records.MODEL)
    assert facts["geometry"] == {"head_dim": 16, "base": 10000.0, "context_length": 256}
    assert facts["factors"] == [2]
    name = f"{rope.TIME_REFERENCE}_s=2.json"
    assert read(folder / "passkey" / name)["run"]["lengths"] == [384, 512, 640]
    assert read(folder / "perplexity" / name)["run"]["data"].keys() == {"book"}
