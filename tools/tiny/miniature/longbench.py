"""LongBench-E in miniature: generated samples of its thirteen tasks, in its own schema and prompts.

Each task keeps its kind (what to find, and where) and simplifies the rest: documents are passages
of books, facts are sentences about invented people, code is a list of assignments. Prompts,
truncation, scores and buckets are those of :mod:`eval.longbench`. Scores on these samples cannot be
compared with LongBench-E itself.
"""

import itertools
import random
from collections.abc import Callable, Iterable
from functools import partial

from core.errors import InputError
from eval import longbench
from tools.tiny.miniature import words
from tools.tiny.miniature.reading import (
    FUNCTIONS,
    QUESTIONS,
    RELATIONS,
    arguments,
    label_names,
    question_of,
)
from tools.tiny.miniature.sample import Sample, Source, Turn, among

NAME = "LongBench-E miniature"
WORDS = 4000  # where the benchmark's first bucket ends, in words; ours ends at L tokens
_RANGES = (
    (0.5, 0.95),
    (1.05, 1.95),
    (2.05, 3.0),
)  # lengths of each bucket's prompts, in units of L

# context, input, answer, class names
Parts = tuple[str, str, str, list[str] | None]


def samples(task: str, source: Source, context_length: int, count: int, seed: int) -> list[dict]:
    """`count` samples of a task for each of the three buckets of length 0-L, L-2L and above 2L
    tokens.

    Args:
        task: a name in :data:`eval.longbench.TASKS`.
        source: split, tokenizer and passages.
        context_length: L; a sample's `length` is its number of tokens times 4000 / L, so that the
            benchmark's own buckets divide at L and 2L.
        count: samples per bucket.
        seed: the only source of randomness.
    """
    rows = []
    for low, high in _RANGES:
        rng = random.Random(f"{seed} {task} {low}")
        for index in range(count):
            row = sample(
                task,
                rng,
                source,
                round(context_length * (low + (high - low) * (index + rng.random()) / count)),
            )
            length = round(source.count(longbench.prompt(task, row)) * WORDS / context_length)
            rows.append(row | {"length": length, "_id": f"{task} {low:g}L {index} {seed}"})
    return rows


def sample(task: str, rng: random.Random, source: Source, tokens: int) -> dict:
    """One sample whose prompt and answer take at most, and nearly, `tokens` tokens.

    Raises:
        InputError: `tokens` is too small for the task's prompt.
    """
    room = tokens - source.count(longbench.prompt(task, {"context": "", "input": ""})) - 8
    for _ in range(20):
        if room < 64:
            break
        context, question, answer, classes = _MAKERS[task](rng, source, room)
        row = {"input": question, "context": context, "answers": [answer], "all_classes": classes}
        over = source.count(longbench.prompt(task, row), answer) + 2 - tokens
        if over <= 0:
            return row
        room -= over
    raise InputError(f"a miniature of {task} does not fit in {tokens} tokens; give it more.")


