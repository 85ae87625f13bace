"""A server that speaks OpenAI's completions; it does what generation and lm-eval's model do in this process.

Prompts go as token ids, so that a server tokenises nothing and puts nothing before them. Stops are cut here, because
some servers know no stop ids. Log-probabilities are always asked for: without them, vLLM makes tokens of NaN.
"""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import PurePath
from typing import Any

from huggingface_hub.utils import httpx
from transformers import PreTrainedConfig

from core.errors import InputError, NonFiniteError, in_one_line
from eval.generation import Request

# By the owner that a server states of its models.
SERVERS = {"vllm": "vLLM", "sglang": "SGLang", "llamacpp": "llama-server"}
AT_ONCE = 32  # requests in flight; a server makes its own batches of them
PATIENCE = 120.0  # seconds of retries for one request, such as while a server is started again
LONGEST_ANSWER = 3600.0  # seconds; a server on a CPU reads a long prompt for minutes
PAUSE = 0.5  # seconds before the second try; then twice as long each time
_RETRIED = {408, 409, 425, 429, 500, 502, 503, 504}
_PROBE = (3, 4, 5)  # ids of any vocabulary
# A server may take a penalty from the checkpoint's generation_config.json, which changes greedy choices, too.
_GREEDY = {"temperature": 0, "repetition_penalty": 1, "logprobs": 1, "return_token_ids": True}


@dataclass(frozen=True)
class _Answer:
    """What a server made of a prompt: new tokens, with what was asked for; log-probabilities are in nats.

    Attributes:
        tokens: None if the server gives no ids.
        nats: the log-probabilities of the new tokens.
        ended: why the answer ends, "stop" or "length".
        scored: (log-probability, whether no token is more probable) of each token of the prompt but the first.
    """

    tokens: list[int] | None
    nats: list[float]
    ended: str
    scored: list[tuple[float, bool]]


