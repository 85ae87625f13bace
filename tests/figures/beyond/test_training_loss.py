"""Training losses of fine-tunes of any number of steps."""

import pytest

from analysis.results import NotMeasured
from figures.kit import draw


@pytest.mark.parametrize("lengths, panels", [([70], 1), ([64, 128], 2), ([8, 7], 1), ([3], 0)])
def test_fine_tunes_of_other_numbers_of_steps_have_their_own_panels(recorder, lengths, panels):
    """Four need not divide it; of fewer than two steps a quarter nothing is drawn."""
    for steps in lengths:
        for method, loss in (("yarn", 3.0), ("pi", 3.5)):
            run = {"method": method, "factor": 2, "options": {}, "seed": 0}
            run |= {"length": 16384, "batch": 1, "steps": steps}
            record = {"run": run, "scores": {"losses": [loss] * steps}, "data_facts": {}}
            recorder.records[f"finetune/{method}_{steps}.json"] = record
    if not panels:
        with pytest.raises(NotMeasured):
            draw.figure("training_loss", recorder.results())
        return
    figure = draw.figure("training_loss", recorder.results())
    assert [round(axes.lines[0].get_xdata()[-1]) for axes in figure.axes] == sorted(lengths)[
        -panels:
    ]