def any_task(rng: random.Random, source: Source, length: int, turns: int) -> Sample:
    """A sample of any of the thirteen tasks, in the benchmark's prompt."""
    task = rng.choice(list(longbench.TASKS))
    row = sample(task, rng, source, rng.randint(length // 2, length) if length >= 1024 else length)
    return Sample(longbench.prompt(task, row), (Turn("", row["answers"][0]),))


def _fact(
    rng: random.Random, split: str, person: str, relation: str | None = None
) -> tuple[str, str, str]:
    """(statement, question, answer) about a person; by default of any relation."""
    statement, question, kind = RELATIONS[relation or rng.choice(list(RELATIONS))]
    value = rng.choice(words.listed(kind, split))
    return statement.format(s=person, o=value), question.format(s=person), value


def _people(rng: random.Random, split: str, count: int) -> list[str]:
    return rng.sample(words.listed("person", split), count)


def _passages(rng: random.Random, sentences: list[str]) -> str:
    """The sentences as numbered documents."""
    count = min(rng.randint(2, 4), len(sentences))
    cuts = [0, *sorted(rng.sample(range(1, len(sentences)), count - 1)), len(sentences)]
    passages = (" ".join(sentences[begin:end]) for begin, end in itertools.pairwise(cuts))
    return "\n\n".join(
        f"Passage {number}:\n{passage}" for number, passage in enumerate(passages, 1)
    )


def _single_document(rng: random.Random, source: Source, room: int) -> Parts:
    """A document that tells of several people; the question is about one of them."""
    facts = [_fact(rng, source.split, person) for person in _people(rng, source.split, 4)][
        : rng.randint(1, 4)
    ]
    statements = [statement for statement, _, _ in facts]
    _, question, answer = rng.choice(facts)
    text = among(
        rng, source.filler(rng, room - source.count(" ".join(statements)) - 16), statements
    )
    return " ".join(text), question, answer, None


def _several_documents(rng: random.Random, source: Source, room: int) -> Parts:
    """One document names a person's best friend, another tells of that friend; the question needs
    both."""
    first, friend, *others = _people(rng, source.split, 4)
    relation = rng.choice(list(RELATIONS))
    statement, _, answer = _fact(rng, source.split, friend, relation)
    sentences = [f"The best friend of {first} is {friend}.", statement]
    sentences += [
        _fact(rng, source.split, other, relation)[0] for other in others[: rng.randint(0, 2)]
    ]
    rng.shuffle(sentences)
    text = _passages(
        rng,
        among(rng, source.filler(rng, room - source.count(" ".join(sentences)) - 40), sentences),
    )
    return text, RELATIONS[relation][1].format(s=f"the best friend of {first}"), answer, None


def _summary(rng: random.Random, source: Source, room: int, documents: bool) -> Parts:
    """The summary is the marked sentences of the text, in their order."""
    points = [
        _fact(rng, source.split, person)[0]
        for person in _people(rng, source.split, rng.randint(2, 3))
    ]
    marked = [f"Main point: {point}" for point in points]
    text = among(rng, source.filler(rng, room - 2 * source.count(" ".join(marked)) - 40), marked)
    return _passages(rng, text) if documents else " ".join(text), "", " ".join(points), None


def _types(rng: random.Random, source: Source, room: int) -> Parts:
    """The type of a question, learned from examples."""
    labels = rng.sample(list(QUESTIONS), rng.randint(3, 5))
    names = label_names(rng, source.split, labels)
    label = rng.choice(labels)
    last = f"Question: {question_of(rng, source.split, label)}\nType:"

    def examples():
        for each in itertools.chain(reversed(labels), iter(lambda: rng.choice(labels), None)):
            yield f"Question: {question_of(rng, source.split, each)}\nType: {names[each]}"

    lines, _ = source.fit(examples(), room - source.count(last) - 8, lambda line: [f"{line}\n"])
    rng.shuffle(lines)
    return "\n".join(lines), last, names[label], list(names.values())


def _examples(rng: random.Random, source: Source, room: int, write: Callable) -> Parts:
    """Few-shot: as many examples as fit, and one question without its answer."""
    each = rng.randint(40, 120)
    last, answer = write(rng, source, each)

    def examples():
        while True:
            question, reply = write(rng, source, each)
            yield question + (reply if question.endswith("\n") else f" {reply}")

    room -= source.count(f"{last} {answer}") + 8
    lines, _ = source.fit(examples(), room, lambda example: [f"{example}\n\n"])
    return "\n".join(lines), last, answer, None


def _trivia(rng: random.Random, source: Source, tokens: int) -> tuple[str, str]:
    """(a passage with a question about it, the answer)."""
    statement, question, answer = _fact(rng, source.split, *_people(rng, source.split, 1))
    filler = source.filler(rng, tokens - source.count(f"{statement} {question} {answer}") - 12)
    return (
        f"Passage:\n{' '.join(among(rng, filler, [statement]))}\nQuestion:\n{question}\nAnswer:\n",
        answer,
    )


_SAID = (
    "Where is my {thing}?",
    "I saw a {animal} today.",
    "What a {colour} sky!",
    "Is the {trade} here?",
    "Yes.",
    "No.",
)


def _dialogue(rng: random.Random, source: Source, tokens: int) -> tuple[str, str]:
    """(a dialogue of two people, its summary: what one of them promises)."""
    speakers = _people(rng, source.split, 2)
    drawn = {kind: rng.choice(words.listed(kind, source.split)) for kind in words.KINDS}
    promise = rng.choice(
        ("bring the {thing} to {place}", "sell the {thing}", "go to {place}", "feed the {animal}")
    )
    promise = promise.format(**drawn)
    lines = [
        rng.choice(_SAID).format(
            **{k: rng.choice(words.listed(k, source.split)) for k in words.KINDS}
        )
    ]
    lines += [rng.choice(_SAID).format(**drawn) for _ in range(rng.randint(1, 2))]
    at = rng.randrange(len(lines) + 1)
    lines.insert(at, f"I will {promise}.")
    talk = "\n".join(f"{speakers[index % 2]}: {line}" for index, line in enumerate(lines))
    return f"Dialogue: {talk}\nSummary:", f"{speakers[at % 2]} will {promise}."


def _paragraphs(rng: random.Random, source: Source, room: int, count: int) -> dict[str, str]:
    """Different passages of about equal length, by their first sentences, which all differ."""
    each = max(room // count - 8, 16)
    paragraphs: dict[str, str] = {}
    while len(paragraphs) < count:
        opening = _fact(rng, source.split, *_people(rng, source.split, 1))[0]
        paragraphs[opening] = " ".join([opening, *source.filler(rng, each)])
    return paragraphs


def _numbered(paragraphs: Iterable[str]) -> str:
    return "\n\n".join(f"Paragraph {number}: {text}" for number, text in enumerate(paragraphs, 1))


def _count(rng: random.Random, source: Source, room: int) -> Parts:
    """How many different paragraphs there are among some repeated ones."""
    total = rng.randint(2, 8)
    unique = rng.randint((total + 1) // 2, total)
    different = list(
        _paragraphs(rng, source, room * unique // total - 16 * unique, unique).values()
    )
    paragraphs = different + [rng.choice(different) for _ in range(total - unique)]
    rng.shuffle(paragraphs)
    return _numbered(paragraphs), "", str(unique), None


def _retrieve(rng: random.Random, source: Source, room: int) -> Parts:
    """The number of the paragraph that a sentence comes from."""
    paragraphs = _paragraphs(rng, source, room - 160, rng.randint(2, 8))
    number = rng.randrange(len(paragraphs))
    return _numbered(paragraphs.values()), list(paragraphs)[number], f"Paragraph {number + 1}", None


def _code(rng: random.Random, source: Source, room: int, files: bool) -> Parts:
    """Two lines are repeated from further up; the answer is the line that followed them there."""

    def code():
        while True:
            call = arguments(rng, source.split, 2)
            yield f"{words.made_up(rng, source.split)} = {rng.choice(FUNCTIONS)}({call})"

    lines, _ = source.fit(code(), room - 48, lambda line: [f"{line}\n"])
    begin = rng.randrange(max(len(lines) - 3, 1))
    answer = lines[min(begin + 2, len(lines) - 1)]
    head = "\n".join(("# first.py", *lines, ""))
    tail = "\n".join(("# second.py", *lines[begin : begin + 2], ""))
    return (head, tail, answer, None) if files else (head + tail, "", answer, None)


_MAKERS: dict[str, Callable[[random.Random, Source, int], Parts]] = {
    "qasper": _single_document,
    "multifieldqa_en": _single_document,
    "hotpotqa": _several_documents,
    "2wikimqa": _several_documents,
    "gov_report": partial(_summary, documents=False),
    "multi_news": partial(_summary, documents=True),
    "trec": _types,
    "triviaqa": partial(_examples, write=_trivia),
    "samsum": partial(_examples, write=_dialogue),
    "passage_count": _count,
    "passage_retrieval_en": _retrieve,
    "lcc": partial(_code, files=False),
    "repobench-p": partial(_code, files=True),
}
