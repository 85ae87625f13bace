"""--endpoint: a server that computes instead of this process."""

from __future__ import annotations

import argparse
from pathlib import Path

from huggingface_hub.utils import httpx

from core import clex, rope
from core.errors import InputError
from core.huggingface import dynamic
from core.huggingface.configuration import text_config
from core.huggingface.rotation import skeleton
from eval.beyond.endpoint import Endpoint
from experiments.kit import command_line, records
from experiments.kit.base_model import BaseModel, own_name

# Servers that compute what this process does, by the type of the models with which that was
# measured: see results/servers.csv. Records of any other server or type are not compared with those
# of this process.
AS_HERE = {("vLLM", "llama")}


def add_argument(to: argparse.ArgumentParser) -> None:
    """Add --endpoint."""
    text = (
        "let a server compute that serves --model and speaks OpenAI's completions, such as "
        "`vllm serve`"
    )
    command_line.option(to, "--endpoint", _url, "URL", text)


def _url(text: str) -> str:
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


def served_name(base: BaseModel, run: dict) -> str:
    """The name of what a server must serve, or its end: BASE/RUN where a method made it, else the
    checkpoint's own.

    A folder that is called as a run is, as that of a fine-tune, comes after the folder that it is
    in.
    """
    own = base.name if base.on_hub else own_name(base.name)
    if run["method"] is None:
        return own
    if not base.extension:
        return f"{own_name(base.name)}/{records.run_of(run)}"
    return f"{Path(base.name).resolve().parent.name}/{own}" if own == records.run_of(run) else own


class Serving:
    """The server, for the run of an experiment."""

    def __init__(self, experiment, dtype: str | None) -> None:
        """
        Args:
            dtype: that of --dtype, if it is given.

        Raises:
            InputError: it cannot be used for these runs, or nobody says in which dtype the server
                computes.
        """
        self.experiment, self.base = experiment, experiment.base
        self._endpoint: Endpoint | None = None
        if len(runs := experiment.comparison()) > 1:
            raise InputError(
                "a server has one model; give one --method, or an exported checkpoint alone."
            )
        if not dtype:
            raise InputError(
                "nobody but you knows in which dtype the server computes; say it by --dtype."
            )
        ((method, _),) = runs
        if self._follows_length(method):  # each server has its own rule
            raise InputError(
                f"{method or self.base.name} chooses its frequencies by the input's length; leave "
                f"--endpoint out."
            )

    def _follows_length(self, method: str | None) -> bool:
        """Whether the frequencies of a method, or of the checkpoint as it is, depend on the input's
        length."""
        if method and not self.base.extension:
            return bool(rope.get(method).start or rope.get(method).by_length)
        if (Path(self.base.source) / clex.FILE).is_file():
            return True
        model = skeleton(self.base.config)
        longest = 2 * self.base.stated_length
        return dynamic.scale_for(model, 1) != dynamic.scale_for(model, longest)

    def facts(self, run: dict) -> tuple[dict, list[str]]:
        """What identifies the server in a record, and the fields of it in which comparable records
        must agree."""
        server, kind = self.at(run).server, self.base.config.model_type
        if (server, kind) in AS_HERE:
            return {"engine": {"name": server}}, []
        print(
            f"note: nobody measured that {server} computes {kind} as this process does; its "
            f"records stand apart."
        )
        return {"engine": {"name": server}}, ["engine"]

    def journal_identity(self, run: dict) -> str:
        """A run's, by this version of the server: what another says is not what this one says."""
        return records.identity(identity=run["identity"], fingerprint=self.at(run).fingerprint)

    def check_length(self, run: dict, tokens: int) -> None:
        """Refuse more tokens of prompt and answer than the model states, or than the server says
        that it takes.

        Past the first servers may compute anything; past the second some silently make fewer new
        ones.
        """
        stated, taken = self.experiment.run_length(run), self.at(run).most_tokens
        if tokens > min(stated, taken):
            raise InputError(
                f"{tokens:,} tokens are asked for, the model states {stated:,}, and the server "
                f"takes {taken:,}; ask "
                "for shorter prompts, or start it with more (vLLM: --max-model-len)."
            )

    def at(self, run: dict) -> Endpoint:
        """The run's model on the server, which is asked once what it can do."""
        if self._endpoint is None:
            name, size = served_name(self.base, run), text_config(self.base.config).vocab_size
            self._endpoint = Endpoint(
                self.experiment.arguments.endpoint, name, size, self.base.stops
            )
        return self._endpoint
