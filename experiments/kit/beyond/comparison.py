"""The methods that can extend a model, and the model as it is, measured on the same texts in one
pass each."""

from __future__ import annotations

import copy
import functools
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from tqdm import tqdm
from transformers import PreTrainedConfig, PreTrainedModel, PreTrainedTokenizerBase

import records
from core import ORIGINAL, extend, rope
from core.errors import InputError, NonFiniteError, check_choice
from core.geometry import RopeGeometry
from core.huggingface import embedding, rotation
from core.huggingface.checkpoint import check_held
from core.methods.paper import yarn_attention_factor
from core.setting import Setting
from eval import special_tokens
from eval.beyond import needles as haystacks
from eval.beyond import ranking
from eval.beyond.needles import Haystack, Needle
from eval.beyond.ranking import Ranking, Row
from experiments.base_models.model import own_model
from experiments.kit import model as models
from experiments.kit import texts

# how many keys are hidden in a text: the most that fill at most this share of it, so that they cost
# little and the text stays a text
KEYS = 16, 8, 4, 2
SHARE = 1 / 16
LEAST_LENGTH = 256  # of L, so that most of what the model reads as it is is text and no question


@dataclass(frozen=True)
class Subject:
    """The model that is to be extended; the one place that knows where it comes from.

    Attributes:
        name: as commands take it.
        load: gives it; it may be changed.
    """

    name: str
    config: PreTrainedConfig
    geometry: RopeGeometry
    tokenizer: PreTrainedTokenizerBase
    load: Callable[[], PreTrainedModel]

    @property
    def quantised(self) -> str:
        """By what its weights are quantised, such as "gptq, 4 bits"; empty if they are not."""
        stated = getattr(self.config, "quantization_config", None)
        if not stated:
            return ""
        if not isinstance(stated, dict):
            stated = stated.to_dict()
        bits = f", {stated['bits']} bits" if "bits" in stated else ""
        by = stated.get("quant_method", "in some way")
        return f"{getattr(by, 'value', by)}{bits}"


def named(name: str, dtype: str | None = None) -> Subject:
    """A base model, a directory, or a model on the hub.

    Raises:
        InputError: there is none, it cannot be extended, or it was fine-tuned to fit a method.
    """
    base = models.resolve(name, as_it_is=True)
    if base.training:
        raise InputError(
            f"{name} was fine-tuned to fit {base.training['run']['method']}; give the model before."
        )
    load = functools.partial(base.load, base.chosen_dtype(dtype), True)
    return Subject(name, base.config, base.geometry, base.tokenizer, load)


def loaded(model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase | None) -> Subject:
    """A model in memory, which stays as it is: a copy shares its weights.

    Raises:
        InputError: there is no tokenizer, or it cannot be extended.
    """
    if not isinstance(model, PreTrainedModel):
        raise InputError("the model is no model of transformers; give one, or a name or a path.")
    if not isinstance(tokenizer, PreTrainedTokenizerBase):
        raise InputError("a loaded model needs its tokenizer; give tokenizer=, too.")
    check_held(model)  # what an export would refuse is not recommended
    tensors = [*model.parameters(), *model.buffers()]
    copied = copy.deepcopy(model, {id(tensor): tensor for tensor in tensors}).eval()
    embeddings = getattr(copied.config.get_text_config(decoder=True), "vocab_size", None)
    tokenizer = special_tokens.prepared(copy.deepcopy(tokenizer), embeddings)
    geometry = embedding.rope_geometry(copied)
    name = model.name_or_path.removesuffix(extend.IN_MEMORY) or "MODEL"
    return Subject(name, copied.config, geometry, tokenizer, lambda: copied)


def as_books(given: Sequence[str | Path]) -> list[texts.Book]:
    """Texts, and files and folders of them: a string that names none is a text."""
    listed = isinstance(given, list | tuple) and given
    if not listed or not all(isinstance(each, str | Path) for each in given):
        raise InputError("texts is no list of strings and paths; give one of one or more.")
    books = []
    for number, each in enumerate(given):
        if isinstance(each, Path) or os.path.exists(each):
            books += texts.files([Path(each)])
        else:
            books.append(texts.Book(f"text {number}", each))
    return texts.told_apart(books)


