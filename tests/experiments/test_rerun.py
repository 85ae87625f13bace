"""The plan of a rerun, how it runs, and records that several settings share."""

import dataclasses
import json
import random
import shlex
import sys
import time
from multiprocessing import forkserver
from pathlib import Path

import pytest

from core.errors import InputError
from core.rope import RopeGeometry, scale
from experiments import harness, records, rerun, scales
from experiments.plan import Chain, Plan
from experiments.scales import Scale, Suite

EVALUATIONS = {"perplexity": "--lengths 64", "longbench_e": "--data {longbench_e}"}
SUITE = Suite(
    EVALUATIONS,
    quick=EVALUATIONS,
    miniature=("", "--samples 1"),
    seeds=3,
    n_hat=(48, 46, 40),
    intervals=(90, 180, 360),
)
PRESET = Scale("toy", "toy", RopeGeometry(64, 1300.0, 1024), n_hat={2: 20, 4: 18}, suite=SUITE)


def plan(tmp_path, quick=False):
    return Plan("toy", PRESET, tmp_path, tmp_path / "results", quick)


def trained(chains):
    return [chain.commands[0] for chain in chains if chain.commands[0][0] == "experiments.finetune"]


def test_every_method_and_factor_is_trained_once_per_seed(tmp_path):
    found = [" ".join(command[1:]) for command in trained(plan(tmp_path).chains("trained"))]
    for seed in range(3):
        for factor in (2, 4):
            for method in ("pi", "yarn", "clex", "dprope"):
                part = f"--method {method} --factor {factor}"
                runs = [line for line in found if part in line and f"--seed {seed}" in line]
                assert len(runs) == (2 if method == "dprope" else 1)
    assert len(found) == 3 * 2 * 5 and len(set(found)) == len(found)
    quick = plan(tmp_path, quick=True).chains("trained")
    assert len(trained(quick)) == 10 and all("--steps" in command for command in trained(quick))
    for chain in quick:
        assert {command[0] for command in chain.commands[1:]} == {f"experiments.{e}" for e in PRESET.suite.evaluations}


def test_times_are_taken_alone_and_of_clex_as_it_was_trained(tmp_path):
    ((command,),) = [chain.commands for chain in plan(tmp_path).timing()]
    given = vars(harness.parser("", "time_cost").parse_known_args(command[1:])[0])
    assert given["method"] == ["pi", "yarn", "dprope", "clex"] and given["factor"] == 2
    outputs = [line[line.index("--output") + 1] for line in trained(plan(tmp_path).chains("trained"))]
    assert given["weights"] in outputs and "clex_s=2_" in given["weights"]


def test_temperature_is_taken_from_yarn_and_given_to_dprope(tmp_path):
    assert not plan(tmp_path).chains("temperature")
    preset = dataclasses.replace(PRESET, suite=dataclasses.replace(SUITE, sharpened=("perplexity",)))
    chains = Plan("toy", preset, tmp_path, tmp_path / "results", False).chains("temperature")
    found = [" ".join(command) for command in trained(chains)]
    assert len(found) == len(set(found)) == 2 * 2 * 3 and len(chains) == 2 * 2 * 4
    for factor, n_hat, own in ((2, 20, "1.0693"), (4, 18, "1.1386")):
        wanted = f"--factor {factor} --n-hat {n_hat} --attention-factor {own} --seed"
        assert sum("--method dprope" in line and wanted in line for line in found) == 3
        wanted = f"--method yarn --factor {factor} --attention-factor 1.0 --seed"
        assert sum(wanted in line for line in found) == 3
    assert {command[0] for chain in chains for command in chain.commands} == {
        "experiments.finetune",
        "experiments.perplexity",
    }


def test_a_further_factor_is_measured_without_training_and_not_quickly(tmp_path):
    suite = dataclasses.replace(SUITE, farther={8: {"extension": "--books 1"}})
    made = Plan("toy", dataclasses.replace(PRESET, suite=suite), tmp_path, tmp_path / "results", False)
    commands = [" ".join(command) for chain in made.chains() for command in chain.commands if "8" in command]
    assert len(commands) == len(PRESET.comparison(8)) == len({line.split("--method")[1] for line in commands})
    assert all(line.startswith("experiments.extension --scale toy --method") for line in commands)
    assert all(" --factor 8 " in line and " --books 1 " in line for line in commands)
    quick = dataclasses.replace(made, quick=True).chains()
    assert not any("8" in command for chain in quick for command in chain.commands)


