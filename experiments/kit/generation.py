"""An experiment whose samples are prompts that a model continues: what it reads, which fit, and its
answers."""

from __future__ import annotations

import argparse
import contextlib
import functools
import inspect
import json
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest import mock

import records
from core import discovery
from core.errors import DoesNotFit, InputError, in_one_line
from eval import Request, special_tokens
from experiments.kit import processes
from experiments.kit.command_line import SKIPPED, option
from experiments.kit.engine import Engine
from experiments.kit.experiment import Experiment, Prepared

templates = discovery.later("transformers.utils.chat_template_utils")
SERVING = discovery.module("experiments.kit.beyond.serving")  # --endpoint, where it is there
CLOCK = "strftime_now"  # what templates call for today's date
_LONG_AGO = "1999-12-31"
_TAIL = 64  # tokens of a prompt, among which a template may begin the thinking


def switch(text: str) -> tuple[str, str]:
    """The name and the value of a switch of a chat template, such as enable_thinking=false."""
    name, equals, value = text.partition("=")
    if not name or not equals:
        raise argparse.ArgumentTypeError(f"{text!r} is not NAME=VALUE")
    if name == CLOCK:
        try:
            datetime.fromisoformat(value)
        except ValueError as error:
            raise argparse.ArgumentTypeError(f"{value!r} is no date such as {_LONG_AGO}") from error
    return name, value


def _json_or_text(value: str) -> Any:
    if value in ("True", "False"):  # as Python writes them
        value = value.lower()
    with contextlib.suppress(ValueError):
        return json.loads(value, parse_constant=str)
    return value


def thinks(said: str) -> bool:
    """Whether a text ends inside <think>."""
    return said.rfind("<think>") > said.rfind("</think>")


