"""--endpoint: a server that computes instead of this process."""

from __future__ import annotations

import argparse
import functools
from pathlib import Path

from core import clex, rope
from core.errors import InputError
from core.huggingface.configuration import text_config
from core.huggingface.rotation import skeleton
from eval.endpoint import Endpoint
from experiments.kit import command_line, records
from experiments.kit.base_model import HALF, own_name

# Servers that compute what this process does, by the type of the models with which that was measured: see
# results/servers.csv. Records of any other server or type are not compared with those of this process.
AS_HERE = {("vLLM", "llama")}


def add_argument(to: argparse.ArgumentParser) -> None:
    """Add --endpoint."""
    text = "let a server compute that serves --model and speaks OpenAI's completions, such as `vllm serve`"
    command_line.option(to, "--endpoint", _url, "URL", text)


def _url(text: str) -> str:
    if not text.startswith(("http://", "https://")):
        raise argparse.ArgumentTypeError(f"{text!r} does not begin with http://")
    return text


class Serving:
    """The server, for the run of an experiment."""

    def __init__(self, experiment, dtype: str | None) -> None:
        """
        Args:
            dtype: that of --dtype, if it is given; else the experiment's becomes the checkpoint's, which servers take.

        Raises:
            InputError: it cannot be used for these runs, or nobody says in which dtype the server computes.
        """
        self.experiment, self.base = experiment, experiment.base
        if len(runs := experiment.comparison()) > 1:
            raise InputError("a server has one model; give one --method, or an exported checkpoint alone.")
        if not dtype:
            dtype = str(self.base.config.dtype).removeprefix("torch.")
            if dtype not in HALF:
                raise InputError(f"servers convert {dtype} weights; tell the server a dtype, and say it by --dtype.")
            experiment.arguments.dtype = dtype
        ((method, _),) = runs
        if self._follows_length(method):  # each server has its own rule
            raise InputError(
                f"{method or self.base.name} chooses its frequencies by the input's length; leave --endpoint out."
            )

    def _follows_length(self, method: str | None) -> bool:
        """Whether the frequencies of a method, or of the checkpoint as it is, depend on the input's length."""
        if method and not self.base.extension:
            return bool(rope.get(method).start)
        if (Path(self.base.source) / clex.FILE).is_file():
            return True
        model = skeleton(self.base.config)
        return clex.factor_for(model, 1) != clex.factor_for(model, 2 * self.base.stated_length)

    def facts(self, run: dict) -> tuple[dict, list[str]]:
        """What identifies the server in a record, and the fields of it in which comparable records must agree."""
        server, kind = self.at(run).server, self.base.config.model_type
        if (server, kind) in AS_HERE:
            return {"engine": {"name": server}}, []
        print(f"note: nobody measured that {server} computes {kind} as this process does; its records stand apart.")
        return {"engine": {"name": server}}, ["engine"]

    def at(self, run: dict, tokens: int = 0) -> Endpoint:
        """The run's model on the server; InputError if it cannot read so many tokens."""
        length = self.experiment.run_length(run)
        if tokens > length:
            raise InputError(
                f"{tokens:,} tokens are asked for, and this model states {length:,}, past which servers may compute "
                "anything; ask for shorter prompts."
            )
        extends = run["method"] is not None and not self.base.extension
        endpoint = self._connected(records.run_of(run) if extends else own_name(self.base.name), length)
        endpoint.check_length(tokens)
        return endpoint

    @functools.cache  # noqa: B019 (it lives as long as the command)
    def _connected(self, name: str, length: int) -> Endpoint:
        config = self.base.config
        text_config(config).max_position_embeddings = length
        scores = not hasattr(self.experiment, "request")  # it continues no prompts
        return Endpoint(self.experiment.arguments.endpoint, name, config, self.base.stops, scores)
