"""Training text: where it comes from, and full-length sequences of it on disk, in an order that
depends on seed and step alone.

Text is PG19 on the hub, the user's own directory, or the packaged books.

A sequence is L' consecutive tokens of one book; the rest at the end of a book is dropped. The paper
only says "fine-tuned ... with a max length of 8192" on PG19. Sequences from single books respect
document boundaries without attention masks, every position has real long-range context, and only a
few per cent of a PG19 book (about 100,000 tokens) are dropped. A book begins with BOS where it is
asked for, so a sequence from its middle does not. With `per_book`, no book gives more than so many
sequences, which begin at a place in it that the seed decides.

The sequences are tokenised once into a memory-mapped file, which runs with the same source,
tokeniser, length and seed share. So all methods see the same data, and a resumed run continues at
its step without reading a text again.
"""

import functools
import itertools
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor
from tqdm import tqdm
from transformers import PreTrainedTokenizerBase

from core import files
from core.errors import InputError
from eval import hub, special_tokens
from experiments.kit import processes, texts
from experiments.kit.loading import tokenizer_hash
from experiments.kit.texts import Book
from records import identity, versions

# PG19 as parquet; the original is a loading script, which is no longer supported
HUB = "emozilla/pg19"
TRAINING = "data/train-*.parquet"  # 23 shards of 1,244 books
TOGETHER = 32  # books that are tokenised at a time, on all cores


def books(source: str, seed: int) -> Iterator[Book]:
    """Every book of a source once, in an order that the seed decides: it shuffles the files, and
    the books in each.

    So one file is read at a time, and a shard of the hub is downloaded only when its first book is
    needed.

    Args:
        source: "hub", "books" (the packaged books, except the one that evaluations score), or a
            directory of files, see :func:`experiments.kit.texts.in_file`. Empty books are skipped.

    Raises:
        InputError: there are no files, there is no text in them, or the hub cannot be reached.
    """
    rng = np.random.default_rng(seed)
    if source == "books":
        yield from _shuffled(texts.books(texts.AVAILABLE)[texts.SCORED :], rng)
        return
    if source == "hub":
        instead = "give --corpus a directory of text or parquet files instead"
        download = functools.partial(hub.download, HUB, otherwise=instead)
        names = _shuffled(download(TRAINING, dry_run=True), rng)
        paths = (path for name in names for path in download(name))
    else:
        paths = iter(_shuffled(texts.in_folder(Path(source)), rng))
    for path in paths:
        yield from (book for book in _shuffled(texts.in_file(path), rng) if book.text.strip())


def content(source: str) -> str | list:
    """What identifies a source: its content, not its path.

    It is the name and SHA-256 of each file, of text files as read; of the hub its repository and
    commit; and the packaged books have a name.
    """
    if source == "hub":
        return [HUB, hub.REVISIONS[HUB]]
    if source == "books":
        return source
    return [
        [
            file.name,
            files.sha256(file) if texts.is_parquet(file) else texts.in_file(file)[0].sha256,
        ]
        for file in texts.in_folder(Path(source))
    ]


def _shuffled(items: list, rng: np.random.Generator) -> list:
    return [items[index] for index in rng.permutation(len(items))]


class PackedSequences:
    """Training sequences in training order.

    Item i is {"input_ids": int64 [length], "labels": the same}. If `total` exceeds the number of
    sequences, they come again in another order.

    Attributes:
        facts: the source, its books with their hashes and numbers of sequences, and the SHA-256 of
            all tokens.

    Raises:
        InputError: a file in the directory is not what was written there.
    """

    def __init__(self, directory: Path, total: int, seed: int) -> None:
        again = f"remove {directory}; it will be made again"
        tokens = directory / "tokens.bin"
        self.facts = files.read_json(directory / "data.json", again)
        content = self.facts.pop("content", None)
        if content != identity(**self.facts) or self.facts["sha256"] != files.sha256(tokens):
            raise InputError(f"{directory} is not what was written there; {again}.")
        shape = self.facts["sequences"], self.facts["length"]
        self._tokens = np.memmap(tokens, self.facts["dtype"], "r", shape=shape)
        self._total = total
        self._seed = seed

    def __len__(self) -> int:
        return self._total

    def order(self) -> list[int]:
        """The book of each sequence in training order, as its place in `facts["books"]`; of the
        first pass over the data."""
        books = self.facts["books"]
        of_row = np.repeat(np.arange(len(books)), [book["sequences"] for book in books])
        rows = _order(self._seed, 0, len(of_row))
        return of_row[rows][: self._total].tolist()

    def __getitem__(self, index: int) -> dict[str, Tensor]:
        epoch, turn = divmod(index, len(self._tokens))
        row = _order(self._seed, epoch, len(self._tokens))[turn]
        tokens = torch.from_numpy(self._tokens[row].astype(np.int64))
        return {"input_ids": tokens, "labels": tokens}


@functools.lru_cache(maxsize=2)
def _order(seed: int, epoch: int, count: int) -> np.ndarray:
    return np.random.default_rng([seed, epoch]).permutation(count)


