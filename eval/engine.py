"""What continues prompts: requests go in, and (key, new token ids) come out."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from transformers import PreTrainedModel, PreTrainedTokenizerBase

from core.configuration import text_config
from eval.generation import Request, generate


class InProcess:
    """A model in this process.

    Attributes:
        tokenizer: the model's.
        context_length: in tokens, as the model's configuration states it.
    """

    def __init__(self, model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase) -> None:
        self._model, self.tokenizer = model, tokenizer
        self.context_length = text_config(model.config).max_position_embeddings

    def generate(self, requests: Iterable[Request]) -> Iterator[tuple[str, list[int]]]:
        """Continue every prompt greedily; yields (key, new token ids) in the order they finish."""
        return generate(self._model, requests)
