"""A server that speaks OpenAI's completions; it continues prompts as :mod:`eval.generation` does in
this process, and scores them where it can.

Prompts go as token ids, so that a server tokenises nothing and puts nothing before them. Stops are
cut here, because some servers know no stop ids. Log-probabilities are always asked for: without
them, vLLM makes tokens of NaN.

What a server says is checked before it counts, and shown in a line without the API key. An answer
that the server itself broke off is asked for again.
"""

from __future__ import annotations

import functools
import math
import os
import re
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import PurePath
from typing import Annotated, Any, NamedTuple

from huggingface_hub.utils import httpx
from pydantic import Field, PositiveInt, ValidationError

from core.errors import InputError, NonFiniteError, in_one_line
from core.schema import having
from eval import Request, hub

# By the owner that a server states of its models.
SERVERS = {"vllm": "vLLM", "sglang": "SGLang", "llamacpp": "llama-server"}
# How an answer ends that is whole, with stop ids and strings as "stop"; others are broken off:
# "abort", "error", null.
WHOLE = ("stop", "length")
AT_ONCE = 32  # requests in flight; a server makes its own batches of them
# of one request, with two minutes of pauses in all, such as while a server is started again
TRIES = 8
PAUSE = 1.0  # seconds before the second try; then twice as long each time
LONGEST_ANSWER = 3600.0  # seconds; a server on a CPU reads a long prompt for minutes
# The largest reply in bytes: a list of models, and for each token of prompt and answer its text,
# its id and the log-probabilities, which take 50 to 400.
LARGEST = 2**20
LARGEST_PER_TOKEN = 1024
_RETRIED = {408, 409, 425, 429, 500, 502, 503, 504}
_PROBE = (3, 4, 5)  # ids of any vocabulary
# A server may take a penalty from the checkpoint's generation_config.json, which changes greedy
# choices, too.
_GREEDY = {"temperature": 0, "repetition_penalty": 1, "logprobs": 1, "return_token_ids": True}

# What is read of replies. Names hold nothing that a terminal would obey.
_Name = Annotated[str, Field(pattern=r"^\P{C}*$")]
_MODEL = having(
    {"id": _Name},
    {"root": _Name | None, "owned_by": _Name | None, "max_model_len": PositiveInt | None},
)
_MODELS = having({"data": list[_MODEL]})
# of vLLM and SGLang, or of llama-server, which says all of a token in one place (`content`)
_LOG_PROBS = having(
    {},
    {
        "token_logprobs": list[float | None],
        "content": list[having({"id": int, "logprob": float | None})],
    },
)
_CHOICE = having(
    {"finish_reason": str | None, "logprobs": _LOG_PROBS | None}, {"token_ids": list[int] | None}
)
_REPLY = having(
    {
        "choices": Annotated[list[_CHOICE], Field(min_length=1)],
        "usage": having({"prompt_tokens": int}),
    },
    {"model": _Name, "system_fingerprint": _Name | None},
)


class _Again(Exception):
    """What was asked for may succeed when it is asked for again."""


class Answer(NamedTuple):
    """What a server makes of a prompt.

    Attributes:
        key: names the sample.
        tokens: the new token ids, up to what stops them.
        log_probs: of these tokens, in nats.
        of_prompt: of each token of the prompt after its first, in nats; None if the server was not
            asked for them, or does not give them.
    """

    key: str
    tokens: list[int]
    log_probs: list[float]
    of_prompt: list[float] | None


def _is_called(model: Any, name: str) -> bool:
    """Whether the name or the path of a model ends with the parts of a name."""
    parts = PurePath(name).parts
    given = model.root, model.id
    return any(PurePath(each or "").parts[-len(parts) :] == parts for each in given)


def _of_tokens(choice: Any) -> tuple[list[int] | None, list[float | None]]:
    """The ids of an answer's tokens, None if they are not stated, and the log-probabilities."""
    said: Any = choice.logprobs or _LOG_PROBS()
    if said.content is None:
        return choice.token_ids, said.token_logprobs or []
    return [each.id for each in said.content], [each.logprob for each in said.content]