def test_a_selection_that_several_settings_share_is_trained_once(tmp_path):
    chains = plan(tmp_path).chains("ablations")
    settings = [{"n_hat": n} for n in PRESET.suite.n_hat] + [{"intervals": b} for b in PRESET.suite.intervals]
    selections = {scale(PRESET.geometry, "dprope", 2, **options).interpolated.tobytes() for options in settings}
    assert len(trained(chains)) == len(chains) == len(selections) < len(settings)
    shared = [(chain.name, setting) for chain in chains for _, setting in chain.shared]
    assert (
        "dprope_s=2_seed=0",
        ("dprope", {"intervals": 360}),
    ) in shared  # the default, trained for the comparison as well
    everything = plan(tmp_path).chains()
    assert len({chain.name for chain in everything}) == len(everything)
    assert {" ".join(command) for command in trained(chains)} < {" ".join(command) for command in trained(everything)}


def test_without_seeds_everything_is_measured_without_training(tmp_path):
    own = scale(PRESET.geometry, "dprope-significant", 2).interpolated
    significant = 2 * int(own.sum())
    assert (scale(PRESET.geometry, "dprope", 2, n_hat=significant).interpolated == own).all()
    suite = Suite(
        {"perplexity": "{books} --stride 64", "open_llm": "{benchmarks} --limit 5"},
        quick={"perplexity": "--stride 64", "selections": "--every 32"},
        once={"selections": "--every 4"},
        factors=(2,),
        n_hat=(48, 46, 40, significant, 20),
        intervals=(90, 180, 360),
        ablated={"n_hat": ("perplexity", "open_llm"), "intervals": ("open_llm",)},
    )
    preset = dataclasses.replace(PRESET, suite=suite)
    made = Plan("toy", preset, tmp_path, tmp_path / "results", False, (Path("a.txt"), Path("b.txt")), Path("items"))
    chains = made.chains()
    commands = [command for chain in chains for command in chain.commands]
    assert {command[0] for command in commands} == {
        f"experiments.{e}" for e in ("perplexity", "open_llm", "selections")
    }
    assert all(
        command[command.index("--text") :][1:3] == ["a.txt", "b.txt"] for command in commands if "--stride" in command
    )
    assert all(command[command.index("--data") + 1] == "items" for command in commands if "--limit" in command)
    # Each selection once: the comparison's own stand for settings that lead to the same pairs, whatever the method.
    swept = [("dprope", {"n_hat": n}) for n in suite.n_hat]
    by_intervals = [("dprope", {"intervals": b}) for b in suite.intervals]
    others = {"original", "pi", "ntk", "yarn"}

    def selections(settings):
        settings = [*PRESET.comparison(2), *settings]
        return {
            scale(PRESET.geometry, m, 2, **options).interpolated.tobytes() for m, options in settings if m not in others
        }

    for option, settings in (("--stride", swept), ("--limit", swept + by_intervals)):
        lines = [" ".join(command) for command in commands if option in command]
        assert len(lines) == len(set(lines)) == len(selections(settings)) + len(others)
    shared = {(file.parent.name, chain.name, str(setting)) for chain in chains for file, setting in chain.shared}
    assert ("open_llm", "dprope_s=2", "('dprope', {'intervals': 360})") in shared
    for experiment in ("open_llm", "perplexity"):
        assert (experiment, "dprope-significant_s=2", f"('dprope', {{'n_hat': {significant}}})") in shared
    assert not any("'n_hat': 20" in setting for *_, setting in shared)  # one of the comparison, as it is
    quick = [command for chain in dataclasses.replace(made, quick=True).chains() for command in chain.commands]
    assert ["32"] == [command[command.index("--every") + 1] for command in quick if "--every" in command]
    assert not made.timing() and not dataclasses.replace(made, experiments=("passkey",)).chains()


@pytest.mark.parametrize(("line", "texts"), [("--lengths 64", "_whole"), ("--lengths 64 --tokens 128", "")])
def test_a_shared_record_is_where_the_experiment_writes_it(tmp_path, line, texts):
    suite = dataclasses.replace(SUITE, evaluations={"perplexity": line}, ablated={"intervals": ("perplexity",)})
    suite = dataclasses.replace(suite, trained=(), n_hat=())
    chains = Plan("toy", dataclasses.replace(PRESET, suite=suite), tmp_path, tmp_path, False).chains("ablations")
    shared = [file.stem for chain in chains for file, setting in chain.shared if setting[1] == {"intervals": 360}]
    assert shared == [f"dprope_s=2{texts}"]