class Endpoint:
    """One model of one server.

    Attributes:
        server: its program: a value of SERVERS, or what it calls itself.
        fingerprint: what it states of its version and its settings; empty if nothing.
        most_tokens: of a prompt and its answer together; infinite if it does not say.
    """

    def __init__(
        self, url: str, name: str, config: PreTrainedConfig, ends: Iterable[int] = (), scores: bool = False
    ) -> None:
        """Connect to the server, and ask once for all that is needed.

        Args:
            url: such as http://127.0.0.1:8000, with /v1 or without.
            name: the model's; of a path, the last part counts.
            config: the model's.
            ends: the model's own end-of-sequence ids.
            scores: whether log-probabilities of prompts are needed, not continuations.

        Raises:
            InputError: nothing answers there, another model is served, or the server cannot do what is needed.
        """
        self.url, self.ends, self.fingerprint = f"{url.rstrip('/').removesuffix('/v1')}/v1/", frozenset(ends), ""
        self.config = config
        key = os.environ.get("OPENAI_API_KEY")
        self._http = httpx.Client(
            base_url=self.url,
            headers={"Authorization": f"Bearer {key}"} if key else {},
            limits=httpx.Limits(max_connections=AT_ONCE, max_keepalive_connections=AT_ONCE),
            timeout=httpx.Timeout(LONGEST_ANSWER, connect=10),
            trust_env=False,  # a proxy for the internet does not reach a cluster's own hosts
        )
        models = self._send("models", patience=0).get("data") or [{}]
        own_name = PurePath(name).name
        ids = {PurePath(each[key]).name: each for each in models for key in ("root", "id") if each.get(key)}
        if own_name not in ids:
            raise InputError(
                f"{url} serves {', '.join(str(each.get('id')) for each in models)}, not {name}; serve that, or give "
                f"it that name (vLLM: --served-model-name {own_name})."
            )
        model = ids[own_name]
        self.model, owner = model["id"], str(model.get("owned_by"))
        self.server = SERVERS.get(owner, owner)
        self.most_tokens = model.get("max_model_len") or (model.get("meta") or {}).get("n_ctx") or math.inf
        first = "a first prompt of token ids, which vLLM, SGLang and llama-server take,"
        if scores:
            self._score(first, _PROBE)
        else:
            self._continue(Request(first, _PROBE, 2))

    def generate(self, requests: Iterable[Request]) -> Iterator[tuple[str, list[int]]]:
        """Continue every prompt greedily; yields (key, new token ids) in the order they finish.

        Raises:
            InputError: a prompt and its answer do not fit, or the server refuses a request or stays silent.
            NonFiniteError: a log-probability is not finite; the message names the sample.
        """
        requests = sorted(requests, key=lambda request: request.prompt)  # neighbours share prefixes, which servers keep
        self.check_length(max((len(each.prompt) + each.max_new_tokens for each in requests), default=0))
        yield from self._side_by_side(self._continue, requests)

    def scored(self, prompts: Sequence[Sequence[int]], counts: Sequence[int]) -> list[list[tuple[float, bool]]]:
        """(log-probability in nats, whether no token is more probable) of each of the last `counts` tokens of a prompt.

        Raises:
            InputError, NonFiniteError: as :meth:`generate`.
        """
        self.check_length(max(map(len, prompts), default=0) + 1)  # servers make at least one token

        def one(number: int) -> tuple[int, list[tuple[float, bool]]]:
            return number, self._score(f"prompt {number}", prompts[number])[-counts[number] :]

        scores = dict(self._side_by_side(one, range(len(prompts))))
        return [scores[number] for number in range(len(prompts))]

    def check_length(self, tokens: int) -> None:
        """Refuse more tokens than the server takes; some servers would silently make fewer new ones instead."""
        if tokens > self.most_tokens:
            raise InputError(
                f"the server at {self.url} takes {self.most_tokens:,} tokens of prompt and answer, and {tokens:,} are "
                "asked for; start it with more (vLLM: --max-model-len), or ask for shorter ones."
            )

    def _continue(self, request: Request) -> tuple[str, list[int]]:
        ends = self.ends | request.stop
        limits = {"max_tokens": request.max_new_tokens, "min_tokens": request.min_new_tokens}
        answer = self._complete(request.key, request.prompt, **limits, stop_token_ids=sorted(ends))
        tokens = answer.tokens
        if tokens is None:
            raise InputError(
                f"{self.server} at {self.url} gives no ids of the tokens that it makes; vLLM, llama-server and recent "
                "versions of SGLang do."
            )
        stop = next((i for i, token in enumerate(tokens) if token in ends), None)
        if stop is not None and stop < request.min_new_tokens:
            raise InputError(f"{request.key}: {self.server} ends an answer before min_tokens; vLLM does not.")
        if stop is None and answer.ended == "length" and len(tokens) < request.max_new_tokens:
            raise InputError(
                f"{request.key}: {self.server} made {len(tokens)} tokens of {request.max_new_tokens}, because no "
                "more fit; start it with a longer context."
            )
        return request.key, tokens[:stop]

    def _score(self, what: str, prompt: Sequence[int]) -> list[tuple[float, bool]]:
        answer = self._complete(what, prompt, max_tokens=1, echo=True)
        if len(answer.scored) != len(prompt) - 1:
            raise InputError(f"{self.server} at {self.url} gives no log-probabilities of a prompt's tokens; vLLM does.")
        return answer.scored

    def _complete(self, what: str, prompt: Sequence[int], **options: Any) -> _Answer:
        """One completion; `what` names the prompt in errors."""
        body = {"model": self.model, "prompt": list(prompt), **_GREEDY, **options}
        reply = self._send("completions", body, what)
        try:
            answer = _read(reply, len(prompt) if options.get("echo") else 0)
            read = reply["usage"]["prompt_tokens"]
            self.fingerprint = reply.get("system_fingerprint") or ""
        except (KeyError, TypeError, IndexError, AttributeError) as error:
            raise InputError(
                f"the server at {self.url} does not answer as OpenAI's completions do ({what}: "
                f"{type(error).__name__}, {in_one_line(error)}); vLLM does."
            ) from error
        if read != len(prompt):
            raise InputError(
                f"{what}: {self.server} read {read} tokens instead of {len(prompt)}; give a server that takes token "
                "ids as they are, such as vLLM."
            )
        if not all(map(math.isfinite, [*answer.nats, *(nats for nats, _ in answer.scored)])):
            raise NonFiniteError(f"{what}: a log-probability is not finite")
        return answer

    def _send(
        self, path: str, body: dict | None = None, what: str = "to say what it serves", patience: float | None = None
    ) -> dict:
        """The JSON of a reply; a request that may succeed later is sent again for `patience` seconds."""
        until, pause = time.monotonic() + (PATIENCE if patience is None else patience), PAUSE
        while True:
            try:
                reply = self._http.request("POST" if body else "GET", path, json=body)
                if reply.status_code == 200:
                    return dict(reply.json())
                reason = f"HTTP {reply.status_code}: {in_one_line(Exception(reply.text))}"
                refused = reply.status_code not in _RETRIED
            except (httpx.HTTPError, ValueError, TypeError) as error:
                reason, refused = f"{type(error).__name__}: {in_one_line(error)}", False
            if refused:
                raise InputError(f"the server at {self.url} refuses {what} ({reason}); give another, or correct it.")
            if time.monotonic() + pause > until:
                raise InputError(
                    f"the server at {self.url} does not answer ({reason}); start it, and give the same command again."
                )
            time.sleep(pause)
            pause = min(2 * pause, 10)

    def _side_by_side(self, work: Callable, items: Iterable) -> Iterator:
        """The result for each item, as it is known; after an error nothing more is asked."""
        pool = ThreadPoolExecutor(AT_ONCE)
        try:
            for done in as_completed([pool.submit(work, item) for item in items]):
                yield done.result()
        except BaseException:
            self._http.close()  # what is under way ends, and is not tried again
            raise
        finally:
            pool.shutdown(wait=False, cancel_futures=True)


def _read(reply: dict, echoed: int) -> _Answer:
    """An answer of vLLM and SGLang, or of llama-server, which says all of a token in one place.

    Args:
        echoed: how many of the tokens with log-probabilities are the prompt's.
    """
    choice = reply["choices"][0]
    log_probs, ended = choice["logprobs"], choice["finish_reason"]
    if "content" in log_probs:
        content = log_probs["content"]
        return _Answer([each["id"] for each in content], _numbers(each["logprob"] for each in content), ended, [])
    tops = [_numbers(top.values()) if top else [] for top in log_probs.get("top_logprobs") or []]
    nats = _numbers(log_probs["token_logprobs"])
    greedy = [one >= max(top, default=math.inf) for one, top in zip(nats, tops)] or [False] * len(nats)
    scored = list(zip(nats, greedy))[1:echoed]  # nothing is before the first token
    return _Answer(choice.get("token_ids"), nats[echoed:], ended, scored)


def _numbers(values: Iterable[float | None]) -> list[float]:
    """JSON has no NaN; some servers write null."""
    return [math.nan if value is None else float(value) for value in values]
