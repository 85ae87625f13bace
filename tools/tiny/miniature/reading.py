"""Reading and imitating: questions about people, few-shot classification, copying, repetition, line
completion."""

import random
from itertools import islice

from tools.tiny.miniature import words
from tools.tiny.miniature.sample import Sample, Source, Turn, hide, passage

# relation: (statement, question, where its objects come from)
RELATIONS = {
    "home": ("{s} lives in {o}.", "Where does {s} live?", "place"),
    "birth": ("{s} was born in {o}.", "Where was {s} born?", "place"),
    "trade": ("{s} works as a {o}.", "What is the trade of {s}?", "trade"),
    "pet": ("{s} keeps a {o}.", "What animal does {s} keep?", "animal"),
    "gift": ("{s} was given a {o}.", "What was {s} given?", "thing"),
    "colour": ("The favourite colour of {s} is {o}.", "What colour does {s} like best?", "colour"),
}


def answering(rng: random.Random, source: Source, length: int, turns: int) -> Sample:
    """Extractive question answering: facts about people; some questions need two of them."""
    people = rng.sample(words.listed("person", source.split), min(2 + turns, 20))
    values: dict[tuple[str, str], str] = {}
    for person in people:
        for relation in rng.sample(list(RELATIONS), 1 if length < 192 else rng.randint(1, 2)):
            values[person, relation] = rng.choice(
                words.listed(RELATIONS[relation][2], source.split)
            )
    questions: list[
        tuple[str, Turn, list[str]]
    ] = []  # the friend whose best friend it asks about, and the facts
    for (person, relation), value in values.items():
        statement, question, _ = RELATIONS[relation]
        subject = person
        facts = [statement.format(s=person, o=value)]
        friend = rng.choice(people)
        if length >= 192 and friend != person and rng.random() < 0.3:
            subject = f"the best friend of {friend}"
            facts.append(f"The best friend of {friend} is {person}.")
        turn = Turn(f"\nQuestion: {question.format(s=subject)} Answer:", value)
        questions.append((friend if len(facts) > 1 else "", turn, facts))
    rng.shuffle(questions)

    def unambiguous():
        """One person with two "best friends" would give a question two answers."""
        befriended = set()
        for friend, turn, facts in questions:
            if friend not in befriended:
                yield turn, facts
                befriended |= {friend} - {""}

    fitting, cost = source.fit(
        islice(unambiguous(), turns),
        length,
        lambda asked: (asked[0].text, *(f" {fact}" for fact in asked[1])),
        least=1,
    )
    kept = [turn for turn, _ in fitting]
    sentences = [fact for _, facts in fitting for fact in facts]
    rng.shuffle(sentences)
    rng.shuffle(kept)
    return Sample(hide(rng, source.filler(rng, length - cost - 4), sentences), tuple(kept))


# A question's type shows in its first words, as in TREC.
QUESTIONS = {
    "person": ("Who found the {thing}?", "Who sold the {animal}?", "Who wrote to the {trade}?"),
    "place": (
        "Where is the {thing}?",
        "Where did the {trade} go?",
        "Where does the {animal} sleep?",
    ),
    "number": (
        "How many {thing}s are there?",
        "How many {animal}s did you see?",
        "How many did {person} count?",
    ),
    "time": (
        "When did {person} come?",
        "When was the {thing} made?",
        "When will the {trade} leave?",
    ),
    "reason": (
        "Why is the {animal} here?",
        "Why did {person} laugh?",
        "Why was the {thing} hidden?",
    ),
}


def question_of(rng: random.Random, split: str, label: str) -> str:
    drawn = {kind: rng.choice(words.listed(kind, split)) for kind in words.KINDS}
    return rng.choice(QUESTIONS[label]).format(**drawn)


def label_names(rng: random.Random, split: str, labels: list[str]) -> dict[str, str]:
    """A name for each label: made up in half of the samples, otherwise itself."""
    made_up = rng.random() < 0.5
    return {label: words.made_up(rng, split) if made_up else label for label in labels}


