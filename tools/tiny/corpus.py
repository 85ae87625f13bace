"""Text to pre-train on: a directory of parquet or text files, or the packaged books.

A checksum of a book's beginning holds out one book in twenty. A book that shares a passage with a book that
experiments/kit/texts.py scores is left out altogether; this does not apply to the packaged books themselves.
"""

from __future__ import annotations

import hashlib
import json
import re
import zlib
from dataclasses import dataclass
from pathlib import Path

from core.errors import InputError
from experiments.kit import texts
from experiments.training.corpus import in_directory, in_file

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


def load(data: Path | None, evaluation: list[Path] | None = None) -> Corpus:
    """Read the books.

    Args:
        data: a directory of .parquet files (column `text`) or .txt files. If None, the packaged books are used, except
            the one that evaluations score; the first nine tenths of each are for training and the rest is held out.
        evaluation: files with more books that must not be trained on.

    Raises:
        InputError: there is no such directory, or no text in it.
    """
    if data is None:
        books = [book.text for book in texts.books(texts.AVAILABLE)[texts.SCORED :]]
        cuts = [len(book) * 9 // 10 for book in books]
        train, held_out = zip(*((book[:cut], book[cut:]) for book, cut in zip(books, cuts)))
        return Corpus(list(train), list(held_out), "the registry package autocomplete, the first 90 % of each book")
    every = [book.text for book in in_directory(str(data))]
    unseen = [book.text for file in evaluation or [] for book in in_file(file)]
    books = [book for book in without_evaluation(every, unseen) if len(book) >= _SHORTEST]
    held_out = [book for book in books if is_held_out(book)]
    train = [book for book in books if not is_held_out(book)]
    if not train:
        raise InputError(
            f"there is no text to train on in {data}: give parquet files with a column 'text' or .txt files, with at "
            f"least one book of {_SHORTEST} characters."
        )
    return Corpus(train, held_out or train[-1:], f"{len(every)} books from {data.name}/")


def is_held_out(book: str) -> bool:
    """Whether a book is one of those, one in twenty, that are not trained on."""
    return zlib.crc32(" ".join(book[:4000].split())[:1000].encode()) % 20 == 0


def without_evaluation(books: list[str], evaluation: list[str]) -> list[str]:
    """The books that share no passage, in any edition, with those of `evaluation` or with the packaged books."""
    passages = []  # of eight words, evenly spread
    for text in [book.text for book in texts.books(texts.AVAILABLE)] + evaluation:
        words = _plain(text).split()
        starts = range(0, len(words) - 8, max(len(words) // _PROBES, 1))
        passages += [" ".join(words[i : i + 8]) for i in starts]
    return [book for book in books if not any(passage in plain for plain in [_plain(book)] for passage in passages)]


def _plain(text: str) -> str:
    return " ".join(re.findall(r"[a-z]+", text.lower()))
