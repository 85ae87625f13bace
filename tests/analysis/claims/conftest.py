"""Records made by hand in a results folder of several models, and what the claims state of them."""

import json

import pytest

from analysis import results
from analysis.claims import CLAIMS
from analysis.claims.statement import overall
from experiments.kit import records
from experiments.kit.records import RESULTS
from tests.analysis.recorder import score

PAPERS = {"n_hat": 40}  # DPRoPE's options at s = 2 in the paper's experiments, of 64 dimensions


class Folder:
    """A results folder; what is saved there belongs to a model with SmolLM2's geometry unless said otherwise."""

    def __init__(self, path):
        self.path = path

    def scale(self, name, like="smollm2"):
        facts = (RESULTS / like / "model.json").read_text()
        (self.path / name).mkdir(parents=True, exist_ok=True)
        (self.path / name / "model.json").write_text(facts)

    def save(self, experiment, model="smollm2", **record):
        folder = records.folder(self.path, model, experiment)
        if not (self.path / model).is_dir():
            self.scale(model)
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"{len(list(folder.iterdir()))}.json").write_text(json.dumps({"factor": 2, "options": {}} | record))

    def ruler(self, method, lengths, width=1.0, **more):
        """A record of these mean scores by length in tokens."""
        scores = {str(length): score(mean, width) for length, mean in lengths.items()}
        average = score(sum(lengths.values()) / len(lengths), width)
        tasks = {length: {"niah": of_length} for length, of_length in scores.items()}
        scored = {"lengths": scores, "average": average, "tasks": tasks}
        self.save("ruler", method=method, samples=5, tasks=["niah"], scores=scored, **more)


@pytest.fixture
def folder(tmp_path):
    return Folder(tmp_path / "results")


def statements(key, folder):
    """What a claim states of the only model that has records of it; nothing if none has."""
    (claim,) = (claim for claim in CLAIMS if claim.key == key)
    by_model = list(filter(None, map(claim.statements, results.every(folder.path))))
    assert len(by_model) < 2
    return by_model[0] if by_model else []


def outcome(key, folder):
    """The verdict on a claim, and (mean, verdict) of each of its statements."""
    of_model = statements(key, folder)
    return overall(of_model), [(pytest.approx(each.number.mean), each.verdict) for each in of_model]
