"""Books to read: public-domain ones of Python packages, or the user's own files.

The package `autocomplete` carries `big.txt`, the corpus of Norvig's spelling corrector: four
Project Gutenberg books in one file. A book starts at its first sentence, after title page and
contents, and ends before Gutenberg's closing notice. The package `shakespeare` carries his plays
and poems, also from Project Gutenberg: verse, of one author.
"""

from __future__ import annotations

import argparse
import hashlib
import importlib.util
import os
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import records
from core import rope
from core.discovery import later
from core.errors import InputError, check_texts, in_one_line
from core.files import read_json
from core.schema import Text, check, having
from eval import special_tokens
from experiments.kit import command_line, processes
from records import trained

if TYPE_CHECKING:
    import torch
    from torch import Tensor

else:
    torch = later("torch")


@dataclass(frozen=True)
class Book:
    """A title and its text; InputError if one of them holds half of a surrogate pair.

    Attributes:
        whole: the SHA-256 of the book that this is a part of; empty if it is whole.
    """

    title: str
    text: str
    whole: str = ""

    def __post_init__(self) -> None:
        check_texts([self.title, self.text], f"the text {self.title!r}")

    @property
    def sha256(self) -> str:
        """The SHA-256 of the text in UTF-8, the same with Windows' line endings and byte-order mark
        as without."""
        return hashlib.sha256(_plain(self.text).encode()).hexdigest()


def _plain(text: str) -> str:
    """A text without a byte-order mark, whose lines end in a line feed."""
    return re.sub("\r\n?", "\n", text.removeprefix("\ufeff"))


def hashes(books: Iterable[Book]) -> set[str]:
    """The SHA-256 of texts and of the books that they are parts of: whoever read one of these knows
    them."""
    return {each for book in books for each in (book.sha256, book.whole) if each}


# title, where its text begins, where it ends
_BOOKS = (
    (
        "War and Peace",
        '"Well, Prince, so Genoa and Lucca',
        "*** END OF THE PROJECT GUTENBERG EBOOK, WAR AND PEACE",
    ),
    (
        "The Adventures of Sherlock Holmes",
        "To Sherlock Holmes she is always the woman.",
        "*** END OF",
    ),
    (
        "History of the United States",
        "The tide of migration that set in toward the shores",
        "End of the Project",
    ),
    ("Manual of Surgery", "To prolong human life and to alleviate suffering", "End of the Project"),
)
SUFFIXES = ".txt", ".parquet"  # of the user's own files
NAMED = 10  # of the texts that are left out
AVAILABLE = len(_BOOKS)
SCORED = 1  # evaluations score the first book by default; training uses the others
DEFAULT = f"packaged:{SCORED}"
PLAYS = 39
PARTS = 17  # of the first book: its fifteen books and two epilogues
_AT_THE_END = 64  # tokens
_KINDS = {"packaged": AVAILABLE, "parts": PARTS, "plays": PLAYS}  # of texts of packages
_OF_BOOKS = "loss_by_position", "needles"  # experiments whose records state the books as "data"
_PART = re.compile(r"^(?:BOOK [A-Z]+|FIRST EPILOGUE|SECOND EPILOGUE)(?::.*)?$", re.MULTILINE)


def add_arguments(to: argparse._ActionsContainer, verb: str = "score") -> None:
    """Add --texts, --books-of and --bos."""
    command_line.list_option(
        to,
        "--texts",
        source,
        "PATH|KIND:N",
        f"{verb} these .txt or .parquet files, or those in these folders; or, of packages, the "
        f"first books (up to packaged:{AVAILABLE}), parts of War and Peace (up to parts:{PARTS}) "
        f"or long texts of Shakespeare (up to plays:{PLAYS}) (default {DEFAULT})",
    )
    add_books_of(to)
    add_bos_argument(to)


def add_books_of(to: argparse._ActionsContainer) -> None:
    """Add --books-of."""
    command_line.option(
        to,
        "--books-of",
        command_line.path,
        "RECORD",
        "of --texts, those that this record of losses or keys is of, found by their content",
    )


