"""Compare a server's answers with those of this process, prompt by prompt: passkeys, RULER and Open LLM on tiny.

    python -m tools.servers 'vllm serve {model} --dtype {dtype}'     writes the table results/servers.csv

The server is started for each extended model, as by --endpoint. Answers are the same if all token ids are, and
documents of Open LLM if their scores differ by less than 1e-3.
"""

from __future__ import annotations

import csv
import io
import re
import sys
import tempfile
from collections.abc import Iterator

from core import files, rope
from eval.generation import generate
from experiments.kit import command_line, records
from experiments.kit.experiment import Experiment
from experiments.kit.generation import Generation
from experiments.open_llm import OpenLLM
from experiments.passkey import Passkey
from experiments.ruler import Ruler

TABLE = records.ROOT / "results" / "servers.csv"
MODEL, METHODS = "tiny", (rope.RIVAL, rope.OURS)
# Some passkeys lie beyond L' = 2048, where a server has to be given a longer context.
ASKED = {
    Passkey: ("--lengths", "512", "1024", "2048", "2560", "--keys", "1"),
    Ruler: ("--lengths", "1024", "2048", "--samples", "1"),
    OpenLLM: ("--limit", "20"),
}
SAME = 1e-3


def rows(command: str) -> Iterator[dict]:
    """A row for each method and benchmark."""
    place = records.ROOT / "build"  # where weights can be linked
    place.mkdir(exist_ok=True)
    for kind, options in ASKED.items():
        with tempfile.TemporaryDirectory(dir=place) as scratch:
            how = ["--model", MODEL, "--method", *METHODS, "--endpoint", command, "--results", f"{scratch}/results"]
            sys.argv = [kind.name, *how, *options]
            experiment = kind(kind.parse())
            settings = experiment.settings()
            for run, _ in experiment.runs(experiment.data(), **settings):
                yield from compared(experiment, run)


def compared(experiment: Experiment, run: dict) -> Iterator[dict]:
    """The rows of one method and one experiment."""
    keys = list(experiment.content)
    experiment.check(run, keys)
    experiment.endpoint = None
    here = answers(experiment, run, keys)
    with experiment.serving.serve(run, experiment.longest) as experiment.endpoint:
        there = answers(experiment, run, keys)
    version = re.search(r"\d+(\.\d+)+", experiment.endpoint.fingerprint)
    about = {"server": experiment.endpoint.server, "version": version[0] if version else "", "model": MODEL}
    benchmarks = [experiment.name] if isinstance(experiment, Generation) else experiment.given.tasks
    for name in benchmarks:
        of = [key for key in keys if key.startswith(f"{name}/")] or keys
        if isinstance(experiment, Generation):
            same = sum(here[key] == there[key] for key in of)
        else:
            same = sum(abs(here[key]["score"] - there[key]["score"]) < SAME for key in of)
        yield about | {"method": run["method"], "benchmark": name, "prompts": len(of), "same": same}


def answers(experiment: Experiment, run: dict, keys: list[str]) -> dict:
    """By key, the new token ids, or a document's score."""
    if not isinstance(experiment, Generation):
        return dict(experiment.measure(run, keys))
    asked = experiment.requests
    here = experiment.endpoint is None
    return dict(generate(experiment.extended(run).model, asked) if here else experiment.endpoint.generate(asked))


def main() -> None:
    parser = command_line.parser(__doc__, prog="python -m tools.servers")
    parser.add_argument("command", type=command_line.server, help="starts the server; {model} is the checkpoint")
    text, command = io.StringIO(newline=""), parser.parse_args().command
    writer = csv.DictWriter(text, ("server", "version", "model", "method", "benchmark", "prompts", "same"))
    writer.writeheader()
    for row in rows(command):
        print(*row.values(), flush=True)
        writer.writerow(row)
    files.write(TABLE, text.getvalue().replace("\r\n", "\n").encode())
    print(TABLE)


if __name__ == "__main__":
    command_line.run(main)
