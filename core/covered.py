"""The length that pre-training really covered, estimated from where the model's attention goes (beyond the paper).

A configuration states the length L that a model was released for; most of its training may have been on shorter texts.
SmolLM2-135M was released with L = 8192 and the base 100,000, while the configuration of its two million steps says 2048
and 10,000 (github.com/huggingface/smollm, text/pretraining/smollm2/config_smollm2_135M.yaml).

How much two tokens of natural language tell about each other decays with their distance as a power law (Lin and
Tegmark, "Critical Behavior in Physics and Probabilistic Formal Languages", 2017), that is without a scale of its own. A
model that learned to read texts of ℓ tokens should then look scale-free as far as ℓ; it has no reason to look further.

The rule. The scale-free reader of length ℓ gives the distance Δ a share ∝ 1/(Δ + 1) for Δ < ℓ, and nothing beyond.
The covered length is the ℓ of the reader R_ℓ that the model's profile w resembles most:

    L_c = argmin_ℓ KL(R_ℓ ‖ w),

over the upper edges of the profile's bins; of equals the longest. R_ℓ is averaged over the query positions 0 … L − 1,
as the profile is, so that a distance which few queries can look back to is expected to have little.

It has no constant to set. Were every query to see all distances, w's share per unit of ln Δ being g, the minimum would
lie where ln g(ℓ) = mean(ln g) − 1: where attention per e-fold of distance has fallen to 1/e of its geometric mean over
the shorter distances. So attention may lean towards near tokens, as w ∝ Δ^−1.2 over all of L = 8192, without L being
denied; it has to break off. KL(w ‖ R_ℓ) would be infinite for every ℓ < L, and a reader that is uniform up to ℓ would
take a lean of any size for a break.
"""

from __future__ import annotations

import numpy as np
from scipy.special import rel_entr

from .errors import InputError, check_whole
from .relative import Profile


def covered_length(distances: np.ndarray, mass: np.ndarray, length: int) -> int:
    """L_c ≤ L by the rule above.

    Args:
        distances: edges of bins in tokens, ascending whole numbers up to L, [n + 1].
        mass: the share of attention in each, [n], averaged over query positions from 0 to L − 1.
        length: L.

    Raises:
        InputError: what is no such profile.
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
    """The profile of a scale-free reader of length `reach` in texts of L = edges[-1] tokens, [bins], its sum 1."""
    distance = np.arange(edges[-1])
    harmonic = np.cumsum(1 / (distance + 1))  # of a query at position q < reach, over Δ = 0 … q
    queries = 1 / harmonic[np.minimum(distance, reach - 1)]
    from_here_on = np.cumsum(queries[::-1])[::-1]  # queries at positions of at least Δ
    share = np.where(distance < reach, from_here_on / (distance + 1), 0.0)
    binned = np.add.reduceat(share[edges[0] :], edges[:-1] - edges[0])
    return binned / binned.sum()
