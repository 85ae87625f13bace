"""Retrieval tasks: facts about a key hidden in filler, passkeys, chains of variables, counts."""

from __future__ import annotations

import random
from collections import Counter
from itertools import pairwise

from tools.tiny.miniature import words
from tools.tiny.miniature.sample import Sample, Setting, Turn, hide, register

# (introduction, fact, question). The first is RULER's form for one value of one key.
_FORMS = (
    (
        (
            "A special magic number is hidden within the following text. Make sure to memorize it. "
            "I will quiz you about the number afterwards.\n"
        ),
        "One of the special magic numbers for {k} is: {v}.",
        (
            "\nWhat is the special magic number for {k} mentioned in the provided text? "
            "The special magic number for {k} mentioned in the provided text is"
        ),
    ),
    ("", "The code of {k} is {v}.", "\nWhat is the code of {k}? The code of {k} is"),
    ("", "{k}: {v}.", "\n{k}:"),
    ("Read the list and answer.\n", "{k} has the number {v}.", "\nWhich number does {k} have? Answer:"),
    ("", "Remember that {k} weighs {v} grams.", "\nHow much does {k} weigh? It weighs"),
    ("", "In the register, {k} stands under {v}.", "\nIn the register, {k} stands under"),
)


@register("recall")
def recall(rng: random.Random, setting: Setting, length: int, turns: int) -> Sample:
    """Key-value recall: which number belongs to a key."""
    introduction, fact, question = _FORMS[0] if rng.random() < 0.35 else rng.choice(_FORMS[1:])
    extra = rng.randint(0, turns // 2)
    pairs = [(k, words.number(rng, setting.split)) for k in words.keys(rng, setting.split, turns + extra)]
    if not introduction or length < 96:
        introduction = ""
    cost = setting.count(introduction)
    facts, asked = [], []
    for k, v in pairs:
        said, asks = fact.format(k=k, v=v), question.format(k=k)
        needed = setting.count(f" {said}") + (setting.count(f"{asks} {v}\n") if len(asked) < turns else 0)
        if facts and cost + needed > length:
            break
        cost += needed
        facts.append(said)
        if len(asked) < turns:
            asked.append(Turn(asks, (v,)))
    rng.shuffle(facts)
    rng.shuffle(asked)
    filler = setting.filler(rng, length - cost - 4)
    return Sample("recall", introduction + hide(rng, filler, facts), tuple(asked))


_PASSKEYS = (
    ("\nThe {n} is {v}. Remember it. {v} is the {n}.\n", "\nWhat is the {n}? The {n} is"),
    ("\nThe {n} is {v}.\n", "\nWhat is the {n}? The {n} is"),
    ("\nNote the {n}: {v}.\n", "\nQuestion: what is the {n}? Answer: the {n} is"),
)


@register("passkey")
def passkey(rng: random.Random, setting: Setting, length: int, turns: int) -> Sample:
    """One number somewhere in the text; sentences like the paper's, with other filler."""
    template, question = rng.choice(_PASSKEYS)
    name = rng.choice(("pass key", "pass key", "password", "secret number", "door code"))
    value = words.number(rng, setting.split)
    introduction = ""
    if length >= 96 and rng.random() < 0.5:
        introduction = (
            "There is a piece of information hidden inside a lot of other text. Find it and remember it. "
            "You will be asked about it.\n"
        )
    said, turn = template.format(n=name, v=value), Turn(question.format(n=name), (value,))
    cost = setting.count(f"{introduction}{said}{turn.question} {value}\n")
    filler = setting.filler(rng, length - cost - 4)
    cut = rng.randint(0, len(filler))
    return Sample("passkey", introduction + " ".join(filler[:cut]) + said + " ".join(filler[cut:]), (turn,))


@register("tracking")
def tracking(rng: random.Random, setting: Setting, length: int, turns: int) -> Sample:
    """Variable tracking: which variables hold a value, through chains of assignments, in order."""
    facts, asked, cost = [], [], 0
    for _ in range(max(turns, 1)):
        value = words.number(rng, setting.split)
        names = [words.identifier(rng, setting.split) for _ in range(rng.randint(1, 3 if length < 256 else 5))]
        chain = [f"VAR {names[0]} = {value}"] + [f"VAR {b} = VAR {a}" for a, b in pairwise(names)]
        turn = Turn(
            f"\nQuestion: Find all variables that are assigned the value {value} in the text above. Answer:",
            (" ".join(names),),
        )
        needed = setting.count(" ".join(chain)) + setting.count(f"{turn.question} {turn.answers[0]}\n") + len(chain)
        if asked and cost + needed > length:
            break
        cost += needed
        facts.append([f"{assignment}." for assignment in chain])
        asked.append(turn)
    rng.shuffle(asked)
    merged = []  # the chains interleaved, each in its own order
    while any(facts):
        chain = rng.choice([chain for chain in facts if chain])
        merged.append(chain.pop(0))
    return Sample("tracking", hide(rng, setting.filler(rng, length - cost - 4), merged), tuple(asked))


@register("counting")
def counting(rng: random.Random, setting: Setting, length: int, turns: int) -> Sample:
    """How often a word appears in a list, or which word appears most often."""
    vocabulary = words.listed("thing", setting.split) + words.listed("animal", setting.split)
    chosen = rng.sample(vocabulary, rng.randint(2, min(3 + length // 128, 8)))
    often = {word: rng.randint(1, 4) for word in chosen}
    winner = rng.choice(chosen)
    often[winner] = max(often.values()) + rng.randint(1, 2)
    row = [word for word, count in often.items() for _ in range(count)]
    rng.shuffle(row)
    asked = [Turn("\nWhich word appears most often? The word is", (winner,))]
    asked += [Turn(f"\nHow often does {word} appear? It appears", (f"{often[word]} times",)) for word in chosen]
    rng.shuffle(asked)
    asked = asked[:turns]
    listing = "List: " + " ".join(row)
    cost = setting.count(listing + "".join(f"{turn.question} {turn.answers[0]}\n" for turn in asked))
    before, after = _around(rng, setting, length - cost - 4)
    assert Counter(row) == often
    return Sample("counting", f"{before}{listing}.{after}", tuple(asked))


def _around(rng: random.Random, setting: Setting, tokens: int) -> tuple[str, str]:
    """Filler to put before and after a line of its own."""
    filler = setting.filler(rng, tokens - 2)
    cut = rng.randint(0, len(filler))
    before, after = " ".join(filler[:cut]), " ".join(filler[cut:])
    return before + "\n" if before else "", "\n" + after if after else ""
