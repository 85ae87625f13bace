"""What a model reads before a prompt: what its tokenizer sets by default, once, within the length;
and --chat."""

import pytest
import torch
from tokenizers import Tokenizer, models
from transformers import ByT5Tokenizer, PreTrainedTokenizerFast

from core.errors import InputError
from eval import longbench, special_tokens
from experiments.kit.loading import stock_tokenizer
from experiments.kit.model import Model, resolve
from tests.eval.test_open_llm import write_benchmarks
from tests.experiments.written import journal, record
from tests.files import read, write
from tests.models import byte_tokenizer, checkpoint, random_model

BOS = 1
LENGTH = 2048
PASSKEY = "passkey --lengths 500 --depths 1 --keys 1"
RULER = "ruler --lengths 1900 --samples 1 --tasks fwe"
WORDS = "any text, </s> too "
TEMPLATE = (
    "<s>{% for message in messages %}[{{ message['role'] }}] {{ message['content'] }} [end]"
    "{% endfor %}{% if add_generation_prompt %}[assistant]{% endif %}"
)
# As of several vision models: it takes typed parts, and a text has none.
PARTS = TEMPLATE.replace("message['content']", "message['content'] | map(attribute='text') | join")


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    """Its tokenizer puts <s> before every text, and has a chat template that holds <s>."""
    tokenizer = byte_tokenizer("<s> $A")
    tokenizer.chat_template = TEMPLATE
    folder = tmp_path_factory.mktemp("model") / "toy"
    return checkpoint(folder, tokenizer, max_position_embeddings=LENGTH)


@pytest.fixture
def here(model, results):
    return ["--model", model, "--results", results]


@pytest.fixture
def requests_of(done, here, monkeypatch):
    """requests_of("passkey …", …) -> the requests that are generated from."""

    def run(*line):
        requests = []

        def generate(_, own):
            requests.extend(own)
            return [(request.key, []) for request in own]

        monkeypatch.setattr("eval.generation.generate", generate)
        done(*line, *here)
        return requests

    return run


def check_lengths(requests, results):
    """Each has one <s>, is as long as the journal says, and leaves room for the answer."""
    values = journal(results)
    for request in requests:
        assert request.prompt[0] == BOS
        assert request.prompt.count(BOS) == 1
        assert len(request.prompt) == values[request.key]["tokens"]
        assert len(request.prompt) + request.max_new_tokens <= int(request.key.split("/")[0])


@pytest.mark.parametrize("line", [PASSKEY, RULER])
def test_a_prompt_begins_with_it_once_and_keeps_to_its_length(requests_of, results, line):
    check_lengths(requests_of(line), results)


@pytest.mark.parametrize(
    "line, begun, template",
    [
        (PASSKEY, " The pass key is", TEMPLATE),
        (PASSKEY, " The pass key is", PARTS),
        (RULER, " Answer: According to the coded text above, the three", TEMPLATE),
    ],
)
def test_chat_asks_in_the_template_and_begins_the_answer(
    requests_of, model, results, line, begun, template
):
    (model / "chat_template.jinja").write_text(template)
    requests = requests_of(line, "--chat")
    check_lengths(requests, results)
    for request in requests:
        head, _, tail = byte_tokenizer().decode(request.prompt).partition(" [end][assistant]")
        assert head.startswith("<s>[user] ") and len(head) > 99
        assert tail.startswith(begun) and begun not in head
    found = record(results)
    assert found["run"]["chat"]
    assert "chat" in found["comparable"]


CLASSES = ["Paragraph 1"]


