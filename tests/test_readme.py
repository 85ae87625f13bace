"""The README's three lines do what they say."""

import re

from transformers import AutoModelForCausalLM, AutoTokenizer

from experiments.lab.records import ROOT
from tests.models import checkpoint


def test_the_three_lines_extend_and_export_a_model(tmp_path, monkeypatch):
    checkpoint(tmp_path / "model")
    (lines,) = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    assert len(lines.splitlines()) == 3
    monkeypatch.chdir(tmp_path)
    exec(lines.replace("Qwen/Qwen2.5-0.5B", str(tmp_path / "model")), {})  # the README is ours
    loaded = AutoModelForCausalLM.from_pretrained(tmp_path / "qwen-extended")
    assert loaded.config.max_position_embeddings == 256
    assert AutoTokenizer.from_pretrained(tmp_path / "qwen-extended").model_max_length == 256
