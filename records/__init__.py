"""Records: one JSON file per finished run, under results/MODEL/EXPERIMENT/RUN.json.

Records of an experiment in experiments/beyond/ are under results/MODEL/beyond/.

A record has these parts:

    run          what was asked: model, experiment, method, options, settings, data
    identity     a hash of run: two records of one run have the same
    base         what identifies the base model of an evaluated one: its weights and tokenizer
    comparable   the names of those parts of run that must agree, with base, in one table
    scores       what came out
    data_facts   of training: the data
    environment  where, with which software, by which command and in how many seconds
    sha256       a hash of all but environment: a record that was changed is refused

This package needs neither torch nor a model.
"""

from records.machine import CODE, code_hash, commit, environment, versions
from records.store import (
    BEYOND,
    IDENTIFIES,
    MODEL,
    OWN,
    RESULTS,
    ROOT,
    check_model,
    content_hash,
    difference,
    folder,
    has,
    identity,
    is_done,
    is_sketch,
    of_method,
    of_scaling,
    path,
    program,
    read,
    read_model,
    run_of,
    state_model,
    write,
)

__all__ = [
    "BEYOND",
    "CODE",
    "IDENTIFIES",
    "MODEL",
    "OWN",
    "RESULTS",
    "ROOT",
    "check_model",
    "code_hash",
    "commit",
    "content_hash",
    "difference",
    "environment",
    "folder",
    "has",
    "identity",
    "is_done",
    "is_sketch",
    "of_method",
    "of_scaling",
    "path",
    "program",
    "read",
    "read_model",
    "run_of",
    "state_model",
    "versions",
    "write",
]
