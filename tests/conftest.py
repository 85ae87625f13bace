"""Settings of all tests, and command lines called in this process."""

import importlib
import os
import sys

import hypothesis
import pytest

# The models here are small: a second thread costs more than it brings, and takes the core of the
# second worker. Torch reads these when it is imported, and so do the processes that tests start.
os.environ |= {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1", "TOKENIZERS_PARALLELISM": "false"}
# What is compared was computed on a CPU.
os.environ["CUDA_VISIBLE_DEVICES"] = ""

# A busy machine must not fail a property.
hypothesis.settings.register_profile("project", deadline=None)
hypothesis.settings.load_profile("project")


@pytest.fixture
def call(monkeypatch, capsys):
    """call("extend --method pi", "--model", …) -> (exit status, stdout, stderr) of a script in
    experiments/, or of any module."""
    import records
    from experiments.kit import command_line

    def run(line, *arguments):
        name, *words = line.split()
        monkeypatch.setattr(sys, "argv", [name, *words, *map(str, arguments)])
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


@pytest.fixture
def done(call):
    """done("extend --method pi", …) -> what the script prints, which ends without an error."""

    def run(line, *arguments):
        status, out, err = call(line, *arguments)
        assert status == 0, err
        return out

    return run


@pytest.fixture
def refusal(call):
    """refusal("extend --method pj", …) -> the sentence with which the script ends."""

    def run(line, *arguments):
        status, _, err = call(line, *arguments)
        assert status == 2, err
        return sentence(err)

    return run


@pytest.fixture
def recorder(tmp_path):
    """Records in memory, of a model that no list knows."""
    from tests.analysis.recorder import Recorder

    return Recorder(tmp_path)


@pytest.fixture
def loads_nothing(monkeypatch):
    """No weights may be loaded."""
    from experiments.kit.model import Model

    monkeypatch.setattr(Model, "load", lambda *_: pytest.fail("weights were loaded"))


def sentence(err: str) -> str:
    """The one line that is on stderr, progress aside."""
    said = [line for line in err.replace("\r", "\n").splitlines() if line.strip()]
    progress = "it/s]", "s/it]", " sample"
    (line,) = [line for line in said if not any(words in line for words in progress)]
    assert line.startswith("error: "), err
    return line
