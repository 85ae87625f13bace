"""The type of each field of a record that tables, figures and pages read.

A record is checked when it is read. If it was cut or edited, or another version wrote it, the error names its file and
field. A missing field is an error only when it is read, see :class:`Stated`.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from core import files, rope
from core.errors import InputError
from core.geometry import RopeGeometry
from experiments.lab.records import SCALE

LARGEST = 1e300  # a number beyond it would overflow in the first sum
REMEDY = "another version or another hand wrote it; remove it and measure again"

Check = Callable[[Any, str], None]  # takes a value and its place; raises ValueError that says what is wrong


class Stated(dict):
    """An object in a record. Reading a missing key raises an InputError that names the file."""

    file: Path

    def __missing__(self, key: object) -> object:
        raise InputError(f"{self.file} does not say {key!r}; {REMEDY}.")

    def __or__(self, other: dict) -> Stated:
        return _object({**self, **other}, self.file)


def read(file: Path, experiment: str) -> Stated:
    """A record of an experiment; each object in it is a :class:`Stated`.

    Raises:
        InputError: the file cannot be read, or a field has another type than the experiment writes.
    """
    plain = files.read_json(file, REMEDY)
    try:
        found = _stated(plain, file)
        for check in (_SHARED, _RECORDS.get(experiment, _OTHER)):
            check(found, "")
        named = "file" in found.get("options", {})  # the name of such a file may itself contain a seed
        if "_seed=" in file.stem and not named and not {"training", "seed"} & found.keys():
            raise ValueError("its name says that it is of a fine-tune, and it does not")
    except (ValueError, RecursionError) as error:
        raise InputError(f"{file} cannot be read: {str(error).removesuffix('.')}; {REMEDY}.") from error
    return found


def _object(entries: dict, file: Path) -> Stated:
    made = Stated(entries)
    made.file = file
    return made


def _stated(value: Any, file: Path) -> Any:
    if isinstance(value, dict):
        return _object({key: _stated(each, file) for key, each in value.items()}, file)
    if isinstance(value, list) and {dict, list} & set(map(type, value)):
        return [_stated(each, file) for each in value]
    return value


# Types


def _wrong(value: object, at: str, wanted: str) -> ValueError:
    text = json.dumps(value)
    return ValueError(f"{at} is {text if len(text) < 40 else text[:40] + '…'}, not {wanted}")


def number(value: Any, at: str) -> None:
    """A finite number."""
    if type(value) not in (int, float) or not abs(value) < LARGEST:
        raise _wrong(value, at, "a finite number")


def positive(value: Any, at: str) -> None:
    """A finite number above 0."""
    number(value, at)
    if value <= 0:
        raise _wrong(value, at, "above 0")


def whole(value: Any, at: str, least: int = 0) -> None:
    """A whole number of at least 0."""
    number(value, at)
    if value != int(value) or value < least:
        raise _wrong(value, at, f"a whole number of at least {least}")


def count(value: Any, at: str) -> None:
    """A whole number of at least 1."""
    whole(value, at, 1)


def text(value: Any, at: str) -> None:
    """Text."""
    if not isinstance(value, str):
        raise _wrong(value, at, "text")


def flag(value: Any, at: str) -> None:
    """True or false."""
    if not isinstance(value, bool):
        raise _wrong(value, at, "true or false")


def null(value: Any, at: str) -> None:
    """Nothing."""
    if value is not None:
        raise _wrong(value, at, "null")


def anything(value: Any, at: str) -> None:
    """Whatever it is."""


def either(*checks: Check) -> Check:
    """One of several types."""

    def check(value: Any, at: str) -> None:
        wanted = []
        for one in checks:
            try:
                return one(value, at)
            except ValueError:
                wanted.append(one.__doc__.rstrip(".").lower())
        raise _wrong(value, at, " or ".join(wanted))

    return check


def every(each: Check, least: int = 1) -> Check:
    """A list of at least so many of a type."""

    def check(value: Any, at: str) -> None:
        """A list."""
        if not isinstance(value, list) or len(value) < least:
            raise _wrong(value, at, f"a list of at least {least}")
        if each is number and set(map(type, value)) <= {int, float} and max(map(abs, value), default=0) < LARGEST:
            return  # the same as below, for lists of many thousands
        for index, one in enumerate(value):
            each(one, f"{at}[{index}]")

    return check


def named(each: Check, name: Callable[[str], object] = str) -> Check:
    """An object of any names with values of one type; `name` raises ValueError for an impossible name."""

    def check(value: Any, at: str) -> None:
        """An object."""
        if not isinstance(value, dict):
            raise _wrong(value, at, "an object")
        for key, one in value.items():
            try:
                name(key)
            except ValueError as error:
                raise ValueError(f"{at} has an entry {key!r}") from error
            each(one, f"{at}.{key}")

    return check


def fields(*bases: Check, **known: Check) -> Check:
    """An object whose known fields, if present, have these types; other fields may be anything."""

    def check(value: Any, at: str) -> None:
        """An object."""
        if not isinstance(value, dict):
            raise _wrong(value, at or "it", "an object")
        for base in bases:
            base(value, at)
        for key in value.keys() & known.keys():
            known[key](value[key], f"{at}.{key}".removeprefix("."))

    return check


# Records


def _around_mean(value: dict, at: str) -> None:
    """Refuse an interval that does not contain its mean, which would otherwise be drawn and printed."""
    if {"mean", "low", "high"} <= value.keys() and not value["low"] <= value["mean"] <= value["high"]:
        raise ValueError(f"the mean of {at} is not between low and high")


def _options(value: Any, at: str) -> None:
    """A method's options: registered ones have their own type, others any simple type."""
    named(anything)(value, at)
    known = _types(tuple(rope.METHODS)) if value else {}
    for name, one in value.items():
        known.get(name, either(number, text, flag, null))(one, f"{at}.{name}")


