"""Reading and imitating: questions about people, few-shot classification, copying, repetition, line completion."""

from __future__ import annotations

import random

from tools.tiny.miniature import words
from tools.tiny.miniature.sample import Sample, Setting, Turn, hide, passage, register

# relation: (statement, question, where its objects come from)
RELATIONS = {
    "home": ("{s} lives in {o}.", "\nQuestion: Where does {s} live? Answer:", "place"),
    "birth": ("{s} was born in {o}.", "\nQuestion: Where was {s} born? Answer:", "place"),
    "trade": ("{s} works as a {o}.", "\nQuestion: What is the trade of {s}? Answer:", "trade"),
    "pet": ("{s} keeps a {o}.", "\nQuestion: What animal does {s} keep? Answer:", "animal"),
    "gift": ("{s} was given a {o}.", "\nQuestion: What was {s} given? Answer:", "thing"),
    "colour": ("The favourite colour of {s} is {o}.", "\nQuestion: What colour does {s} like best? Answer:", "colour"),
}


@register("answering")
def answering(rng: random.Random, setting: Setting, length: int, turns: int) -> Sample:
    """Extractive question answering: facts about people; some questions need two of them."""
    people = rng.sample(words.listed("person", setting.split), min(2 + turns, 20))
    told: dict[tuple[str, str], str] = {}
    for person in people:
        for relation in rng.sample(list(RELATIONS), 1 if length < 192 else rng.randint(1, 2)):
            told[person, relation] = rng.choice(words.listed(RELATIONS[relation][2], setting.split))
    facts = {key: RELATIONS[key[1]][0].format(s=key[0], o=value) for key, value in told.items()}
    asked: list[tuple[Turn, list[str]]] = []
    for (person, relation), value in told.items():
        question = RELATIONS[relation][1]
        friend = rng.choice(people)
        if length >= 192 and friend != person and rng.random() < 0.3:
            needs = [facts[person, relation], f"The best friend of {friend} is {person}."]
            asked.append((Turn(question.format(s=f"the best friend of {friend}"), (value,)), needs))
        else:
            asked.append((Turn(question.format(s=person), (value,)), [facts[person, relation]]))
    rng.shuffle(asked)

    befriended: set[str] = set()  # one person with two "best friends" would give a question two answers
    said, kept, cost = [], [], 0
    for turn, needs in asked:
        friend = needs[1].split(" is ")[0] if len(needs) > 1 else ""
        if friend in befriended:
            continue
        needed = sum(setting.count(f" {fact}") for fact in needs) + setting.count(
            f"{turn.question} {turn.answers[0]}\n"
        )
        if (kept and cost + needed > length) or len(kept) == turns:
            break
        befriended |= {friend} - {""}
        cost += needed
        said += needs
        kept.append(turn)
    rng.shuffle(said)
    rng.shuffle(kept)
    return Sample("answering", hide(rng, setting.filler(rng, length - cost - 4), said), tuple(kept))


# A question's type shows in its first words, as in TREC.
QUESTIONS = {
    "person": ("Who found the {thing}?", "Who sold the {animal}?", "Who wrote to the {trade}?"),
    "place": ("Where is the {thing}?", "Where did the {trade} go?", "Where does the {animal} sleep?"),
    "number": ("How many {thing}s are there?", "How many {animal}s did you see?", "How many did {person} count?"),
    "time": ("When did {person} come?", "When was the {thing} made?", "When will the {trade} leave?"),
    "reason": ("Why is the {animal} here?", "Why did {person} laugh?", "Why was the {thing} hidden?"),
}


def question_of(rng: random.Random, split: str, label: str) -> str:
    drawn = {kind: rng.choice(words.listed(kind, split)) for kind in words.KINDS}
    return rng.choice(QUESTIONS[label]).format(**drawn)


