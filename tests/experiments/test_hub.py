"""What is read of the Hugging Face hub, against a stand-in on this machine; another host is never
asked."""

import shutil
import socket
import time

import pyarrow
import pyarrow.parquet
import pytest
import torch
from huggingface_hub import constants, hf_api
from transformers.utils import hub as transformers_hub

import records
from core import clex, files
from core.errors import InputError
from core.extend import export
from eval import hub
from experiments.kit.model import resolve
from experiments.training import corpus
from tests.core.clex_models import clex_model
from tests.files import edit, read
from tests.models import byte_tokenizer, fine_tuned, random_model
from tests.standin import Hub, Repository

GATED = "meta-llama/Llama-2-7b-hf"
OWN = "someone/model"
TUNED = "someone/tuned"
TOKEN = "hf_right"
# commits of the model that nobody pins
FIRST = "1" * 40
SECOND = "2" * 40
SHARDS = 3


def write_pg19(folder):
    """The (title, text) of its training books, one of which has no text."""
    (folder / "data").mkdir(parents=True)
    training = []
    for split, count in {"train": SHARDS, "validation": 1}.items():
        for shard in range(count):
            titles = [f"{split} book {shard} {number}" for number in range(4)]
            texts = ["" if title.endswith("0 2") else f"the text of {title}" for title in titles]
            file = folder / f"data/{split}-{shard:05}-of-{count:05}-{shard:016x}.parquet"
            pyarrow.parquet.write_table(
                pyarrow.table({"short_book_title": titles, "text": texts}), file
            )
            if split == "train":
                training += zip(titles, texts, strict=True)
    return training


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    """The stand-in with a gated model, the same as a model that nobody pins, and PG19."""
    folder = tmp_path_factory.mktemp("hub")
    model = folder / "model"  # weights in shards, as Llama-2's
    random_model(max_position_embeddings=64).save_pretrained(model, max_shard_size="60KB")
    byte_tokenizer().save_pretrained(model)
    tuned = folder / "tuned"  # a fine-tune with CLEX
    export(clex_model(), tuned)
    byte_tokenizer().save_pretrained(tuned)
    facts = fine_tuned(tuned, method="clex")
    facts["data_facts"]["books"] = [{"title": "a book", "sha256": "abc"}]
    files.write_json(tuned / "training.json", facts | {"content": records.content_hash(facts)})
    books = write_pg19(folder / "pg19")
    stand_in = Hub(
        {
            f"models/{GATED}": Repository(model, hub.REVISIONS[GATED], TOKEN),
            f"models/{OWN}": Repository(model, FIRST),
            f"models/{TUNED}": Repository(tuned, FIRST),
            f"datasets/{corpus.HUB}": Repository(folder / "pg19", hub.REVISIONS[corpus.HUB]),
        }
    )
    stand_in.model = model
    stand_in.tuned = tuned
    stand_in.books = books
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
    monkeypatch.setattr(transformers_hub, "_hf_api", None)  # which transformers keeps
    monkeypatch.setenv("HF_TOKEN", "")
    connect = socket.socket.connect

    def checked(self, address):
        assert address[0] == "127.0.0.1", address
        return connect(self, address)

    monkeypatch.setattr(socket.socket, "connect", checked)
    hub.reach.cache_clear()
    yield
    hub.reach.cache_clear()


def test_a_gated_model_without_a_token_is_one_sentence_before_any_work(served, refusal, tmp_path):
    served.asked.clear()
    said = refusal("passkey --model llama2-7b --results", tmp_path / "results")
    assert f"{served.url}/{GATED}" in said
    assert "hf auth login" in said
    assert "HF_TOKEN" in said
    assert served.asked == [("HEAD", f"/{GATED}/resolve/{hub.REVISIONS[GATED]}/config.json")]
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    "name", ["llama2-7b", "someone/nobody", "someone/busy", "./nowhere", "nothing.GGUF"]
)
def test_what_is_not_there_is_one_sentence_with_and_without_an_output(
    served, refusal, tmp_path, name
):
    served.busy = "models/someone/busy"
    said = refusal("extend --method pi --model", name)
    assert said == refusal("extend --method pi --model", name, "--output", tmp_path / "out")
    assert ("too busy" in said) == (name == "someone/busy")
    assert not list(tmp_path.iterdir())


