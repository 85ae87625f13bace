"""Suites, how a rerun measures them, and a user's own model."""

import contextlib
import importlib
import io
import json
import os
import shlex
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from core import files, rope
from core.rope import RopeGeometry
from experiments import ablation_n_hat, base_models, rerun, suites
from experiments.base_models.model import Model
from experiments.kit import records
from experiments.kit.records import ROOT
from experiments.suites.suite import Suite, chains_of
from tests.models import checkpoint

KNOWN = ("tiny", "smollm2", "llama2-7b", "llama2-13b")


def suite_of(name, tmp_path, **options):
    return Suite(name, base_models.MODELS[name], tmp_path, tmp_path / "results", **options)


def of_own(tmp_path, **options):
    model = Model("mine", "mine", RopeGeometry(64, 1e4, 1024), factors=(2,))
    return Suite("mine", model, tmp_path, tmp_path / "results", own_checkpoint="/mine", **options)


def chains(suite, part=None):
    return chains_of(suites.find(suites.OWN if suite.own_checkpoint else suite.name), suite, part)


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


def test_an_ablation_over_n_hat_has_the_papers_values_as_shares_of_the_head_dimension():
    of_13b = [
        options["n_hat"] for _, options in ablation_n_hat.n_hats(base_models.MODELS["llama2-13b"])
    ]
    assert of_13b == [96, 88, 80, 72, 64, 56]  # Table 4's
    for name in KNOWN:
        model = base_models.MODELS[name]
        assert [options["n_hat"] for _, options in ablation_n_hat.n_hats(model)] == [
            n_hat * model.geometry.head_dim / 128 for n_hat in of_13b
        ]


def test_a_chain_that_needs_another_ones_checkpoint_comes_last_and_waits_for_it(
    call, tmp_path, monkeypatch
):
    suite = suite_of("tiny", tmp_path)
    *others, last = chains(suite)
    assert last.needs == suite.checkpoint(("clex", {}), 2, seed=0) and not any(
        chain.needs for chain in others
    )
    assert any(
        last.needs in command for chain in others for command in chain.commands
    )  # one of them writes it
    command = ["rerun", "--model", "tiny", "--output", tmp_path, "--chain"]
    status, out, _ = call(*command, len(others))
    assert status == os.EX_TEMPFAIL and "needs" in out
    measured = []
    monkeypatch.setattr(rerun, "measure", lambda chain, *_, **__: measured.append(chain.name))
    Path(last.needs).mkdir(parents=True)
    assert call(*command, len(others))[0] == 0 and measured == [last.name]


@pytest.mark.parametrize("name", ["tiny", "smollm2", "llama2-13b", "own"])
def test_every_command_of_a_suite_is_one_that_its_script_takes(tmp_path, name, monkeypatch):
    """Each distinct set of options is parsed by the script itself, which stops before it
    measures."""
    parsed = []

    class Stop(Exception):
        pass

    def stop(parser, *_, **__):
        parsed.append(parser.parse_known_args(sys.argv[1:])[1])
        raise Stop

    kinds = {}
    for quick in (False, True):
        suite = (
            of_own(tmp_path, quick=quick)
            if name == "own"
            else suite_of(name, tmp_path, quick=quick)
        )
        for module, *words in (command for chain in chains(suite) for command in chain.commands):
            kinds.setdefault((module, *(word for word in words if word.startswith("--"))), words)
    for (module, *_), words in kinds.items():
        monkeypatch.setattr(sys, "argv", [module, *words])
        with monkeypatch.context() as patched, pytest.raises(Stop):
            patched.setattr("argparse.ArgumentParser.parse_args", stop)
            importlib.import_module(module).main()
    assert parsed and not any(parsed)


def test_a_command_without_sizes_asks_what_the_committed_records_were_asked(call):
    status, out, err = call(
        "perplexity", "--model", "tiny", "--method", rope.BASELINE, "--factor", 4
    )
    assert (status, out.count("done already"), out.count("\n")) == (0, 1, 1), err


