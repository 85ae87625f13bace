"""What the pages say of heads that look a few tokens back is what the records hold."""

import pytest

from experiments import scales
from experiments.records import RESULTS
from tables.benchmarks import comparable, over_seeds
from tests.readme import cell, page


@pytest.mark.parametrize(
    ("scale", "trained", "method", "options", "factor"),
    [
        ("tiny", False, "original", {}, 2),
        ("tiny", False, "pi", {}, 2),
        ("tiny", False, "pi", {}, 4),
        ("tiny", True, "pi", {}, 2),
        ("tiny", True, "pi", {}, 4),
        ("tiny", False, "dprope", {}, 2),
        ("tiny", False, "dprope", {"n_hat": 20}, 2),
        ("tiny", False, "yarn", {}, 2),
        ("smollm2", True, "pi", {}, 2),
        ("smollm2", True, "clex", {}, 2),
        ("smollm2", True, "yarn", {}, 2),
        ("smollm2", True, "dprope", {}, 2),
        ("smollm2", True, "dprope", {"n_hat": 28}, 2),
        ("smollm2", True, "dprope-significant", {}, 2),
        *(("smollm2", False, method, options, 2) for method, options in scales.get("smollm2").comparison(2)),
    ],
)
def test_heads_that_look_back(scale, trained, method, options, factor):
    """Shares of attention, as the page of the scale prints them."""
    _, prose = page(f"results/{scale}/README.md")
    (group,) = [
        group
        for group in comparable(RESULTS, scale, "previous_token", trained)
        if (group[0]["method"], group[0]["options"], group[0]["factor"]) == (method, options, factor)
    ]
    for name in ("own", "scaled") if method == "pi" else ("own",):
        assert cell(over_seeds([{name: run["scores"][name]} for run in group])[name], 1) in prose