def add_bos_argument(to: argparse._ActionsContainer, where: str = "each window") -> None:
    """Add --bos and --no-bos."""
    command_line.on_or_off(
        to,
        "bos",
        f"begin {where} with BOS (default: what the tokenizer does before a text)",
        f"begin {where} with the text itself",
    )


def bos_for_record(bos: Sequence[int]) -> dict[str, bool]:
    """What a record says of the ids before its texts: nothing where there are none, as for tiny and
    SmolLM2."""
    return {"bos": True} if bos else {}


# of a file of factors that states what they were learned from
_READ = list[having({"title": Text, "sha256": Text})]
_LEARNED = having({}, {"data_facts": having({}, {"books": _READ})})


def chosen(arguments: argparse.Namespace) -> list[Book]:
    """The texts that a command line names."""
    found = named(arguments.texts or [DEFAULT])
    return books_of(arguments.books_of, found) if arguments.books_of else told_apart(found)


def source(text: str) -> Path | str:
    """What --texts names: texts of packages by a name such as "plays:39", else a path."""
    kind, colon, count = text.partition(":")
    if not colon or kind not in _KINDS:
        return command_line.path(text)
    if count not in map(str, range(1, _KINDS[kind] + 1)):
        raise argparse.ArgumentTypeError(
            f"{text!r} names no texts; give {kind}:1 to {kind}:{_KINDS[kind]}"
        )
    return text


def corpus(text: str) -> str:
    """What --corpus names: `hub`, `books`, or the absolute path of a directory."""
    if text in ("hub", "books"):
        return text
    return str(command_line.existing_directory(text).absolute())


def named(given: Sequence[Path | str]) -> list[Book]:
    """The texts of files and folders, or those of packages that one name stands for.

    Args:
        given: what :func:`source` makes of words.

    Raises:
        InputError: there is such a name and more, or a text cannot be read.
    """
    names = [each for each in given if isinstance(each, str)]
    if not names:
        return files(given)
    if len(given) > 1:
        raise InputError(
            f"{names[0]!r} is given beside other texts; give it alone, or leave it out."
        )
    kind, count = names[0].split(":")
    return {"packaged": books, "parts": parts, "plays": plays}[kind](int(count))


def scored(experiment) -> list[Book]:
    """The texts that the command line of an experiment names.

    Raises:
        InputError: the checkpoint, or a method's factors, learned from one of them.
    """
    model = experiment.model
    learned = []
    for method, options in [] if model.extension else experiment.comparison():
        learned += rope.named_files(method, options).values() if method else ()
    return unread(experiment, learned)


def unread(command, learned: Iterable[Path] = ()) -> list[Book]:
    """The texts that a command line names.

    Args:
        learned: files of factors that were learned.

    Raises:
        InputError: the checkpoint, whatever method extends it, or one of these factors, learned
            from one of them.
    """
    books = chosen(command.arguments)
    known = hashes(books)
    read = {command.model.name: command.model.learned_from}
    read |= {str(path): trained.books(_learned(path) or {}) for path in learned}
    for name, of_name in read.items():
        for book in of_name:
            if book["sha256"] in known:
                raise InputError(f"{name} was trained on {book['title']!r}; score another text.")
    return books


def _learned(path: Path) -> dict | None:
    """What a file of a method, or the fine-tune that it lies in, says of how it was learned; None
    if it says nothing."""
    if path.is_dir():
        return trained.in_folder(path)
    if path.suffix == ".safetensors":
        return trained.in_folder(path.parent)
    remedy = "give a file that is whole"
    facts = read_json(path, remedy, (dict, list))
    if isinstance(facts, list):
        return None
    check(facts, _LEARNED, str(path), remedy)
    return facts


def parts(count: int) -> list[Book]:
    """The first `count` parts of the first packaged book, from one of its own headings to the next;
    InputError if the package is missing."""
    (book,) = books(1)
    return [
        Book(f"{book.title}, part {number}", text.strip(), book.sha256)
        for number, text in enumerate(_PART.split(book.text)[:count], 1)
    ]


def books(count: int) -> list[Book]:
    """The first `count` packaged books; InputError if the package is missing."""
    corpus = (_package("autocomplete") / "big.txt").read_text(encoding="utf-8")
    return [
        Book(title, first + corpus.partition(first)[2].partition(last)[0].rstrip())
        for title, first, last in _BOOKS[:count]
    ]