@pytest.mark.parametrize(
    ("experiment", "model", "wanted"),
    [
        ("longbench_e", "tiny", {"margin": 128, "new_tokens": 64, "limit": None}),
        ("perplexity --tokens all", "tiny", {"tokens": None, "lengths": [1024, 2048, 4096]}),
        ("perplexity --lengths 512", "smollm2", {"lengths": [512], "stride": None}),
        ("perplexity --packaged 1", "smollm2", {"packaged": 1, "parts": None}),
        ("open_llm --limit all", "smollm2", {"limit": None, "shots": 5, "benchmarks": None}),
        (
            "passkey --keys 5 --factor 2",
            "mine",
            {"lengths": [64, 128, 192, 256, 320], "keys": 5, "depths": 3},
        ),
        (
            "perplexity --factor 3",
            "mine",
            {"lengths": [128, 384], "stride": 64, "tokens": 512, "packaged": 1},
        ),
    ],
)
def test_what_a_command_leaves_open_is_as_in_its_models_suite(
    monkeypatch, tmp_path, experiment, model, wanted
):
    name, *options = experiment.split()
    model = checkpoint(tmp_path / "mine") if model == "mine" else model
    monkeypatch.setattr(sys, "argv", [name, "--model", str(model), *options])
    arguments, _ = importlib.import_module(records.program(name)).main.__self__.read_command_line()
    assert {key: getattr(arguments, key) for key in wanted} == wanted


@pytest.mark.parametrize(
    ("factors", "quick", "wanted"),
    [
        ((2,), False, {"lengths": [128, 256], "stride": 64, "tokens": 384, "packaged": 1}),
        ((2, 4), False, {"lengths": [128, 256, 512], "stride": 64, "tokens": 640}),
        ((2,), True, {"lengths": [64, 128, 192, 256, 320], "keys": 1, "depths": 1}),
        ((2, 4), True, {"lengths": [128, 256, 384, 512, 640], "keys": 1, "depths": 1}),
    ],
)
def test_a_command_of_a_suite_asks_for_the_suites_sizes(
    tmp_path, monkeypatch, factors, quick, wanted
):
    """Of a model of one's own with L = 128; one command holds for all factors, and a script alone
    knows one."""
    path = str(checkpoint(tmp_path / "mine"))
    model = Model("mine", path, RopeGeometry(16, 1e4, 128), factors=factors)
    suite = Suite("mine", model, tmp_path, tmp_path, own_checkpoint=path, quick=quick)
    program = "experiments.passkey" if "keys" in wanted else "experiments.perplexity"
    commands = [command for chain in chains(suite) for command in chain.commands]
    of_program = [command for command in commands if command[0] == program]
    for command in (of_program[0], of_program[-1]):  # of the first factor and the last
        monkeypatch.setattr(sys, "argv", command)
        arguments, _ = importlib.import_module(program).main.__self__.read_command_line()
        assert {key: getattr(arguments, key) for key in wanted} == wanted


def test_only_what_is_asked_for_is_listed(call, tmp_path):
    command = ["rerun", "--model", "tiny", "--list", "--output", tmp_path]
    every = call(*command)[1]
    status, out, _ = call(*command, "--chain", 3)
    assert status == 0 and out in every
    assert out.startswith("# 3 ") and out.count("# ") == 1 and "python -m" in out


@pytest.mark.parametrize("results", [None, "results"])
def test_a_rerun_into_a_folder_of_several_models_renders_its_own_alone(results):
    given = [f"RESULTS={results}"] if results else []
    make = ["make", "--dry-run", "rerun", "MODEL=tiny", *given]
    said = subprocess.run(make, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    (rendering,) = [line for line in said.splitlines() if "for what in" in line]
    assert ("--model 'tiny'" in rendering) == bool(results)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--model", "smollm2", "--texts", "{empty}"], "no text file in"),
        (["--model", "smollm2", "--benchmarks", "{empty}"], "no folder open_llm or longbench_e"),
        (
            ["--model", "tiny", "--corpus", "{empty}/none"],
            "--corpus: '{empty}/none' is not a directory",
        ),
        (["--model", "tiny", "--factor", "2"], "give --factor for a model of your own only"),
        (["--model", "tiny", "--methods", "yarn2"], "unknown method 'yarn2'"),
        (["--model", "tiny", "--chain", "999"], "--list numbers them from 0"),
    ],
)
def test_bad_input_is_refused_before_any_work(call, tmp_path, monkeypatch, arguments, sentence):
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    output = tmp_path / "output"
    (tmp_path / "empty").mkdir()
    words = [word.format(empty=tmp_path / "empty") for word in arguments]
    status, out, err = call("rerun", *words, "--output", output)
    assert (
        (status, out) == (2, "")
        and sentence.format(empty=tmp_path / "empty") in err
        and err.count("\n") == 1
    )
    assert not output.exists()


