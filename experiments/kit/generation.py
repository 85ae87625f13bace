"""An experiment whose samples are prompts that a model continues: what it reads, which fit, and its
answers."""

import argparse
import functools
from collections.abc import Callable, Iterator
from dataclasses import replace

import records
from core import discovery
from core.errors import DoesNotFit, InputError
from eval import Request, special_tokens
from experiments.kit import processes
from experiments.kit.chat import Chat, switch, thinks
from experiments.kit.command_line import SKIPPED, list_option, option
from experiments.kit.engine import Engine
from experiments.kit.experiment import Experiment, Prepared

SERVING = discovery.module("experiments.kit.beyond.serving")  # --endpoint, where it is there
_TAIL = 64  # tokens of a prompt, among which a template may begin the thinking


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
        list_option(
            parser,
            "--chat-options",
            switch,
            "NAME=VALUE",
            "switches of the template, such as enable_thinking=false",
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
        identified = {
            "samples": len(samples),
            "sha256": records.identity(samples=samples),
            "ends": sorted(self.ends),
            **data,
        }
        return Prepared(
            samples, settings | self.of_chat, identified, suffix="_chat" if self.chat else ""
        )

    def that_fit(
        self, named_by: str, items: list, samples_of: Callable[..., dict]
    ) -> tuple[list, dict]:
        """Items of the benchmark, and the samples of all of them by key: with --fitting of those
        that fit, else of all.

        Args:
            named_by: the option that names the items.
            samples_of: makes those of an item, or raises DoesNotFit.

        Raises:
            InputError: some do not fit; it names all of them, and what would be left.
        """
        samples = {}
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
        if processes.is_first():
            for item, reason in unfit.items():
                print(f"{SKIPPED}{self.name} {item}: {reason.partition(';')[0]}.")
        return fitting, samples

    @functools.cached_property
    def chat(self) -> Chat | None:
        """The tokenizer's chat template, with --chat; None without it."""
        given = getattr(self.arguments, "chat_options", None) or []
        if getattr(self.arguments, "chat", False):
            return Chat(self.model.tokenizer, self.model.name, given)
        if given:
            raise InputError("--chat-options are of a chat template; give --chat, too.")
        return None

    @property
    def of_chat(self) -> dict:
        """What a record says of --chat; nothing without it."""
        return self.chat.facts if self.chat else {}

    @functools.cached_property
    def ends(self) -> frozenset[int]:
        """The ids that end an answer: those that the model states; by a server or with --chat the
        tokenizer's EOS, by which servers end it, too; and the template's end of a turn."""
        ends = set(self.model.stops)
        if self.chat or self.served:
            ends.add(self.model.tokenizer.eos_token_id)
        if self.chat:
            ends.add(self.chat.end_of_turn())
        return frozenset(ends - {None})

    def encoded(self, prompt: str, begun: str = "", asks: bool = True) -> tuple[int, ...]:
        """The token ids of a prompt, with --chat its question in the template, and then the
        beginning of the answer.

        Special tokens are those of the template, or without it those that the tokenizer adds by
        default.

        Args:
            begun: the end of the prompt, with which the answer begins.
            asks: False leaves the template out.
        """
        if asks and self.chat:
            text = self.chat.text(prompt.removesuffix(begun)) + begun
            return tuple(self.model.tokenizer(text, add_special_tokens=False).input_ids)
        return tuple(self.model.tokenizer(prompt).input_ids)

    def requests(self, keys: list[str], context_length: int) -> list[Request]:
        """The prompts of these samples, which must fit what the engine takes."""
        requests = []
        for key in keys:
            request = self.request(key, self.prepared.samples[key], context_length)
            special_tokens.check_ids(self.model.tokenizer, request.prompt, key)
            requests.append(replace(request, stop=request.stop | self.ends))
        tokens = [len(request.prompt) + request.max_new_tokens for request in requests]
        self.engine.check_length(max(tokens), context_length)
        return requests

    def measure(self, model, requests: list[Request]) -> Iterator[tuple[str, dict]]:
        tails = {request.key: request.prompt[-_TAIL:] for request in requests}
        for key, tokens in self.engine.generate(model, requests):
            prediction = self.model.tokenizer.decode(tokens, skip_special_tokens=True)
            value = self.score(key, self.prepared.samples[key], prediction)
            if self.chat and thinks(self.model.tokenizer.decode([*tails[key], *tokens])):
                value |= {"thinking": True}
            yield key, value | {"prediction": prediction}

    def beside(self, values: dict[str, dict]) -> dict:
        """How many answers never left their thinking; the terminal says so, too."""
        thinking = sum("thinking" in value for value in values.values())
        if not thinking:
            return {}
        print(
            f"{thinking} of {len(values)} answers never left their thinking (<think> without "
            "</think>); generate more tokens, or switch thinking off by --chat-options."
        )
        return {"thinking": thinking}
