"""The type of each field of a record that tables, figures and pages read.

A record is checked when it is read. If it was cut or edited, or another version wrote it, the error names its file and
field. A missing field is an error only when it is read, see :class:`Stated`. Other fields may be anything.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Hashable
from pathlib import Path
from typing import Annotated, Any, TypeVar

from pydantic import AfterValidator, BeforeValidator, Field, TypeAdapter, ValidationError
from typing_extensions import TypedDict  # pydantic reads Python's own only from 3.12 on

from core import discovery, files, rope
from core.errors import InputError
from core.geometry import RopeGeometry
from experiments.kit.records import MODEL

LARGEST = 1e300  # a number beyond it would overflow in the first sum
REMEDY = "another version or another hand wrote it; remove it and measure again"


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
    record = files.read_json(file, REMEDY)
    try:
        _check(record, _record(experiment))
        names_file = "file" in record.get("options", {})  # the name of such a file may itself contain a seed
        if "_seed=" in file.stem and not names_file and not {"training", "seed"} & record.keys():
            raise ValueError("its name says that it is of a fine-tune, and it does not")
        return _stated(record, file)
    except (ValueError, RecursionError) as error:
        raise InputError(f"{file} cannot be read: {str(error).removesuffix('.')}; {REMEDY}.") from error


def _object(entries: dict, file: Path) -> Stated:
    stated = Stated(entries)
    stated.file = file
    return stated


def _stated(value: Any, file: Path) -> Any:
    if isinstance(value, dict):
        return _object({key: _stated(each, file) for key, each in value.items()}, file)
    if isinstance(value, list) and {dict, list} & set(map(type, value)):
        return [_stated(each, file) for each in value]
    return value


@functools.cache
def _record(experiment: str) -> TypeAdapter:
    beyond = discovery.module("analysis.beyond.record_types")
    types = TYPES | (beyond.TYPES if beyond else {})
    return TypeAdapter(fields(**_COMMON | types.get(experiment, {"scores": Annotated[Any, AfterValidator(_scores)]})))


def _check(value: Any, kind: TypeAdapter) -> None:
    """Raise ValueError, which names the field, if something in `value` is of another type."""
    try:
        kind.validate_python(value, strict=True)
    except ValidationError as error:
        wrong = error.errors(include_url=False)[0]
        field = "".join(f"[{key}]" if isinstance(key, int) else f".{key}" for key in wrong["loc"])
        why = wrong["msg"].removeprefix("Value error, ").replace("Input", "it", 1)
        raise ValueError(f"{field.removeprefix('.')} is {json.dumps(wrong['input']):.40}: {why}") from None


# Types

Each = TypeVar("Each")
Some = Annotated[list[Each], Field(min_length=1)]
Number = Annotated[float, Field(gt=-LARGEST, lt=LARGEST)]
Positive = Annotated[float, Field(gt=0, lt=LARGEST)]
Whole = Annotated[int, Field(ge=0)]
Count = Annotated[int, Field(ge=1)]


def fields(**types: Any) -> Any:
    """An object whose fields, if present, have these types; other fields may be anything."""
    return TypedDict("fields", types, total=False)


def score(**types: Any) -> Any:
    """A mean with its interval, and further fields."""
    return Annotated[fields(mean=Number, low=Number, high=Number, n=Count, **types), AfterValidator(_around_mean)]


def _around_mean(value: dict) -> dict:
    """Refuse an interval that does not contain its mean, which would otherwise be drawn and printed."""
    if {"mean", "low", "high"} <= value.keys() and not value["low"] <= value["mean"] <= value["high"]:
        raise ValueError("the mean is not between low and high")
    return value


def _tuple(value: Any) -> Any:
    """JSON has no tuples."""
    return tuple(value) if isinstance(value, list) else value


TUPLE = BeforeValidator(_tuple)


def _geometry(value: dict) -> dict:
    if {"head_dim", "base", "context_length"} <= value.keys():
        RopeGeometry(value["head_dim"], value["base"], value["context_length"])
    return value


def _options(options: dict) -> dict:
    """A method's options: registered ones have their own type, others any simple type."""
    if options:
        _check(options, _registered(tuple(rope.METHODS)))
    return options


