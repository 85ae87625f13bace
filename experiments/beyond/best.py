"""Whether to extend a model, by which method, and what it costs: on your texts, without training.

    python -m experiments.beyond.best --model PATH_OR_NAME --factor 2 --texts FILES

In the first L' tokens of each text keys are hidden. One reading under each method gives the loss
within L and beyond it, and then the keys are asked for. Beside the methods stands the model as it
is, which reads the last L tokens, with and without YaRN's attention factor. What follows from it is
said in sentences. The last line is the command that extends the model by the best method. Nothing
is recorded.
"""

from __future__ import annotations

import contextlib
import copy
import functools
import json
import shlex
import sys
import textwrap
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from tqdm import tqdm

import records
from core import ORIGINAL, rope
from core.discovery import later
from core.errors import InputError, check_choice
from core.methods.paper import yarn_attention_factor
from core.setting import Setting, flags
from eval import special_tokens
from eval.beyond import ranking
from eval.beyond.ranking import Ranking, Row
from experiments import base_models
from experiments.base_models.model import own_model
from experiments.kit import command_line, texts
from experiments.kit.beyond import ranking_figure

if TYPE_CHECKING:
    import pandas
    import transformers
    from transformers import PreTrainedConfig, PreTrainedModel, PreTrainedTokenizerBase

    from core import extend
    from core.geometry import RopeGeometry
    from core.huggingface import embedding, rotation
    from eval.beyond import needles as haystacks
    from eval.beyond.needles import Needle
    from experiments.kit import model as models
else:
    models, embedding, extend, haystacks, rotation, transformers = later(
        "experiments.kit.model",
        "core.huggingface.embedding",
        "core.extend",
        "eval.beyond.needles",
        "core.huggingface.rotation",
        "transformers",
    )


# how many keys are hidden in a text: the most that fill at most this share of it, so that they cost
# little and the text stays a text
KEYS = 16, 8, 4, 2
SHARE = 1 / 16
LEAST_LENGTH = 256  # of L, so that most of what the model reads as it is is text and no question


def main() -> None:
    parser = command_line.parser(__doc__, prog="python -m experiments.beyond.best")
    base_models.add_argument(parser, required=True)
    wanted = "rank these methods alone (default: all that need no training)"
    command_line.list_option(parser, "--method", str, "NAME", wanted)
    command_line.add_factor_argument(parser)
    by = "rank by keys or by loss beyond L (default: by keys where they tell methods apart)"
    parser.add_argument("--by", choices=(ranking.KEYS, ranking.LOSS), help=by)
    command_line.add_dtype_argument(parser)
    texts.add_arguments(parser)
    parser.add_argument("--json", action="store_true", help="print all of it as JSON alone")
    picture = "also draw it to FILE, such as best.png or best.pdf (needs matplotlib)"
    command_line.option(parser, "--plot", command_line.path, "FILE", picture)
    arguments = parser.parse_args()
    if arguments.plot:
        ranking_figure.check(arguments.plot)
    with contextlib.redirect_stdout(sys.stderr) if arguments.json else contextlib.nullcontext():
        model = named(arguments.model, arguments.dtype)
        books = texts.chosen(arguments)
        comparison = prepare(model, books, arguments.factor, arguments.method, arguments.bos)
    check_order(arguments.by, comparison)
    read = []
    try:
        for of_text in comparison.readings():
            read = [*read, of_text]
    except KeyboardInterrupt as stop:
        if read:
            show(comparison, read, arguments)
            stop.add_note(f"the ranking is of {counted(len(read), 'text')}")
        raise
    show(comparison, read, arguments)


