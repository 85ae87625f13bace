"""Broken records of the experiments beyond the paper: refused in one sentence, or shown."""

import pytest

from tests.report.broken import check

OF = {  # the records that are broken here: of which model, and which of its files
    "loss_by_position": ("tiny", "*_s=2*"),
    "learned": ("tiny", "*s=2*"),
    "selections": ("tiny", "*"),
    "served": ("tiny", "*"),
}


@pytest.mark.parametrize("experiment", OF)
def test_a_broken_record_is_shown_or_refused(tmp_path, experiment):
    check(tmp_path / "results", experiment, *OF[experiment])
