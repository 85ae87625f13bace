"""What a model reads before a prompt: what its tokenizer sets by default, once, within the length;
and --chat."""

import json

import pytest

from eval import longbench
from experiments.kit.base_model import BaseModel
from tests.models import byte_tokenizer, checkpoint

BOS = 1
LENGTH = 2048
PASSKEY = ["passkey", "--lengths", "500", "--depths", "2", "--keys", "1"]
RULER = ["ruler", "--lengths", "1900", "--samples", "1", "--tasks", "fwe"]
TEMPLATE = (
    "<s>{% for message in messages %}[{{ message['role'] }}] {{ message['content'] }} [end]{% "
    "endfor %}"
    "{% if add_generation_prompt %}[assistant]{% endif %}"
)
# As of several vision models: it takes typed parts, and a text has none.
PARTS = TEMPLATE.replace("message['content']", "message['content'] | map(attribute='text') | join")


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    """Its tokenizer puts <s> before every text, and has a chat template that holds <s>."""
    tokenizer = byte_tokenizer("<s> $A")
    tokenizer.chat_template = TEMPLATE
    return checkpoint(
        tmp_path_factory.mktemp("model") / "toy", tokenizer, max_position_embeddings=LENGTH
    )


@pytest.fixture
def requests_of(call, model, tmp_path, monkeypatch):
    """requests_of("passkey", options…) -> the requests that are generated from, and their
    values."""

    def run(name, *options):
        requests = []

        def generate(_, own):
            requests.extend(own)
            return [(request.key, []) for request in own]

        monkeypatch.setattr("eval.generation.generate", generate)
        status, _, err = call(name, "--model", model, "--results", tmp_path / "results", *options)
        assert status == 0, err
        (file,) = (tmp_path / "runs" / "toy" / name).glob("*.jsonl")
        return requests, {
            key: entry["value"] for key, entry in map(json.loads, file.read_text().splitlines())
        }

    return run


@pytest.mark.parametrize("line", [PASSKEY, RULER])
def test_a_prompt_begins_with_it_once_and_keeps_to_its_length(requests_of, line):
    requests, values = requests_of(*line)
    for request in requests:
        assert request.prompt[0] == BOS and request.prompt.count(BOS) == 1
        assert len(request.prompt) == values[request.key]["tokens"]
        assert len(request.prompt) + request.max_new_tokens <= int(request.key.split("/")[0])


@pytest.mark.parametrize(
    ("line", "begun", "template"),
    [
        (PASSKEY, " The pass key is", TEMPLATE),
        (PASSKEY, " The pass key is", PARTS),
        (RULER, " Answer: According to the coded text above, the three", TEMPLATE),
    ],
)
def test_chat_asks_in_the_template_and_begins_the_answer(
    requests_of, model, tmp_path, line, begun, template
):
    (model / "chat_template.jinja").write_text(template)
    requests, values = requests_of(*line, "--chat")
    for request in requests:
        text = byte_tokenizer().decode(request.prompt)
        head, _, tail = text.partition(" [end][assistant]")
        assert head.startswith("<s>[user] ") and text.count("<s>") == 1 and tail.startswith(begun)
        assert (
            begun not in head
            and len(head) > 99
            and len(request.prompt) == values[request.key]["tokens"]
        )
        assert len(request.prompt) + request.max_new_tokens <= int(request.key.split("/")[0])
    record = json.loads((tmp_path / "results" / "toy" / line[0] / "as-it-is_chat.json").read_text())
    assert "chat" in record["comparable"] and record["run"]["chat"]


def test_longbench_asks_in_the_template_but_for_examples_and_code(requests_of, tmp_path):
    """As its pred.py: trec, triviaqa, samsum, lcc and repobench-p are to be continued. What is cut
    begins so, too."""
    (tmp_path / "data" / "longbench_e").mkdir(parents=True)
    row = {
        "input": "",
        "context": "words " * 400,
        "answers": ["Paragraph 1"],
        "length": 1,
        "all_classes": None,
    }
    for task in longbench.TASKS:
        change = {
            "trec": {"all_classes": ["Paragraph 1"]},
            "passage_count": {"answers": ["1"]},
        }.get(task, {})
        (tmp_path / "data" / "longbench_e" / f"{task}.jsonl").write_text(
            json.dumps(row | {"_id": task} | change)
        )
    requests, _ = requests_of(
        "longbench_e", "--benchmarks", tmp_path / "data", "--chat", "--window", "1000"
    )
    plain = {
        request.key.split("/")[0]
        for request in requests
        if byte_tokenizer().decode(request.prompt)[3:4] != "["
    }
    assert plain == {"trec", "triviaqa", "samsum", "lcc", "repobench-p"}
    assert all(request.prompt[0] == BOS and request.prompt.count(BOS) == 1 for request in requests)


CHANGED = (TEMPLATE.replace("['content']", f"['content']{how}") for how in ("[:99]", " | upper"))


@pytest.mark.parametrize("template", ["", "{{ raise_exception('no system') }}", *CHANGED, "[user]"])
def test_chat_without_a_template_that_works_is_refused(
    model, call, tmp_path, monkeypatch, template
):
    monkeypatch.setattr(BaseModel, "load", lambda *_: pytest.fail("weights were loaded"))
    tokenizer = BaseModel(str(model)).tokenizer
    tokenizer.chat_template = template or None
    monkeypatch.setattr(BaseModel, "tokenizer", tokenizer)
    status, _, err = call(*PASSKEY, "--model", model, "--chat", "--results", tmp_path / "results")
    assert status == 2 and "chat template" in err and err.count("\n") == 1
