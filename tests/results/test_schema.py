"""A record, or a model's facts, in which a value is of another type is refused in one sentence; it
is never drawn as another number."""

import contextlib
from functools import partial

import pytest

import records
from analysis import results
from analysis.results import NotMeasured, Results
from core.errors import InputError
from records import MODEL, RESULTS
from report import all_results
from tables.kit.draw import table
from tests.changes import answers
from tests.files import read, write, write_record

RECORDS = {file: read(file) for file in sorted(RESULTS.rglob("*.json")) if file.name != MODEL}
# One record of each experiment of a model, which is enough for its table.
SAMPLES = {}
for file, record in RECORDS.items():
    SAMPLES.setdefault(record["run"]["experiment"], file)


def test_every_identity_is_that_of_what_the_record_states():
    for file, record in RECORDS.items():
        assert record["identity"] == records.identity(**record["run"]), file


def shown(folder, experiment):
    """Read a folder's records, and draw what is drawn of them."""
    results._read.cache_clear()
    measured = Results.of("mine", folder)
    for name in measured.experiments():
        measured.records(name)
    all_results.table(folder)
    with contextlib.suppress(NotMeasured):
        table(experiment, measured)


@pytest.mark.parametrize("experiment", SAMPLES)
def test_a_record_that_was_changed_is_refused(tmp_path, experiment):
    """Where a value is of another type, by its key."""
    committed = SAMPLES[experiment]
    facts = read(RESULTS / committed.relative_to(RESULTS).parts[0] / MODEL)
    write(tmp_path / "mine" / MODEL, facts)
    file = records.folder(tmp_path, "mine", experiment) / committed.name
    write(file, RECORDS[committed])
    shown(tmp_path, experiment)
    looking = partial(shown, tmp_path, experiment)
    for at, kind, found in answers(file, RECORDS[committed], looking):
        if at[0] != "environment":
            assert isinstance(found, str) and file.stem in found, (at, kind)
        if at in ((part,) for part in ("run", "scores")) and kind != "infinity":
            assert at[0] in found, (at, kind)


@pytest.mark.parametrize("part", ["by_length", "by_depth"])
def test_passkeys_of_no_prompt_are_refused(tmp_path, part):
    committed = SAMPLES["passkey"]
    record = RECORDS[committed] | {"scores": RECORDS[committed]["scores"] | {part: []}}
    write(tmp_path / "mine" / MODEL, read(RESULTS / "tiny" / MODEL))
    write_record(records.folder(tmp_path, "mine", "passkey") / committed.name, record)
    with pytest.raises(InputError, match=part):
        shown(tmp_path, "passkey")


def test_a_models_facts_of_another_type_are_refused(tmp_path):
    facts = read(RESULTS / "tiny" / MODEL)
    file = tmp_path / "mine" / MODEL
    write(file, facts | {"n_hat": {"twice": 40}})
    with pytest.raises(InputError, match="n_hat"):
        shown(tmp_path, "disturbance")
    for at, kind, found in answers(file, facts, partial(shown, tmp_path, "disturbance")):
        if kind == "null" and at[0] not in ("model", "sha256"):
            assert isinstance(found, str) and str(at[-1]) in found, (at, kind)
