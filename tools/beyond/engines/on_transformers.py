"""Losses of a checkpoint by any version of transformers."""

import json
import sys
from pathlib import Path

import torch
import transformers
from transformers import AutoModelForCausalLM

model, request, answer = sys.argv[1], *map(Path, sys.argv[2:])
asked = json.loads(request.read_text())
ids = torch.tensor([asked["ids"]])
scored = asked["scored"]
loaded = AutoModelForCausalLM.from_pretrained(model, torch_dtype=torch.float32).eval()
with torch.inference_mode():
    logits = loaded(ids[:, :-1], use_cache=False, logits_to_keep=scored).logits[0].float()
    losses = torch.nn.functional.cross_entropy(logits, ids[0, -scored:], reduction="none")
answer.write_text(json.dumps({"losses": losses.tolist(), "version": transformers.__version__}))
