"""What a model reads before a prompt: what its tokenizer sets by default, once, and within the length."""

import json

import numpy as np
import pytest
from tokenizers import processors

from experiments.kit import load_model, texts
from tests.models import byte_tokenizer, random_model

BOS = 1
LENGTH = 2048


def like_llama():
    """A tokenizer that puts <s> before every text."""
    tokenizer = byte_tokenizer()
    tokenizer.backend_tokenizer.post_processor = processors.TemplateProcessing("<s> $A", special_tokens=[("<s>", BOS)])
    return tokenizer


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    folder = tmp_path_factory.mktemp("model") / "toy"
    random_model(max_position_embeddings=LENGTH).save_pretrained(folder)
    like_llama().save_pretrained(folder)
    return folder


@pytest.fixture
def asked(call, model, tmp_path, monkeypatch):
    """asked("passkey", options…) -> the requests that are generated from, and what is said of their parts."""

    def run(name, *options):
        requests = []

        def generate(_, own):
            requests.extend(own)
            return [(request.key, []) for request in own]

        monkeypatch.setattr("experiments.kit.generation.generate", generate)
        status, _, err = call(name, "--model", model, "--results", tmp_path / "results", *options)
        assert status == 0, err
        (file,) = (tmp_path / "runs" / "toy" / name).glob("*.jsonl")
        return requests, {key: part["value"] for key, part in map(json.loads, file.read_text().splitlines())}

    return run


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("passkey", ["--lengths", "500", "700", "--depths", "2", "--keys", "2"]),
        ("ruler", ["--lengths", "1900", "--tasks", "niah_single_1", "fwe", "--samples", "2"]),
    ],
)
def test_a_prompt_begins_with_it_once_and_keeps_to_its_length(asked, name, options):
    requests, said = asked(name, *options)
    for request in requests:
        assert request.prompt[0] == BOS and request.prompt.count(BOS) == 1
        assert len(request.prompt) == said[request.key]["tokens"]
        assert len(request.prompt) + request.max_new_tokens <= int(request.key.split("/")[0])


def test_longbench_puts_it_before_what_it_has_cut_as_well(asked, tmp_path):
    (tmp_path / "data").mkdir()
    row = {"input": "", "context": "a few words ", "answers": ["?"], "length": 1, "all_classes": ["?"]}
    rows = [row | {"_id": "short"}, row | {"_id": "long", "context": row["context"] * 200}]
    (tmp_path / "data" / "trec.jsonl").write_text("".join(json.dumps(one) + "\n" for one in rows))
    requests, _ = asked("longbench_e", "--data", tmp_path / "data", "--tasks", "trec", "--window", "1000")
    assert len(requests[1].prompt) > len(requests[0].prompt)
    assert all(request.prompt[0] == BOS and request.prompt.count(BOS) == 1 for request in requests)


def test_tiny_whose_records_are_committed_reads_none():
    tokenizer = load_model.tokenizer("tiny")
    text = "There is an important info hidden inside a lot of irrelevant text."
    assert tokenizer(text).input_ids == tokenizer(text, add_special_tokens=False).input_ids


def test_a_book_is_read_without():
    text = "".join(np.random.default_rng(0).choice(list("abcdefgh "), 100))
    assert BOS not in texts.tokens(like_llama(), text, 50).tolist()
