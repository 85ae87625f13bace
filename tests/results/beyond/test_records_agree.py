"""Losses by position are those of their blocks, and a fine-tuned model's records name its training."""

import json

import numpy as np
import pytest

from analysis import results
from experiments.kit.records import RESULTS
from tests.results.test_identities import RECORDS


@pytest.mark.parametrize("model", ["tiny", "smollm2"])
def test_losses_by_range_are_those_of_their_blocks(model):
    for record in results.Results.of(model).records("loss_by_position"):
        blocks = np.array(list(record["blocks"].values()))
        for span in (*record["ranges"], *record["buckets"]):
            scored = blocks[:, span["start"] // record["block"] : span["end"] // record["block"]]
            assert span["mean"] == pytest.approx(scored.mean(), abs=1e-6) and span["n"] == scored.size


def test_an_export_loaded_in_a_fresh_process_has_the_losses_of_the_model_in_memory():
    file = RESULTS / "smollm2" / "beyond" / "served" / "dprope_s=2_transformers.json"
    assert json.loads(file.read_text())["scores"]["apart_from"]["transformers"]["largest"] < 1e-4


def test_a_fine_tune_that_is_run_again_has_the_same_losses():
    repeated = sorted((RESULTS / "smollm2" / "beyond" / "repeats" / "first_run" / "finetune").glob("*.json"))
    assert repeated
    for file in repeated:
        again, first = (json.loads(each.read_text()) for each in (file, RESULTS / "smollm2" / "finetune" / file.name))
        assert again["data_sha256"] == first["data_sha256"]
        assert again["losses"] == pytest.approx(first["losses"], rel=1e-6)


def test_a_fine_tuned_models_records_name_its_training_which_may_have_been_repeated():
    trained = {record["identity"] for record in RECORDS.values() if record["experiment"] == "finetune"}
    for file, record in RECORDS.items():
        if "training" in record:
            assert record["training"]["identity"] in trained, file
