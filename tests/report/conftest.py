"""Records made by hand."""

import json
import shutil

import pytest

from experiments.kit.records import RESULTS


def score(mean, width=1.0):
    return {"mean": mean, "low": mean - width, "high": mean + width, "n": 5}


class Folder:
    """A results folder; what is saved there belongs to a scale with SmolLM2's geometry unless said otherwise."""

    def __init__(self, path):
        self.path = path

    def scale(self, name, like="smollm2", **facts):
        known = json.loads((RESULTS / like / "model.json").read_text()) | facts
        (self.path / name).mkdir(parents=True, exist_ok=True)
        (self.path / name / "model.json").write_text(json.dumps(known))

    def save(self, experiment, scale="smollm2", **record):
        folder = self.path / scale / experiment
        if not (self.path / scale).is_dir():
            self.scale(scale, like=scale if (RESULTS / scale).is_dir() else "smollm2")
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

    def copy(self, scale, *experiments):
        """The committed records of a scale."""
        for name in ("model.json", *experiments):
            source, target = RESULTS / scale / name, self.path / scale / name
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copytree(source, target) if source.is_dir() else shutil.copy(source, target)


@pytest.fixture
def folder(tmp_path):
    return Folder(tmp_path / "results")
