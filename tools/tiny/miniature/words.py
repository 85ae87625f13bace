"""The vocabulary of the generated tasks, divided so that "train" and "eval" share no key, name or
number.

Closed lists are divided by a word's rank, made-up words by a checksum, numbers by their form.
"train" never draws a key or a number that RULER's or the paper's passkey prompts could hold:
RULER's keys are "adjective-noun", ours are not. The numbers of both have five or seven digits
without a leading zero; those of "train" never do.
"""

import random
import zlib

_LISTS = {
    "person": """Adam Agnes Albert Alice Amos Anna Arthur Barbara Basil Bella Bernard Bertha Carl
        Cecilia Clara Conrad Cora Daniel Daphne David Dora Edgar Edith Elias Eliza Emma Ernest
        Esther Felix Fiona Flora Frank George Gilbert Grace Greta Harold Harriet Helen Henry Hugo
        Ida Irene Isaac Jacob Jane Jonas Judith Julia Karl Laura Leo Lucas Lydia Mabel Magnus
        Maria Martin Maud Miriam Nathan Nina Nora Oscar Otto Paula Percy Peter Philip Rachel
        Robert Rosa Rufus Ruth Samuel Sarah Silas Simon Sophia Stella Theodor Thomas Ursula Vera
        Victor Viola Walter William""",
    "place": """Aberdeen Athens Baghdad Basel Belfast Bergen Berlin Bombay Boston Bremen Bristol
        Cairo Calais Cardiff Chester Cologne Cordova Corinth Damascus Denver Dover Dresden Dublin
        Durham Exeter Florence Geneva Genoa Glasgow Granada Hamburg Havana Jersey Leeds Leipzig
        Lima Lisbon London Lyons Madrid Malta Manila Messina Milan Moscow Munich Naples Oxford
        Padua Paris Plymouth Prague Quebec Rheims Riga Rome Rouen Seville Siena Smyrna Sparta
        Tripoli Trieste Tunis Turin Utrecht Venice Verona Vienna Warsaw York Zurich""",
    "trade": """actor baker barber brewer broker butcher captain carpenter clerk cook cooper
        dentist doctor driver editor farmer fisherman gardener glover guide hatter hunter joiner
        judge lawyer mason merchant miller miner minister nurse painter pilot plumber poet porter
        potter printer sailor saddler sculptor servant shepherd singer smith soldier surgeon
        tailor tanner teacher tinker weaver writer""",
    "thing": """anchor apple arrow axe ball banner barrel basket bell blanket boat book bottle
        bowl box bread broom brush bucket button candle cane carpet cart chain chair cheese clock
        cloak coat coin crown cup curtain desk dish door dress drum egg fan feather fiddle flag
        flute fork glass glove hammer hat helmet hook horn jar kettle key knife lamp ladder
        lantern letter lock map mask mirror nail needle net oar onion pan pear pen pencil pillow
        pipe plate plum pot purse ribbon ring rope saddle sail shawl shell shield shirt shoe
        spear spoon stool stove sword table torch trumpet tub umbrella vase violin wagon wheel
        whip""",
    "animal": """badger bat bear beaver bee beetle bull calf camel cat cow crab crane crow deer
        dog donkey dove duck eagle eel falcon ferret finch fly fox frog goat goose hare hawk hen
        heron horse lamb lark lion lizard mole monkey moth mouse mule otter owl ox oyster parrot
        pig pigeon rabbit rat raven robin salmon seal sheep snail snake sparrow spider stork
        swallow swan tiger toad trout turtle wasp weasel whale wolf worm wren""",
    "colour": """amber black blue bronze brown crimson cream gold gray green indigo ivory lilac
        olive orange pink purple red rose ruby rust scarlet silver tan violet white yellow""",
}
KINDS = tuple(_LISTS)

_ONSETS = (*"bcdfghjklmnprstvwz", "br", "dr", "gr", "st", "tr", "pl", "sh", "ch", "th")
_VOWELS = (*"aeiou", "ai", "ea", "oo")
_CODAS = ("", "", "", "n", "r", "s", "l", "t", "ck", "nd")


def listed(kind: str, split: str) -> list[str]:
    """The words of a kind that belong to a split: every fourth one is for evaluation."""
    words = _LISTS[kind].split()
    return [word for rank, word in enumerate(words) if (rank % 4 == 3) == (split == "eval")]


def every(split: str) -> list[str]:
    """The words of all kinds that belong to a split."""
    return [word for kind in KINDS for word in listed(kind, split)]


def made_up(rng: random.Random, split: str) -> str:
    """A pronounceable made-up word of two or three syllables; a quarter of all such words is for
    evaluation."""
    while True:
        syllables = (rng.choice(_ONSETS) + rng.choice(_VOWELS) for _ in range(rng.randint(2, 3)))
        word = "".join(syllables) + rng.choice(_CODAS)
        if (zlib.crc32(word.encode()) % 4 == 3) == (split == "eval"):
            return word


def key(rng: random.Random, split: str) -> str:
    """The key of a fact: a word, two words with a hyphen, or a capitalised word."""

    def word() -> str:
        return (
            made_up(rng, split)
            if rng.random() < 0.6
            else rng.choice(listed(rng.choice(("thing", "animal")), split))
        )

    shape = rng.random()
    if shape < 0.5:
        return f"{word()}-{word()}"
    return word().capitalize() if shape < 0.65 else word()


def keys(rng: random.Random, split: str, count: int) -> list[str]:
    """Distinct keys."""
    distinct: dict[str, None] = {}
    while len(distinct) < count:
        distinct[key(rng, split)] = None
    return list(distinct)


def number(rng: random.Random, split: str) -> str:
    """A number: in "eval" five or seven digits, the first not 0; in "train" another length, or a
    leading 0."""
    if split == "eval":
        return str(
            rng.randint(10_000, 99_999) if rng.random() < 0.5 else rng.randint(1_000_000, 9_999_999)
        )
    length = rng.choice((2, 3, 4, 5, 6, 7, 7, 8))
    first = "0" if length in (5, 7) else rng.choice("123456789")
    return first + "".join(rng.choices("0123456789", k=length - 1))


def identifier(rng: random.Random, split: str) -> str:
    """A variable's name in capital letters; the last letter differs between the splits."""
    last = "AEIOUY" if split == "eval" else "BCDFGHJKLMNPQRSTVWXZ"
    return "".join(rng.choices("ABCDEFGHIJKLMNOPQRSTUVWXYZ", k=4)) + rng.choice(last)
