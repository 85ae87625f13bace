"""What the records say of a claim: typed numbers at each scale, and a verdict that follows from them alone.

Each kind of claim is one function that is a test, or that returns one: results → findings of that scale, none where
nothing of it was measured. A claim of the paper is tested against what the paper itself compares with, at the setting
that the paper uses, both fixed before anything is measured: the best of several is never picked by its score.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from analysis.findings import Finding
from analysis.results import Results

Test = Callable[[Results], Iterator[Finding]]
