"""Records of a model with SmolLM2's geometry, and what the claims state of them."""

import pytest

from analysis.claims import CLAIMS
from analysis.claims.statement import overall
from tests.analysis.recorder import LENGTH, Recorder, score

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

    def losses(self, method, within, beyond, **more):
        """A record of losses by position on books: one number a book, within L and beyond it."""
        books = {f"Book {i}": pair for i, pair in enumerate(zip(within, beyond, strict=True))}
        ranges = [{"start": 0, "end": LENGTH}, {"start": LENGTH, "end": 2 * LENGTH}]
        self.add(
            "loss_by_position",
            method,
            {"block": LENGTH, "blocks": books, "ranges": ranges},
            data=dict.fromkeys(books, "hash"),
            length=2 * LENGTH,
            **more,
        )

    def keys(self, method, within, beyond, **more):
        """A record of keys in books: the nats of one key a book within L, and of one beyond it."""
        books = {
            f"Book {i}": [
                {"place": 0, "distance": LENGTH + 1, "nats": far, "found": False},
                {"place": LENGTH, "distance": 1, "nats": near, "found": False},
            ]
            for i, (near, far) in enumerate(zip(within, beyond, strict=True))
        }
        ranges = [{"start": 0, "nats": 0.0}, {"start": LENGTH, "nats": 0.0}]
        data = dict.fromkeys(books, "hash")
        scores = {"keys": books, "ranges": ranges}
        self.add("needles", method, scores, data=data, keys=2, **more)

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
