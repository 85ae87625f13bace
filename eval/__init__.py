"""The benchmarks: prompts, metrics, generation, perplexity and intervals; and what a model is asked
to continue."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Request:
    """A prompt to continue.

    Attributes:
        key: names the sample.
        prompt: its token ids; at least one.
        max_new_tokens: the most tokens to generate.
        stop: token ids that end the continuation, besides the model's own; they are not returned.
        min_new_tokens: how many tokens to generate before one of these may end it.
    """

    key: str
    prompt: tuple[int, ...]
    max_new_tokens: int
    stop: frozenset[int] = frozenset()
    min_new_tokens: int = 0