@dataclass(frozen=True)
class Comparison:
    """Settings on the same texts.

    Attributes:
        settings: what is measured, by its name in the table.
        left_out: of each setting that is not measured the reason.
        read: of each text, by its title, what is read, and the token after it, which is only
            predicted.
        books: of each text, by its title, the SHA-256 of the book that it is, or is a part of.
    """

    subject: Subject
    factor: float
    settings: dict[str, Setting]
    left_out: dict[str, str]
    read: dict[str, tuple[Haystack, int]]
    books: dict[str, str]

    @property
    def context_length(self) -> int:
        """L"""
        return self.subject.geometry.context_length

    @property
    def extended_length(self) -> int:
        """L'"""
        return round(self.context_length * self.factor)

    @property
    def keys(self) -> int:
        """How many are asked for in a text."""
        return len(next(iter(self.read.values()))[0].needles)

    def check_order(self, by: str | None) -> None:
        """Raise InputError unless methods can be ranked so."""
        if by is not None:
            check_choice(by, "order", (ranking.KEYS, ranking.LOSS))
        if by == ranking.KEYS and not self.keys:
            raise InputError("keys cannot be asked for here, so they rank nothing; rank by loss.")

    def readings(self) -> Iterator[dict[str, dict]]:
        """Of one text after the other the numbers of each setting, by its name."""
        model = self.subject.load()
        methods = sum(setting.method != ORIGINAL for setting in self.settings.values())
        description = f"{counted(methods, 'method')}, texts of {self.extended_length:,} tokens"
        count = len(self.read) * len(self.settings)
        with tqdm(total=count, unit="reading", desc=description) as bar:
            for title, (haystack, after) in self.read.items():
                of_text = {}
                for name, setting in self.settings.items():
                    extend.extend(model, setting.method, self.factor, **dict(setting.options))
                    most = setting.last or len(haystack.tokens)
                    try:
                        of_text[name] = numbers(model, haystack, after, most, self.context_length)
                    except NonFiniteError as error:
                        raise NonFiniteError(f"{name} on {title!r}: {error}") from error
                    bar.update()
                yield of_text

    def ranked(self, read: list[dict[str, dict]], by: str | None) -> Ranking:
        """What the readings of the first texts say."""
        books = len({*[*self.books.values()][: len(read)]})
        rows = [
            Row(name, setting, [of_text[name] for of_text in read], books)
            for name, setting in self.settings.items()
        ]
        return ranking.ranked(rows, by)


def prepare(
    subject: Subject,
    books: list[texts.Book],
    factor: float,
    wanted: Sequence[str] | None = None,
    bos: bool | None = None,
) -> Comparison:
    """What is to be measured; nothing is loaded.

    Args:
        wanted: the names of the methods; None for all that need no training.
        bos: as of :func:`eval.special_tokens.beginning`.

    Raises:
        InputError: the factor adds no token, one of these methods is none that can be ranked, or no
            text is long enough.
    """
    settings, left_out = expressible(subject, factor, wanted)
    for name, reason in left_out.items():
        print(f"note: {name} is left out: {reason}", file=sys.stderr)
    if all(setting.method == ORIGINAL for setting in settings.values()):
        raise InputError("no method is left to be measured; give others, or another model.")
    length = round(subject.geometry.context_length * factor)
    before = special_tokens.beginning(subject.tokenizer, bos)
    try:
        haystacks.check_can_be_asked(rotation.skeleton(subject.config))
        needles = hidden(subject, books, length, before)
        length -= haystacks.QUESTION
    except InputError as error:
        print(f"note: keys are left out: {error}", file=sys.stderr)
        needles = [[] for _ in books]
    sizes = [length - len(before) - haystacks.size(of_text) for of_text in needles]
    tokens = texts.read(subject.tokenizer, books, max(sizes) + 1, max(sizes) + 1)
    read = {}
    for book, size, of_text in zip(books, sizes, needles, strict=True):
        if book in tokens:
            ids = tokens[book].tolist()
            read[book.title] = haystacks.haystack(ids[:size], of_text, before), ids[size]
    whole = {book.title: book.whole or book.sha256 for book in books if book.title in read}
    return Comparison(subject, factor, settings, left_out, read, whole)


