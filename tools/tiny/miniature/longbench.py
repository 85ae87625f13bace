"""LongBench-E in miniature: generated samples of its thirteen tasks, in its own schema and prompts.

Each task keeps its kind (what to find, and where) and simplifies the rest: documents are passages of books, facts are
sentences about invented people, code is a list of assignments. Prompts, truncation, scores and buckets are those of
:mod:`eval.longbench`. Scores on these samples cannot be compared with LongBench-E itself.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Sequence

from core.errors import InputError
from eval import longbench
from tools.tiny.miniature import words
from tools.tiny.miniature.reading import QUESTIONS, RELATIONS, question_of
from tools.tiny.miniature.sample import Sample, Setting, Turn, among, register

NAME = "LongBench-E miniature"
WORDS = 4000  # where the benchmark's first bucket ends, in words; ours ends at L tokens
_RANGES = ((0.5, 0.95), (1.05, 1.95), (2.05, 3.0))  # lengths of each bucket's prompts, in units of L

# context, input, answers, class names
Made = tuple[str, str, list[str], list[str] | None]


def samples(task: str, setting: Setting, context_length: int, count: int, seed: int) -> list[dict]:
    """`count` samples of a task for each of the three buckets of length 0-L, L-2L and above 2L tokens.

    Args:
        task: a name in :data:`eval.longbench.TASKS`.
        setting: split, tokenizer and passages.
        context_length: L; a sample's `length` is its number of tokens times 4000 / L, so that the benchmark's own
            buckets divide at L and 2L.
        count: samples per bucket.
        seed: the only source of randomness.
    """
    found = []
    for low, high in _RANGES:
        rng = random.Random(f"{seed} {task} {low}")
        for index in range(count):
            tokens = round(context_length * (low + (high - low) * (index + rng.random()) / count))
            made = sample(task, rng, setting, tokens)
            length = setting.count(longbench.prompt(task, made))
            made |= {"length": round(length * WORDS / context_length), "_id": f"{task} {low:g}L {index} {seed}"}
            found.append(made)
    return found


def sample(task: str, rng: random.Random, setting: Setting, tokens: int) -> dict:
    """One sample whose prompt and answer take at most, and nearly, `tokens` tokens.

    Raises:
        InputError: `tokens` is too small for the task's prompt.
    """
    empty = {"context": "", "input": ""}
    room = tokens - setting.count(longbench.prompt(task, empty)) - 8
    for _ in range(20):
        if room < 64:
            break
        context, asked, answers, classes = _MAKERS[task](rng, setting, room)
        made = {"input": asked, "context": context, "answers": answers, "all_classes": classes}
        over = setting.count(longbench.prompt(task, made)) + setting.count(answers[0]) + 2 - tokens
        if over <= 0:
            return made
        room -= over
    raise InputError(f"a miniature of {task} does not fit in {tokens} tokens; give it more.")


@register("longbench")
def any_task(rng: random.Random, setting: Setting, length: int, turns: int) -> Sample:
    """A sample of any of the thirteen tasks, in the benchmark's prompt."""
    task = rng.choice(list(longbench.TASKS))
    made = sample(task, rng, setting, rng.randint(length // 2, length) if length >= 1024 else length)
    return Sample("longbench", longbench.prompt(task, made), (Turn("", tuple(made["answers"])),))


def _fact(rng: random.Random, split: str, person: str, relation: str) -> tuple[str, str, str]:
    """(statement, question, answer) about a person."""
    statement, question, kind = RELATIONS[relation]
    value = rng.choice(words.listed(kind, split))
    return statement.format(s=person, o=value), bare(question.format(s=person)), value


def bare(question: str) -> str:
    """A question without "Question:" and "Answer:"."""
    return question.removeprefix("\nQuestion: ").removesuffix(" Answer:")


def _people(rng: random.Random, split: str, count: int) -> list[str]:
    return rng.sample(words.listed("person", split), count)


def _passages(rng: random.Random, sentences: list[str]) -> str:
    """The sentences as numbered documents."""
    count = min(rng.randint(2, 4), len(sentences))
    cuts = [0, *sorted(rng.sample(range(1, len(sentences)), count - 1)), len(sentences)]
    parts = (" ".join(sentences[begin:end]) for begin, end in itertools.pairwise(cuts))
    return "\n\n".join(f"Passage {number}:\n{part}" for number, part in enumerate(parts, 1))


def _single_document(rng: random.Random, setting: Setting, room: int) -> Made:
    """A document that tells of several people; the question is about one of them."""
    facts = [
        _fact(rng, setting.split, person, rng.choice(list(RELATIONS))) for person in _people(rng, setting.split, 4)
    ]
    facts = facts[: rng.randint(1, 4)]
    cost = setting.count(" ".join(statement for statement, _, _ in facts))
    _, question, answer = rng.choice(facts)
    text = among(rng, setting.filler(rng, room - cost - 16), [statement for statement, _, _ in facts])
    return " ".join(text), question, [answer], None


def _several_documents(rng: random.Random, setting: Setting, room: int) -> Made:
    """One document names a person's best friend, another tells of that friend; the question needs both."""
    first, friend, *others = _people(rng, setting.split, 4)
    relation = rng.choice(list(RELATIONS))
    statement, _, answer = _fact(rng, setting.split, friend, relation)
    told = [f"The best friend of {first} is {friend}.", statement]
    told += [_fact(rng, setting.split, other, relation)[0] for other in others[: rng.randint(0, 2)]]
    rng.shuffle(told)
    cost = setting.count(" ".join(told))
    text = _passages(rng, among(rng, setting.filler(rng, room - cost - 40), told))
    question = bare(RELATIONS[relation][1].format(s=f"the best friend of {first}"))
    return text, question, [answer], None


def _summary(documents: bool) -> Callable[[random.Random, Setting, int], Made]:
    def made(rng: random.Random, setting: Setting, room: int) -> Made:
        """The summary is the marked sentences of the text, in their order."""
        people = _people(rng, setting.split, rng.randint(2, 3))
        points = [_fact(rng, setting.split, person, rng.choice(list(RELATIONS)))[0] for person in people]
        cost = 2 * setting.count(" ".join(f"Main point: {point}" for point in points))
        text = among(rng, setting.filler(rng, room - cost - 40), [f"Main point: {point}" for point in points])
        return _passages(rng, text) if documents else " ".join(text), "", [" ".join(points)], None

    return made


def _types(rng: random.Random, setting: Setting, room: int) -> Made:
    """The type of a question, learned from examples; half of the samples have made-up names for the types."""
    labels = rng.sample(list(QUESTIONS), rng.randint(3, 5))
    if rng.random() < 0.5:
        names = dict(zip(labels, (words.made_up(rng, setting.split) for _ in labels)))
    else:
        names = {label: label for label in labels}
    asked = rng.choice(labels)
    last = f"Question: {question_of(rng, setting.split, asked)}\nType:"
    lines: list[str] = []
    left, queue = room - setting.count(last) - 8, list(labels)
    while True:
        label = queue.pop() if queue else rng.choice(labels)
        line = f"Question: {question_of(rng, setting.split, label)}\nType: {names[label]}"
        left -= setting.count(f"{line}\n")
        if left < 0:
            break
        lines.append(line)
    rng.shuffle(lines)
    return "\n".join(lines), last, [names[asked]], list(names.values())


def _examples(write: Callable[[random.Random, Setting, int], tuple[str, str]]) -> Callable:
    """Few-shot: as many examples as fit, and one question without its answer."""

    def made(rng: random.Random, setting: Setting, room: int) -> Made:
        each = rng.randint(40, 120)
        asked, answer = write(rng, setting, each)
        left, examples = room - setting.count(f"{asked} {answer}") - 8, []
        while True:
            question, known = write(rng, setting, each)
            example = question + (known if question.endswith("\n") else f" {known}")
            left -= setting.count(f"{example}\n\n")
            if left < 0:
                break
            examples.append(example)
        return "\n".join(examples), asked, [answer], None

    return made


def _trivia(rng: random.Random, setting: Setting, tokens: int) -> tuple[str, str]:
    (person,) = _people(rng, setting.split, 1)
    statement, question, answer = _fact(rng, setting.split, person, rng.choice(list(RELATIONS)))
    filler = setting.filler(rng, tokens - setting.count(f"{statement} {question} {answer}") - 12)
    return f"Passage:\n{' '.join(among(rng, filler, [statement]))}\nQuestion:\n{question}\nAnswer:\n", answer


_SAID = (
    "Where is my {thing}?",
    "I saw a {animal} today.",
    "What a {colour} sky!",
    "Is the {trade} here?",
    "Yes.",
    "No.",
)


def _dialogue(rng: random.Random, setting: Setting, tokens: int) -> tuple[str, str]:
    """A dialogue of two people; the summary is what one of them promises."""
    speakers = _people(rng, setting.split, 2)
    drawn = {kind: rng.choice(words.listed(kind, setting.split)) for kind in words.KINDS}
    promise = rng.choice(("bring the {thing} to {place}", "sell the {thing}", "go to {place}", "feed the {animal}"))
    promise = promise.format(**drawn)
    lines = [rng.choice(_SAID).format(**{k: rng.choice(words.listed(k, setting.split)) for k in words.KINDS})]
    lines += [rng.choice(_SAID).format(**drawn) for _ in range(rng.randint(1, 2))]
    at = rng.randrange(len(lines) + 1)
    lines.insert(at, f"I will {promise}.")
    talk = "\n".join(f"{speakers[index % 2]}: {line}" for index, line in enumerate(lines))
    return f"Dialogue: {talk}\nSummary:", f"{speakers[at % 2]} will {promise}."


def _paragraphs(rng: random.Random, setting: Setting, room: int, count: int) -> list[str]:
    """Different passages of about equal length."""
    each = max(room // count - 8, 16)
    found: dict[str, str] = {}  # by their first sentences, which all differ
    while len(found) < count:
        opening = _fact(rng, setting.split, _people(rng, setting.split, 1)[0], rng.choice(list(RELATIONS)))[0]
        found[opening] = " ".join([opening, *setting.filler(rng, each)])
    return list(found.values())


def _opening(paragraph: str) -> str:
    """Its first sentence."""
    return paragraph.split(". ")[0].rstrip(".") + "."


def _numbered(paragraphs: Sequence[str]) -> str:
    return "\n\n".join(f"Paragraph {number}: {text}" for number, text in enumerate(paragraphs, 1))


def _count(rng: random.Random, setting: Setting, room: int) -> Made:
    """How many different paragraphs there are among some repeated ones."""
    total = rng.randint(2, 8)
    unique = rng.randint((total + 1) // 2, total)
    different = _paragraphs(rng, setting, room * unique // total - 16 * unique, unique)
    all_of_them = different + [rng.choice(different) for _ in range(total - unique)]
    rng.shuffle(all_of_them)
    return _numbered(all_of_them), "", [str(unique)], None


def _retrieve(rng: random.Random, setting: Setting, room: int) -> Made:
    """The number of the paragraph that a sentence comes from."""
    paragraphs = _paragraphs(rng, setting, room - 160, rng.randint(2, 8))
    number = rng.randrange(len(paragraphs))
    abstract = _opening(paragraphs[number])
    return _numbered(paragraphs), abstract, [f"Paragraph {number + 1}"], None


def _code(files: bool) -> Callable[[random.Random, Setting, int], Made]:
    def made(rng: random.Random, setting: Setting, room: int) -> Made:
        """Two lines are repeated from further up; the answer is the line that followed them there."""
        things = words.listed("thing", setting.split)
        lines: list[str] = []
        left = room - 48
        while True:
            arguments = ", ".join(rng.choices((*things, *"01234"), k=rng.randint(1, 2)))
            line = f"{words.made_up(rng, setting.split)} = {rng.choice(('make', 'load', 'find', 'read'))}({arguments})"
            left -= setting.count(f"{line}\n")
            if left < 0:
                break
            lines.append(line)
        begin = rng.randrange(max(len(lines) - 3, 1))
        again, answer = lines[begin : begin + 2], lines[min(begin + 2, len(lines) - 1)]
        head = "\n".join(("# first.py", *lines, ""))
        tail = "\n".join(("# second.py", *again, ""))
        return (head, tail, [answer], None) if files else (head + tail, "", [answer], None)

    return made


_MAKERS: dict[str, Callable[[random.Random, Setting, int], Made]] = {
    "qasper": _single_document,
    "multifieldqa_en": _single_document,
    "hotpotqa": _several_documents,
    "2wikimqa": _several_documents,
    "gov_report": _summary(documents=False),
    "multi_news": _summary(documents=True),
    "trec": _types,
    "triviaqa": _examples(_trivia),
    "samsum": _examples(_dialogue),
    "passage_count": _count,
    "passage_retrieval_en": _retrieve,
    "lcc": _code(files=False),
    "repobench-p": _code(files=True),
}
