"""What every command line shares: the method's options, and how bad input is reported."""

from __future__ import annotations

import argparse
import contextlib
import errno
import math
import multiprocessing
import os
import re
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import psutil

from core import files, rope
from core.errors import InputError, NonFiniteError
from experiments.lab.records import RESULTS

SEEDS = 2**32  # as many as NumPy takes


class UsageError(InputError):
    """A command line that names options which there are not, or gives them values that cannot be theirs."""


class Parser(argparse.ArgumentParser):
    """An argument parser whose errors are one sentence, as all others are."""

    def error(self, message: str) -> None:
        raise UsageError(f"{message.removesuffix('.')}; see {self.prog} --help.")


def parser(module_doc: str, **arguments) -> argparse.ArgumentParser:
    """An argument parser whose help is the module's docstring."""
    return Parser(description=module_doc, formatter_class=argparse.RawDescriptionHelpFormatter, **arguments)


def number(text: str) -> float:
    """A finite number above 0."""
    value = float(text)
    if not (math.isfinite(value) and value > 0):
        raise argparse.ArgumentTypeError(f"{text} is no finite number above 0")
    return value


def factor(text: str) -> float:
    """A scaling factor; whole ones as int, so that 2 and 2.0 name the same run."""
    value = number(text)
    return int(value) if value.is_integer() else value


def count(text: str) -> int:
    """A whole number of at least 1."""
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError(f"{text} is less than 1")
    return value


def none_or_more(text: str) -> int:
    """A whole number of at least 0."""
    value = int(text)
    if value < 0:
        raise argparse.ArgumentTypeError(f"{text} is less than 0")
    return value


def seed(text: str) -> int:
    """A seed that every generator here takes."""
    value = int(text)
    if not 0 <= value < SEEDS:
        raise argparse.ArgumentTypeError(f"{text} is not within 0 and {SEEDS - 1}")
    return value


def existing_directory(text: str) -> Path:
    """A directory to read from."""
    if not os.path.isdir(text):
        raise argparse.ArgumentTypeError(f"{text!r} is no directory")
    return Path(text)


def existing_file(text: str) -> Path:
    """A file to read."""
    if not os.path.isfile(text):
        raise argparse.ArgumentTypeError(f"{text!r} is no file")
    return Path(text)


def directory(text: str) -> Path:
    """A directory to write to, refused before any work where it is none or cannot be written to."""
    try:
        files.check_writable(Path(text))
    except InputError as error:
        raise argparse.ArgumentTypeError(str(error)) from error
    return Path(text)


def add_method_arguments(to: argparse.ArgumentParser, method: str | None = None, several: bool = False) -> None:
    """--method, --factor and every method's own options, by the signatures of the registry."""
    names = ", ".join(rope.METHODS)
    if several:
        default = "all that need no training; with --model, the checkpoint as it is"
        to.add_argument("--method", nargs="+", help=f"one or several of {names} (default: {default})")
    else:
        to.add_argument("--method", default=method, help=f"one of {names}" + (f" (default {method})" if method else ""))
    to.add_argument("--factor", type=factor, default=2, metavar="S", help="scaling factor s = L'/L (default 2)")
    group = to.add_argument_group("options of the methods (before the colon, those that take it)")
    for name, option in rope.all_options().items():
        default = f" (default {option.default})" if option.default not in (None, False, ()) else ""
        text = re.sub(r":\w+:`([^`]*)`", r"\1", option.text)  # a docstring's cross-references
        takers = "most methods" if name == rope.RESONANCE else ", ".join(option.methods)
        if option.type is bool:
            form = {"action": "store_true", "default": None}
        else:
            form = {"type": option.type, "metavar": option.type.__name__.upper()}
        if option.several:
            form |= {"nargs": "+"}
        to_help = f"{takers}: {text}{default}".replace("%", "%%")
        group.add_argument(f"--{name.replace('_', '-')}", **form, help=to_help)


