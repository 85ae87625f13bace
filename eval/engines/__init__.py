"""The engines that continue prompts: transformers in this process, or vLLM in a process of its own.

An engine has a `tokenizer`, the `context_length` in tokens that its model's configuration states, and
`generate(requests)`, which continues prompts greedily and yields (key, new token ids) in the order they finish. For
log-likelihoods it has `lm`, a model class of lm-eval, or `model`, which transformers loaded; the other is None.
"""
