"""What models read, whatever their tokenizer and whichever editor wrote the text; and what cannot be read."""

import json

import numpy as np
import pyarrow
import pyarrow.parquet
import pytest
import torch
from tokenizers import processors
from transformers import ByT5Tokenizer

from eval import longbench, special_tokens
from experiments.kit import records, texts
from experiments.kit.base_model import BaseModel
from experiments.kit.texts import Book
from experiments.training.corpus import Corpus
from tests.eval.test_open_llm import write_benchmarks
from tests.models import byte_tokenizer, random_model

BOS, EOS = 1, 2
LENGTH = 256
WORDS = " ".join(np.random.default_rng(0).choice(["amber", "birch", "cedar", "delta"], 800))
COMMANDS = {
    "passkey": "--lengths 500 700 --depths 2 --keys 1",
    "ruler": "--lengths 1900 --tasks niah_single_1 fwe --samples 2",
    "longbench_e": "--data {root}/data --tasks trec --window 1000 --new-tokens 4",
    "open_llm": "--data {root}/data --tasks truthfulqa hellaswag --limit 3",
    "perplexity": "--text {root}/book.txt --lengths 128 256 --stride 100 --tokens 900",
    "finetune": "--data {root}/books --steps 1 --batch 2 --length 64 --output {root}/tuned",
    "generate": "--prompt café --tokens 4",
}
BEYOND = records.ROOT / "experiments" / records.BEYOND
if BEYOND.is_dir():
    COMMANDS |= {
        "loss_by_position": "--text {root}/book.txt",
        "selections": "--text {root}/book.txt --every 16",
        "learned": "--text {root}/book.txt --data {root}/books --steps 1 --sequences 2",
    }


def adding(template):
    """The byte tokenizer, with a template of what it puts around every text."""
    tokenizer = byte_tokenizer()
    special = [("<s>", BOS), ("</s>", EOS)]
    tokenizer.backend_tokenizer.post_processor = processors.TemplateProcessing(template, special_tokens=special)
    return tokenizer


def without(*names):
    """The byte tokenizer without these special tokens."""
    tokenizer = byte_tokenizer()
    for name in names:
        setattr(tokenizer, name, None)
    return tokenizer


@pytest.fixture
def model(tmp_path):
    """model(tokenizer) -> a directory; beside it are texts and benchmarks."""
    (tmp_path / "books").mkdir()
    for book in (tmp_path / "book.txt", tmp_path / "books" / "one.txt"):
        book.write_text(f"{book.stem} {WORDS}")
    row = {"input": "", "context": "a few words ", "answers": ["?"], "length": 1, "all_classes": ["?"], "_id": "0"}
    rows = [row, row | {"_id": "1", "context": row["context"] * 200}]
    (write_benchmarks(tmp_path / "data") / "trec.jsonl").write_text("".join(json.dumps(one) + "\n" for one in rows))

    def save(tokenizer, name="toy", vocabulary=300):
        random_model(max_position_embeddings=LENGTH, vocab_size=vocabulary).save_pretrained(tmp_path / name)
        tokenizer.save_pretrained(tmp_path / name)
        return tmp_path / name

    return save


@pytest.fixture
def measure(call, tmp_path):
    """measure("perplexity", model, options…) -> (its record, what was measured); or, refused, the sentence."""

    def run(name, folder, *more):
        results = [] if name == "generate" else ["--results", tmp_path / "results"]
        words = COMMANDS[name].replace("--prompt café", "" if "--prompt-file" in more else "--prompt café").split()
        options = [word.format(root=tmp_path) for word in words]
        status, out, err = call(name, "--model", folder, *options, *results, *more)
        last = err.splitlines()[-1] if err else ""
        if status:
            assert status == 2 and last.startswith("error: ") and not (tmp_path / "results").exists(), err
            return last
        made = sorted((tmp_path / "results" / folder.name).rglob(f"{name}/*.json"))
        record = json.loads(made[-1].read_text()) if made else {}
        return record, next((record[key] for key in ("losses", "blocks", "scores") if key in record), out)

    return run


@pytest.fixture
def read(monkeypatch):
    """The ids of every pass through a model, a list each."""
    passes, forward = [], torch.nn.Embedding.forward

    def watched(self, ids):
        passes.extend(ids.tolist() if self.weight.device.type != "meta" else ())
        return forward(self, ids)

    monkeypatch.setattr(torch.nn.Embedding, "forward", watched)
    return passes


@pytest.fixture
def unloaded(monkeypatch):
    """No weights may be loaded."""
    monkeypatch.setattr(BaseModel, "load", lambda *_: pytest.fail("weights were loaded"))


@pytest.mark.parametrize("name", COMMANDS)
def test_eos_after_every_text_changes_nothing(model, measure, read, tmp_path, name):
    """Against a tokenizer that puts BOS first and nothing last."""
    _, plain = measure(name, model(adding("<s> $A"), "plain"))
    (tmp_path / "tuned").exists() and (tmp_path / "tuned").rename(tmp_path / "first")
    expected, read[:] = list(read), []
    _, measured = measure(name, model(adding("<s> $A </s>"), "appends"))
    assert measured == plain and read == expected
    ids = {one for row in read for one in row}
    assert BOS in ids and EOS not in ids
    if name == "finetune":  # beside the weights is the tokenizer that was given
        assert BaseModel(str(tmp_path / "tuned")).stock_tokenizer()("x").input_ids[-1] == EOS


