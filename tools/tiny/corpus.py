"""Text to pre-train on, a directory of parquet or text files; and a tokenizer learned from it.

A checksum of a book's beginning holds out one book in twenty. A book that shares a passage with a
packaged book, which experiments/kit/texts.py scores, is left out altogether.
"""

import random
import re
import zlib
from pathlib import Path

from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import PreTrainedTokenizerFast

from core.errors import InputError
from experiments.kit import texts

_SHORTEST = 2000  # characters; shorter texts are skipped
PAD, EOS = "<pad>", "</s>"
# pieces of each book that the tokenizer is learned from, and characters of each
_PIECES = 6
_PIECE = 6000
_PROBES = 25  # passages by which another edition of a book is recognised


def load(data: Path) -> list[str]:
    """The books to train on in a directory of .parquet files (column `text`) or .txt files.

    Raises:
        InputError: there is no such directory, or no text in it.
    """
    every = [book.text for book in texts.files([data])]
    books = [book for book in without_evaluation(every) if len(book) >= _SHORTEST]
    train = [
        book for book in books if zlib.crc32(" ".join(book[:4000].split())[:1000].encode()) % 20
    ]
    if not train:
        raise InputError(
            f"there is no text to train on in {data}: give parquet files with a column 'text' or "
            f".txt files, with at "
            f"least one book of {_SHORTEST} characters."
        )
    return train


def without_evaluation(books: list[str]) -> list[str]:
    """The books that share no passage, in any edition, with the packaged books."""
    passages = []  # of eight words, evenly spread
    for book in texts.books(texts.AVAILABLE):
        words = _plain(book.text).split()
        starts = range(0, len(words) - 8, max(len(words) // _PROBES, 1))
        passages += [" ".join(words[i : i + 8]) for i in starts]
    return [
        book
        for book in books
        if not any(passage in plain for plain in [_plain(book)] for passage in passages)
    ]


def _plain(text: str) -> str:
    return " ".join(re.findall(r"[a-z]+", text.lower()))


def train_tokenizer(
    books: list[str], vocabulary: int, length: int, seed: int
) -> PreTrainedTokenizerFast:
    """Byte-level BPE, lossless on any text, with one token per digit: `vocabulary` tokens learned
    from every book."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Digits(individual_digits=True),
            pre_tokenizers.ByteLevel(add_prefix_space=False),
        ]
    )
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=vocabulary,
        special_tokens=[PAD, EOS],
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
        show_progress=False,
    )
    rng = random.Random(seed)
    starts = (
        (book, rng.randrange(max(len(book) - _PIECE, 1))) for book in books for _ in range(_PIECES)
    )
    tokenizer.train_from_iterator((book[start : start + _PIECE] for book, start in starts), trainer)
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        pad_token=PAD,
        eos_token=EOS,
        model_max_length=length,
        clean_up_tokenization_spaces=False,
    )
