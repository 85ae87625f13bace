"""The tokenizer: byte-level BPE, lossless on any text, with one token per digit."""

from __future__ import annotations

import random
from collections.abc import Iterator

from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import PreTrainedTokenizerFast

PAD, EOS = "<pad>", "</s>"
_PIECE = 6000  # characters per piece
_PIECES = 6  # pieces of each book


def train(books: list[str], vocabulary: int, length: int, seed: int) -> PreTrainedTokenizerFast:
    """Learn `vocabulary` tokens (bytes and special ones included) from a sample of every book."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.ByteLevel(add_prefix_space=False)]
    )
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=vocabulary,
        special_tokens=[PAD, EOS],
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
        show_progress=False,
    )
    tokenizer.train_from_iterator(_pieces(books, seed), trainer)
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        pad_token=PAD,
        eos_token=EOS,
        model_max_length=length,
        clean_up_tokenization_spaces=False,
    )


def _pieces(books: list[str], seed: int) -> Iterator[str]:
    rng = random.Random(seed)
    for book in books:
        for _ in range(_PIECES):
            start = rng.randrange(max(len(book) - _PIECE, 1))
            yield book[start : start + _PIECE]
