"""`python -m tests.documented` reads ("python", code) or ("run", module, arguments …), does it, prints how each ended.

Each is a fork of a process that has imported the libraries, which would take seconds, and nothing of the project.
"""

import importlib
import json
import os
import runpy
import sys
import traceback
from pathlib import Path

LIBRARIES = ("transformers.models.llama.modeling_llama", "matplotlib.pyplot", "scipy.stats")


def done(kind: str, what: list[str]) -> int:
    """The exit status of a step in a process of its own, whose output goes to the file `output`."""
    child = os.fork()
    if child:
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    status = 1
    out = os.open("output", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    os.dup2(out, 1)
    os.dup2(out, 2)
    try:
        if kind == "python":
            exec(what[0], {})
        else:
            sys.argv = what
            runpy.run_module(what[0], run_name="__main__", alter_sys=True)
        status = 0
    except SystemExit as stop:
        status = int(stop.code or 0)
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)


def main() -> None:
    for library in LIBRARIES:
        importlib.import_module(library)
    ends = []
    for kind, *what in json.load(sys.stdin):
        ends.append([what, done(kind, what), Path("output").read_text(encoding="utf-8", errors="replace")])
    print(json.dumps(ends))


if __name__ == "__main__":
    main()
