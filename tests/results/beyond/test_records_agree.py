"""Losses by position are those of their blocks, and a fine-tuned model's records name its
training."""

import numpy as np
import pytest

from analysis import results
from tests.results.test_records import RECORDS


@pytest.mark.parametrize("model", ["tiny", "smollm2"])
def test_losses_by_range_are_those_of_their_blocks(model):
    for record in results.Results.of(model).records("loss_by_position"):
        blocks = np.array(list(record.scores["blocks"].values()))
        block = record.scores["block"]
        for span in (*record.scores["ranges"], *record.scores["buckets"]):
            scored = blocks[:, span["start"] // block : span["end"] // block]
            assert span["mean"] == pytest.approx(scored.mean(), abs=1e-6)
            assert span["n"] == scored.size


def test_a_fine_tuned_models_records_name_its_training_which_may_have_been_repeated():
    trained = {
        record["identity"]
        for record in RECORDS.values()
        if record["run"]["experiment"] == "finetune"
    }
    for file, record in RECORDS.items():
        if "training" in record["run"]:
            assert record["run"]["training"]["identity"] in trained, file
