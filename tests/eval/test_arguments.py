"""What a caller, or a file, may give the benchmarks by mistake: refused by an InputError before anything is scored."""

import json

import pytest
import torch

from core.errors import InputError
from eval import longbench, open_llm, passkey, perplexity, position_loss, ruler
from tests.models import byte_tokenizer, random_model

NAN = float("nan")
NO_TEXT = (None, 3, NAN, ["x"], {})
NO_NUMBERS = (None, "4000", True, NAN, float("inf"), [4000])
ENCODE = byte_tokenizer().encode
SAMPLE = {"input": "Why?", "context": "So.", "answers": ["x"], "length": 3, "all_classes": None, "_id": "7"}

CALLS = {
    "a length": (longbench.bucket, (*NO_NUMBERS, -1)),
    "a prompt's task": (lambda x: longbench.prompt(x, SAMPLE), (*NO_TEXT, "nothing")),
    "a prompt's sample": (lambda x: longbench.prompt("qasper", x), (*NO_TEXT, "x", {"context": 3, "input": ""})),
    "a scored task": (lambda x: longbench.score(x, "", ["x"]), (*NO_TEXT, "nothing")),
    "a prediction": (lambda x: longbench.score("qasper", x, ["x"]), NO_TEXT),
    "references": (lambda x: longbench.score("qasper", "x", x), (None, 3, "Paris", [3], [None], [["x"]])),
    "classes": (lambda x: longbench.score("trec", "x", ["x"], x), (None, 3, "city", [3])),
    "a passkey's length": (lambda x: passkey.sample(ENCODE, x, 0.5, 0), (*NO_NUMBERS, 0, -5, 3)),
    "a passkey's depth": (lambda x: passkey.sample(ENCODE, 2000, x, 0), (*NO_NUMBERS, -0.1, 1.1)),
    "a passkey's seed": (lambda x: passkey.sample(ENCODE, 2000, 0.5, x), (*NO_NUMBERS, 0.5)),
    "a found key": (lambda x: passkey.score(x, "12345"), NO_TEXT),
    "a text's tokens": (lambda x: perplexity.windows(x, 64, 32), (*NO_NUMBERS, 0, -29000, 0.5)),
    "a window": (lambda x: perplexity.windows(100, x, 32), (*NO_NUMBERS, 0, 32)),
    "a stride": (lambda x: perplexity.windows(100, 64, x), (*NO_NUMBERS, 0, 64, -1)),
    "tokens": (
        lambda x: position_loss.position_losses(random_model(max_position_embeddings=64), x),
        (None, [1, 2], torch.ones(1, dtype=torch.int64), torch.ones(4), torch.ones((1, 4), dtype=torch.int64)),
    ),
    "a RULER task": (lambda x: ruler.samples(x, 4096, byte_tokenizer(), 1), (*NO_TEXT, "nothing")),
    "a RULER length": (lambda x: ruler.samples("vt", x, byte_tokenizer(), 1), (*NO_NUMBERS, 0)),
    "a RULER count": (lambda x: ruler.samples("vt", 4096, byte_tokenizer(), x), (*NO_NUMBERS, 0, -1)),
    "RULER's references": (lambda x: ruler.score("vt", "x", x), (None, "x", [], [3])),
    "a benchmark": (open_llm.load, (*NO_TEXT, "nothing")),
}


@pytest.mark.parametrize("name", CALLS)
def test_what_cannot_be_meant_is_refused(name):
    call, bad = CALLS[name]
    for value in bad:
        with pytest.raises(InputError) as refused:
            call(value)
        assert "\n" not in str(refused.value), value


LINE = json.dumps(SAMPLE).encode()
LINES = {
    "only white space": b"\n \n",
    "not UTF-8": LINE.replace(b"So.", b"\xff\xfe"),
    "torn": LINE + b"\n" + LINE[:40],
    "a list": b"[" + LINE + b"]",
    "deep": b"[" * 100_000,
    "the same twice": LINE + b"\n" + LINE,
    **{f"no {key}": json.dumps({k: v for k, v in SAMPLE.items() if k != key}).encode() for key in SAMPLE},
    **{
        f"{key} is {value!r}": json.dumps(SAMPLE | {key: value}).encode()
        for key, values in {
            "input": (None,),
            "context": (3,),
            "answers": ("x", [], [None]),
            "length": ("3", NAN, -1),
            "all_classes": ("x", [3]),
            "_id": (7,),
        }.items()
        for value in values
    },
}


@pytest.mark.parametrize("name", LINES)
def test_a_broken_line_of_longbench_is_named(tmp_path, name):
    (tmp_path / "qasper.jsonl").write_bytes(LINES[name])
    with pytest.raises(InputError) as refused:
        longbench.load("qasper", tmp_path)
    assert ("qasper.jsonl, line " in str(refused.value)) != (name == "only white space")


def test_a_mark_of_byte_order_and_no_last_line_feed_are_read(tmp_path):
    (tmp_path / "qasper.jsonl").write_bytes(b"\xef\xbb\xbf" + LINE)
    assert longbench.load("qasper", tmp_path) == [SAMPLE]
