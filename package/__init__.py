"""Extend the context window of Hugging Face models with RoPE: DPRoPE (EMNLP 2024), YaRN and others.

    from dprope import export, extend

    model = extend(model, "yarn", factor=2)    # any causal language model with a stock RoPE
    export(model, "DIR", tokenizer)            # a stock checkpoint

`methods()` names the methods, and `best(model, texts)` says whether to extend a model, and by which
of them. In a terminal, `dprope` lists the commands.
"""

import contextlib
import pkgutil
import sys
from collections.abc import Iterator
from importlib import import_module
from importlib.metadata import version
from pathlib import Path

__all__ = ["best", "export", "extend", "extend_checkpoint", "methods"]

_USAGE = """\
dprope methods        what the methods are called and what they do
dprope best           whether to extend a model, and by which of them, on your texts
dprope extend         write an extended checkpoint, or print the lines that serve it without a copy
dprope check          whether a server computes it as transformers does
dprope disturbance    how far each method moves a model's angles

dprope COMMAND --help explains its options, and dprope extend --help-methods those of methods."""
_SCRIPTS = {
    "best": "experiments.beyond.best",
    "check": "experiments.beyond.check",
    "disturbance": "experiments.disturbance",
    "extend": "experiments.extend",
}
_COMMANDS = *_SCRIPTS, "methods", "--help", "--version"
_PARTS = "core", "eval", "records", "experiments"


def methods() -> dict[str, str]:
    """The names of the methods, and what each does in a sentence or two."""
    from .core import rope

    return {name: method.about for name, method in rope.METHODS.items()}


def best(model, texts, factor=2, tokenizer=None, methods=None, by=None):
    """Whether to extend a model, by which method, and what it costs: what `dprope best` prints.

    Args:
        model: a directory, a name on the Hugging Face hub, or a model that transformers loaded,
            which stays as it is.
        texts: a list of strings, each a text, or a file or folder of texts where there is one of
            this name.
        factor: s = L'/L.
        tokenizer: of a loaded model.
        methods: the names of those to compare; None for all that need no training.
        by: "keys" or "loss" to rank by; None for keys where they tell the methods apart.

    Returns:
        a pandas.DataFrame with a row for each method, the best first, and for the model as it is.
        Losses are in nats a token, `nats_…` in nats a key; `gap` is the difference to the first.
        Its `attrs` hold the rest, such as the sentences of "verdict".

    Raises:
        ValueError: something given cannot be used, or pandas is missing; the sentence says which.
    """
    with _as_scripts():
        script = import_module(_SCRIPTS["best"])
        table = script.best(model, texts, factor, tokenizer, methods, by)
    command = table.attrs["command"]
    table.attrs["command"] = command.replace("python -m experiments.extend", "dprope extend", 1)
    return table


@contextlib.contextmanager
def _as_scripts() -> Iterator[None]:
    """Inside the context, modules named `core`, `eval`, `records` and `experiments` are this
    package's; after it, what they were before.

    `core` is the same modules under both names: a model that was extended here is known there.
    """
    from . import core

    folder = str(Path(core.__file__).parents[1])
    before = _taken()
    sys.modules["core"] = core
    for each in pkgutil.walk_packages(core.__path__, "core."):
        sys.modules[each.name] = import_module(f"{__name__}.{each.name}")
    sys.path.insert(0, folder)
    try:
        yield
    finally:
        sys.path.remove(folder)
        _taken()
        sys.modules.update(before)


def _taken() -> dict:
    """The modules of these names, which are no longer imported then."""
    return {
        name: sys.modules.pop(name)
        for name in list(sys.modules)
        if name.partition(".")[0] in _PARTS
    }


def __getattr__(name: str) -> object:
    """What needs torch is imported when it is first named."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.core.extend"), name)


def __dir__() -> list[str]:
    return __all__


def main() -> None:
    """The command `dprope`, which hands over to a script of experiments/."""
    from . import core

    # The scripts import core, eval, records and experiments, which lie in one folder.
    sys.path.insert(0, str(Path(core.__file__).parents[1]))
    from core.errors import check_choice
    from experiments.kit import command_line

    def handed_over() -> None:
        name = sys.argv[1] if len(sys.argv) > 1 else "--help"
        if name in _SCRIPTS:
            sys.argv[:2] = [f"dprope {name}"]
            import_module(_SCRIPTS[name]).main()
        elif name == "methods":
            sys.argv[:2] = ["dprope methods"]
            text = "What the methods are called and what they do, with their options."
            command_line.parser(text, prog="dprope methods").parse_args()
            _print_methods()
        elif name in ("-h", "--help", "help"):
            print(_USAGE)
        elif name == "--version":
            print(version("dprope"))
        else:
            check_choice(name, "command", _COMMANDS)

    command_line.run(handed_over)


def _print_methods() -> None:
    """Each method with its options, and what it needs."""
    from .core import rope

    for method in rope.METHODS.values():
        needs = [f"needs --{option}" for option in method.needs]
        if method.start:
            needs.append("needs training")
        if method.by_length:
            needs.append("each prompt by its length, so it is not exported")
        print(f"{method.name:20} {'; '.join([method.about.rstrip('.'), *needs])}")
        if options := rope.method_options(method.name):
            print(" " * 20, *(f"--{option.replace('_', '-')}" for option in options))
