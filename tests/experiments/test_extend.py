"""The command that extends: it shows its choices, copies a checkpoint unread, and loads only what
is none."""

import re

import numpy as np
import pytest

from core.disturbance import strategy_disturbance
from core.rope import RopeGeometry, scale
from experiments.kit import loading
from experiments.kit.loading import Source
from experiments.kit.model import Model
from tests.files import read
from tests.models import byte_tokenizer, checkpoint, random_model


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    return checkpoint(tmp_path_factory.mktemp("extend") / "model", dtype="bfloat16")


def test_it_prints_every_choice_and_exports(done, model, tmp_path, loads_nothing):
    line = "extend --method dprope --n-hat 6 --model"
    out = done(line, model, "--factor", 2, "--output", tmp_path / "out")
    geometry = RopeGeometry(16, 10000.0, 128)
    moved = strategy_disturbance(geometry.inv_freq, 128, 2)
    chosen = scale(geometry, "dprope", 2, n_hat=6).interpolated
    lines = out.splitlines()
    begin = lines.index("DPRoPE (n̂ = 6), s = 2") + 2
    *printed, choices = zip(*(line.split() for line in lines[begin : begin + 8]))
    expected = [np.arange(8), geometry.wavelength, *(1e3 * each for each in moved)]
    for column, values, digit in zip(printed, expected, (0, 0.05, 5e-5, 5e-5), strict=True):
        assert [float(text.replace(",", "")) for text in column] == pytest.approx(values, abs=digit)
    assert choices == tuple("interpolate" if each else "keep" for each in chosen)
    average = 1e3 * np.where(chosen, *moved).mean()
    assert f"10^-3 nat): {average:.2f} (" in out
    # first what was written; how engines do without it, only where nothing was
    assert lines[0].startswith(f"written: {tmp_path / 'out'}") and "vllm serve" not in out
    printed = done(line, model)
    assert printed.splitlines()[0] == "DPRoPE (n̂ = 6), s = 2"
    assert f"vllm serve {model} --hf-overrides" in printed and "written" not in printed
    assert read(tmp_path / "out/config.json")["max_position_embeddings"] == 256


def test_what_is_no_checkpoint_is_loaded_and_exported(done, model, tmp_path, monkeypatch):
    """As a GGUF file in a package is."""
    packaged = Source("model", str(model), "model.gguf")
    monkeypatch.setattr("experiments.kit.loading.find", lambda name: packaged)
    monkeypatch.setattr(Model, "config", random_model().config)
    monkeypatch.setattr(Model, "load", lambda self: random_model())
    monkeypatch.setattr(loading, "stock_tokenizer", lambda source: byte_tokenizer())
    done("extend --method dprope --model", model, "--output", tmp_path / "out")
    assert (tmp_path / "out/tokenizer.json").exists()
    config = read(tmp_path / "out/config.json")
    assert config["dtype"] == "float32" and config["rope_scaling"]["rope_type"] == "longrope"


@pytest.mark.parametrize(
    "line, says",
    [
        ("{model} --method pi --output {model}/out", ""),
        ("{model} --method pi --output {model}", "exists already; give a new path"),
        ("{model} --method clex --output {out}", "finetune --model MODEL --method clex"),
    ],
)
def test_options_that_do_not_fit_are_one_sentence_and_nothing_is_written(
    refusal, model, tmp_path, line, says
):
    line = line.format(model=model, out=tmp_path / "out")
    assert says in refusal(f"extend --model {line}")
    assert not list(tmp_path.iterdir()) and not (model / "out").exists()


def test_a_length_that_yarn_reaches_is_said(done, tmp_path, loads_nothing):
    yarn = {"rope_type": "yarn", "rope_theta": 1e4, "factor": 4.0}
    yarn |= {"original_max_position_embeddings": 128}
    model = checkpoint(tmp_path / "model", max_position_embeddings=160, rope_parameters=yarn)
    out = done("extend --method pi --model", model)
    note = re.search("^note: .*", out, re.MULTILINE)[0]
    assert {"yarn", "512"} <= {*re.findall(r"\w+", note)}