def test_longbench_asks_in_the_template_but_for_examples_and_code(requests_of, tmp_path):
    """As its pred.py: trec, triviaqa, samsum, lcc and repobench-p are to be continued. What is cut
    begins so, too."""
    folder = tmp_path / "data/longbench_e"
    folder.mkdir(parents=True)
    for task in longbench.TASKS:
        row = {"_id": task, "input": "", "context": "words " * 400, "length": 1}
        row["answers"] = ["1"] if task == "passage_count" else CLASSES
        row["all_classes"] = CLASSES if task == "trec" else None
        write(folder / f"{task}.jsonl", row)
    requests = requests_of("longbench_e --chat --window 1000 --benchmarks", folder.parent)
    plain = set()
    for request in requests:
        assert request.prompt[0] == BOS
        assert request.prompt.count(BOS) == 1
        if not byte_tokenizer().decode(request.prompt).startswith("<s>["):
            plain.add(request.key.split("/")[0])
    assert plain == {"trec", "triviaqa", "samsum", "lcc", "repobench-p"}


@pytest.mark.parametrize(
    "template",
    [
        None,
        "{{ raise_exception('no system') }}",
        TEMPLATE.replace("['content']", "['content'][:99]"),
        TEMPLATE.replace("['content']", "['content'] | upper"),
        "[user]",
    ],
)
def test_chat_without_a_template_that_works_is_refused(
    model, refusal, here, monkeypatch, loads_nothing, template
):
    tokenizer = resolve(str(model)).tokenizer
    tokenizer.chat_template = template
    monkeypatch.setattr(Model, "tokenizer", tokenizer)
    assert "chat template" in refusal(PASSKEY, "--chat", *here)


@pytest.mark.parametrize(
    "ends_by, stops",
    [("</s>", {2, 7}), ("<pad>", {0, 2, 7}), (" [end]", {2, 7})],
)
def test_an_answer_in_a_chat_ends_with_its_turn(requests_of, model, results, ends_by, stops):
    """By what ends it in the template and by the tokenizer's EOS, 2, whatever the model states."""
    stated = model / "generation_config.json"
    before = stated.read_text()
    stated.write_text('{"eos_token_id": 7}')
    (model / "chat_template.jinja").write_text(TEMPLATE.replace(" [end]", ends_by))
    asked = requests_of(PASSKEY, "--chat")
    plain = requests_of(PASSKEY)
    stated.write_text(before)
    assert asked[0].stop == stops and plain[0].stop == {7}
    records = [read(file) for file in results.rglob("as-it-is*.json")]
    assert sorted(len(each["run"]["data"]["ends"]) for each in records) == [1, len(stops)]


SWITCHED = TEMPLATE + "{% if thinks is defined and thinks is false %}<think></think>{% endif %}"


@pytest.mark.parametrize(
    "off, on",
    [
        ("thinks=false", "thinks=true"),
        ("thinks=False", "thinks=True"),
        ("thinks=FALSE", "thinks=TRUE"),
    ],
)
def test_the_templates_own_switches_are_given_and_stated(
    requests_of, model, here, results, refusal, off, on
):
    (model / "chat_template.jinja").write_text(SWITCHED)
    (request,) = requests_of(PASSKEY, "--chat", "--chat-options", off)
    assert "[assistant]<think></think>" in byte_tokenizer().decode(request.prompt)
    assert record(results)["run"]["chat_options"] == {"thinks": False}
    line = [PASSKEY, "--chat", *here, "--chat-options"]
    assert "--replace" in refusal(*line, on)
    assert "'think'; it has" in refusal(*line, "think=false")
    assert "twice" in refusal(*line, off, on)


def test_a_template_that_states_todays_date_states_the_same_each_day(model, requests_of):
    (model / "chat_template.jinja").write_text(TEMPLATE + "{{ strftime_now('%d %B %Y') }}")
    (request,) = requests_of(PASSKEY, "--chat")
    assert "[assistant]12 November 2024" in byte_tokenizer().decode(request.prompt)


