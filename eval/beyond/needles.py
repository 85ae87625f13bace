"""Keys hidden in a long text: the model reads the text once, and is then asked for each key alone.

This is the needle in a haystack with many needles. A haystack is the beginning of a text, in which
sentences "The secret number of CITY is DDDDD." stand at even depths. A key is the five digits of
one. The model reads the haystack in one causal pass. Then each key is asked for by its sentence up
to "is", over the cache of that pass, which is cropped to the haystack after each question. So all
keys of a text cost little more than the text.

A key's score is −ln p of its digits in nats; a blind guess among the 90,000 numbers of five digits
costs 11.4. It is found if each of its tokens is the likeliest: then greedy decoding says it.
"""

from __future__ import annotations

import itertools
import math
import random
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from transformers import Cache, PreTrainedModel, PreTrainedTokenizerBase

from core.errors import InputError, NonFiniteError
from core.huggingface.rotation import at_length
from eval.generation import keeps_tokens, reserved
from eval.perplexity import position_losses

NUMBERS = range(10_000, 100_000)
QUESTION = 64  # tokens that are left free for a question and its answer
_DRAWN = 200  # numbers of which most decide how many tokens a key has
CITIES = (
    *("Lisbon", "Vienna", "Cairo", "Oslo", "Lima", "Seoul", "Madrid", "Athens", "Dublin"),
    *("Warsaw", "Nairobi", "Havana", "Quito", "Tunis", "Geneva", "Venice", "Paris", "London"),
    *("Berlin", "Rome", "Tokyo", "Delhi", "Boston", "Chicago", "Denver", "Dallas", "Moscow"),
    *("Prague", "Kabul", "Tehran", "Baghdad", "Damascus", "Jerusalem", "Naples", "Milan"),
    *("Munich", "Hamburg", "Bergen", "Lagos", "Dakar", "Algiers", "Bogota", "Santiago"),
    *("Toronto", "Montreal", "Sydney", "Melbourne", "Bombay", "Shanghai", "Manila", "Hanoi"),
    *("Kyoto", "Seville", "Bristol", "Glasgow", "Leeds", "Oxford", "Florence", "Budapest"),
    *("Belgrade", "Sofia", "Riga", "Kiev", "Odessa"),
)


@dataclass(frozen=True)
class Needle:
    """A sentence that hides a key.

    Attributes:
        question: the ids of the sentence up to "is".
        key: the ids of the digits, which follow them in the sentence.
        sentence: the ids of all of it.
    """

    question: tuple[int, ...]
    key: tuple[int, ...]
    sentence: tuple[int, ...]


@dataclass(frozen=True)
class Haystack:
    """A text with needles in it.

    Attributes:
        before: the ids before the text, such as BOS.
        tokens: all ids, with those before the text.
        needles: in the order in which they stand there.
        places: where each key begins in it.
    """

    before: tuple[int, ...]
    tokens: tuple[int, ...]
    needles: tuple[Needle, ...]
    places: tuple[int, ...]

    def distances(self) -> list[int]:
        """How many tokens each key begins before the question."""
        return [len(self.tokens) - place for place in self.places]

    def of_text(self) -> np.ndarray:
        """Whether each token is one of the text itself, bool [tokens]."""
        own = np.ones(len(self.tokens), dtype=bool)
        own[: len(self.before)] = False
        for needle, place in zip(self.needles, self.places, strict=True):
            begin = place - len(needle.question)
            own[begin : begin + len(needle.sentence)] = False
        return own

    def last(self, count: int) -> tuple[int, ...]:
        """The ids of its last tokens, `count` with those before the text."""
        if count >= len(self.tokens):
            return self.tokens
        return self.before + self.tokens[len(self.tokens) - count + len(self.before) :]


def needles(tokenizer: PreTrainedTokenizerBase, count: int, seed: str) -> list[Needle]:
    """Needles whose keys have equally many tokens: as many as most numbers have.

    Cities are taken first whose questions have the length that most have, so that all questions
    are equally long wherever the tokenizer allows it.

    Args:
        count: how many.
        seed: decides the digits, and which city stands where.

    Raises:
        InputError: there are not so many cities, or the tokenizer joins the digits to the words
            around them.
    """
    if count > len(CITIES):
        raise InputError(
            f"{count} keys were asked for, and there are {len(CITIES)} cities; give fewer --keys."
        )
    lengths = {city: len(_ids(tokenizer, _question(city))) for city in CITIES}
    common = Counter(lengths.values())
    cities = sorted(CITIES, key=lambda city: -common[lengths[city]])[:count]
    draw = random.Random(seed)
    draw.shuffle(cities)
    tried = filter(None, _drawn(tokenizer, CITIES[0], random.Random(0)))
    ((usual, _),) = Counter(len(needle.key) for needle in tried).most_common(1) or [(0, 0)]
    found = []
    for city in cities:
        fitting = (
            each for each in _drawn(tokenizer, city, draw) if each and len(each.key) == usual
        )
        found += itertools.islice(fitting, 1)
    if len(found) < count:
        raise InputError(
            "the tokenizer joins a number to the words around it, so no key can be asked for; give "
            "a model with another tokenizer."
        )
    return found


