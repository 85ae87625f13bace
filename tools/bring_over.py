"""Bring records, and the training.json of fine-tunes, that an older version wrote to the present
form.

    python -m tools.bring_over results checkpoints

Until November 2026 both were flat: what stood before "identity" was the run, and all else stood
beside it. Now a record is "run", "identity", "scores" and "environment". Until then, too, a
training.json had no hash of what it states. No number changes.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import records
from core import files
from experiments.training import state

# What stands beside the scores, and how the machine that measured is described.
_KEPT = ("identity", "base", "comparable", "scores")
_OF_MACHINE = ("seconds", "ran_on", "fingerprints")
_OF_DATA = ("data_facts", "data_sha256")  # of what a model was trained on
_LISTS = {"perplexity": "by_length", "time_cost": "rows"}


def bring_over(record: dict) -> dict:
    """A record in the present form; one that is in it already is returned as it is."""
    if "sha256" in record:
        return record
    names = list(record)
    until = names.index("identity")
    run = {name: record[name] for name in names[:until]}
    came_out = record.get("scores", {})
    if isinstance(came_out, list):
        came_out = {_LISTS[run["experiment"]]: came_out}
    elif run["experiment"] == "open_llm":
        came_out = {"tasks": came_out}
    others = set(names[until:]) - {*_KEPT, *_OF_MACHINE, *_OF_DATA, "environment"}
    came_out = came_out | {name: record[name] for name in names if name in others}
    new = {"run": run, "identity": record["identity"]}
    if "base" in record:
        new["base"] = record["base"]
        new["comparable"] = [name for name in record["comparable"] if name != "base"]
    if "data_facts" in record:
        new["data_facts"] = record["data_facts"]
    if "data_sha256" in record:
        new["data_facts"] = {"sha256": record["data_sha256"]}
    of_machine = {name: record[name] for name in _OF_MACHINE if name in record}
    new |= {"scores": came_out, "environment": record["environment"] | of_machine}
    return new | {"sha256": records.content_hash(new)}


def bring_over_training(facts: dict) -> dict:
    """The facts of a fine-tune in the present form."""
    if "run" not in facts:
        names = list(facts)
        run = {name: facts[name] for name in names[: names.index("identity")]}
        facts = {"run": run} | {name: facts[name] for name in names if name not in run}
    return {"content": state.content(facts)} | facts


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("folder", type=Path, nargs="+", help="of records or of checkpoints")
    for folder in parser.parse_args().folder:
        for file in sorted(folder.rglob("*.json")):
            record = files.read_json(file, "remove it and measure again")
            if "identity" in record:
                convert = bring_over_training if file.name == state.FACTS else bring_over
                files.write_json(file, convert(record))


if __name__ == "__main__":
    main()
