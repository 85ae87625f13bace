"""Losses on beginnings of books: which sets of texts there are, and what is paired with what."""

import contextlib

import numpy as np
import pytest
from scipy import stats

from analysis import differences, metrics
from analysis.beyond import books, loss_by_position
from analysis.comparison import Comparison, Row
from core.errors import InputError
from core.setting import Setting


def test_differences_are_paired_by_text_and_seed(recorder):
    for seed, more in ((0, 1.0), (1, 3.0)):
        recorder.losses("pi", {"A Book": [1, 1, 2 + more, 7 + more]}, seed=seed)
    recorder.losses("yarn", {"A Book": [0, 1, 2, 7]}, seed=0)
    pi, yarn = books.sets(recorder.results(), "loss_by_position")[0].rows
    gap = loss_by_position.gap(pi, yarn)
    assert (gap.mean, gap.low, gap.texts) == (
        1,
        None,
        (1,),
    )  # one text, and one seed that both have
    assert loss_by_position.gap(pi, yarn, where="within L").mean == 0.5


def test_parts_of_a_book_are_one_sample(recorder):
    rng = np.random.default_rng(0)
    means = {}
    for method in ("pi", "yarn"):
        losses = rng.normal(3, 0.5, (8, 2, 4))
        blocks = {}
        for text, (one, other) in enumerate(losses.tolist()):
            blocks |= {f"Book {text}, part 1": one, f"Book {text}, part 2": other}
        recorder.losses(method, blocks)
        means[method] = losses[:, :, 2:].mean(axis=(1, 2))
    pi, yarn = books.sets(recorder.results(), "loss_by_position")[0].rows
    for score, values in (
        (loss_by_position.level(pi), means["pi"]),
        (pi.scores(loss_by_position.ranges)["8–16k"], means["pi"]),
        (loss_by_position.gap(pi, yarn), means["pi"] - means["yarn"]),
    ):
        interval = stats.ttest_1samp(values, 0).confidence_interval()
        expected = (values.mean(), *interval)
        assert (score.mean, score.low, score.high) == pytest.approx(expected)
        assert score.texts == pytest.approx(values)


def welchs(ours, others):
    """Welch's interval over texts and the seeds of each side, from losses [seeds, texts]."""
    by_text = ours.mean(axis=0) - others.mean(axis=0)
    of_seeds = [side.mean(axis=1) for side in (ours, others) if len(side) > 1]
    samples = [by_text, *of_seeds]
    variances = np.array([stats.sem(sample) ** 2 for sample in samples])
    shares = variances**2 / [len(sample) - 1 for sample in samples]
    freedom = variances.sum() ** 2 / shares.sum()
    return stats.t.interval(0.95, freedom, by_text.mean(), np.sqrt(variances.sum()))


@pytest.mark.parametrize("other_seeds", [[None], [7], [7, 8]])
def test_where_no_seed_is_shared_those_of_each_side_count(recorder, other_seeds):
    sides = []
    for method, seeds in (("pi", [0, 1, 2]), ("yarn", other_seeds)):
        losses = np.random.default_rng(len(seeds)).normal(3, 0.5, (len(seeds), 8))
        for of, by_text in zip(seeds, losses):
            blocks = {f"Book {text}": [0, 0, loss, loss] for text, loss in enumerate(by_text)}
            recorder.losses(method, blocks, seed=of)
        sides.append(losses)
    sets = books.sets(recorder.results(), "loss_by_position")
    rows = {row.setting.method: row for rows in sets for row in rows.rows}
    gap = loss_by_position.gap(rows["pi"], rows["yarn"])
    assert (gap.low, gap.high) == pytest.approx(welchs(*sides))


NAN = float("nan")


@pytest.mark.parametrize("experiment", ["loss_by_position", "perplexity"])
@pytest.mark.parametrize(
    "field, value, says",
    [
        (None, None, None),
        ("length", 8192, "differ in length"),
        ("data", {"A": "hash", "B": "other"}, "differ in data"),
        ("data", {"A": "hash", "C": "hash"}, "differ in data"),
        ("losses", {"A": [1, 1, 2, 2], "B": [1, 1, NAN, 7]}, "it holds NaN"),
        ("losses", {"A": [1, 1, 2, 2], "B": [1, 1, "7", 7]}, "must be a number"),
        ("losses", {"A": [1, 1, 2, 2], "B": [1]}, "different numbers|does not say"),
    ],
)
def test_only_losses_of_the_same_texts_are_compared(recorder, experiment, field, value, says):
    """In whatever order the texts are."""
    for method, order in (("pi", "AB"), ("yarn", "BA")):
        losses = {title: {"A": [1, 1, 2, 2], "B": [1, 1, 7, 7]}[title] for title in order}
        run = {"data": dict.fromkeys(order, "hash"), "length": 16384}
        run["comparable"] = ("data", "length")
        if method == "yarn" and field == "losses":
            losses = value
        elif method == "yarn" and field:
            run[field] = value
        if experiment == "perplexity":
            windows = {f"{title}/16384/0": [*of[2:3], 1][-2:] for title, of in losses.items()}
            scores = {"by_window": windows, "by_length": [{"length": 16384}]}
            recorder.add(experiment, method, scores, **run)
        else:
            recorder.losses(method, losses, **run)
    with pytest.raises(InputError, match=says) if says else contextlib.nullcontext():
        runs = recorder.results().records(experiment)
        rows = [Row(Setting.of(run.run), (run,)) for run in runs]
        if experiment == "perplexity":
            among = Comparison(tuple(rows))
            gap = differences.between(*rows, experiment, metrics.log_perplexity, "16k", among)
        else:
            gap = loss_by_position.gap(*rows)
        assert (gap.mean, gap.texts) == (0, (0, 0))
