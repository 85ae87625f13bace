"""Whether to extend a model, and by which method: measured as a plain loop measures it, and given
as a command that works."""

import copy
import dataclasses
import functools
import json
import re
import shlex
import sys
from types import SimpleNamespace

import numpy as np
import pandas
import pyarrow
import pyarrow.parquet
import pytest
import torch
import transformers
from transformers import AutoModelForCausalLM

from core import rope
from core.errors import InputError, NonFiniteError
from core.extend import extend
from core.geometry import RopeGeometry
from eval.beyond import needles
from experiments.beyond import best
from experiments.kit import texts
from experiments.kit.beyond import comparison as comparisons
from tests.models import byte_tokenizer, checkpoint, token_losses

L = 64  # too short for keys
LONGER = 128
HAYSTACK = 768  # long enough for two


def text(seed, count):
    return "".join(np.random.default_rng(seed).choice(list("abcdefgh "), count))


@pytest.fixture(scope="module")
def inputs(tmp_path_factory):
    """A folder with two checkpoints, `model` and `longer`, and with texts, `0.txt` to `4.txt`."""
    root = tmp_path_factory.mktemp("best")
    checkpoint(root / "model", max_position_embeddings=L)
    checkpoint(root / "longer", max_position_embeddings=HAYSTACK)
    for number in range(5):
        (root / f"{number}.txt").write_text(text(number, 1600))
    return root


def books(inputs, count):
    return [inputs / f"{number}.txt" for number in range(count)]


def test_every_method_is_ranked_by_its_loss_and_the_command_extends_the_model(
    call, inputs, tmp_path
):
    given = books(inputs, 3)
    status, out, err = call("best", "--model", inputs / "model", "--no-bos", "--texts", *given)
    assert status == 0, err
    rows = re.findall(r"^(\S+)(?: --n-hat (\d+))? +(\d\.\d{4}) +(\d\.\d{4})", out, re.MULTILINE)
    ready = {name for name, method in rope.METHODS.items() if method.ready} - {rope.ORIGINAL}
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
        losses = plain(inputs / "model", given, method, **({"n_hat": int(n_hat)} if n_hat else {}))
        assert [float(loss) for loss in printed] == pytest.approx(losses, abs=1e-4)
    command = shlex.split(out.splitlines()[-1].replace("DIR", str(tmp_path / "extended")))
    assert call(*command[2:])[0] == 0
    assert (tmp_path / "extended" / "config.json").is_file()


def plain(model, files, method, **options):
    """The mean losses within L and beyond it."""
    extended = extend(AutoModelForCausalLM.from_pretrained(model), method, 2, **options)
    read = [byte_tokenizer().encode(file.read_text())[: LONGER + 1] for file in files]
    losses = np.array([token_losses(extended, ids) for ids in read])
    return losses[:, :L].mean(), losses[:, L:].mean()


@pytest.fixture(scope="module")
def measured(inputs):
    """measured(bos): the JSON of two methods on five texts."""

    @functools.cache
    def of(bos):
        subject = comparisons.named(str(inputs / "longer"))
        found = [texts.Book(str(number), text(number, 1600)) for number in range(5)]
        comparison = comparisons.prepare(subject, found, 2, ["yarn", "pi"], bos)
        order = comparison.ranked(list(comparison.readings()), None)
        return best.facts(comparison, order)

    return of


@pytest.mark.parametrize("bos", [False, True])
def test_losses_and_keys_are_those_of_plain_passes(measured, inputs, bos):
    """Losses of the text's own tokens, and nats from a pass with the question appended."""
    rows = {line["method"]: line for line in measured(bos)["rows"]}
    tokenizer = byte_tokenizer()
    before = [1] if bos else []
    warm = {"attention_factor": 0.1 * np.log(2) + 1}
    settings = {
        "yarn": ("yarn", {}, False),
        "as it is, last L": (rope.ORIGINAL, {}, True),
        "as it is × 1.07, last L": (rope.ORIGINAL, warm, True),
        "as it is, at L'": (rope.ORIGINAL, {}, False),
    }
    assert rows.keys() == {"pi", *settings}
    for name, (method, options, short) in settings.items():
        model = AutoModelForCausalLM.from_pretrained(inputs / "longer")
        extend(model, method, 2, **options)
        for number, found in enumerate(rows[name]["by_text"]):
            book = texts.Book(str(number), text(number, 1600))
            hidden = needles.needles(tokenizer, 2, book.sha256)
            ids = tokenizer.encode(book.text, add_special_tokens=False)
            size = 2 * HAYSTACK - 64 - len(before) - needles.size(hidden)
            stack = needles.haystack(ids[:size], hidden, before)
            expected = losses(model, [*stack.tokens, ids[size]], len(before), short)
            own = np.append(stack.of_text(), True)[1:]
            within = np.arange(len(own)) < HAYSTACK
            sides = expected[own & within].mean(), expected[own & ~within].mean()
            assert (found["loss_within"], found["loss_beyond"]) == pytest.approx(sides, abs=1e-4)
            read = stack.last(HAYSTACK - 64) if short else stack.tokens
            far, near = (
                token_losses(model, [*read, *each.question, *each.key])[-len(each.key) :].sum()
                for each in hidden
            )
            nats = found["nats_within"], found["nats_beyond"]
            assert nats == pytest.approx((near, far), abs=1e-4)
            assert found["keys_within"] == found["keys_beyond"] == 1


