"""The types of the fields of records that the paper has no experiment for."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import AfterValidator, Field

from analysis.record_types import TUPLE, Count, Number, Positive, Score, Some, Whole, fields, score

_SPAN = score(start=Whole, end=Count)
_APART = fields(of_means=Number, mean=Number, largest=Number)
_SELECTION = fields(interpolated_pairs=list[Whole], disturbance=dict[str, Number], within=Score, beyond=Score)


def _none_of_none(pair: tuple[float, int]) -> tuple[float, int]:
    if pair[0] and not pair[1]:
        raise ValueError("no tokens have no loss")
    return pair


_KEY = Annotated[tuple[Number, Whole], TUPLE, AfterValidator(_none_of_none)]
_SUMS = fields(key=_KEY, all=Annotated[tuple[Number, Count], TUPLE])
TYPES: dict[str, dict[str, Any]] = {
    "loss_by_position": {
        "data": dict[str, Any],
        "length": Count,
        "block": Count,
        "blocks": dict[str, Some[Number]],
        "ranges": Annotated[list[_SPAN], Field(min_length=2)],
        "buckets": Some[_SPAN],
    },
    "long_perplexity": {
        "data": dict[str, Any],
        "length": Count,
        "texts": dict[str, fields(within=_SUMS, beyond=_SUMS)],
    },
    "learned": {
        "factors": Some[Positive],
        "attention_factor": Positive,
        "steps_made": Count,
        "converged": bool,
        "curve": Some[fields(step=Whole, tokens=Whole, within=Score, beyond=Score, all=Score)],
    },
    "searched": {"factors": Some[Positive], "losses": Some[Number], "generations_least": Some[Number]},
    "served": {
        "engine": fields(name=str, version=str, gguf=str),
        "answer": fields(served=str),
        "tokens": Count,
        "scored": Count,
        "scores": fields(losses=dict[str, Score], apart_from=dict[str, _APART]),
    },
    "selections": {"scores": Some[_SELECTION]},
}
