"""LongPPL's key tokens against the authors' definition, one token at a time."""

import numpy as np
import pytest
import torch

from eval.beyond.long_perplexity import key_tokens
from tests.models import random_model, token_losses

SHORT, STEP = 12, 5


@pytest.mark.parametrize(("long", "before"), [(70, []), (40, [1])])
def test_a_key_token_is_one_that_the_long_context_helps(long, before):
    """Where the text is no longer than the long context, this is find_key_token of the package longppl 0.3.0."""
    model, tokens = random_model(), torch.randint(3, 300, (70,), generator=torch.Generator().manual_seed(0))
    tokens[35:] = tokens[:35]
    expected = np.zeros(70, dtype=bool)
    for place in range(SHORT, 70):
        window = next(k for k in range(70) if k * (long // 2) + long > place) * (long // 2)
        near = (place - SHORT) // STEP * STEP
        whole, short = (
            token_losses(model, [*before, *tokens[start : place + 1].tolist()])[-1] for start in (window, near)
        )
        expected[place] = short - whole > 0.5 and whole < 8
    found = key_tokens(model, tokens, long, SHORT, STEP, before, gain=0.5, most=8)
    assert (found == expected).all() and 5 < found.sum() < 50
    assert not key_tokens(model, tokens, long, SHORT, STEP, before, gain=0.5, most=0).any()