def losses(model, tokens, before, short):
    """Of every token after the first, read whole or by windows of L tokens."""
    if not short:
        return token_losses(model, tokens)
    read = len(tokens) - 1
    found = np.full(read, np.nan)
    # the last begins where the last L − 64 tokens do, and the others half of L before
    for begin in (0, (read - HAYSTACK + 64) - HAYSTACK // 2, read - HAYSTACK + 64):
        end = min(begin + HAYSTACK, read)
        window = tokens[:before] + tokens[begin + before : end + 1]
        of_window = token_losses(model, window)
        fresh = np.isnan(found[begin:end])[-len(of_window) :]
        found[begin:end][-len(of_window) :][fresh] = of_window[fresh]
    return found


def test_json_is_alone_on_stdout_and_says_what_the_table_says(call, done, inputs, measured):
    (inputs / "short.txt").write_text("abc")
    line = "best --method yarn pi --no-bos --model", inputs / "longer", "--texts"
    line = *line, *books(inputs, 5), inputs / "short.txt"
    status, out, err = call(*line, "--json")
    assert status == 0 and "'short' (3)" in err
    facts = json.loads(out)
    assert facts["texts"] == [str(number) for number in range(5)]
    table = done(*line)
    for row in facts["rows"]:
        (printed,) = (each for each in table.splitlines() if each.startswith(f"{row['method']}  "))
        numbers = [float(each) for each in re.findall(r"(?<= )\d+\.\d+(?= )", f"{printed} ")]
        columns = [f"{what}_{where}" for what in ("loss", "nats") for where in ("within", "beyond")]
        assert numbers[-4:] == pytest.approx([row[column] for column in columns], abs=6e-3)
        assert f"{row['found_beyond']}/{row['keys_beyond']}" in printed
    assert all(sentence.split()[0] in table for sentence in facts["verdict"])
    assert facts["command"] in table
    assert facts["rows"] == measured(False)["rows"]


@pytest.mark.parametrize(
    "stop, ends, says",
    [
        (KeyboardInterrupt, 130, "interrupted.* 1 text"),
        (
            NonFiniteError("the loss at position 3 is not finite."),
            2,
            "as it is.* on '1': the loss at",
        ),
    ],
)
def test_what_stops_it_leaves_the_ranking_of_the_texts_that_were_read(
    call, inputs, monkeypatch, stop, ends, says
):
    line = "best --method yarn pi --no-bos --model", inputs / "model", "--texts"
    one = call(*line, *books(inputs, 1))[1]
    measure = comparisons.numbers
    calls = iter(range(100))

    def stopped(*arguments):
        if next(calls) == 7:  # the first text has two methods and three rows beside them
            raise stop
        return measure(*arguments)

    monkeypatch.setattr(comparisons, "numbers", stopped)
    status, out, err = call(*line, *books(inputs, 3))
    assert (status, out) == (ends, one)
    assert re.search(says, err, re.DOTALL)


def test_parts_of_a_book_give_no_interval(call, inputs):
    line = "best --method yarn pi --json --no-bos --model", inputs / "model", "--texts"
    rows = json.loads(call(*line, "parts:5")[1])["rows"]
    assert [line["gap_low"] for line in rows] == [None] * len(rows)


def test_a_method_that_does_not_take_the_model_is_left_out(call, inputs, monkeypatch):
    def function(geometry, factor):
        raise InputError("mine needs 64 pairs.")

    monkeypatch.setitem(rope.METHODS, "mine", None)  # which takes it away afterwards
    del rope.METHODS["mine"]
    rope.register("mine", title="Mine")(function)
    line = ["best --method yarn mine --model", inputs / "model", "--texts", inputs / "0.txt"]
    status, _, err = call(*line)
    assert status == 0 and "mine is left out: mine needs 64 pairs" in err


def test_from_python_it_is_a_table_and_the_model_stays_as_it_is(inputs, measured):
    model = AutoModelForCausalLM.from_pretrained(inputs / "longer")
    ids = torch.arange(HAYSTACK)[None] % 200
    before = model(ids).logits
    config = copy.deepcopy(model.config)
    given = [text(number, 1600) for number in range(3)] + books(inputs, 5)[3:]
    tokenizer = byte_tokenizer()
    table = best.best(model, given, tokenizer=tokenizer, methods=["pi", "yarn"])
    assert model.config.to_dict() == config.to_dict()
    assert torch.equal(model(ids).logits, before)
    assert table.attrs["texts"] == ["text 0", "text 1", "text 2", "3", "4"]
    expected = pandas.DataFrame(measured(False)["rows"]).set_index("method")
    columns = ["loss_within", "loss_beyond", "nats_within", "nats_beyond", "gap"]
    pandas.testing.assert_frame_equal(table[columns], expected[columns])
    none = ("a text", [], [1], None, iter(["a text"]), np.array(["a text"]))
    refused = [(model, each, {}, "no list of strings") for each in none]
    refused += [
        (torch.nn.Linear(3, 3), given, {}, "no model of transformers"),
        (model.model, given, {}, "is not what its configuration describes"),
        (model, given, {"tokenizer": None}, "give tokenizer="),
        (model, given, {"tokenizer": "gpt2"}, "give tokenizer="),
        (model, given, {"by": "name"}, "order"),
        (inputs / "model", given, {"by": "keys", "tokenizer": None}, "keys"),
    ]
    for wrong, read, options, words in refused:
        with pytest.raises(ValueError, match=words):
            best.best(wrong, read, **{"tokenizer": tokenizer} | options)


def test_a_picture_is_drawn_where_it_can_be(done, refusal, inputs, tmp_path, monkeypatch):
    line = "best --method yarn pi --model", inputs / "model", "--texts", *books(inputs, 5)
    done(*line, "--plot", tmp_path / "a.png")
    assert (tmp_path / "a.png").read_bytes().startswith(b"\x89PNG")
    assert "no format of a picture" in refusal(*line, "--plot", tmp_path / "a.txt")
    monkeypatch.setitem(sys.modules, "matplotlib.backend_bases", None)
    assert "pip install matplotlib" in refusal(*line, "--plot", tmp_path / "b.png")
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(ValueError, match="pip install pandas"):
        best.best("a", ["b"])


def test_a_text_that_is_short_or_blank_is_left_out_and_named(call, inputs, tmp_path):
    (tmp_path / "short.txt").write_text("abc")
    rows = pyarrow.table({"text": ["", None, "  \n"], "title": ["blank", "none", "spaces"]})
    pyarrow.parquet.write_table(rows, tmp_path / "rows.parquet")
    line = ["best --method pi dprope --model", inputs / "model", "--texts", inputs / "0.txt"]
    _, out, err = call(*line, tmp_path / "short.txt", tmp_path / "rows.parquet")
    assert "'short' (3), 'blank' (0), 'none' (0), 'spaces' (0)" in err
    assert str(LONGER + 1) in err
    assert out == call(*line)[1]


def test_what_is_left_out_is_named_as_it_is_typed(call, inputs, monkeypatch):
    dprope = rope.METHODS["dprope"]
    alike = dataclasses.replace(dprope, function=rope.METHODS["pi"].function)
    monkeypatch.setattr(rope, "scale", lambda geometry, method, s, **_: alike.function(geometry, s))
    line = ["best --method dprope --model", inputs / "model", "--texts", inputs / "0.txt"]
    err = call(*line)[2]
    assert "dprope --n-hat 10" in err and "keys" in err
    assert "1 method," in err


@pytest.mark.parametrize(
    "stated, words",
    [(None, ""), ({"quant_method": "gptq", "bits": 4}, "gptq, 4 bits"), ({}, "")],
)
def test_quantised_weights_are_said_to_be(stated, words):
    config = transformers.LlamaConfig(quantization_config=stated)
    assert comparisons.Subject("m", config, None, None, None).quantised == words


@pytest.mark.parametrize("free, placed", [(10, {"device_map": "auto"}), (10**12, {})])
def test_a_model_is_spread_where_it_does_not_fit_on_a_gpu(inputs, monkeypatch, free, placed):
    from experiments.kit import loading as module

    given = {}

    def load(*_, **arguments):
        given.update(arguments)
        raise RuntimeError("no GPU")

    monkeypatch.setattr(module, "device", lambda: "cuda")
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda _: (free, free))
    monkeypatch.setattr(module, "model_class", lambda _: SimpleNamespace(from_pretrained=load))
    with pytest.raises(ValueError, match="no GPU"):
        comparisons.named(str(inputs / "model"), "float32").load()
    assert {name: given[name] for name in given.keys() & {"device_map"}} == placed
