"""Records made by hand in a results folder of several models, and what the claims state of them."""

import json
import shutil

import pytest

from analysis import results
from analysis.claims import CLAIMS
from analysis.claims.statement import overall
from experiments.kit import records
from experiments.kit.records import RESULTS
from tests.analysis.made import score

__all__ = ["score"]
PAPERS = {"n_hat": 40}  # DPRoPE's options at s = 2 in the paper's experiments, of 64 dimensions


class Folder:
    """A results folder; what is saved there belongs to a model with SmolLM2's geometry unless said otherwise."""

    def __init__(self, path):
        self.path = path

    def scale(self, name, like="smollm2", **facts):
        known = json.loads((RESULTS / like / "model.json").read_text()) | facts
        (self.path / name).mkdir(parents=True, exist_ok=True)
        (self.path / name / "model.json").write_text(json.dumps(known))

    def save(self, experiment, model="smollm2", **record):
        folder = records.folder(self.path, model, experiment)
        if not (self.path / model).is_dir():
            self.scale(model, like=model if (RESULTS / model).is_dir() else "smollm2")
        folder.mkdir(parents=True, exist_ok=True)
        made = {"factor": 2, "options": {}} | record
        (folder / f"{len(list(folder.iterdir()))}.json").write_text(json.dumps(made))

    def ruler(self, method, lengths, width=1.0, **more):
        """A record of these mean scores by length in tokens."""
        scores = {str(length): score(mean, width) for length, mean in lengths.items()}
        average = score(sum(lengths.values()) / len(lengths), width)
        tasks = {length: {"niah": found} for length, found in scores.items()}
        scored = {"lengths": scores, "average": average, "tasks": tasks}
        self.save("ruler", method=method, samples=5, tasks=["niah"], scores=scored, **more)

    def open_llm(self, options, mean, **more):
        """A record of DPRoPE with these options."""
        self.save("open_llm", method="dprope", options=options, scores={"average": score(mean)}, **more)

    def copy(self, model, *experiments):
        """The committed records of a model."""
        for name in ("model.json", *experiments):
            source, target = RESULTS / model / name, self.path / model / name
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copytree(source, target) if source.is_dir() else shutil.copy(source, target)


def statements(key, folder):
    """What a claim states of the only model that has records of it; nothing if none has."""
    (claim,) = (claim for claim in CLAIMS if claim.key == key)
    by_model = [found for each in results.every(folder.path) if (found := claim.statements(each))]
    assert len(by_model) < 2
    return by_model[0] if by_model else []


def outcome(key, folder):
    """The verdict on a claim, and (mean, verdict) of each of its statements."""
    found = statements(key, folder)
    return overall(found), [(pytest.approx(each.number.mean), each.verdict) for each in found]
