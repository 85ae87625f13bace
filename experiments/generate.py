"""Let a model continue a prompt greedily. With --method, the model is extended in memory first.

python -m experiments.generate --model DIR --prompt "Once upon a time"
python -m experiments.generate --model smollm2 --method dprope --factor 2 --prompt-file BOOK.txt
"""

from __future__ import annotations

import sys
from pathlib import Path

import torch
from transformers import TextStreamer

from core.clex import at_length
from core.errors import InputError, check_texts
from core.extend import extend
from eval import special_tokens
from experiments.kit import command_line, given_model, load_model, texts


def main() -> None:
    parser = command_line.parser(__doc__, prog="python -m experiments.generate")
    given_model.add_argument(parser, required=True)
    command_line.add_method_arguments(parser)
    prompt = parser.add_mutually_exclusive_group(required=True)
    prompt.add_argument("--prompt", metavar="TEXT", help="the text to continue")
    prompt.add_argument("--prompt-file", type=Path, metavar="FILE", help="continue the whole text of this file")
    command_line.option(parser, "--tokens", command_line.count, "N", "how many to generate", 60)
    command_line.add_dtype_argument(parser)
    arguments = parser.parse_args()
    command_line.check_method(arguments)

    text = arguments.prompt if arguments.prompt_file is None else texts.read(arguments.prompt_file)
    where = str(arguments.prompt_file or "--prompt")
    check_texts([text], where)
    tokenizer = load_model.tokenizer(arguments.model)
    ids = tokenizer(text).input_ids
    if not tokenizer(text, add_special_tokens=False).input_ids:
        raise InputError("the prompt is empty; give the model something to continue.")
    special_tokens.check_ids(tokenizer, ids, where)
    loaded = load_model.load(arguments.model, load_model.chosen_dtype(arguments.dtype, arguments.model))
    if arguments.method:
        extend(loaded.model, arguments.method, arguments.factor, **command_line.method_options(arguments))

    window = loaded.model.config.get_text_config().max_position_embeddings
    length = len(ids) + arguments.tokens
    if length > window:
        print(f"note: {length:,} tokens reach past the model's context of {window:,}.", file=sys.stderr)
    print(text[-300:], end="", flush=True)
    prompt = torch.tensor([ids], device=loaded.model.device)
    with at_length(loaded.model, length):
        loaded.model.generate(
            prompt,
            attention_mask=torch.ones_like(prompt),
            max_new_tokens=arguments.tokens,
            do_sample=False,
            streamer=TextStreamer(tokenizer, skip_prompt=True, skip_special_tokens=True),
            pad_token_id=tokenizer.eos_token_id,
        )


if __name__ == "__main__":
    command_line.run(main)
