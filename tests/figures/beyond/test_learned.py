"""Learned factors: unlike each other, and unlike what methods set."""

from figures.beyond.learned import learned


def test_what_was_learned_from_each_start_looks_unlike_the_rest(recorder):
    starts = ["original", "yarn", "pi", "longrope2"]
    for start in starts:
        recorder.learned(start)
    axes = learned(recorder.results()).axes[0]
    looks = {
        (line.get_color(), line.get_marker())
        for line in axes.lines
        if line.get_label().startswith("learned")
    }
    assert len(looks) == len(starts)
