"""What every command line shares: types of arguments, the methods' options, and the one-sentence
errors."""

import argparse
import contextlib
import io
import math
import os
import re
import signal
import sys
import textwrap
import warnings
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from core import files, rope
from core.errors import InputError, NonFiniteError, in_one_line, meant

SKIPPED = "skipped "  # the beginning of a line in which a command says what it leaves out
_SCORED_AT = ("length", "depth", "start", "end")  # what a score in a list is of
_MOST = 10**12  # tokens, steps or samples, more than any machine measures
_OWN_PLACE = "build/own/results/"
_PLACES = f"results/, for a model of your own {_OWN_PLACE}"


class UsageError(InputError):
    """A command line with an unknown option, or with a value that an option cannot have."""


_LEFT_OPEN = object()  # the value of an option that a command line does not state


class _Given(argparse.Action):
    """An option with a value, which is given once, or with several, which go on where it is given
    again; each of these counts once, and whole numbers are sorted."""

    def __call__(self, parser, namespace, values, option_string=None):
        before = getattr(namespace, self.dest)
        if before is not _LEFT_OPEN:
            if self.nargs != "+":
                raise argparse.ArgumentError(self, "it is given twice; give it once")
            values = [*before, *values]
        if isinstance(values, list):
            values = list(dict.fromkeys(values))
            if all(isinstance(value, int) for value in values):
                values.sort()
        setattr(namespace, self.dest, values)


class Parser(argparse.ArgumentParser):
    """An argument parser whose errors are one sentence.

    An option is given once, or it goes on: see :class:`_Given`. A number such as -1e-3 is a value.

    Attributes:
        stated: the values of those options that the last command line stated.
    """

    def __init__(self, *arguments, **options) -> None:
        super().__init__(*arguments, **options)
        self.register("action", None, _Given)
        self._negative_number_matcher = re.compile(r"-(\d|\.\d|inf|nan)", re.IGNORECASE)

    def error(self, message: str) -> None:
        _, unknown, words = message.partition("unrecognized arguments: ")
        if unknown:
            message += meant(words.split()[0], self._option_string_actions)
        raise UsageError(f"{message.removesuffix('.')}; see {self.prog} --help.")

    def parse_known_args(self, args=None, namespace=None):
        defaults = {
            action.dest: action.default
            for action in self._actions
            if action.default != argparse.SUPPRESS
        }
        namespace = argparse.Namespace(**dict.fromkeys(defaults, _LEFT_OPEN))
        found, others = super().parse_known_args(args, namespace)
        self.stated = {
            name: value for name, value in vars(found).items() if value is not _LEFT_OPEN
        }
        return argparse.Namespace(**defaults | self.stated), others


class Help(argparse.RawDescriptionHelpFormatter):
    """Ends an option's help with its default; what the help says of one that is None holds if it is
    None."""

    def _get_help_string(self, action: argparse.Action) -> str:
        default = action.default
        if default is None or default is False or default == argparse.SUPPRESS:
            return action.help
        text = re.sub(r" \(default.*\)$", "", action.help)
        if default is True:
            return text
        shown = " ".join(map(str, default)) if isinstance(default, list) else default
        return f"{text} (default {shown})".replace("%", "%%")


def option(
    to, name: str, type: Callable, metavar: str, text: str, default: object = None
) -> argparse.Action:
    """Add an option with a value."""
    return to.add_argument(name, type=type, metavar=metavar, default=default, help=text)


def list_option(
    to, name: str, type: Callable, metavar: str, text: str, default: list | None = None
) -> None:
    """Add an option with several different values."""
    option(to, name, type, metavar, text, default).nargs = "+"


def as_called(text: str) -> str:
    """A text that names scripts, with their names as this one was called by: `dprope NAME` where
    that is installed."""
    if sys.argv[0].startswith("dprope "):
        return re.sub(r"python -m experiments\.(beyond\.)?", "dprope ", text)
    return text


def parser(module_doc: str, prog: str | None = None, **arguments) -> Parser:
    """An argument parser whose help is the module's docstring.

    Args:
        prog: how the script is called from a checkout.
    """
    prog = prog and as_called(prog)
    return Parser(prog, description=as_called(module_doc), formatter_class=Help, **arguments)


def number(text: str) -> float:
    """A finite number above 0."""
    with contextlib.suppress(ValueError):
        value = float(text)
        if 0 < value < math.inf:
            return value
    raise argparse.ArgumentTypeError(f"{text!r} is not a finite number above 0")


def factor(text: str) -> float:
    """A scaling factor, such as 2; a whole one becomes an int, so that 2 and 2.0 name the same
    run."""
    value = number(text)
    return int(value) if value.is_integer() else value


def count(text: str, least: int = 1, most: int = _MOST) -> int:
    """A whole number of at least 1."""
    value = int(text)
    if value < least:
        raise argparse.ArgumentTypeError(f"{value} is less than {least}")
    if value > most:
        raise argparse.ArgumentTypeError(f"{value} is more than {most}")
    return value


