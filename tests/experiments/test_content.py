"""A run is known by the content of what it measures, whatever the names of its files; and whose
records are whose."""

import dataclasses
import json
import shutil

import pyarrow.parquet
import pytest

from core import rope
from core.extend import extend_checkpoint
from experiments.kit import records
from experiments.kit.base_model import BaseModel
from tests.eval.test_open_llm import write_benchmarks
from tests.models import checkpoint, fine_tuned

LENGTH = 2048
PASSKEY = "passkey --lengths 400 --depths 2 --keys 1"


@pytest.fixture
def model(tmp_path):
    return checkpoint(tmp_path / "toy", max_position_embeddings=LENGTH)


def edit(file, change):
    content = json.loads(file.read_text())
    change(content)
    file.write_text(json.dumps(content))


def other_question(folder):
    file = folder / "data" / "open_llm" / "hellaswag" / "validation.parquet"
    rows = [
        row | {"ctx_a": f"{row['ctx_a']} indeed"}
        for row in pyarrow.parquet.read_table(file).to_pylist()
    ]
    pyarrow.parquet.write_table(pyarrow.Table.from_pylist(rows), file)


@pytest.mark.parametrize(
    ("changed", "change", "part", "line"),
    [
        ("data", None, "data", "open_llm --benchmarks {root}/data --tasks hellaswag --limit 2"),
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
    call, model, tmp_path, changed, change, part, line
):
    write_benchmarks(tmp_path / "data" / "open_llm")
    (tmp_path / "factors.json").write_text(json.dumps({"factors": [2.0] * 8}))
    command = [
        *line.format(root=tmp_path).split(),
        "--model",
        model,
        "--results",
        tmp_path / "results",
    ]
    assert call(*command)[0] == 0
    (file,) = (tmp_path / "results" / "toy" / command[0]).glob("*.json")
    first = file.read_text()
    (journal,) = (tmp_path / "runs" / "toy" / command[0]).glob("*.jsonl")
    if change:
        edit(tmp_path / changed, lambda content: content.update(change))
    else:
        other_question(tmp_path)
    status, _, err = call(*command)
    assert status == 2 and "--replace" in err.splitlines()[-1] and file.read_text() == first
    assert call(*command, "--replace")[0] == 0
    second = json.loads(file.read_text())
    assert second["identity"] != json.loads(first)["identity"]
    (other,) = set(journal.parent.glob("*.jsonl")) - {journal}  # measured anew, every sample
    assert len(other.read_text().splitlines()) == len(journal.read_text().splitlines()) == 2
    before, after = (
        of[part] if part in of else of["run"][part] for of in (json.loads(first), second)
    )
    assert before != after  # of what two records of one table must share


def test_a_changed_formula_is_another_run_and_what_changes_no_score_is_none(
    call, model, tmp_path, monkeypatch
):
    line = [
        "passkey",
        "--model",
        model,
        "--method",
        "pi",
        "--depths",
        "1",
        "--keys",
        "1",
        "--results",
    ]
    lengths = ["--lengths", "500", "400"]
    assert call(*line, tmp_path / "results", *lengths)[0] == 0
    (file,) = (tmp_path / "results" / "toy" / "passkey").glob("*.json")
    scores = json.loads(file.read_text())["scores"]
    no_effect = {"attention_dropout": 0.3, "initializer_range": 0.9, "my_note": "x"}
    edit(model / "config.json", lambda config: config.update(no_effect))
    (model / "training_args.bin").write_text("x")
    assert "done already" in call(*line, tmp_path / "results", "--lengths", "400", "500")[1]
    (journal,) = (tmp_path / "runs" / "toy" / "passkey").glob("*.jsonl")
    journal.write_text(
        journal.read_text().replace('"score": ', '"score": 7')
    )  # whose answers nothing takes any more
    for command in ([tmp_path / "results", "--replace"], [tmp_path / "other"]):
        status, out, _ = call(*line, *command, *lengths)
        (file,) = (command[0] / "toy" / "passkey").glob("*.json")
        assert (
            status == 0
            and "done already" not in out
            and json.loads(file.read_text())["scores"] == scores
        )
    pi = rope.METHODS["pi"]
    other = dataclasses.replace(pi, function=lambda geometry, s: pi.function(geometry, 3 * s))
    monkeypatch.setitem(rope.METHODS, "pi", other)
    status, _, err = call(*line, tmp_path / "results", *lengths)
    assert status == 2 and "another scaling" in err


def test_all_that_does_not_fit_is_named_at_once_with_what_is_left(
    call, model, tmp_path, monkeypatch
):
    line = [
        "ruler",
        "--model",
        model,
        "--results",
        tmp_path / "results",
        "--lengths",
        "1900",
        "--samples",
        "1",
    ]
    line += ["--tasks", "qa_1", "fwe", "vt"]
    with monkeypatch.context() as patched:
        patched.setattr(BaseModel, "load", lambda *_: pytest.fail("weights were loaded"))
        status, _, err = call(*line)
        assert status == 2 and "vt, qa_1 do not fit, which leaves --tasks fwe" in err, err
    status, out, err = call(*line, "--fitting")
    skipped = [words.split(":")[0] for words in out.splitlines()[:2]]
    assert status == 0 and skipped == ["skipped ruler vt", "skipped ruler qa_1"], err
    record = json.loads((tmp_path / "results" / "toy" / "ruler" / "as-it-is.json").read_text())
    assert record["run"]["tasks"] == ["fwe"]
    assert "done already" in call(*line[:-3], "fwe")[1]


def test_records_of_a_model_of_ones_own_do_not_go_to_the_projects(
    call, model, tmp_path, monkeypatch
):
    assert records.OWN == records.ROOT / "build" / "own" / "results"
    monkeypatch.setattr(records, "OWN", tmp_path / "own" / "results")
    line = [*PASSKEY.split(), "--model", model, "--method", "pi"]
    status, out, err = call(*line)
    assert status == 0, err
    assert out.strip().splitlines()[-1] == str(
        tmp_path / "own" / "results" / "toy" / "passkey" / "pi_s=2.json"
    )
    assert (tmp_path / "own" / "runs" / "toy" / "passkey").is_dir()
    status, _, err = call(*line, "--results", records.RESULTS)
    assert status == 2 and "'toy' is none of them" in err
    assert not (records.RESULTS / "toy").exists()


def test_a_fine_tune_is_the_same_run_in_whichever_folder_it_lies_and_its_records_are_apart(
    call, model, tmp_path, monkeypatch
):
    fine_tuned(model, scale="tiny")
    line = ["--depths", "1", "--keys", "1", "--lengths", "400", "--results", tmp_path / "results"]
    assert call("passkey", "--model", model, *line)[0] == 0
    model.rename(tmp_path / "elsewhere")
    assert "done already" in call("passkey", "--model", tmp_path / "elsewhere", *line)[1]
    assert BaseModel("tiny").results == records.RESULTS  # of untrained base models alone
    assert BaseModel(str(tmp_path / "elsewhere"), as_it_is=True).results == records.OWN
    monkeypatch.setattr(records, "RESULTS", tmp_path / "results")
    status, _, err = call("passkey", "--model", tmp_path / "elsewhere", *line)
    assert status == 2 and "is not of this fine-tune" in err and err.count("\n") == 1


def test_an_export_is_a_row_by_its_methods_name(call, tmp_path):
    """With the scores that the method has in memory; and the hash of an export's configuration is
    as it always was."""
    stated = {"method": "dprope", "options": {"n_hat": 8}}
    model = checkpoint(tmp_path / "toy", max_position_embeddings=640)
    extend_checkpoint(model, tmp_path / "silent", "dprope", 3, n_hat=8)
    edit(
        tmp_path / "silent" / "config.json",
        lambda config: [config["rope_extension"].pop(key, 0) for key in stated],
    )
    for name, said in (("export", stated), ("torn", {"factor": "x"})):
        shutil.copytree(tmp_path / "silent", tmp_path / name)
        edit(
            tmp_path / name / "config.json",
            lambda config, said=said: config["rope_extension"].update(said),
        )
    asked = ["--depths", "1", "--keys", "1", "--lengths", "480", "--results", tmp_path / "results"]
    assert (
        call(
            "passkey", "--model", model, "--method", "dprope", "--n-hat", 8, "--factor", 3, *asked
        )[0]
        == 0
    )
    found = {}
    for name in ("toy", "export", "silent"):
        if name != "toy":
            assert call("passkey", "--model", tmp_path / name, *asked)[0] == 0
        (file,) = (tmp_path / "results" / name / "passkey").iterdir()
        found[name] = file.stem, json.loads(file.read_text())
    (in_memory, extended) = found["toy"]
    (exported, export) = found["export"]
    assert exported == in_memory == "dprope_n-hat=8_s=3"
    assert [export["run"][key] for key in ("method", "options", "factor")] == [
        "dprope",
        {"n_hat": 8},
        3,
    ]
    assert found["silent"][0] == "as-it-is" and found["silent"][1]["run"]["method"] is None
    assert extended["scores"] == export["scores"] == found["silent"][1]["scores"]
    assert export["base"] == found["silent"][1]["base"]
    status, _, err = call("passkey", "--model", tmp_path / "torn", *asked)
    assert status == 2 and "rope_extension" in err and err.count("\n") == 1
