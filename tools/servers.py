"""Compare a server's answers with those of this process, prompt by prompt: passkeys, RULER and Open LLM on tiny.

    python -m tools.servers 'vllm serve {model} --dtype {dtype}'     writes the table results/servers.csv

The server is started, or named by its URL, as by --endpoint; its model is tiny extended by YaRN. Answers are the same
if all token ids are, and documents of Open LLM if their scores differ by less than 1e-3.
"""

from __future__ import annotations

import csv
import io
import re
import sys
import tempfile
from collections.abc import Iterator

from core import files, rope
from eval.endpoint import Endpoint
from eval.generation import generate
from experiments.kit import command_line, records
from experiments.kit.experiment import Experiment
from experiments.open_llm import OpenLLM
from experiments.passkey import Passkey
from experiments.ruler import Ruler

TABLE = records.ROOT / "results" / "servers.csv"
MODEL, METHOD = "tiny", rope.BASELINE
ASKED = {
    Passkey: ("--lengths", "512", "1024", "2048", "--keys", "1"),
    Ruler: ("--lengths", "1024", "2048", "--samples", "1"),
    OpenLLM: ("--limit", "20"),
}
SAME = 1e-3


def rows(endpoint: str) -> Iterator[dict]:
    """A row for each benchmark."""
    place = records.ROOT / "build"  # where weights can be linked
    place.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(dir=place) as scratch:
        how = ["--model", MODEL, "--method", METHOD, "--dtype", "float32", "--endpoint", endpoint, "--results"]
        asked, here = [], {}
        for kind, options in ASKED.items():
            sys.argv = [kind.name, *how, f"{scratch}/results", *options]
            experiment = kind(kind.parse())
            settings = experiment.settings()
            ((run, _),) = experiment.runs(experiment.data(), **settings)
            experiment.check(run, list(experiment.content))
            here[experiment] = answers(experiment, run, None)
            asked.append((experiment, run))
        first, run = asked[0]
        with first.serving.serve(run, max(experiment.longest for experiment, _ in asked)) as at:
            version = re.search(r"\d+(\.\d+)+", at.fingerprint)
            about = {"server": at.server, "version": version[0] if version else "", "model": MODEL, "method": METHOD}
            for experiment, run in asked:
                there = answers(experiment, run, at)
                for name in experiment.arguments.tasks if isinstance(experiment, OpenLLM) else [experiment.name]:
                    same = [_same(made, there[key]) for key, made in here[experiment].items()
                            if name in (experiment.name, key.split("/")[0])]  # fmt: skip
                    yield about | {"benchmark": name, "prompts": len(same), "same": sum(same)}


def _same(one: list[int] | dict, other: list[int] | dict) -> bool:
    return abs(one["score"] - other["score"]) < SAME if isinstance(one, dict) else one == other


def answers(experiment: Experiment, run: dict, at: Endpoint | None) -> dict:
    """By key, the new token ids, or a document's score."""
    experiment.endpoint = at
    if isinstance(experiment, OpenLLM):
        return dict(experiment.measure(run, list(experiment.content)))
    return dict(at.generate(experiment.requests) if at else generate(experiment.extended(run), experiment.requests))


def main() -> None:
    parser = command_line.parser(__doc__, prog="python -m tools.servers")
    parser.add_argument("endpoint", help="the server's URL, or the command that starts it")
    text, endpoint = io.StringIO(newline=""), parser.parse_args().endpoint
    writer = csv.DictWriter(text, ("server", "version", "model", "method", "benchmark", "prompts", "same"))
    writer.writeheader()
    for row in rows(endpoint):
        print(*row.values(), flush=True)
        writer.writerow(row)
    files.write(TABLE, text.getvalue().replace("\r\n", "\n").encode())
    print(TABLE)


if __name__ == "__main__":
    command_line.run(main)
