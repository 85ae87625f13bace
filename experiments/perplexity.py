"""Sliding-window perplexity, S = 256, at several evaluation lengths (the paper's Table 10).

    python -m experiments.perplexity --model NAME --lengths 4096 8192 --texts BOOK.txt

The record holds perplexity by both conventions of averaging: over tokens, and over the means of
windows. It also holds the summed loss and the number of scored tokens of every window, keyed
TEXT/LENGTH/BEGIN, so that methods can be paired.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator

from core.errors import InputError
from eval import perplexity
from experiments.kit import command_line, texts
from experiments.kit.command_line import count, count_or_all, option
from experiments.kit.experiment import Experiment

STRIDE = 256


class Perplexity(Experiment):
    __doc__ = __doc__
    name = "perplexity"
    unit = "perplexity by window length, of all tokens and as a mean over windows"

    @staticmethod
    def add_options(parser) -> None:
        option(
            parser, "--lengths", count, "TOKENS", "window lengths (default: L and L')", several=True
        )
        step = f"tokens from one window to the next (default {STRIDE}, at most half a window)"
        option(parser, "--stride", count, "S", step)
        texts.add_arguments(parser)
        option(
            parser,
            "--tokens",
            count_or_all,
            "N|all",
            "score the first N tokens of each text (default: all)",
        )

    @functools.cached_property
    def strides(self) -> dict[int, int]:
        """The stride of each window length."""
        lengths = self.arguments.lengths or [self.context_length, self.extended_length]
        strides = {
            length: self.arguments.stride or max(min(STRIDE, length // 2), 1) for length in lengths
        }
        for length, step in strides.items():
            perplexity.windows(
                length + 1, length, step, len(self.bos)
            )  # refuses an impossible stride before any work
        return strides

    def settings(self) -> dict:
        lengths, strides = list(self.strides), list(self.strides.values())
        settings = {"lengths": lengths, "stride": strides if len(set(strides)) > 1 else strides[0]}
        settings["tokens"] = self.arguments.tokens
        return settings | texts.bos_for_record(self.bos)

    def suffix(self) -> str:
        return (
            "" if self.arguments.tokens else "_whole"
        )  # a record of whole texts stands beside that of an excerpt

    def data(self) -> dict:
        self.books = texts.chosen(self.arguments)
        self.refuse_training_text(texts.hashes(self.books))
        return {book.title: book.sha256 for book in self.books}

    def samples(self) -> dict[str, tuple]:
        """(title, (begin, end, first scored token)) of each window, the longest first, for
        processes in turn."""
        self.ids = {
            book.title: texts.tokens(self.base.tokenizer, book, self.arguments.tokens)
            for book in self.books
        }
        spans, before = {}, len(self.bos)
        for length, step in sorted(self.strides.items(), reverse=True):
            for title, ids in self.ids.items():
                if before + len(ids) <= length:
                    raise InputError(
                        f"{title!r} has {len(ids)} tokens, no more than the window of {length}; "
                        f"give a longer text."
                    )
                for span in perplexity.windows(len(ids), length, step, before):
                    spans[f"{title}/{length}/{span[0]}"] = (title, span)
        return spans

    def measure(self, run: dict, keys: list[str]) -> Iterator[tuple[str, dict]]:
        model = self.extended(run)
        for key in keys:
            title, span = self.content[key]
            (losses,) = perplexity.window_losses(model, self.ids[title], [span], self.bos)
            yield key, {"sum": float(losses.sum()), "tokens": len(losses)}

    def summary(self, run: dict, values: dict[str, dict]) -> dict:
        summary = {"scores": perplexity.aggregate(values, run["lengths"])}
        summary["by_window"] = {
            key: [value["sum"], value["tokens"]] for key, value in values.items()
        }
        return summary


main = Perplexity.main

if __name__ == "__main__":
    command_line.run(main)
