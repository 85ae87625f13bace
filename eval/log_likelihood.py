"""lm-eval's Hugging Face model class: a prefix that requests share is read only once."""

from __future__ import annotations

import copy
from collections import defaultdict
from collections.abc import Sequence

import torch
from accelerate.utils.memory import should_reduce_batch_size
from lm_eval.models.huggingface import HFLM
from transformers import DynamicCache, PreTrainedTokenizerBase

from core.errors import InputError
from core.huggingface.rotation import at_length, scale_for
from eval import special_tokens
from eval.kv_cache import keeps_tokens, shared_prefix


class SharedPrefixLM(HFLM):
    """lm-eval's Hugging Face model, computing a shared prefix only once.

    HFLM reads the whole prompt again for every answer and computes logits at every position. Here a
    prompt is read once for all its answers, reusing the prefix that it shares with the previous
    prompt (MMLU's examples, TruthfulQA's preamble), and logits are computed for the answers only.
    The log-likelihoods are the same up to rounding.
    """

    def tok_encode(
        self, string: str, add_special_tokens: bool | None = None, **options
    ) -> list[int]:
        """The ids of a text; a tokenizer may have neither BOS nor EOS, whose text HFLM looks for at
        its beginning."""
        if self.prefix_token_id is None and add_special_tokens is None:
            add_special_tokens = True
        return super().tok_encode(string, add_special_tokens, **options)

    @classmethod
    def check(cls, tokenizer: PreTrainedTokenizerBase, context: str, continuation: str) -> None:
        """Refuse an answer to a question that cannot be scored; no model is needed.

        Raises:
            InputError: the answer has no tokens, or the model has no embedding for one of the
                tokens.
        """
        alone = cls.__new__(cls)
        alone.tokenizer = tokenizer
        alone.add_bos_token = None
        alone.custom_prefix_token_id = None
        before, after = alone._encode_pair(context, continuation)
        if not after:
            raise InputError(
                f"the answer {continuation!r} adds no token to the question's; leave it out."
            )
        special_tokens.check_ids(
            tokenizer, before + after, f"the answer {continuation!r} or its question"
        )

    @torch.inference_mode()
    def _loglikelihood_tokens(
        self, requests: Sequence[tuple[tuple[str, str], list[int], list[int]]], **_
    ) -> list[tuple[float, bool]]:
        """For each request (strings, context, continuation): (log-likelihood in nats, whether it is
        the greedy one)."""
        by_scale = defaultdict(lambda: defaultdict(list))
        longest = defaultdict(int)
        for i, (strings, context, continuation) in enumerate(requests):
            if not 0 < len(continuation) <= self.max_length:
                raise InputError(
                    f"the answer {strings[1]!r} has {len(continuation)} tokens, and the model "
                    f"scores 1 to "
                    f"{self.max_length}; leave it out."
                )
            # A text that is too long loses its beginning, and its last token is never read.
            kept = (context + continuation)[-(self.max_length + 1) :]
            scale = scale_for(self.model, len(kept) - 1)
            by_scale[scale][tuple(kept[: -len(continuation)])].append((i, continuation))
            longest[scale] = max(longest[scale], len(kept) - 1)
        answers = {}
        for scale, by_context in by_scale.items():
            with at_length(self.model, longest[scale]):
                answers |= self._answers(by_context)
        return [answers[i] for i in range(len(requests))]

    def _answers(self, by_context: dict[tuple[int, ...], list]) -> dict[int, tuple[float, bool]]:
        """{request: (log-likelihood, whether greedy)} for {context: [(request, continuation)]} of
        one RoPE scale."""
        answers = {}
        shares = keeps_tokens(self.model)
        # Full layers even for sliding-window attention, as only those can be cropped; the mask
        # applies the window.
        cache = DynamicCache()
        held = tuple[int, ...]()
        for context in sorted(by_context):  # neighbours share the longest prefixes
            # The last token's logits score the first of the answer, so it is read with them.
            stem = context[:-1] if shares else ()
            shared = shared_prefix(held, stem)
            if shared:
                cache.crop(shared - len(held))
            else:
                cache = DynamicCache() if shares else None
            if shared < len(stem):
                self.model(
                    self._tensor([stem[shared:]]),
                    past_key_values=cache,
                    use_cache=True,
                    logits_to_keep=1,
                )
            held = stem
            group = sorted(
                by_context[context], key=lambda request: len(request[1])
            )  # least padding
            while group:
                try:
                    answers |= self._score(context[len(stem) :], group[: self.batch_size], cache)
                except RuntimeError as error:
                    if self.batch_size == 1 or not should_reduce_batch_size(error):
                        raise
                    self.batch_size_per_gpu = (
                        self.batch_size // 2
                    )  # permanently: the next prompt is about as long
                else:
                    group = group[self.batch_size :]
        return answers

    def _score(
        self, rest: tuple, batch: list[tuple[int, list[int]]], cache: DynamicCache | None
    ) -> dict[int, tuple]:
        """{request: (log-likelihood, whether greedy)} for answers to the cached prompt and the
        `rest` of its tokens."""
        width = len(batch[-1][1])
        # Padding comes after the answer, where causal attention hides it.
        inputs = self._tensor(
            [[*rest, *answer[:-1]] + [0] * (width - len(answer)) for _, answer in batch]
        )
        branches = copy.deepcopy(cache)
        if branches is not None:
            branches.batch_repeat_interleave(len(batch))
        how = {
            "past_key_values": branches,
            "use_cache": branches is not None,
            "logits_to_keep": width,
        }
        logits = self.model(inputs, **how).logits
        log_probs = torch.nn.functional.log_softmax(logits, dim=-1, dtype=self.softmax_dtype)
        scores = {}
        for (i, answer), scored in zip(batch, log_probs):  # scored: [width, vocabulary]
            tokens = self._tensor(answer)
            scored = scored[: len(answer)]
            scores[i] = (
                float(scored.gather(1, tokens[:, None]).sum()),
                bool((scored.argmax(-1) == tokens).all()),
            )
        return scores

    def _tensor(self, tokens: Sequence) -> torch.Tensor:
        return torch.tensor(tokens, dtype=torch.long, device=self.device)
