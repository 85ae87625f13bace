"""What models read, whatever their tokenizer and whichever editor wrote the text; and what cannot
be read."""

import json

import numpy as np
import pyarrow
import pyarrow.parquet
import pytest
import torch
from transformers import ByT5Tokenizer

from eval import special_tokens
from experiments.kit import texts
from experiments.kit.base_model import BaseModel
from experiments.kit.texts import Book
from experiments.training.corpus import Corpus
from tests.eval.test_open_llm import write_benchmarks
from tests.models import byte_tokenizer, checkpoint, random_model

BOS = 1
EOS = 2
LENGTH = 256
WORDS = " ".join(np.random.default_rng(0).choice(["amber", "birch", "cedar", "delta"], 800))
COMMANDS = {
    "passkey": "--lengths 500 --depths 1 --keys 1",
    "longbench_e": "--benchmarks {root}/data --tasks trec --window 1000 --new-tokens 4",
    "open_llm": "--benchmarks {root}/data --tasks truthfulqa hellaswag --limit 2",
    "perplexity": "--texts {root}/book.txt --lengths 128 256 --stride 100 --tokens 600",
    "finetune": "--corpus {root}/books --steps 1 --batch 2 --length 64 --output {root}/tuned",
}


@pytest.fixture
def model(tmp_path):
    """model(tokenizer) -> a directory; beside it are texts and benchmarks."""
    (tmp_path / "books").mkdir()
    for book in (tmp_path / "book.txt", tmp_path / "books" / "one.txt"):
        book.write_text(f"{book.stem} {WORDS}")
    row = {
        "input": "",
        "context": "a few words ",
        "answers": ["?"],
        "length": 1,
        "all_classes": ["?"],
        "_id": "0",
    }
    rows = [row, row | {"_id": "1", "context": row["context"] * 200}]
    write_benchmarks(tmp_path / "data" / "open_llm")
    (tmp_path / "data" / "longbench_e").mkdir()
    (tmp_path / "data" / "longbench_e" / "trec.jsonl").write_text(
        "".join(json.dumps(one) + "\n" for one in rows)
    )

    def save(tokenizer, name="toy", vocabulary=300):
        return checkpoint(
            tmp_path / name, tokenizer, max_position_embeddings=LENGTH, vocab_size=vocabulary
        )

    return save


@pytest.fixture
def measure(call, tmp_path):
    """measure("perplexity", model, options…) -> (its record, what was measured); or, refused, the
    sentence."""

    def run(name, folder, *more):
        options = [word.format(root=tmp_path) for word in COMMANDS[name].split()]
        status, _, err = call(
            name, "--model", folder, *options, "--results", tmp_path / "results", *more
        )
        last = err.splitlines()[-1] if err else ""
        if status:
            assert (
                status == 2 and last.startswith("error: ") and not (tmp_path / "results").exists()
            ), err
            return last
        (file, *_) = sorted((tmp_path / "results" / folder.name / name).glob("*.json"))
        record = json.loads(file.read_text())
        return record, record["scores"].get("losses", record["scores"])

    return run


@pytest.fixture
def read(monkeypatch):
    """The ids of every pass through a model, a list each."""
    passes = []
    forward = torch.nn.Embedding.forward

    def watched(self, ids):
        passes.extend(ids.tolist() if self.weight.device.type != "meta" else ())
        return forward(self, ids)

    monkeypatch.setattr(torch.nn.Embedding, "forward", watched)
    return passes


@pytest.fixture
def unloaded(monkeypatch):
    """No weights may be loaded."""
    monkeypatch.setattr(BaseModel, "load", lambda *_: pytest.fail("weights were loaded"))


@pytest.mark.parametrize("name", ["perplexity", "finetune"])
def test_eos_after_every_text_changes_nothing(model, measure, read, tmp_path, name):
    """Against a tokenizer that puts BOS first and nothing last."""
    _, plain = measure(name, model(byte_tokenizer("<s> $A"), "plain"))
    if (tmp_path / "tuned").exists():
        (tmp_path / "tuned").rename(tmp_path / "first")
    expected = list(read)
    read[:] = []
    _, measured = measure(name, model(byte_tokenizer("<s> $A </s>"), "appends"))
    assert measured == plain and read == expected
    ids = {one for row in read for one in row}
    assert BOS in ids and EOS not in ids
    if name == "finetune":  # beside the weights is the tokenizer that was given
        assert BaseModel(str(tmp_path / "tuned")).stock_tokenizer()("x").input_ids[-1] == EOS


@pytest.mark.parametrize(
    ("tokenizer", "before"),
    [
        (byte_tokenizer("$A </s>"), []),
        (byte_tokenizer("<s> <s> $A </s> </s>"), [BOS, BOS]),
        (byte_tokenizer(), []),
        (ByT5Tokenizer(extra_ids=0), []),  # written in Python; ends in </s>
    ],
)
def test_a_prompt_is_what_stands_before_it_and_its_own_tokens(model, tokenizer, before):
    text = "any text, </s> too"
    plain = tokenizer(text, add_special_tokens=False).input_ids
    prepared = BaseModel(str(model(tokenizer))).tokenizer
    assert prepared(text).input_ids == prepared.encode(text) == [*before, *plain]
    assert prepared([text, text]).input_ids == 2 * [[*before, *plain]]
    assert (
        special_tokens.beginning(prepared) == before
        and special_tokens.beginning(prepared, bos=False) == []
    )


