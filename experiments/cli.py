"""What every command line shares: the method's options, and how bad input is reported."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from pathlib import Path

from core import rope
from core.disturbance import CONVENTIONS
from core.errors import InputError, NonFiniteError
from experiments import scales
from experiments.records import RESULTS

# The methods' options that a command line sets; each is passed on only when given.
_METHOD_OPTIONS = ("n_hat", "threshold", "intervals", "convention", "level", "attention_factor", "weights")


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
    """--method, --factor and the methods' own options."""
    names = ", ".join(rope.METHODS)
    if several:
        to.add_argument("--method", nargs="+", help=f"among {names} (default: the scale's comparison)")
    else:
        to.add_argument("--method", default=method, help=f"one of {names}" + (f" (default {method})" if method else ""))
    to.add_argument("--factor", type=factor, default=2, metavar="S", help="scaling factor s = L'/L (default 2)")
    group = to.add_argument_group("options of dprope")
    group.add_argument("--n-hat", type=int, metavar="N", help="n̂: how many dimensions to interpolate (two per pair)")
    group.add_argument("--threshold", type=float, metavar="T", help="t: interpolate where D_E > D_I + t (default 0)")
    group.add_argument("--intervals", type=int, metavar="B", help="b: intervals of the histograms (default 360)")
    group.add_argument("--convention", help=f"of the disturbance: {' or '.join(CONVENTIONS)} (default released)")
    group = to.add_argument_group("option of dprope-significant")
    group.add_argument("--level", type=float, metavar="P", help="probability that noise moves a pair (default 0.05)")
    group = to.add_argument_group("option of yarn, dprope and dprope-significant")
    group.add_argument(
        "--attention-factor", type=float, metavar="F", help="YaRN's temperature (default: YaRN's own, dprope 1)"
    )
    group = to.add_argument_group("options of clex")
    group.add_argument("--weights", metavar="DIR", help="a fine-tuned model's directory, which holds clex.safetensors")


def add_results_argument(to: argparse.ArgumentParser) -> None:
    """--results, where records go to or come from."""
    to.add_argument("--results", type=directory, default=RESULTS, metavar="DIR", help="records (default results/)")


def rendering_arguments(module_doc: str, prog: str, default_scale: str, output: Path) -> argparse.Namespace:
    """The parsed command line of a table or figure: scale, output directory and records."""
    made = parser(module_doc, prog=prog)
    made.add_argument("--scale", default=default_scale, help=f"whose records to show (default {default_scale})")
    made.add_argument("--output", type=directory, default=output, metavar="DIR", help=f"default {output.name}/")
    add_results_argument(made)
    arguments = made.parse_args()
    scales.get(arguments.scale)
    return arguments


def method_options(arguments: argparse.Namespace) -> dict:
    """The method's options that were given."""
    given = {name: getattr(arguments, name) for name in _METHOD_OPTIONS}
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
