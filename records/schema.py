"""What a record holds, see :mod:`records`, by the experiment that wrote it."""

import functools
from typing import Annotated, Any, Literal

from pydantic import Field

from core.schema import Count, Number, Schema, Text, Truth, having

Positive = Annotated[Count, Field(ge=1)]


def filled(kind: Any) -> Any:
    """A list or an object of this type that holds something."""
    return Annotated[kind, Field(min_length=1)]


_Mean = having({"mean": Number, "low": Number, "high": Number}, {"n": Count})
_Found = having({"length": Count, "mean": Number, "low": Number, "high": Number, "n": Count})
_Found_at = having({"length": Count, "depth": Number, "mean": Number, "n": Count})
_Between = having({"start": Count, "end": Count})
_TIME = having(
    {
        "method": Text,
        "options": dict[str, Any],
        "again": Truth,
        "phase": Text,
        "rounds": Count,
        "relative_to_pi": Number,
        "low": Number,
        "high": Number,
    }
)
_KEY = having({"place": Count, "distance": Count, "nats": Number, "found": Truth})
# The scores of each experiment; one's own may have any.
_SCORES: dict[str, dict[str, Any]] = {
    "passkey": {"by_length": filled(list[_Found]), "by_depth": filled(list[_Found_at])},
    "perplexity": {
        "by_length": filled(list[having({"length": Count})]),
        "by_window": dict[str, tuple[Number, Count]],
    },
    "ruler": {
        "lengths": dict[str, _Mean],
        "average": _Mean,
        "tasks": dict[str, dict[str, _Mean]],
    },
    "longbench_e": {
        "buckets": dict[str, _Mean],
        "averages": dict[str, _Mean],
        "tasks": dict[str, dict[str, _Mean]],
    },
    "open_llm": {"tasks": dict[str, _Mean], "by_document": dict[str, list[Number]]},
    "loss_by_position": {
        "block": Positive,
        "blocks": dict[str, list[Number]],
        "ranges": Annotated[list[_Between], Field(min_length=2)],
        "buckets": list[_Between],
    },
    "needles": {
        "keys": dict[str, filled(list[_KEY])],
        "ranges": filled(list[having({"start": Count, "nats": Number})]),
    },
    "learned": {
        "factors": list[Number],
        "attention_factor": Number,
        "steps_made": Count,
        "converged": Truth,
        "curve": filled(list[dict[str, Count | _Mean]]),
    },
    "finetune": {"losses": list[Number], "tokens": Count},
    "time_cost": {"rows": filled(list[_TIME])},
}


@functools.cache
def of(experiment: str) -> Schema:
    """The schema of an experiment's records."""
    run = {"experiment": Literal[experiment], "factor": Number}
    if experiment != "time_cost":  # which compares several methods in one run
        run |= {"method": Text | None, "options": dict[str, Any]}
    parts = {
        "run": having(run),
        "identity": Text,
        "sha256": Text,
        "scores": having(_SCORES.get(experiment, {})),
        "environment": having({"seconds": Annotated[Number, Field(ge=0)]}),
    }
    beside = {
        "base": dict[str, Text],
        "comparable": list[Text],
        "data_facts": dict[str, Any],
    }
    return having(parts, beside)


# A model's facts; its geometry is ROPE where a method can extend it.
MODEL = having(
    {
        "title": Text,
        "model": Text,
        "geometry": having({"context_length": Positive}),
        "factors": list[Annotated[Number, Field(ge=1, le=1e6)]],
        "n_hat": dict[Annotated[str, Field(pattern=r"^\d+(\.\d+)?$")], Count],
        "ablated": list[Text],
    }
)
ROPE = having(
    {"head_dim": Count, "base": Annotated[Number, Field(le=1e15)], "context_length": Count},
    {"frequencies": list[Number] | None, "attention_factor": Number, "rope_type": Text},
)
