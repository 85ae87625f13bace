"""Files and directories appear whole, whatever ends the writer; one process at a time makes a
thing."""

import errno
import os
import signal
from pathlib import Path

import pytest

from core import files
from core.errors import InputError
from tests import processes


def test_what_is_written_is_whole_and_a_failure_leaves_what_was_there(tmp_path, monkeypatch):
    file = files.write(tmp_path / "deep/a.txt", "before")
    assert file.read_text() == "before"

    def full(*_):
        raise OSError("full")

    monkeypatch.setattr(os, "replace", full)
    with pytest.raises(OSError):
        files.write(file, b"after")
    assert file.read_text() == "before"
    assert list(file.parent.iterdir()) == [file]


def test_a_new_directory_appears_whole_or_not_at_all(tmp_path):
    target = tmp_path / "out"
    with pytest.raises(RuntimeError), files.new(target) as partial:
        partial.mkdir()
        raise RuntimeError
    assert not list(tmp_path.iterdir())
    (tmp_path / ".out.partial").mkdir()  # left by a call that was killed
    with files.new(target) as partial:
        partial.mkdir()
        (partial / "a").write_text("1")
    assert [path.name for path in tmp_path.rglob("*")] == ["out", "a"]
    for there in (target, Path(), Path("/")):
        with pytest.raises(InputError, match="exists already"), files.new(there):
            pass


def test_an_error_names_what_was_to_be_written_not_the_temporary_path(tmp_path):
    target = tmp_path / "out"
    for error in (InputError("cannot read {}/a"), OSError(28, "full", "{}/a"), OSError(28, "full")):
        with pytest.raises(type(error)) as raised, files.new(target) as partial:
            if isinstance(error, InputError):
                raise InputError(str(error).format(partial))
            if error.filename:
                error.filename = partial / "a"
            raise error
        said = str(raised.value)
        assert "partial" not in said and (str(target / "a") in said or said == "[Errno 28] full")
    assert not list(tmp_path.iterdir())


def test_a_full_disk_leaves_no_lock(tmp_path, monkeypatch):
    def full(*_, **__):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(Path, "write_text", full)
    with files.lock(tmp_path / "journal"):
        pass
    assert not list(tmp_path.iterdir())


def test_the_second_to_lock_learns_who_holds_it_and_a_killed_one_holds_nothing(tmp_path):
    target = tmp_path / "journal"
    read, write = os.pipe()

    def hold():
        with files.lock(target):
            os.write(write, b"x")
            signal.pause()

    child = processes.fork(hold)
    os.read(read, 1)
    with pytest.raises(InputError, match=str(child)), files.lock(target):
        pass
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    with files.lock(target):
        pass
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    "content",
    [
        "",
        "[1]",
        '{"a": NaN}',
        "\xff",
        "[" * 10**5,
        '{"a": 1e999}',
        f'{{"a": {10**400}}}',
        r'{"\ud800": 1}',
    ],
)
def test_no_json_but_a_whole_object_of_finite_numbers_is_read(tmp_path, content):
    file = tmp_path / "a.json"
    file.write_bytes(content.encode("latin-1"))
    with pytest.raises(InputError, match="a.json"):
        files.read_json(file, "mend it")