def plays(count: int) -> list[Book]:
    """The first `count` of Shakespeare's texts of 80 kB and more, by their titles; InputError if
    the package is missing."""
    listed = (_package("shksprdata", "shakespeare") / "texts").glob("*_gut.txt")
    long = sorted(file for file in listed if file.stat().st_size >= 80_000)
    return [
        Book(file.stem.removesuffix("_gut").replace("_", " ").title(), content(file))
        for file in long[:count]
    ]


def files(paths: Iterable[Path]) -> list[Book]:
    """The books in the user's own files, and in those of folders; some may be empty.

    Raises:
        InputError: a file is missing or cannot be read, or there is no text in any.
    """
    of_files = {
        file: in_file(file)
        for path in paths
        for file in (in_folder(path) if path.is_dir() else [path])
    }
    found = [book for books in of_files.values() for book in books]
    if not any(book.text.strip() for book in found):
        raise InputError(
            f"there is no text in {', '.join(map(str, paths))}; give a file that holds some."
        )
    if empty := [file.name for file, books in of_files.items() if not books]:
        print(f"{command_line.SKIPPED}files without a text: {', '.join(empty)}")
    return found


def told_apart(given: list[Book]) -> list[Book]:
    """The books; InputError if two have the same title, which a record could not tell apart, or if
    two are the same text, which would count as two."""
    titles = {}  # by the hash of the text
    for book in given:
        if book.title in titles.values():
            raise InputError(f"two texts are called {book.title!r}; give them different names.")
        other = titles.get(book.sha256)
        if other and book.text.strip():
            raise InputError(f"{other!r} and {book.title!r} are the same text; give it once.")
        titles[book.sha256] = book.title
    return given


def books_of(record: Path, given: list[Book]) -> list[Book]:
    """Those of the books that a record was measured on, under its titles, so that what is measured
    on them stands beside it.

    Raises:
        InputError: it is no record of losses or keys in books, or some of its books are not there.
    """
    if record.parent.name not in _OF_BOOKS:
        raise InputError(f"{record} is no record of {' or '.join(_OF_BOOKS)}; give one.")
    by_content = {book.sha256: book for book in given}
    books = records.read(record)["run"]["data"]
    missing = [title for title, content in books.items() if content not in by_content]
    if missing:
        raise InputError(
            f"{len(missing)} of the {len(books)} books of {record} are not in --texts, such as "
            f"{missing[0]!r} (SHA-256 {books[missing[0]]}); give all of them, or leave out "
            "--books-of, and the rows stand apart."
        )
    return [replace(by_content[content], title=title) for title, content in books.items()]


def in_folder(folder: Path) -> list[Path]:
    """The files of books in a folder; InputError if it is no folder, or has none."""
    if not folder.is_dir():
        raise InputError(f"{folder} is no directory; give one that holds .txt or .parquet files.")
    inside = sorted(file for file in folder.glob("*") if file.suffix.lower() in SUFFIXES)
    if not inside:
        raise InputError(f"no .txt or .parquet file in {folder}; give a folder that has some.")
    for file in inside:
        check_file(file)
    return inside


def is_parquet(file: Path) -> bool:
    """Whether a file holds a table of books."""
    return file.suffix.lower() == ".parquet"


def in_file(file: Path) -> list[Book]:
    """The books of a .parquet file, or the one book of a text file; some may be empty.

    A parquet file has a column `text` of strings and may have titles in `title` or
    `short_book_title`.

    Raises:
        InputError: the file is not UTF-8, not parquet, or has no column `text` of strings.
    """
    if not is_parquet(file):
        return [Book(file.stem, content(file))]
    import pyarrow.parquet

    try:
        table = pyarrow.parquet.ParquetFile(file).read()
        rows = table.to_pydict()
    except (OSError, UnicodeDecodeError, pyarrow.ArrowException) as error:
        raise InputError(
            f"{file} cannot be read as parquet ({in_one_line(error)}); write it again, or take it "
            "out."
        ) from error
    if not all(isinstance(text, str | None) for text in rows.get("text", [0])):
        raise InputError(
            f"{file} has no column `text` with a book's text in each row (it has "
            f"{', '.join(table.column_names)}); write one."
        )
    titles = rows.get("title") or rows.get("short_book_title") or [None] * table.num_rows
    return [
        Book(str(title or f"{file.stem} {row}"), _plain(text or ""))
        for row, (title, text) in enumerate(zip(titles, rows["text"], strict=True))
    ]


