"""Where training text comes from: PG19 on the hub, the user's own directory, or the packaged books."""

from __future__ import annotations

import contextlib
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

HUB = "emozilla/pg19"  # PG19 as parquet; the original is a loading script, which is no longer supported
TRAINING = "data/train-*.parquet"  # 23 shards of 1,244 books
SUFFIXES = ".txt", ".parquet"


@dataclass(frozen=True)
class Corpus:
    """A source of books.

    Attributes:
        source: "hub", "books" (the packaged books, except the one that evaluations score), or a directory of .txt and
            .parquet files. A parquet file has a column `text` of strings and may have titles in `title` or
            `short_book_title`. Rows without text are skipped.
    """

    source: str

    def books(self, seed: int) -> Iterator[Book]:
        """Every book once, in an order that the seed decides.

        Raises:
            InputError: there are no files, there is no text in them, or the hub cannot be reached.
        """
        if self.source == "hub":
            return from_hub(seed)
        loaders = [lambda book=book: book for book in _packaged()] if self.source == "books" else _files(self.source)
        return _loaded(_shuffled(loaders, np.random.default_rng(seed)))

    @property
    def count(self) -> int | None:
        """The number of books, if they are so few that each should give an equal share; else None."""
        return texts.AVAILABLE - texts.SCORED if self.source == "books" else None

    @property
    def name(self) -> str:
        """The source as a record names it: a directory without its path, which says nothing of its contents."""
        return self.source if self.source in ("hub", "books") else "directory"

    @functools.cached_property
    def fingerprint(self) -> list:
        """What identifies this source's contents: the name and SHA-256 of each file or book, of text files as read.

        For the hub it is the repository and its commit.
        """
        if self.source == "hub":
            return [HUB, hub.REVISIONS[HUB]]
        if self.source == "books":
            return [[book.title, book.sha256] for book in _packaged()]
        return [[file.name, files.sha256(file) if _is_parquet(file) else _book(file).sha256]
                for file in _listed(self.source)]  # fmt: skip


def in_directory(directory: str) -> list[Book]:
    """All books in a directory in the order of its files, including empty ones."""
    return [load() for load in _files(directory)]


def in_file(file: Path) -> list[Book]:
    """The books of a .parquet file, or the one book of a text file."""
    texts.check_file(file)
    return [load() for load in _loaders(file)]


def _files(directory: str) -> list:
    """One loader per book."""
    return [load for file in _listed(directory) for load in _loaders(file)]


def _loaders(file: Path) -> list:
    return [load for group in _groups(file) for load in group] if _is_parquet(file) else [lambda: _book(file)]


def _is_parquet(file: Path) -> bool:
    return file.suffix.lower() == ".parquet"


def _book(file: Path) -> Book:
    return Book(file.stem, texts.content(file))


def _packaged() -> list[Book]:
    return texts.books(texts.AVAILABLE)[texts.SCORED :]


def _listed(directory: str) -> list[Path]:
    folder = Path(directory)
    listed = sorted(f for f in folder.glob("*") if f.suffix.lower() in SUFFIXES) if folder.is_dir() else []
    if not listed:
        raise InputError(
            f"no .txt or .parquet file in {directory}; give --corpus a directory of them, `hub` for PG19, "
            "or `books` for the packaged books."
        )
    for file in listed:
        texts.check_file(file)
    return listed


def _groups(file: Path) -> list[list]:
    """A loader for each row of each row group; a group is read when one of its books is needed.

    Raises:
        InputError: the file is not parquet or has no column `text` of strings; a loader raises it for a row that cannot
            be read.
    """
    import pyarrow
    import pyarrow.parquet

    @contextlib.contextmanager
    def reading() -> Iterator[None]:
        try:
            yield
        except (OSError, UnicodeDecodeError, pyarrow.ArrowException) as error:
            reason = in_one_line(error)
            raise InputError(f"{file} cannot be read as parquet ({reason}); write it again, or take it out.") from error

    with reading():
        table = pyarrow.parquet.ParquetFile(file, memory_map=True)
        schema = table.schema_arrow
    names = schema.names
    if "text" not in names:
        raise InputError(f"{file} has no column `text` (it has {', '.join(names)}); rename the column of the books.")
    kind = schema.field("text").type
    kind = kind.value_type if pyarrow.types.is_dictionary(kind) else kind
    if str(kind) not in ("string", "large_string", "string_view"):
        raise InputError(f"the column `text` of {file} holds {kind}; give one string per row, the text of a book.")
    title = next((name for name in ("title", "short_book_title") if name in names), None)
    columns = ["text", title] if title else ["text"]

    @functools.lru_cache(maxsize=1)
    def group(index: int):
        return table.read_row_group(index, columns=columns)

    def load(index: int, row: int, name: str) -> Book:
        with reading():
            rows = group(index)
            return Book(str((rows[title][row].as_py() if title else None) or name), rows["text"][row].as_py() or "")

    return [
        [
            functools.partial(load, index, row, f"{file.stem} {index}.{row}")
            for row in range(table.metadata.row_group(index).num_rows)
        ]
        for index in range(table.num_row_groups)
    ]


def from_hub(seed: int | None) -> Iterator[Book]:
    """The training books of PG19 on the hub; without a seed, in their own order.

    A seed shuffles the shards, the row groups in each and the books in each group. So a shard is downloaded only when
    its first book is needed, and a group is read once.
    """
    otherwise = "give --corpus a directory of text or parquet files instead"
    rng = None if seed is None else np.random.default_rng(seed)
    for name in _shuffled(hub.files(HUB, TRAINING, otherwise), rng):
        (shard,) = hub.download(HUB, name, otherwise)
        for group in _shuffled(_groups(shard), rng):
            yield from _loaded(_shuffled(group, rng))


def _shuffled(items: list, rng: np.random.Generator | None) -> list:
    return items if rng is None else [items[index] for index in rng.permutation(len(items))]


def _loaded(loaders: list) -> Iterator[Book]:
    """The books that are not empty."""
    return (book for load in loaders if (book := load()).text.strip())
