"""--endpoint: a server that computes instead of this process."""

from __future__ import annotations

import argparse
import functools
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from huggingface_hub.utils import httpx

import records
from core import CLEX_FILE, rope
from core.discovery import later
from core.errors import InputError
from experiments.kit.engine import Engine

if TYPE_CHECKING:
    from core.huggingface import configuration, rotation
    from eval.beyond import endpoint
    from eval.beyond.endpoint import Endpoint
    from experiments.kit import model as models
    from experiments.kit.experiment import Experiment
    from experiments.kit.model import Model
else:
    configuration, rotation, endpoint, models = later(
        "core.huggingface.configuration",
        "core.huggingface.rotation",
        "eval.beyond.endpoint",
        "experiments.kit.model",
    )

# Servers that compute what this process does, by the type of the models with which that was
# measured: see results/servers.csv. Records of any other server or type are not compared with those
# of this process.
AS_HERE = {("vLLM", "llama")}
HELP = (
    "let a server compute that serves --model and speaks OpenAI's completions, such as `vllm serve`"
)


def address(text: str) -> str:
    """The address of a server."""
    try:
        url = httpx.URL(text)
    except httpx.InvalidURL:
        url = httpx.URL()
    if (
        url.scheme not in ("http", "https")
        or not url.host
        or url.userinfo
        or url.query
        or url.fragment
    ):
        raise argparse.ArgumentTypeError(
            "give an address such as http://127.0.0.1:8000; a key is in OPENAI_API_KEY"
        )
    return text


def served_name(model: Model, method: str | None, factor: float, options: dict) -> str:
    """The name of what a server must serve, or its end: BASE/RUN where a method made it, else the
    checkpoint's own.

    A folder that is called as a run is, as that of a fine-tune, comes after the folder that it is
    in.
    """
    own = model.name if model.source.on_hub else models.own_name(model.name)
    if method is None:
        return own
    run = {
        "method": method,
        "factor": factor,
        "options": rope.stated_options(method, options),
        "training": model.training["run"] if model.training else {},
    }
    name = records.run_of(run)
    if not model.extension:
        return f"{models.own_name(model.name)}/{name}"
    return f"{Path(model.name).resolve().parent.name}/{own}" if own == name else own


def follows_length(model: Model, method: str | None) -> bool:
    """Whether the frequencies of a method, or of the checkpoint as it is, depend on the input's
    length; each server has its own rule for that."""
    if method and not model.extension:
        return bool(rope.get(method).start or rope.get(method).by_length)
    if model.source.file(CLEX_FILE):
        return True
    skeleton = rotation.skeleton(model.config)
    longest = 2 * model.stated_length
    return rotation.scale_for(skeleton, 1) != rotation.scale_for(skeleton, longest)


class Serving(Engine):
    """The server, for the run of an experiment."""

    def __init__(self, experiment: Experiment) -> None:
        """
        Raises:
            InputError: it cannot be used for these runs, or nobody says in which dtype the server
                computes.
        """
        super().__init__(experiment)
        self.address: str = experiment.arguments.endpoint
        runs = experiment.comparison()
        if len(runs) > 1:
            raise InputError(
                "a server has one model; give one --method, or an exported checkpoint alone."
            )
        if not experiment.arguments.dtype:
            raise InputError(
                "nobody but you knows in which dtype the server computes; say it by --dtype."
            )
        ((method, options),) = runs
        if follows_length(self.model, method):
            raise InputError(
                f"{method or self.model.name} chooses its frequencies by the input's length; leave "
                f"--endpoint out."
            )
        self.name = served_name(self.model, method, experiment.factor, options)

    def facts(self) -> tuple[dict, list[str]]:
        """What identifies the server in a record, and the fields of it in which comparable records
        must agree."""
        server = self.endpoint.server
        kind = self.model.config.model_type
        if (server, kind) in AS_HERE:
            return {"engine": {"name": server}}, []
        print(
            f"note: nobody measured that {server} computes {kind} as this process does; its "
            f"records stand apart."
        )
        return {"engine": {"name": server}}, ["engine"]

    def of_machine(self) -> dict:
        return {"fingerprints": [self.endpoint.fingerprint]}

    def journal_identity(self, identity: str) -> str:
        """A run's, by this version of the server: what another says is not what this one says."""
        return records.identity(identity=identity, fingerprint=self.endpoint.fingerprint)

    def check_length(self, tokens: int, stated: int) -> None:
        """Refuse more tokens of prompt and answer than the model states, or than the server says
        that it takes.

        Past the first servers may compute anything; past the second some silently make fewer new
        ones.

        Args:
            tokens: of the longest prompt with its answer.
            stated: the context length of the model with the run's method.
        """
        taken = self.endpoint.most_tokens
        if tokens > min(stated, taken):
            raise InputError(
                f"{tokens:,} tokens are asked for, the model states {stated:,}, and the server "
                f"takes {taken:,}; ask "
                "for shorter prompts, or start it with more (vLLM: --max-model-len)."
            )

    def extended(self, method: str | None, options: dict) -> Endpoint:
        return self.endpoint

    def generate(self, model: Endpoint, requests: list) -> Iterator[tuple[str, list[int]]]:
        return model.generate(requests)

    @functools.cached_property
    def endpoint(self) -> Endpoint:
        """The run's model on the server, which is asked once what it can do."""
        size = configuration.text_config(self.model.config).vocab_size
        return endpoint.Endpoint(self.address, self.name, size, self.model.stops)