def test_what_is_not_to_be_trained_is_measured_as_it_is(tmp_path):
    suite = dataclasses.replace(
        SUITE, tuning="--length 64 {corpus}", trained=(), sharpened=("perplexity",), timing="--length 32"
    )
    made = Plan("toy", dataclasses.replace(PRESET, suite=suite), tmp_path, tmp_path, False, corpus="texts")
    tuned = [" ".join(command) for command in trained(made.chains())]
    assert len(tuned) == 3 * 2 * 5 and all("--length 64 --data texts --output" in line for line in tuned)
    as_they_are = made.chains("ablations") + made.chains("temperature")
    assert as_they_are and not trained(as_they_are)
    shared = [(chain.name, setting) for chain in as_they_are for _, setting in chain.shared]
    assert ("dprope_s=2", ("dprope", {"intervals": 360})) in shared
    ((command,),) = [chain.commands for chain in made.timing()]
    assert command[command.index("--length") + 1] == "32"


def test_a_folder_without_texts_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "argv", ["rerun", "--scale", "smollm2", "--list", "--books", str(tmp_path)])
    with pytest.raises(InputError, match="no text file in"):
        rerun.main()


def test_a_listed_command_can_be_given_to_a_shell(tmp_path, monkeypatch, capsys):
    book = tmp_path / "Dragon's Blood.txt"
    book.write_text("text")
    listed = ["rerun", "--scale", "smollm2", "--experiments", "perplexity", "--list", "--books", str(tmp_path)]
    monkeypatch.setattr(sys, "argv", listed)
    rerun.main()
    scored = [line for line in capsys.readouterr().out.splitlines() if "experiments.perplexity" in line]
    assert scored and all(str(book) in shlex.split(line) for line in scored)


def test_shared_records_stand_under_each_setting(tmp_path):
    record = {"method": "dprope", "factor": 2, "options": {"n_hat": 44}, "scores": [1], "identity": "x"}
    file = records.path(tmp_path, "tiny", "ruler", "dprope_n-hat=44_s=2_seed=0")
    file.parent.mkdir(parents=True)
    file.write_text(json.dumps(record))
    twin = rerun.share(file, "dprope", {"intervals": 180})
    assert twin.name == "dprope_intervals=180_s=2_seed=0.json"
    made = json.loads(twin.read_text())
    assert made["options"] == {"intervals": 180} and made["same_selection_as"] == file.stem and made["scores"] == [1]


def test_commands_run_in_order_and_a_failure_says_where(tmp_path):
    chains = [Chain(name, [["experiments.passkey", "--help"]] * 2) for name in "abc"]
    rerun.run(chains, 2, tmp_path / "logs")
    assert all((tmp_path / "logs" / f"{name}.log").read_text().count("usage:") == 2 for name in "abc")
    bad = Chain("bad", [["experiments.passkey", "--depths", "0"]])
    with pytest.raises(InputError, match=r"experiments.passkey failed \(give at least one depth.*bad.log"):
        rerun.run([bad], 1, tmp_path / "logs")


def test_commands_that_end_together_are_told_apart(tmp_path, monkeypatch):
    """Two that ask of the same process get its exit status and an error; slow to read it, they would meet often."""
    read, delay = forkserver.read_signed, random.Random(0)

    def slowly(pipe):
        time.sleep(0.2 * delay.random())
        return read(pipe)

    monkeypatch.setattr(forkserver, "read_signed", slowly)
    chains = [Chain(name, [["experiments.passkey", "--help"]] * 6) for name in "abc"]
    rerun.run(chains, 3, tmp_path / "logs")


def test_what_was_not_measured_is_not_shared(tmp_path):
    chain = Chain(
        "a", [["experiments.passkey", "--help"]], [(tmp_path / "absent.json", ("dprope", {"intervals": 360}))]
    )
    rerun.run([chain], 1, tmp_path / "logs")
    assert not list(tmp_path.glob("*.json"))


def test_a_scale_without_a_suite_is_refused(monkeypatch):
    monkeypatch.setattr(sys, "argv", ["rerun", "--scale", "llama2-7b"])
    with pytest.raises(InputError, match="has no suite"):
        rerun.main()
    bare = dataclasses.replace(PRESET, suite=Suite(EVALUATIONS))
    monkeypatch.setitem(scales.SCALES, "toy", bare)
    monkeypatch.setattr(sys, "argv", ["rerun", "--scale", "toy", "--only", "trained"])
    with pytest.raises(InputError, match="has no part 'trained'"):
        rerun.main()
