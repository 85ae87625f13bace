"""Command lines called in this process."""

import importlib
import sys

import pytest

from experiments.kit import command_line


@pytest.fixture
def call(monkeypatch, capsys):
    """call("extend", "--model", …) -> (exit status, stdout, stderr)"""

    def run(name, *arguments):
        monkeypatch.setattr(sys, "argv", [name, *map(str, arguments)])
        capsys.readouterr()  # what the test's own preparations printed
        status = 0
        try:
            command_line.run(importlib.import_module(name if "." in name else f"experiments.{name}").main)
        except SystemExit as stop:
            status = stop.code
        captured = capsys.readouterr()
        return status, captured.out, captured.err

    return run
