"""A run is known by the content of what it measures, whatever the names of its files; and whose
records are whose."""

import json

import pyarrow.parquet
import pytest

from core.extend import extend_checkpoint
from experiments.kit import records
from experiments.kit.checkpoint import Checkpoint
from tests.eval.test_open_llm import write_benchmarks
from tests.experiments.written import (
    PASSKEY,
    edit,
    journal_files,
    record,
    record_file,
)
from tests.models import checkpoint, fine_tuned

LENGTH = 2048


@pytest.fixture
def model(tmp_path):
    return checkpoint(tmp_path / "toy", max_position_embeddings=LENGTH)


def other_question(file):
    rows = pyarrow.parquet.read_table(file).to_pylist()
    rows = [row | {"ctx_a": f"{row['ctx_a']} indeed"} for row in rows]
    pyarrow.parquet.write_table(pyarrow.Table.from_pylist(rows), file)


@pytest.mark.parametrize(
    ("changed", "change", "part", "line"),
    [
        (
            "data/open_llm/hellaswag/validation.parquet",
            None,
            "data",
            "open_llm --benchmarks {root}/data --tasks hellaswag --limit 2",
        ),
        ("toy/tokenizer.json", {"normalizer": {"type": "Lowercase"}}, "base", PASSKEY),
        ("toy/tokenizer_config.json", {"clean_up_tokenization_spaces": True}, "base", PASSKEY),
        ("toy/generation_config.json", {"eos_token_id": [2, 3]}, "data", PASSKEY),
        ("toy/config.json", {"is_causal": False}, "base", PASSKEY),
        (
            "factors.json",
            {"factors": [1.5] * 8},
            "scaling",
            PASSKEY + " --method factors --file {root}/factors.json",
        ),
    ],
)
def test_other_content_under_the_same_names_is_another_run(
    done, refusal, model, tmp_path, results, changed, change, part, line
):
    write_benchmarks(tmp_path / "data" / "open_llm")
    (tmp_path / "factors.json").write_text(json.dumps({"factors": [2.0] * 8}))
    command = [line.format(root=tmp_path), "--model", model, "--results", results]
    done(*command)
    first = record(results)
    if change:
        edit(tmp_path / changed, **change)
    else:
        other_question(tmp_path / changed)
    assert "--replace" in refusal(*command)
    assert record(results) == first
    done(*command, "--replace")
    second = record(results)
    assert second["identity"] != first["identity"]
    stated = [of[part] if part in of else of["run"][part] for of in (first, second)]
    assert stated[0] != stated[1]  # of what two records of one table must share
    lines = [len(file.read_text().splitlines()) for file in journal_files(results)]
    assert lines == [2, 2]  # measured anew, every sample


def test_what_changes_no_score_is_no_other_run(done, model, results):
    line = ["passkey --depths 1 --keys 1", "--model", model, "--results", results, "--lengths"]
    done(*line, 500, 400)
    edit(model / "config.json", attention_dropout=0.3, initializer_range=0.9, my_note="x")
    (model / "training_args.bin").write_text("x")
    assert "done already" in done(*line, 400, 500)


RULER = "ruler --lengths 1900 --samples 1 --tasks"


def test_all_that_does_not_fit_is_named_at_once_and_can_be_left_out(done, refusal, model, results):
    line = ["--model", model, "--results", results]
    said = refusal(f"{RULER} qa_1 fwe vt", *line)
    assert "vt, qa_1 do not fit, which leaves --tasks fwe" in said
    out = done(f"{RULER} qa_1 fwe vt --fitting", *line)
    skipped = [words.split(":")[0] for words in out.splitlines()[:2]]
    assert skipped == ["skipped ruler vt", "skipped ruler qa_1"]
    assert record(results)["run"]["tasks"] == ["fwe"]
    assert "done already" in done(f"{RULER} fwe", *line)


def test_records_of_a_model_of_ones_own_do_not_go_to_the_projects(
    done, refusal, model, tmp_path, monkeypatch
):
    own = tmp_path / "own" / "results"
    monkeypatch.setattr(records, "OWN", own)
    line = [PASSKEY, "--model", model]
    assert done(*line).splitlines()[-1] == str(record_file(own))
    assert "'toy' is none of them" in refusal(*line, "--results", records.RESULTS)
    assert not (records.RESULTS / "toy").exists()
    other = [PASSKEY, "--model", "tiny", "--method", "dprope", "--intervals", 33]
    assert "dprope_intervals=33_s=2" in refusal(*other, "--results", records.RESULTS)


def test_a_fine_tune_is_the_same_run_in_whichever_folder_it_lies_and_its_records_are_apart(
    done, refusal, model, tmp_path, results, monkeypatch
):
    fine_tuned(model, scale="tiny")
    done(PASSKEY, "--model", model, "--results", results)
    moved = model.rename(tmp_path / "elsewhere")
    line = [PASSKEY, "--model", moved, "--results", results]
    assert "done already" in done(*line)
    assert Checkpoint("tiny").results == records.RESULTS  # of untrained base models alone
    assert Checkpoint(str(moved), as_it_is=True).results == records.OWN
    monkeypatch.setattr(records, "RESULTS", results)
    assert "is not of this fine-tune" in refusal(*line)


def test_an_export_is_a_row_by_its_methods_name(done, model, tmp_path):
    """With the scores that the method has in memory."""

    def measured(folder, more=""):
        results = tmp_path / "of" / folder.name / "results"
        done(PASSKEY + more, "--model", folder, "--results", results)
        return record_file(results).stem, record(results)

    exported = extend_checkpoint(model, tmp_path / "export", "dprope", 3, n_hat=8)
    in_memory, extended = measured(model, " --method dprope --n-hat 8 --factor 3")
    name, of_export = measured(exported)
    assert name == in_memory == "dprope_n-hat=8_s=3"
    run = of_export["run"]
    assert (run["method"], run["options"], run["factor"]) == ("dprope", {"n_hat": 8}, 3)
    assert extended["scores"] == of_export["scores"]
