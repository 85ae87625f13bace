"""What an engine is said to do follows from how far its losses lie from two others."""

import pytest

from analysis.beyond import serving
from core import rope
from tables.beyond import served as table
from tests.analysis.recorder import score

OPTIONS = {rope.PROPOSED: {"n_hat": 28}, rope.BASELINE: {}}


def add(recorder, engine, method, loss, reference=3.0, unextended=3.5, served="checkpoint", **more):
    """A record of experiments.beyond.served; the engine's loss is the same at every position."""
    apart = {
        name: {"of_means": loss - other, "mean": abs(loss - other), "largest": abs(loss - other)}
        for name, other in (("transformers", reference), ("unextended", unextended))
    }
    losses = {"engine": score(loss), "transformers": score(reference), "unextended": score(unextended)}
    scores = {"losses": losses, "apart_from": apart}
    facts = {"name": engine, "version": "1.2"} | more
    about = {"engine": facts, "answer": {"served": served}, "tokens": 99, "scored": 9}
    recorder.add("served", method, scores, options=OPTIONS[method], **about)


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
def test_verdicts(recorder, loss, served, verdict):
    add(recorder, "vllm", rope.PROPOSED, loss, served=served)
    (row,) = serving.served(recorder.results())
    assert (row.verdict, row.weights, row.engine) == (verdict, served, "vllm")


def test_equal_means_of_other_positions_are_not_right(recorder):
    add(recorder, "vllm", rope.BASELINE, 3.0)
    scores = next(iter(recorder.records.values()))["scores"]
    scores["apart_from"]["transformers"]["mean"] = 0.05
    (row,) = serving.served(recorder.results())
    assert row.verdict == serving.WRONG


def test_an_engine_is_right_if_it_computes_every_export_and_a_file_of_another_converter_does_not_count(recorder):
    add(recorder, "vllm", rope.PROPOSED, 3.0)
    add(recorder, "vllm", rope.BASELINE, 3.2)
    add(recorder, "llama.cpp", rope.PROPOSED, 3.0, served="F32")
    add(recorder, "llama.cpp", rope.PROPOSED, 3.5, gguf="converted.gguf", served="F32")
    assert serving.right_engines(recorder.results()) == {"llama.cpp"}
    shown = table.build(recorder.results()).blocks[0].rows
    assert [(row[1].text, row[2].text) for row in shown[:2]] == [("llama.cpp", "F32"), ("llama.cpp", "converted.gguf")]