def count_or_all(text: str) -> int | None:
    """A whole number of at least 1; None for the word "all"."""
    return None if text == "all" else count(text)


def none_or_more(text: str) -> int:
    """A whole number of at least 0."""
    return count(text, least=0)


def two_or_more(text: str) -> int:
    """A whole number of at least 2: of tokens, of which the first is not predicted."""
    return count(text, least=2)


def seed(text: str) -> int:
    """A seed that every random generator used here accepts."""
    return count(text, least=0, most=2**32 - 1)


def existing_directory(text: str) -> Path:
    """A directory to read from."""
    if not os.path.isdir(text):
        raise argparse.ArgumentTypeError(f"{text!r} is not a directory")
    return Path(text)


def path(text: str) -> Path:
    """A path; refused if it is empty, as an unset variable of a shell is."""
    if not text:
        raise argparse.ArgumentTypeError("it is empty; give a path, or leave the option out")
    return Path(os.path.expanduser(text))  # a shell leaves --results=~/x as it is


def directory(text: str) -> Path:
    """A directory to write to; refused, before any work, if it cannot be written to."""
    place = path(text)
    try:
        files.check_writable(place)
    except InputError as error:
        raise argparse.ArgumentTypeError(str(error)) from error
    return place


def add_method_arguments(
    to: argparse.ArgumentParser, several: str = "", many: str = "one or more of"
) -> None:
    """Add --method, --factor and every method's own options, as the registry's signatures have
    them.

    Args:
        several: where several methods are taken, the words for the default; one must be given
            otherwise.
        many: what --help says of how many.
    """
    to.usage = "%(prog)s [options]"  # all of them would fill half a page
    names = ", ".join(rope.METHODS)
    if several:
        list_option(to, "--method", str, "NAME", f"{many} {names} (default: {several})")
    else:
        to.add_argument("--method", required=True, metavar="NAME", help=f"one of {names}")
    add_factor_argument(to)
    of_methods = rope.all_options()
    lines = []
    for name in rope.METHODS:
        flags = [_flag(option) for option in of_methods if name in of_methods[option]["methods"]]
        if flags:
            lines.append(f"{name:20} {' '.join(flags)}")
    group = to.add_argument_group("options of the methods", "\n".join(lines))
    explained = []
    for name, option in of_methods.items():
        flag = _flag(name)
        explained.append(f"{flag}\n{textwrap.indent(_explanation(option), '    ')}")
        how: dict = {"action": "store_true"}
        if option["type"] is not bool:
            how = {"type": option["type"]}
        try:
            group.add_argument(flag, default=None, help=argparse.SUPPRESS, **how)
        except argparse.ArgumentError as error:
            raise InputError(
                f"the option {name} of the method {option['methods'][0]!r} has the name of one of "
                "this script's own; give it another name."
            ) from error
    to.add_argument(
        "--help-methods",
        action="version",
        version="\n".join(explained),
        help="explain the options of the methods",
    )


def _flag(name: str) -> str:
    return f"--{name.replace('_', '-')}"


def _explanation(option: dict) -> str:
    """What a method's option does, after the methods that take it, in lines."""
    shown = option["default"]
    default = f" (default {shown})" if shown not in (None, False, "") else ""
    return textwrap.fill(f"{', '.join(option['methods'])}: {option['text']}{default}")


def add_factor_argument(to: argparse.ArgumentParser) -> None:
    """Add --factor."""
    option(to, "--factor", factor, "S", "scaling factor s = L'/L", 2)


def on_or_off(to: argparse._ActionsContainer, name: str, on: str, off: str) -> None:
    """Add --NAME and --no-NAME, of which one is given, or neither.

    Args:
        on, off: what each does.
    """
    one = to.add_mutually_exclusive_group()
    one.add_argument(f"--{name}", action="store_true", default=None, help=on)
    one.add_argument(f"--no-{name}", action="store_false", dest=name, default=None, help=off)


def add_dtype_argument(to: argparse.ArgumentParser) -> None:
    """Add --dtype; if it is not given, `Model.chosen_dtype` decides."""
    to.add_argument(
        "--dtype",
        choices=("float32", "bfloat16", "float16"),
        help="dtype of the model (default float32; on a GPU the half precision that the model "
        "states)",
    )


def add_results_argument(to: argparse.ArgumentParser) -> None:
    """Add --results, where records are read."""
    option(to, "--results", path, "DIR", f"read records from DIR (default {_PLACES})")


def add_records_arguments(to: argparse.ArgumentParser, own: bool = False) -> None:
    """Add --results and --replace: where records are written, and whether they are replaced.

    Args:
        own: whether they go to the folder of one's own models by default.
    """
    place = _OWN_PLACE if own else _PLACES
    option(to, "--results", directory, "DIR", f"write records to DIR (default {place})")
    to.add_argument(
        "--replace",
        action="store_true",
        help="begin anew, and replace a record, or a checkpoint, of that name",
    )