def test_bos_is_an_option_that_the_record_states_and_follows_the_tokenizer_by_default(
    model, measure
):
    plain = model(byte_tokenizer(), "plain")
    llama = model(byte_tokenizer("<s> $A"), "llama")
    cases = (plain, []), (llama, ["--no-bos"]), (plain, ["--bos"]), (llama, [])
    runs = [
        measure("perplexity", folder, *option, "--replace", "--method", "pi")
        for folder, option in cases
    ]
    records, measured = zip(*runs)
    assert measured[0] == measured[1] != measured[2] == measured[3]
    assert [record["run"].get("bos") for record in records] == [None, None, True, True]
    assert all(("bos" in record["comparable"]) == ("bos" in record["run"]) for record in records)


def test_perplexity_of_a_window_that_begins_with_bos_is_that_of_yarns_script(
    model, measure, tmp_path
):
    """The loop of jquesnelle/yarn, eval/perplexity.py, compute_perplexity with add_start_token."""
    record, rows = measure("perplexity", model(byte_tokenizer("<s> $A")), "--method", "original")
    network = random_model(max_position_embeddings=LENGTH)
    text = byte_tokenizer()(
        (tmp_path / "book.txt").read_text(), add_special_tokens=False
    ).input_ids[:600]
    labels = torch.tensor([text])
    sliding_window = record["run"]["stride"]
    for row in rows["by_length"]:
        nlls = []
        prev_end_loc = 0
        max_tokenized_len = row["length"] - 1
        for begin_loc in range(0, len(text), sliding_window):
            end_loc = min(begin_loc + max_tokenized_len, len(text))
            input_ids = torch.cat([torch.tensor([[BOS]]), labels[:, begin_loc:end_loc]], dim=1)
            target_ids = input_ids.clone()
            target_ids[:, : -(end_loc - prev_end_loc)] = -100
            with torch.no_grad():
                nlls.append(network(input_ids, labels=target_ids).loss)
            prev_end_loc = end_loc
            if end_loc == len(text):
                break
        assert (row["windows"], row["tokens"]) == (len(nlls), len(text))
        assert row["window"]["mean"] == pytest.approx(
            float(torch.stack(nlls).mean().exp()), rel=1e-4
        )


def test_a_text_to_train_on_begins_with_bos(model, measure, read, tmp_path):
    measure("finetune", model(byte_tokenizer("<s> $A")), "--batch", "3", "--length", "512")
    text = byte_tokenizer()(
        (tmp_path / "books" / "one.txt").read_text(), add_special_tokens=False
    ).input_ids
    cut = {tuple([BOS, *text][begin : begin + 512]) for begin in range(0, 3 * 512, 512)}
    assert cut == {tuple(row) for row in read}


# ------------------------------------------------------------------------------------------
# What cannot be read, and what can


@pytest.mark.parametrize("name", ["passkey", "open_llm", "finetune"])
def test_ids_past_the_embedding_are_refused(model, measure, unloaded, name):
    """The byte tokenizer has 259 ids; the model knows 100."""
    assert "embeddings for 100 tokens" in measure(name, model(byte_tokenizer(), vocabulary=100))


def test_bos_that_the_tokenizer_has_not_is_refused(model, measure, unloaded):
    tokenizer = byte_tokenizer()
    tokenizer.bos_token = None
    assert "--bos" in measure("perplexity", model(tokenizer), "--bos")


# ------------------------------------------------------------------------------------------
# Texts as editors on Windows write them

LINES = "".join(f"{word}\n" for word in WORDS.split())
WRITTEN = "\ufeff" + LINES.replace("\n", "\r\n")


def test_a_byte_order_mark_and_line_endings_are_not_read(tmp_path):
    (tmp_path / "book.txt").write_bytes(WRITTEN.encode())
    assert texts.files([tmp_path / "book.txt"]) == [Book("book", LINES)]
    corpus = Corpus(str(tmp_path))
    assert [book.text for book in corpus.books(0)] == [LINES]
    fingerprint = corpus.fingerprint
    (tmp_path / "book.txt").write_text(LINES)
    assert fingerprint == Corpus(corpus.source).fingerprint  # which tells runs apart


def test_a_text_that_was_trained_on_is_known_however_it_was_written(model, measure, tmp_path):
    (tmp_path / "books" / "one.txt").unlink()
    pyarrow.parquet.write_table(
        pyarrow.table({"text": [WRITTEN]}), tmp_path / "books" / "one.parquet"
    )
    measure("finetune", model(byte_tokenizer()))
    (tmp_path / "results").rename(tmp_path / "of training")
    (tmp_path / "plain.txt").write_text(LINES)
    assert "was trained on" in measure(
        "perplexity", tmp_path / "tuned", "--texts", tmp_path / "plain.txt"
    )
