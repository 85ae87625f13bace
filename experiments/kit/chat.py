"""A tokenizer's chat template: what it makes of a question, its switches, and the date that it is
told."""

from __future__ import annotations

import argparse
import contextlib
import functools
import inspect
import json
import sys
from datetime import datetime
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any
from unittest import mock

import records
from core.errors import InputError, in_one_line

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

CLOCK = "strftime_now"  # what templates call for today's date
LONG_AGO = "1999-12-31"


def switch(text: str) -> tuple[str, str]:
    """The name and the value of a switch of a template, such as enable_thinking=false."""
    name, equals, value = text.partition("=")
    if not name or not equals:
        raise argparse.ArgumentTypeError(f"{text!r} is not NAME=VALUE")
    if name == CLOCK:
        try:
            datetime.fromisoformat(value)
        except ValueError as error:
            raise argparse.ArgumentTypeError(f"{value!r} is no date such as {LONG_AGO}") from error
    return name, value


def _json_or_text(value: str) -> Any:
    if value.lower() in ("true", "false"):  # as Python and shells write them
        value = value.lower()
    with contextlib.suppress(ValueError):
        return json.loads(value, parse_constant=str)
    return value


def thinks(said: str) -> bool:
    """Whether a text ends inside <think>."""
    return said.rfind("<think>") > said.rfind("</think>")


class Chat:
    """A template with some of its switches set.

    Args:
        tokenizer: whose template it is.
        model: what messages call the model.
        given: the switches, each as :func:`switch` returns it.

    Raises:
        InputError: there is no template, a switch is given twice, or the template does not know it.
    """

    def __init__(
        self, tokenizer: PreTrainedTokenizerBase, model: str, given: list[tuple[str, str]]
    ) -> None:
        self._tokenizer = tokenizer
        self._model = model
        self._switches = {
            name: value if name == CLOCK else _json_or_text(value) for name, value in given
        }
        if len(self._switches) < len(given):
            raise InputError("--chat-options gives a switch twice; give it once.")
        if not tokenizer.chat_template:
            raise InputError(f"the tokenizer of {model} has no chat template; leave --chat out.")
        if self._switches:
            known = self._known()
            for name in self._switches.keys() - known:
                has = f"it has {', '.join(sorted(known))}" if known else "it has none"
                raise InputError(f"the chat template has no switch {name!r}; {has}.")

    def _known(self) -> set[str]:
        """The names of the template's switches."""
        from transformers.utils import chat_template_utils  # which --help does without

        try:
            template = self._tokenizer.get_chat_template()
            known = {*chat_template_utils._get_template_variables(template)}
        except Exception as error:
            raise self._fails(in_one_line(error)) from error
        arguments = inspect.signature(self._tokenizer.apply_chat_template).parameters
        known -= {"messages", *arguments, *self._tokenizer.special_tokens_map}
        return known | ({CLOCK} if CLOCK in template else set())

    def _fails(self, reason: str) -> InputError:
        return InputError(f"the chat template of {self._model} fails ({reason}); leave --chat out.")

    def text(self, question: str, answer: str = "", day: str = "") -> str:
        """A question in the template, up to where the answer begins, or with the answer.

        Args:
            day: what the template is told of today, unless its switches say that.

        Raises:
            InputError: the template fails, or leaves out or changes what is asked.
        """
        reason = "it leaves out or changes what is asked"
        switches = dict(self._switches)
        told = switches.pop(CLOCK, day)
        clock = SimpleNamespace(now=lambda: datetime.fromisoformat(told)) if told else datetime
        said = {"user": question} | ({"assistant": answer} if answer else {})
        for typed in (False, True):  # some templates take typed parts alone
            turns = [
                {"role": role, "content": [{"type": "text", "text": text}] if typed else text}
                for role, text in said.items()
            ]
            try:
                with mock.patch("transformers.utils.chat_template_utils.datetime", clock):
                    text = self._tokenizer.apply_chat_template(
                        turns, add_generation_prompt=not answer, tokenize=False, **switches
                    )
            except Exception as error:  # a template is a program and raises anything
                reason = in_one_line(error)
                continue
            if all(each.strip() in text for each in said.values()):  # many trim it
                return text
        raise self._fails(reason)

    def end_of_turn(self) -> int | None:
        """The control token with which the template ends an answer; None if it ends it by none."""
        answer = "Paris, of course"
        try:
            turn = self.text("Where?", answer).rpartition(answer)[2].strip()
        except InputError:  # it takes no answers
            return None
        first = self._tokenizer(turn, add_special_tokens=False).input_ids[:1]
        return next((end for end in first if end in self._tokenizer.added_tokens_decoder), None)

    @functools.cached_property
    def facts(self) -> dict:
        """What a record says of it: a hash of the template and of what it makes of nothing, and the
        switches."""
        empty = self.text("")
        if CLOCK not in self._switches and empty != self.text("", day=LONG_AGO):
            print(
                f"note: the chat template states today's date, so tomorrow this is another run; "
                f"--chat-options {CLOCK}={datetime.now().date()} keeps the date.",
                file=sys.stderr,
            )
        stated = {"chat": records.identity(template=self._tokenizer.chat_template, empty=empty)}
        return stated | ({"chat_options": self._switches} if self._switches else {})
