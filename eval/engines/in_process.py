"""The model that transformers loaded, in this process."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from transformers import PreTrainedModel, PreTrainedTokenizerBase

from core.huggingface.configuration import text_config
from eval.generation import Request, generate


class InProcess:
    """See :mod:`eval.engines`."""

    lm = None  # eval.open_llm makes one from the model

    def __init__(self, model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase) -> None:
        self.model, self.tokenizer = model, tokenizer
        self.context_length = text_config(model.config).max_position_embeddings

    def generate(self, requests: Iterable[Request]) -> Iterator[tuple[str, list[int]]]:
        """See :func:`eval.generation.generate`."""
        return generate(self.model, requests)
