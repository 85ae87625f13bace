"""The files that CONTRIBUTING.md shows, written where a stranger would put them."""

import importlib
import re

from experiments.kit.records import ROOT

BLOCKS = dict(re.findall(r"```python\n# (\S+)\n(.*?)```", (ROOT / "CONTRIBUTING.md").read_text(), re.DOTALL))


def write(file, folder, monkeypatch):
    """Write a file of CONTRIBUTING.md under a folder, in which its package finds it as its own."""
    package = importlib.import_module(file.rpartition("/")[0].replace("/", "."))
    path = folder / file
    path.parent.mkdir(parents=True)
    path.write_text(BLOCKS[file])
    monkeypatch.setattr(package, "__path__", [*package.__path__, str(path.parent)])
    importlib.invalidate_caches()
