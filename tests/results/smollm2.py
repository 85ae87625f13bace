"""What the records of SmolLM2-135M hold, by the name of a row."""

from experiments import records
from experiments.records import RESULTS
from tables import common
from tables.benchmarks import comparable
from tables.short_text import differences
from tests.readme import name_of


def measured(experiment: str, trained: bool = False) -> dict[str, dict]:
    """The records of the comparison by the name of their row, without those shared from a setting of the same pairs."""
    runs = [run for (run,) in comparable(RESULTS, "smollm2", experiment, trained)]
    return {name_of(run): run for run in runs if "same_selection_as" not in run}


def keys_found(trained: bool = False) -> dict[str, dict[tuple[int, float], float]]:
    """1 or 0 for every length and depth, by the name of the row."""
    return {
        name: {(row["length"], row["depth"]): row["mean"] for row in run["scores"]["by_depth"]}
        for name, run in measured("passkey", trained).items()
    }


def cost_within(trained: bool) -> dict[str, dict]:
    """What extending costs within L by benchmark, as in tables/short_text."""
    names = {common.method_name(run): name_of(run) for run in records.load(RESULTS, "smollm2", "extension")}
    return {names[title]: scores for title, scores in differences(RESULTS, "smollm2", 2, trained).items()}


def points(score: dict | None) -> str:
    """A difference in points with its interval; a dash for none."""
    if score is None:
        return "–"
    return "{:+.1f} [{:.1f}, {:.1f}]".format(*(score[key] for key in ("mean", "low", "high"))).replace("-", "−")
