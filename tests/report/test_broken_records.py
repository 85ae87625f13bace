"""Records that were cut, edited or written by another version: refused in one sentence, or shown; never a traceback."""

import functools
import json
import shutil
import warnings

import matplotlib.pyplot as plt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from analysis import results
from analysis.beyond import short_text
from analysis.results import Results
from core.errors import InputError
from experiments.kit import records
from experiments.kit.records import RESULTS
from figures.kit import command as figures
from report import model_view, pages, summary
from tables.kit import command as tables
from tables.kit import latex

JUNK = (None, True, "x", "7", -1, 0, 1, 3.5, 10**400, [], {}, [None], [[1]], {"a": 1})
OF = {  # the records that are broken here: of which model, and which of its files
    "angle_distribution": ("llama2-7b", "*"),
    "disturbance": ("tiny", "[py]*_s=2"),
    "loss_by_position": ("tiny", "*_s=2*"),
    "learned": ("tiny", "*s=2*"),
    "longbench_e": ("tiny", "dprope_*s=4*"),
    "open_llm": ("tiny", "*_s=2_seed=[01]"),
    "passkey": ("tiny", "[py]*_s=2*"),
    "perplexity": ("smollm2", "[py]*whole*"),
    "ruler": ("tiny", "[py]*_s=2*"),
    "selections": ("tiny", "*"),
    "served": ("tiny", "*"),
    "time_cost": ("tiny", "*"),
}
WHOLE = {
    "page": pages.model_page,
    "summary": lambda measured: summary.build(measured.folder),
    "claims": lambda measured: pages.claims(measured.folder, {"mine": ""}),
}
EVERY = WHOLE | {
    f"{kind.__name__} {name}": functools.partial(kind.build, name)
    for kind in (tables, figures)
    for name in kind.names()
}


def show(what, folder):
    for kept in (results._read, short_text._differences, model_view._build):
        kept.cache_clear()
    shown = EVERY[what](Results.of("mine", folder))
    if what.startswith("tables"):
        latex.render(shown)
    plt.close("all")


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """By experiment, a results folder with some committed records of it alone, and what they can be shown as."""

    @functools.cache
    def made(experiment):
        model, pattern = OF[experiment]
        folder = tmp_path_factory.mktemp(experiment)
        broken = records.folder(folder, "mine", experiment)
        broken.mkdir(parents=True)
        shutil.copy(RESULTS / model / "model.json", folder / "mine")
        for file in sorted(records.folder(RESULTS, model, experiment).glob(f"{pattern}.json"))[:4]:
            shutil.copy(file, broken)
        able = [what for what in EVERY if shows(what, folder)]
        assert set(able) - set(WHOLE)
        return folder, able

    return made


def shows(what, folder):
    try:
        show(what, folder)
    except InputError as refused:
        assert "\n" not in str(refused)
        return False
    return True


def places(value, path=()):
    """The path of every part of some JSON."""
    entries = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [path, *(place for key, each in entries for place in places(each, (*path, key)))]


def broken(random, record):
    """The record with one part, of any depth, taken away or replaced."""
    by_depth = {}
    for path in places(record)[1:]:
        by_depth.setdefault(len(path), []).append(path)
    *above, key = random.choice(by_depth[random.choice(sorted(by_depth))])
    parent = functools.reduce(lambda node, part: node[part], above, record)
    value = parent[key]
    if random.random() < 0.3:
        del parent[key]
    elif isinstance(value, list) and value and random.random() < 0.5:
        parent[key] = random.choice((value[:-1], value + value[-1:]))
    else:
        parent[key] = random.choice(JUNK)
    return json.dumps(record)


@pytest.mark.parametrize("experiment", OF)
def test_a_broken_record_is_shown_or_refused(folders, experiment):
    folder, able = folders(experiment)
    files = sorted(folder.rglob("*.json"))

    @settings(max_examples=12, derandomize=True, database=None)
    @given(st.randoms(use_true_random=False))
    def check(random):
        file, what = random.choice(files), random.choice(able)
        sound = file.read_text()
        cut = random.random() < 0.1
        file.write_text(sound[: random.randrange(len(sound) - 1)] if cut else broken(random, json.loads(sound)))
        try:
            with warnings.catch_warnings(action="ignore"):
                assert not shows(what, folder) or not cut or what in WHOLE
        finally:
            file.write_text(sound)

    check()


PARTS = {  # what a run of a few tasks, lengths and samples states
    "longbench_e": lambda scores: {
        "tasks": {"qasper": {"0-4k": scores["tasks"]["qasper"]["0-4k"]}},
        "buckets": {"0-4k": scores["buckets"]["0-4k"]},
        "averages": {},
    },
    "open_llm": lambda scores: {"hellaswag": scores["hellaswag"]},
    "ruler": lambda scores: {
        "tasks": dict([*scores["tasks"].items()][:1]),
        "lengths": dict([*scores["lengths"].items()][:1]),
        "average": scores["average"],
    },
    "passkey": lambda scores: {key: cells[:1] for key, cells in scores.items()},
    "perplexity": lambda scores: scores[:1],
}


def test_records_of_a_few_tasks_and_lengths_are_shown_or_refused(tmp_path):
    """Each table, figure and page of them; of the whole ones beside, all are shown."""
    folder = tmp_path / "results"
    shutil.copytree(RESULTS / "tiny", folder / "mine")
    for experiment, part in PARTS.items():
        for file in (folder / "mine" / experiment).glob("*.json"):
            record = json.loads(file.read_text())
            record["scores"] = part(record["scores"])
            if "by_document" in record:
                record["by_document"] = {task: record["by_document"][task] for task in record["scores"]}
            file.write_text(json.dumps(record))
    with warnings.catch_warnings(action="ignore"):
        shown = {what for what in EVERY if shows(what, folder)}
    wanted = {f"{tables.__name__} {name}" for name in ("longbench_e", "open_llm", "ruler")}
    assert wanted | {f"{figures.__name__} passkey", "page"} <= shown
    assert f"{figures.__name__} disturbance_longbench_e" not in shown  # it is of averages