class Generation(Experiment):
    """Samples are prompts that the model continues; a subclass says what is asked and how an
    answer scores."""

    @staticmethod
    def add_prompt_options(parser: argparse.ArgumentParser, items: str = "") -> None:
        """Add --endpoint, --chat and --chat-options.

        Args:
            items: a benchmark's option whose items can be too long for a length; --fitting leaves
                those out.
        """
        if SERVING:
            option(parser, "--endpoint", SERVING.address, "URL", SERVING.HELP)
        parser.add_argument(
            "--chat", action="store_true", help="ask in the tokenizer's own chat template"
        )
        switches = (
            "switches of the template, such as enable_thinking=false; "
            f"{CLOCK}={_LONG_AGO} is the date of one that states today's"
        )
        option(parser, "--chat-options", switch, "NAME=VALUE", switches, several=True)
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

    @property
    def served(self) -> str | None:
        """The address of --endpoint; None without it."""
        return getattr(self.arguments, "endpoint", None)

    @functools.cached_property
    def engine(self) -> Engine:
        """What computes: with --endpoint a server."""
        return SERVING.Serving(self) if self.served else Engine(self)

    def prompts(self, samples: dict, settings: dict, **data) -> Prepared:
        """What is asked, in the template with --chat.

        Args:
            data: what else identifies the samples.
        """
        if not samples:
            raise InputError(f"{self.name} has no sample to ask; give a benchmark that has some.")
        content = {"samples": len(samples), "sha256": records.identity(samples=samples)}
        ends = {"ends": sorted(self.ends)}
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
    def ends(self) -> frozenset[int]:
        """The ids that end an answer: those that the model states; by a server or with --chat the
        tokenizer's EOS, by which servers end it, too; and the template's end of a turn."""
        ends = set(self.model.stops)
        if self.chats or self.served:
            ends.add(self.model.tokenizer.eos_token_id)
        if self.chats:
            ends.add(self._end_of_turn())
        return frozenset(ends - {None})

    def _end_of_turn(self) -> int | None:
        """The control token with which the template ends an answer; None if it ends it by none."""
        tokenizer = self.model.tokenizer
        answer = "Paris, of course"
        try:
            turn = self._in_template("Where?", answer).rpartition(answer)[2].strip()
        except InputError:  # it takes no answers
            return None
        first = tokenizer(turn, add_special_tokens=False).input_ids[:1]
        return next((end for end in first if end in tokenizer.added_tokens_decoder), None)

    @functools.cached_property
    def switches(self) -> dict[str, Any]:
        """The template's switches that the command line gives.

        Raises:
            InputError: one is given twice, the template does not know it, or there is no --chat.
        """
        given = getattr(self.arguments, "chat_options", None) or []
        switches = {name: _json_or_text(value) for name, value in given}
        if switches and not self.chats:
            raise InputError("--chat-options are of a chat template; give --chat, too.")
        if len(switches) < len(given):
            raise InputError("--chat-options gives a switch twice; give it once.")
        if not switches:
            return {}
        tokenizer = self.model.tokenizer
        try:
            template = tokenizer.get_chat_template()
            known = {*templates._get_template_variables(template)}
        except Exception as error:
            raise self._template_fails(in_one_line(error)) from error
        arguments = inspect.signature(tokenizer.apply_chat_template).parameters
        known -= {"messages", *arguments, *tokenizer.special_tokens_map}
        known |= {CLOCK} if CLOCK in template else set()
        for name in switches:
            if name not in known:
                has = f"it has {', '.join(sorted(known))}" if known else "it has none"
                raise InputError(f"the chat template has no switch {name!r}; {has}.")
        return switches

    @functools.cached_property
    def chat(self) -> dict:
        """What a record says of --chat: a hash of the template and of what it makes of nothing, and
        its switches; without --chat, nothing."""
        switches = self.switches
        if not self.chats:
            return {}
        template = self.model.tokenizer.chat_template
        empty = self._in_template("")
        stated = {"chat": records.identity(template=template, empty=empty)}
        if CLOCK not in switches and empty != self._in_template("", day=_LONG_AGO):
            today = datetime.now().date().isoformat()
            print(
                f"note: the chat template states today's date, so tomorrow this is another run; "
                f"--chat-options {CLOCK}={today} keeps the date.",
                file=sys.stderr,
            )
        return stated | ({"chat_options": switches} if switches else {})

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
            return tuple(self.model.tokenizer(text, add_special_tokens=False).input_ids)
        return tuple(self.model.tokenizer(prompt).input_ids)

    def _in_template(self, question: str, answer: str = "", day: str = "") -> str:
        """A question in the template, up to where the answer begins, or with the answer.

        Args:
            day: what the template is told of today; by default by its switches.
        """
        if not self.model.tokenizer.chat_template:
            raise InputError(
                f"the tokenizer of {self.model.name} has no chat template; leave --chat out."
            )
        reason = "it leaves out or changes what is asked"
        switches = dict(self.switches)
        told = day or switches.pop(CLOCK, "")
        clock = SimpleNamespace(now=lambda: datetime.fromisoformat(told)) if told else datetime
        said = {"user": question} | ({"assistant": answer} if answer else {})
        for typed in (False, True):  # some templates take typed parts alone
            turns = [
                {"role": role, "content": [{"type": "text", "text": text}] if typed else text}
                for role, text in said.items()
            ]
            try:
                with mock.patch(f"{templates.__name__}.datetime", clock):
                    text = self.model.tokenizer.apply_chat_template(
                        turns, add_generation_prompt=not answer, tokenize=False, **switches
                    )
            except Exception as error:  # a template is a program and raises anything
                reason = in_one_line(error)
                continue
            if all(each.strip() in text for each in said.values()):  # many trim it
                return text
        raise self._template_fails(reason)

    def _template_fails(self, reason: str) -> InputError:
        return InputError(
            f"the chat template of {self.model.name} fails ({reason}); leave --chat out."
        )

    def requests(self, keys: list[str], context_length: int) -> list[Request]:
        """The prompts of these samples, which must fit what the engine takes."""
        samples = self.prepared.samples
        asked = [self.request(key, samples[key], context_length) for key in keys]
        requests = [replace(request, stop=request.stop | self.ends) for request in asked]
        for request in requests:
            special_tokens.check_ids(self.model.tokenizer, request.prompt, request.key)
        tokens = [len(request.prompt) + request.max_new_tokens for request in requests]
        self.engine.check_length(max(tokens), context_length)
        return requests

    def measure(self, model, requests: list[Request]) -> Iterator[tuple[str, dict]]:
        tails = {request.key: request.prompt[-_TAIL:] for request in requests}
        for key, tokens in self.engine.generate(model, requests):
            prediction = self.model.tokenizer.decode(tokens, skip_special_tokens=True)
            value = self.score(key, self.prepared.samples[key], prediction)
            if self.chats and thinks(self.model.tokenizer.decode([*tails[key], *tokens])):
                value |= {"thinking": True}
            yield key, value | {"prediction": prediction}

    def beside(self, values: dict[str, dict]) -> dict:
        """How many answers never left their thinking."""
        thinking = sum("thinking" in value for value in values.values())
        return {"thinking": thinking} if thinking else {}

    def finish(self, file: Path, run: dict, **parts: Any) -> None:
        """As of every experiment; the terminal says how many answers never left their thinking."""
        super().finish(file, run, **parts)
        if "thinking" in parts:
            print(
                f"{parts['thinking']} of {len(self.prepared.samples)} answers never left their "
                "thinking (<think> without </think>); generate more tokens, or switch thinking off "
                "by --chat-options."
            )
