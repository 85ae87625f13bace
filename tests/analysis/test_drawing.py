"""The loop that draws: what comes out does not depend on how many processes draw it."""

import functools
import os

import pytest

from analysis import drawing

JOBS = [functools.partial(divmod, number, 2) for number in range(7)]


@pytest.mark.parametrize("processes", [1, 2, 9])
def test_outcomes_are_in_the_order_of_the_jobs_whoever_does_them(monkeypatch, processes):
    monkeypatch.setattr(os, "cpu_count", lambda: processes)
    assert list(drawing.each(JOBS)) == [divmod(number, 2) for number in range(7)]
    broken = functools.partial(divmod, 1, 0)
    with pytest.raises(ZeroDivisionError):
        list(drawing.each([*JOBS, broken]))


def test_what_has_no_record_is_left_out_by_name_and_alone_is_refused(recorder, call):
    recorder.add("ruler", "pi", {"lengths": {}, "average": {}}, tasks=[])
    folder = recorder.results().folder
    status, out, _ = call("tables.__main__", "passkey", "disturbance", "--results", folder)
    assert status == 0 and "passkey" in out.splitlines()[-1]
    status, _, err = call("tables.__main__", "passkey", "--results", folder)
    assert status == 2 and "passkey" in err
