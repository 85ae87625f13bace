"""A server that computes instead of this process: --endpoint, which names one, or the command that starts one.

A command is started for each model, once its samples are known, on a copy of the checkpoint whose weights are linked.
The copy states as many tokens as are asked for: servers compute the angles of no more tokens than a configuration
states, and beyond them some read past the end of a table.
"""

from __future__ import annotations

import argparse
import contextlib
import copy
import ctypes
import functools
import shlex
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import psutil
from huggingface_hub.utils import httpx
from transformers import AutoConfig, GenerationConfig

from core import clex, files, rope
from core.errors import InputError
from core.extend import export, extend_checkpoint
from core.huggingface import checkpoint, configuration
from core.huggingface.configuration import EXTENSION, text_config
from core.huggingface.embedding import rope_geometry, rotary_modules, rotates_by
from core.huggingface.rotation import skeleton
from eval.endpoint import SERVERS, Endpoint
from eval.generation import model_stops
from experiments.kit import command_line, given_model, load_model, processes, records

if TYPE_CHECKING:
    from experiments.kit.experiment import Experiment

# Servers that compute what this process does, by the type of the models with which that was measured: see
# results/servers.csv. Records of any other server or type are not compared with those of this process.
AS_HERE = {("vLLM", "llama")}
STARTS_WITHIN = 3600  # seconds
STOPS_WITHIN = 60
LAST_LINES = 8  # of a server's output, which are shown if it does not start


def add_argument(to: argparse.ArgumentParser) -> None:
    """Add --endpoint."""
    text = (
        "let a server compute: URL of one that serves --model and speaks OpenAI's completions, or the COMMAND that "
        "starts one, such as 'vllm serve {model} --dtype {dtype}'"
    )
    command_line.option(to, "--endpoint", _endpoint, "URL|COMMAND", text)


def _endpoint(text: str) -> str:
    if not text.startswith(("http://", "https://")) and "{model}" not in text:
        raise argparse.ArgumentTypeError(f"{text!r} is neither a URL with http:// nor a command with {{model}} in it")
    return text


