"""An experiment whose samples are prompts that a model continues: what it reads, which fit, and its
answers."""

from __future__ import annotations

import argparse
import functools
from collections.abc import Callable, Iterator
from typing import Any

from core import discovery
from core.errors import DoesNotFit, InputError, in_one_line
from eval import Request, special_tokens
from experiments.kit import processes, records
from experiments.kit.command_line import SKIPPED, option
from experiments.kit.engine import Engine
from experiments.kit.experiment import Experiment, Prepared

SERVING = discovery.module("experiments.kit.beyond.serving")  # --endpoint, where it is there


class Generation(Experiment):
    """Samples are prompts that the model continues; a subclass says what is asked and how an
    answer scores."""

    @staticmethod
    def add_prompt_options(parser: argparse.ArgumentParser, items: str = "") -> None:
        """Add --endpoint and --chat.

        Args:
            items: a benchmark's option whose items can be too long for a length; --fitting leaves
                those out.
        """
        if SERVING:
            option(parser, "--endpoint", SERVING.address, "URL", SERVING.HELP)
        parser.add_argument(
            "--chat", action="store_true", help="ask in the tokenizer's own chat template"
        )
        if items:
            parser.add_argument(
                "--fitting", action="store_true", help=f"leave out the {items} that do not fit"
            )

    def request(self, key: str, sample, context_length: int) -> Request:
        """What the model is asked.

        Args:
            context_length: that of the model with the run's method, in tokens.
        """
        raise NotImplementedError

    def score(self, key: str, sample, prediction: str) -> dict:
        """The value of a sample: its score, and whatever the summary needs."""
        raise NotImplementedError

    # What every experiment of this kind has.

    @functools.cached_property
    def engine(self) -> Engine:
        """What computes: with --endpoint a server."""
        served = getattr(self.arguments, "endpoint", None)
        return SERVING.Serving(self) if served else Engine(self)

    def prompts(self, samples: dict, settings: dict, **data) -> Prepared:
        """What is asked, in the template with --chat.

        Args:
            data: what else identifies the samples.
        """
        content = {"samples": len(samples), "sha256": records.identity(samples=samples)}
        ends = {"ends": sorted(self.base.stops)}  # the tokens that end an answer
        return Prepared(
            samples=samples,
            settings=settings | self.chat,
            data=content | ends | data,
            suffix="_chat" if self.chats else "",
        )

    def that_fit(
        self, named_by: str, items: list, samples_of: Callable[..., dict]
    ) -> tuple[list, dict[str, Any]]:
        """Items of the benchmark, and the samples of all of them by key: with --fitting of those
        that fit, else of all.

        Args:
            named_by: the option that names the items.
            samples_of: makes those of an item, or raises DoesNotFit.

        Raises:
            InputError: some do not fit; it names all of them, and what would be left.
        """
        samples: dict[str, Any] = {}
        fitting = []
        unfit = {}
        for item in items:
            try:
                samples |= samples_of(item)
                fitting.append(item)
            except DoesNotFit as error:
                unfit[item] = str(error).removesuffix(".")
        if unfit and not (self.arguments.fitting and fitting):
            left = f", which leaves {named_by} {' '.join(map(str, fitting))}" if fitting else ""
            reason = next(iter(unfit.values()))
            raise InputError(
                f"{reason} (of {named_by}, {', '.join(map(str, unfit))} do not fit{left})."
            )
        if processes.rank()[0] == 0:
            for item, reason in unfit.items():
                print(f"{SKIPPED}{self.name} {item}: {reason.partition(';')[0]}.")
        return fitting, samples

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
        template = self.base.tokenizer.chat_template
        return {"chat": records.identity(template=template, empty=self._in_template(""))}

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

    def requests(self, keys: list[str], context_length: int) -> list[Request]:
        """The prompts of these samples, which must fit what the engine takes."""
        samples = self.prepared.samples
        requests = [self.request(key, samples[key], context_length) for key in keys]
        for request in requests:
            special_tokens.check_ids(self.base.tokenizer, request.prompt, request.key)
        tokens = [len(request.prompt) + request.max_new_tokens for request in requests]
        self.engine.check_length(max(tokens), context_length)
        return requests

    def measure(self, model, requests: list[Request]) -> Iterator[tuple[str, dict]]:
        for key, tokens in self.engine.generate(model, requests):
            prediction = self.base.tokenizer.decode(tokens, skip_special_tokens=True)
            value = self.score(key, self.prepared.samples[key], prediction)
            yield key, value | {"prediction": prediction}
