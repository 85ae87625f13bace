"""What the records say about a claim: typed numbers of each model, and a verdict that follows from them alone.

Each kind of claim has one function that is a test, or that returns one. A test maps results to the findings at that
model, or to none if nothing was measured. A claim of the paper is tested against the paper's own rivals, at the paper's
own setting. Both are fixed before anything is measured: the best of several is never picked by its score.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from analysis.claims.finding import Finding
from analysis.results import Results

Test = Callable[[Results], Iterator[Finding]]
