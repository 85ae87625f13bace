"""Books as full-length training sequences on disk, in an order that depends on seed and step alone.

A sequence is L' consecutive tokens of one book; the rest at the end of a book is dropped. The paper only says
"fine-tuned ... with a max length of 8192" on PG19. Sequences from single books respect document boundaries without
attention masks, every position has real long-range context, and only a few per cent of a PG19 book (about 100,000
tokens) are dropped. A book begins with BOS where it is asked for, so a sequence from its middle does not.

The sequences are tokenised once into a memory-mapped file, which runs with the same source, tokeniser, length and seed
share. So all methods see the same data, and a resumed run continues at its step without reading a text again.
"""

from __future__ import annotations

import functools
import hashlib
import json
import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import numpy as np
import torch
from torch.utils.data import Dataset
from tqdm import tqdm
from transformers import PreTrainedTokenizerBase

from core import files
from core.errors import InputError
from eval import special_tokens
from experiments.kit.records import identity
from experiments.kit.texts import Book
from experiments.training import launch
from experiments.training.corpus import Corpus

_REMEDY = "remove its directory; it will be made again"
TOGETHER = 2**20  # bytes of text per core that are tokenised at a time, which takes 100 MB of memory


class PackedSequences(Dataset):
    """Training sequences in training order.

    Item i is {"input_ids": int64 [length], "labels": the same}. If `total` exceeds the number of sequences, they come
    again in another order.

    Attributes:
        facts: the source, its books with their hashes and numbers of sequences, and the SHA-256 of all tokens.
    """

    def __init__(self, directory: Path, total: int, seed: int) -> None:
        self.facts = files.read_json(directory / "data.json", _REMEDY)
        shape = self.facts["sequences"], self.facts["length"]
        self._tokens = np.memmap(directory / "tokens.bin", dtype=self.facts["dtype"], mode="r", shape=shape)
        self._total, self._seed = total, seed

    def __len__(self) -> int:
        return self._total

    def __getitem__(self, index: int) -> dict[str, torch.Tensor]:
        tokens = torch.from_numpy(self._tokens[self._row(index)].astype(np.int64))
        return {"input_ids": tokens, "labels": tokens}

    def describe(self, index: int) -> str:
        """The book and the tokens that item `index` comes from."""
        row = self._row(index)
        for book in self.facts["books"]:
            if row < book["sequences"]:
                begin = (book["first"] + row) * self.facts["length"]
                return f"{book['title']!r}, tokens {begin}-{begin + self.facts['length'] - 1}"
            row -= book["sequences"]
        raise IndexError(index)

    def _row(self, index: int) -> int:
        epoch, place = divmod(index, len(self._tokens))
        return int(_order(self._seed, epoch, len(self._tokens))[place])


