"""The loop that draws: what comes out does not depend on how many processes draw it."""

import functools
import os

import pytest

from analysis import drawing
from core.errors import InputError
from report import pages

JOBS = 7


def drawn_by(number):
    return number, os.getpid()


def failing(number):
    if number == 3:
        raise InputError("the third one is broken; mend it.")
    return number


def test_outcomes_are_in_the_order_of_the_jobs_whoever_does_them():
    jobs = [functools.partial(drawn_by, number) for number in range(JOBS)]
    for processes in (1, 2, 9):
        numbers, workers = zip(*drawing.each(jobs, processes))
        assert numbers == tuple(range(JOBS))
        assert (os.getpid() in workers) == (processes == 1)
        assert len({*workers}) <= processes


@pytest.mark.parametrize("processes", [1, 2])
def test_a_job_that_fails_is_told(processes):
    jobs = [functools.partial(failing, number) for number in range(JOBS)]
    with pytest.raises(InputError, match="third"):
        list(drawing.each(jobs, processes))


def test_pages_are_the_same_from_one_process_and_from_two(recorder):
    for method, better in (("original", 0), ("pi", 1), ("yarn", 2), ("dprope", 1)):
        recorder.everything(method, better=better)
    folder = recorder.results().folder
    written = pages.pages(folder, processes=1)
    assert len(written) == 5 and written == pages.pages(folder, processes=2)


def test_what_has_no_record_is_left_out_by_name_and_alone_is_refused(recorder, call):
    recorder.add("ruler", "pi", {"lengths": {}, "average": {}}, tasks=[])
    folder = recorder.results().folder
    status, out, _ = call("tables.__main__", "passkey", "disturbance", "--results", folder)
    assert status == 0 and "passkey" in out.splitlines()[-1]
    status, _, err = call("tables.__main__", "passkey", "--results", folder)
    assert status == 2 and "passkey" in err
