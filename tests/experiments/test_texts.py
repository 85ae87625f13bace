"""Texts as editors on Windows write them, and those that a model was trained on."""

from pathlib import Path

import pyarrow
import pyarrow.parquet
import pytest
import tokenizers
from tokenizers.models import WordLevel
from tokenizers.pre_tokenizers import WhitespaceSplit
from transformers import PreTrainedTokenizerFast

from core import CLEX_FILE, clex
from core.huggingface.embedding import rope_geometry
from experiments.kit import texts
from experiments.kit.texts import Book
from experiments.training import corpus
from records import RESULTS, content_hash
from tests.files import write
from tests.models import checkpoint, fine_tuned, random_model

LINES = "amber\nbirch\ncedar\n" * 200
WRITTEN = "\ufeff" + LINES.replace("\n", "\r\n")


def test_a_byte_order_mark_and_line_endings_are_not_read(tmp_path):
    file = tmp_path / "book.txt"
    file.write_bytes(WRITTEN.encode())
    assert texts.files([file]) == [Book("book", LINES)]
    assert [book.text for book in corpus.books(str(tmp_path), 0)] == [LINES]
    before = corpus.content(str(tmp_path))
    file.write_text(LINES)
    assert corpus.content(str(tmp_path)) == before  # which tells runs apart
    rows = tmp_path / "rows.parquet"
    pyarrow.parquet.write_table(pyarrow.table({"text": [WRITTEN]}), rows)
    assert [book.text for book in texts.files([rows])] == [LINES]


def test_a_file_without_a_row_is_named(tmp_path, capsys):
    pyarrow.parquet.write_table(pyarrow.table({"text": []}), tmp_path / "norows.parquet")
    (tmp_path / "good.txt").write_text(LINES)
    assert [book.title for book in texts.files([tmp_path])] == ["good"]
    assert "norows.parquet" in capsys.readouterr().out


def test_the_first_tokens_of_a_text_are_those_of_the_whole(tmp_path):
    """Also where a word is longer than most."""
    words = [*(f"word{number:02}" for number in range(90)), "a-longer-word-than-others"] * 9
    vocabulary = {word: number for number, word in enumerate(dict.fromkeys(words))}
    backend = tokenizers.Tokenizer(WordLevel(vocabulary | {"?": len(vocabulary)}, unk_token="?"))
    backend.pre_tokenizer = WhitespaceSplit()
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=backend)
    (file := tmp_path / "book.txt").write_text(" ".join(words))
    for count in (80, 91, 182, 364):
        (ids,) = texts.read(tokenizer, texts.files([file]), count, count).values()
        assert ids.tolist() == tokenizer(" ".join(words)).input_ids[:count]


def test_a_text_that_was_trained_on_is_known_however_it_was_written(done, refusal, tmp_path):
    books = tmp_path / "books"
    books.mkdir()
    table = pyarrow.table({"text": [WRITTEN]})
    pyarrow.parquet.write_table(table, books / "one.parquet")
    line = ["--model", checkpoint(tmp_path / "toy"), "--corpus", books]
    line += ["--output", tmp_path / "tuned", "--results", tmp_path / "results"]
    done("finetune --steps 1 --batch 2 --length 64", *line)
    (tmp_path / "plain.txt").write_text(LINES)
    again = tmp_path / "again"
    (tmp_path / "more").mkdir()
    (tmp_path / "more/another.txt").write_text(LINES.replace("e", "a"))
    done(
        *("finetune --steps 1 --batch 2 --length 64 --model", tmp_path / "tuned", "--corpus"),
        *(tmp_path / "more", "--output", again, "--results", tmp_path / "results"),
    )
    exported = tmp_path / "exported"
    done("extend --method pi --model", tmp_path / "tuned", "--output", exported)
    for model in (tmp_path / "tuned", again, exported):
        line = ["--model", model, "--texts", tmp_path / "plain.txt"]
        line += ["--results", tmp_path / "results"]
        # whatever extends it
        for method in ("",) if model == exported else ("", " --method pi"):
            said = refusal(f"perplexity --lengths 128{method}", *line)
            assert "was trained on" in said
    said = refusal("learned --from pi", *line, "--corpus", tmp_path / "more")
    assert "was trained on" in said
    line[1] = again
    said = refusal("learned --from pi", *line, "--corpus", tmp_path / "more")
    assert "is fine-tuned" in said


@pytest.mark.parametrize("name", ["factors.json", "factors.JSON", "factors"])
def test_a_file_of_factors_that_read_a_text_is_known_by_any_name(refusal, tmp_path, name):
    book = Book("a book", LINES)
    (tmp_path / "plain.txt").write_text(LINES)
    read = {"books": [{"title": book.title, "sha256": book.sha256}]}
    write(tmp_path / name, {"factors": [1.5] * 32, "data_facts": read})
    line = ["--file", tmp_path / name, "--texts", tmp_path / "plain.txt"]
    line += ["--results", tmp_path / "results"]
    said = refusal("perplexity --model tiny --method factors --lengths 1024", *line)
    assert "was trained on 'a book'" in said


def test_clex_weights_know_what_they_were_trained_on(refusal, tmp_path):
    folder = checkpoint(tmp_path / "toy")
    model = random_model()
    clex.save(clex.install(model, rope_geometry(model), 2), folder)
    facts = fine_tuned(folder)
    facts["data_facts"]["books"] = [{"title": "a book", "sha256": Book("", LINES).sha256}]
    facts["content"] = content_hash(facts)
    write(folder / "training.json", facts)
    (tmp_path / "plain.txt").write_text(LINES)
    line = ["--model", folder, "--texts", tmp_path / "plain.txt", "--results", tmp_path / "results"]
    for weights in (folder, folder / CLEX_FILE):
        said = refusal("perplexity --method clex --lengths 128 --weights", weights, *line)
        assert "was trained on 'a book'" in said


def test_factors_that_were_learned_on_a_model_of_another_length_are_refused(refusal, tmp_path):
    """Both models have 32 pairs."""
    record = RESULTS / "smollm2/beyond/learned/from=yarn_s=2_seed=0.json"
    line = ["--file", record, "--results", tmp_path / "results"]
    said = refusal("perplexity --model tiny --method factors --factor 2 --lengths 1024", *line)
    assert "16384" in said and "2048" in said


@pytest.mark.parametrize("stated", [5, None, {"books": [1]}, {"books": [{"title": "a"}]}])
def test_a_file_of_factors_that_cannot_say_what_it_read_is_refused(refusal, tmp_path, stated):
    file = tmp_path / "factors.json"
    write(file, {"factors": [1.5] * 32, "data_facts": stated})
    line = ["--file", file, "--results", tmp_path / "results"]
    said = refusal("perplexity --model tiny --method factors --lengths 1024", *line)
    assert "data_facts" in said and str(file) in said


def test_a_text_is_a_path_or_is_named_by_its_kind_and_number(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("Dune: a novel.txt", "plays:2"):
        Path(name).write_text(name)
    given = ["Dune: a novel.txt", "./plays:2"]
    books = texts.named([texts.source(name) for name in given])
    assert [book.text for book in books] == ["Dune: a novel.txt", "plays:2"]
    assert texts.named([texts.source("parts:3")]) == texts.parts(3)


def test_plays_are_whole_and_free_of_the_licence_text():
    plays = {play.title: play.text for play in texts.plays(texts.PLAYS)}
    assert len(plays) == texts.PLAYS
    assert "To be, or not to be" in plays["Hamlet"]
    for text in plays.values():
        assert len(text) > 80_000
        assert "GUTENBERG" not in text.upper()
