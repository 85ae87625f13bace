"""Sliding-window perplexity, S = 256, at several evaluation lengths (the paper's Table 10).

    python -m experiments.perplexity --model NAME --lengths 4096 8192 --texts BOOK.txt

The record holds perplexity by both conventions of averaging: over tokens, and over the means of
windows. It also holds the summed loss and the number of scored tokens of every window, keyed
TEXT/LENGTH/BEGIN, so that methods can be paired.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from core.discovery import later
from core.errors import InputError
from experiments.kit import command_line, texts
from experiments.kit.command_line import count, count_or_all, list_option, option
from experiments.kit.experiment import Experiment, Prepared

if TYPE_CHECKING:
    from eval import perplexity
else:
    perplexity = later("eval.perplexity")

STRIDE = 256


class Perplexity(Experiment):
    name = "perplexity"
    unit = "perplexity by window length, of all tokens and as a mean over windows"

    @staticmethod
    def add_options(parser) -> None:
        lengths = "window lengths (default: L and L')"
        list_option(parser, "--lengths", count, "TOKENS", lengths)
        step = (
            f"tokens from one window to the next (default {STRIDE}, at most half of the shortest)"
        )
        option(parser, "--stride", count, "S", step)
        texts.add_arguments(parser)
        most = "score the first N tokens of each text (default: all)"
        option(parser, "--tokens", count_or_all, "N|all", most)

    def prepare(self) -> Prepared:
        """A sample is a window: its text's tokens, and where it begins, ends and is first scored.

        The longest come first, for processes in turn.
        """
        given = self.arguments
        before = len(self.bos)
        lengths = given.lengths or [self.context_length, self.extended_length]
        lengths = list(dict.fromkeys(lengths))  # L' is L where nothing is extended
        stride = given.stride or max(min(STRIDE, min(lengths) // 2), 1)
        longest = max(lengths)
        perplexity.windows(longest, min(lengths), stride, before)  # refuses an impossible stride
        least = longest + 1 - before
        if given.tokens and given.tokens < least:
            raise InputError(
                f"--tokens {given.tokens} are no more than the window of {longest}; give "
                f"{least} or more."
            )
        books = texts.read(self.model.tokenizer, texts.scored(self), least, given.tokens)
        samples = {}
        for length in sorted(lengths, reverse=True):
            for book, ids in books.items():
                for span in perplexity.windows(len(ids), length, stride, before):
                    samples[f"{book.title}/{length}/{span[0]}"] = (ids, span)
        settings = {
            "lengths": lengths,
            "stride": stride,
            "tokens": given.tokens,
            **texts.bos_for_record(self.bos),
        }
        data = {book.title: book.sha256 for book in books}
        # A record of whole texts stands beside that of an excerpt.
        return Prepared(samples, settings, data, suffix="" if given.tokens else "_whole")

    def measure(self, model, requests: list) -> Iterator[tuple[str, dict]]:
        for key, (ids, span) in requests:
            losses = perplexity.window_losses(model, ids, span, self.bos)
            yield key, {"sum": float(losses.sum()), "tokens": len(losses)}

    def summary(self, values: dict[str, dict]) -> dict:
        lengths = self.prepared.settings["lengths"]
        by_window = {key: [value["sum"], value["tokens"]] for key, value in values.items()}
        return {"by_length": perplexity.aggregate(values, lengths), "by_window": by_window}

    def rows(self, scores: dict) -> Iterator[tuple[str, ...]]:
        return command_line.rows(scores["by_length"])


main = Perplexity.main

if __name__ == "__main__":
    command_line.run(main)