def test_a_model_of_the_hub_is_extended(done, tmp_path):
    done("extend --method pi --model", OWN, "--output", tmp_path / "out")
    assert (tmp_path / "out/model.safetensors.index.json").is_file()


def test_weights_on_the_hub_that_do_not_fit_are_refused_before_any_work(served, refusal, tmp_path):
    """A fine-tune gets them first; an evaluation reads what is there."""
    bent = shutil.copytree(served.model, tmp_path / "bent")
    edit(bent / "config.json", num_hidden_layers=1)
    served.repositories["models/someone/bent"] = Repository(bent, FIRST)
    on = ("--corpus", "books", "--steps", 1, "--output", tmp_path / "out", "--dtype", "float32")
    said = refusal("finetune --method pi --model someone/bent", *on)
    assert "do not fit its config.json" in said
    assert not any(path.suffix for path in tmp_path.glob("out*"))
    with pytest.raises(InputError, match="do not fit its config.json"):
        print(resolve("someone/bent").config)


def test_the_gated_model_by_name_is_the_one_that_the_hub_has(served, monkeypatch):
    monkeypatch.setenv("HF_TOKEN", TOKEN)
    by_name = resolve(GATED)
    local = resolve(str(served.model))
    ids = torch.arange(40)[None]
    with torch.no_grad():
        assert torch.equal(by_name.load()(ids).logits, local.load()(ids).logits)
    content = {key: local.identity[key] for key in ("tokenizer", "config")}
    pinned = hub.REVISIONS[GATED]
    assert by_name.identity == {"source": GATED, "sha256": {}, "revision": pinned, **content}
    prefix = f"/{GATED}/resolve/"
    paths = [path for _, path in served.asked if path.startswith(prefix)]
    assert {path.removeprefix(prefix).split("/")[0] for path in paths} == {pinned}


def test_a_fine_tune_by_its_name_is_the_one_in_its_directory(served):
    model = resolve(TUNED, as_it_is=True)
    assert model.training["run"]["method"] == "clex"
    assert model.learned_from == [{"title": "a book", "sha256": "abc"}]
    assert clex.is_installed(model.load())
    facts = read(served.tuned / "training.json")
    assert model.identity["sha256"] == facts["sha256"] and "revision" not in model.identity
    assert resolve(OWN, as_it_is=True).training is None


def test_a_model_that_nobody_pinned_is_known_by_its_commit(served, tmp_path):
    def facts(commit):
        served.repositories[f"models/{OWN}"].commit = commit
        hub.reach.cache_clear()
        base = resolve(OWN)
        assert base.identity["sha256"] == {}
        assert base.identity["revision"] == commit
        return base.facts(2)

    records.state_model(tmp_path, "model", facts(FIRST))
    with pytest.raises(InputError, match="another model"):
        records.state_model(tmp_path, "model", facts(SECOND))


def test_the_books_are_those_of_the_training_split(served):
    def books(seed):
        return [(book.title, book.text) for book in corpus.books("hub", seed)]

    rows = [book for book in served.books if book[1]]
    assert len(rows) == SHARDS * 4 - 1
    assert books(0) == books(0) != books(1)
    assert sorted(books(0)) == sorted(books(1)) == sorted(rows)
    for _, path in served.asked:
        assert corpus.HUB not in path or hub.REVISIONS[corpus.HUB] in path


@pytest.mark.parametrize("silent", ["says nothing", "drips"])
def test_a_hub_that_does_not_answer_is_no_wait_of_minutes_and_what_is_here_is_read(
    served, monkeypatch, silent
):
    before = resolve(OWN).config.to_dict()
    monkeypatch.setattr(served, "silent", silent)
    monkeypatch.setattr(hub, "PATIENCE", 0.5)
    hub.reach.cache_clear()
    started = time.monotonic()
    with pytest.raises(InputError, match="^[^\n]*$"):
        print(resolve("someone/else").config)
    assert time.monotonic() - started < 3
    assert resolve(OWN).config.to_dict() == before