@pytest.mark.parametrize(
    ("tokenizer", "before"),
    [
        (adding("$A </s>"), []),
        (adding("<s> $A </s>"), [BOS]),
        (adding("<s> <s> $A </s> </s>"), [BOS, BOS]),
        (adding("<s> $A"), [BOS]),
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
    assert special_tokens.beginning(prepared) == before and special_tokens.beginning(prepared, bos=False) == []


@pytest.mark.parametrize("name", sorted(COMMANDS.keys() & {"perplexity", "loss_by_position", "learned", "finetune"}))
def test_bos_is_an_option_that_the_record_states_and_follows_the_tokenizer_by_default(model, measure, tmp_path, name):
    plain, llama = model(byte_tokenizer(), "plain"), model(adding("<s> $A"), "llama")
    found = []
    for folder, option in ((plain, []), (llama, ["--no-bos"]), (plain, ["--bos"]), (llama, [])):
        output = ["--output", tmp_path / f"tuned{len(found)}"] if name == "finetune" else []
        found.append(measure(name, folder, *option, *output, "--replace"))
    records, measured = zip(*found)
    assert measured[0] == measured[1] != measured[2] == measured[3]
    assert [record.get("bos") for record in records] == [None, None, True, True]
    assert all(("bos" in record["comparable"]) == ("bos" in record) for record in records if "comparable" in record)


def test_perplexity_of_a_window_that_begins_with_bos_is_that_of_yarns_script(model, measure, tmp_path):
    """The loop of jquesnelle/yarn, eval/perplexity.py, compute_perplexity with add_start_token."""
    record, rows = measure("perplexity", model(adding("<s> $A")), "--method", "original")
    network = random_model(max_position_embeddings=LENGTH)
    text = byte_tokenizer()((tmp_path / "book.txt").read_text(), add_special_tokens=False).input_ids[:900]
    labels, sliding_window = torch.tensor([text]), record["stride"]
    for row in rows:
        nlls, prev_end_loc, max_tokenized_len = [], 0, row["length"] - 1
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
        assert row["window"]["mean"] == pytest.approx(float(torch.stack(nlls).mean().exp()), rel=1e-4)


@pytest.mark.skipif(not BEYOND.is_dir(), reason="is of an experiment beyond the paper")
def test_each_of_the_positions_up_to_the_length_predicts_a_token_after_bos(model, measure, tmp_path):
    record, blocks = measure("loss_by_position", model(adding("<s> $A")), "--method", "original", "--excerpts", "2")
    text = byte_tokenizer()((tmp_path / "book.txt").read_text(), add_special_tokens=False).input_ids
    for begin, found in zip((0, 2 * LENGTH), blocks.values(), strict=True):
        ids = torch.tensor([[BOS, *text[begin : begin + 2 * LENGTH]]])
        with torch.no_grad():
            logits = random_model(max_position_embeddings=LENGTH)(ids[:, :-1]).logits[0]
        losses = torch.nn.functional.cross_entropy(logits, ids[0, 1:], reduction="none")
        assert found == pytest.approx(losses.reshape(-1, record["block"]).mean(1).tolist(), abs=1e-4)


def test_a_text_to_train_on_begins_with_bos(model, measure, read, tmp_path):
    measure("finetune", model(adding("<s> $A")), "--batch", "9", "--length", "512")
    text = byte_tokenizer()((tmp_path / "books" / "one.txt").read_text(), add_special_tokens=False).input_ids
    cut = {tuple([BOS, *text][begin : begin + 512]) for begin in range(0, 9 * 512, 512)}
    assert cut == {tuple(row) for row in read}


# ---------------------------------------------------------------------------------------------------------------------
# What cannot be read, and what can


@pytest.mark.parametrize("name", COMMANDS)
def test_ids_past_the_embedding_are_refused(model, measure, unloaded, name):
    """The byte tokenizer has 259 ids; the model knows 100."""
    assert "embeddings for 100 tokens" in measure(name, model(byte_tokenizer(), vocabulary=100))


@pytest.mark.parametrize("name", ["passkey", "open_llm", "finetune", "generate"])
def test_a_tokenizer_needs_neither_eos_nor_pad_nor_bos(model, measure, tmp_path, name):
    _, plain = measure(name, model(byte_tokenizer(), "plain"))
    (tmp_path / "tuned").exists() and (tmp_path / "tuned").rename(tmp_path / "first")
    assert measure(name, model(without("pad_token", "eos_token", "bos_token"), "none"))[1] == plain


@pytest.mark.parametrize("name", ["perplexity", "finetune"])
def test_bos_that_the_tokenizer_has_not_is_refused(model, measure, unloaded, name):
    assert "--bos" in measure(name, model(without("bos_token")), "--bos")


@pytest.mark.parametrize("field", ["context", "input", "answers", "all_classes", "_id"])
def test_half_a_surrogate_pair_in_jsonl_is_refused_by_file_and_line(model, measure, unloaded, tmp_path, field):
    file = tmp_path / "data" / "trec.jsonl"
    folder, lines = model(byte_tokenizer()), file.read_text().splitlines()
    row = json.loads(lines[1])
    row[field] = ["\ud800"] if isinstance(row[field], list) else "\ud800"
    file.write_text(f"{lines[0]}\n{json.dumps(row)}\n")
    assert f"{file}, line 2" in measure("longbench_e", folder)


def test_half_a_surrogate_pair_is_refused_in_a_prompt_and_in_a_name(call, model, measure, unloaded, tmp_path):
    folder, name = model(byte_tokenizer()), tmp_path / "caf\udce9.txt"  # as Python reads an é of Latin-1
    assert "--prompt" in measure("generate", folder, "--prompt", "caf\udce9")
    name.write_text(WORDS)
    assert "udce9" in measure("perplexity", folder, "--texts", name)
    name.rename(tmp_path / "books" / name.name)
    assert "udce9" in measure("finetune", folder)


def test_parquet_that_is_not_utf8_is_refused_by_name(model, measure, unloaded, tmp_path):
    folder, file = model(byte_tokenizer()), tmp_path / "data" / "hellaswag" / "validation.parquet"
    table = pyarrow.parquet.read_table(file)
    broken = pyarrow.array([b"\xff\xfe"] * table.num_rows).view(pyarrow.string())
    pyarrow.parquet.write_table(table.set_column(table.column_names.index("ctx_a"), "ctx_a", broken), file)
    assert str(file) in measure("open_llm", folder)


def test_an_answer_without_tokens_of_its_own_is_refused_by_benchmark_and_document(model, measure, unloaded):
    """A tokenizer that drops every word of the answers but none of the questions' marks."""
    tokenizer = byte_tokenizer()
    folder = model(tokenizer)
    stated = json.loads((folder / "tokenizer.json").read_text())
    stated["normalizer"] = {"type": "Replace", "pattern": {"Regex": "[a-z ]"}, "content": ""}
    (folder / "tokenizer.json").write_text(json.dumps(stated))
    assert "document truthfulqa/" in measure("open_llm", folder)


# ---------------------------------------------------------------------------------------------------------------------
# Texts as editors on Windows write them

LINES = "".join(f"{word}\n" for word in WORDS.split())
CRLF = LINES.replace("\n", "\r\n")
MARK = "\ufeff"
WRITTEN = {"plain": LINES, "mark": MARK + LINES, "lines": CRLF, "both": MARK + CRLF}


@pytest.mark.parametrize("how", WRITTEN)
def test_a_byte_order_mark_and_line_endings_are_not_read(model, measure, read, tmp_path, how):
    folder = model(byte_tokenizer())
    (tmp_path / "book.txt").write_bytes(WRITTEN[how].encode())
    measure("generate", folder, "--prompt-file", tmp_path / "book.txt")
    assert read[0] == byte_tokenizer()(LINES, add_special_tokens=False).input_ids
    assert texts.files([tmp_path / "book.txt"]) == [Book("book", LINES)]
    (tmp_path / "book.txt").rename(tmp_path / "books" / "one.txt")
    corpus = Corpus(str(tmp_path / "books"))
    assert [book.text for book in corpus.books(0)] == [LINES]
    known = corpus.fingerprint
    (tmp_path / "books" / "one.txt").write_text(LINES)
    assert known == Corpus(corpus.source).fingerprint  # which tells runs apart
    file = tmp_path / "data" / "trec.jsonl"
    samples = longbench.load("trec", file.parent)
    file.write_bytes((how in ("mark", "both")) * MARK.encode() + file.read_bytes().replace(b"\n", b"\r\n"))
    assert longbench.load("trec", file.parent) == samples


@pytest.mark.parametrize("trained", ["plain.txt", "both.txt", "both.parquet"])
def test_a_text_that_was_trained_on_is_known_however_it_was_written(model, measure, tmp_path, trained):
    folder, (how, kind) = model(byte_tokenizer()), trained.split(".")
    (tmp_path / "books" / "one.txt").unlink()
    if kind == "txt":
        (tmp_path / "books" / trained).write_bytes(WRITTEN[how].encode())
    else:
        pyarrow.parquet.write_table(pyarrow.table({"text": [WRITTEN[how]]}), tmp_path / "books" / trained)
    measure("finetune", folder)
    (tmp_path / "results").rename(tmp_path / "of training")
    for name, text in WRITTEN.items():
        (tmp_path / f"{name}.txt").write_bytes(text.encode())
        given = "--texts", tmp_path / f"{name}.txt"
        for script in COMMANDS.keys() & {"perplexity", "loss_by_position"}:
            assert "was trained on" in measure(script, tmp_path / "tuned", *given)
        if BEYOND.is_dir():
            assert "is in the training data" in measure("learned", folder, *given)
