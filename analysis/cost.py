"""What the records took to measure, by the clocks of those who measured them."""

from __future__ import annotations

from analysis.results import Results


def seconds(results: Results, *experiments: str) -> float:
    """Of all records of some experiments; those written again for a setting of the same pairs cost nothing."""
    runs = (run for name in experiments for run in results.records(name) if "same_selection_as" not in run)
    return float(sum(run.get("seconds", 0.0) for run in runs))


def words(duration: float) -> str:
    """A duration in seconds, to be read: 40 s, 12 min, 3.4 h; a dash where nothing was measured."""
    if duration < 1:
        return "under 1 s" if duration else "–"
    if duration < 90:
        return f"{duration:.0f} s"
    return f"{duration / 60:.0f} min" if duration < 5400 else f"{duration / 3600:.1f} h"
