"""Search the factors of a model as LongRoPE2 does, by how well it finds a passkey in a long text.

    python -m experiments.beyond.searched --model tiny --factor 2
    python -m experiments.beyond.loss_by_position --model tiny --factor 2 --method factors --file RECORD

All weights are frozen. A genetic search (core/beyond/factor_search.py) starts at LongRoPE2's rule and changes the
factors λ_i of the pairs from the critical one on; those before it follow. A candidate's loss is that of a passkey's
tokens, averaged over --samples texts of L' tokens, each with a key at another depth: what LongRoPE2 calls needle-driven
perplexity (arXiv 2502.20082). The attention factor is LongRoPE's. The record can be given as --file to
`--method factors`. If a run is killed, the same command resumes it and gives the same result.
"""

from __future__ import annotations

import random
import time

import numpy as np
import torch
from tqdm import tqdm

from core import rope
from core.beyond.factor_search import STARTS, search
from core.beyond.methods.given_factors import SEARCHED
from core.beyond.methods.published_rules import critical, longrope_temperature
from core.errors import InputError
from core.extend import extend
from core.huggingface.embedding import apply_scaling
from core.methods.scaling import divide
from eval import passkey
from eval.position_loss import token_losses
from experiments.kit import command_line, records, texts
from experiments.kit.command_line import count, option, seed
from experiments.kit.experiment import Experiment
from experiments.kit.journal import Journal
from experiments.training.corpus import Corpus
from experiments.training.packing import pack


class Searched(Experiment):
    """Escapes the common loop: candidates depend on earlier ones, and a line of the journal is a candidate's loss."""

    __doc__ = __doc__
    name = SEARCHED
    methods = None

    @staticmethod
    def add_options(parser) -> None:
        option(parser, "--seed", seed, "N", "seed of the texts, the keys and the search", 0)
        data = "hide the keys in the .txt or .parquet files in DIR; or in `hub` (PG19) or `books`, the packaged books"
        option(parser, "--corpus", str, "DIR", data, "books")
        option(parser, "--samples", count, "N", "texts, each with a key", 10)
        size = f"candidates before the first generation, {2 * STARTS} or more; a generation adds a quarter as many"
        option(parser, "--population", count, "N", size, 128)
        option(parser, "--generations", count, "N", "how often the best are mutated and crossed", 60)
        pair = "the first pair whose factor is searched (default: the theoretical one)"
        option(parser, "--critical-pair", count, "C", pair)
        texts.add_bos_argument(parser)

    def run(self) -> None:
        given, geometry = self.arguments, self.base.geometry
        start, length, corpus = critical(geometry, given.critical_pair), self.extended_length, Corpus(given.corpus)
        settings = {name: getattr(given, name) for name in ("samples", "population", "generations")}
        run = {
            "scale": self.base.folder,
            "experiment": self.name,
            "method": SEARCHED,
            "factor": self.factor,
            "options": {},
            "seed": given.seed,
            "length": length,
            "critical_pair": start,
            "model": self.base.provenance,
            "dtype": given.dtype,
            "data": corpus.source if corpus.source == "books" else corpus.fingerprint,  # its content, not its path
            **settings,
            **texts.bos_for_record(self.bos),
        }
        file = self.to_measure(run, records.run_name(self.name, self.factor, {}, given.seed))
        if file is None:
            return
        search(geometry.pairs, start, self.factor, lambda factors: 0.0, given.population, 0)  # refuses before loading
        cache = self.results.resolve().parent / "runs" / "data"
        data = pack(corpus, self.base.tokenizer, length, given.samples, 1, given.seed, cache, self.bos)
        samples = [needle(self.base.tokenizer, data[i]["input_ids"], i / given.samples, f"{given.seed} {i}", self.bos)
                   for i in range(given.samples)]  # fmt: skip
        temperature, seconds = longrope_temperature(geometry, self.factor), []
        model = extend(self.loaded, rope.ORIGINAL, self.factor)  # whatever its configuration said before
        place = self.journal_path(file, run["identity"])
        with (
            Journal(place.with_name(f"{place.name}.0.jsonl")) as journal,
            tqdm(desc="searching", unit="factors") as bar,
        ):

            def loss(factors: np.ndarray) -> float:
                key = f"candidate {len(seconds)}"
                if key not in journal:
                    started = time.perf_counter()
                    apply_scaling(model, geometry, divide(geometry, self.factor, factors, temperature), self.factor)
                    value = float(np.mean([needle_loss(model, *sample) for sample in samples]))
                    journal.add(key, {"value": value, "seconds": round(time.perf_counter() - started, 3)})
                seconds.append(journal[key]["seconds"])
                bar.update(1)
                return journal[key]["value"]

            found = search(geometry.pairs, start, self.factor, loss, given.population, given.generations, given.seed)
        result = {
            "factors": found.factors.tolist(),
            "attention_factor": temperature,
            "losses": found.losses,
            "generations_least": found.generations,
            "data_facts": data.facts,
        }
        self.finish(run | result, file, sum(seconds))


def needle(tokenizer, text: torch.Tensor, depth: float, name: str, bos: list[int]) -> tuple[torch.Tensor, int]:
    """A text of ids with a passkey in it, asked for and answered at its end, as long as the text: (ids, answer's ids).

    Args:
        text: int64 [length].
        depth: where the key stands, from 0 to 1.
        name: decides the key's digits.

    Raises:
        InputError: the text is too short.
    """

    def ids(words: str) -> list[int]:
        return tokenizer(words, add_special_tokens=False).input_ids

    key = str(random.Random(name).randint(10000, 99999))
    begin, hidden = [*bos, *ids(passkey.INTRODUCTION)], ids(passkey.KEY.format(key=key))
    end, answered = ids(passkey.QUESTION), ids(f"{passkey.QUESTION} {key}")
    room = len(text) - len(begin) - len(hidden) - len(answered)
    if room < 1:
        raise InputError(f"a passkey and its question do not fit in {len(text)} tokens; give a greater factor.")
    kept, place = text.tolist()[:room], round(depth * room)
    return torch.tensor([*begin, *kept[:place], *hidden, *kept[place:], *answered]), len(answered) - len(end)


@torch.inference_mode()
def needle_loss(model, ids: torch.Tensor, answer: int) -> float:
    """The mean loss of the last `answer` ids, in nats."""
    ids = ids.to(model.device)
    logits = model(ids[None, :-1], use_cache=False, logits_to_keep=answer).logits[0]
    return float(token_losses(logits, ids[-answer:]).mean())


main = Searched.main

if __name__ == "__main__":
    command_line.run(main)