@pytest.mark.parametrize(
    "template, answer, counted",
    [
        (TEMPLATE, "<think> or 1", 1),
        (TEMPLATE, "<think> or </think> 1", None),
        (TEMPLATE, "1", None),
        (TEMPLATE + "<think>", "or 1", 1),
        (TEMPLATE + "<think>", "or </think> 1", None),
    ],
)
def test_answers_that_never_left_their_thinking_are_counted(
    done, model, here, results, monkeypatch, template, answer, counted
):
    (model / "chat_template.jinja").write_text(template)
    tokens = byte_tokenizer()(answer).input_ids

    def generate(_, requests):
        return [(request.key, tokens) for request in requests]

    monkeypatch.setattr("eval.generation.generate", generate)
    out = done(PASSKEY, "--chat", *here)
    assert record(results).get("thinking") == counted
    assert ("1 of 1 answers never left their thinking" in out) == bool(counted)


# ------------------------------------------------------------------------------------------
# Other tokenizers: none puts anything after a text


@pytest.mark.parametrize(
    "tokenizer, before",
    [
        (byte_tokenizer("$A </s>"), []),
        (byte_tokenizer("<s> <s> $A </s> </s>"), [BOS, BOS]),
        (byte_tokenizer(), []),
        (ByT5Tokenizer(extra_ids=0), []),  # written in Python; ends in </s>
    ],
)
def test_a_prompt_is_what_stands_before_it_and_its_own_tokens(tmp_path, tokenizer, before):
    plain = tokenizer(WORDS, add_special_tokens=False).input_ids
    prepared = resolve(str(checkpoint(tmp_path / "toy", tokenizer))).tokenizer
    assert prepared(WORDS).input_ids == prepared.encode(WORDS) == [*before, *plain]
    assert prepared([WORDS, WORDS]).input_ids == 2 * [[*before, *plain]]
    assert special_tokens.beginning(prepared) == before
    assert special_tokens.beginning(prepared, bos=False) == []


def characters(text):
    """Of the byte tokenizer, whose "</s>" is a token in a prompt and four characters in a book."""
    backend = byte_tokenizer().backend_tokenizer
    return [token for byte in text for token in backend.encode(byte).ids]


PERPLEXITY = "perplexity --method pi --lengths 128 256 --stride 100 --tokens 600 --texts"


@pytest.fixture
def book(tmp_path):
    file = tmp_path / "books/book.txt"
    file.parent.mkdir()
    file.write_text(" ".join(f"{WORDS}{number}" for number in range(100)))
    return file


@pytest.fixture
def made(tmp_path):
    """made(tokenizer, …) -> a checkpoint of L = 256."""

    def save(tokenizer, vocabulary=300):
        folder = tmp_path / f"toy{len(list(tmp_path.glob('toy*')))}"
        sizes = {"max_position_embeddings": 256, "vocab_size": vocabulary}
        return checkpoint(folder, tokenizer, **sizes)

    return save


def test_bos_is_an_option_that_the_record_states_and_follows_the_tokenizer_by_default(
    made, done, book, tmp_path
):
    plain = made(byte_tokenizer())
    llama = made(byte_tokenizer("<s> $A"))
    found = []
    for name, folder, *options in (
        ("plain", plain),
        ("no bos", llama, "--no-bos"),
        ("bos", plain, "--bos"),
        ("llama", llama),
    ):
        results = tmp_path / name / "results"
        done(PERPLEXITY, book, *options, "--model", folder, "--results", results)
        found.append(record(results))
    without, no_bos, bos, with_bos = (each["scores"] for each in found)
    assert without == no_bos != bos == with_bos
    assert [each["run"].get("bos") for each in found] == [None, None, True, True]
    for each in found:
        assert ("bos" in each["comparable"]) == ("bos" in each["run"])


def test_perplexity_of_a_window_that_begins_with_bos_is_that_of_yarns_script(
    made, done, book, results
):
    """The loop of jquesnelle/yarn, eval/perplexity.py, compute_perplexity with add_start_token. A
    tokenizer that puts EOS after a text changes nothing."""
    model = made(byte_tokenizer("<s> $A </s>"))
    line = PERPLEXITY.replace("--method pi", "--method original")
    done(line, book, "--model", model, "--results", results)
    network = random_model(max_position_embeddings=256)
    text = characters(book.read_text())[:600]
    labels = torch.tensor([text])
    sliding_window = 100
    for row in record(results)["scores"]["by_length"]:
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
        mean = torch.stack(nlls).mean()
        assert row["window"]["mean"] == pytest.approx(float(mean.exp()), rel=1e-4)


