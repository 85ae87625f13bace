"""The four Open LLM benchmarks in miniature: generated documents in the columns of the real ones,
for lm-eval's tasks.

The real benchmarks test knowledge, which a small model lacks. These keep form, shots and metric,
but each question states the fact that it asks for; HellaSwag's endings come from a book. Scores on
them cannot be compared with the benchmarks themselves.
"""

import itertools
import random
import re
from collections.abc import Callable

from tools.tiny.miniature import words
from tools.tiny.miniature.reading import RELATIONS
from tools.tiny.miniature.sample import Sample, Source, Turn, passage

NAME = "Open LLM miniature"
SUBJECT = "miscellaneous"  # one of MMLU's 57
LETTERS = "ABCD"


def documents(task: str, source: Source, count: int, seed: int) -> list[dict]:
    """`count` documents of a benchmark (a key of :data:`eval.open_llm.TASKS`) with its columns."""
    rng = random.Random(f"{seed} {task}")
    return [_MAKERS[task](rng, source) for _ in range(count)]


def _question(rng: random.Random, split: str) -> tuple[str, str, list[str]]:
    """(a question that states the fact it asks for, the right answer, three wrong ones)."""
    statement, question, kind = RELATIONS[rng.choice(list(RELATIONS))]
    person = rng.choice(words.listed("person", split))
    right, *wrong = rng.sample(words.listed(kind, split), 4)
    return f"{statement.format(s=person, o=right)} {question.format(s=person)}", right, wrong


def _choices(rng: random.Random, split: str) -> tuple[str, list[str], int]:
    """(a question, four choices in a random order, the index of the right one)."""
    question, right, wrong = _question(rng, split)
    choices = [right, *wrong]
    rng.shuffle(choices)
    return question, choices, choices.index(right)


def _arc(rng: random.Random, source: Source) -> dict:
    question, choices, right = _choices(rng, source.split)
    return {
        "question": question,
        "choices": {"text": choices, "label": list(LETTERS)},
        "answerKey": LETTERS[right],
    }


def _mmlu(rng: random.Random, source: Source) -> dict:
    question, choices, right = _choices(rng, source.split)
    return {"subject": SUBJECT, "question": question, "choices": choices, "answer": right}


def _truthfulqa(rng: random.Random, source: Source) -> dict:
    """Two true answers, the bare word and the whole sentence, and three false answers of each
    form."""
    question, right, wrong = _question(rng, source.split)
    sentence = question.split(". ")[0] + "."
    true = [f"{right.capitalize()}.", sentence]
    false = [text for w in wrong for text in (f"{w.capitalize()}.", sentence.replace(right, w))]
    labels = [1] * len(true) + [0] * len(false)
    return {"question": question, "mc2_targets": {"choices": true + false, "labels": labels}}


def _hellaswag(rng: random.Random, source: Source) -> dict:
    """How a sentence of a book goes on; the wrong endings are other sentences' ends."""
    endings: tuple[str, ...] = ()
    while len(set(endings)) < 4:
        beginnings, endings = zip(*(_halves(rng, source) for _ in range(4)))
    order = rng.sample(range(4), 4)
    return {
        "activity_label": "Book",
        "ctx_a": beginnings[0][0],
        "ctx_b": beginnings[0][1],
        "endings": [endings[index] for index in order],
        "label": str(order.index(0)),
    }


def _halves(rng: random.Random, source: Source) -> tuple[tuple[str, str], str]:
    """((a sentence, the first half of the next), its second half)."""
    while True:
        sentences = [
            s for s in re.split(r"(?<=[.!?]) ", passage(rng, source.passages, 600)) if "[" not in s
        ]
        for first, second in itertools.pairwise(sentences):
            split = second.split()
            if 6 <= len(first.split()) <= 30 and 12 <= len(split) <= 30 and second[-1] in ".!?":
                middle = len(split) // 2
                return (first, " ".join(split[:middle])), " ".join(split[middle:])


_MAKERS: dict[str, Callable[[random.Random, Source], dict]] = {
    "truthfulqa": _truthfulqa,
    "hellaswag": _hellaswag,
    "mmlu": _mmlu,
    "arc_challenge": _arc,
}


def choice(rng: random.Random, source: Source, length: int, turns: int) -> Sample:
    """Questions one after the other, answered by a letter if choices are given, and otherwise in
    words."""
    lettered = rng.random() < 0.6
    context = (
        f"The following are multiple choice questions (with answers) about {SUBJECT}."
        if lettered
        else ""
    )

    def questions():
        while True:
            if lettered:
                question, choices, right = _choices(rng, source.split)
                listed = "".join(f"\n{letter}. {text}" for letter, text in zip(LETTERS, choices))
                yield Turn(f"\n\n{question}{listed}\nAnswer:", LETTERS[right])
            else:
                question, answer, _ = _question(rng, source.split)
                yield Turn(f"\n\nQuestion: {question}\nAnswer:", answer)

    asked, _ = source.fit(
        questions(), length - source.count(context), lambda turn: [turn.text], least=1
    )
    return Sample(context or "Answer the questions.", tuple(asked))