def best(
    model: str | Path | PreTrainedModel,
    given: Sequence[str | Path],
    factor: float = 2,
    tokenizer: PreTrainedTokenizerBase | None = None,
    methods: Sequence[str] | None = None,
    by: str | None = None,
) -> pandas.DataFrame:
    """What :func:`main` prints, as a table of pandas: a row for each method, the best first, and
    for the model as it is. It is documented as `dprope.best`, in package/."""
    pandas = ranking_figure.optional("pandas", "a DataFrame")
    verbosity = transformers.logging.get_verbosity()
    transformers.logging.set_verbosity_error()  # it does not know the keys of some scalings
    try:
        with contextlib.redirect_stdout(sys.stderr):
            named_one = isinstance(model, str | Path)
            subject = named(str(model)) if named_one else loaded(model, tokenizer)
            comparison = prepare(subject, as_books(given), factor, methods)
            check_order(by, comparison)
            order = comparison.ranked(list(comparison.readings()), by)
    finally:
        transformers.logging.set_verbosity(verbosity)
    said = facts(comparison, order)
    table = pandas.DataFrame(said.pop("rows")).set_index("method")
    table.attrs = said
    return table


@dataclass(frozen=True)
class Subject:
    """The model that is to be extended; the one place that knows where it comes from.

    Attributes:
        name: as commands take it.
        load: gives it; it may be changed.
    """

    name: str
    config: PreTrainedConfig
    geometry: RopeGeometry
    tokenizer: PreTrainedTokenizerBase
    load: Callable[[], PreTrainedModel]

    @property
    def quantised(self) -> str:
        """By what its weights are quantised, such as "gptq, 4 bits"; empty if they are not."""
        stated = getattr(self.config, "quantization_config", None)
        if not stated:
            return ""
        if not isinstance(stated, dict):
            stated = stated.to_dict()
        bits = f", {stated['bits']} bits" if "bits" in stated else ""
        return f"{stated.get('quant_method', 'in some way')}{bits}"


def named(name: str, dtype: str | None = None) -> Subject:
    """A base model, a directory, or a model on the hub.

    Raises:
        InputError: there is none, it cannot be extended, or it was fine-tuned to fit a method.
    """
    base = models.resolve(name, as_it_is=True)
    if base.training:
        raise InputError(
            f"{name} was fine-tuned to fit {base.training['run']['method']}; give the model before."
        )
    load = functools.partial(base.load, base.chosen_dtype(dtype), True)
    return Subject(name, base.config, base.geometry, base.tokenizer, load)


def loaded(model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase | None) -> Subject:
    """A model in memory, which stays as it is: a copy shares its weights.

    Raises:
        InputError: there is no tokenizer, or it cannot be extended.
    """
    if tokenizer is None:
        raise InputError("a loaded model needs its tokenizer; give tokenizer=, too.")
    tensors = [*model.parameters(), *model.buffers()]
    copied = copy.deepcopy(model, {id(tensor): tensor for tensor in tensors}).eval()
    embeddings = getattr(copied.config.get_text_config(decoder=True), "vocab_size", None)
    tokenizer = special_tokens.prepared(copy.deepcopy(tokenizer), embeddings)
    geometry = embedding.rope_geometry(copied)
    name = model.name_or_path or "MODEL"
    return Subject(name, copied.config, geometry, tokenizer, lambda: copied)


def as_books(given: Sequence[str | Path]) -> list[texts.Book]:
    """Texts, and files and folders of them: a string that names none is a text."""
    listed = not isinstance(given, str | Path) and all(
        isinstance(each, str | Path) for each in given
    )
    if not listed or not given:
        raise InputError("texts is no list of strings and paths; give one of one or more.")
    books = []
    for number, each in enumerate(given):
        if isinstance(each, Path) or is_path(each):
            books += texts.files([Path(each)])
        else:
            books.append(texts.Book(f"text {number}", each))
    return texts.told_apart(books)


def is_path(text: str) -> bool:
    """Whether there is such a file or folder."""
    with contextlib.suppress(OSError, ValueError):  # a text is too long for a name
        return Path(text).exists()
    return False


@dataclass(frozen=True)
class Text:
    """What is read of a text.

    Attributes:
        tokens: their ids, the last of which is only predicted.
        before: how many stand before the text, such as BOS; each window begins with them.
        own: whether each is of the text itself, and not of a key's sentence or before it.
        needles: what is asked for.
        distances: how many tokens each key begins before the question.
    """

    title: str
    tokens: tuple[int, ...]
    before: int
    own: np.ndarray
    needles: tuple[Needle, ...]
    distances: np.ndarray


