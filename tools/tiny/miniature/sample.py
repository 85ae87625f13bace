"""The parts of a generated task: its sample, its questions, its setting, and the registry of generators."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from transformers import PreTrainedTokenizerBase

from core.errors import InputError

# Sentences that say nothing; RULER's and the paper's own ("The grass is green. ...") are not among them.
_NOISE = (
    "The rain is cold.", "The hills are far away.", "The road is long.", "We walk on.", "The wind is soft.",
    "Night comes and goes.", "The river runs.", "Birds sing in the trees.", "A lamp burns low.", "The snow is white.",
    "Leaves fall down.", "Up the stairs.", "The house is still.", "Time goes by.", "Now and then.", "The sea is deep.",
    "Clouds drift past.", "One more step.", "The bread is warm.", "Round and round it turns.",
)  # fmt: skip


@dataclass(frozen=True)
class Turn:
    """A question and its answers. The prompt ends with the question; the answer follows after one space."""

    question: str
    answers: tuple[str, ...]


@dataclass(frozen=True)
class Sample:
    """A context and questions about it. Evaluation asks the first one; training asks all, one after the other."""

    kind: str
    context: str
    turns: tuple[Turn, ...]

    @property
    def question(self) -> str:
        return self.turns[0].question

    @property
    def answers(self) -> tuple[str, ...]:
        return self.turns[0].answers

    @property
    def prompt(self) -> str:
        """The prompt for the first question."""
        return self.context + self.question


@dataclass(frozen=True)
class Setting:
    """Where samples come from.

    Attributes:
        split: "train" or "eval"; the two share no key, name, number or passage.
        tokenizer: counts tokens.
        passages: the split's texts, from which filler is cut; if empty, all filler is noise sentences.
    """

    split: str
    tokenizer: PreTrainedTokenizerBase
    passages: Sequence[str] = ()

    def count(self, text: str) -> int:
        """The number of tokens in a text."""
        return len(self.tokenizer(text, add_special_tokens=False).input_ids)

    def filler(self, rng: random.Random, tokens: int) -> list[str]:
        """Sentences of at most `tokens` tokens together with a space after each: from a passage, or noise."""
        if tokens < 8:
            return []
        if self.passages and rng.random() < 0.5:
            text = passage(rng, self.passages, 6 * tokens)
        else:
            cycle = " ".join(rng.sample(_NOISE, rng.randint(3, 8))) + " "
            text = cycle * (tokens // self.count(cycle) + 1)
        ends = self.tokenizer(text, add_special_tokens=False, return_offsets_mapping=True).offset_mapping
        if len(ends) > tokens:
            text = text[: ends[tokens - 1][0]]
        return [sentence for sentence in re.split(r"(?<=[.!?;]) ", text.strip()) if sentence]


Generator = Callable[[random.Random, Setting, int, int], Sample]
GENERATORS: dict[str, Generator] = {}


def register(kind: str):
    """Add the decorated generator `(rng, setting, length, turns) -> Sample` under `kind`."""

    def add(function: Generator) -> Generator:
        GENERATORS[kind] = function
        return function

    return add


def make(kind: str, rng: random.Random, setting: Setting, length: int, turns: int = 1) -> Sample:
    """A sample of a kind, at most `length` tokens with all its questions and answers.

    Args:
        kind: a name in :data:`GENERATORS`.
        rng: the only source of randomness; the same state gives the same sample.
        setting: split, tokenizer and passages.
        length: the most tokens that the sample may take.
        turns: the most questions to ask; fewer if they do not fit, but at least one.

    Raises:
        InputError: the kind is unknown, or `length` is too short for it.
    """
    if kind not in GENERATORS:
        raise InputError(f"unknown kind of task {kind!r}; choose among {', '.join(GENERATORS)}.")
    for _ in range(20):
        sample = GENERATORS[kind](rng, setting, length, turns)
        if setting.count(written(sample)) <= length:
            return sample
    raise InputError(f"a sample of {kind!r} does not fit in {length} tokens; give it more.")


def written(sample: Sample) -> str:
    """The sample's text with the first answer after every question, one question per line."""
    return sample.context + "".join(f"{turn.question} {turn.answers[0]}\n" for turn in sample.turns)


def passage(rng: random.Random, passages: Sequence[str], characters: int) -> str:
    """About `characters` characters from somewhere in one of the texts, from a sentence's beginning, on one line."""
    text = rng.choice(passages)
    start = rng.randrange(max(len(text) - characters - 400, 1))
    cut = " ".join(text[start : start + characters + 400].split())
    begin = re.search(r"[.!?] (?=[A-Z])", cut[:400])
    return cut[begin.end() if begin else 0 :]


def hide(rng: random.Random, filler: list[str], facts: list[str]) -> str:
    """The facts at random places among the filler's sentences, in their order; all on one line, or one per line."""
    return rng.choice((" ", " ", "\n")).join(among(rng, filler, facts))


def among(rng: random.Random, filler: list[str], facts: Sequence[str]) -> list[str]:
    """The filler's sentences with the facts at random places, in their order."""
    places = sorted(rng.randint(0, len(filler)) for _ in facts)
    sentences = list(filler)
    for place, fact in zip(reversed(places), reversed(facts)):
        sentences.insert(place, fact)
    return sentences
