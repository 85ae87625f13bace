"""Where training text comes from: PG19 on the hub, a directory of the user's own, or books from a registry package."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from core import files
from core.errors import InputError
from experiments.lab import texts
from experiments.lab.texts import Book

HUB = "emozilla/pg19"  # PG19 as parquet; the loading script of the original is refused by datasets ≥ 4
SHUFFLE_BUFFER = 256  # books
NAMED = ("hub", "books")  # sources that are no directory
SUFFIXES = ".txt", ".parquet"


@dataclass(frozen=True)
class Corpus:
    """A source of books.

    Attributes:
        source: "hub", "books" (the registry package's, but for the one that evaluations score), or a directory of .txt
            and .parquet files (a column `text` of strings, and a title in `title` or `short_book_title` where there is
            one). Rows without text are no books.
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
            loaders = [lambda book=book: book for book in _packaged()]
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

    @functools.cached_property
    def fingerprint(self) -> list:
        """What tells this source from another or from a changed one: each file's name and SHA-256, or each book's.

        The hub has nothing of the kind; what was read of it is told by the hash of the tokens.
        """
        if self.source == "hub":
            return [HUB]
        if self.source == "books":
            return [[book.title, book.sha256] for book in _packaged()]
        return [[file.name, files.sha256(file)] for file in _listed(self.source)]


def in_directory(directory: str) -> list[Book]:
    """All books of a directory in the order of its files, empty ones included."""
    return [load() for load in _files(directory)]


def in_file(file: Path) -> list[Book]:
    """The books of a .parquet file, or the one that a text file is."""
    texts.check_file(file)
    return [load() for load in _loaders(file)]


def _files(directory: str) -> list:
    """One loader a book."""
    return [load for file in _listed(directory) for load in _loaders(file)]


def _loaders(file: Path) -> list:
    if file.suffix.lower() == ".parquet":
        return _rows(file)
    return [lambda: Book(file.stem, texts.content(file))]


def _packaged() -> list[Book]:
    return texts.books(texts.AVAILABLE)[texts.SCORED :]


def _listed(directory: str) -> list[Path]:
    folder = Path(directory)
    listed = sorted(f for f in folder.glob("*") if f.suffix.lower() in SUFFIXES) if folder.is_dir() else []
    if not listed:
        raise InputError(
            f"no .txt or .parquet file in {directory}; give --data a directory of them, `hub` for PG19, "
            "or `books` for the registry package's."
        )
    for file in listed:
        texts.check_file(file)
    return listed


def _rows(file: Path) -> list:
    """A loader for each row; a row is read when its book is wanted.

    Raises:
        InputError: no parquet, or no column `text` of strings; from a loader, a row that cannot be read.
    """
    import pyarrow
    import pyarrow.parquet

    broken = OSError, UnicodeDecodeError, pyarrow.ArrowException

    def refusal(error: Exception) -> InputError:
        reason = next(iter(str(error).strip().splitlines()), type(error).__name__)
        return InputError(f"{file} cannot be read as parquet ({reason}); write it anew, or take it out.")

    try:
        table = pyarrow.parquet.ParquetFile(file, memory_map=True)
        schema = table.schema_arrow
    except broken as error:
        raise refusal(error) from error
    names, types = schema.names, pyarrow.types
    if "text" not in names:
        raise InputError(f"{file} has no column `text` (it has {', '.join(names)}); name the books' column so.")
    kind = schema.field("text").type
    kind = kind.value_type if types.is_dictionary(kind) else kind
    if not any(is_kind(kind) for is_kind in (types.is_string, types.is_large_string, types.is_string_view)):
        raise InputError(f"the column `text` of {file} holds {kind}; give one string a row, a book's text.")
    title = next((name for name in ("title", "short_book_title") if name in names), None)
    columns = ["text", title] if title else ["text"]

    @functools.lru_cache(maxsize=1)
    def group(index: int):
        return table.read_row_group(index, columns=columns)

    def load(index: int, row: int, name: str) -> Book:
        try:
            part = group(index)
            return Book(str((part[title][row].as_py() if title else None) or name), part["text"][row].as_py() or "")
        except broken as error:
            raise refusal(error) from error

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