@dataclass(frozen=True)
class Candidate:
    """A method, or the model as it is.

    Attributes:
        short: whether it reads no more than L tokens at a time.
    """

    name: str
    method: str
    options: dict
    short: bool = False

    @property
    def extends(self) -> bool:
        return self.method != ORIGINAL


@dataclass(frozen=True)
class Comparison:
    """Settings on the same texts.

    Attributes:
        left_out: of each setting that is not measured the reason.
    """

    subject: Subject
    factor: float
    settings: list[Candidate]
    left_out: dict[str, str]
    read: list[Text]

    @property
    def context_length(self) -> int:
        """L"""
        return self.subject.geometry.context_length

    @property
    def extended_length(self) -> int:
        """L'"""
        return round(self.context_length * self.factor)

    @property
    def asked(self) -> bool:
        """Whether keys are asked for."""
        return bool(self.read[0].needles)

    def readings(self) -> Iterator[dict[str, dict]]:
        """Of one text after the other the numbers of each setting, by its name."""
        model = self.subject.load()
        methods = sum(setting.extends for setting in self.settings)
        description = f"{counted(methods, 'method')}, texts of {self.extended_length:,} tokens"
        count = len(self.read) * len(self.settings)
        with tqdm(total=count, unit="reading", desc=description) as bar:
            for text in self.read:
                of_text = {}
                for setting in self.settings:
                    extend.extend(model, setting.method, self.factor, **setting.options)
                    most = self.context_length if setting.short else len(text.tokens) - 1
                    of_text[setting.name] = numbers(model, text, most, self.context_length)
                    bar.update()
                yield of_text

    def ranked(self, read: list[dict[str, dict]], by: str | None) -> Ranking:
        """What the readings of the first texts say."""
        rows = []
        for setting in self.settings:
            by_text = [of_text[setting.name] for of_text in read]
            rows.append(Row(setting.name, by_text, setting.extends, setting.short))
        return ranking.ranked(rows, by)


def facts(comparison: Comparison, order: Ranking) -> dict:
    """All of it, for programs."""
    name = comparison.subject.name
    best_name = order.methods[0].name
    first = next(setting for setting in comparison.settings if setting.name == best_name)
    command = {"model": name, "method": first.method, "factor": comparison.factor}
    words = shlex.join(flags({**command, **first.options, "output": "DIR"}))
    count = len(order.methods[0].texts)
    return {
        "model": name,
        "quantised": comparison.subject.quantised or None,
        "factor": comparison.factor,
        "context_length": comparison.context_length,
        "extended_length": comparison.extended_length,
        "texts": [text.title for text in comparison.read[:count]],
        "left_out": comparison.left_out,
        "notes": notes(comparison, count),
        "ranked_by": order.by,
        "verdict": ranking.verdict(order, comparison.context_length),
        "command": command_line.as_called(f"python -m experiments.extend {words}"),
        "rows": ranking.facts(order),
    }


def notes(comparison: Comparison, count: int) -> list[str]:
    """What the numbers of the table are, of so many texts."""
    length = comparison.context_length
    said = [
        f"{counted(count, 'text')} of {comparison.extended_length:,} tokens; L = {length:,}. Means "
        "over texts, less is better."
    ]
    if comparison.asked:
        keys = len(comparison.read[0].needles)
        said += [
            "Loss: nats a token of the text's own tokens, the first L and those after them. "
            f"The sentences of {keys} keys stand between, so it is not quite that of the plain "
            "text.",
            "Keys: nats for five digits that are asked for after the text; a guess costs "
            f"{ranking.GUESS:.1f}. A key within L begins at most L tokens before the question.",
        ]
    else:
        said.append("Loss: nats a token, the first L tokens and those after them.")
    said.append(
        "'as it is, last L' is not extended and never reads more than L tokens: a token beyond "
        "L is predicted from the last L/2 to L, and keys from the last L. '×' is YaRN's "
        "attention factor alone."
    )
    if comparison.subject.quantised:
        said.append(f"The weights are quantised ({comparison.subject.quantised}).")
    return said