class SkippedPositions(Dataset):
    """Parts of training sequences of L' tokens, to train for positions up to L' at the cost of fewer tokens (PoSE).

    Of each sequence, `length` tokens stay: those at its beginning and those after a gap, at their own positions. The
    first part has up to half of them, and the gap is between none and all of the tokens that do not stay; the seed and
    the place in the data decide both. This is the variant v_i = u_i of arXiv 2309.10400. As in the authors' code, the
    last token before the gap predicts the first one after it.
    """

    def __init__(self, data: PackedSequences, length: int, seed: int) -> None:
        self._data, self._length, self._seed = data, length, seed
        self.facts, self.describe = data.facts, data.describe

    def __len__(self) -> int:
        return len(self._data)

    def __getitem__(self, index: int) -> dict[str, torch.Tensor]:
        tokens, rng = self._data[index]["input_ids"], np.random.default_rng([self._seed, index, self._length])
        first = rng.integers(1, (self._length + 1) // 2, endpoint=True)
        positions = torch.arange(self._length)
        positions[first:] += int(rng.integers(0, len(tokens) - self._length, endpoint=True))
        kept = tokens[positions]
        # Without a mask, transformers would take the parts for two documents that do not see each other.
        mask = torch.ones_like(kept)
        return {"input_ids": kept, "labels": kept, "position_ids": positions, "attention_mask": mask}


@functools.lru_cache(maxsize=2)
def _order(seed: int, epoch: int, count: int) -> np.ndarray:
    return np.random.default_rng([seed, epoch]).permutation(count)


def pack(
    corpus: Corpus,
    tokenizer: PreTrainedTokenizerBase,
    length: int,
    batch: int,
    steps: int,
    seed: int,
    cache: Path,
    bos: Sequence[int] = (),
) -> PackedSequences:
    """The sequences for `steps` batches of `batch`, tokenised on first use.

    Args:
        length: tokens per sequence, L'.
        cache: the directory that holds one directory per set of sequences.
        bos: the ids before every book, from :func:`eval.special_tokens.beginning`.

    Raises:
        InputError: there is no text, or too little for one batch of this length, or a token that the model has no
            embedding for.
    """
    wanted = batch * steps
    what = {"source": corpus.fingerprint, "tokenizer": fingerprint(tokenizer), "length": length, "wanted": wanted}
    directory = cache / identity(**what, seed=seed, **({"bos": list(bos)} if bos else {}))
    here = int(os.environ.get("LOCAL_RANK", "0")) == 0  # one process per host, as hosts may not share a disk
    launch.once(
        lambda: _make(directory, lambda new: _write(new, corpus, tokenizer, length, batch, wanted, seed, bos)), here
    )
    return PackedSequences(directory, wanted, seed)


def _make(directory: Path, write: Callable[[Path], None]) -> None:
    """Make `directory` by `write`, unless it is there; it appears whole or not at all, and one process makes it."""
    if directory.exists():
        return
    with files.lock(directory.with_name(f"{directory.name}.tokens"), wait=True):
        if not directory.exists():
            with files.new(directory) as new:
                new.mkdir()
                write(new)


def _write(
    folder: Path, corpus: Corpus, tokenizer, length: int, batch: int, wanted: int, seed: int, bos: Sequence[int]
) -> None:
    dtype = np.dtype("uint16" if len(tokenizer) <= 2**16 else "uint32")
    unread, books, count, read, longest = corpus.books(seed), [], 0, 0, 0
    share = -(-wanted // corpus.count) if corpus.count else wanted
    bar = tqdm(total=wanted, unit="sequence", desc="tokenising", delay=3, leave=False)
    with open(folder / "tokens.bin", "wb") as out, bar:
        # A token has at least one byte, so no book is read that tokenising one book at a time would not read.
        while group := _next(unread, min((wanted - count) * length, TOGETHER * min(os.cpu_count() or 1, 64))):
            for book, of_text in zip(group, _tokenised(group, tokenizer), strict=True):
                special_tokens.check_ids(tokenizer, of_text, f"{book.title!r} in {corpus.source}")
                tokens = [*bos, *of_text]
                whole = len(tokens) // length
                taken = min(whole, share, wanted - count)
                # If a book gives only a share, the seed decides which part of it.
                first = int(np.random.default_rng([seed, read]).integers(whole - taken + 1)) if corpus.count else 0
                out.write(np.asarray(tokens[first * length : (first + taken) * length], dtype=dtype).tobytes())
                count, read, longest = count + taken, read + 1, max(longest, len(tokens))
                bar.update(taken)
                if taken:
                    what = {"title": book.title, "sha256": book.sha256, "tokens": len(tokens)}
                    books.append(what | {"first": first, "sequences": taken})
    if not read:
        raise InputError(f"the corpus {corpus.source} holds no text; give --data a directory of books.")
    if count < batch:
        raise InputError(
            f"the corpus {corpus.source} gives {count} sequences of {length} tokens and a batch needs {batch} "
            f"(the longest of {read} books has {longest} tokens); give a shorter --length, a smaller --batch or more "
            "text."
        )
    facts = {
        "source": corpus.name,
        "length": length,
        "sequences": count,
        "dtype": dtype.name,
        "sha256": files.sha256(folder / "tokens.bin"),
        "books": books,
    }
    files.write_json(folder / "data.json", facts)


def _next(books: Iterator[Book], size: int) -> list[Book]:
    """The next books, until they have `size` bytes of text together."""
    group = []
    while size > 0 and (book := next(books, None)):
        group.append(book)
        size -= len(book.text.encode())
    return group


def _tokenised(books: list[Book], tokenizer: PreTrainedTokenizerBase) -> list[list[int]]:
    """Every book's tokens, in parallel on all cores."""
    only = {"add_special_tokens": False, "return_attention_mask": False, "return_token_type_ids": False}
    return tokenizer([book.text for book in books], verbose=False, **only).input_ids


def fingerprint(tokenizer: PreTrainedTokenizerBase) -> str:
    """What identifies a tokeniser: the SHA-256 of its whole state."""
    backend = getattr(tokenizer, "backend_tokenizer", None)
    state = backend.to_str() if backend is not None else json.dumps(sorted(tokenizer.get_vocab().items()))
    return hashlib.sha256(state.encode()).hexdigest()
