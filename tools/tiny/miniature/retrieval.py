"""Retrieval tasks: facts about a key hidden in filler, passkeys, chains of variables, counts."""

import random
from itertools import pairwise

from tools.tiny.miniature import words
from tools.tiny.miniature.sample import Sample, Source, Turn, hide

# (introduction, fact, question). The first is RULER's form for one value of one key.
_FORMS = (
    (
        "A special magic number is hidden within the following text. Make sure to memorize it. "
        "I will quiz you about the number afterwards.\n",
        "One of the special magic numbers for {k} is: {v}.",
        "\nWhat is the special magic number for {k} mentioned in the provided text? "
        "The special magic number for {k} mentioned in the provided text is",
    ),
    ("", "The code of {k} is {v}.", "\nWhat is the code of {k}? The code of {k} is"),
    ("", "{k}: {v}.", "\n{k}:"),
    (
        "Read the list and answer.\n",
        "{k} has the number {v}.",
        "\nWhich number does {k} have? Answer:",
    ),
    ("", "Remember that {k} weighs {v} grams.", "\nHow much does {k} weigh? It weighs"),
    ("", "In the register, {k} stands under {v}.", "\nIn the register, {k} stands under"),
)


def recall(rng: random.Random, source: Source, length: int, turns: int) -> Sample:
    """Key-value recall: which number belongs to a key."""
    introduction, form, question = _FORMS[0] if rng.random() < 0.35 else rng.choice(_FORMS[1:])
    unasked = rng.randint(0, turns // 2)
    pairs = [
        (k, words.number(rng, source.split)) for k in words.keys(rng, source.split, turns + unasked)
    ]
    room = length - source.count(introduction := introduction if length >= 96 else "")
    items = [(form.format(k=k, v=v), Turn(question.format(k=k), v)) for k, v in pairs]
    texts = {
        fact: (f" {fact}", turn.text)[: 2 if index < turns else 1]
        for index, (fact, turn) in enumerate(items)
    }
    facts, cost = source.fit(texts, room, texts.get, least=1)
    asked = [turn for _, turn in items[: min(turns, len(facts))]]
    rng.shuffle(facts)
    rng.shuffle(asked)
    return Sample(
        introduction + hide(rng, source.filler(rng, room - cost - 4), facts), tuple(asked)
    )


_PASSKEYS = (
    ("\nThe {n} is {v}. Remember it. {v} is the {n}.\n", "\nWhat is the {n}? The {n} is"),
    ("\nThe {n} is {v}.\n", "\nWhat is the {n}? The {n} is"),
    ("\nNote the {n}: {v}.\n", "\nQuestion: what is the {n}? Answer: the {n} is"),
)
_INTRODUCTION = (
    "There is a piece of information hidden inside a lot of other text. Find it and remember it. "
    "You will be asked about it.\n"
)


def passkey(rng: random.Random, source: Source, length: int, turns: int) -> Sample:
    """One number somewhere in the text; sentences like the paper's, with other filler."""
    template, question = rng.choice(_PASSKEYS)
    name = rng.choice(("pass key", "pass key", "password", "secret number", "door code"))
    value = words.number(rng, source.split)
    introduction = _INTRODUCTION if length >= 96 and rng.random() < 0.5 else ""
    fact = template.format(n=name, v=value)
    turn = Turn(question.format(n=name), value)
    before, after = _around(rng, source, length - source.count(introduction + fact + turn.text) - 4)
    return Sample(introduction + before + fact + after, (turn,))


def tracking(rng: random.Random, source: Source, length: int, turns: int) -> Sample:
    """Variable tracking: which variables hold a value, through chains of assignments, in order."""

    def chains():
        for _ in range(turns):
            value = words.number(rng, source.split)
            names = [
                words.identifier(rng, source.split)
                for _ in range(rng.randint(1, 3 if length < 256 else 5))
            ]
            chain = [f"VAR {names[0]} = {value}"] + [
                f"VAR {b} = VAR {a}" for a, b in pairwise(names)
            ]
            question = f"Find all variables that are assigned the value {value} in the text above."
            yield chain, Turn(f"\nQuestion: {question} Answer:", " ".join(names))

    def texts(task: tuple[list[str], Turn]) -> list[str]:
        chain, turn = task
        return [" ".join(chain), turn.text, *"." * len(chain)]  # each assignment gets a full stop

    fitting, cost = source.fit(chains(), length, texts, least=1)
    asked = [turn for _, turn in fitting]
    rng.shuffle(asked)
    left = [[f"{assignment}." for assignment in chain] for chain, _ in fitting]
    merged = []  # the chains interleaved, each in its own order
    while any(left):
        merged.append(rng.choice([chain for chain in left if chain]).pop(0))
    return Sample(hide(rng, source.filler(rng, length - cost - 4), merged), tuple(asked))


def counting(rng: random.Random, source: Source, length: int, turns: int) -> Sample:
    """How often a word appears in a list, or which word appears most often."""
    vocabulary = words.listed("thing", source.split) + words.listed("animal", source.split)
    chosen = rng.sample(vocabulary, rng.randint(2, min(3 + length // 128, 8)))
    often = {word: rng.randint(1, 4) for word in chosen}
    winner = rng.choice(chosen)
    often[winner] = max(often.values()) + rng.randint(1, 2)
    row = [word for word, count in often.items() for _ in range(count)]
    rng.shuffle(row)
    asked = [Turn("\nWhich word appears most often? The word is", winner)]
    asked += [
        Turn(f"\nHow often does {word} appear? It appears", f"{often[word]} times")
        for word in chosen
    ]
    rng.shuffle(asked)
    asked = asked[:turns]
    listing = "List: " + " ".join(row)
    before, after = _around(
        rng, source, length - source.count(listing + "".join(turn.text for turn in asked)) - 6
    )
    paragraphs = (before, f"{listing}.", after)
    return Sample("\n".join(paragraph for paragraph in paragraphs if paragraph), tuple(asked))


def _around(rng: random.Random, source: Source, tokens: int) -> tuple[str, str]:
    """Filler to put before and after a fact."""
    filler = source.filler(rng, tokens)
    cut = rng.randint(0, len(filler))
    return " ".join(filler[:cut]), " ".join(filler[cut:])
