"""Loss by position: the records' numbers, the best marked, differences to the rival of the same state."""

import math
import re

import pytest

from core import disturbance as kl
from core.angles import angle_distribution
from tables.beyond import long_perplexity, loss_by_position


def test_it_shows_the_records_and_marks_the_best(made):
    """Two methods, one book, two blocks within L and one in each half beyond."""
    for method, losses in (("original", [1, 1, 4, 7]), ("yarn", [1.5, 1.5, 2, 3])):
        spans = [(0, 8192), (8192, 12288), (12288, 16384)]
        ranges = [{"start": a, "end": b, "mean": 9.0, "low": 8.0, "high": 9.5} for a, b in spans]  # over blocks
        made.add(
            "loss_by_position",
            method,
            data={"A_Book": 1},
            length=16384,
            ranges=ranges,
            block=4096,
            blocks={"A_Book": losses},
        )
    (block,) = loss_by_position.build(made.results()).blocks
    original, yarn = block.rows
    assert block.header[2:5] == ("0–8k", "8–12k", "12–16k") and "A_Book" in block.title
    assert [cell.text for cell in original] == [
        "Original",
        "226.34",
        "1.000",
        "4.000",
        "7.000",
        "+3.000",
    ]  # (1, 3, 4, 4)
    assert [cell.text for cell in yarn[2:]] == ["1.500", "2.000", "3.000", "–"]
    assert [[cell.bold for cell in row[2:5]] for row in block.rows] == [[True, False, False], [False, True, True]]


def test_it_has_two_blocks_for_each_factor(made):
    for factor in (2, 16):
        for method in ("yarn", "pi"):
            made.everything(method, factor=factor)
        made.everything("pi", factor=factor, seed=0, better=1.0)
        made.everything("yarn", factor=factor, seed=0, better=3.0)
    blocks = loss_by_position.build(made.results()).blocks
    assert [len(block.rows) for block in blocks] == [2] * 4
    assert [re.search(r"s = (\d+)", block.title)[1] for block in blocks] == ["2", "2", "16", "16"]
    pi, yarn = blocks[3].rows
    assert pi[-1].text == "+2.000" and yarn[-1].text == "–"  # paired with the fine-tuned rival
    assert [cell.bold for cell in yarn[2:5]] == [True] * 3 and not any(cell.bold for cell in pi)
    inv_freq = made.results().model.geometry.inv_freq
    moved = kl.disturbance(angle_distribution(inv_freq / 16, 16 * 8192), angle_distribution(inv_freq, 8192))
    assert float(blocks[2].rows[0][1].text) == pytest.approx(1e3 * moved.mean(), abs=0.005)  # at that factor


def test_key_tokens_are_averaged_over_texts_that_have_some(made):
    """Two excerpts of one text count as one; beside the row of the same texts, and only there."""
    losses = {"One": [1, 1, 4, 7], "One (1)": [1, 1, 4, 7], "Two": [1, 1, 1, 1]}
    sums = {"One": [6.0, 3], "One (1)": [2.0, 1], "Two": [1.0, 1]}
    spans = [{"start": a, "end": b} for a, b in ((0, 8192), (8192, 12288), (12288, 16384))]
    on = {"data": {"One": 1, "Two": 2}, "length": 16384}
    for method in ("yarn", "pi"):
        made.add("loss_by_position", method, **on, ranges=spans, block=4096, blocks=losses)
    found = {name: {"beyond": {"key": key}} for name, key in sums.items()}
    made.add("long_perplexity", "yarn", **on, texts=found)
    made.add("long_perplexity", "pi", **on | {"length": 8192}, texts=found)
    (block,) = loss_by_position.build(made.results()).blocks
    assert block.header[-1] == "key tokens beyond L"
    assert [row[-1].text for row in block.rows] == ["–", "1.500"]  # 8/4 and 1/1
    made.records["long_perplexity/002_yarn.json"]["texts"]["Two"]["beyond"]["key"] = [0.0, 0]
    (block,) = loss_by_position.build(made.results()).blocks
    assert block.rows[1][-1].text == "2.000"


def test_perplexity_over_key_tokens_is_a_mean_over_texts_that_have_some(made):
    whole, side = {"all": [40.0, 20]}, {"key": [6.0, 3], "all": [30.0, 20]}
    texts = {
        "One": {"within": whole | {"key": [0.0, 0]}, "beyond": side},
        "One (1)": {"within": whole | {"key": [0.0, 0]}, "beyond": side | {"key": [2.0, 1]}},
        "Two": {"within": whole | {"key": [0.5, 1]}, "beyond": side | {"key": [1.0, 1]}},
    }
    made.add("long_perplexity", "yarn", data={"One": 1, "Two": 2}, length=16384, texts=texts)
    (block,) = long_perplexity.build(made.results()).blocks
    shown = dict(zip(block.header, (cell.text for cell in block.rows[0])))
    expected = {"all tokens, within L": 2.0, "all tokens, beyond L": 1.5, "key tokens, within L": 0.5,
                "key tokens, beyond L": (8 / 4 + 1 / 1) / 2}  # fmt: skip
    for name, loss in expected.items():
        assert shown[name] == f"{math.exp(loss):.2f}", name
