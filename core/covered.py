"""The length that pre-training really covered, estimated from the model's attention (beyond the paper).

A configuration states the length L that a model was released for. Most of its training may have been on shorter texts:
SmolLM2-135M was released with L = 8192 and the base 100,000, while the configuration of its two million steps says 2048
and 10,000 (github.com/huggingface/smollm, text/pretraining/smollm2/config_smollm2_135M.yaml).

The mutual information of two tokens of natural language decays with their distance as a power law (Lin and Tegmark,
"Critical Behavior in Physics and Probabilistic Formal Languages", 2017), so no distance is special. The attention of a
model that learned to read texts of ℓ tokens should then be scale-free up to ℓ, with no reason to reach further.

The rule. A scale-free reader of length ℓ gives distance Δ a share of attention ∝ 1/(Δ + 1) for Δ < ℓ, and nothing
beyond. Let w be the model's profile, the share of its attention at each distance, and R_ℓ that of the reader. The
covered length is the ℓ whose reader is closest to the model:

    L_c = argmin_ℓ KL(R_ℓ ‖ w),

over the upper edges of the profile's bins; ties go to the longest. Both R_ℓ and the profile are averages over the query
positions 0 … L − 1, because few queries can look back over a long distance.

The rule has no constant to set. Suppose every query could see all distances, and let g be w's share per unit of ln Δ.
The minimum would then lie where ln g(ℓ) = mean(ln g) − 1: where attention per e-fold of distance has fallen to 1/e of
its geometric mean over the shorter distances. Attention may thus favour near tokens, such as w ∝ Δ^−1.2 over all of
L = 8192, and the rule still gives L; only a sharp drop shortens it. The other direction, KL(w ‖ R_ℓ), would be infinite
for every ℓ < L. A reader that is uniform up to ℓ would mistake any preference for near tokens for a drop.
"""

from __future__ import annotations

import numpy as np
from scipy.special import rel_entr

from .errors import InputError, check_whole
from .relative import Profile


def covered_length(distances: np.ndarray, mass: np.ndarray, length: int) -> int:
    """L_c ≤ L by the rule above.

    Args:
        distances: the edges of bins in tokens, ascending whole numbers up to L, [n + 1].
        mass: the share of attention in each bin, [n], averaged over query positions from 0 to L − 1.
        length: L.

    Raises:
        InputError: the arguments are not such a profile.
    """
    check_whole(length, "the context length", 2)
    profile = Profile(distances, mass)
    profile.check_length(length)
    edges = profile.distances
    divergence = [rel_entr(reader(end, edges), profile.mass).sum() for end in edges[1:]]
    if not np.isfinite(divergence).any():
        raise InputError(f"no attention goes to the distances below {edges[1]}; measure the profile from there on.")
    longest_first = divergence[::-1]
    return int(edges[::-1][np.argmin(longest_first)])


def reader(reach: int, edges: np.ndarray) -> np.ndarray:
    """The profile of a scale-free reader of length `reach` in texts of L = edges[-1] tokens: [bins], sum 1."""
    distance = np.arange(edges[-1])
    harmonic = np.cumsum(1 / (distance + 1))  # for a query at position q < reach, the sum over Δ = 0 … q
    queries = 1 / harmonic[np.minimum(distance, reach - 1)]
    from_here_on = np.cumsum(queries[::-1])[::-1]  # queries at positions of at least Δ
    share = np.where(distance < reach, from_here_on / (distance + 1), 0.0)
    binned = np.add.reduceat(share[edges[0] :], edges[:-1] - edges[0])
    return binned / binned.sum()