def prepare(
    subject: Subject,
    books: list[texts.Book],
    factor: float,
    wanted: Sequence[str] | None = None,
    bos: bool | None = None,
) -> Comparison:
    """What is to be measured; nothing is loaded.

    Args:
        wanted: the names of the methods; None for all that need no training.
        bos: as of :func:`eval.special_tokens.beginning`.

    Raises:
        InputError: the factor adds no token, one of these methods is none that can be ranked, or no
            text is long enough.
    """
    settings, left_out = expressible(subject, factor, wanted)
    for name, reason in left_out.items():
        print(f"note: {name} is left out: {reason}", file=sys.stderr)
    if not any(setting.extends for setting in settings):
        raise InputError("no method is left to be measured; give others, or another model.")
    length = round(subject.geometry.context_length * factor)
    before = special_tokens.beginning(subject.tokenizer, bos)
    try:
        haystacks.check_can_be_asked(rotation.skeleton(subject.config))
        needles = hidden(subject, books, length, before)
        question = haystacks.QUESTION
    except InputError as error:
        print(f"note: keys are left out: {error}", file=sys.stderr)
        needles = [[] for _ in books]
        question = 0
    room = length - question - len(before)
    sizes = [room - haystacks.size(of_text) for of_text in needles]
    read = texts.read(subject.tokenizer, books, max(sizes) + 1, max(sizes) + 1)
    chosen = [
        text_of(book.title, read[book].tolist(), size, of_text, before)
        for book, size, of_text in zip(books, sizes, needles, strict=True)
        if book in read
    ]
    return Comparison(subject, factor, settings, left_out, chosen)


def hidden(
    subject: Subject, books: list[texts.Book], length: int, before: list[int]
) -> list[list[Needle]]:
    """The needles of each text; InputError if they do not fit, or stand on one side of L alone."""
    room = length - haystacks.QUESTION - len(before)
    seeds = [book.sha256 for book in books]
    found = haystacks.fitting(subject.tokenizer, KEYS, seeds, SHARE * room)
    if found is None or subject.geometry.context_length < LEAST_LENGTH:
        raise InputError(f"L' = {length:,} and L are too short for a text around them.")
    # the first stands in the middle of the first of equal parts, behind its question
    farthest = room * (1 - 0.5 / len(found[0])) - haystacks.QUESTION
    if farthest <= subject.geometry.context_length:
        raise InputError("none would stand beyond L; give a larger --factor.")
    return found


def text_of(
    title: str, ids: list[int], size: int, needles: list[Needle], before: list[int]
) -> Text:
    """A text whose first `size` tokens hold needles; the next is only predicted."""
    haystack = haystacks.haystack(ids[:size], needles, before)
    own = np.append(haystack.of_text(), True)
    distances = np.array(haystack.distances())
    tokens = (*haystack.tokens, ids[size])
    return Text(title, tokens, len(before), own, tuple(needles), distances)