class Serving:
    """What --endpoint names, for the runs of an experiment."""

    def __init__(self, experiment: Experiment, dtype: str | None) -> None:
        """
        Args:
            dtype: that of --dtype, if it is given; else the experiment's becomes the checkpoint's, which servers take,
                but for a command that has {dtype} and is told what this process would compute in.

        Raises:
            InputError: it cannot be used for these runs, or nobody says in which dtype the server computes.
        """
        self.of, self.given = experiment, experiment.given.endpoint
        self.is_url = self.given.startswith(("http://", "https://"))
        if self.is_url and len(experiment.comparison()) > 1:
            raise InputError("a server has one model; give one --method, or an exported checkpoint alone.")
        if not self.is_url and processes.rank()[1] > 1:
            raise InputError("several processes cannot share a command; start the server, and give them its URL.")
        if not dtype and "{dtype}" not in self.given:
            stated = str(load_model.check_config(experiment.model.name).dtype).removeprefix("torch.")
            if stated not in load_model.HALF:
                raise InputError(f"servers convert {stated} weights; tell the server a dtype, and say it by --dtype.")
            experiment.given.dtype = stated
        for method, _ in experiment.comparison():
            self._refuse_following(method)

    def _refuse_following(self, method: str | None) -> None:
        """Refuse a RoPE whose frequencies follow the input's length; each server has its own rule for them."""
        name, follows = self.of.model.name, bool(method and rope.get(method).start)
        if not follows and (method is None or self.of.model.applied):
            source, model = load_model._resolve(name)[0], skeleton(load_model.check_config(name))
            lengths = 1, 2 * text_config(model.config).max_position_embeddings
            follows = (Path(source) / clex.FILE).is_file() or len({clex.factor_for(model, n) for n in lengths}) > 1
        if follows:
            what = method or name
            raise InputError(f"{what} chooses its frequencies by the input's length; leave --endpoint out.")

    def facts(self, run: dict) -> tuple[dict, list[str]]:
        """What identifies the server in a record, and the fields of it in which comparable records must agree."""
        if self.is_url:
            server = self._at(self.given, run).server
        else:
            server = next((name for name in SERVERS.values() if name.lower() in self.given.lower()), "")
            if not server:
                raise InputError(f"{self.given!r} names none of {', '.join(SERVERS.values())}; start one of these.")
        kind = load_model.check_config(self.of.model.name).model_type
        if (server, kind) in AS_HERE:
            return {"engine": {"name": server}}, []
        print(f"note: nobody measured that {server} computes {kind} as this process does; its records stand apart.")
        return {"engine": {"name": server}}, ["engine"]

    @contextlib.contextmanager
    def serve(self, run: dict, tokens: int) -> Iterator[Endpoint]:
        """The run's model on the server, which is stopped at the end if it was started here.

        Args:
            tokens: the most of a prompt and its answer together.
        """
        if self.is_url:
            if tokens > self._length(run):
                raise InputError(
                    f"{tokens:,} tokens are asked for, and this model states {self._length(run):,}, past which servers "
                    "may compute anything; ask for shorter prompts, or give --endpoint the command of the server."
                )
            endpoint = self._at(self.given, run)
            endpoint.check_length(tokens)
            yield endpoint
            return
        place = self.of.results.resolve().parent / "runs" / "served" / self._name(run)
        log = place.with_name(f"{place.name}.log")
        with files.lock(log):
            try:
                self._export(run, place, tokens)
                with started(self.given, str(place), log, dtype=self.of.given.dtype) as url:
                    endpoint = self._at(url, run)
                    if {"name": endpoint.server} != run["engine"]:
                        raise InputError(f"{self.given!r} starts {endpoint.server}; say so in the command.")
                    endpoint.check_length(tokens)
                    yield endpoint
            finally:
                files.remove(place)

    @functools.cache  # noqa: B019 (it lives as long as the command)
    def _connected(self, url: str, name: str, length: int) -> Endpoint:
        model = self.of.model.name
        source, config = load_model._resolve(model)[0], load_model.check_config(model)
        text_config(config).max_position_embeddings = length
        stated = GenerationConfig.from_model_config(config)
        if source != "random":
            with contextlib.suppress(OSError):  # there is none
                stated = GenerationConfig.from_pretrained(source, **load_model.pin(source))
        scores = not hasattr(self.of, "request")  # it continues no prompts
        return Endpoint(url, name, config, model_stops(stated), scores)

    def _at(self, url: str, run: dict) -> Endpoint:
        return self._connected(url, self._name(run), self._length(run))

    def _length(self, run: dict) -> int:
        """The tokens that the model's configuration states, extended."""
        if self._extends(run):
            return self.of.extended_length
        return text_config(load_model.check_config(self.of.model.name)).max_position_embeddings

    def _extends(self, run: dict) -> bool:
        return run["method"] is not None and not self.of.model.applied

    def _name(self, run: dict) -> str:
        """The name of the directory that is served."""
        return records.run_of(run) if self._extends(run) else given_model.own_name(self.of.model.name)

    def _export(self, run: dict, place: Path, tokens: int) -> None:
        """Write the checkpoint to serve, its weights linked."""
        files.remove(place)
        source, loaded_from = load_model._resolve(self.of.model.name)
        directory = Path(source) if Path(source).is_dir() else None
        if directory is None and source != "random":
            directory = load_model.snapshot(source)
        if not self._extends(run):
            checkpoint.copy(directory, place, link=True)
        elif loaded_from or directory is None:
            export(self.of.extended(run).model, place, load_model.stock_tokenizer(self.of.model.name))
            del self.of.loaded  # its memory is the server's
        else:
            method, options = run["method"], self.of.options(run)
            extend_checkpoint(directory, place, method, run["factor"], link=True, **options)
        state_length(place, tokens)


