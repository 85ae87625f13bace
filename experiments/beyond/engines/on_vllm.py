"""Losses of a checkpoint by vLLM on a CPU: python -I on_vllm.py MODEL REQUEST ANSWER.

This runs in an environment of its own, so it imports nothing from this project. REQUEST is JSON with token `ids`, how
many of the last ones are `scored`, and the `length` to serve. ANSWER receives their losses in nats.
"""

import json
import os
import sys
from importlib.metadata import version
from pathlib import Path

os.environ.setdefault("VLLM_CPU_KVCACHE_SPACE", "4")  # GiB


def main() -> None:
    import vllm

    asked = json.loads(Path(sys.argv[2]).read_text())
    ids, scored = asked["ids"], asked["scored"]
    engine = vllm.LLM(
        sys.argv[1],
        dtype="float32",
        max_model_len=asked["length"],
        max_num_seqs=1,
        max_num_batched_tokens=1024,
        enforce_eager=True,
        enable_prefix_caching=False,
        skip_tokenizer_init=True,
    )
    one = vllm.SamplingParams(max_tokens=1, temperature=0, prompt_logprobs=0, detokenize=False)
    (made,) = engine.generate([{"prompt_token_ids": ids}], one)
    found = [-entry[token].logprob for entry, token in zip(made.prompt_logprobs[-scored:], ids[-scored:])]
    Path(sys.argv[3]).write_text(json.dumps({"losses": found, "version": version("vllm-cpu"), "notes": {}}))


if __name__ == "__main__":  # vLLM starts processes that import this file
    main()
