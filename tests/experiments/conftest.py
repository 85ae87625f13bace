"""Commands of a pool that begin as copies of this process."""

import multiprocessing
import sys

import pytest

from experiments.kit import pool


@pytest.fixture
def forked(monkeypatch):
    """Saves them Python's start and the imports."""
    fork, command = multiprocessing.get_context("fork"), pool._command

    def writing_to_its_log(*arguments):
        sys.stdout, sys.stderr = sys.__stdout__, sys.__stderr__  # not to what captures the test's
        command(*arguments)

    monkeypatch.setattr(pool, "_command", writing_to_its_log)
    monkeypatch.setattr(fork, "set_forkserver_preload", lambda _: None, raising=False)
    monkeypatch.setattr(multiprocessing, "get_context", lambda _: fork)
