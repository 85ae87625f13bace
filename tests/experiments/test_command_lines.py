"""The command lines as a user meets them: what they print, what they refuse, what they leave behind."""

import dataclasses
import json
import subprocess
import sys

import pytest
import torch
from transformers import AutoModelForCausalLM

from core.disturbance import strategy_disturbance
from core.errors import InputError
from core.rope import RopeGeometry, scale
from experiments import base_models, finetune
from experiments.kit import records
from experiments.kit.records import ROOT
from tests.models import byte_tokenizer, checkpoint, random_model


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    return checkpoint(tmp_path_factory.mktemp("model") / "llama")


def test_extend_prints_every_decision_and_exports(call, model, tmp_path):
    status, out, _ = call("extend", "--model", model, "--factor", 2, "--n-hat", 6, "--output", tmp_path / "out")
    assert status == 0
    geometry = RopeGeometry(16, 10000.0, 128)
    interpolation, extrapolation = strategy_disturbance(geometry.inv_freq, 128, 2)
    chosen = scale(geometry, "dprope", 2, n_hat=6).interpolated
    rows = [line.split() for line in out.splitlines()[1:9]]
    for i, (pair, wavelength, d_i, d_e, choice) in enumerate(rows):
        assert int(pair) == i
        assert float(wavelength.replace(",", "")) == pytest.approx(geometry.wavelength[i], abs=0.05)
        assert float(d_i) == pytest.approx(1e3 * interpolation[i], abs=5e-5)
        assert float(d_e) == pytest.approx(1e3 * extrapolation[i], abs=5e-5)
        assert choice == ("interpolate" if chosen[i] else "keep")
    assert "128 → 256 tokens (s = 2), 6 of 16 dimensions interpolated (n̂ = 6)" in out
    average = 1e3 * (interpolation[chosen].sum() + extrapolation[~chosen].sum()) / 8
    assert f"10^-3 nat): {average:.2f} (" in out
    written = json.loads((tmp_path / "out" / "config.json").read_text())
    assert written["max_position_embeddings"] == 256
    assert AutoModelForCausalLM.from_pretrained(tmp_path / "out").dtype == torch.float32


def test_extend_without_output_reads_no_weights_and_writes_nothing(call, model, tmp_path, monkeypatch):
    monkeypatch.setattr("experiments.kit.base_model.BaseModel.load", lambda *_: pytest.fail("weights were read"))
    monkeypatch.chdir(tmp_path)
    status, out, _ = call("extend", "--model", model, "--convention", "equation")
    assert status == 0 and "equation convention" in out
    status, out, _ = call("extend", "--model", model, "--method", "yarn")
    assert status == 0 and "divide by" in out
    assert list(tmp_path.iterdir()) == []


def test_generate_continues_a_prompt(call, model, tmp_path):
    (tmp_path / "prompt.txt").write_text("Call me Ishmael.")
    status, out, err = call("generate", "--model", model, "--prompt-file", tmp_path / "prompt.txt", "--tokens", 5)
    tokenizer, reference = byte_tokenizer(), random_model()
    tokens = tokenizer("Call me Ishmael.", add_special_tokens=False, return_tensors="pt").input_ids
    for _ in range(5):  # greedy decoding by hand, without a cache
        tokens = torch.cat([tokens, reference(tokens).logits[:, -1:].argmax(-1)], dim=1)
        if tokens[0, -1] == tokenizer.eos_token_id:
            break
    assert status == 0 and "note" not in err
    assert out.strip() == tokenizer.decode(tokens[0], skip_special_tokens=True).strip()


def test_generate_extended_on_the_fly_says_when_the_context_is_exceeded(call, model):
    status, _, err = call("generate", "--model", model, "--prompt", "x" * 200, "--tokens", 1)
    assert status == 0 and "201 tokens reach past the model's context of 128" in err
    status, _, err = call("generate", "--model", model, "--method", "pi", "--prompt", "x" * 200, "--tokens", 1)
    assert status == 0 and "note" not in err


BAD = {
    "an option of another method": (["--model", "{model}", "--method", "pi", "--n-hat", "8"], "no option 'n_hat'"),
    "clex untrained": (["--model", "{model}", "--method", "clex"], "finetune --model MODEL --method clex"),
    "clex weights that are not there": (
        ["--model", "{model}", "--method", "clex", "--weights", "{empty}"],
        "no CLEX weights at",
    ),
    "a directory that exists": (["--model", "{model}", "--output", "{model}"], "exists already; give a new path"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_input_is_one_sentence_status_2_and_nothing_written(call, model, tmp_path, monkeypatch, case):
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    (tmp_path / "empty").mkdir()
    before = sorted(tmp_path.rglob("*"))
    arguments, says = BAD[case]
    arguments = [argument.format(model=model, empty=tmp_path / "empty") for argument in arguments]
    if "--output" not in arguments:
        arguments += ["--output", str(tmp_path / "out")]
    status, _, err = call("extend", *arguments)
    assert status == 2, err
    assert err.startswith("error: ") and says in err and err.count("\n") == 1
    assert sorted(tmp_path.rglob("*")) == before


def test_a_real_process_exits_with_2():
    command = [sys.executable, "-m", "experiments.rerun", "--model", "smoke", "--list"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("error: ") and "has no suite" in done.stderr and done.stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("given", "options"),
    [
        ([], {"n_hat": 6}),
        (["--factor", 4], {}),  # no n̂ is set for it
        (["--intervals", 90], {"intervals": 90, "n_hat": 6}),
        (["--n-hat", 8], {"n_hat": 8}),
        (["--threshold", 0], {}),
        (["--threshold", 0.1], {"threshold": 0.1}),
        (["--method", "pi"], {}),
    ],
)
def test_a_fine_tune_takes_n_hat_where_its_model_trains_that(call, monkeypatch, tmp_path, given, options):
    seen = []

    class Seen:
        def __init__(self, output, settings):
            seen.append((output.name, settings["options"]))
            raise InputError("seen.")

    preset = dataclasses.replace(base_models.get("smoke"), n_hat={2: 6})
    monkeypatch.setattr(finetune, "Run", Seen)
    stated = {name: value for name, value in options.items() if value in given}
    for trains_n_hat, expected in ((True, options), (False, stated)):
        monkeypatch.setitem(base_models.MODELS, "smoke", dataclasses.replace(preset, trains_n_hat=trains_n_hat))
        status, _, err = call("finetune", "--model", "smoke", "--results", tmp_path, *given)
        assert (status, err) == (2, "error: seen.\n")
        name, found = seen.pop()
        method = "pi" if "pi" in given else "dprope"
        assert found == expected and name == records.run_name(method, 4 if 4 in given else 2, expected, seed=0)
