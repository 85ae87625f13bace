"""The notebook, run cell by cell as Jupyter does: it prints, shows its figures, and ends with a served model."""

import ast
import json

from experiments.kit.records import ROOT

NOTEBOOK = ROOT / "examples" / "extend.ipynb"


def test_the_notebook_runs(monkeypatch, capsys):
    monkeypatch.chdir(NOTEBOOK.parent)
    names, figures = {}, 0
    cells = json.loads(NOTEBOOK.read_text())["cells"]
    for cell in (cell for cell in cells if cell["cell_type"] == "code"):
        assert not cell["outputs"]
        *body, last = ast.parse("".join(cell["source"])).body
        exec(compile(ast.Module(body, []), NOTEBOOK.name, "exec"), names)
        if isinstance(last, ast.Expr):
            value = eval(compile(ast.Expression(last.value), NOTEBOOK.name, "eval"), names)
            figures += value is not None and value._repr_png_().startswith(b"\x89PNG")
        else:
            exec(compile(ast.Module([last], []), NOTEBOOK.name, "exec"), names)
    assert figures == 3
    assert names["served"].config.max_position_embeddings == names["LONGER"] == 2048
    assert names["answer"].shape[1] == 1524 and "n̂ = " in capsys.readouterr().out