def given_options(arguments: argparse.Namespace) -> dict:
    """The methods' options that the command line gives."""
    values = {name: getattr(arguments, name) for name in rope.all_options()}
    return {name: value for name, value in values.items() if value is not None}


def check_method(arguments: argparse.Namespace) -> None:
    """Raise UsageError if there is an option of a method and no method."""
    if not arguments.method and (options := given_options(arguments)):
        raise UsageError(
            f"{_flag(next(iter(options)))} is an option of a method; give --method, too."
        )


def chosen_methods(arguments: argparse.Namespace) -> list[tuple[str, dict]]:
    """Each method of --method with the given options that it takes.

    An option that none of them takes goes to all of them, so that it is refused.
    """
    given = given_options(arguments)
    taken = {name for method in arguments.method for name in rope.method_options(method)}
    chosen = []
    for method in arguments.method:
        of_others = taken - rope.method_options(method).keys()
        own = {name: given[name] for name in given if name not in of_others}
        chosen.append((method, rope.changed_options(method, own)))
    return chosen


def rows(scores: object, *label: str) -> Iterator[tuple[str, str, str, str]]:
    """The scores of a record as rows: what each is of, its mean, its interval and its samples.

    Args:
        label: what all of them are of.
    """
    if isinstance(scores, list):
        for each in scores:
            yield from rows(each, *label)
    if not isinstance(scores, dict):
        return
    label += tuple(f"{name} {scores[name]}" for name in _SCORED_AT if name in scores)
    if {"mean", "low", "high"} <= scores.keys():
        of_several = scores["low"] < scores["high"]
        interval = f"[{scores['low']:.4g}, {scores['high']:.4g}]" if of_several else ""
        yield " ".join(label), f"{scores['mean']:.4g}", interval, f"n = {scores.get('n', '?')}"
    else:
        for name, inner in scores.items():
            yield from rows(inner, *label, name)


def aligned(table: Iterable[tuple[str, ...]]) -> list[str]:
    """Rows as lines whose columns stand below each other."""
    lines = [*table]
    widths = [max(map(len, column)) for column in zip(*lines)]
    return ["  ".join(map(str.ljust, line, widths)).rstrip() for line in lines]


def run(main: Callable[[], None]) -> None:
    """Call `main`. An error that a user can fix becomes one sentence and exit status 2; an
    interrupt exits with 130.

    Whoever keeps a part of an unfinished run adds a note to the error that says so.
    """
    if sys.stdout is None:  # the shell closed it (>&-)
        sys.stdout = io.StringIO()
    for stream in (sys.stdout, sys.stderr):  # a terminal with ASCII only shows n̂ as n\\u0302
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")
    warnings.formatwarning = lambda message, *_, **__: f"note: {message}\n"
    try:
        for word in sys.argv:
            word.encode()  # refused before any work: libraries and records take UTF-8 alone
        main()
        sys.stdout.flush()
    except BrokenPipeError:  # the reader, such as `head`, has read enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(128 + signal.SIGPIPE)  # as of any program; what was still to be done is not
    except KeyboardInterrupt as error:
        print(f"\ninterrupted{_kept(error)}.", file=sys.stderr)
        sys.exit(130)
    except Exception as error:
        sentence = explained(error)
        if sentence is None:
            raise
        print(f"error: {sentence}", file=sys.stderr)
        sys.exit(2)


def _kept(error: BaseException) -> str:
    """What an unfinished run has kept, to end a sentence; empty if nobody has noted it."""
    return "".join(f"; {note}" for note in getattr(error, "__notes__", ()))


def explained(error: Exception) -> str | None:
    """The sentence that tells a user what to do about an error; None if only a developer can fix
    it."""
    if isinstance(error, InputError):
        return str(error)
    if isinstance(error, NonFiniteError):
        return f"{error}{_kept(error)}."
    if isinstance(error, UnicodeEncodeError):
        return (
            f"{error.object!a} holds what the encoding of this locale, "
            f"{sys.getfilesystemencoding()}, cannot read; set PYTHONUTF8=1."
        )
    text = in_one_line(error, width=400)  # which has room for a path
    # torch and safetensors have writers of their own, which report a full disk, and a limit of a
    # file's size, only in the message.
    full = (
        "No space left on device",
        "File too large",
        "Disk quota exceeded",
        "PytorchStreamWriter failed writing",
        "unexpected pos",
        "iostream error",
    )
    if any(words in str(error) for words in full):
        return (
            f"no space left on the disk, or for a file as large as this (ulimit -f) ({text}); free "
            f"some and run the same command again{_kept(error)}."
        )
    short = "out of memory", "can't allocate memory", "not enough memory"
    if isinstance(error, MemoryError) or any(words in str(error) for words in short):
        return (
            "out of memory; use shorter sequences, fewer at a time, --dtype bfloat16, or a "
            "machine with more memory "
            f"({text})."
        )
    # "os error 27": so do they report any other error of a disk
    if isinstance(error, OSError) or "(os error " in text:
        return (
            f"{text}; check that path, its permissions and its disk, and run the same command "
            f"again."
        )
    return None
