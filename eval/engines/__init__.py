"""What continues prompts: transformers in this process, or vLLM in one of its own.

An engine has a `tokenizer`, the `context_length` that its model states in tokens, and `generate(requests)`, which
continues them greedily and yields (key, new token ids) in the order they are done. For log-likelihoods, `lm` is its
model class of lm-eval, and `model` what transformers loaded; each is None where there is none.
"""