def hidden(
    subject: Subject, books: list[texts.Book], length: int, before: list[int]
) -> list[list[Needle]]:
    """The needles of each text; InputError if they do not fit, or stand on one side of L alone."""
    room = length - haystacks.QUESTION - len(before)
    seeds = [book.sha256 for book in books]
    found = haystacks.fitting(subject.tokenizer, KEYS, seeds, SHARE * room)
    if found is None or subject.geometry.context_length < LEAST_LENGTH:
        raise InputError(f"L' = {length:,} and L are too short for a text around them.")
    # the first stands in the middle of the first of equal parts, behind its question
    farthest = room * (1 - 0.5 / len(found[0])) - haystacks.QUESTION
    if farthest <= subject.geometry.context_length:
        raise InputError("none would stand beyond L; give a larger --factor.")
    return found


def numbers(
    model: PreTrainedModel, haystack: Haystack, after: int, most: int, context_length: int
) -> dict[str, float]:
    """What a model makes of a text: the numbers of a :class:`eval.beyond.ranking.Row`.

    Args:
        after: the token after the text.
        most: how many tokens it reads at a time. Where that is not all, it reads the first so many,
            and further windows that begin `most` / 2 tokens apart and of which the last ends before
            the question; each scores what no earlier one did.
    """
    tokens = (*haystack.tokens, after)
    read = len(haystack.tokens)
    before = haystack.before
    last = 0
    if most < read:
        last = read - most + (haystacks.QUESTION if haystack.needles else 0)
    losses = []
    scored = 0
    for begin in (0, *sorted(range(last, 0, -(most // 2)))):
        end = min(begin + most, read)
        needles = haystack.needles if begin == last else ()
        window = before + tokens[begin + len(before) : end + 1]
        of_window, asked = haystacks.read_and_ask(model, window, end - scored, needles)
        losses.append(of_window)
        scored = end
    loss = np.concatenate(losses)
    own = np.append(haystack.of_text(), True)[1:]
    within = np.arange(read) < context_length
    found = {
        "loss_within": float(loss[own & within].mean()),
        "loss_beyond": float(loss[own & ~within].mean()),
    }
    if asked:
        near = np.array(haystack.distances()) <= context_length
        nats, found_keys = np.array(asked).T
        for where, chosen in (("within", near), ("beyond", ~near)):
            found[f"nats_{where}"] = float(nats[chosen].mean())
            found[f"found_{where}"] = float(found_keys[chosen].sum())
            found[f"keys_{where}"] = float(chosen.sum())
    return found


def expressible(
    subject: Subject, factor: float, wanted: Sequence[str] | None = None
) -> tuple[dict[str, Setting], dict[str, str]]:
    """Every setting that needs no training and that the model's configuration can express, of those
    that make the same model the first; then the model as it is. And the reasons of the others.

    Args:
        wanted: the names of the methods; None for all.

    Raises:
        InputError: the factor adds no token, or one of these methods is none that can be ranked.
    """
    geometry = subject.geometry
    rope.scale(geometry, ORIGINAL, factor)  # refuses the factor
    of_model = own_model(subject.name, subject.name, geometry, (factor,))
    methods = [
        Setting.make(method, options, factor)
        for method, options in of_model.comparison(factor)
        if method != ORIGINAL
    ]
    for name in wanted or ():
        check_choice(
            name, "method that needs no training", dict.fromkeys(each.method for each in methods)
        )
    as_it_is = Setting(ORIGINAL, factor=factor)
    short = replace(as_it_is, last=geometry.context_length)
    warm = yarn_attention_factor(factor)
    every = {each.typed: each for each in methods if not wanted or each.method in wanted} | {
        "as it is, last L": short,
        f"as it is × {warm:.2f}, last L": replace(short, options=(("attention_factor", warm),)),
        "as it is, at L'": as_it_is,
    }
    model = rotation.skeleton(subject.config)
    made: dict[str, str] = {}  # names by what they make
    kept = {}
    left_out = {}
    for name, setting in every.items():
        options = dict(setting.options)
        try:
            scaled = records.of_scaling(rope.scale(geometry, setting.method, factor, **options))
            if scaled in made and setting.method != ORIGINAL:
                left_out[name] = f"it makes the same model as {made[scaled]}"
                continue
            extend.extend(model, setting.method, factor, **options)
        except InputError as error:
            left_out[name] = str(error)
            continue
        made[scaled] = name
        kept[name] = setting
    return kept, left_out


def counted(number: int, what: str) -> str:
    """Such as "1 text", "2 texts"."""
    return f"{number} {what}" if number == 1 else f"{number} {what}s"