def fitting(
    tokenizer: PreTrainedTokenizerBase, counts: Sequence[int], seeds: Sequence[str], most: float
) -> list[list[Needle]] | None:
    """The needles of each text: the first of these numbers of them that fills at most so many
    tokens in every text. None if all fill more.

    Args:
        counts: how many, in the order in which they are tried.
        seeds: of each text, see :func:`needles`.
    """
    for count in counts:
        drawn = [needles(tokenizer, count, seed) for seed in seeds]
        if all(size(of_text) <= most for of_text in drawn):
            return drawn
    return None


def size(hidden: Sequence[Needle]) -> int:
    """The tokens of all sentences."""
    return sum(len(needle.sentence) for needle in hidden)


def haystack(book: Sequence[int], hidden: Sequence[Needle], before: Sequence[int]) -> Haystack:
    """A text with needles at the depths (i + ½)/n of it.

    Args:
        book: the ids of the text.
        hidden: the n needles, the first of which stands first.
        before: the ids before the text, such as BOS.
    """
    tokens = list(before)
    places = []
    begin = 0
    for number, needle in enumerate(hidden):
        end = round(len(book) * (number + 0.5) / len(hidden))
        tokens += book[begin:end]
        places.append(len(tokens) + len(needle.question))
        tokens += needle.sentence
        begin = end
    return Haystack(tuple(before), (*tokens, *book[begin:]), tuple(hidden), tuple(places))


def ask(
    model: PreTrainedModel, read: Sequence[int], asked: Sequence[Needle]
) -> list[tuple[float, bool]]:
    """Of each key its nats, and whether it is found, after a text that is read once.

    Args:
        model: a causal language model.
        read: the ids of the text.
        asked: what is asked for.

    Raises:
        InputError: the model's cache cannot be taken back to the text.
        NonFiniteError: a logit is not finite.
    """
    _, answers = read_and_ask(model, (*read, read[-1]), 0, asked)  # any token may stand last
    return answers


@torch.inference_mode()
def read_and_ask(
    model: PreTrainedModel, tokens: Sequence[int], scored: int, asked: Sequence[Needle]
) -> tuple[np.ndarray, list[tuple[float, bool]]]:
    """The losses of a text's last `scored` tokens, and what :func:`ask` gives after all but the
    last one, of one pass.

    Args:
        model: a causal language model; any, where nothing is asked for.
        tokens: the ids of the text, of which the last is only predicted.
        scored: how many are; 0 for no losses.
        asked: what is asked for; may be empty.

    Returns:
        nats a token, float64 [scored]; and of each key its nats and whether it is found.

    Raises:
        InputError, NonFiniteError: as of :func:`ask`, or a loss is not finite.
    """
    ids = torch.tensor(tokens)
    if not asked:
        return position_losses(model, ids, scored), []
    read = len(tokens) - 1
    check_can_be_asked(model)
    cache = reserved(model, read + QUESTION)
    losses = position_losses(model, ids, scored, cache, QUESTION)
    with at_length(model, read + QUESTION):
        return losses, [_asked(model, cache, needle) for needle in asked]


def check_can_be_asked(model: PreTrainedModel) -> None:
    """Raise InputError unless the model's cache can be taken back to an earlier token."""
    if not keeps_tokens(model):
        raise InputError(
            f"{type(model).__name__} keeps a state that cannot be taken back to an earlier token, "
            "so several keys cannot be asked for after one pass; score it by loss_by_position."
        )


def _asked(model: PreTrainedModel, cache: Cache, needle: Needle) -> tuple[float, bool]:
    """The nats of a key and whether it is found; the cache is as before."""
    key = torch.tensor(needle.key, device=model.device)
    tokens = torch.tensor([needle.question + needle.key[:-1]], device=model.device)
    output = model(tokens, past_key_values=cache, use_cache=True, logits_to_keep=len(key))
    cache.crop(-tokens.shape[1])
    logits = output.logits[0].float()
    nats = torch.nn.functional.cross_entropy(logits, key, reduction="sum").item()
    if not math.isfinite(nats):
        raise NonFiniteError("the logits after a question are not finite")
    return nats, bool((logits.argmax(-1) == key).all())


def _question(city: str) -> str:
    return f"\nThe secret number of {city} is"


def _needle(tokenizer, city: str, number: int) -> Needle | None:
    """None if the tokenizer does not read the number as tokens of its own."""
    question = _ids(tokenizer, _question(city))
    answered = _ids(tokenizer, f"{_question(city)} {number}")
    sentence = _ids(tokenizer, f"{_question(city)} {number}.\n")
    apart = answered[: len(question)] == question and sentence[: len(answered)] == answered
    if not apart or len(answered) > QUESTION:
        return None
    return Needle(question, answered[len(question) :], sentence)


def _drawn(tokenizer, city: str, draw: random.Random) -> Iterator[Needle | None]:
    """A city's needles with numbers that are drawn at once."""
    numbers = [draw.choice(NUMBERS) for _ in range(_DRAWN)]
    return (_needle(tokenizer, city, number) for number in numbers)


def _ids(tokenizer, text: str) -> tuple[int, ...]:
    return tuple(tokenizer(text, add_special_tokens=False).input_ids)
