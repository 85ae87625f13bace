"""What an engine answers is compared with transformers, position by position; the engines here are stubs."""

import re
import sys
from itertools import pairwise

import numpy as np
import pytest
import torch

from core import rope
from core.extend import extend
from experiments.kit import texts
from experiments.kit.records import ROOT
from tests.models import byte_tokenizer, checkpoint, random_model

LENGTH, SCORED = 144, 16  # beyond L = 128

PROGRAM = """#!{python}
import json, sys
isolated, worker, model, request, answer = sys.argv[1:]
asked = json.load(open(request))
config = json.load(open(model + "/config.json"))
assert config["max_position_embeddings"] == asked["length"] == 256 and len(asked["ids"]) == 144
json.dump({{"losses": [5.0] * (asked["scored"] - 1) + [{last}], "version": "1.2"}}, open(answer, "w"))
"""
SERVER = """#!{python}
import sys
sys.path.insert(0, {root!r})
from tests.completions import Completions, counting
def value(name):
    return sys.argv[sys.argv.index(name) + 1]
served = Completions(counting, value("--model"), most=int(value("--max-model-len")), port=int(value("--port")))
served.server.serve_forever()
"""


@pytest.fixture
def check(call, tmp_path_factory, tmp_path):
    """check(engine, program, …) -> (status, stdout, stderr), where the engine's interpreter is that program."""
    model = checkpoint(tmp_path_factory.mktemp("models") / "small")

    def run(engine, program, *arguments, **values):
        if program:
            python = tmp_path / engine / "bin" / "python"
            python.parent.mkdir(parents=True)
            python.write_text(program.format(python=sys.executable, root=str(ROOT), **values), encoding="utf-8")
            python.chmod(0o755)
        installed = "--engine", engine, "--environments", tmp_path
        return call(
            "tools.beyond.engines.__main__", "--model", model, *installed, "--method", rope.BASELINE, *arguments
        )

    return run


def plain(model):
    """The ids, and the losses [SCORED] of the last of them."""
    ids = byte_tokenizer()(texts.books(1)[0].text[:LENGTH], add_special_tokens=False, return_tensors="pt").input_ids[
        :, :LENGTH
    ]
    with torch.inference_mode():
        logits = model(ids[:, :-1]).logits[0, -SCORED:]
    return ids[0].tolist(), torch.nn.functional.cross_entropy(logits, ids[0, -SCORED:], reduction="none").numpy()


def test_an_engine_is_compared_at_every_position_beyond_the_context(check):
    status, out, err = check("mlx", PROGRAM, last=6.0)
    assert status == 0, err
    losses = np.array([5.0] * (SCORED - 1) + [6.0])
    _, extended = plain(extend(random_model(), rope.BASELINE, 2))
    _, unextended = plain(random_model())
    mean, *apart = map(float, re.findall(r"\d\.\d+(?:e[+-]\d+)?(?=,|$)", out.partition("mean loss")[2]))
    wanted = [np.abs(losses - other).max() for other in (extended, unextended)]
    assert mean == pytest.approx(losses.mean(), abs=1e-4) and apart == pytest.approx(wanted, rel=0.05)


def test_vllm_is_asked_as_a_server(check):
    status, out, err = check("vllm", SERVER)
    assert status == 0, err
    ids, _ = plain(random_model())
    losses = [0.0 if token == last + 1 else 20.0 for last, token in pairwise(ids)][-SCORED:]  # counting's
    assert out.startswith("vllm, 0.1.2, ") and f"mean loss {np.mean(losses):.4f}" in out


@pytest.mark.parametrize(
    ("program", "arguments", "sentence"),
    [
        ("#!{python}\nimport sys; sys.exit('no such operator')", [], "no such operator"),
        (PROGRAM.replace("{last}", "float('nan')"), [], "NaN"),
        ("", [], "env-serving"),
        (PROGRAM, ["--tokens", "128"], "--tokens"),
    ],
)
def test_what_cannot_be_compared_is_one_sentence(check, program, arguments, sentence):
    status, _, err = check("mlx", program, *arguments, last=6.0)
    assert status == 2 and sentence in err.splitlines()[-1] and "Traceback" not in err
