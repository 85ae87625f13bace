"""The command that extends: it shows its choices, copies a checkpoint unread, and loads only what
is none."""

import json
import re

import pytest

from core.disturbance import strategy_disturbance
from core.rope import RopeGeometry, scale
from experiments.kit import loading
from experiments.kit.loading import Source
from experiments.kit.model import Model
from tests.models import byte_tokenizer, checkpoint, random_model


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    return checkpoint(tmp_path_factory.mktemp("extend") / "model", dtype="bfloat16")


@pytest.fixture
def loads_nothing(monkeypatch):
    monkeypatch.setattr(Model, "load", lambda *_: pytest.fail("weights were loaded"))


def test_it_prints_every_choice_and_exports(call, model, tmp_path, loads_nothing):
    status, out, _ = call(
        "extend --method dprope --model",
        model,
        "--factor",
        2,
        "--n-hat",
        6,
        "--output",
        tmp_path / "out",
    )
    assert status == 0
    geometry = RopeGeometry(16, 10000.0, 128)
    interpolation, extrapolation = strategy_disturbance(geometry.inv_freq, 128, 2)
    chosen = scale(geometry, "dprope", 2, n_hat=6).interpolated
    lines = out.splitlines()
    begin = lines.index("DPRoPE (n̂ = 6), s = 2") + 2
    rows = [line.split() for line in lines[begin : begin + 8]]
    for i, (pair, wavelength, d_i, d_e, choice) in enumerate(rows):
        assert int(pair) == i
        assert float(wavelength.replace(",", "")) == pytest.approx(geometry.wavelength[i], abs=0.05)
        assert float(d_i) == pytest.approx(1e3 * interpolation[i], abs=5e-5)
        assert float(d_e) == pytest.approx(1e3 * extrapolation[i], abs=5e-5)
        assert choice == ("interpolate" if chosen[i] else "keep")
    average = 1e3 * (interpolation[chosen].sum() + extrapolation[~chosen].sum()) / 8
    assert f"10^-3 nat): {average:.2f} (" in out
    # first what was written; how engines do without it, only where nothing was
    assert lines[0].startswith(f"written: {tmp_path / 'out'}") and "vllm serve" not in out
    _, printed, _ = call("extend --method dprope --n-hat 6 --model", model)
    assert printed.splitlines()[0] == "DPRoPE (n̂ = 6), s = 2"
    assert f"vllm serve {model} --hf-overrides" in printed and "written" not in printed
    assert (
        json.loads((tmp_path / "out" / "config.json").read_text())["max_position_embeddings"] == 256
    )


def test_what_is_no_checkpoint_is_loaded_and_exported(call, model, tmp_path, monkeypatch):
    """As a GGUF file in a package is."""
    packaged = Source("model", str(model), "model.gguf")
    monkeypatch.setattr("experiments.kit.loading.find", lambda name: packaged)
    monkeypatch.setattr(Model, "config", random_model().config)
    monkeypatch.setattr(Model, "load", lambda self: random_model())
    monkeypatch.setattr(loading, "stock_tokenizer", lambda source: byte_tokenizer())
    status, _, err = call("extend --method dprope --model", model, "--output", tmp_path / "out")
    assert status == 0 and (tmp_path / "out" / "tokenizer.json").exists(), err
    config = json.loads((tmp_path / "out" / "config.json").read_text())
    assert config["dtype"] == "float32" and config["rope_scaling"]["rope_type"] == "longrope"


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("{model} --method pi --output {model}/out", ""),
        ("{model} --method pi --output {model}", "exists already; give a new path"),
        ("{model} --method clex --output {out}", "finetune --model MODEL --method clex"),
    ],
)
def test_options_that_do_not_fit_are_one_sentence_and_nothing_is_written(
    call, model, tmp_path, line, says
):
    status, _, err = call(
        "extend", "--model", *line.format(model=model, out=tmp_path / "out").split()
    )
    assert status == 2 and err.startswith("error: ") and says in err and err.count("\n") == 1, err
    assert not list(tmp_path.iterdir()) and not (model / "out").exists()


def test_a_length_that_yarn_reaches_is_said(call, tmp_path, loads_nothing):
    yarn = {"rope_type": "yarn", "rope_theta": 1e4, "factor": 4.0}
    yarn |= {"original_max_position_embeddings": 128}
    model = checkpoint(tmp_path / "model", max_position_embeddings=160, rope_parameters=yarn)
    status, out, _ = call("extend", "--model", model, "--method", "pi")
    assert status == 0 and {"yarn", "512"} <= set(
        re.findall(r"\w+", re.search("^note: .*", out, re.MULTILINE)[0])
    )