def test_a_text_to_train_on_begins_with_bos_and_the_tokenizer_that_was_given_stays(
    made, done, book, tmp_path, results, monkeypatch
):
    """The tokenizer puts EOS after a text, which is not trained on."""
    seen = []
    forward = torch.nn.Embedding.forward

    def watched(self, ids):
        seen.extend(ids.tolist() if self.weight.device.type != "meta" else ())
        return forward(self, ids)

    monkeypatch.setattr(torch.nn.Embedding, "forward", watched)
    line = ["--corpus", book.parent, "--output", tmp_path / "tuned", "--results", results]
    model = made(byte_tokenizer("<s> $A </s>"))
    done("finetune --steps 1 --batch 3 --length 512", "--model", model, *line)
    text = characters(book.read_text())
    cut = [[BOS, *text][begin : begin + 512] for begin in range(0, 3 * 512, 512)]
    assert sorted(seen) == sorted(cut)
    assert stock_tokenizer(resolve(str(tmp_path / "tuned")).source)("x").input_ids[-1] == 2


@pytest.mark.parametrize(
    "line",
    [
        "passkey --lengths 500",
        "open_llm --benchmarks {root}/data --tasks truthfulqa --limit 2",
        "finetune --corpus {root}/books --steps 1 --batch 2 --length 64 --output {root}/tuned",
    ],
)
def test_ids_past_the_embedding_are_refused(
    made, refusal, book, tmp_path, results, loads_nothing, line
):
    """The byte tokenizer has 259 ids; the model knows 100."""
    write_benchmarks(tmp_path / "data/open_llm")
    model = made(byte_tokenizer(), vocabulary=100)
    said = refusal(line.format(root=tmp_path), "--model", model, "--results", results)
    assert "embeddings for 100 tokens" in said


@pytest.mark.parametrize(
    "tokenizer, control",
    [
        (byte_tokenizer("<s> $A"), "</s>"),
        (resolve("smollm2", as_it_is=True).tokenizer, "<|im_start|>"),
        (ByT5Tokenizer(extra_ids=0), "</s>"),
    ],
    ids=["bytes", "SmolLM2", "in Python"],
)
def test_a_control_token_that_a_book_spells_out_is_characters(tokenizer, control):
    plain = "any text, <tag> too\n"
    spelled = f"any {control} text"
    texts = special_tokens.as_characters(tokenizer, [plain, spelled], ["plain", "spelled"])
    assert texts[0] == tokenizer(plain, add_special_tokens=False).input_ids
    number = tokenizer.convert_tokens_to_ids(control)
    assert number not in texts[1] and tokenizer.decode(texts[1]) == spelled
    assert number in tokenizer(spelled, add_special_tokens=False).input_ids  # in a prompt


def test_a_control_token_that_cannot_be_characters_is_refused():
    pieces = [(piece, -1.0) for piece in ("<unk>", "</s>", "<", "/", "s", ">")]
    backend = Tokenizer(models.Unigram(pieces, 0, False))
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=backend, eos_token="</s>", unk_token="<unk>"
    )
    with pytest.raises(InputError, match="'a book' holds '</s>'"):
        special_tokens.as_characters(tokenizer, ["s</s>"], ["a book"])
    assert special_tokens.as_characters(tokenizer, ["é<"], ["a book"]) == [[0, 2]]


def test_bos_that_the_tokenizer_has_not_is_refused(made, refusal, book, results, loads_nothing):
    tokenizer = byte_tokenizer()
    tokenizer.bos_token = None
    line = [PERPLEXITY, book, "--bos", "--model", made(tokenizer), "--results", results]
    assert "--bos" in refusal(*line)
