"""Long public-domain books to score, from a Python package or from the user's own files.

The package `autocomplete` carries `big.txt`, the corpus of Norvig's spelling corrector: four Project Gutenberg books in
one file. A book starts at its first sentence, after title page and contents, and ends before Gutenberg's closing
notice.
"""

from __future__ import annotations

import argparse
import hashlib
import importlib.util
import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from core.errors import InputError
from experiments.kit import command_line

if TYPE_CHECKING:
    import torch


@dataclass(frozen=True)
class Book:
    """A title and its text."""

    title: str
    text: str

    @property
    def sha256(self) -> str:
        """The SHA-256 of the text in UTF-8."""
        return hashlib.sha256(self.text.encode()).hexdigest()


# title, where its text begins, where it ends
_BOOKS = (
    ("War and Peace", '"Well, Prince, so Genoa and Lucca', "*** END OF THE PROJECT GUTENBERG EBOOK, WAR AND PEACE"),
    ("The Adventures of Sherlock Holmes", "To Sherlock Holmes she is always the woman.", "*** END OF"),
    ("History of the United States", "The tide of migration that set in toward the shores", "End of the Project"),
    ("Manual of Surgery", "To prolong human life and to alleviate suffering", "End of the Project"),
)
AVAILABLE = len(_BOOKS)
SCORED = 1  # evaluations score the first book by default; training uses the others


def add_arguments(to: argparse._ActionsContainer, verb: str = "score") -> None:
    """Add --books and --text."""
    packaged = f"{verb} the first N of the {AVAILABLE} packaged books"
    command_line.option(to, "--books", command_line.count, "N", packaged, 1)
    to.add_argument("--text", type=Path, nargs="+", metavar="FILE", help=f"{verb} these text files instead")


def chosen(arguments: argparse.Namespace) -> list[Book]:
    """The texts that a command line names."""
    return files(arguments.text) if arguments.text else books(arguments.books)


def books(count: int) -> list[Book]:
    """The first `count` packaged books.

    Raises:
        InputError: the count is out of range, or the package is missing.
    """
    if not 1 <= count <= AVAILABLE:
        raise InputError(f"{count} books were asked for; the package carries {AVAILABLE}, so give 1 to {AVAILABLE}.")
    spec = importlib.util.find_spec("autocomplete")
    if spec is None:
        raise InputError("the package autocomplete that carries the books is not installed; run `make env`.")
    corpus = (Path(spec.submodule_search_locations[0]) / "big.txt").read_text(encoding="utf-8")
    return [_cut(corpus, *entry) for entry in _BOOKS[:count]]


def files(paths: list[Path]) -> list[Book]:
    """The user's own text files, one book each.

    Raises:
        InputError: a file is missing, is not UTF-8 or is empty, or two files have the same name, which a record could
            not tell apart.
    """
    texts = [Book(path.stem, read(path)) for path in paths]
    titles = [book.title for book in texts]
    for title in titles:
        if titles.count(title) > 1:
            raise InputError(f"two texts are called {title!r}; give the files different names.")
    return texts


def read(path: Path) -> str:
    """A text file's content; InputError if it cannot be read or is empty."""
    text = content(path)
    if not text.strip():
        raise InputError(f"{path} is empty; give a text to read.")
    return text


def content(path: Path) -> str:
    """A text file's content, which may be empty; InputError if it is not a file of UTF-8."""
    check_file(path)
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"cannot read {path} as UTF-8 text ({error}); give a plain text file.") from error


def check_file(path: Path) -> None:
    """Raise InputError unless this is a file or a link to one."""
    if not os.path.isfile(path):
        raise InputError(f"no text file at {path}; give a file, or take it out.")


def tokens(tokenizer, text: str, most: int | None = None) -> torch.Tensor:
    """The ids [count] of a text's first `most` tokens; of all its tokens if None.

    There are no special tokens, because windows begin anywhere in a book. Prompts have those that the tokenizer adds by
    default, as in the programs of LongBench, lm-eval and NVIDIA: <s> for LLaMA2, none for tiny and SmolLM2.
    """
    # Seven characters per token is more than English text needs, and saves tokenising a whole book.
    excerpt = text if most is None else text[: 7 * most]
    ids = tokenizer(excerpt, add_special_tokens=False, return_tensors="pt").input_ids[0]
    if len(excerpt) < len(text) and len(ids) < most:
        return tokens(tokenizer, text)[:most]
    return ids[:most]


def book_tokens(tokenizer, book: Book, length: int) -> torch.Tensor:
    """The book's first length + 1 tokens, without special tokens."""
    ids = tokens(tokenizer, book.text, length + 1)
    if len(ids) <= length:
        raise InputError(f"{book.title!r} has {len(ids)} tokens; scoring {length} positions needs a longer text.")
    return ids


def _cut(corpus: str, title: str, first: str, last: str) -> Book:
    start = corpus.index(first)
    return Book(title, corpus[start : corpus.index(last, start)].rstrip())
