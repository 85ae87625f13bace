"""Records of a model with SmolLM2's geometry, and what the claims state of them."""

import pytest

from analysis.claims import CLAIMS
from analysis.claims.statement import overall
from tests.analysis.recorder import Recorder, score

PAPERS = {"n_hat": 40}  # DPRoPE's options at s = 2 in the paper's experiments, of 64 dimensions


class Claimed(Recorder):
    """A recorder whose model has the paper's n̂."""

    def ruler(self, method, lengths, width=1.0, **more):
        """A record of these mean scores by length in tokens."""
        scores = {str(length): score(mean, width) for length, mean in lengths.items()}
        average = score(sum(lengths.values()) / len(lengths), width)
        tasks = {length: {"niah": of_length} for length, of_length in scores.items()}
        self.add("ruler", method, {"lengths": scores, "average": average, "tasks": tasks}, tasks=["niah"], **more)

    def statements(self, key):
        """What a claim states of the model."""
        (claim,) = (claim for claim in CLAIMS if claim.key == key)
        return claim.statements(self.results())

    def outcome(self, key):
        """The verdict on a claim, and (mean, verdict) of each of its statements."""
        statements = self.statements(key)
        return overall(statements), [(pytest.approx(each.number.mean), each.verdict) for each in statements]


@pytest.fixture
def claimed(tmp_path):
    return Claimed(tmp_path, n_hat={"2": 40})
