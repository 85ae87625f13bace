"""What an engine is said to do follows from how far its losses lie from two others."""

import pytest

from analysis.beyond import serving
from core import rope
from tables.beyond import served as table
from tests.analysis.made import score

OPTIONS = {rope.PROPOSED: {"n_hat": 28}, rope.BASELINE: {}}


def add(made, engine, method, loss, reference=3.0, unextended=3.5, served="checkpoint", **more):
    """A record of experiments.beyond.served; the engine's loss is the same at every position."""
    apart = {
        name: {"of_means": loss - other, "mean": abs(loss - other), "largest": abs(loss - other)}
        for name, other in (("transformers", reference), ("unextended", unextended))
    }
    losses = {"engine": score(loss), "transformers": score(reference), "unextended": score(unextended)}
    scores = {"losses": losses, "apart_from": apart}
    facts = {"name": engine, "version": "1.2"} | more
    about = {"engine": facts, "answer": {"served": served}, "tokens": 99, "scored": 9}
    made.add("served", method, scores, options=OPTIONS[method], **about)


@pytest.mark.parametrize(
    ("loss", "served", "verdict"),
    [
        (3.0009, "checkpoint", serving.RIGHT),
        (2.9991, "F32", serving.RIGHT),
        (3.002, "checkpoint", serving.WRONG),
        (3.002, "Q4_1", serving.RIGHT),
        (3.02, "Q4_1", serving.WRONG),
        (3.4995, "checkpoint", serving.DROPPED),
    ],
)
def test_verdicts(made, loss, served, verdict):
    add(made, "vllm", rope.PROPOSED, loss, served=served)
    (row,) = serving.served(made.results())
    assert (row.verdict, row.weights, row.engine, row.version) == (verdict, served, "vllm", "1.2")


def test_equal_means_of_other_positions_are_not_right(made):
    add(made, "vllm", rope.BASELINE, 3.0)
    scores = next(iter(made.records.values()))["scores"]
    scores["apart_from"]["transformers"]["mean"] = 0.05
    (row,) = serving.served(made.results())
    assert row.verdict == serving.WRONG


def lines(made):
    return {line.engine: line for line in serving.matrix(serving.served(made.results()))}


def test_methods_without_and_with_an_attention_factor_judge_two_things(made):
    add(made, "vllm", rope.PROPOSED, 3.0)
    add(made, "vllm", rope.BASELINE, 3.2)
    line = lines(made)["vllm"]
    assert (line.frequencies, line.attention_factor, line.version) == (serving.RIGHT, serving.WRONG, "1.2")
    assert line.serve and "measured" in line.evidence


def test_without_records_there_is_what_the_sources_say(made):
    add(made, "mlx", rope.PROPOSED, 3.0)
    found = lines(made)
    assert found["vllm"].frequencies == serving.UNKNOWN and found["mlx"].attention_factor == serving.UNKNOWN
    assert "from source" in found["SGLang"].evidence


def test_a_file_given_by_hand_is_shown_but_judges_no_engine(made):
    add(made, "llama.cpp", rope.PROPOSED, 3.5, gguf="converted.gguf", served="F32")
    assert lines(made)["llama.cpp"].frequencies == serving.UNKNOWN
    shown = table.build(made.results())
    assert [row[2].text for row in shown.blocks[0].rows] == ["converted.gguf"]
