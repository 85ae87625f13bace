"""Keys in books, beside losses of the same settings."""

import pytest

from tables.beyond.needles import needles
from tests.analysis.recorder import in_books

KEYS = in_books([1.0] * 8, [2.0] * 8)
# Of each round of fine-tunes what it states, and the losses of its methods minus YaRN's.
SECOND = {"settings": "b", "per_book": 1}
ROUNDS = {
    "first": ({"settings": "a"}, {"yarn": 0, "dprope": 0.5, "pi": 1}),
    "second": (SECOND, {"yarn": 0, "dprope": 0.25}),
}


@pytest.mark.parametrize("without", ["", "settings"])
@pytest.mark.parametrize("rounds", [["first"], ["first", "second"], ["second", "first"]])
def test_the_loss_beside_keys_is_of_the_same_fine_tunes(recorder, rounds, without):
    """There are keys of the second round alone, and the first has more losses; so it is also of
    records that do not state the settings of their training."""

    def facts(training):
        return {name: value for name, value in training.items() if name != without}

    for name in rounds:
        training, methods = ROUNDS[name]
        for method, more in methods.items():
            books = [more + 0.1 * i for i in range(8)]
            recorder.losses(method, in_books(books, books), seed=0, training=facts(training))
    for method in ROUNDS["second"][1]:
        recorder.keys(method, KEYS, seed=0, training=facts(SECOND))
    (block,) = needles(recorder.results()).blocks
    beside = {row[0].text: row[-1].text.split()[0] for row in block.rows}
    known = "+0.250" if "second" in rounds else "–"
    assert beside == {"YaRN": "–", "DPRoPE (t = 0)": known}


@pytest.mark.parametrize("settings, known", [("b", "+0.250"), ("another", "–")])
def test_the_loss_beside_keys_is_to_the_yarn_of_the_keys(recorder, settings, known):
    """A user may have trained it anew since, and scored by loss alone."""
    trained = {"yarn": SECOND | {"settings": settings}, "pi": SECOND}
    for method, more in (("yarn", 0), ("pi", 0.25)):
        books = [more + 0.1 * i for i in range(8)]
        recorder.losses(method, in_books(books, books), seed=0, training=trained[method])
        recorder.keys(method, KEYS, seed=0, training=SECOND)
    table = needles(recorder.results())
    (block,) = table.blocks
    assert [row[-1].text for row in block.rows] == [known, "–"]
    assert "other books" not in table.caption  # both are of the same
