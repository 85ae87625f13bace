"""The paper's n̂ is a share of d."""

import pytest

from analysis import results

EVERY = [measured.model for measured in results.every()]


@pytest.mark.parametrize("model", EVERY, ids=lambda model: model.name)
def test_the_papers_n_hat_is_the_papers_share_of_the_head_dimension(model):
    d = model.geometry.head_dim
    assert model.n_hat == {2: d * 80 // 128, 4: d * 64 // 128}
