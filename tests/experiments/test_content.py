"""A run is known by the content of what it measures, whatever the names of its files; and whose
records are whose."""

import contextlib
import dataclasses
import importlib
import shutil
import sys

import numpy as np
import pyarrow.parquet
import pytest

import records
from analysis.results import chosen
from core import rope
from core.errors import InputError
from core.extend import extend_checkpoint
from experiments import base_models
from experiments.base_models.model import BaseModel
from experiments.kit.command import default_results
from experiments.kit.model import resolve
from tests.eval.test_open_llm import write_benchmarks
from tests.experiments.written import (
    PASSKEY,
    journal,
    journal_files,
    record,
    record_file,
)
from tests.files import edit, read, write
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
    "changed, change, part, line",
    [
        (
            "data/open_llm/hellaswag/validation.parquet",
            None,
            "data",
            "open_llm --benchmarks {root}/data --tasks hellaswag --limit 2",
        ),
        ("toy/generation_config.json", {"eos_token_id": [2, 3]}, "data", PASSKEY),
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
    write_benchmarks(tmp_path / "data/open_llm")
    write(tmp_path / "factors.json", {"factors": [2.0] * 8})
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


def test_a_changed_formula_is_another_run(done, refusal, model, results, monkeypatch):
    line = [f"{PASSKEY} --method pi", "--model", model, "--results", results]
    done(*line)
    pi = rope.METHODS["pi"]
    other = dataclasses.replace(pi, function=lambda geometry, s: pi.function(geometry, 3 * s))
    monkeypatch.setitem(rope.METHODS, "pi", other)
    assert "another scaling" in refusal(*line)


def test_answers_that_were_recorded_once_are_not_taken_again(done, model, tmp_path):
    line = [PASSKEY, "--model", model, "--results"]
    done(*line, tmp_path / "results")
    scores = record(tmp_path / "results")["scores"]
    (file,) = journal_files(tmp_path / "results")
    file.write_text(file.read_text().replace('"score": ', '"score": 7'))
    for command in ([tmp_path / "results", "--replace"], [tmp_path / "other"]):
        done(*line, *command)
        assert record(command[0])["scores"] == scores


RULER = "ruler --lengths 1900 --samples 1 --tasks"


def test_all_that_does_not_fit_is_named_at_once_with_what_is_left(
    refusal, model, results, loads_nothing
):
    said = refusal(f"{RULER} qa_1 fwe vt", "--model", model, "--results", results)
    assert "vt, qa_1 do not fit, which leaves --tasks fwe" in said


def test_what_does_not_fit_can_be_left_out(done, model, results):
    line = ["--model", model, "--results", results]
    out = done(f"{RULER} qa_1 fwe vt --fitting", *line)
    skipped = [words.split(":")[0] for words in out.splitlines()[:2]]
    assert skipped == ["skipped ruler vt", "skipped ruler qa_1"]
    assert record(results)["run"]["tasks"] == ["fwe"]
    assert "done already" in done(f"{RULER} fwe", *line)


def test_records_of_a_model_of_ones_own_do_not_go_to_the_projects(
    done, refusal, model, tmp_path, monkeypatch
):
    assert records.OWN == records.ROOT / "build/own/results"
    own = tmp_path / "own/results"
    monkeypatch.setattr(records, "OWN", own)
    line = [PASSKEY, "--model", model]
    assert done(*line).splitlines()[-1] == str(record_file(own))
    assert len(journal(own)) == 2
    assert "'toy' is none of them" in refusal(*line, "--results", records.RESULTS)
    assert not (records.RESULTS / "toy").exists()
    other = [PASSKEY, "--model", "tiny", "--method", "dprope", "--intervals", 33]
    assert "dprope_intervals=33_s=2" in refusal(*other, "--results", records.RESULTS)


@pytest.mark.parametrize(
    "command, name, there",
    [
        ("finetune --method yarn --seed 2", "yarn_s=2_seed=2", False),  # of whole books
        ("finetune --method yarn --seed 2 --per-book 1", "yarn_s=2_seed=2", True),
        ("finetune --method yarn --seed 2 --per-book 1 --steps 2", "yarn_s=2_seed=2", False),
        ("finetune --method yarn --seed 0", "yarn_s=2_seed=0", True),
        ("finetune --method ntk --seed 0", "ntk_s=2_seed=0", False),
        ("time_cost", "s=2", True),
        ("time_cost --factor 4", "s=4", False),
        ("learned --from yarn", "from=yarn_s=2_seed=0", True),
        ("learned --from yarn --seed 7", "from=yarn_s=2_seed=7", False),
        ("learned --from pi", "from=pi_s=2_seed=0", False),
        ("passkey --method yarn", "yarn_s=2", True),
    ],
)
def test_the_projects_records_are_those_of_the_suite(monkeypatch, command, name, there):
    script, *words = command.split()
    main = importlib.import_module(records.program(script)).main
    line = [script, "--model", "smollm2", *words, "--results", str(records.RESULTS)]
    monkeypatch.setattr(sys, "argv", line)
    given = main.__self__.read()
    with contextlib.nullcontext() if there else pytest.raises(InputError, match="no part of it"):
        given.check_place(name)


def test_a_fine_tune_is_the_same_run_in_whichever_folder_it_lies_and_its_records_are_apart(
    done, refusal, model, tmp_path, results, monkeypatch
):
    training = fine_tuned(model, scale="tiny")
    done(PASSKEY, "--model", model, "--results", results)
    run = record(results)["run"]
    assert (run["method"], run["factor"], run["training"]["seed"]) == ("yarn", 4.0, 3)
    assert run["training"]["identity"] == training["identity"]
    moved = model.rename(tmp_path / "elsewhere")
    line = [PASSKEY, "--model", moved, "--results", results]
    assert "done already" in done(*line)
    # the project's are those of untrained base models alone
    assert default_results(resolve("tiny")) == records.RESULTS
    assert default_results(resolve(str(moved), as_it_is=True)) == records.OWN
    monkeypatch.setattr(records, "RESULTS", results)
    assert "is not of this fine-tune" in refusal(*line)


@pytest.mark.parametrize(
    "folder, more",
    [("base", {}), ("export", {"rms_norm_eps": 0.1})],
    ids=["as it is", "edited"],
)
def test_an_export_of_a_base_model_is_the_row_of_its_method(
    done, model, tmp_path, results, monkeypatch, folder, more
):
    """Of a base model whose configuration has another field it is none."""
    known = BaseModel("Base", str(model), rope.RopeGeometry(16, 10000.0, LENGTH))
    monkeypatch.setitem(base_models.MODELS, "base", known)
    line = [PASSKEY, "--results", results, "--model"]
    done(*line, "base", "--method", "dprope", "--n-hat", 8, "--factor", 3)
    export = extend_checkpoint(model, tmp_path / "export", "dprope", 3, n_hat=8)
    edit(export / "config.json", **more)
    assert ("done already" in done(*line, export)) == (folder == "base")
    assert chosen(str(export))[0] == folder
    assert (results / folder / "passkey/dprope_n-hat=8_s=3.json").is_file()


def _said(config, **other):
    return {"rope_extension": config["rope_extension"] | other}


def _more(config):
    return _said(config, before=config["rope_extension"]["before"] | {"to_dict": "x"})


def _attention_factor(config):
    rope_parameters = config["rope_parameters"] | {"attention_factor": 1.0005}
    return {"rope_parameters": rope_parameters, "rope_scaling": rope_parameters}


@pytest.mark.parametrize(
    "edited, folder",
    [
        (lambda config: {}, "mine"),
        (_more, "mine"),
        (lambda config: {"rms_norm_eps": 0.1}, "export"),
        (lambda config: _said(config, method=None), "export"),
        (lambda config: _said(config, before=None), "export"),
        (lambda config: _said(config, before={"rope_parameters": 3}), "export"),
        (_attention_factor, "export"),
    ],
    ids=[
        "as exported",
        "more is said",
        "another field",
        "no method",
        "no base",
        "a broken base",
        "attention factor",
    ],
)
def test_an_export_of_ones_own_model_is_a_row_beside_it_once_that_was_evaluated(
    done, model, tmp_path, monkeypatch, edited, folder
):
    """If it says its method, and is to the last bit what that makes of the model."""
    results = tmp_path / "own/results"
    monkeypatch.setattr(records, "OWN", results)
    mine = shutil.copytree(model, tmp_path / "mine")
    done(PASSKEY, "--model", mine)
    export = extend_checkpoint(mine, tmp_path / "export", "dprope", 3, n_hat=8)
    file = export / "config.json"
    edit(file, **edited(read(file)))
    done(PASSKEY, "--model", export)
    assert chosen(str(export), results)[0] == folder
    alone = read(results / "mine/passkey/as-it-is.json")
    rows = [read(file) for file in (results / folder / "passkey").glob("*.json")]
    assert [row["base"] == alone["base"] for row in rows] == [folder == "mine"] * len(rows)
    assert len(rows) == (2 if folder == "mine" else 1)


@pytest.mark.parametrize(
    "file, change",
    [
        ("tokenizer.json", {"normalizer": {"type": "Lowercase"}}),
        ("tokenizer_config.json", {"clean_up_tokenization_spaces": True}),
        ("config.json", {"is_causal": False}),
        ("config.json", {"quantization_config": {"quant_method": "bitsandbytes"}}),
        ("config.json", {"layer_types": ["sliding_attention"] * 2, "sliding_window": 16}),
    ],
)
def test_another_tokenizer_or_configuration_is_another_model(
    done, refusal, model, results, file, change
):
    command = [PASSKEY, "--model", model, "--results", results]
    done(*command)
    first = record(results)
    edit(model / file, **change)
    for more in ("", " --replace"):
        assert "another model of that name" in refusal(PASSKEY + more, *command[1:])
    assert record(results) == first


SCALED = {
    "rope_type": "llama3",
    "rope_theta": 10000.0,
    "factor": 8.0,
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
    "original_max_position_embeddings": 32,
}


@pytest.mark.parametrize(
    "architecture",
    [
        {"rope_parameters": SCALED},
        {"config_class": "Phi3Config"},  # states an original length elsewhere
        {"config_class": "MixtralConfig", "num_local_experts": 2},  # has no head_dim
        {"config_class": "OlmoConfig"},  # takes fewer keys
    ],
)
def test_exports_of_these_know_their_model_again(tmp_path, architecture):
    mine = checkpoint(tmp_path / "tiny", **architecture)  # a base model's name
    known = resolve(str(mine), as_it_is=True)
    records.state_model(tmp_path / "results", "tiny", known.facts(2))
    export = extend_checkpoint(mine, tmp_path / "export", "pi", 2)
    again = extend_checkpoint(export, tmp_path / "again", "yarn", 4)
    for each in (export, again):
        exported = resolve(str(each), as_it_is=True, beside=tmp_path / "results")
        assert (exported.folder, exported.before) == ("tiny", known.identity)
        assert exported.origin is None


def test_an_export_is_a_row_by_its_methods_name(done, refusal, model, tmp_path):
    """With the scores that the method has in memory; one that does not say its method is a
    checkpoint as it is."""

    def export(name, **said):
        stating = {"n_hat": 8, "threshold": 0, "intervals": np.int64(360)}  # two defaults
        folder = extend_checkpoint(model, tmp_path / name, "dprope", 3, **stating)
        stated = read(folder / "config.json")["rope_extension"] | said
        stated = {key: value for key, value in stated.items() if value is not None}
        edit(folder / "config.json", rope_extension=stated)
        return folder

    def measured(folder, more=""):
        results = tmp_path / "of" / folder.name / "results"
        done(PASSKEY + more, "--model", folder, "--results", results)
        return record_file(results).stem, record(results)

    in_memory, extended = measured(model, " --method dprope --n-hat 8 --factor 3")
    exported, of_export = measured(export("export"), " --factor 3")
    assert "s = 3" in refusal(PASSKEY + " --factor 2", "--model", tmp_path / "export")
    assert exported == in_memory == "dprope_n-hat=8_s=3"
    run = of_export["run"]
    assert (run["method"], run["options"], run["factor"]) == ("dprope", {"n_hat": 8}, 3)
    name, of_silent = measured(export("silent", method=None, options=None))
    assert (name, of_silent["run"]["method"]) == ("as-it-is", None)
    assert extended["scores"] == of_export["scores"] == of_silent["scores"]
    assert of_export["base"] == of_silent["base"]