def content(path: Path) -> str:
    """A text file's content, which may be empty; InputError if it is not a file of UTF-8.

    A byte-order mark is no part of it, and a line ends in a line feed, whatever editor wrote the
    file.
    """
    check_file(path)
    try:
        return path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(
            f"cannot read {path} as UTF-8 text ({error}); give a plain text file."
        ) from error


def check_file(path: Path) -> None:
    """Raise InputError unless this is a file or a link to one."""
    if not os.path.isfile(path):
        most = _KINDS.get(str(path))
        meant = f" (of a package: {path}:1 to {path}:{most})" if most else ""
        raise InputError(f"no text file at {path}{meant}; give a file, or take it out.")


def read(tokenizer, given: list[Book], least: int, most: int | None = None) -> dict[Book, Tensor]:
    """The ids [count] of each text's first `most` tokens, of all if None, without the special
    tokens around a text.

    A text that has fewer than `least` tokens is left out, and named.

    Raises:
        InputError: no text has so many, or the model has no embedding for a token.
    """
    ids = {book: _tokens(tokenizer, book, most) for book in given}
    short = {book.title: len(of_text) for book, of_text in ids.items() if len(of_text) < least}
    if len(short) == len(ids):
        longest = max(short, key=short.__getitem__)
        raise InputError(
            f"{longest!r} has {short[longest]} tokens, and {least} are to be read; give a longer "
            "text."
        )
    say_left_out(short, least)
    return {book: of_text for book, of_text in ids.items() if book.title not in short}


def say_left_out(short: dict[str, int], least: int) -> None:
    """Name the texts that are too short, by their titles and numbers of tokens."""
    if not (short and processes.is_first()):
        return
    named = ", ".join(f"{title!r} ({count})" for title, count in [*short.items()][:NAMED])
    more = f" and {len(short) - NAMED} others" if len(short) > NAMED else ""
    print(f"{command_line.SKIPPED}what has fewer than {least} tokens: {named}{more}")


def sequences(
    tokenizer, given: list[Book], length: int, bos: Sequence[int] = ()
) -> dict[Book, Tensor]:
    """Of each text the ids of its beginning with `length` tokens to score: all that are read, the
    last of which is only predicted. A text that is too short is left out, and named.

    Args:
        length: how many of the last tokens are scored: all but those of `bos`, or but the first if
            there is none.
        bos: the ids before a text, from :func:`eval.special_tokens.beginning`.

    Raises:
        InputError: as of :func:`read`.
    """
    count = length + int(not bos)
    before = torch.tensor(bos, dtype=torch.int64)
    read_ids = read(tokenizer, given, count, count)
    return {book: torch.cat([before, ids]) for book, ids in read_ids.items()}


def _tokens(tokenizer, book: Book, most: int | None) -> Tensor:
    """The ids of a text's first `most` tokens; none if it is blank."""
    if not book.text.strip():
        return torch.tensor([], dtype=torch.int64)
    # Seven characters per token is more than English text needs, and saves tokenising a whole book.
    excerpt = book.text if most is None else book.text[: 7 * most]
    (ids,) = special_tokens.as_characters(tokenizer, [excerpt], [book.title])
    # Where the excerpt ends, its last tokens may be others than in the whole text.
    if len(excerpt) < len(book.text) and len(ids) < most + _AT_THE_END:
        (ids,) = special_tokens.as_characters(tokenizer, [book.text], [book.title])
    special_tokens.check_ids(tokenizer, ids[:most], repr(book.title))
    return torch.tensor(ids[:most], dtype=torch.int64)


def _package(module: str, name: str = "") -> Path:
    spec = importlib.util.find_spec(module)
    if spec is None:
        raise InputError(
            f"the package {name or module} that carries the texts is not installed; give texts of "
            "your own (--texts), or run `make env` in a checkout."
        )
    return Path(spec.submodule_search_locations[0])
