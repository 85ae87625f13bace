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

from experiments.kit.records import ROOT

NOTEBOOK = ROOT / "examples" / "extend.ipynb"


def executed():
    """The notebook with the outputs of its cells, and the names that they leave."""
    notebook = json.loads(NOTEBOOK.read_text())
    names = {}
    count = 0
    for cell in (cell for cell in notebook["cells"] if cell["cell_type"] == "code"):
        *body, last = ast.parse("".join(cell["source"])).body
        shows = isinstance(last, ast.Expr)
        printed = io.StringIO()
        count = count + 1
        with contextlib.redirect_stdout(printed):
            exec(
                compile(ast.Module(body if shows else [*body, last], []), NOTEBOOK.name, "exec"),
                names,
            )
            value = (
                eval(compile(ast.Expression(last.value), NOTEBOOK.name, "eval"), names)
                if shows
                else None
            )
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


def kinds(notebook):
    return [
        [output["output_type"] for output in cell.get("outputs", ())] for cell in notebook["cells"]
    ]


def test_the_notebook_runs_and_has_its_outputs(monkeypatch):
    monkeypatch.chdir(NOTEBOOK.parent)
    stored = json.loads(NOTEBOOK.read_text())
    notebook, names = executed()
    assert kinds(stored) == kinds(notebook) and kinds(notebook).count(["display_data"]) == 3
    tables = [
        cell["outputs"]
        for each in (stored, notebook)
        for cell in each["cells"]
        if cell["id"] == "cell-08"
    ]
    assert tables[0] == tables[1]
    assert names["served"].config.max_position_embeddings == names["LONGER"] == 2048
    assert names["answer"].shape[1] == 1524


if __name__ == "__main__":
    os.chdir(NOTEBOOK.parent)
    NOTEBOOK.write_text(json.dumps(executed()[0], indent=1, ensure_ascii=False) + "\n")
