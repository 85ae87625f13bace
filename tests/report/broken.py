"""Records that were cut or edited at random, and everything that is shown of them."""

import functools
import json
import random
import shutil
import warnings

import matplotlib.pyplot as plt

from analysis import results
from analysis.results import Results
from core import discovery
from core.errors import InputError
from experiments.kit import records
from experiments.kit.records import RESULTS
from figures.kit import command as figures
from report import claims_page, model_view, pages
from tables.kit import command as tables
from tables.kit import latex

JUNK = (None, True, "x", "7", -1, 0, 1, 3.5, 10**400, [], {}, [None], [[1]], {"a": 1})
WHOLE = {
    "pages": pages.model_pages,
    "claims": lambda measured: pages.claims(claims_page.tested(measured.folder)),
}
EVERY = WHOLE | {
    f"{kind.__name__} {name}": functools.partial(kind.build, name)
    for kind in (tables, figures)
    for name in kind.names()
}


def shows(what, folder):
    """Whether a table, a figure or a page can be made of the records of "mine"; a refusal is one sentence."""
    short_text = discovery.module("analysis.beyond.short_text")
    for kept in (results._read, model_view._build, *([short_text.differences] if short_text else [])):
        kept.cache_clear()
    try:
        with warnings.catch_warnings(action="ignore"):
            shown = EVERY[what](Results.of("mine", folder))
        if what.startswith("tables"):
            latex.render(shown)
        plt.close("all")
    except InputError as refused:
        assert "\n" not in str(refused)
        return False
    return True


def check(folder, experiment, model, pattern, examples=12):
    """Some committed records of an experiment alone, one broken at a time: each is shown or refused."""
    copies = records.folder(folder, "mine", experiment)
    copies.mkdir(parents=True)
    shutil.copy(RESULTS / model / "model.json", folder / "mine")
    for file in sorted(records.folder(RESULTS, model, experiment).glob(f"{pattern}.json"))[:4]:
        shutil.copy(file, copies)
    able = [what for what in EVERY if shows(what, folder)]
    assert set(able) - set(WHOLE)
    files, chance = sorted(copies.iterdir()), random.Random(experiment)
    for _ in range(examples):
        file, what = chance.choice(files), chance.choice(able)
        sound = file.read_text()
        cut = chance.random() < 0.1
        file.write_text(sound[: chance.randrange(len(sound) - 1)] if cut else _broken(chance, json.loads(sound)))
        assert not shows(what, folder) or not cut or what in WHOLE, file.read_text()
        file.write_text(sound)


def _places(value, path=()):
    """The path of every part of some JSON."""
    entries = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [path, *(place for key, each in entries for place in _places(each, (*path, key)))]


def _broken(chance, record):
    """The record with one part, of any depth, taken away or replaced."""
    by_depth = {}
    for path in _places(record)[1:]:
        by_depth.setdefault(len(path), []).append(path)
    *above, key = chance.choice(by_depth[chance.choice(sorted(by_depth))])
    parent = functools.reduce(lambda node, part: node[part], above, record)
    value = parent[key]
    if chance.random() < 0.3:
        del parent[key]
    elif isinstance(value, list) and value and chance.random() < 0.5:
        parent[key] = chance.choice((value[:-1], value + value[-1:]))
    else:
        parent[key] = chance.choice(JUNK)
    return json.dumps(record)