@functools.cache
def _types(_: tuple[str, ...]) -> dict[str, Check]:
    """The types of the options of all registered methods."""
    types = {int: whole, float: number, str: text, bool: flag}
    options = rope.all_options().items()
    return {name: every(types[option.type]) if option.several else types[option.type] for name, option in options}


def _geometry(value: Any, at: str) -> None:
    fields(head_dim=count, base=number, context_length=count)(value, at)
    if {"head_dim", "base", "context_length"} <= value.keys():
        RopeGeometry(value["head_dim"], value["base"], value["context_length"])


def _window(key: str) -> None:
    """TITLE/LENGTH/BEGIN."""
    _, length, begin = key.rsplit("/", 2)
    int(length), int(begin)


def _scores(value: Any, at: str) -> None:
    """The scores of an experiment without an entry below: every entry with an interval is a score."""
    for key, one in value.items() if isinstance(value, dict) else ():
        if isinstance(one, dict) and "low" in one:
            SCORE(one, f"{at}.{key}")


SCORE = fields(mean=number, low=number, high=number, n=count)
SCORE = fields(SCORE, _around_mean)
_SPAN = fields(SCORE, start=whole, end=count)
_PER_LENGTH = fields(SCORE, length=count, depth=number)
_SHARED = fields(
    method=either(text, null),
    factor=positive,
    options=_options,
    comparable=every(text, 0),
    training=fields(seed=whole, steps=count, length=count),
    seconds=number,
    environment=fields(device=text, gpus=count),
    benchmark=text,
    same_selection_as=text,
    geometry=_geometry,
)
_OTHER = fields(scores=_scores)
_RECORDS: dict[str, Check] = {
    SCALE: fields(title=text, n_hat=named(count, float), ablated=every(text, 0)),
    "angle_distribution": fields(
        intervals=count,
        scores=every(
            fields(
                pair=whole,
                wavelength=number,
                **dict.fromkeys(("pretrained", "interpolated", "extrapolated"), every(whole)),
            )
        ),
    ),
    "disturbance": fields(
        scores=every(
            fields(
                precision=text,
                convention=text,
                method=text,
                options=_options,
                average=number,
                interpolated_dimensions=whole,
                per_pair=every(number),
            )
        )
    ),
    "extension": fields(
        data=named(anything),
        length=count,
        block=count,
        blocks=named(every(number)),
        ranges=every(_SPAN, 2),
        buckets=every(_SPAN),
    ),
    "finetune": fields(losses=every(positive)),
    "learned": fields(
        factors=every(positive),
        attention_factor=positive,
        steps_made=count,
        converged=flag,
        curve=every(fields(step=whole, tokens=whole, **dict.fromkeys(("within", "beyond", "all"), SCORE))),
    ),
    "longbench_e": fields(
        scores=fields(tasks=named(named(SCORE)), buckets=named(SCORE), averages=named(SCORE)),
    ),
    "open_llm": fields(scores=named(SCORE), by_document=named(every(number)), shots=whole),
    "passkey": fields(scores=fields(by_length=every(_PER_LENGTH), by_depth=every(_PER_LENGTH))),
    "perplexity": fields(
        data=named(anything),
        lengths=every(count),
        stride=either(count, every(count)),
        tokens=either(count, null),
        bucket=count,
        scores=every(fields(length=count, windows=count, tokens=count, token=SCORE, window=SCORE)),
        by_position=named(every(number), _window),
    ),
    "ruler": fields(
        tasks=every(text),
        samples=count,
        scores=fields(tasks=named(named(SCORE)), lengths=named(SCORE, int), average=SCORE),
    ),
    "served": fields(
        engine=fields(name=text, version=text, gguf=text),
        answer=fields(served=text),
        tokens=count,
        scored=count,
        scores=fields(losses=named(SCORE), apart_from=named(fields(of_means=number, mean=number, largest=number))),
    ),
    "selections": fields(
        scores=every(fields(interpolated_pairs=every(whole, 0), disturbance=named(number), within=SCORE, beyond=SCORE)),
        spearman=named(SCORE),
    ),
    "time_cost": fields(
        length=count,
        scores=every(
            fields(
                method=text,
                options=_options,
                again=flag,
                phase=text,
                rounds=count,
                relative_to_pi=number,
                low=number,
                high=number,
            )
        ),
    ),
}
