"""Records of a model with SmolLM2's geometry, and what the claims state of them."""

import pytest

from analysis.claims import CLAIMS
from analysis.claims.statement import overall
from tests.analysis.recorder import Recorder, score

PAPERS = {"n_hat": 40}  # DPRoPE's options at s = 2 in the paper's experiments, of 64 dimensions


class Claimed(Recorder):
    """A recorder whose model has the paper's n̂."""

    def ruler(self, method, mean, width=1.0, **more):
        """A record of this mean score at two lengths, of one task."""
        scored = score(mean, width)
        lengths = dict.fromkeys(("1024", "2048"), scored)
        tasks = {length: {"niah": scored} for length in lengths}
        scores = {"lengths": lengths, "average": scored, "tasks": tasks}
        self.add("ruler", method, scores, tasks=["niah"], **more)

    def short_text(self, experiment, method, average, **more):
        """A record of Open LLM or of LongBench-E with this average."""
        scores = {"tasks": {"average": average}}
        if experiment == "longbench_e":
            scores = {"buckets": {}, "averages": {"Avg.": average}, "tasks": {}}
        self.add(experiment, method, scores, **more)

    def statements(self, key):
        """What a claim states of the model."""
        (claim,) = (claim for claim in CLAIMS if claim.key == key)
        return claim.statements(self.results())

    def outcome(self, key):
        """The verdict on a claim, and (mean, verdict) of each of its statements."""
        statements = self.statements(key)
        return overall(statements), [
            (pytest.approx(each.number.mean), each.verdict) for each in statements
        ]


@pytest.fixture
def claimed(tmp_path):
    return Claimed(tmp_path, n_hat={"2": 40})
