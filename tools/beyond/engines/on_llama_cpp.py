"""Losses of a GGUF file by llama.cpp, with a cache in float32, like the reference's; its default is
float16."""

import json
import sys
from importlib.metadata import version
from pathlib import Path

import llama_cpp
import numpy as np

AT_ONCE = 512  # tokens per pass


def main() -> None:
    asked = json.loads(Path(sys.argv[2]).read_text())
    ids = asked["ids"]
    scored = asked["scored"]
    llama_cpp.llama_backend_init()
    model = llama_cpp.llama_model_load_from_file(
        sys.argv[1].encode(), llama_cpp.llama_model_default_params()
    )
    if not model:
        sys.exit("llama.cpp cannot load it")
    settings = llama_cpp.llama_context_default_params()
    settings.n_ctx = asked["length"]
    settings.n_batch = AT_ONCE
    settings.n_ubatch = AT_ONCE
    settings.n_threads = settings.n_threads_batch = asked["threads"]
    settings.type_k = settings.type_v = llama_cpp.GGML_TYPE_F32
    settings.flash_attn_type = llama_cpp.LLAMA_FLASH_ATTN_TYPE_DISABLED
    context = llama_cpp.llama_init_from_model(model, settings)
    if not context:
        sys.exit("llama.cpp cannot serve that many tokens")
    words = llama_cpp.llama_vocab_n_tokens(llama_cpp.llama_model_get_vocab(model))
    # the position whose logits predict the first scored token
    first = len(ids) - 1 - scored
    losses = []
    batch = llama_cpp.llama_batch_init(AT_ONCE, 0, 1)
    for start in range(0, len(ids) - 1, AT_ONCE):
        batch.n_tokens = min(AT_ONCE, len(ids) - 1 - start)
        for i in range(batch.n_tokens):
            batch.token[i] = ids[start + i]
            batch.pos[i] = start + i
            batch.n_seq_id[i] = 1
            batch.seq_id[i][0] = 0
            batch.logits[i] = start + i >= first
        if llama_cpp.llama_decode(context, batch):
            sys.exit(f"llama.cpp fails at token {start}")
        for i in range(max(first - start, 0), batch.n_tokens):
            logits = np.ctypeslib.as_array(
                llama_cpp.llama_get_logits_ith(context, i), (words,)
            ).astype(np.float64)
            top = logits.max()
            losses.append(
                float(top + np.log(np.exp(logits - top).sum()) - logits[ids[start + i + 1]])
            )
    Path(sys.argv[3]).write_text(
        json.dumps({"losses": losses, "version": version("llama_cpp_python")})
    )


main()
