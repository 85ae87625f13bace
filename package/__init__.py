"""Extend the context window of Hugging Face models with RoPE: DPRoPE (EMNLP 2024), YaRN and others.

    from dprope import export, extend

    model = extend(model, "yarn", factor=2)    # any causal language model with a stock RoPE
    export(model, "DIR", tokenizer)            # a stock checkpoint

`methods()` names the methods. In a terminal, `dprope` lists the commands; `dprope best` says which
method suits a model.
"""

import importlib
import sys
from importlib.metadata import version
from pathlib import Path

__all__ = ["export", "extend", "extend_checkpoint", "methods"]

_USAGE = """\
dprope methods        what the methods are called and what they do
dprope best           which of them suits a model: its loss on your texts under each
dprope extend         write an extended checkpoint, or print the lines that serve it without a copy
dprope check          whether a server computes it as transformers does
dprope disturbance    how far each method moves a model's angles

dprope COMMAND --help explains its options, and dprope extend --help-methods those of methods."""
_SCRIPTS = {
    "best": "experiments.best",
    "check": "experiments.beyond.check",
    "disturbance": "experiments.disturbance",
    "extend": "experiments.extend",
}
_COMMANDS = *_SCRIPTS, "methods", "--help", "--version"


def methods() -> dict[str, str]:
    """The names of the methods, and what each does in a sentence or two."""
    rope = importlib.import_module(f"{__name__}.core.rope")
    return {name: method.about for name, method in rope.METHODS.items()}


def __getattr__(name: str) -> object:
    """What needs torch is imported when it is first named."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.core.extend"), name)


def __dir__() -> list[str]:
    return __all__


def main() -> None:
    """The command `dprope`, which hands over to a script of experiments/."""
    # The scripts import core, eval and experiments, which lie in one folder.
    core = importlib.import_module(f"{__name__}.core")
    sys.path.insert(0, str(Path(core.__file__).parents[1]))
    command_line = importlib.import_module("experiments.kit.command_line")

    def handed_over() -> None:
        name = sys.argv[1] if len(sys.argv) > 1 else "--help"
        if name in _SCRIPTS:
            sys.argv[:2] = [f"dprope {name}"]
            importlib.import_module(_SCRIPTS[name]).main()
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
            errors = importlib.import_module("core.errors")
            errors.check_choice(name, "command", _COMMANDS)

    command_line.run(handed_over)


def _print_methods() -> None:
    """Each method with its options, and what it needs."""
    rope = importlib.import_module(f"{__name__}.core.rope")
    for method in rope.METHODS.values():
        needs = [f"needs --{option}" for option in method.needs]
        needs += ["needs training"] if method.start else []
        needs += ["each prompt by its length, so it is not exported"] if method.by_length else []
        print(f"{method.name:20} {'; '.join([method.about.rstrip('.'), *needs])}")
        if options := rope.method_options(method.name):
            print(" " * 20, *(f"--{option.replace('_', '-')}" for option in options))
