"""LongBench's metrics (its metrics.py): the score in 0…1 of one prediction against one reference.

Each takes the prediction, the reference and the names of all classes, which only classification
uses.
"""

from __future__ import annotations

import re
import string
from collections import Counter
from difflib import SequenceMatcher

from rouge import Rouge

from core.errors import InputError


def _normalised(text: str) -> list[str]:
    """The words of `text` as SQuAD compares them: lower case, no punctuation, no articles."""
    text = "".join(character for character in text.lower() if character not in string.punctuation)
    return re.sub(r"\b(a|an|the)\b", " ", text).split()


def f1(prediction: str, answer: str, all_classes: list[str] | None) -> float:
    """F1 of the two bags of words."""
    predicted = _normalised(prediction)
    expected = _normalised(answer)
    common = (Counter(predicted) & Counter(expected)).total()
    if common == 0:
        return 0.0
    precision, recall = common / len(predicted), common / len(expected)
    return 2 * precision * recall / (precision + recall)


def rouge_l(prediction: str, answer: str, all_classes: list[str] | None) -> float:
    """The F score of summary-level ROUGE-L from the `rouge` package, for which every full stop ends
    a sentence."""
    try:
        return Rouge(metrics=["rouge-l"]).get_scores([prediction], [answer], avg=True)["rouge-l"][
            "f"
        ]
    # The benchmark scores 0 when the package fails: on a text of nothing but full stops
    # (ValueError), or on two sentences of about 1000 words together, which the package compares by
    # recursion.
    except (ValueError, RecursionError):
        return 0.0


def classification(prediction: str, answer: str, all_classes: list[str] | None) -> float:
    """1 / (number of class names in the prediction) if the right one is among them."""
    if not all_classes:
        raise InputError(
            "a classification task needs the class names; give the sample's all_classes."
        )
    named = [name for name in all_classes if name in prediction]
    # Removing from a list while iterating skips the name after each removed one, which lowers some
    # scores. The benchmark does this, so it stays.
    for name in named:
        if name in answer and name != answer:
            named.remove(name)
    return 1 / len(named) if answer in named else 0.0


def count(prediction: str, answer: str, all_classes: list[str] | None) -> float:
    """The share of the numbers in the prediction that equal the answer as text; an answer of 7.0 is
    7."""
    answer = re.sub(r"\.0+$", "", answer)
    numbers = re.findall(r"\d+", prediction)
    return numbers.count(answer) / len(numbers) if numbers else 0.0


def retrieval(prediction: str, answer: str, all_classes: list[str] | None) -> float:
    """:func:`count` with the number N of the reference's first "Paragraph N" as the answer."""
    paragraph = re.search(r"Paragraph (\d+)", answer)
    if paragraph is None:
        raise InputError(
            f'the reference {answer!r} names no paragraph; it must hold "Paragraph" and a number.'
        )
    return count(prediction, paragraph[1], None)


def edit_similarity(prediction: str, answer: str, all_classes: list[str] | None) -> float:
    """Similarity to the prediction's first line that holds no `, # or //; rounded to whole
    percent."""
    lines = prediction.lstrip("\n").split("\n")
    line = next((line for line in lines if not any(mark in line for mark in ("`", "#", "//"))), "")
    # This is fuzzywuzzy's ratio, written out because that package gives other numbers if
    # python-Levenshtein is installed. Like it, difflib gives 1 for two empty texts and 0 for one,
    # and depends on the order of its arguments.
    return round(100 * SequenceMatcher(None, line, answer).ratio()) / 100


METRICS = {
    "F1": f1,
    "ROUGE-L": rouge_l,
    "classification": classification,
    "count": count,
    "retrieval": retrieval,
    "edit similarity": edit_similarity,
}
