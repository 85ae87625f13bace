"""What `python -m tables` writes and prints, and when it has nothing to do."""

import shutil
import sys

import pytest

from tables.kit import command


@pytest.fixture
def render(monkeypatch, capsys):
    """The command on some records: what it prints."""

    def run(results, *arguments):
        monkeypatch.setattr(sys, "argv", ["tables", *arguments, "--results", str(results.folder)])
        command.main()
        return capsys.readouterr().out

    return run


def test_outputs_of_one_model_leave_those_of_another_alone(made, render):
    made.everything("pi")
    results = made.results("one")
    shutil.copytree(results.folder / "one", results.folder / "two")
    render(results, "ruler", "--model", "two")
    (written,) = (results.folder.parent / "tables").rglob("*.tex")
    assert written.parts[-2:] == ("two", "ruler.tex")


def test_a_table_that_is_asked_for_is_printed_before_its_path(made, render):
    made.everything("pi")
    lines = render(made.results(), "ruler").splitlines()
    assert any(line.split()[:3] == ["PI", "(s", "="] and "50.0" in line for line in lines)
    assert lines[-1].endswith("tables/mine/ruler.tex")


def test_only_what_changed_is_rendered_again(made, render):
    made.everything("pi")
    results = made.results()
    folder = results.folder.parent / "tables" / "mine"
    assert "ruler.tex" in render(results)
    assert render(results).startswith("unchanged:")
    (folder / "ruler.tex").write_text("edited")
    assert "ruler.tex" in render(results) and "tabular" in (folder / "ruler.tex").read_text()
    (folder / "open_llm.tex").unlink()
    assert "open_llm.tex" in render(results)
    record = next((results.folder / "mine" / "ruler").iterdir())
    record.write_text(record.read_text().replace("50.0", "49.0"))
    assert "ruler.tex" in render(results) and "49.0" in (folder / "ruler.tex").read_text()
    assert "ruler.tex" in render(results, "ruler")  # by name in any case
