"""Keys hidden in books and asked for one by one: what a model still finds beyond L.

    python -m experiments.beyond.needles --model smollm2 --factor 2 --texts BOOKS
    python -m experiments.beyond.needles --model smollm2 --method original --last --texts BOOKS

The first command hides 16 keys in the beginning of each book, L' tokens long, and asks for each
under every method that needs no training. The second reads only the last L tokens of the same
haystacks, as a model does that is not extended: what it cannot see it can only guess.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

import numpy as np

import records
from core.discovery import later
from core.errors import InputError
from experiments.kit import command_line, texts
from experiments.kit.command_line import option, two_or_more
from experiments.kit.experiment import Experiment, Prepared

if TYPE_CHECKING:
    from eval.beyond import needles as haystacks
else:
    haystacks = later("eval.beyond.needles")
KEYS = 16, 8, 4  # in a text: the most that fill at most half of it


class Needles(Experiment):
    name = "needles"
    unit = "nats a key (a guess costs 11.4) and keys found, by their distance to the question"

    @staticmethod
    def add_options(parser) -> None:
        texts.add_arguments(parser)
        keys = f"keys hidden in each text (default {KEYS[0]}, fewer where L' is short)"
        option(parser, "--keys", two_or_more, "N", keys)
        last = "read only the last L tokens of each haystack"
        parser.add_argument("--last", action="store_true", help=last)

    def prepare(self) -> Prepared:
        """A sample is a haystack, by the title and the hash of its book."""
        length = self.extended_length - haystacks.QUESTION
        room = length - len(self.bos)
        given = texts.scored(self)
        counts = (self.arguments.keys,) if self.arguments.keys else KEYS
        seeds = [book.sha256 for book in given]
        drawn = haystacks.fitting(self.model.tokenizer, counts, seeds, room / 2)
        if drawn is None:
            raise InputError(
                f"{counts[-1]} keys fill more than half of {room} tokens; give a larger --factor, "
                "or fewer --keys."
            )
        needles = dict(zip(given, drawn, strict=True))
        sizes = {book: room - haystacks.size(of_book) for book, of_book in needles.items()}
        most = max(sizes.values())
        books = texts.read(self.model.tokenizer, given, most, most)
        hidden = [needles[book] for book in books]
        samples = {}
        for book, ids in books.items():
            key = f"{book.title} {book.sha256[:12]}"
            text = ids[: sizes[book]].tolist()
            samples[key] = (book.title, haystacks.haystack(text, needles[book], self.bos))
        if self.arguments.last and self.context_length <= haystacks.QUESTION:
            raise InputError(
                f"the question takes all {self.context_length} tokens that --last reads; leave it "
                "out, or give a model with a longer context."
            )
        settings = {
            "length": length,
            "keys": len(hidden[0]),
            "key_tokens": len(hidden[0][0].key),
            "needles": records.identity(needles=[[each.sentence for each in of] for of in hidden]),
            **texts.bos_for_record(self.bos),
        }
        data = {book.title: book.sha256 for book in books}
        suffix = f"{'_last' if self.arguments.last else ''}_books={len(books)}"
        noted = {"read": self.context_length} if self.arguments.last else {}
        return Prepared(samples, settings, data, suffix, noted)

    def measure(self, model, requests: list) -> Iterator[tuple[str, list[dict]]]:
        for key, (_, haystack) in requests:
            tokens = haystack.tokens
            if self.arguments.last:
                tokens = haystack.last(self.context_length - haystacks.QUESTION)
            asked = haystacks.ask(model, tokens, haystack.needles)
            places = zip(haystack.places, haystack.distances(), asked, strict=True)
            yield (
                key,
                [
                    {"place": place, "distance": distance, "nats": round(nats, 4), "found": found}
                    for place, distance, (nats, found) in places
                ],
            )

    def summary(self, values: dict[str, list[dict]]) -> dict:
        samples = self.prepared.samples
        keys = {samples[sample][0]: of_text for sample, of_text in values.items()}
        return scores(keys, self.context_length)

    def rows(self, scores: dict) -> Iterator[tuple[str, ...]]:
        # no interval: keys of one text are no sample of texts
        for each in scores["ranges"]:
            where = "beyond L" if each["start"] else "within L"
            found = f"{each['found']} of {each['keys']} found"
            yield f"keys {where}", f"{each['nats']:.2f} nats", found


def scores(keys: dict[str, list[dict]], context_length: int) -> dict:
    """The scored part of a record: every key, and the means within L and beyond it.

    A key lies within L if it begins at most L tokens before the question.

    Args:
        keys: of each text its keys, by "place", "distance" (tokens), "nats" and "found".
    """
    every = [key for of_text in keys.values() for key in of_text]

    def over(start: int, some: Iterable[dict]) -> dict:
        some = list(some)
        return {
            "start": start,
            "nats": float(np.mean([key["nats"] for key in some])),
            "found": sum(key["found"] for key in some),
            "keys": len(some),
        }

    near = [key for key in every if key["distance"] <= context_length]
    far = [key for key in every if key["distance"] > context_length]
    parts = [(start, some) for start, some in ((0, near), (context_length, far)) if some]
    return {"keys": keys, "ranges": [over(start, some) for start, some in parts]}


main = Needles.main

if __name__ == "__main__":
    command_line.run(main)
