"""Compare evaluation with a plain implementation on the same model and samples: seconds and peak memory, as ratios.

    python -m tools.bench.evaluation perplexity|passkey|generation [--length 8192]

Each way runs in its own process, so that its peak memory is measured alone. The scores must agree. Plain perplexity
calls the model on each window and converts all logits to float32. Plain passkey and generation call transformers'
`generate` for one prompt after another.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import time

import numpy as np
import torch

from eval import passkey, perplexity
from eval.generation import Request, generate
from experiments.kit import load_model, texts
from experiments.kit.records import ROOT, environment

STRIDE = 256


def perplexity_ours(loaded, length: int) -> list[float]:
    tokens = _text(loaded, length + 2 * STRIDE)
    spans = perplexity.windows(len(tokens), length, STRIDE)
    return np.concatenate(list(perplexity.window_losses(loaded.model, tokens, spans))).tolist()


@torch.inference_mode()
def perplexity_plain(loaded, length: int) -> list[float]:
    tokens = _text(loaded, length + 2 * STRIDE)
    found = []
    for begin, end, first in perplexity.windows(len(tokens), length, STRIDE):
        logits = loaded.model(tokens[None, begin:end]).logits.float()
        losses = torch.nn.functional.cross_entropy(logits[0, :-1], tokens[begin + 1 : end], reduction="none")
        found += losses[first - end :].tolist()
    return found


def passkey_requests(loaded, length: int) -> list[Request]:
    grid = [(depth / 4, seed) for depth in range(5) for seed in range(2)]
    samples = [passkey.sample(loaded.tokenizer, length, depth, seed) for depth, seed in grid]
    return [
        Request(s.key, tuple(loaded.tokenizer(s.prompt, add_special_tokens=False).input_ids), passkey.MAX_NEW_TOKENS)
        for s in samples
    ]


def generation_requests(loaded, length: int) -> list[Request]:
    tokens = _text(loaded, 8 * length).tolist()
    return [Request(str(i), tuple(tokens[i * length : (i + 1) * length - 37 * i]), 128) for i in range(8)]


def generate_ours(loaded, requests: list[Request]) -> list[list[int]]:
    found = dict(generate(loaded.model, requests))
    return [found[request.key] for request in requests]


def generate_plain(loaded, requests: list[Request]) -> list[list[int]]:
    found = []
    for request in requests:
        prompt = torch.tensor([request.prompt])
        out = loaded.model.generate(
            prompt,
            attention_mask=torch.ones_like(prompt),
            do_sample=False,
            max_new_tokens=request.max_new_tokens,
            pad_token_id=loaded.tokenizer.eos_token_id,
        )[0, prompt.shape[1] :].tolist()
        found.append([token for token in out if token != loaded.tokenizer.eos_token_id])
    return found


def _text(loaded, count: int) -> torch.Tensor:
    (book,) = texts.books(1)
    return loaded.tokenizer(book.text[: 7 * count], add_special_tokens=False, return_tensors="pt").input_ids[0, :count]


def one(what: str, way: str, length: int) -> dict:
    """Run one way in this process."""
    loaded = load_model.load("smollm2")
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    if what == "perplexity":
        work = {"ours": perplexity_ours, "plain": perplexity_plain}[way]
        started = time.perf_counter()
        result = work(loaded, length)
    else:
        requests = {"passkey": passkey_requests, "generation": generation_requests}[what](loaded, length)
        work = {"ours": generate_ours, "plain": generate_plain}[way]
        started = time.perf_counter()
        result = work(loaded, requests)
    seconds = time.perf_counter() - started
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return {"seconds": seconds, "peak_mb": peak / 1024, "loaded_mb": before / 1024, "result": result}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("perplexity", "passkey", "generation"), help="the evaluation to compare")
    parser.add_argument("--length", type=int, help="tokens (default: 8192, passkey 4096, generation 1024)")
    parser.add_argument("--way", choices=("ours", "plain"), help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    length = arguments.length or {"perplexity": 8192, "passkey": 4096, "generation": 1024}[arguments.what]
    if arguments.way:
        print(json.dumps(one(arguments.what, arguments.way, length)))
        return

    found = {}
    for way in ("ours", "plain"):
        command = [
            sys.executable,
            "-m",
            "tools.bench.evaluation",
            arguments.what,
            "--length",
            str(length),
            "--way",
            way,
        ]
        done = subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        found[way] = json.loads(done.stdout.splitlines()[-1])
    ours, plain = found["ours"], found["plain"]
    if arguments.what == "perplexity":
        agreement = f"largest difference of a loss {np.abs(np.subtract(ours['result'], plain['result'])).max():.1e}"
    else:
        same = sum(a == b for a, b in zip(ours["result"], plain["result"]))
        agreement = f"{same} of {len(plain['result'])} continuations equal"
    print(
        f"{arguments.what} at {length} tokens: {ours['seconds']:.1f} s against {plain['seconds']:.1f} s "
        f"({plain['seconds'] / ours['seconds']:.2f} × faster), peak {ours['peak_mb']:.0f} MB against "
        f"{plain['peak_mb']:.0f} MB (loaded model {ours['loaded_mb']:.0f} MB); {agreement}"
    )
    print(json.dumps(environment()))


if __name__ == "__main__":
    main()