def add_dtype_argument(to: argparse.ArgumentParser) -> None:
    """--dtype; None stands for what `models.chosen_dtype` makes of it."""
    default = "float32; on a GPU the half precision that the scale or the checkpoint's configuration states"
    to.add_argument("--dtype", choices=("float32", "bfloat16", "float16"), help=f"of the model (default {default})")


def add_results_argument(to: argparse.ArgumentParser) -> None:
    """--results, where records come from."""
    to.add_argument("--results", type=Path, default=RESULTS, metavar="DIR", help="of records (default results/)")


def add_records_arguments(to: argparse.ArgumentParser) -> None:
    """--results and --replace: where records go to, and whether one of another run may give way."""
    to.add_argument("--results", type=directory, default=RESULTS, metavar="DIR", help="for records (default results/)")
    to.add_argument("--replace", action="store_true", help="replace a record of the same name that is another run's")


def method_options(arguments: argparse.Namespace) -> dict:
    """The method's options that were given."""
    given = {name: getattr(arguments, name) for name in rope.all_options()}
    return {name: value for name, value in given.items() if value is not None}


def chosen_methods(arguments: argparse.Namespace) -> list[tuple[str, dict]]:
    """Each method of --method with those of the given options that it takes; one that none takes goes to all."""
    given = method_options(arguments)
    taken = {option for method in arguments.method for option in rope.method_options(method)}
    return [
        (
            method,
            {name: value for name, value in given.items() if name in rope.method_options(method) or name not in taken},
        )
        for method in arguments.method
    ]


def end_with_parent() -> None:
    """End this process and all that it started when the one that started it ends, however that is."""

    def wait() -> None:
        multiprocessing.parent_process().join()
        for process in psutil.Process().children(recursive=True):
            with contextlib.suppress(psutil.Error):
                process.kill()
        os._exit(1)  # as good as a kill, which every command stands

    threading.Thread(target=wait, daemon=True).start()


def run(main: Callable[[], None], otherwise: int = 2) -> None:
    """Call `main`; whatever a user can mend becomes one sentence and exit status 2, an interrupt 130.

    Args:
        otherwise: the exit status where not the model or the data are at fault, but the command line or the machine.
    """
    for stream in (sys.stdout, sys.stderr):  # a terminal that knows ASCII only shows n̂ as n\\u0302
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")
    try:
        main()
        sys.stdout.flush()
    except BrokenPipeError:  # the reader, such as `head`, has what it wanted
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except KeyboardInterrupt:
        print("\ninterrupted; the same command goes on from here.", file=sys.stderr)
        sys.exit(130)
    except Exception as error:
        sentence = explained(error)
        if sentence is None:
            raise
        print(f"error: {sentence}", file=sys.stderr)
        refused = isinstance(error, (InputError, NonFiniteError)) and not isinstance(error, UsageError)
        sys.exit(2 if refused else otherwise)


def explained(error: Exception) -> str | None:
    """The sentence that tells a user what to do about an error; None where only a developer can do something."""
    if isinstance(error, InputError):
        return str(error)
    if isinstance(error, NonFiniteError):
        return f"{error}; the run stopped there, and what was done before is kept."
    text = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
    if is_full_disk(error):
        return (
            f"no space left on the disk ({text}); free some and give the same command again, which goes on from here."
        )
    if is_out_of_memory(error):
        return (
            "out of memory; take shorter sequences, fewer at a time, --dtype bfloat16, or a machine with more of it "
            f"({text})."
        )
    if isinstance(error, OSError):
        return f"{text}; look at that path, its permissions and its disk, and give the same command again."
    return None


def is_full_disk(error: BaseException) -> bool:
    """Whether something could not be written for want of space."""
    if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
        return True
    # torch and safetensors write through code of their own and say it in words.
    words = ("No space left on device", "PytorchStreamWriter failed writing", "unexpected pos")
    return any(word in str(error) for word in words)


def is_out_of_memory(error: BaseException) -> bool:
    """Whether memory ran out, the machine's or a GPU's."""
    words = ("out of memory", "can't allocate memory", "not enough memory")
    return isinstance(error, MemoryError) or (
        isinstance(error, RuntimeError) and any(word in str(error) for word in words)
    )
