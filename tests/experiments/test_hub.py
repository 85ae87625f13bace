"""What is read of the Hugging Face hub, against a stand-in on this machine; another host is never asked.

A process of its own reads; its libraries are told another address and another cache than they were imported with.
"""

import concurrent.futures
import contextlib
import importlib
import io
import multiprocessing
import os
import socket
import sys
import time

import pyarrow
import pyarrow.parquet
import pytest

from core.errors import InputError
from eval import hub
from experiments.kit import records
from experiments.training import corpus
from tests.models import byte_tokenizer, random_model
from tests.standin import Hub

GATED, OWN, TOKEN = "meta-llama/Llama-2-7b-hf", "someone/model", "hf_right"
FIRST, SECOND = "1" * 40, "2" * 40  # commits of the model that nobody pins
SHARDS, GROUP = 3, 4  # of PG19's training split; books of a row group


# ---- repositories


def write_table(file, rows, **options):
    file.parent.mkdir(parents=True, exist_ok=True)
    pyarrow.parquet.write_table(pyarrow.Table.from_pylist(rows), file, **options)


def write_model(folder):
    """The files of Llama-2's repository that are read: weights in shards, a fast tokenizer, and no code."""
    random_model(max_position_embeddings=64).save_pretrained(folder, max_shard_size="60KB")
    byte_tokenizer().save_pretrained(folder)
    assert (folder / "model.safetensors.index.json").is_file() and (folder / "generation_config.json").is_file()


def write_pg19(folder):
    """The (title, text) of its training books."""

    def book(split, number):
        text = "" if number == 5 else f"{split} {number} " + "a word and another " * (number + 20)
        facts = {"short_book_title": f"{split} book {number}", "publication_date": 1850 + number}
        return {**facts, "url": f"http://www.gutenberg.org/ebooks/{number}", "text": text}

    numbers, books = iter(range(1000)), []
    for split, shards in {"train": SHARDS, "validation": 1, "test": 1}.items():
        for shard in range(shards):
            rows = [book(split, next(numbers)) for _ in range(2 * GROUP)]
            file = folder / "data" / f"{split}-{shard:05}-of-{shards:05}-{shard:016x}.parquet"
            write_table(file, rows, row_group_size=GROUP)
            books += [(row["short_book_title"], row["text"]) for row in rows if split == "train"]
    return books


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    """The stand-in with a gated model, a model that nobody pins, and PG19."""
    folder = tmp_path_factory.mktemp("hub")
    write_model(folder / GATED)
    stand_in = Hub({**hub.REVISIONS, OWN: FIRST})
    stand_in.books = write_pg19(folder / corpus.HUB)
    stand_in.folder = folder
    stand_in.add("models", GATED, folder / GATED, TOKEN)
    stand_in.add("models", OWN, folder / GATED)
    stand_in.add("datasets", corpus.HUB, folder / corpus.HUB)
    yield stand_in
    stand_in.close()


# ---- the process that reads


@pytest.fixture(scope="module")
def reader(served, tmp_path_factory):
    """reader(function, *arguments): what it returns in the process that takes the stand-in for the hub."""
    context, cache = multiprocessing.get_context("spawn"), tmp_path_factory.mktemp("cache")
    pool = concurrent.futures.ProcessPoolExecutor(1, context, _take_for_hub, (served.url, cache))
    yield lambda function, *arguments: pool.submit(function, *arguments).result(timeout=100)
    pool.submit(os._exit, 0)  # without waiting for what the libraries do at the end
    pool.shutdown()


def _take_for_hub(url, cache):
    """As HF_ENDPOINT and HF_HOME would, were they set from the beginning."""
    from huggingface_hub import constants, hf_api

    constants.ENDPOINT = hf_api.api.endpoint = url
    constants.HUGGINGFACE_CO_URL_TEMPLATE = url + "/{repo_id}/resolve/{revision}/{filename}"
    constants.HF_HUB_CACHE, constants.HF_TOKEN_PATH = str(cache / "hub"), str(cache / "token")
    constants.HF_HUB_DISABLE_TELEMETRY = constants.HF_HUB_DISABLE_XET = True
    connect = socket.socket.connect

    def checked(self, address):
        assert address[0] == "127.0.0.1", address
        return connect(self, address)

    socket.socket.connect = checked


def command(token, name, *arguments):
    """(exit status, stdout, stderr) of `python -m experiments.NAME arguments…` with this token, or None."""
    from experiments.kit import command_line

    os.environ["HF_TOKEN"] = token or ""
    sys.argv = [name, *map(str, arguments)]
    out, err, status = io.StringIO(), io.StringIO(), 0
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            command_line.run(importlib.import_module(f"experiments.{name}").main)
        except SystemExit as stop:
            status = stop.code
    return status, out.getvalue(), err.getvalue()