@register("classification")
def classification(rng: random.Random, setting: Setting, length: int, turns: int) -> Sample:
    """Few-shot: the label of a question, learned from examples. Half of the samples have made-up labels."""
    labels = rng.sample(list(QUESTIONS), rng.randint(2, 3 if length < 256 else 5))
    if rng.random() < 0.5:
        names = dict(zip(labels, (words.made_up(rng, setting.split) for _ in labels)))
    else:
        names = {label: label for label in labels}
    layout = rng.choice(("{q}\nType:", "Question: {q}\nLabel:", "{q} ->"))

    def example() -> tuple[str, str]:
        label = rng.choice(labels)
        return layout.format(q=question_of(rng, setting.split, label)), names[label]

    turn = [Turn("\n" + q, (name,)) for q, name in (example() for _ in range(turns))]
    cost = sum(setting.count(f"{t.question} {t.answers[0]}\n") for t in turn[:1])
    lines: list[str] = []
    for label in labels:  # each at least once
        line = layout.format(q=question_of(rng, setting.split, label)) + f" {names[label]}"
        lines.append(line)
        cost += setting.count(line + "\n")
    rng.shuffle(lines)
    while len(turn) > 1 and cost + sum(setting.count(f"{t.question} {t.answers[0]}\n") for t in turn[1:]) > length:
        turn.pop()
    cost += sum(setting.count(f"{t.question} {t.answers[0]}\n") for t in turn[1:])
    while True:
        question, name = example()
        cost += setting.count(f"{question} {name}\n")
        if cost > length - 2:
            break
        lines.append(f"{question} {name}")
    return Sample("classification", "\n".join(lines), tuple(turn))


@register("copying")
def copying(rng: random.Random, setting: Setting, length: int, turns: int) -> Sample:
    """What a name said, word for word: made-up words or a run of known ones."""
    vocabulary = [word for kind in words.KINDS for word in words.listed(kind, setting.split)]
    facts, asked, cost = [], [], 0
    for name in words.keys(rng, setting.split, turns):
        if rng.random() < 0.5:
            said = " ".join(words.made_up(rng, setting.split) for _ in range(rng.randint(2, 4)))
        else:
            said = " ".join(rng.choices(vocabulary, k=rng.randint(3, 8)))
        turn = Turn(f"\nWhat did {name} say? {name} said:", (said + ".",))
        fact = f"{name} said: {said}."
        needed = setting.count(" " + fact) + setting.count(f"{turn.question} {said}.\n")
        if asked and cost + needed > length:
            break
        cost += needed
        facts.append(fact)
        asked.append(turn)
    rng.shuffle(asked)
    return Sample("copying", hide(rng, setting.filler(rng, length - cost - 4), facts), tuple(asked))


@register("repetition")
def repetition(rng: random.Random, setting: Setting, length: int, turns: int) -> Sample:
    """Words or a piece of a book, repeated from some place on: a skill that every other task needs."""
    room = max((length - 12) // 2, 8)
    if setting.passages and rng.random() < 0.5:
        said = passage(rng, setting.passages, 6 * room).split()
    else:
        known = [word for kind in words.KINDS for word in words.listed(kind, setting.split)]
        said = [
            words.made_up(rng, setting.split) if rng.random() < 0.4 else rng.choice(known) for _ in range(room // 2)
        ]
    while len(said) > 4 and (tokens := setting.count(" ".join(said))) > room:
        said = said[: min(len(said) * room // tokens, len(said) - 1)]
    start = rng.randrange(max(len(said) // 3, 1))
    begin, rest = said[start : start + 2], said[start + 2 :]
    return Sample("repetition", " ".join(said), (Turn(f"\nAgain: {' '.join(begin)}", (" ".join(rest),)),))


@register("completion")
def completion(rng: random.Random, setting: Setting, length: int, turns: int) -> Sample:
    """The rest of a line of code that repeats an assignment from further up."""
    names = list(dict.fromkeys(words.made_up(rng, setting.split) for _ in range(3 + length // 40)))
    things = words.listed("thing", setting.split)
    calls = {}
    for name in names:
        arguments = ", ".join(rng.choices((*things, *"01234"), k=rng.randint(1, 3)))
        calls[name] = f"{name} = {rng.choice(('make', 'load', 'find', 'read'))}({arguments})"
    lines, seen = ["# setup"], []
    cost = 4
    asked: list[Turn] = []
    for name, line in calls.items():
        answer = line.removeprefix(f"{name} ")
        turn = Turn(f"\n{name}", (answer,))
        needed = setting.count(line + "\n") + (
            setting.count(f"{turn.question} {answer}\n") if len(asked) < turns else 0
        )
        if asked and cost + needed > length - 2:
            break
        cost += needed
        lines.append(line)
        seen.append(name)
        if len(asked) < turns:
            asked.append(turn)
    rng.shuffle(asked)
    while lines and cost < length - 24:
        line = f"print({rng.choice(seen)}, {rng.choice(things)})"
        cost += setting.count(line + "\n")
        if cost > length - 2:
            break
        lines.insert(rng.randint(1, len(lines)), line)
    return Sample("completion", "\n".join(lines) + "\n# again", tuple(asked))
