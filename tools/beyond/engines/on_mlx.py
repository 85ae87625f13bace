"""Losses of a checkpoint by MLX-LM."""

import json
import sys
from importlib.metadata import version
from itertools import pairwise
from pathlib import Path

import mlx.core as mx
import mlx.nn as nn
from mlx_lm.models.cache import make_prompt_cache
from mlx_lm.utils import load_model

AT_ONCE = 256  # tokens per pass; their attention to all earlier tokens is held at once

asked = json.loads(Path(sys.argv[2]).read_text())
ids = asked["ids"]
scored = asked["scored"]
model, _ = load_model(Path(sys.argv[1]))
model.set_dtype(mx.float32)
cache = make_prompt_cache(model)
losses = []
first = len(ids) - 1 - scored
edges = sorted({*range(0, first, AT_ONCE), *range(first, len(ids) - 1, AT_ONCE), len(ids) - 1})
for start, end in pairwise(edges):
    inputs = mx.array([ids[start:end]])
    if (
        end <= first
    ):  # nothing to score yet, so leave out the output head, a fifth of a small model's work
        mx.eval(model.model(inputs, cache=cache))
        continue
    logits = model(inputs, cache=cache)[0].astype(mx.float32)
    losses += nn.losses.cross_entropy(logits, mx.array(ids[start + 1 : end + 1])).tolist()
Path(sys.argv[3]).write_text(json.dumps({"losses": losses, "version": version("mlx-lm")}))
