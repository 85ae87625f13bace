"""Loss by position over the whole of long texts, in windows of L' (tables/whole_texts.tex)."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from eval.intervals import resampled_interval, resampled_ratio
from experiments import scales
from tables import common
from tables.benchmarks import STATES, Block, Row, Scores, comparable, stacked, tokens

REFERENCE = "yarn"
CAPTION = (
    r"Mean loss (nats per token) by position, in overlapping windows of $L'$ tokens over the whole of the texts named in "
    r"the records. In brackets: bootstrap 95\,\% intervals over windows; $\Delta$ to "
    rf"{common.METHOD_NAMES[REFERENCE]} is paired by window. Last: what more text before them changes of the loss of "
    r"those tokens that are in two windows, without the first positions of the later one."
)


def build(results: Path, scale: str) -> str:
    """LaTeX from the records of experiments.perplexity --by-position."""
    blocks = []
    for trained, state in STATES:
        made = runs(results, scale, trained)
        if made:
            first, longest = made[0], max(made[0]["lengths"])
            title = f"{scales.get(scale).title}, {len(first['data'])} texts, $s={first['factor']:g}$, {state}"
            context_length = scales.get(scale).geometry.context_length
            rows = [Row(common.method_name(run), scores(run, reference(made), context_length)) for run in made]
            blocks.append(Block(f"{title}, {len(windows(first))} windows of {tokens(longest)}", rows))
    return common.narrower(stacked("whole_texts", blocks, CAPTION, digits=3, best=None))


def runs(results: Path, scale: str, trained: bool) -> list[dict]:
    """The records of whole texts by position, all of the same windows; each selection of pairs once."""
    groups = comparable(results, scale, "perplexity", trained, lambda r: r["tokens"] is None and "by_position" in r)
    return [run for group in groups for run in group if "same_selection_as" not in run]


def reference(made: list[dict]) -> dict | None:
    """The YaRN among them."""
    return next((run for run in made if (run["method"], run["options"]) == (REFERENCE, {})), None)


def scores(run: dict, yarn: dict | None, context_length: int) -> Scores:
    """Losses within and beyond L, their differences to YaRN's, and what more context gives."""
    own, edge = losses(run), context_length // run["bucket"]
    spans = {"within $L$": slice(edge), "beyond $L$": slice(edge, None)}
    found = {title: average(own[:, span]) for title, span in spans.items()}
    for title, span in spans.items():
        found[rf"$\Delta$ {title}"] = None if yarn in (None, run) else average((own - losses(yarn))[:, span])
    found[f"{tokens(_stride(run))} more before"] = average(more_context(run)[:, 1:])
    return found


def windows(run: dict) -> dict[tuple[str, int], np.ndarray]:
    """The loss by `bucket` positions [buckets] of every longest window, by its text and first position.

    NaN past a text's end, and where the text's last positions do not fill a bucket.
    """
    longest, found = max(run["lengths"]), {}
    for key, values in run["by_position"].items():
        title, length, begin = key.rsplit("/", 2)
        if int(length) == longest:
            found[title, int(begin)] = values
    buckets = max(map(len, found.values()))
    for place, values in found.items():
        full = len(values) if len(values) == buckets else len(values) - 1
        found[place] = np.pad(np.array(values[:full]), (0, buckets - full), constant_values=np.nan)
    return dict(sorted(found.items()))


def losses(run: dict) -> np.ndarray:
    """[windows, buckets], see :func:`windows`."""
    return np.array(list(windows(run).values()))


def more_context(run: dict) -> np.ndarray:
    """Of the tokens that two successive windows share, the loss in the earlier minus that in the later: [pairs, buckets].

    The earlier one has a stride's tokens more before them.
    """
    found, stride = windows(run), _stride(run)
    shared = next(iter(found.values())).size - stride // run["bucket"]
    pairs = [(window, found.get((title, begin + stride))) for (title, begin), window in found.items()]
    return np.array([earlier[-shared:] - later[:shared] for earlier, later in pairs if later is not None])


def average(values: np.ndarray) -> dict:
    """The mean over windows and buckets [windows, buckets], NaN aside, with a bootstrap interval over windows."""
    sums, counts = np.nansum(values, axis=1), np.count_nonzero(~np.isnan(values), axis=1)
    sums, counts = sums[counts > 0], counts[counts > 0]
    return resampled_interval(sums.sum() / counts.sum(), resampled_ratio(sums, counts), len(sums))


def _stride(run: dict) -> int:
    strides = run["stride"] if isinstance(run["stride"], list) else [run["stride"]] * len(run["lengths"])
    return strides[int(np.argmax(run["lengths"]))]


if __name__ == "__main__":
    common.run("whole_texts", __doc__, "smollm2", build)
