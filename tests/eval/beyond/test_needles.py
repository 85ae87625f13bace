"""Keys in a text against full passes with the question appended, and against greedy decoding."""

import random

import pytest
import torch

from core.errors import InputError, NonFiniteError
from core.extend import extend
from eval import Request
from eval.beyond import needles
from eval.generation import generate
from tests.core.huggingface.test_families import HYBRIDS
from tests.models import byte_tokenizer, random_model, token_losses

BOOK = [random.Random(0).randrange(5, 250) for _ in range(700)]


def stack(count=3, seed="a", before=()):
    return needles.haystack(BOOK, needles.needles(byte_tokenizer(), count, seed), before)


def test_a_needle_stands_whole_at_each_depth_and_its_key_follows_its_question():
    hidden = stack(count=4, before=[1])
    tokenizer = byte_tokenizer()
    assert hidden.tokens[0] == 1
    rest = list(hidden.tokens)
    for number, (needle, place) in enumerate(zip(hidden.needles, hidden.places, strict=True)):
        begin = place - len(needle.question)
        assert hidden.tokens[begin : begin + len(needle.sentence)] == needle.sentence
        assert hidden.tokens[place : place + len(needle.key)] == needle.key
        assert tokenizer.decode(needle.sentence).endswith(f"{tokenizer.decode(needle.key)}.\n")
        before = 1 + sum(len(each.sentence) for each in hidden.needles[:number])
        assert begin - before == round(700 * (number + 0.5) / 4)
    for place, needle in reversed(list(zip(hidden.places, hidden.needles, strict=True))):
        begin = place - len(needle.question)
        del rest[begin : begin + len(needle.sentence)]
    assert rest == [1, *BOOK]
    assert hidden.distances() == [len(hidden.tokens) - place for place in hidden.places]
    assert hidden.last(100) == (1, *hidden.tokens[-99:])
    assert hidden.last(len(hidden.tokens)) == hidden.tokens


# a window of tokens; another scale for each length; one that changes its logits
FAMILIES = {
    "LlamaConfig": {},
    "MistralConfig": {"sliding_window": 300},
    "Gemma2Config": {"head_dim": 16, "sliding_window": 300},
    "GPTNeoXConfig": {},
}


@pytest.mark.parametrize("architecture", FAMILIES)
@pytest.mark.parametrize("last", [None, 400])
def test_a_key_scores_as_in_a_full_pass_with_its_question_appended(architecture, last):
    model = extend(random_model(architecture, **FAMILIES[architecture]), "yarn", 8)
    hidden = stack()
    read = hidden.tokens if last is None else hidden.last(last)
    asked = needles.ask(model, read, hidden.needles)
    for needle, (nats, found) in zip(hidden.needles, asked, strict=True):
        tokens = [*read, *needle.question, *needle.key]
        count = len(needle.key)
        assert nats == pytest.approx(token_losses(model, tokens)[-count:].sum(), abs=1e-4)
        with torch.inference_mode():
            likeliest = model(torch.tensor([tokens]), use_cache=False).logits[0].argmax(-1)
        assert found == (likeliest[-1 - count : -1].tolist() == list(needle.key))


def test_found_is_what_greedy_decoding_says():
    """Of what the model itself continues with, every key is found; of other digits, none."""
    model = extend(random_model(), "yarn", 8)
    model.generation_config.eos_token_id = None
    hidden = stack()
    prompts = [
        Request(str(number), (*hidden.tokens, *needle.question), max_new_tokens=5)
        for number, needle in enumerate(hidden.needles)
    ]
    said = {key: tuple(tokens) for key, tokens in generate(model, prompts)}
    asked = [
        needles.Needle(needle.question, said[str(number)], needle.sentence)
        for number, needle in enumerate(hidden.needles)
    ]
    assert all(found for _, found in needles.ask(model, hidden.tokens, asked))
    others = [
        needles.Needle(each.question, (*each.key[:-1], (each.key[-1] + 1) % 300), each.sentence)
        for each in asked
    ]
    assert not any(found for _, found in needles.ask(model, hidden.tokens, others))


def test_keys_have_equally_many_tokens_and_follow_from_the_seed(thirds):
    drawn = [needles.needles(thirds, 16, seed) for seed in ("a", "a", "b")]
    assert drawn[0] == drawn[1] != drawn[2]
    for found in drawn:
        assert {len(needle.key) for needle in found} == {3}  # a space, and two pieces
        assert len({needle.question for needle in found}) == 16


@pytest.fixture
def thirds():
    """A tokenizer that reads some pairs of digits as one token."""
    from tokenizers import AddedToken

    tokenizer = byte_tokenizer()
    pairs = [f"{number}" for number in range(100, 1000)]
    tokenizer.add_tokens([AddedToken(each, normalized=False) for each in pairs])
    tokenizer.add_tokens([AddedToken(f"{number:02d}") for number in range(100)])
    return tokenizer


def test_what_cannot_be_asked_is_refused():
    with pytest.raises(InputError, match="100 keys were asked for, and there are"):
        needles.needles(byte_tokenizer(), 100, "a")
    name, options = next(iter(HYBRIDS.items()))
    with pytest.raises(InputError, match="cannot be taken back"):
        needles.ask(random_model(name, **options), BOOK, stack().needles)
    broken = random_model()
    with torch.no_grad():
        broken.get_output_embeddings().weight[7] = float("nan")
    with pytest.raises(NonFiniteError, match="after a question"):
        needles.ask(broken, BOOK[:50], stack().needles)
