"""Continuations or log-likelihoods of a checkpoint by vLLM: python -I vllm_worker.py MODEL SETTINGS.

This runs in an environment of its own, so it imports nothing from this project. SETTINGS is JSON: `work` ("continue" or
"score"), `dtype`, the `length` to serve in tokens, `tensor_parallel`, and `overrides` of the configuration. A line of
JSON on the standard output says that the engine is ready. After that, each line of the standard input is a request, and
each answer is a line of output, in the order they finish. What vLLM prints goes to the standard error. When the
standard input ends, this process and the processes that it started end.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import queue
import signal
import sys
import threading
import time
from collections.abc import Callable
from importlib import metadata

FAREWELL = 20  # seconds that vLLM has to end before it is killed

os.environ.setdefault("VLLM_CPU_KVCACHE_SPACE", "4")  # GiB
os.environ.setdefault("VLLM_CPU_NUM_OF_RESERVED_CPU", "0")  # leave no core idle
os.environ |= {
    "VLLM_ALLOW_LONG_MAX_MODEL_LEN": "1",  # to serve more than L'; `overrides` then reach as far
    "VLLM_WORKER_MULTIPROC_METHOD": "spawn",  # a fork would hold the pipes open
    "VLLM_NO_USAGE_STATS": "1",
}


def main() -> None:
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)

    def answer(found: dict) -> None:
        answers.write(json.dumps(found) + "\n")
        answers.flush()

    requests: queue.SimpleQueue[dict | None] = queue.SimpleQueue()
    threading.Thread(target=receive, args=(requests,), daemon=True).start()
    model, settings = sys.argv[1], json.loads(sys.argv[2])
    try:
        {"continue": continue_all, "score": score_all}[settings["work"]](model, settings, requests, answer)
    except Exception as error:
        with contextlib.suppress(OSError):
            answer({"failed": f"{type(error).__name__}: {error}"})
        raise


def receive(requests: queue.SimpleQueue) -> None:
    """Hand on the requests, and None at their end; some seconds later, kill what is left of this process group."""
    for line in sys.stdin:
        requests.put(json.loads(line))
    requests.put(None)
    time.sleep(FAREWELL)
    os.killpg(os.getpgrp(), signal.SIGKILL)


def continue_all(model: str, settings: dict, requests: queue.SimpleQueue, answer: Callable[[dict], None]) -> None:
    """Greedy continuations: {key, prompt, stop, new, least} is answered by {key, tokens, finite}."""
    import vllm
    from vllm.inputs import tokens_input

    served = vllm.LLM(model, skip_tokenizer_init=True, generation_config="vllm", **arguments(settings))
    engine = served.llm_engine
    answer({"ready": True, "version": own_version()})
    asked: dict[str, dict] = {}
    while True:
        while not asked or not requests.empty():  # new requests join the running ones
            if (request := requests.get()) is None:
                return
            asked[request["key"]] = request
            parameters = vllm.SamplingParams(**sampling(request))
            engine.add_request(request["key"], tokens_input(request["prompt"]), parameters)
        for made in engine.step():
            if made.finished:
                answer(continuation(asked.pop(made.request_id), made.outputs[0]))


def sampling(request: dict) -> dict:
    """vLLM's sampling parameters for a request; only the stops that it names end it."""
    return {
        "temperature": 0.0,
        "max_tokens": request["new"],
        "min_tokens": request["least"],
        "stop_token_ids": request["stop"],
        "ignore_eos": True,
        "logprobs": 0,  # of the chosen tokens; they are NaN if the logits are
        "detokenize": False,
    }


def continuation(request: dict, made) -> dict:
    """The answer to a request, without the stop that ended it."""
    tokens = list(made.token_ids)
    if tokens and tokens[-1] in request["stop"]:
        tokens.pop()
    return {"key": request["key"], "tokens": tokens, "finite": math.isfinite(made.cumulative_logprob)}


def score_all(model: str, settings: dict, requests: queue.SimpleQueue, answer: Callable[[dict], None]) -> None:
    """Scores by lm-eval's back end: {key, pairs: [[context, answer], …]} → {key, scores: [[nats, greedy], …]}."""
    chosen = arguments(settings)  # this imports vLLM, which must happen before metadata.version is replaced
    plain = metadata.version
    metadata.version = lambda name: own_version() if name == "vllm" else plain(name)  # lm-eval asks only for "vllm"
    from lm_eval.models.vllm_causallms import VLLM

    metadata.version = plain
    served = VLLM(model, batch_size="auto", max_model_len=chosen.pop("max_model_len"), **chosen)
    answer({"ready": True, "version": own_version()})
    while (request := requests.get()) is not None:
        pairs = [(None, context, continued) for context, continued in request["pairs"]]
        found = served._loglikelihood_tokens(pairs, disable_tqdm=True)
        scores = [[nats if math.isfinite(nats) else None, bool(greedy)] for nats, greedy in found]
        answer({"key": request["key"], "scores": scores})


def arguments(settings: dict) -> dict:
    """The arguments that vLLM is started with."""
    from vllm.platforms import current_platform

    on_cpu = current_platform.is_cpu()
    if on_cpu:  # starting another process takes as long as a small evaluation
        os.environ["VLLM_ENABLE_V1_MULTIPROCESSING"] = "0"
    return {
        "dtype": settings["dtype"],
        "max_model_len": settings["length"],
        "tensor_parallel_size": settings["tensor_parallel"],
        "hf_overrides": settings["overrides"],
        "enforce_eager": on_cpu,  # on a CPU compiling takes longer than it saves
    }


def own_version() -> str:
    """vLLM's version without the build's local part; the package has different names on CPU and GPU."""
    for name in ("vllm", "vllm-cpu"):
        with contextlib.suppress(metadata.PackageNotFoundError):
            return metadata.distribution(name).version.split("+")[0]
    raise metadata.PackageNotFoundError("vllm")


if __name__ == "__main__":  # vLLM starts processes that import this file
    main()
