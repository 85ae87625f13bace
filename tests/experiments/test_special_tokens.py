"""What a model reads before a prompt: what its tokenizer sets by default, once, and within the length."""

import json

import pytest
from tokenizers import processors

from eval import longbench
from experiments.kit.base_model import BaseModel
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


TEMPLATE = (
    "<s>{% for message in messages %}[{{ message['role'] }}] {{ message['content'] }} [end]{% endfor %}"
    "{% if add_generation_prompt %}[assistant]{% endif %}"
)
RULER = ["ruler", "--lengths", "1900", "--samples", "2"]


@pytest.fixture
def chatting(model):
    """The model, while its tokenizer has a chat template that holds <s>."""
    tokenizer = like_llama()
    tokenizer.chat_template = TEMPLATE
    tokenizer.save_pretrained(model)
    yield model
    (model / "chat_template.jinja").unlink()
    like_llama().save_pretrained(model)


@pytest.mark.parametrize(
    ("line", "begun"),
    [
        (["passkey", "--lengths", "500", "--depths", "2", "--keys", "1"], " The pass key is"),
        ([*RULER, "--tasks", "niah_single_1"], " The special magic number for "),
        ([*RULER, "--tasks", "fwe"], " Answer: According to the coded text above, the three"),
    ],
)
def test_chat_asks_in_the_template_and_begins_the_answer(chatting, asked, call, tmp_path, line, begun):
    requests, said = asked(*line, "--chat")
    for request in requests:
        text = like_llama().decode(request.prompt)
        head, _, tail = text.partition(" [end][assistant]")
        assert head.startswith("<s>[user] ") and text.count("<s>") == 1 and tail.startswith(begun)
        assert begun not in head and len(request.prompt) == said[request.key]["tokens"]
        assert len(request.prompt) + request.max_new_tokens <= int(request.key.split("/")[0])
    (file,) = (tmp_path / "results" / "toy" / line[0]).glob("*_chat.json")
    record = json.loads(file.read_text())
    assert "chat" in record["comparable"] and record["chat"]
    assert call(line[0], "--model", chatting, "--results", tmp_path / "results", *line[1:])[0] == 0
    assert "chat" not in json.loads(file.with_name("as-it-is.json").read_text())  # which stands beside it


def test_longbench_asks_in_the_template_but_for_examples_and_code(chatting, asked, tmp_path):
    """As its pred.py: trec, triviaqa, samsum, lcc and repobench-p are to be continued."""
    (tmp_path / "data").mkdir()
    row = {"input": "", "context": "words", "answers": ["Paragraph 1"], "length": 1, "all_classes": ["Paragraph 1"]}
    for task in longbench.TASKS:
        answer = {"answers": ["1"]} if task == "passage_count" else {}
        (tmp_path / "data" / f"{task}.jsonl").write_text(json.dumps(row | {"_id": task} | answer))
    requests, _ = asked("longbench_e", "--benchmarks", tmp_path / "data", "--chat")
    plain = {request.key.split("/")[0] for request in requests if like_llama().decode(request.prompt)[3:4] != "["}
    assert plain == {"trec", "triviaqa", "samsum", "lcc", "repobench-p"}
    assert all(request.prompt.count(BOS) == 1 for request in requests)


@pytest.mark.parametrize("name", ["passkey", "ruler", "longbench_e"])
@pytest.mark.parametrize("template", ["", "{{ raise_exception('no system') }}"])
def test_chat_without_a_template_that_works_is_refused(model, call, tmp_path, monkeypatch, name, template):
    monkeypatch.setattr(BaseModel, "load", lambda *_: pytest.fail("weights were loaded"))
    tokenizer = BaseModel(str(model)).tokenizer
    tokenizer.chat_template = template or None
    monkeypatch.setattr(BaseModel, "tokenizer", tokenizer)
    data = ["--benchmarks", tmp_path] if name == "longbench_e" else []
    status, _, err = call(name, "--model", model, "--chat", *data, "--results", tmp_path / "results")
    assert status == 2 and "chat template" in err and err.count("\n") == 1


def test_longbench_puts_it_before_what_it_has_cut_as_well(asked, tmp_path):
    (tmp_path / "data").mkdir()
    row = {"input": "", "context": "a few words ", "answers": ["?"], "length": 1, "all_classes": ["?"]}
    rows = [row | {"_id": "short"}, row | {"_id": "long", "context": row["context"] * 200}]
    (tmp_path / "data" / "trec.jsonl").write_text("".join(json.dumps(one) + "\n" for one in rows))
    requests, _ = asked("longbench_e", "--benchmarks", tmp_path / "data", "--tasks", "trec", "--window", "1000")
    assert len(requests[1].prompt) > len(requests[0].prompt)
    assert all(request.prompt[0] == BOS and request.prompt.count(BOS) == 1 for request in requests)


def test_tiny_whose_records_are_committed_reads_none():
    tokenizer = BaseModel("tiny").tokenizer
    text = "There is an important info hidden inside a lot of irrelevant text."
    assert tokenizer(text).input_ids == tokenizer(text, add_special_tokens=False).input_ids
