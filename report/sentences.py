"""Whether the records bear out the sentences of a page.

People write the words of a page, and a list says what the words assume: by a quotation of the
sentence that rests on it, see :mod:`report.assumed`.
"""

import os
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from core.errors import InputError
from records import BEYOND

# What a sentence's words suppose, and whether the records bear it out. The words stand in the
# template as they are quoted, however its lines are broken.
Assumptions = Iterable[tuple[str, bool]]

# The folders of the templates of pages, the paper's and those beyond it.
FOLDERS = [Path(__file__).parent / "templates", Path(__file__).parent / BEYOND / "templates"]


def check(text: str, assumptions: Assumptions, page: Path) -> None:
    """Refuses a page with a sentence that the records no longer bear out.

    Args:
        page: where the text is to stand.

    Raises:
        InputError: there is such a sentence, or words are not on the page.
    """
    false = []
    for words, holds in assumptions:
        places = len(_quoted(words).findall(text))
        if places != 1:
            has = f"{places} places" if places else "no sentence"
            raise InputError(
                f'{page} has {has} with "{words}"; correct the quotation in assumed.py.'
            )
        if not holds:
            false.append(f'"{words}" ({", ".join(_sources(words))})')
    if false:
        told = "\n".join([f"the records no longer bear out, in {os.path.relpath(page)}:", *false])
        raise InputError(f"{told}\nRewrite it there, and what it assumes in assumed.py.")


def _quoted(words: str) -> re.Pattern:
    return re.compile(r"\s+".join(map(re.escape, words.split())))


def _sources(words: str) -> Iterator[str]:
    """The templates that have these words."""
    for folder in FOLDERS:
        for file in sorted(folder.glob("*.md")):
            if _quoted(words).search(file.read_text(encoding="utf-8")):
                yield os.path.relpath(file)
