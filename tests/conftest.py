"""Settings of all tests, and command lines called in this process."""

import importlib
import os
import sys

import hypothesis
import pytest

# The models here are small: a second thread costs more than it brings, and takes the core of the
# second worker. Torch reads these when it is imported, and so do the processes that tests start.
os.environ |= {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1", "TOKENIZERS_PARALLELISM": "false"}

# A busy machine must not fail a property.
hypothesis.settings.register_profile("project", deadline=None)
hypothesis.settings.load_profile("project")


@pytest.fixture
def call(monkeypatch, capsys):
    """call("extend", "--model", …) -> (exit status, stdout, stderr) of a script in experiments/, or
    of any module."""
    from experiments.kit import command_line, records

    def run(name, *arguments):
        monkeypatch.setattr(sys, "argv", [name, *map(str, arguments)])
        capsys.readouterr()  # what the test's own preparations printed
        status = 0
        try:
            command_line.run(
                importlib.import_module(name if "." in name else records.program(name)).main
            )
        except SystemExit as stop:
            status = stop.code
        captured = capsys.readouterr()
        return status, captured.out, captured.err

    return run
