"""An experiment whose samples are prompts that a model continues: what it reads, which fit, and its answers."""

from __future__ import annotations

import argparse
import functools
from collections.abc import Iterator

from core.errors import DoesNotFit, InputError
from eval import special_tokens
from eval.generation import Request, generate
from experiments.kit import command_line, processes, records, serving
from experiments.kit.command_line import SKIPPED
from experiments.kit.experiment import Experiment


class Generation(Experiment):
    """Samples are prompts that the model continues; a subclass states what is asked and how an answer scores."""

    @staticmethod
    def add_prompt_options(parser: argparse.ArgumentParser, parts: str = "") -> None:
        """Add --endpoint and --chat.

        Args:
            parts: a benchmark's option whose parts can be too long for a length; --fitting leaves those out.
        """
        serving.add_argument(parser)
        parser.add_argument("--chat", action="store_true", help="ask in the tokenizer's own chat template")
        if parts:
            parser.add_argument("--fitting", action="store_true", help=f"leave out the {parts} that do not fit")

    def made(self, part) -> dict:
        """The samples of a part of the benchmark by key; DoesNotFit if it does not fit."""
        raise NotImplementedError

    def that_fit(self, option: str, parts: list) -> list:
        """The parts of the benchmark whose samples fit: with --fitting those that do, else all.

        Args:
            option: that names the parts.

        Raises:
            InputError: some do not fit; it names all of them, and what would be left.
        """
        if "fitting" not in vars(self):
            self.fitting, unfit = {}, {}
            for part in parts:
                try:
                    self.fitting[part] = self.made(part)
                except DoesNotFit as error:
                    unfit[part] = str(error).removesuffix(".")
            if unfit and not (self.arguments.fitting and self.fitting):
                left = f", which leaves {option} {' '.join(map(str, self.fitting))}" if self.fitting else ""
                reason = next(iter(unfit.values()))
                raise InputError(f"{reason} (of {option}, {', '.join(map(str, unfit))} do not fit{left}).")
            if processes.rank()[0] == 0:
                for part, reason in unfit.items():
                    print(f"{SKIPPED}{self.name} {part}: {reason.partition(';')[0]}.")
        return list(self.fitting)

    def samples(self) -> dict:
        self.settings()
        return {key: sample for made in self.fitting.values() for key, sample in made.items()}

    @functools.cached_property
    def chat(self) -> dict:
        """What a record says of --chat, a hash of the template and of what it makes of nothing; without it, nothing.

        A template may state the day.
        """
        if not self._asks:
            return {}
        return {"chat": records.identity(template=self.tokenizer.chat_template, empty=self._in_template(""))}

    def suffix(self) -> str:
        return "_chat" if self._asks else ""

    @property
    def _asks(self) -> bool:
        """Whether --chat was given, of a benchmark that has it."""
        return vars(self.arguments).get("chat", False)

    def encoded(self, question: str, begun: str = "", chat: bool = True) -> tuple[int, ...]:
        """The token ids of a prompt: the question, with --chat in the template, and the beginning of the answer.

        Special tokens are those of the template, or without it those that the tokenizer adds by default.
        """
        chat = chat and self._asks
        text = (self._in_template(question) if chat else question) + begun
        return tuple(self.tokenizer(text, add_special_tokens=not chat).input_ids)

    def _in_template(self, question: str) -> str:
        if not self.tokenizer.chat_template:
            raise InputError(f"the tokenizer of {self.base.name} has no chat template; leave --chat out.")
        turns = [{"role": "user", "content": question}]
        try:
            return self.tokenizer.apply_chat_template(turns, add_generation_prompt=True, tokenize=False)
        except Exception as error:  # a template is a program and raises anything
            reason = command_line.reason(error)
            raise InputError(f"the chat template of {self.base.name} fails ({reason}); leave --chat out.") from error

    def request(self, key: str, sample: dict, context_length: int) -> Request:
        """What the model is asked.

        Args:
            context_length: that of the model with the run's method, in tokens.
        """
        raise NotImplementedError

    def score(self, key: str, sample: dict, prediction: str) -> dict:
        """The value of a sample: its score, and whatever the summary needs."""
        raise NotImplementedError

    def check(self, run: dict, keys: list[str]) -> None:
        """Makes the requests."""
        extends = run["method"] is not None and not self.base.extension
        context_length = self.extended_length if extends else self.base.stated_length
        self.requests = [self.request(key, self.content[key], context_length) for key in keys]
        for request in self.requests:
            special_tokens.check_ids(self.tokenizer, request.prompt, request.key)
        self.refuse_beyond(max(len(request.prompt) + request.max_new_tokens for request in self.requests))

    def measure(self, run: dict, keys: list[str]) -> Iterator[tuple[str, dict]]:
        asked = self.requests
        made = self.endpoint.generate(asked) if self.endpoint else generate(self.extended(run), asked)
        for key, tokens in made:
            prediction = self.tokenizer.decode(tokens, skip_special_tokens=True)
            yield key, self.score(key, self.content[key], prediction) | {"prediction": prediction}
