"""What computes: this process, unless an experiment has a server do it.

What imports torch is imported where it is needed, so that --help comes at once.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from transformers import PreTrainedModel

    from eval import Request
    from experiments.kit.command import Command


class Engine:
    """This process, with the model of a command.

    Attributes:
        dtype: that in which the model is evaluated.
    """

    def __init__(self, command: Command) -> None:
        self.model = command.model
        self.factor = command.factor
        self.dtype = command.model.chosen_dtype(command.arguments.dtype)

    def facts(self) -> tuple[dict, list[str]]:
        """What identifies it in a record, and the fields of that in which comparable records must
        agree."""
        return {}, []

    def of_machine(self) -> dict:
        """What a record's environment says of it: on a GPU, how attention was computed."""
        loaded = vars(self).get("_loaded")
        if loaded is None or loaded.device.type != "cuda":
            return {}
        return {"attention": loaded.config._attn_implementation}

    def journal_identity(self, identity: str) -> str:
        """A run's, as this engine computes it."""
        return identity

    @functools.cached_property
    def _loaded(self) -> PreTrainedModel:
        """The model, loaded when first needed, once."""
        return self.model.load(self.dtype)

    def extended(self, method: str | None, options: dict) -> Any:
        """The model with a method applied; without one, and if it is extended already, as it is."""
        from core.extend import extend

        if method is not None and not self.model.extension:
            extend(self._loaded, method, self.factor, **options)
        return self._loaded

    def check_length(self, tokens: int, stated: int) -> None:
        """Refuse prompts that it cannot take: here the model reads all.

        Args:
            tokens: of the longest prompt with its answer.
            stated: the context length of the model with the run's method.
        """

    def generate(self, model: Any, requests: list[Request]) -> Iterator[tuple[str, list[int]]]:
        """The key of each prompt and the tokens that continue it."""
        from eval.generation import generate

        return generate(model, requests)
