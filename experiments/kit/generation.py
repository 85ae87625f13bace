"""An experiment whose samples are prompts that a model continues: what it reads, which fit, and its
answers."""

from __future__ import annotations

import argparse
import functools
from collections.abc import Iterator

from core import discovery
from core.errors import DoesNotFit, InputError, in_one_line
from eval import special_tokens
from eval.generation import Request, generate
from experiments.kit import processes, records
from experiments.kit.command_line import SKIPPED
from experiments.kit.experiment import Experiment

SERVING = discovery.module("experiments.kit.beyond.serving")  # --endpoint, where it is there


class Generation(Experiment):
    """Samples are prompts that the model continues; a subclass states what is asked and how an
    answer scores."""

    @staticmethod
    def add_prompt_options(parser: argparse.ArgumentParser, items: str = "") -> None:
        """Add --endpoint and --chat.

        Args:
            items: a benchmark's option whose items can be too long for a length; --fitting leaves
                those out.
        """
        if SERVING:
            SERVING.add_argument(parser)
        parser.add_argument(
            "--chat", action="store_true", help="ask in the tokenizer's own chat template"
        )
        if items:
            parser.add_argument(
                "--fitting", action="store_true", help=f"leave out the {items} that do not fit"
            )

    def __init__(self, arguments: argparse.Namespace) -> None:
        dtype = arguments.dtype
        super().__init__(arguments)
        if getattr(arguments, "endpoint", None):
            self.serving = SERVING.Serving(self, dtype)

    def drawn(self, item) -> dict:
        """The samples of an item of the benchmark by key; DoesNotFit if it does not fit."""
        raise NotImplementedError

    def that_fit(self, option: str, items: list) -> list:
        """The items of the benchmark whose samples fit: with --fitting those that do, else all.

        Args:
            option: that names the items.

        Raises:
            InputError: some do not fit; it names all of them, and what would be left.
        """
        if "fitting" not in vars(self):
            self.fitting, unfit = {}, {}
            for item in items:
                try:
                    self.fitting[item] = self.drawn(item)
                except DoesNotFit as error:
                    unfit[item] = str(error).removesuffix(".")
            if unfit and not (self.arguments.fitting and self.fitting):
                left = (
                    f", which leaves {option} {' '.join(map(str, self.fitting))}"
                    if self.fitting
                    else ""
                )
                reason = next(iter(unfit.values()))
                raise InputError(
                    f"{reason} (of {option}, {', '.join(map(str, unfit))} do not fit{left})."
                )
            if processes.rank()[0] == 0:
                for item, reason in unfit.items():
                    print(f"{SKIPPED}{self.name} {item}: {reason.partition(';')[0]}.")
        return list(self.fitting)

    def samples(self) -> dict:
        self.settings()
        return {key: sample for drawn in self.fitting.values() for key, sample in drawn.items()}

    def data(self) -> dict:
        """The samples, and the tokens that end an answer."""
        return super().data() | {"ends": sorted(self.base.stops)}

    @property
    def chats(self) -> bool:
        """Whether --chat was given, of a benchmark that has it."""
        return getattr(self.arguments, "chat", False)

    @functools.cached_property
    def chat(self) -> dict:
        """What a record says of --chat, a hash of the template and of what it makes of nothing;
        without it, nothing.

        A template may state the day.
        """
        if not self.chats:
            return {}
        return {
            "chat": records.identity(
                template=self.base.tokenizer.chat_template, empty=self._in_template("")
            )
        }

    def suffix(self) -> str:
        return "_chat" if self.chats else ""

    def encoded(self, prompt: str, begun: str = "", chat: bool = True) -> tuple[int, ...]:
        """The token ids of a prompt, with --chat its question in the template, and then the
        beginning of the answer.

        Special tokens are those of the template, or without it those that the tokenizer adds by
        default.

        Args:
            begun: the end of the prompt, with which the answer begins.
            chat: False leaves the template out.
        """
        if chat and self.chats:
            text = self._in_template(prompt.removesuffix(begun)) + begun
            return tuple(self.base.tokenizer(text, add_special_tokens=False).input_ids)
        return tuple(self.base.tokenizer(prompt).input_ids)

    def _in_template(self, question: str) -> str:
        if not self.base.tokenizer.chat_template:
            raise InputError(
                f"the tokenizer of {self.base.name} has no chat template; leave --chat out."
            )
        reason = "it leaves out or changes what is asked"
        for content in (
            question,
            [{"type": "text", "text": question}],
        ):  # some templates take typed parts alone
            turns = [{"role": "user", "content": content}]
            try:
                text = self.base.tokenizer.apply_chat_template(
                    turns, add_generation_prompt=True, tokenize=False
                )
            except Exception as error:  # a template is a program and raises anything
                reason = in_one_line(error)
                continue
            if question.strip() in text:  # many trim it
                return text
        raise InputError(
            f"the chat template of {self.base.name} fails ({reason}); leave --chat out."
        )

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
        """Makes the requests, which must fit what the server takes, if there is one."""
        self.requests = [self.request(key, self.content[key], self.run_length(run)) for key in keys]
        for request in self.requests:
            special_tokens.check_ids(self.base.tokenizer, request.prompt, request.key)
        if self.serving:
            self.serving.check_length(
                run, max(len(each.prompt) + each.max_new_tokens for each in self.requests)
            )

    def measure(self, run: dict, keys: list[str]) -> Iterator[tuple[str, dict]]:
        ask = (
            self.serving.at(run).generate
            if self.serving
            else functools.partial(generate, self.extended(run))
        )
        for key, tokens in ask(self.requests):
            prediction = self.base.tokenizer.decode(tokens, skip_special_tokens=True)
            yield key, self.score(key, self.content[key], prediction) | {"prediction": prediction}