def state_length(directory: Path, tokens: int) -> None:
    """Let a checkpoint that was extended here state so many tokens, if it states fewer; it rotates as before.

    The factors of all pairs are written, because a type such as `yarn` states its own length.

    Raises:
        InputError: it does not say how it was extended, or its class cannot express it in this form.
    """
    config = AutoConfig.from_pretrained(directory)
    stated = text_config(config).max_position_embeddings
    if tokens <= stated:
        return
    known, scaling = getattr(text_config(config), EXTENSION, None) or {}, None
    if known.get("method") in list(rope.METHODS):
        geometry = rope_geometry(skeleton(config))
        scaling = rope.scale(geometry, known["method"], known["factor"], **known["options"])
        form = configuration.longrope(geometry, scaling, tokens)
        before = copy.deepcopy(config)
        configuration.scale_config(text_config(config), geometry, form, tokens / geometry.context_length)
        configuration.write(directory, config, before)
        again = skeleton(AutoConfig.from_pretrained(directory))
    if not scaling or not all(
        rotates_by(each, text_config(again.config), scaling) for *_, each in rotary_modules(again)
    ):
        raise InputError(
            f"the configuration states {stated:,} tokens, and {tokens:,} are asked for; ask for shorter ones."
        )


@contextlib.contextmanager
def started(command: str, model: str, log: Path, **more: object) -> Iterator[str]:
    """The URL of the server that a command starts for a checkpoint.

    Args:
        command: {model}, {port} and the names of `more` in it are replaced; without {port}, `--port N` is added.
        log: receives the server's output.

    Raises:
        InputError: it cannot be started, ends by itself or does not answer in time; the message has its last lines.
    """
    with socket.socket() as any_free:
        any_free.bind(("127.0.0.1", 0))
        port = any_free.getsockname()[1]
    command += "" if "{port}" in command else " --port {port}"
    words, url = shlex.split(command), f"http://127.0.0.1:{port}/v1"
    for name, value in {"model": model, "port": port, **more}.items():
        words = [word.replace(f"{{{name}}}", str(value)) for word in words]
    print(f"starting {shlex.join(words)}; its output is in {log}", file=sys.stderr)
    log.parent.mkdir(parents=True, exist_ok=True)
    with open(log, "w", encoding="utf-8") as output:
        try:
            server = subprocess.Popen(
                words, stdout=output, stderr=output, stdin=subprocess.DEVNULL, preexec_fn=_end_with_parent
            )
        except OSError as error:
            raise InputError(f"cannot start {words[0]} ({error.strerror}); correct the command.") from error
    try:
        until, why = time.monotonic() + STARTS_WITHIN, ""
        while not why:
            with contextlib.suppress(httpx.HTTPError):
                if httpx.get(f"{url}/models", timeout=10, trust_env=False).status_code < 500:  # even if it wants a key
                    break
            time.sleep(0.2)
            if server.poll() is not None:
                why = f"ended with exit status {server.returncode}"
            elif time.monotonic() > until:
                why = f"does not answer at {url} after {STARTS_WITHIN} s"
        if why:
            said = log.read_text(encoding="utf-8", errors="replace").strip().splitlines()[-LAST_LINES:]
            raise InputError("\n".join([f"{words[0]} {why}; its last lines are:", *said]))
        yield url
    finally:
        every = psutil.Process(server.pid).children(recursive=True) if server.poll() is None else []
        server.terminate()
        with contextlib.suppress(subprocess.TimeoutExpired):
            server.wait(STOPS_WITHIN)
        for process in (*every, server):
            with contextlib.suppress(psutil.Error, ProcessLookupError):
                process.kill()
        server.wait()


def _end_with_parent() -> None:
    """In the server's process: a killed command leaves none behind."""
    ctypes.CDLL(None).prctl(1, signal.SIGTERM)  # PR_SET_PDEATHSIG
