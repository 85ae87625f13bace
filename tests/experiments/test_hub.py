"""What is read of the Hugging Face hub, against a stand-in on this machine; another host is never
asked."""

import contextlib
import socket
import time

import pyarrow
import pyarrow.parquet
import pytest
import torch
from huggingface_hub import constants, hf_api
from transformers.utils import hub as transformers_hub

from core.errors import InputError
from eval import hub
from experiments.kit import records
from experiments.kit.base_model import BaseModel
from experiments.training import corpus
from tests.models import byte_tokenizer, random_model
from tests.standin import Hub

GATED = "meta-llama/Llama-2-7b-hf"
OWN = "someone/model"
TOKEN = "hf_right"
# commits of the model that nobody pins
FIRST = "1" * 40
SECOND = "2" * 40
# of PG19's training split; books of a row group
SHARDS = 3
GROUP = 4


def write_model(folder):
    """The files of Llama-2's repository that are read: weights in shards, a fast tokenizer, and no
    code."""
    random_model(max_position_embeddings=64).save_pretrained(folder, max_shard_size="60KB")
    byte_tokenizer().save_pretrained(folder)


def write_pg19(folder):
    """The (title, text) of its training books."""
    (folder / "data").mkdir(parents=True)
    numbers = iter(range(1000))
    books = []
    for split, shards in {"train": SHARDS, "validation": 1, "test": 1}.items():
        for shard in range(shards):
            of_shard = [
                (f"{split} book {n}", "a word and another " * (n + 20) if n != 5 else "")
                for n, _ in zip(numbers, range(2 * GROUP))
            ]
            rows = [{"short_book_title": title, "text": text} for title, text in of_shard]
            file = folder / "data" / f"{split}-{shard:05}-of-{shards:05}-{shard:016x}.parquet"
            pyarrow.parquet.write_table(pyarrow.Table.from_pylist(rows), file, row_group_size=GROUP)
            books += of_shard if split == "train" else []
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


@pytest.fixture(scope="module")
def cache(tmp_path_factory):
    return tmp_path_factory.mktemp("cache")


@pytest.fixture(autouse=True)
def taken_for_the_hub(served, cache, monkeypatch):
    """As by HF_ENDPOINT and HF_HOME, and as a new process begins, but for what is on the disk."""
    changes = {
        "ENDPOINT": served.url,
        "HUGGINGFACE_CO_URL_TEMPLATE": served.url + "/{repo_id}/resolve/{revision}/{filename}",
        "HF_HUB_CACHE": str(cache / "hub"),
        "HF_TOKEN_PATH": str(cache / "token"),
        "HF_HUB_DISABLE_TELEMETRY": True,
        "HF_HUB_DISABLE_XET": True,
        "HF_HUB_OFFLINE": False,
    }
    for name, value in changes.items():
        monkeypatch.setattr(constants, name, value)
    monkeypatch.setattr(hf_api.api, "endpoint", served.url)
    monkeypatch.setattr(
        transformers_hub, "_hf_api", None
    )  # transformers' own, which it keeps once it is made
    monkeypatch.setenv("HF_TOKEN", "")
    connect = socket.socket.connect

    def checked(self, address):
        assert address[0] == "127.0.0.1", address
        return connect(self, address)

    monkeypatch.setattr(socket.socket, "connect", checked)
    hub.reach.cache_clear()
    yield
    hub.reach.cache_clear()


def test_a_gated_model_without_a_token_is_one_sentence_before_any_work(served, call, tmp_path):
    served.asked.clear()
    status, out, err = call("passkey", "--model", "llama2-7b", "--results", tmp_path / "results")
    assert (status, out, err.count("\n")) == (2, "", 1)
    assert f"{served.url}/{GATED}" in err and "hf auth login" in err and "HF_TOKEN" in err
    assert served.asked == [("HEAD", f"/{GATED}/resolve/{hub.REVISIONS[GATED]}/config.json")]
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    "name", ["llama2-7b", "someone/nobody", "someone/busy", "./nowhere", "nothing.GGUF"]
)
def test_what_is_not_there_is_one_sentence_with_and_without_an_output(served, call, tmp_path, name):
    served.busy = "someone/busy"
    outputs = ([], ["--output", tmp_path / "out"])
    said = [call("extend", "--model", name, *output) for output in outputs]
    assert said[0] == said[1] and said[0][:2] == (2, "") and said[0][2].count("\n") == 1
    assert ("too busy" in said[0][2]) == (name == served.busy) and not list(tmp_path.iterdir())


def test_a_model_of_the_hub_is_extended(call, tmp_path):
    status, _, err = call("extend", "--model", OWN, "--output", tmp_path / "out")
    assert status == 0 and (tmp_path / "out" / "model.safetensors.index.json").is_file(), err


def loaded(name):
    base = BaseModel(name)
    with torch.no_grad():
        logits = base.load()(torch.arange(40)[None]).logits
    return (
        logits.sum().item(),
        base.tokenizer("Ünï code").input_ids,
        base.stated_length,
        base.provenance,
    )


def test_the_gated_model_by_name_is_the_one_that_the_hub_has(served, monkeypatch):
    monkeypatch.setenv("HF_TOKEN", TOKEN)
    *found, provenance = loaded(GATED)
    *wanted, local = loaded(str(served.folder / GATED))
    assert found == wanted
    content = {key: local[key] for key in ("tokenizer", "config")}
    assert provenance == {
        "source": GATED,
        "sha256": {},
        "revision": hub.REVISIONS[GATED],
        **content,
    }
    assert "revision" not in local
    resolved = {
        path.split("/resolve/")[1].split("/")[0]
        for _, path in served.asked
        if f"{GATED}/resolve/" in path
    }
    assert resolved == {hub.REVISIONS[GATED]}


def test_a_model_that_nobody_pinned_is_known_by_its_commit(served, tmp_path):
    for commit in (FIRST, SECOND):
        served.commits[OWN] = commit
        hub.reach.cache_clear()
        provenance = BaseModel(OWN).provenance
        facts = BaseModel(OWN).facts(2)
        assert provenance["revision"] == facts["revision"] == commit and provenance["sha256"] == {}
        with (
            contextlib.nullcontext()
            if commit == FIRST
            else pytest.raises(InputError, match="another model")
        ):
            records.state_model(tmp_path, "model", facts)


def test_the_books_are_those_of_the_training_split(served):
    def books(seed):
        return [(book.title, book.text) for book in corpus.Corpus("hub").books(seed)]

    rows = [book for book in served.books if book[1]]  # one has no text
    assert len(rows) == SHARDS * 2 * GROUP - 1 and rows[0][0] == "train book 0"
    shuffled = [books(seed) for seed in (0, 0, 1)]
    assert shuffled[0] == shuffled[1] != shuffled[2] and sorted(shuffled[0]) == sorted(
        shuffled[2]
    ) == sorted(rows)


def test_a_hub_that_does_not_answer_is_no_wait_of_minutes_and_what_is_here_is_read(
    served, monkeypatch
):
    before = BaseModel(OWN).config.to_dict()
    monkeypatch.setattr(served, "silent", True)
    monkeypatch.setattr(hub, "PATIENCE", 0.5)
    hub.reach.cache_clear()
    started = time.monotonic()
    with pytest.raises(InputError, match="^[^\n]*$"):
        print(BaseModel("someone/else").config)
    assert time.monotonic() - started < 3 and BaseModel(OWN).config.to_dict() == before