def test_a_listed_command_can_be_given_to_a_shell(call, tmp_path):
    book = tmp_path / "Dragon's Blood.txt"
    book.write_text("text")
    listed = ["rerun", "--model", "smollm2", "--list", "--texts", tmp_path]
    scored = [line for line in call(*listed)[1].splitlines() if "experiments.perplexity" in line]
    assert scored and all(str(book) in shlex.split(line) for line in scored)


def test_a_model_of_ones_own_is_measured_and_what_cannot_be_is_said(call, tmp_path, monkeypatch):
    """On a random Llama of L = 256, with relative paths; the chain runs in this process."""
    checkpoint(tmp_path / "mine", max_position_embeddings=256)
    letters = np.random.default_rng(0).choice(list("abcdefgh "), 3000)
    (tmp_path / "texts").mkdir()
    (tmp_path / "texts" / "book.txt").write_text("".join(letters))
    monkeypatch.chdir(tmp_path)
    command = ["rerun", "--model", "mine", "--factor", 2, "--texts", "texts", "--output", "out"]
    command += ["--methods", rope.TIME_REFERENCE, "--quick"]

    def run(chains, command, logs, workers):
        commands = []
        folder = tmp_path / "out" / "results" / "mine"
        with contextlib.redirect_stdout(io.StringIO()) as said:
            for chain in chains.values():
                commands += rerun.measure(chain, folder, lenient=True)
        return [
            line for line in said.getvalue().splitlines() if line.startswith("skipped")
        ] + commands

    monkeypatch.setattr(rerun, "run", run)
    monkeypatch.delenv("MAKELEVEL", raising=False)
    status, out, err = call(*command)
    assert status == 0, err
    for length in (128, 256):  # the other lengths are measured
        assert f"skipped passkey {length}: a passkey prompt does not fit in {length} tokens." in out
    assert out.count("skipped passkey") == 2
    assert "MODEL=mine" in out and str(tmp_path / "out" / "results") in out
    folder = tmp_path / "out" / "results" / "mine"
    facts = json.loads((folder / "model.json").read_text())
    assert facts["geometry"] == {"head_dim": 16, "base": 10000.0, "context_length": 256} and facts[
        "factors"
    ] == [2]
    name = f"{rope.TIME_REFERENCE}_s=2.json"
    assert json.loads((folder / "passkey" / name).read_text())["run"]["lengths"] == [384, 512, 640]
    assert json.loads((folder / "perplexity" / name).read_text())["run"]["data"].keys() == {"book"}


def test_another_model_under_the_name_of_one_that_was_measured_is_refused(call, tmp_path):
    second = checkpoint(tmp_path / "b" / "mine")
    (tmp_path / "b" / "mine" / "training.json").write_text("{}")
    results = ["--results", tmp_path / "results", "--output", tmp_path / "out"]
    status, out, err = call("rerun", "--model", second, *results)
    assert (
        (status, out) == (2, "")
        and "fine-tuned for a longer context already" in err
        and err.count("\n") == 1
    )
    (tmp_path / "b" / "mine" / "training.json").unlink()
    facts = {
        "title": "mine",
        "model": "mine",
        "geometry": {"context_length": 256},
        "sha256": {"model.safetensors": "another's"},
        "factors": [2],
        "n_hat": {},
        "ablated": [],
    }
    files.write_json(tmp_path / "results/mine/model.json", facts)
    status, out, err = call("rerun", "--model", second, *results)
    assert (status, out) == (2, "") and "another model of that name" in err and err.count("\n") == 1
    assert not (tmp_path / "out").exists()
