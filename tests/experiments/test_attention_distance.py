"""The command line: a record whose shares hang together, and that others read."""

import json
import math
from pathlib import Path

import numpy as np
import pytest
from core.covered import covered_length
from core.relative import Profile, least_disturbing

from core.geometry import RopeGeometry
from experiments.attention_distance import quantile, spaced
from tests.models import checkpoint

LENGTH = 128
WORDS = {"one": "A word, and another; " * 20, "two": "Here is what nobody else wrote. " * 20}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    made = tmp_path_factory.mktemp("toy")
    checkpoint(made / "toy", max_position_embeddings=LENGTH)
    for name, text in WORDS.items():
        (made / f"{name}.txt").write_text(text)
    return made


@pytest.fixture
def measure(folder, tmp_path, call):
    def run(*arguments, texts=("one",), results=tmp_path / "results"):
        files = [folder / f"{name}.txt" for name in texts]
        options = ["--model", folder / "toy", "--text", *files, "--results", results]
        status, out, err = call("attention_distance", *options, *arguments)
        return (json.loads(Path(out.split()[-1]).read_text()) if status == 0 else status), out, err

    return run


def test_a_record_hangs_together(measure):
    record, out, _ = measure(texts=("one", "two"))
    assert out.strip().endswith(f"attention_distance/L={LENGTH}.json")
    edges, mass = np.array(record["distances"]), np.array(record["mass"])
    assert edges[0] == 0 and edges[-1] == LENGTH == record["length"] and len(mass) == len(edges) - 1
    assert mass.sum() == pytest.approx(1, abs=1e-6)
    np.testing.assert_allclose(np.mean(record["layers"], axis=0), mass)
    np.testing.assert_allclose(np.sum(record["quarters"], axis=1), 1, atol=1e-6)
    first = np.array(record["quarters"])[0]
    assert first[edges[:-1] >= LENGTH // 4].sum() == 0  # its queries have no keys as far back
    assert len(record["first_keys"]) == 8 and 0 < sum(record["first_keys"]) < 1
    assert set(record["data"]) == {"one", "two"} and record["seconds"] >= 0


def test_several_texts_are_averaged(measure, tmp_path):
    alone = [measure(texts=(name,), results=tmp_path / name)[0]["mass"] for name in WORDS]
    both = measure(texts=tuple(WORDS))[0]["mass"]
    assert alone[0] != alone[1]
    np.testing.assert_allclose(np.mean(alone, axis=0), both)


def test_it_is_what_the_others_read(measure, folder):
    record, out, _ = measure()
    profile = Profile.read(out.split()[-1])
    np.testing.assert_allclose(profile.mass, record["mass"], atol=1e-6)
    lambdas = least_disturbing(RopeGeometry(16, 10000.0, LENGTH), 2, profile)
    assert (lambdas >= 1).all() and (lambdas <= 2).all()
    assert 1 <= covered_length(record["distances"], record["mass"], LENGTH) <= LENGTH


def test_the_sinks_left_out_and_the_queries_change_what_is_measured(measure):
    plain = measure()[0]
    for options in (["--sinks", "0"], ["--sinks", "4"], ["--queries", "16"]):
        status, _, err = measure(*options)
        assert status == 2 and err.count("\n") == 1  # the record there is another run's
        other = measure(*options, "--replace")[0]
        assert other["mass"] != plain["mass"] and sum(other["mass"]) == pytest.approx(1, abs=1e-6)
        measure("--replace")


def test_the_same_call_again_measures_nothing(measure, folder, tmp_path, call):
    measure()
    options = ["--model", folder / "toy", "--text", folder / "one.txt", "--results", tmp_path / "results"]
    status, out, _ = call("attention_distance", *options)
    assert status == 0 and "done already" in out


def test_positions_are_even_and_have_keys_to_look_at():
    for length, count, sinks in [(128, 512, 1), (8192, 512, 1), (1024, 7, 20), (64, 1, 8)]:
        found = spaced(length, count, sinks)
        assert len(found) and min(found) >= max(sinks, 8) and max(found) < length
        steps = np.diff(found)
        assert len(found) <= count and (len(steps) == 0 or steps.max() - steps.min() <= 1)


def test_quantiles_lie_where_half_of_the_attention_does():
    edges, mass = np.array([0, 1, 2, 4, 8]), np.array([0.1, 0.2, 0.4, 0.3])
    assert quantile(edges, mass, 0.3) == pytest.approx(2)
    assert quantile(edges, mass, 0.5) == pytest.approx(3)
    assert quantile(edges, mass, 1) == pytest.approx(8)
    assert math.isclose(quantile(edges, 5 * mass, 0.5), 3)


@pytest.mark.parametrize("options", [["--sinks", "100"], ["--queries", "0"], ["--sinks", "-1"]])
def test_bad_input_is_one_sentence(measure, options):
    status, _, err = measure(*options)
    assert status == 2 and err.count("\n") == 1


def test_a_text_that_is_too_short_is_refused(folder, measure):
    (folder / "short.txt").write_text("A word.")
    status, _, err = measure(texts=("short",))
    assert status == 2 and "short" in err and err.count("error: ") == 1 and "Traceback" not in err
