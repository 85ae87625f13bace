"""A fine-tuned model's records name its training."""

from tests.results.test_schema import RECORDS


def test_a_fine_tuned_models_records_name_its_training_which_may_have_been_repeated():
    trained = {
        record["identity"]
        for record in RECORDS.values()
        if record["run"]["experiment"] == "finetune"
    }
    for file, record in RECORDS.items():
        if "training" in record["run"]:
            assert record["run"]["training"]["identity"] in trained, file
