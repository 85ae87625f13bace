"""A folder of records made by hand, of a model called "mine" with SmolLM2's geometry."""

import json
import shutil

import pytest

from experiments.kit import records
from experiments.kit.records import RESULTS


def score(mean, half=1.0):
    return {"mean": mean, "low": mean - half, "high": mean + half, "n": 10}


class Folder:
    def __init__(self, path):
        self.path = path

    def model(self, **facts):
        facts = json.loads((RESULTS / "smollm2" / "model.json").read_text()) | facts
        (self.path / "mine").mkdir(parents=True)
        (self.path / "mine" / "model.json").write_text(json.dumps(facts))

    def save(self, experiment, **record):
        folder = records.folder(self.path, "mine", experiment)
        folder.mkdir(parents=True, exist_ok=True)
        record = {"factor": 2, "options": {}} | record
        (folder / f"{len(list(folder.iterdir()))}.json").write_text(json.dumps(record))

    def copy(self, model, experiment, files="*", to=None):
        """Some committed records of a model, to its own name or another's."""
        target = records.folder(self.path, to or model, experiment)
        target.mkdir(parents=True)
        shutil.copy(RESULTS / model / "model.json", self.path / (to or model))
        for file in sorted(records.folder(RESULTS, model, experiment).glob(f"{files}.json")):
            shutil.copy(file, target)
        return sorted(target.iterdir())


@pytest.fixture
def folder(tmp_path):
    return Folder(tmp_path / "results")