class Endpoint:
    """One model of one server.

    Attributes:
        server: its program: a value of SERVERS, or what it calls itself.
        fingerprint: what its first answer states of its version and its settings, and so every
            other, without the API key; empty if nothing.
        most_tokens: of a prompt and its answer together; infinite if it does not say.
    """

    def __init__(
        self,
        url: str,
        name: str,
        vocabulary: int,
        ends: Iterable[int] = (),
        by_name: bool = True,
    ) -> None:
        """Connect to the server, and ask once for all that is needed.

        Args:
            url: such as http://127.0.0.1:8000, with /v1 or without.
            name: the model's, such as BASE/METHOD; the server's name or path of it ends with these
                parts.
            vocabulary: for how many ids the model has embeddings.
            ends: the model's own end-of-sequence ids.
            by_name: whether a server's only model, too, must have that name.

        Raises:
            InputError: nothing answers there, another model is served, or the server cannot do what
                is needed.
        """
        self.url = f"{url.rstrip('/').removesuffix('/v1')}/v1/"
        self.ends = frozenset(ends)
        self.vocabulary = vocabulary
        self._over = threading.Event()
        self.fingerprint: str | None = None
        self._key = os.environ.get("OPENAI_API_KEY", "").strip()
        if not re.fullmatch("[!-~]*", self._key):
            raise InputError(
                "OPENAI_API_KEY, which is not shown, holds what no key does; set it to the key "
                "alone."
            )
        headers = {"Accept-Encoding": "identity"}
        if self._key:
            headers["Authorization"] = f"Bearer {self._key}"
        self._http = httpx.Client(
            base_url=self.url,
            headers=headers,
            timeout=httpx.Timeout(LONGEST_ANSWER, connect=10),
            trust_env=False,  # a proxy for the internet does not reach a cluster's own hosts
        )
        of_models = functools.partial(_MODELS.model_validate_json, strict=True)
        models = self._send(of_models, "a request for its models").data
        model = next((each for each in models if _is_called(each, name)), None)
        if len(models) == 1 and not by_name:
            model = models[0]
        if model is None:
            served = ", ".join(each.id for each in models) or "no model"
            raise InputError(
                f"{url} serves {self._shown(served)}, not {name}; serve that, or give it that name "
                f"(vLLM: --served-model-name {name})."
            )
        self.model = model.id
        owner = model.owned_by or "an unnamed server"
        self.server = SERVERS.get(owner) or self._shown(owner)
        self.most_tokens = model.max_model_len or math.inf
        first = "a first prompt of token ids, which vLLM, SGLang and llama-server take,"
        self._continue(Request(first, _PROBE, 2))

    def generate(self, requests: Iterable[Request]) -> Iterator[tuple[str, list[int]]]:
        """Continue every prompt greedily; yields (key, new token ids) in the order they finish.

        Raises:
            InputError, NonFiniteError: as of :meth:`answers`.
        """
        return ((answer.key, answer.tokens) for answer in self.answers(requests))

    def scored(self, key: str, prompt: Sequence[int]) -> list[float] | None:
        """The log-probability of each token of a prompt after its first, in nats; None if the
        server gives none. The server makes one token more.

        Raises:
            InputError, NonFiniteError: as of :meth:`answers`.
        """
        return self._continue(Request(key, tuple(prompt), 1), echo=True).of_prompt

    def answers(self, requests: Iterable[Request]) -> Iterator[Answer]:
        """Continue every prompt greedily; yields answers in the order they finish.

        Raises:
            InputError: the server refuses a request, stays silent, or says what is no answer.
            NonFiniteError: a log-probability is not finite; the message names the sample.
        """
        # neighbours share prefixes, which servers keep
        requests = sorted(requests, key=lambda request: request.prompt)
        pool = ThreadPoolExecutor(AT_ONCE)
        try:
            for done in as_completed(
                [pool.submit(self._continue, request) for request in requests]
            ):
                yield done.result()
        except BaseException:
            self._over.set()
            self._http.close()  # what is under way ends, and nothing more is asked
            raise
        finally:
            pool.shutdown(wait=False, cancel_futures=True)

    def _continue(self, request: Request, echo: bool = False) -> Answer:
        body = {
            "model": self.model,
            "prompt": request.prompt,
            "max_tokens": request.max_new_tokens,
            "min_tokens": request.min_new_tokens,
            "stop_token_ids": sorted(self.ends | request.stop),
            **_GREEDY,
        }
        if echo:
            body["echo"] = True
        read = functools.partial(self._answer, request, echo)
        return self._send(read, request.key, body)

    def _answer(self, request: Request, echo: bool, content: bytes) -> Answer:
        """What a reply says; it must say what was asked for, and nothing else. Some servers leave
        out the prompt all the same.

        Raises:
            _Again: the server broke its answer off.
        """
        reply: Any = _REPLY.model_validate_json(content, strict=True)
        choice = reply.choices[0]
        fingerprint = self._without_key(reply.system_fingerprint or "")
        if self.fingerprint is None:
            self.fingerprint = fingerprint
        if choice.finish_reason not in WHOLE:
            raise _Again(f"its answer ends by '{choice.finish_reason}'")
        stated, nats = _of_tokens(choice)
        tokens = stated or []
        asked = len(request.prompt)
        made = len(tokens)
        most = request.max_new_tokens
        echoed = echo and len(nats) == asked + made
        given = len(nats) - asked if echoed else len(nats)
        ends = self.ends | request.stop
        stop = next((i for i, token in enumerate(tokens) if token in ends), made)

        def refuse(wrong: bool, words: str) -> None:
            if wrong:
                raise InputError(f"{request.key}: {self.server} at {self.url} {words}.")

        model = reply.model or self.model
        refuse(
            model != self.model,
            f"answers as {self._shown(model)}, not as {self._shown(self.model)}; "
            "give one that has that model alone",
        )
        refuse(
            fingerprint != self.fingerprint,
            "is another than before; give the same command again to ask it for all",
        )
        read = reply.usage.prompt_tokens
        refuse(read != asked, f"read {read} tokens instead of {asked}; vLLM takes ids as they are")
        refuse(
            stated is None,
            "gives no ids of new tokens; vLLM, llama-server and recent versions of SGLang do",
        )
        refuse(
            choice.finish_reason == "length" and made < most,
            f"made {made} tokens of {most}, because no more fit; start it with a longer context",
        )
        refuse(stop < request.min_new_tokens, "ends an answer before min_tokens; vLLM does not")
        refuse(
            not given == made <= most,
            f"gives {made} tokens and {given} log-probabilities of at most {most}; vLLM does not",
        )
        refuse(
            not all(0 <= token < self.vocabulary for token in tokens),
            f"gives ids that are none of the model's {self.vocabulary}; "
            "let it serve the model's own vocabulary",
        )
        nats = nats[1:] if echoed else nats  # nothing predicts a prompt's first token
        finite = [one for one in nats if one is not None and math.isfinite(one)]
        if len(finite) < len(nats):  # JSON has no NaN; some servers write null
            raise NonFiniteError(f"{request.key}: a log-probability is not finite")
        of_prompt = finite[: asked - 1] if echoed else None
        of_tokens = finite[len(finite) - made :]
        return Answer(request.key, tokens[:stop], of_tokens[:stop], of_prompt)

    def _send(self, read: Callable[[bytes], Any], what: str, body: dict | None = None) -> Any:
        """What `read` makes of a reply; a completion that may succeed later is asked again."""
        for number in range(TRIES if body else 1):
            if number:
                self._over.wait(PAUSE * 2 ** (number - 1))
            try:
                return read(self._content(what, body))
            except ValidationError as error:
                first = error.errors(include_input=False, include_url=False)[0]
                reason = in_one_line(f"{'.'.join(map(str, first['loc']))}: {first['msg']}")
                raise InputError(
                    f"the server at {self.url} does not answer as OpenAI's do ({what}: {reason}); "
                    f"vLLM does."
                ) from error
            except _Again as error:
                reason = self._shown(str(error))
        raise InputError(
            f"the server at {self.url} does not answer {what} ({reason}); start it, or see why in "
            "its log, and give the same command again."
        )

    def _content(self, what: str, body: dict | None) -> bytes:
        """The content of one reply, to a completion or else for the list of models."""
        try:
            reply = functools.partial(self._reply, what, body)
            status, content = hub.within(LONGEST_ANSWER, reply)
        except (TimeoutError, httpx.ReadTimeout) as error:
            raise InputError(
                f"the server at {self.url} does not answer {what} within {LONGEST_ANSWER:,.0f} "
                "seconds; ask for shorter prompts, or give a faster one."
            ) from error
        # the last two are of impossible addresses
        except (httpx.HTTPError, OverflowError, UnicodeError) as error:
            raise _Again(f"{type(error).__name__}: {error}") from None
        if status == 200:
            return content
        reason = f"HTTP {status}: {content.decode(errors='replace')}"
        if status in _RETRIED:
            raise _Again(reason)
        raise InputError(
            f"the server at {self.url} refuses {what} ({self._shown(reason)}); give another, or "
            "correct it."
        )

    def _reply(self, what: str, body: dict | None) -> tuple[int, bytes]:
        """The status and the content of a reply, which is no larger than any that is right."""
        method, path = ("POST", "completions") if body else ("GET", "models")
        tokens = len(body["prompt"]) + body["max_tokens"] if body else 0
        largest = LARGEST + LARGEST_PER_TOKEN * tokens
        content = bytearray()
        with self._http.stream(method, path, json=body) as reply:
            for piece in reply.iter_bytes():
                content += piece
                if len(content) > largest:
                    raise InputError(
                        f"the server at {self.url} answers {what} by over {largest:,} bytes; "
                        "see why."
                    )
        return reply.status_code, bytes(content)

    def _shown(self, said: str) -> str:
        """What the server says, for a terminal or a record: in a line, without the API key."""
        return in_one_line(self._without_key(said))

    def _without_key(self, said: str) -> str:
        """What the server says, with an ellipsis for the API key."""
        # Where bytes or JSON are quoted, a backslash stands before some characters.
        quoted = r"\\*".join(map(re.escape, self._key))
        return re.sub(quoted, "…", said) if self._key else said
