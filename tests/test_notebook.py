"""The notebook, run cell by cell as Jupyter does; its outputs are stored, so that it can be read
without running it.

`python -m tests.test_notebook` runs it and stores its outputs anew.
"""

import ast
import base64
import contextlib
import io
import json
import os

from figures.kit import draw
from records import ROOT
from tests.files import read

NOTEBOOK = ROOT / "examples/extend.ipynb"


def executed():
    """The notebook with the outputs of its cells, and the names that they leave."""
    notebook = read(NOTEBOOK)
    names = {}
    code = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    for count, cell in enumerate(code, 1):
        *body, last = ast.parse("".join(cell["source"])).body
        printed = io.StringIO()
        value = None
        with contextlib.redirect_stdout(printed):
            if not isinstance(last, ast.Expr):
                body.append(last)
            exec(compile(ast.Module(body, []), NOTEBOOK.name, "exec"), names)
            if isinstance(last, ast.Expr):
                value = eval(compile(ast.Expression(last.value), NOTEBOOK.name, "eval"), names)
        cell["execution_count"] = count
        cell["outputs"] = []
        if printed.getvalue():
            lines = printed.getvalue().splitlines(keepends=True)
            cell["outputs"].append({"output_type": "stream", "name": "stdout", "text": lines})
        if value is not None:
            data = {
                "image/png": base64.b64encode(value._repr_png_()).decode(),
                "text/plain": ["<figure>"],
            }
            output = {"output_type": "display_data", "data": data, "metadata": {}}
            cell["outputs"].append(output)
    return notebook, names


def outputs(notebook):
    """The texts of each cell that has an output; of a figure, its PNG file."""
    return {
        cell["id"]: [output.get("text") or picture(output) for output in cell["outputs"]]
        for cell in notebook["cells"]
        if cell.get("outputs")
    }


def picture(output):
    return base64.b64decode(output["data"]["image/png"])


def is_same(one, other):
    """Whether two outputs are the same text, or the same picture to the eye."""
    return one == other or (isinstance(one, bytes) and draw.is_same(draw.pixels(one), other))


def test_the_notebook_runs_and_has_its_outputs(monkeypatch):
    monkeypatch.chdir(NOTEBOOK.parent)
    stored = outputs(read(NOTEBOOK))
    notebook, names = executed()
    now = outputs(notebook)
    assert stored.keys() == now.keys()
    for cell, shown in stored.items():
        assert all(is_same(*both) for both in zip(shown, now[cell], strict=True)), cell
    assert names["served"].config.max_position_embeddings == names["LONGER"] == 2048
    assert names["answer"].shape[1] == 1524


if __name__ == "__main__":
    os.chdir(NOTEBOOK.parent)
    NOTEBOOK.write_text(json.dumps(executed()[0], indent=1, ensure_ascii=False) + "\n")