def classification(rng: random.Random, source: Source, length: int, turns: int) -> Sample:
    """Few-shot: the label of a question, learned from examples."""
    labels = rng.sample(list(QUESTIONS), rng.randint(2, 3 if length < 256 else 5))
    names = label_names(rng, source.split, labels)
    layout = rng.choice(("{q}\nType:", "Question: {q}\nLabel:", "{q} ->"))

    def example(label: str) -> tuple[str, str]:
        return layout.format(q=question_of(rng, source.split, label)), names[label]

    def examples():
        while True:
            yield example(rng.choice(labels))

    turn = [Turn(f"\n{question}", name) for question, name in islice(examples(), turns)]
    lines = [" ".join(example(label)) for label in labels]  # each at least once
    room = length - source.count(*(f"{line}\n" for line in lines))
    rng.shuffle(lines)
    turn, cost = source.fit(turn, room, lambda turn: [turn.text], least=1)
    more, _ = source.fit(map(" ".join, examples()), room - cost - 2, lambda line: [f"{line}\n"])
    return Sample("\n".join(lines + more), tuple(turn))


def copying(rng: random.Random, source: Source, length: int, turns: int) -> Sample:
    """What a name said, word for word: made-up words or a run of the vocabulary."""
    vocabulary = words.every(source.split)

    def sayings():
        for name in words.keys(rng, source.split, turns):
            if rng.random() < 0.5:
                said = " ".join(words.made_up(rng, source.split) for _ in range(rng.randint(2, 4)))
            else:
                said = " ".join(rng.choices(vocabulary, k=rng.randint(3, 8)))
            yield f"{name} said: {said}.", Turn(f"\nWhat did {name} say? {name} said:", f"{said}.")

    fitting, cost = source.fit(
        sayings(), length, lambda saying: (f" {saying[0]}", saying[1].text), least=1
    )
    asked = [turn for _, turn in fitting]
    rng.shuffle(asked)
    return Sample(
        hide(rng, source.filler(rng, length - cost - 4), [fact for fact, _ in fitting]),
        tuple(asked),
    )


def repetition(rng: random.Random, source: Source, length: int, turns: int) -> Sample:
    """Words or a piece of a book, repeated from some place on: a skill that every other task
    needs."""
    room = max((length - 12) // 2, 8)
    if source.passages and rng.random() < 0.5:
        said = passage(rng, source.passages, 6 * room).split()
    else:
        every = words.every(source.split)
        said = [
            words.made_up(rng, source.split) if rng.random() < 0.4 else rng.choice(every)
            for _ in range(room // 2)
        ]
    while len(said) > 4 and (tokens := source.count(" ".join(said))) > room:
        said = said[: min(len(said) * room // tokens, len(said) - 1)]
    start = rng.randrange(max(len(said) // 3, 1))
    begin = said[start : start + 2]
    rest = said[start + 2 :]
    return Sample(" ".join(said), (Turn(f"\nAgain: {' '.join(begin)}", " ".join(rest)),))


FUNCTIONS = ("make", "load", "find", "read")


def arguments(rng: random.Random, split: str, most: int) -> str:
    """The arguments of a call in a line of code."""
    return ", ".join(rng.choices((*words.listed("thing", split), *"01234"), k=rng.randint(1, most)))


def completion(rng: random.Random, source: Source, length: int, turns: int) -> Sample:
    """The rest of a line of code that repeats an assignment from further up."""
    names = list(dict.fromkeys(words.made_up(rng, source.split) for _ in range(3 + length // 40)))
    calls = (arguments(rng, source.split, 3) for _ in names)
    turn = {
        name: Turn(f"\n{name}", f"= {rng.choice(FUNCTIONS)}({call})")
        for name, call in zip(names, calls)
    }
    lines = {name: f"{name} {turn[name].answer}" for name in names}
    room = length - 6
    seen, cost = source.fit(
        names,
        room,
        lambda name: (f"{lines[name]}\n", *([turn[name].text] if name in names[:turns] else [])),
        least=1,
    )
    asked = [turn[name] for name in seen[:turns]]
    rng.shuffle(asked)
    code = ["# setup", *(lines[name] for name in seen)]
    things = words.listed("thing", source.split)
    while cost < length - 28:
        line = f"print({rng.choice(seen)}, {rng.choice(things)})"
        cost += source.count(f"{line}\n")
        if cost > room:
            break
        code.insert(rng.randint(1, len(code)), line)
    return Sample("\n".join(code) + "\n# again", tuple(asked))