def numbers(model: PreTrainedModel, text: Text, most: int, context_length: int) -> dict:
    """What a model makes of a text: the numbers of a :class:`eval.beyond.ranking.Row`.

    Args:
        most: how many tokens it reads at a time. Where that is not all, it reads the first so many,
            and further windows that begin `most` / 2 tokens apart and of which the last ends before
            the question; each scores what no earlier one did.
    """
    read = len(text.tokens) - 1
    before = text.tokens[: text.before]
    last = 0
    if most < read:
        last = read - most + (haystacks.QUESTION if text.needles else 0)
    losses = []
    scored = 0
    for begin in (0, *sorted(range(last, 0, -(most // 2)))):
        end = min(begin + most, read)
        needles = text.needles if begin == last else ()
        window = before + text.tokens[begin + len(before) : end + 1]
        of_window, asked = haystacks.read_and_ask(model, window, end - scored, needles)
        losses.append(of_window)
        scored = end
    loss = np.concatenate(losses)
    own = text.own[1:]
    within = np.arange(read) < context_length
    found = {
        "loss_within": loss[own & within].mean(),
        "loss_beyond": loss[own & ~within].mean(),
    }
    if asked:
        near = text.distances <= context_length
        nats, found_keys = np.array(asked).T
        for where, chosen in (("within", near), ("beyond", ~near)):
            found[f"nats_{where}"] = nats[chosen].mean()
            found[f"found_{where}"] = found_keys[chosen].sum()
            found[f"keys_{where}"] = chosen.sum()
    return {name: float(value) for name, value in found.items()}


def expressible(
    subject: Subject, factor: float, wanted: Sequence[str] | None = None
) -> tuple[list[Candidate], dict[str, str]]:
    """Every setting that needs no training and that the model's configuration can express, of those
    that make the same model the first; then the model as it is. And the reasons of the others.

    Args:
        wanted: the names of the methods; None for all.

    Raises:
        InputError: the factor adds no token, or one of these methods is none that can be ranked.
    """
    geometry = subject.geometry
    rope.scale(geometry, ORIGINAL, factor)  # refuses the factor
    of_model = own_model(subject.name, subject.name, geometry, (factor,))
    every = [
        Candidate(Setting.make(method, options).typed, method, options)
        for method, options in of_model.comparison(factor)
        if method != ORIGINAL
    ]
    ready = dict.fromkeys(setting.method for setting in every)
    for name in wanted or ():
        check_choice(name, "method that needs no training", ready)
    warm = yarn_attention_factor(factor)
    as_it_is = [
        Candidate("as it is, last L", ORIGINAL, {}, short=True),
        Candidate(
            f"as it is × {warm:.2f}, last L", ORIGINAL, {"attention_factor": warm}, short=True
        ),
        Candidate("as it is, at L'", ORIGINAL, {}),
    ]
    model = rotation.skeleton(subject.config)
    made: dict[str, str] = {}
    kept = []
    left_out = {}
    for setting in (*every, *as_it_is):
        if wanted and setting.extends and setting.method not in wanted:
            continue
        scaled = rope.scale(geometry, setting.method, factor, **setting.options)
        same = made.get(records.of_scaling(scaled)) if setting.extends else None
        if same:
            left_out[setting.name] = f"it makes the same model as {same}"
            continue
        try:
            extend.extend(model, setting.method, factor, **setting.options)
        except InputError as error:
            left_out[setting.name] = str(error)
            continue
        made[records.of_scaling(scaled)] = setting.name
        kept.append(setting)
    return kept, left_out


def counted(number: int, what: str) -> str:
    """Such as "1 text", "2 texts"."""
    return f"{number} {what}" if number == 1 else f"{number} {what}s"


def check_order(by: str | None, comparison: Comparison) -> None:
    """Raise InputError unless methods can be ranked so."""
    if by is not None:
        check_choice(by, "order", (ranking.KEYS, ranking.LOSS))
    if by == ranking.KEYS and not comparison.asked:
        raise InputError("keys cannot be asked for here, so they rank nothing; rank by loss.")


def show(comparison: Comparison, read: list[dict[str, dict]], arguments) -> None:
    """Print the ranking of the texts that were read, and draw it."""
    order = comparison.ranked(read, arguments.by)
    said = facts(comparison, order)
    if arguments.json:
        print(json.dumps(said, indent=1, ensure_ascii=False, allow_nan=False))
    else:
        print(f"\n{ranking.table(order)}\n")
        for line in (*said["notes"], "", *said["verdict"]):
            print(textwrap.fill(line, 100))
        print(f"\n{said['command']}")
    if arguments.plot:
        title = (
            f"{comparison.subject.name}, s = {comparison.factor:g}, "
            f"L = {comparison.context_length:,}, {counted(len(read), 'text')}"
        )
        ranking_figure.draw(order, title, arguments.plot)


if __name__ == "__main__":
    command_line.run(main)