@dataclass(frozen=True)
class Wanted:
    """What a training run reads.

    Attributes:
        source: as for :func:`books`.
        length: tokens per sequence, L'.
        batch: sequences per step.
        steps: their number.
        seed: of the order of the books and of the sequences.
        bos: the ids before every book, from :func:`eval.special_tokens.beginning`.
        per_book: the most sequences that a book gives; by default an equal share of the packaged
            books, and all of any other.
    """

    source: str
    length: int
    batch: int
    steps: int
    seed: int
    bos: Sequence[int] = ()
    per_book: int | None = None

    @property
    def total(self) -> int:
        """Sequences in all steps."""
        return self.batch * self.steps


def pack(wanted: Wanted, tokenizer: PreTrainedTokenizerBase, cache: Path) -> PackedSequences:
    """The sequences of all steps, tokenised on first use.

    Args:
        cache: the directory that holds one directory per set of sequences.

    Raises:
        InputError: there is no text, or too little for one batch of this length, or a token that
            the model has no embedding for.
    """
    what = {
        "source": content(wanted.source),
        "tokenizer": tokenizer_hash(tokenizer),
        "length": wanted.length,
        "wanted": wanted.total,
        "seed": wanted.seed,
        "bos": list(wanted.bos),
        "per_book": wanted.per_book,
        "code": _code(),
    }
    directory = cache / identity(**what)

    # In one process per host, as hosts may not share a disk; and of one command, which finds the
    # directory whole if another one made it.
    with processes.one_of_all(int(os.environ.get("LOCAL_RANK", "0")) == 0) as here:
        if here:
            with files.lock(directory.with_name(f"{directory.name}.tokens"), wait=True):
                if not directory.exists():
                    with files.new(directory) as new:
                        _write(new, wanted, tokenizer)
    return PackedSequences(directory, wanted.total, wanted.seed)


def _code() -> str:
    """A hash of what decides the tokens of a text: the code and the libraries that read it."""
    modules = Path(__file__), *(Path(each.__file__) for each in (texts, special_tokens))
    hashes = [files.sha256(file) for file in modules]
    return identity(code=hashes, packages=versions("numpy", "tokenizers", "transformers"))


def _write(folder: Path, wanted: Wanted, tokenizer) -> None:
    source = wanted.source
    length = wanted.length
    dtype = "uint16" if len(tokenizer) <= 2**16 else "uint32"
    stated: list[dict] = []
    sizes: list[tuple[str, int]] = []
    left = wanted.total
    folder.mkdir()
    bar = tqdm(total=wanted.total, unit="sequence", desc="tokenising", delay=3, leave=False)
    with open(folder / "tokens.bin", "wb") as out, bar:
        for number, (book, of_text) in enumerate(_tokenised(source, tokenizer, wanted.seed)):
            special_tokens.check_ids(tokenizer, of_text, f"{book.title!r} in {source}")
            tokens = [*wanted.bos, *of_text]
            sizes.append((book.title, len(tokens)))
            first, count = _taken(wanted, number, len(tokens) // length, left)
            if count:
                ids = tokens[first * length : (first + count) * length]
                out.write(np.asarray(ids, dtype=dtype).tobytes())
                stated.append(
                    {
                        "title": book.title,
                        "sha256": book.sha256,
                        "tokens": len(tokens),
                        "first": first,
                        "sequences": count,
                    }
                )
                left -= count
                bar.update(count)
            if not left:
                break
    longest = max((size for _, size in sizes), default=0)
    if not longest:
        raise InputError(f"the corpus {source} holds no text; give --corpus a directory of books.")
    written = wanted.total - left
    if written < wanted.batch:
        raise InputError(
            f"the corpus {source} gives {written} sequences of {length} tokens and a batch needs "
            f"{wanted.batch} (its longest book has {longest} tokens); give a shorter --length, a "
            "smaller --batch or more text."
        )
    texts.say_left_out({title: size for title, size in sizes if size < length}, length)
    facts = {
        # a directory's path says nothing of its contents
        "source": source if source in ("hub", "books") else "directory",
        "length": length,
        "sequences": written,
        "dtype": dtype,
        "sha256": files.sha256(folder / "tokens.bin"),
        "books": stated,
    }
    files.write_json(folder / "data.json", facts | {"content": identity(**facts)})


def _taken(wanted: Wanted, number: int, whole: int, left: int) -> tuple[int, int]:
    """Which of a book's whole sequences are taken: the first, and how many.

    Args:
        number: of the book, in order.
        whole: how many it has.
        left: how many are still wanted.
    """
    most = wanted.per_book
    # The packaged books are so few that each gives an equal share.
    if wanted.source == "books" and most is None:
        most = -(-wanted.total // (texts.AVAILABLE - texts.SCORED))
    if most is None:
        return 0, min(whole, left)
    count = min(whole, most, left)
    draws = np.random.default_rng([wanted.seed, number])
    return int(draws.integers(whole - count + 1)), count


def _tokenised(source: str, tokenizer, seed: int) -> Iterator[tuple[Book, list[int]]]:
    """The books with their token ids, TOGETHER at a time on all cores."""
    unread = books(source, seed)
    while group := list(itertools.islice(unread, TOGETHER)):
        ids = special_tokens.as_characters(
            tokenizer, [book.text for book in group], [book.title for book in group]
        )
        yield from zip(group, ids, strict=True)
