"""What every command line shares: the method's options, and how bad input is reported."""

from __future__ import annotations

import argparse
import os
import re
import sys
from collections.abc import Callable
from pathlib import Path

from core import rope
from core.errors import InputError, NonFiniteError
from experiments.lab.records import RESULTS


def parser(module_doc: str, **arguments) -> argparse.ArgumentParser:
    """An argument parser whose help is the module's docstring."""
    return argparse.ArgumentParser(
        description=module_doc, formatter_class=argparse.RawDescriptionHelpFormatter, **arguments
    )


def factor(text: str) -> float:
    """A scaling factor; whole ones as int, so that 2 and 2.0 name the same run."""
    value = float(text)
    return int(value) if value.is_integer() else value


def directory(text: str) -> Path:
    """A directory to write to, refused before any work where a file stands in its way."""
    path = Path(text)
    existing = next(part for part in (path, *path.absolute().parents) if part.exists())
    if not existing.is_dir():
        raise argparse.ArgumentTypeError(f"{existing} is no directory; give another path.")
    return path


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
        default = "" if option.default is None else f" (default {option.default})"
        text = re.sub(r":\w+:`([^`]*)`", r"\1", option.text)  # a docstring's cross-references
        group.add_argument(
            f"--{name.replace('_', '-')}",
            type=option.type,
            metavar=option.type.__name__.upper(),
            help=f"{', '.join(option.methods)}: {text}{default}".replace("%", "%%"),
        )


def add_results_argument(to: argparse.ArgumentParser) -> None:
    """--results, where records go to or come from."""
    to.add_argument("--results", type=directory, default=RESULTS, metavar="DIR", help="of records (default results/)")


def write_whole(file: Path, content: str | bytes) -> Path:
    """Write a file beside its place and rename it, so that a reader sees all of it or what was there before."""
    file.parent.mkdir(parents=True, exist_ok=True)
    partial = file.with_name(f".{file.name}.{os.getpid()}")
    partial.write_bytes(content.encode() if isinstance(content, str) else content)
    os.replace(partial, file)
    return file


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


def run(main: Callable[[], None]) -> None:
    """Call `main`; bad input and non-finite numbers become one sentence and exit status 2, an interrupt 130."""
    try:
        main()
    except InputError as error:
        print(f"error: {error}", file=sys.stderr)
        sys.exit(2)
    except NonFiniteError as error:
        print(f"error: {error}; the run stopped there, and what was done before is kept.", file=sys.stderr)
        sys.exit(2)
    except KeyboardInterrupt:
        print("\ninterrupted; the same command goes on from here.", file=sys.stderr)
        sys.exit(130)
