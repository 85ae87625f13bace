"""vLLM on a checkpoint, in a worker process: batching, prefix cache, tensor parallelism, and lm-eval's back end."""

from __future__ import annotations

import contextlib
import functools
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

import numpy as np
from lm_eval.models.huggingface import HFLM
from transformers import AutoConfig, GenerationConfig, PreTrainedConfig, PreTrainedTokenizerBase

from core.errors import InputError, NonFiniteError
from core.geometry import RopeScaling
from core.huggingface import checkpoint
from core.huggingface.configuration import layer_type, longrope, rope_parameters, text_config
from core.huggingface.embedding import rope_geometry, rotary_modules
from eval.engines.worker import Worker
from eval.generation import Request, model_stops


class Vllm(contextlib.AbstractContextManager):
    """See :mod:`eval.engines`. The worker starts at the first request, and again if a request is longer than it serves.

    Args:
        directory: a checkpoint with a fixed rotary embedding.
        tokenizer: the checkpoint's.
        start: starts a worker from its kind of `work`, the `length` in tokens to serve and `overrides` of the
            configuration.
        longest: the tokens of the longest request, if known beforehand.
    """

    model = None

    def __init__(
        self, directory: Path, tokenizer: PreTrainedTokenizerBase, start: Callable[..., Worker], longest: int = 0
    ) -> None:
        self.tokenizer = tokenizer
        self.config = AutoConfig.from_pretrained(directory, trust_remote_code=False)
        self.context_length = text_config(self.config).max_position_embeddings
        self.length = max(self.context_length, longest)
        self.skeleton = checkpoint.skeleton(self.config)
        with contextlib.suppress(OSError):  # without such a file, as in transformers, the configuration decides
            self.skeleton.generation_config = GenerationConfig.from_pretrained(directory)
        self._start, self._open = start, contextlib.ExitStack()
        self._worker: Worker | None = None
        self._work = ""

    def generate(self, requests: Iterable[Request]) -> Iterator[tuple[str, list[int]]]:
        """Continue every prompt greedily; a request's fields mean the same as in :func:`eval.generation.generate`.

        Raises:
            NonFiniteError: logits are not finite; the message names the sample.
            InputError: vLLM fails.
        """
        ordered = sorted(requests, key=lambda request: request.prompt)  # neighbours share the longest prefixes
        worker = self.worker("continue", max(len(request.prompt) + request.max_new_tokens for request in ordered))
        stops = model_stops(self.skeleton)
        asked = (
            {
                "key": request.key,
                "prompt": request.prompt,
                "stop": sorted(stops | request.stop),
                "new": request.max_new_tokens,
                "least": request.min_new_tokens,
            }
            for request in ordered
        )
        for answer in worker.ask(asked):
            if not answer["finite"]:
                raise NonFiniteError(f"{answer['key']}: the logits of its continuation are not finite")
            yield answer["key"], answer["tokens"]

    @functools.cached_property
    def lm(self) -> VllmLM:
        """lm-eval's model class, for log-likelihoods."""
        return VllmLM(self)

    def worker(self, work: str, length: int) -> Worker:
        """A worker that does this kind of work on up to `length` tokens; the running one, if it does."""
        if self._worker is None or work != self._work or length > self.length:
            self._open.close()
            self._work = work
            self.length = max(self.length, length)
            started = self._start(work=work, length=self.length, overrides=overrides(self.config, self.length))
            self._worker = self._open.enter_context(started)
        return self._worker

    def __exit__(self, *_) -> None:
        self._worker = None
        self._open.close()


class VllmLM(HFLM):
    """lm-eval's Hugging Face model class without a model: lm-eval's vLLM back end, in a worker, scores its tokens."""

    def __init__(self, engine: Vllm) -> None:
        super().__init__(pretrained=engine.skeleton, tokenizer=engine.tokenizer)
        self.engine = engine

    def _loglikelihood_tokens(
        self, requests: Sequence[tuple[tuple[str, str], list[int], list[int]]], **_
    ) -> list[tuple[float, bool]]:
        # Cut as HFLM does: of L' + 1 tokens the last is only predicted.
        most = self.engine.context_length + 1
        kept = [(context[-(most - len(answer)) :], answer) for _, context, answer in requests]
        longest = max(len(context) + len(answer) for context, answer in kept)
        worker = self.engine.worker("score", longest + 1)  # the back end keeps one token less than it serves
        asked = {"key": "", "pairs": kept}
        (answer,) = worker.ask([asked])
        return [(math.nan if nats is None else nats, greedy) for nats, greedy in answer["scores"]]


def overrides(config: PreTrainedConfig, length: int) -> dict:
    """The overrides of a checkpoint's configuration with which vLLM serves `length` tokens, if that exceeds its L'.

    vLLM tabulates cos and sin for L' positions and would read beyond the table. A longer L' alone would change
    LongRoPE's attention factor and leave YaRN's table short. So the overrides state the same frequencies as a LongRoPE
    of that length.

    Raises:
        InputError: the architecture's configuration cannot hold them.
    """
    text = text_config(config)
    if length <= text.max_position_embeddings:
        return {}
    parameters = rope_parameters(text)
    longer = {"max_position_embeddings": length}
    if parameters.get("rope_type", "default") in ("default", "linear", "llama3"):
        return longer
    if layer_type(text) or text is not config or hasattr(config, "original_max_position_embeddings"):
        raise InputError(
            f"vLLM cannot serve {length} tokens of a {config.model_type!r} model whose context is "
            f"{text.max_position_embeddings}; leave the longer prompts out, or use --engine transformers."
        )
    model = checkpoint.skeleton(config)
    _, _, rotary = rotary_modules(model)[0]
    geometry = rope_geometry(model)
    scaling = RopeScaling(
        rotary.inv_freq.double().numpy(), rotary.attention_scaling, np.zeros(geometry.pairs, dtype=bool)
    )
    kept = {key: parameters[key] for key in ("rope_theta", "partial_rotary_factor") if key in parameters}
    stated = {"short_mscale": scaling.attention_factor, "long_mscale": scaling.attention_factor}
    return longer | {"rope_parameters": kept | longrope(geometry, scaling, length) | stated}
