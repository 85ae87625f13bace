"""What training.json says, beside the weights of a checkpoint that experiments.finetune made."""

from pathlib import Path
from typing import Annotated, Any

from pydantic import Field

from core import TRAINING_FILE, TRAINING_OF_BASE, files, schema
from core.errors import InputError
from core.schema import Count, Number, Text, having
from records import content_hash, identity
from records.schema import Positive, filled

FILE, OF_BASE = TRAINING_FILE, TRAINING_OF_BASE
_Hashes = dict[str, Text]
_RUN = having(
    {
        "scale": Text,
        "method": Text,
        "factor": Number,
        "options": dict[str, Any],
        "seed": Count,
        "length": Positive,
        "steps": Positive,
        "batch": Positive,
        "model": having({"source": Text, "sha256": _Hashes}),
    }
)
_BOOK = having({"title": Text, "sha256": Text})
_TRAINING = having(
    {
        "run": _RUN,
        "identity": Text,
        "sha256": filled(_Hashes),
        "parameters": Positive,
        "losses": filled(list[Number]),
        "seconds_per_step": filled(list[Annotated[Number, Field(gt=0)]]),
        "data_facts": having(
            {
                "sha256": Text,
                "sequences": Positive,
                "books": list[_BOOK],
            }
        ),
        "ran_on": dict[str, Any],
        "content": Text,
    },
    {"before": list[_BOOK]},
)


def books(facts: dict) -> list[dict]:
    """The books that a checkpoint, or factors, learned from, and of a fine-tune that began with
    another one those of that, too.

    Args:
        facts: of a training.json, or of a record.
    """
    return [*facts.get("data_facts", {}).get("books", ()), *facts.get("before", ())]


def in_folder(folder: Path) -> dict | None:
    """The training.json in a folder, see :func:`read`; None if it has none."""
    file = folder / FILE
    return read(file) if file.is_file() else None


def read(file: Path) -> dict | None:
    """A training.json; None of another program's.

    Raises:
        InputError: experiments.finetune wrote it, and it was changed.
    """
    anew = (
        "fine-tune again, convert it by tools/bring_over.py of commit 45a9edf7 if an older version "
        "wrote it, or remove it to evaluate the checkpoint under its own name"
    )
    facts = files.read_json(file, anew, (dict, list))
    if isinstance(facts, list) or facts.keys().isdisjoint(("identity", "data_facts")):
        return None
    schema.check(facts, _TRAINING, str(file), anew)
    hashed = facts["identity"], facts["content"]
    if hashed != (identity(**facts["run"]), content_hash(facts)):
        raise InputError(f"{file} is not what experiments.finetune wrote; {anew}.")
    return facts
