"""The method that suits a model: ranked as a plain loop and SciPy rank, and given as a command that
works."""

import dataclasses
import re
import shlex

import numpy as np
import pyarrow
import pyarrow.parquet
import pytest
from scipy import stats
from transformers import AutoModelForCausalLM

from core import rope
from core.extend import extend
from core.geometry import RopeGeometry
from experiments.best import ranked, verdict
from tests.models import byte_tokenizer, checkpoint, token_losses

L = 64
LONGER = 128


@pytest.fixture(scope="module")
def inputs(tmp_path_factory):
    """A folder with a checkpoint, `model`, and with texts, `0.txt` to `2.txt`."""
    root = tmp_path_factory.mktemp("best")
    checkpoint(root / "model", max_position_embeddings=L)
    letters = np.random.default_rng(0).choice(list("abcdefgh "), (3, 200))
    for number, line in enumerate(letters):
        (root / f"{number}.txt").write_text("".join(line))
    return root


def test_every_method_is_ranked_by_its_loss_and_the_command_extends_the_model(
    call, inputs, tmp_path
):
    books = [inputs / f"{number}.txt" for number in range(3)]
    status, out, err = call("best", "--model", inputs / "model", "--no-bos", "--texts", *books)
    assert status == 0, err
    rows = re.findall(r"^(\S+)(?: --n-hat (\d+))? +(\d\.\d{4}) +(\d\.\d{4}) ", out, re.MULTILINE)
    ready = {name for name, method in rope.METHODS.items() if method.ready}
    geometry = RopeGeometry(16, 10000.0, L)
    settings = [(name, {}) for name in ready] + [(rope.PROPOSED, {"n_hat": 10})]  # 5/8 of 16
    different = {
        (scaled.inv_freq.tobytes(), scaled.attention_factor)
        for scaled in (rope.scale(geometry, name, 2, **options) for name, options in settings)
    }
    assert len(rows) == len(different) == len(settings) - err.count("makes the same model as")
    assert {method for method, *_ in rows} <= ready
    assert [beyond for *_, beyond in rows] == sorted(beyond for *_, beyond in rows)
    for method, n_hat, *printed in rows[:2] + rows[-2:]:
        losses = plain(inputs / "model", books, method, **({"n_hat": int(n_hat)} if n_hat else {}))
        assert [float(loss) for loss in printed] == pytest.approx(losses, abs=1e-4)
    command = shlex.split(out.splitlines()[-1].replace("DIR", str(tmp_path / "extended")))
    assert call(*command[2:])[0] == 0
    assert (tmp_path / "extended" / "config.json").is_file()


def plain(model, books, method, **options):
    """The mean losses within L and beyond it."""
    extended = extend(AutoModelForCausalLM.from_pretrained(model), method, 2, **options)
    read = [byte_tokenizer().encode(file.read_text())[: LONGER + 1] for file in books]
    losses = np.array([token_losses(extended, ids) for ids in read])
    return losses[:, :L].mean(), losses[:, L:].mean()


def test_a_text_that_is_short_or_blank_is_left_out_and_named(done, inputs, tmp_path):
    (tmp_path / "short.txt").write_text("abc")
    rows = pyarrow.table({"text": ["", None, "  \n"], "title": ["blank", "none", "spaces"]})
    pyarrow.parquet.write_table(rows, tmp_path / "rows.parquet")
    line = ["best --method pi dprope --model", inputs / "model", "--texts", inputs / "0.txt"]
    out = done(*line, tmp_path / "short.txt", tmp_path / "rows.parquet")
    named = "'short' (3), 'blank' (0), 'none' (0), 'spaces' (0)"
    assert f"fewer than {LONGER + 1} tokens: {named}" in out
    assert out.partition("\n")[2] == done(*line)


def test_what_is_left_out_is_named_as_it_is_typed(call, inputs, monkeypatch):
    dprope = rope.METHODS["dprope"]
    alike = dataclasses.replace(dprope, function=rope.METHODS["pi"].function)
    monkeypatch.setattr(rope, "scale", lambda geometry, method, s, **_: alike.function(geometry, s))
    line = ["best --method dprope --model", inputs / "model", "--texts", inputs / "0.txt"]
    err = call(*line)[2]
    assert "note: dprope --n-hat 10 is left out: it makes the same model as dprope\n" in err
    assert "1 method," in err


def rows_of(losses):
    return [
        {"setting": (name, {}), "within": [0.0], "beyond": beyond}
        for name, beyond in losses.items()
    ]


def test_methods_are_level_if_the_interval_of_their_difference_holds_zero():
    losses = {"a": [1.0, 1.1, 0.9, 1.3, 0.8], "b": [1.0] * 5, "c": [2.0, 2.1, 2.0, 2.1, 2.0]}
    rows = ranked(rows_of(losses))
    assert [(row["setting"][0], row["level"]) for row in rows] == [
        ("b", True),
        ("a", True),
        ("c", False),
    ]
    for row in rows[1:]:
        low, high = stats.ttest_1samp(
            np.subtract(row["beyond"], losses["b"]), 0
        ).confidence_interval()
        assert (row["gap"] - row["half"], row["gap"] + row["half"]) == pytest.approx((low, high))
    assert verdict(rows).startswith("A tie") and "level with it is a." in verdict(rows)
    few = ranked(rows_of({"a": [2.0], "b": [1.0], "c": [1.00001]}))
    assert [row["level"] for row in few] == [True, True, False] and "chance" in verdict(few)
