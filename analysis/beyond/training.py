"""Training losses of fine-tunes on the same sequences, beside YaRN's."""

import numpy as np

from analysis.results import Results, read
from analysis.scores import stacked
from analysis.settings import Setting
from core import rope


def gaps(results: Results) -> dict[tuple[Setting, int], np.ndarray]:
    """By setting and seed, a fine-tune's loss minus YaRN's at each step (nats per token), [steps].

    Both read the same sequences, which are longer than L, in the same order.

    Raises:
        InputError: a record is incomplete, or the two have different numbers of steps.
    """
    folder = results.folder / results.model.name
    runs = [read(file) for file in sorted(folder.rglob("finetune/*.json"))]
    runs = [
        run for run in runs if run["length"] > results.model.context_length and "rate" not in run
    ]
    yarn = {
        (run["factor"], run["seed"], run["data_sha256"]): run["losses"]
        for run in runs
        if run["method"] == rope.BASELINE and not run["options"]
    }
    by_setting = {}
    for run in runs:
        reference = yarn.get((run["factor"], run["seed"], run["data_sha256"]))
        if reference and reference is not run["losses"]:
            by_setting[Setting.of(run), run["seed"]] = np.subtract(
                *stacked([run["losses"], reference])
            )
    return by_setting
