"""How a text becomes the token ids that a model reads.

A prompt begins as the tokenizer begins every text by default, as in the programs of LongBench,
lm-eval and NVIDIA: with <s> for LLaMA2, with nothing for tiny and SmolLM2. It ends with the text
itself. Some tokenizers end every text with EOS, as if nothing followed it; a model that reads EOS
last answers another question.

In a prompt a control token that is spelled out, such as "</s>", is that token, as the benchmarks'
own programs read it. In a book it is characters.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from tokenizers.processors import TemplateProcessing

from core.errors import InputError

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase


def prepared(
    tokenizer: PreTrainedTokenizerBase, embeddings: int | None = None
) -> PreTrainedTokenizerBase:
    """The tokenizer, changed in place so that it puts nothing after a text.

    Args:
        embeddings: for how many ids the model has embeddings; :func:`check_ids` refuses larger ids.

    Raises:
        InputError: the tokenizer cannot be changed so.
    """
    tokenizer.embeddings = embeddings
    before, after = _added(tokenizer)
    if not after:
        return tokenizer
    if tokenizer.is_fast:
        names = tokenizer.convert_ids_to_tokens(before)
        tokenizer.backend_tokenizer.post_processor = TemplateProcessing(
            single=[*names, "$A"], special_tokens=list(zip(names, before))
        )
    else:
        tokenizer.build_inputs_with_special_tokens = lambda ids, pair=None: [*before, *ids]
    if _added(tokenizer) != (before, []):
        last = tokenizer.decode(after)
        raise InputError(
            f"the tokenizer puts {last!r} after every text, so after every prompt; configure it "
            f"not to."
        )
    return tokenizer


def beginning(tokenizer: PreTrainedTokenizerBase, bos: bool | None = None) -> list[int]:
    """The ids that stand before a text.

    Args:
        bos: None for what the tokenizer puts there by default, often nothing or BOS; True for that,
            or for BOS if it is nothing; False for nothing.

    Raises:
        InputError: BOS is asked for, and the tokenizer has none.
    """
    before = [] if bos is False else _added(tokenizer)[0]
    if bos and not before:
        if tokenizer.bos_token_id is None:
            raise InputError("the tokenizer has no BOS token; leave --bos out.")
        return [tokenizer.bos_token_id]
    return before


def as_characters(
    tokenizer: PreTrainedTokenizerBase, texts: list[str], titles: Sequence[str]
) -> list[list[int]]:
    """The ids of each text, with nothing before or after it, where control tokens that are spelled
    out are characters.

    Raises:
        InputError: the tokenizer reads one as a control token all the same.
    """
    read = tokenizer(
        texts,
        split_special_tokens=True,
        add_special_tokens=False,
        return_attention_mask=False,
        return_token_type_ids=False,
        verbose=False,
    ).input_ids
    control = {number for number, token in tokenizer.added_tokens_decoder.items() if token.special}
    control.discard(tokenizer.unk_token_id)  # it stands for unknown characters
    for title, ids in zip(titles, read, strict=True):
        if found := control.intersection(ids):  # some vocabularies list them as words, too
            token = tokenizer.convert_ids_to_tokens(min(found))
            raise InputError(
                f"{title!r} holds {token!r}, which the tokenizer cannot read as characters; take "
                "it out."
            )
    return read


def check_ids(tokenizer: PreTrainedTokenizerBase, ids: Sequence[int], what: str) -> None:
    """Refuse ids that the model has no embedding for, which a :func:`prepared` tokenizer knows.

    Args:
        what: names the text that the ids are of.
    """
    most = getattr(tokenizer, "embeddings", None)
    largest = max(ids, default=0)
    if most is not None and largest >= most:
        raise InputError(
            f"{what} holds {tokenizer.convert_ids_to_tokens(largest)!r}, the tokenizer's token "
            f"{largest}, and the "
            f"model has embeddings for {most} tokens; take it out, or give the model its own "
            f"tokenizer."
        )


def _added(tokenizer: PreTrainedTokenizerBase) -> tuple[list[int], list[int]]:
    """The ids that the tokenizer puts before and after a text by default."""
    text, whole = (
        tokenizer("The 1", add_special_tokens=added).input_ids for added in (False, True)
    )
    for start in range(len(whole) - len(text) + 1 if text else 0):
        if whole[start : start + len(text)] == text:
            return whole[:start], whole[start + len(text) :]
    raise InputError(
        f"the tokenizer reads 'The 1' as {whole}, which does not hold its tokens; give another "
        f"tokenizer."
    )
