"""A stand-in for a server of OpenAI's completions, with the habits of vLLM or of llama-server."""

import contextlib
import http.server
import json
import threading
import time
from collections.abc import Iterator

import torch

WORDS = 300  # of the vocabulary


def computed_by(model):
    """What a server computes with a model, as :class:`Completions` takes it."""

    @torch.inference_mode()
    def log_probs(ids):
        return torch.log_softmax(model(torch.tensor([ids])).logits[0].double(), -1).tolist()

    return log_probs


class Completions:
    """Serves one model.

    Attributes:
        url: of the server.
        asked: the body of every completion that was asked for.
        next: what happens to the next requests instead: a status, "dies", "slow", a function of the
            answer, or pieces of a reply.
    """

    def __init__(self, log_probs, name="model", owner="vllm", most=4096, models=None):
        """
        Args:
            log_probs: from token ids to log-probabilities [ids, WORDS] of each next one.
            most: the longest prompt and answer.
            models: the list of models, instead of this one.
        """
        self.log_probs = log_probs
        self.name = name
        self.owner = owner
        self.most = most
        self.asked = []
        self.next = []
        self.listed = models
        self.keys = []
        self.fingerprint = "vllm-0.1.2-abc" if owner == "vllm" else "b123"
        handler = type("Handler", (_Handler,), {"served": self})
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self.server.daemon_threads = True
        self.server.handle_error = lambda *_: None  # who asked is gone
        self.url = f"http://127.0.0.1:{self.server.server_port}"

    def __enter__(self):
        threading.Thread(target=self.server.serve_forever, args=(0.02,), daemon=True).start()
        return self

    def __exit__(self, *_):
        self.server.shutdown()
        self.server.server_close()

    def models(self):
        one = {"id": self.name, "owned_by": self.owner, "max_model_len": self.most}
        return {"data": [one] if self.listed is None else self.listed}

    def complete(self, asked):
        """(status, answer)"""
        prompt = asked["prompt"]
        if not prompt or max(prompt) >= WORDS or len(prompt) >= self.most:
            return _refused("an empty prompt, a token out of vocabulary, or too long a prompt")
        tokens, nats, ended = self._decode(asked)
        choice = {"text": "", "finish_reason": ended}
        if self.owner != "vllm":
            content = [{"id": token, "logprob": one} for token, one in zip(tokens, nats)]
            choice["logprobs"] = {"content": content}
        else:
            nats = [*(self._of_prompt(prompt) if asked.get("echo") else []), *nats]
            choice |= {"token_ids": tokens, "logprobs": {"token_logprobs": nats}}
            if any(one != one for one in nats):
                return _refused("Out of range float values are not JSON compliant: nan")
        return 200, {
            "choices": [choice],
            "usage": {"prompt_tokens": len(prompt)},
            "model": self.name,
            "system_fingerprint": self.fingerprint,
        }

    def _of_prompt(self, prompt):
        rows = self.log_probs(prompt[:-1])
        return [None, *(row[token] for row, token in zip(rows, prompt[1:]))]

    def _decode(self, asked):
        """Greedily: tokens, their log-probabilities, and what ended them."""
        prompt = asked["prompt"]
        stops = []
        least = 0
        if self.owner == "vllm":
            stops = asked.get("stop_token_ids", [])
            least = asked.get("min_tokens", 0)
        tokens = []
        nats = []
        # Both servers make fewer in silence.
        for made in range(min(asked["max_tokens"], self.most - len(prompt))):
            now = self.log_probs(prompt + tokens)[-1]
            allowed = [i for i in range(WORDS) if made >= least or i not in stops]
            tokens.append(max(allowed, key=lambda i: now[i]))
            nats.append(now[tokens[-1]])
            if tokens[-1] in stops:
                return tokens, nats, "stop"
        return tokens, nats, "length"


def _refused(why):
    return 400, {"error": {"message": why}}


class _Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def do_GET(self):
        self._send(200, self.served.models())

    def do_POST(self):
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.served.asked.append(asked)
        self.served.keys.append(self.headers["Authorization"])
        instead = self.served.next.pop(0) if self.served.next else None
        if instead == "dies":
            self.close_connection = True
            return
        if instead == "slow":
            time.sleep(0.5)
        if isinstance(instead, Iterator):
            with contextlib.suppress(OSError):  # whoever asked has enough
                self.wfile.writelines(instead)
            self.close_connection = True
            return
        if isinstance(instead, int):
            self._send(instead, {})
            return
        status, answer = self.served.complete(asked)
        if callable(instead):
            instead(answer)
        self._send(status, answer)

    def _send(self, status, answer):
        content = json.dumps(answer).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)


def counting(ids):
    """A model that always knows the next id."""
    return [[0.0 if i == (last + 1) % 300 else -20.0 for i in range(300)] for last in ids]
