"""The parts of a generated task: its sample, its questions, its source."""

import random
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from transformers import PreTrainedTokenizerBase

# Sentences that say nothing; RULER's and the paper's own ("The grass is green. ...") are not among
# them.
_NOISE = (
    "The rain is cold.",
    "The hills are far away.",
    "The road is long.",
    "We walk on.",
    "The wind is soft.",
    "Night comes and goes.",
    "The river runs.",
    "Birds sing in the trees.",
    "A lamp burns low.",
    "The snow is white.",
    "Leaves fall down.",
    "Up the stairs.",
    "The house is still.",
    "Time goes by.",
    "Now and then.",
    "The sea is deep.",
    "Clouds drift past.",
    "One more step.",
    "The bread is warm.",
    "Round and round it turns.",
)

Item = TypeVar("Item")


@dataclass(frozen=True)
class Turn:
    """A question and its answer. The prompt ends with the question; the answer follows after one
    space."""

    question: str
    answer: str

    @property
    def text(self) -> str:
        return f"{self.question} {self.answer}\n"


@dataclass(frozen=True)
class Sample:
    """A context and questions about it; training asks all of them, one after the other."""

    context: str
    turns: tuple[Turn, ...]

    @property
    def text(self) -> str:
        """The context, and every question with its answer."""
        return self.context + "".join(turn.text for turn in self.turns)


@dataclass(frozen=True)
class Source:
    """Where samples come from.

    Attributes:
        split: "train" or "eval"; the two share no key, name, number or passage.
        tokenizer: counts tokens.
        passages: the split's texts, from which filler is cut; if empty, all filler is noise
            sentences.
    """

    split: str
    tokenizer: PreTrainedTokenizerBase
    passages: Sequence[str] = ()

    def count(self, *texts: str) -> int:
        """The number of tokens in the texts, each tokenised by itself."""
        return sum(len(self.tokenizer(text, add_special_tokens=False).input_ids) for text in texts)

    def filler(self, rng: random.Random, tokens: int) -> list[str]:
        """Sentences of at most `tokens` tokens together with a space after each: from a passage, or
        noise."""
        if tokens < 8:
            return []
        if self.passages and rng.random() < 0.5:
            text = passage(rng, self.passages, 6 * tokens)
        else:
            cycle = " ".join(rng.sample(_NOISE, rng.randint(3, 8))) + " "
            text = cycle * (tokens // self.count(cycle) + 1)
        ends = self.tokenizer(
            text, add_special_tokens=False, return_offsets_mapping=True
        ).offset_mapping
        if len(ends) > tokens:
            text = text[: ends[tokens - 1][0]]
        return [sentence for sentence in re.split(r"(?<=[.!?;]) ", text.strip()) if sentence]

    def fit(
        self,
        items: Iterable[Item],
        room: int,
        texts: Callable[[Item], Sequence[str]],
        least: int = 0,
    ) -> tuple[list[Item], int]:
        """The first items whose texts take at most `room` tokens together, but at least `least`;
        and these tokens.

        Args:
            items: they may be drawn as they are asked for, without end.
            texts: the texts of an item, each tokenised by itself.
        """
        fitting = []
        cost = 0
        for item in items:
            needed = self.count(*texts(item))
            if len(fitting) >= least and cost + needed > room:
                break
            fitting.append(item)
            cost += needed
        return fitting, cost


def passage(rng: random.Random, passages: Sequence[str], characters: int) -> str:
    """About `characters` characters from somewhere in one of the texts, from a sentence's
    beginning, on one line."""
    text = rng.choice(passages)
    start = rng.randrange(max(len(text) - characters - 400, 1))
    cut = " ".join(text[start : start + characters + 400].split())
    begin = re.search(r"[.!?] (?=[A-Z])", cut[:400])
    return cut[begin.end() if begin else 0 :]


def hide(rng: random.Random, filler: list[str], facts: list[str]) -> str:
    """The facts at random positions among the filler's sentences, in their order; all on one line,
    or one per line."""
    return rng.choice((" ", " ", "\n")).join(among(rng, filler, facts))


def among(rng: random.Random, filler: list[str], facts: Sequence[str]) -> list[str]:
    """The filler's sentences with the facts at random positions, in their order."""
    positions = sorted(rng.randint(0, len(filler)) for _ in facts)
    sentences = list(filler)
    for position, fact in zip(reversed(positions), reversed(facts)):
        sentences.insert(position, fact)
    return sentences
