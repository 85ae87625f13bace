"""Compare an extended model in memory with its export, loaded by stock transformers in another process.

    python -m experiments.beyond.exported --scale smollm2 --method dprope --factor 2

Both score the last 1,024 of --tokens tokens of the first book. The second process uses nothing of this repository, only
``AutoModelForCausalLM.from_pretrained`` and cross entropy.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from core import rope
from core.errors import InputError
from core.extend import export
from eval.perplexity import window_losses
from experiments.beyond.loss_by_position import book_tokens
from experiments.kit import command_line, experiment, load_model, records, texts

SCORED = 1024
STOCK = """
import sys
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

directory, text, length, scored = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
model = AutoModelForCausalLM.from_pretrained(directory).eval()
tokenizer = AutoTokenizer.from_pretrained(directory)
tokens = tokenizer(open(text, encoding="utf-8").read(), add_special_tokens=False, return_tensors="pt").input_ids
tokens = tokens[:, :length]
with torch.inference_mode():
    logits = model(tokens[:, :-1], use_cache=False, logits_to_keep=scored).logits[0].float()
print(torch.nn.functional.cross_entropy(logits, tokens[0, -scored:]).exp().item())
"""


def main() -> None:
    parser = experiment.parser(__doc__, "exported", rope.OURS)
    parser.add_argument(
        "--tokens", type=command_line.count, metavar="N", help="tokens of the text to read (default: 9/8 L)"
    )
    parser.add_argument("--text", type=Path, metavar="FILE", help="read this file instead of the first book")
    arguments = parser.parse_args()
    arguments.method = arguments.method or [rope.OURS]
    evaluation = experiment.Evaluation(arguments, "exported")
    length = arguments.tokens or load_model.geometry(evaluation.name).context_length * 9 // 8
    if length <= SCORED:
        raise InputError(f"the last {SCORED} tokens are scored; give more --tokens than that.")
    (book,) = texts.files([arguments.text]) if arguments.text else texts.books(1)

    for run, file in evaluation.runs({book.title: book.sha256}, tokens=length):
        started = time.perf_counter()
        loaded = evaluation.extended(run)
        tokens = book_tokens(loaded.tokenizer, book, length)[:length]
        (losses,) = window_losses(loaded.model, tokens, [(0, length, length - SCORED)])
        memory = float(np.exp(losses.mean()))
        with tempfile.TemporaryDirectory() as folder:
            directory, text = Path(folder) / "exported", Path(folder) / "book.txt"
            export(loaded.model, directory, loaded.tokenizer)
            text.write_text(book.text[: 7 * length], encoding="utf-8")  # as much as book_tokens reads
            fresh = stock_perplexity(directory, text, length)
        scores = {"in_memory": memory, "stock": fresh, "relative_difference": abs(fresh / memory - 1)}
        print(f"perplexity in memory {memory:.6f}, of the export in stock transformers {fresh:.6f}", file=sys.stderr)
        print(records.write(file, run | {"scores": scores, "seconds": round(time.perf_counter() - started, 1)}))


def stock_perplexity(directory: Path, text: Path, length: int) -> float:
    """Perplexity of the last 1,024 of `length` tokens, by stock transformers in a fresh process."""
    command = [sys.executable, "-I", "-c", STOCK, str(directory), str(text), str(length), str(SCORED)]
    done = subprocess.run(command, cwd=directory, check=True, capture_output=True, text=True)
    return float(done.stdout.split()[-1])


if __name__ == "__main__":
    command_line.run(main)
