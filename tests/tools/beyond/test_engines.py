"""What an engine answers is compared with transformers, position by position; the engines here are
stubs."""

import re
import sys

import numpy as np
import pytest

from core import rope
from core.extend import extend
from experiments.kit import texts
from tests.models import byte_tokenizer, checkpoint, random_model, token_losses

# beyond L = 128
LENGTH = 144
SCORED = 16

PROGRAM = """#!{python}
import json, sys
isolated, worker, model, request, answer = sys.argv[1:]
asked = json.load(open(request))
config = json.load(open(model + "/config.json"))
assert config["max_position_embeddings"] == asked["length"] == 256 and len(asked["ids"]) == 144
losses = [5.0] * (asked["scored"] - 1) + [{last}]
json.dump({{"losses": losses, "version": "1.2"}}, open(answer, "w"))
"""


@pytest.fixture
def command(tmp_path):
    """command(text) -> a command line with an engine whose Python is a program of this text."""

    def write(text):
        python = tmp_path / "python"
        python.write_text(text.format(python=sys.executable, last=6.0), encoding="utf-8")
        python.chmod(0o755)
        model = checkpoint(tmp_path / "small")
        line = f"tools.beyond.engines.__main__ --engine mlx --method {rope.BASELINE}"
        return [line, "--model", model, "--python", python]

    return write


def test_an_engine_is_compared_at_every_position_beyond_the_context(done, command):
    out = done(*command(PROGRAM))
    losses = np.array([5.0] * (SCORED - 1) + [6.0])
    ids = byte_tokenizer().encode(texts.books(1)[0].text[:LENGTH])[:LENGTH]
    numbers = re.findall(r"\d\.\d+(?:e[+-]\d+)?(?=,|$)", out.partition("mean loss")[2])
    mean, *apart = map(float, numbers)
    assert mean == pytest.approx(losses.mean(), abs=1e-4)
    models = extend(random_model(), rope.BASELINE, 2), random_model()
    wanted = [np.abs(losses - token_losses(model, ids)[-SCORED:]).max() for model in models]
    assert apart == pytest.approx(wanted, rel=0.05)


@pytest.mark.parametrize(
    ("text", "arguments", "says"),
    [
        ("#!{python}\nimport sys; sys.exit('no such operator')", [], "no such operator"),
        (PROGRAM.replace(" + [{last}]", ""), [], "finite loss"),
        ("no program", [], "--python"),
        (PROGRAM, ["--tokens", "128"], "--tokens"),
    ],
)
def test_what_cannot_be_compared_is_one_sentence(refusal, command, text, arguments, says):
    assert says in refusal(*command(text), *arguments)
