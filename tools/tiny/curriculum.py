"""Batches from generated tasks and books: which kinds at which length, and which tokens the loss
counts.

Batch i depends on (seed, i) alone, so a killed run resumes with exactly the batch that comes next.
"""

import random
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product

import torch
from torch.utils.data import IterableDataset

from tools.tiny.miniature import Source, make

PARTS = 2  # of a batch, computed one after the other
# rows that are a piece of a book; in a stage with this kind, all tokens except answers count as
# text
TEXT = "text"


@dataclass(frozen=True)
class Stage:
    """A part of the curriculum.

    Attributes:
        length: tokens per row.
        tokens: how many tokens the stage reads in all.
        batch: tokens per batch, all its parts together; at least a row for each part.
        turns: the most questions in a row.
        mixture: the share of each kind, in the rows and in the loss.
        reach: if above `length`, a row's positions span up to `reach`, with at most three jumps
            between sentences. So short rows still teach long distances (as in Zhu et al., "PoSE",
            2024, but within L).
    """

    length: int
    tokens: int
    batch: int
    turns: int
    mixture: dict[str, float]
    reach: int = 0

    @property
    def rows(self) -> int:
        """Rows per part."""
        return self.batch // self.length // PARTS

    @property
    def steps(self) -> int:
        return max(self.tokens // (PARTS * self.rows * self.length), 1)


def tokenize(sample, tokenizer, length: int) -> tuple[list[int], list[bool]]:
    """A sample's ids, and which of them are targets: the answers, each with the end of sequence
    that closes it."""
    ids = tokenizer(sample.context, add_special_tokens=False).input_ids
    target = [False] * len(ids)
    for turn in sample.turns:
        question = tokenizer(turn.question, add_special_tokens=False).input_ids
        space = "" if (turn.question or sample.context)[-1].isspace() else " "
        answer = [
            *tokenizer(space + turn.answer, add_special_tokens=False).input_ids,
            tokenizer.eos_token_id,
        ]
        if len(ids) + len(question) + len(answer) > length:
            break
        ids += question + answer
        target += [False] * len(question) + [True] * len(answer)
    return ids, target


def row(
    kind: str, rng: random.Random, source: Source, length: int, turns: int
) -> tuple[list[int], list[bool]]:
    """At most `length` ids of one row, and which of them are targets."""
    if kind != TEXT:
        return tokenize(make(kind, rng, source, length, turns), source.tokenizer, length)
    book = rng.choice(source.passages)
    for reach in (5, 12):  # characters per token to allow for
        start = rng.randrange(max(len(book) - reach * length, 1))
        piece = book[start : start + reach * length]
        ids = source.tokenizer(piece, add_special_tokens=False).input_ids[
            1:
        ]  # the first may be half a word
        if len(ids) >= length:
            break
    ids = ids[:length]
    return ids, [True] * len(ids)


def batch(stage: Stage, rng: random.Random, source: Source) -> dict[str, torch.Tensor]:
    """One part: `input_ids`, `weights` and `position_ids`, [rows, length].

    The weights sum to 1. Each kind's share goes to its answers, and the share of text to all other
    tokens of all rows.
    """
    ids = torch.full((stage.rows, stage.length), source.tokenizer.pad_token_id)
    weights = torch.zeros(stage.rows, stage.length)
    text = torch.zeros(stage.rows, stage.length, dtype=torch.bool)
    of_kind: dict[str, list[int]] = defaultdict(list)
    for index in range(stage.rows):
        kind = rng.choices(list(stage.mixture), stage.mixture.values())[0]
        row_ids, target = row(kind, rng, source, stage.length, rng.randint(1, stage.turns))
        ids[index, : len(row_ids)] = torch.tensor(row_ids)
        if kind == TEXT:
            target = [False] * len(row_ids)
        else:
            of_kind[kind].append(index)
        weights[index, : len(row_ids)] = torch.tensor(target, dtype=torch.float32)
        text[index, : len(row_ids)] = ~torch.tensor(target)
    text[:, 0] = False  # nothing predicts the first token
    present = sum(stage.mixture[kind] for kind in of_kind) + stage.mixture.get(TEXT, 0)
    for kind, rows in of_kind.items():
        weights[rows] *= stage.mixture[kind] / present / weights[rows].sum()
    if TEXT in stage.mixture:
        weights[text] = stage.mixture[TEXT] / present / text.sum()
    ends = torch.tensor([source.tokenizer.convert_tokens_to_ids(token) for token in (".", "Ċ")])
    position_ids = torch.stack([positions(torch.isin(row, ends), stage.reach, rng) for row in ids])
    return {"input_ids": ids, "weights": weights, "position_ids": position_ids}


def positions(ends: torch.Tensor, reach: int, rng: random.Random) -> torch.Tensor:
    """The positions of a row's tokens, with up to three jumps, which span at most `reach`; int64
    [length].

    Args:
        ends: bool [length], the tokens after which positions may jump.
    """
    steps = torch.ones(len(ends), dtype=torch.int64)
    steps[0] = 0
    after = (ends[:-1].nonzero()[:, 0] + 1).tolist()
    for _ in range(3 if after and reach > len(ends) else 0):
        steps[rng.choice(after)] += rng.randint(0, (reach - len(ends)) // 3)
    return steps.cumsum(0)


class Batches(IterableDataset):
    """All batches of a curriculum from step `start` on, each in PARTS parts, as cheap pairs (step,
    part).

    :meth:`collate` makes the tensors of a part.
    """

    def __init__(
        self, stages: tuple[Stage, ...], source: Source, seed: int, start: int = 0
    ) -> None:
        self.stages = stages
        self.source = source
        self.seed = seed
        self.start = start

    def __iter__(self) -> Iterator[tuple[int, int]]:
        return product(range(self.start, steps(self.stages)), range(PARTS))

    def collate(self, parts: list[tuple[int, int]]) -> dict[str, torch.Tensor]:
        """The tensors of one part."""
        ((step, part),) = parts
        stage = [stage for stage in self.stages for _ in range(stage.steps)][step]
        return batch(stage, random.Random(f"{self.seed} {step} {part}"), self.source)


def steps(stages: tuple[Stage, ...]) -> int:
    """How many steps a curriculum takes."""
    return sum(stage.steps for stage in stages)
