"""The sentences of a page that the records bear out.

People write the words of a page, and a list says what the words assume: by a quotation of the
sentence that rests on it, see :mod:`report.assumed`.
"""

import os
import re
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

from core.errors import InputError
from records import BEYOND

# What a sentence's words suppose, and whether the records bear it out. The words stand in the
# template as they are quoted, however its lines are broken.
Assumptions = Iterable[tuple[str, bool]]

# The folders of the templates of pages, the paper's and those beyond it.
FOLDERS = [Path(__file__).parent / "templates", Path(__file__).parent / BEYOND / "templates"]

# Between two sentences: a blank line, a mark of a list, the bar of a table, or the space after a
# full stop, which may stand before the end of bold print.
_BREAK = re.compile(r"\n\s*\n|^ *(?:- |\d+\. |\|)|(?:(?<=[.?!])|(?<=[.?!]\*\*))\s+", re.MULTILINE)
_EMPTY_ITEM = re.compile(r"^ *(?:-|\d+\.) *\n", re.MULTILINE)


def borne_out(text: str, assumptions: Assumptions, page: Path, strict: bool) -> str:
    """The page's text, without the sentences that the records no longer bear out.

    Args:
        page: where the text is to stand.
        strict: refuse the page instead.

    Raises:
        InputError: the records do not bear out a sentence, or words are not on the page.
    """
    false = {}
    for words, holds in assumptions:
        places = [*_quoted(words).finditer(text)]
        if len(places) != 1:
            has = f"{len(places)} places" if places else "no sentence"
            raise InputError(
                f'{page} has {has} with "{words}"; correct the quotation in assumed.py.'
            )
        if not holds:
            false[_sentence(text, places[0])] = ", ".join(_sources(words))
    if not false:
        return text
    named = [f'"{" ".join(text[slice(*place)].split())}" ({of})' for place, of in false.items()]
    told = "\n".join([f"the records no longer bear out, in {os.path.relpath(page)}:", *named])
    if strict:
        raise InputError(f"{told}\nRewrite it there, and what it assumes in assumed.py.")
    print(f"{told}\nThe page is written without that.", file=sys.stderr)
    for start, end in sorted(false, reverse=True):
        text = text[:start] + re.sub(r"\A +|\A\n *(?=[^\s|\d-])", "", text[end:])
    return _EMPTY_ITEM.sub("", text)


def _quoted(words: str) -> re.Pattern:
    return re.compile(r"\s+".join(map(re.escape, words.split())))


def _sentence(text: str, found: re.Match) -> tuple[int, int]:
    """Where the sentence begins and ends that has these words, or the row of a table."""
    row = text.rfind("\n", 0, found.start()) + 1
    if text.startswith("|", row):
        after = text.find("\n", found.end())
        return row, after + 1 if after >= 0 else len(text)
    start = max((each.end() for each in _BREAK.finditer(text, 0, found.start())), default=0)
    after = _BREAK.search(text, found.end())
    return start, after.start() if after else len(text)


def _sources(words: str) -> Iterator[str]:
    """The templates that have these words."""
    for folder in FOLDERS:
        for file in sorted(folder.glob("*.md")):
            if _quoted(words).search(file.read_text(encoding="utf-8")):
                yield os.path.relpath(file)
