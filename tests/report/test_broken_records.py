"""Records that were cut, edited or written by another version: refused in one sentence, or shown; never a traceback."""

import json
import shutil

import pytest

from experiments.kit.records import RESULTS
from tests.report.broken import EVERY, check, shows

OF = {  # the records that are broken here: of which model, and which of its files
    "angle_distribution": ("llama2-7b", "*"),
    "disturbance": ("tiny", "[py]*_s=2"),
    "longbench_e": ("tiny", "dprope_*s=4*"),
    "open_llm": ("tiny", "*_s=2_seed=[01]"),
    "passkey": ("tiny", "[py]*_s=2*"),
    "perplexity": ("smollm2", "[py]*whole*"),
    "ruler": ("tiny", "[py]*_s=2*"),
    "time_cost": ("tiny", "*"),
}


@pytest.mark.parametrize("experiment", OF)
def test_a_broken_record_is_shown_or_refused(tmp_path, experiment):
    check(tmp_path / "results", experiment, *OF[experiment])


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
    shown = {what for what in EVERY if shows(what, folder)}
    wanted = {f"tables.kit.command {name}" for name in ("longbench_e", "open_llm", "ruler")}
    assert wanted | {"figures.kit.command passkey", "pages"} <= shown
    assert "figures.kit.command disturbance_longbench_e" not in shown  # it is of averages
