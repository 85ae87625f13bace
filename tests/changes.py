"""A JSON value in which one value after the other is what does not belong there."""

import copy

from core.errors import InputError
from tests.files import write

REMOVED = object()
OTHERS = {
    "null": None,
    "word": "word",
    "list": [],
    "object": {},
    "infinity": float("inf"),
    "beyond": 10**20,
    "removed": REMOVED,
}


def places(value, at=()):
    """The keys of a JSON value, of those that hold alike things the first two, and in them."""
    keys = []
    if isinstance(value, dict):
        keys = list(value) if len(at) < 2 else list(value)[:2]
    elif isinstance(value, list):
        keys = range(min(len(value), 1))
    for key in keys:
        yield (*at, key)
        yield from places(value[key], (*at, key))


def changed(content, at, value):
    """A copy with another value at one place."""
    content = copy.deepcopy(content)
    *outer, last = at
    inside = content
    for key in outer:
        inside = inside[key]
    if value is REMOVED:
        del inside[last]
    else:
        inside[last] = value
    return content


def changes(content):
    """(place, kind, content) of each change."""
    for at in places(content):
        for kind, value in OTHERS.items():
            other = changed(content, at, value)
            if other != content:
                yield at, kind, other


def answers(file, content, use):
    """(place, kind, answer) of each change of a JSON file: what `use` then returns, or the line
    with which it refuses."""
    for at, kind, other in changes(content):
        write(file, other)
        yield at, kind, answer(use)


def answer(use):
    try:
        return use()
    except InputError as error:
        assert "\n" not in str(error)
        return str(error)