def forget():
    """As a new process begins, but for what is on the disk."""
    from huggingface_hub import constants

    constants.HF_HUB_OFFLINE = False
    hub.reach.cache_clear()


@pytest.fixture(autouse=True)
def anew(reader):
    reader(forget)


# ---- models


def test_a_gated_model_without_a_token_is_one_sentence_before_any_work(served, reader, tmp_path):
    served.asked.clear()
    status, out, err = reader(command, None, "passkey", "--model", "llama2-7b", "--results", tmp_path / "results")
    assert (status, out, err.count("\n")) == (2, "", 1)
    assert f"{served.url}/{GATED}" in err and "hf auth login" in err and "HF_TOKEN" in err
    assert served.asked == [("HEAD", f"/{GATED}/resolve/{hub.REVISIONS[GATED]}/config.json")]
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("name", ["llama2-7b", "someone/nobody", "someone/busy", "./nowhere", "nothing.GGUF"])
def test_what_is_not_there_is_one_sentence_with_and_without_an_output(served, reader, tmp_path, name):
    served.busy, outputs = "someone/busy", ([], ["--output", tmp_path / "out"])
    said = [reader(command, None, "extend", "--model", name, *output) for output in outputs]
    assert said[0] == said[1] and said[0][:2] == (2, "") and said[0][2].count("\n") == 1
    assert ("too busy" in said[0][2]) == (name == served.busy) and not list(tmp_path.iterdir())


def test_a_model_of_the_hub_is_extended(reader, tmp_path):
    status, _, err = reader(command, None, "extend", "--model", OWN, "--output", tmp_path / "out")
    assert status == 0 and (tmp_path / "out" / "model.safetensors.index.json").is_file(), err


def loaded(name):
    import torch

    from experiments.kit.base_model import BaseModel

    os.environ["HF_TOKEN"] = TOKEN
    base = BaseModel(name)
    with torch.no_grad():
        logits = base.load()(torch.arange(40)[None]).logits
    text = base.tokenizer.decode(base.tokenizer("Ünï code").input_ids)
    return logits.sum().item(), text, base.stated_length, base.provenance


def test_the_gated_model_by_name_is_the_one_that_the_hub_has(served, reader):
    *found, provenance = reader(loaded, GATED)
    *wanted, local = reader(loaded, str(served.folder / GATED))
    assert found == wanted
    content = {key: local[key] for key in ("tokenizer", "config")}
    assert provenance == {"source": GATED, "sha256": {}, "revision": hub.REVISIONS[GATED], **content}
    assert "revision" not in local
    resolved = {path.split("/resolve/")[1].split("/")[0] for _, path in served.asked if f"{GATED}/resolve/" in path}
    assert resolved == {hub.REVISIONS[GATED]}


def facts_of(name):
    from experiments.kit.base_model import BaseModel

    hub.reach.cache_clear()
    return BaseModel(name).provenance, BaseModel(name).facts(2)


def test_a_model_that_nobody_pinned_is_known_by_its_commit(served, reader, tmp_path):
    for commit in (FIRST, SECOND):
        served.commits[OWN] = commit
        provenance, facts = reader(facts_of, OWN)
        assert provenance["revision"] == facts["revision"] == commit and provenance["sha256"] == {}
        with contextlib.nullcontext() if commit == FIRST else pytest.raises(InputError, match="another model"):
            records.state_model(tmp_path, "model", facts)


# ---- training text


def books(seed):
    return [(book.title, book.text) for book in corpus.Corpus("hub").books(seed)]


def test_the_books_are_those_of_the_training_split(served, reader):
    rows = [book for book in served.books if book[1]]  # one has no text
    assert len(rows) == SHARDS * 2 * GROUP - 1 and rows[0][0] == "train book 0"
    shuffled = [reader(books, seed) for seed in (0, 0, 1)]
    assert shuffled[0] == shuffled[1] != shuffled[2] and sorted(shuffled[0]) == sorted(shuffled[2]) == sorted(rows)


# ---- a hub that does not answer


def refusal(function, *arguments):
    """(seconds, message) of the InputError."""
    hub.PATIENCE, started = 0.5, time.monotonic()
    try:
        function(*arguments)
    except InputError as error:
        return time.monotonic() - started, str(error)
    finally:
        hub.PATIENCE = 10


def configured(name):
    from experiments.kit.base_model import BaseModel

    return BaseModel(name).config.to_dict()


def test_a_hub_that_does_not_answer_is_no_wait_of_minutes_and_what_is_here_is_read(served, reader):
    before = reader(configured, OWN)
    served.silent = True
    reader(forget)
    seconds, message = reader(refusal, configured, "someone/else")
    assert seconds < 3 and "\n" not in message
    assert reader(configured, OWN) == before
    served.silent = False
