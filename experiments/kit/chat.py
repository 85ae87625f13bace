"""A tokenizer's chat template: what it makes of a question, and its switches."""

from __future__ import annotations

import argparse
import contextlib
import functools
import inspect
import json
from datetime import datetime
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any
from unittest import mock

import records
from core.errors import InputError, in_one_line

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

# What a template is told that asks for today's date, so that a run is the same tomorrow.
_CLOCK = SimpleNamespace(now=lambda: datetime(2024, 11, 12))


def switch(text: str) -> tuple[str, str]:
    """The name and the value of a switch of a template, such as enable_thinking=false."""
    name, equals, value = text.partition("=")
    if not name or not equals:
        raise argparse.ArgumentTypeError(f"{text!r} is not NAME=VALUE")
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
        self._switches = {name: _json_or_text(value) for name, value in given}
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
        return known - {"messages", *arguments, *self._tokenizer.special_tokens_map}

    def _fails(self, reason: str) -> InputError:
        return InputError(f"the chat template of {self._model} fails ({reason}); leave --chat out.")

    def text(self, question: str, answer: str = "") -> str:
        """A question in the template, up to where the answer begins, or with the answer.

        Raises:
            InputError: the template fails, or leaves out or changes what is asked.
        """
        reason = "it leaves out or changes what is asked"
        said = {"user": question} | ({"assistant": answer} if answer else {})
        for typed in (False, True):  # some templates take typed parts alone
            turns = [
                {"role": role, "content": [{"type": "text", "text": text}] if typed else text}
                for role, text in said.items()
            ]
            try:
                with mock.patch("transformers.utils.chat_template_utils.datetime", _CLOCK):
                    text = self._tokenizer.apply_chat_template(
                        turns, add_generation_prompt=not answer, tokenize=False, **self._switches
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
        template = self._tokenizer.chat_template
        stated = {"chat": records.identity(template=template, empty=self.text(""))}
        return stated | ({"chat_options": self._switches} if self._switches else {})
