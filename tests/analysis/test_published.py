"""The paper's published numbers as data: a file that was cut or edited is refused by the name of its line."""

import pytest

from analysis import published
from core.errors import InputError
from experiments.kit.records import RESULTS

FILES = sorted((RESULTS / "paper").glob("*.csv"))


@pytest.fixture(autouse=True)
def nothing_kept():
    kept = (published._lines, published.table, published.blocks)
    for function in kept:
        function.cache_clear()
    yield
    for function in kept:
        function.cache_clear()


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
@pytest.mark.parametrize(
    "change",
    [
        lambda text: text[: text.rindex(",")],
        lambda text: text.replace(",", ";"),
        lambda text: text.replace("method", "metod").replace("metric", "metrik"),
        lambda text: text.splitlines()[0],
        lambda text: "",
        lambda text: text.rstrip("\n") + "x\n",
        lambda text: text + "nan," * text.splitlines()[0].count(",") + "nan\n",
        lambda text: text.encode() + b"\xff\n",
        lambda text: None,
    ],
)
def test_a_broken_file_is_refused(tmp_path, monkeypatch, file, change):
    broken = tmp_path / file.name
    content = change(file.read_text())
    if content is not None:
        broken.write_bytes(content if isinstance(content, bytes) else content.encode())
    monkeypatch.setattr(published, "_file", lambda name: tmp_path / f"{name}.csv")
    for reads in (published.table, published.blocks):
        with pytest.raises(InputError, match=file.name):
            reads(file.stem)