@functools.cache
def _registered(_: tuple[str, ...]) -> TypeAdapter:
    kinds = {int: Whole, float: Number, str: str, bool: bool}
    types = {name: Some[kinds[o.type]] if o.several else kinds[o.type] for name, o in rope.all_options().items()}
    return TypeAdapter(TypedDict("Options", types, total=False, extra_items=Hashable))


def _scores(scores: Any) -> Any:
    """The scores of an experiment without an entry below: every entry with an interval is a score."""
    if isinstance(scores, dict):
        with_interval = {name: one for name, one in scores.items() if isinstance(one, dict) and "low" in one}
        _check(with_interval, TypeAdapter(dict[str, Score]))
    return scores


Score = score()
Options = Annotated[dict[str, Any], AfterValidator(_options)]
_COMMON = {
    "method": str | None,
    "factor": Positive,
    "options": Options,
    "comparable": list[str],
    "training": fields(seed=Whole, steps=Count, length=Count),
    "seconds": Number,
    "environment": fields(device=str, gpus=Count),
    "benchmark": str,
    "engine": fields(name=str),
    "same_selection_as": str,
    "geometry": Annotated[fields(head_dim=Count, base=Number, context_length=Count), AfterValidator(_geometry)],
}
_PAIR_ANGLES = fields(
    pair=Whole, wavelength=Number, pretrained=Some[Whole], interpolated=Some[Whole], extrapolated=Some[Whole]
)
_COUNTED_DISTURBANCE = fields(
    precision=str,
    convention=str,
    average=Number,
    interpolated_dimensions=Whole,
    per_pair=Some[Number],
)
_PASSKEYS = score(length=Count, depth=Number)
_PHASE_TIME = fields(
    method=str, options=Options, again=bool, phase=str, rounds=Count, relative_to_pi=Number, low=Number, high=Number
)
_WINDOW = Annotated[str, Field(pattern=r"/\d+/\d+$")]  # TITLE/LENGTH/BEGIN
TYPES: dict[str, dict[str, Any]] = {  # by experiment, the fields that only its records have
    MODEL: {
        "title": str,
        "n_hat": dict[Annotated[str, Field(pattern=r"^\d+(\.\d+)?$")], Count],
        "ablated": list[str],
    },
    "angle_distribution": {"intervals": Count, "scores": Some[_PAIR_ANGLES]},
    "disturbance": {"scores": Some[_COUNTED_DISTURBANCE]},
    "finetune": {"losses": Some[Positive]},
    "longbench_e": {
        "scores": fields(tasks=dict[str, dict[str, Score]], buckets=dict[str, Score], averages=dict[str, Score])
    },
    "open_llm": {"scores": dict[str, Score], "by_document": dict[str, Some[Number]], "shots": Whole},
    "passkey": {"scores": fields(by_length=Some[_PASSKEYS], by_depth=Some[_PASSKEYS])},
    "perplexity": {
        "data": dict[str, Any],
        "lengths": Some[Count],
        "stride": Annotated[Some[Count], BeforeValidator(lambda value: value if isinstance(value, list) else [value])],
        "tokens": Count | None,
        "bucket": Count,
        "scores": Some[fields(length=Count, windows=Count, tokens=Count, token=Score, window=Score)],
        "by_window": dict[_WINDOW, Annotated[tuple[Number, Count], TUPLE]],
        "by_position": dict[_WINDOW, Some[Number]],
    },
    "ruler": {
        "tasks": Some[str],
        "samples": Count,
        "scores": fields(
            tasks=dict[str, dict[str, Score]],
            lengths=dict[Annotated[str, Field(pattern=r"^\d+$")], Score],
            average=Score,
        ),
    },
    "time_cost": {"length": Count, "scores": Some[_PHASE_TIME]},
}
