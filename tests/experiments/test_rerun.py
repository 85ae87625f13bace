"""The plan of a rerun, how it runs, records that several settings share, and a user's own model."""

import dataclasses
import importlib
import json
import random
import shlex
import sys
import time
from multiprocessing import forkserver
from pathlib import Path

import numpy as np
import pytest

from core import files, rope
from core.errors import InputError
from core.rope import RopeGeometry, scale
from experiments import base_models
from experiments.kit import experiment, own, pool, records
from experiments.kit.plan import Chain, Plan
from experiments.kit.suite import Ablation, Data, Step, Suite, Temperature, Trained
from tests.models import checkpoint

EVALUATIONS = (Step("perplexity", {"lengths": (64,)}), Step("longbench_e", data=Data.MINIATURE))
N_HAT, INTERVALS = Ablation("n_hat", (48, 46, 40)), Ablation("intervals", (90, 180, 360))
SUITE = Suite(
    EVALUATIONS,
    miniature=Step("miniature", quick={"samples": 1}),
    seeds=3,
    timing=Step("time_cost", {"length": 512}, {"repeats": 1}),
    ablations=(N_HAT, INTERVALS),
)
PRESET = Scale("toy", "toy", RopeGeometry(64, 1300.0, 1024), n_hat={2: 20, 4: 18}, suite=SUITE)


def plan(tmp_path, suite=SUITE, **given):
    return Plan("toy", dataclasses.replace(PRESET, suite=suite), tmp_path, tmp_path / "results", **given)


def trained(chains):
    return [chain.commands[0] for chain in chains if chain.commands[0][0] == "experiments.finetune"]


def lines(chains):
    return [" ".join(command) for chain in chains for command in chain.commands]


def test_a_step_states_its_options_as_the_command_line_takes_them():
    step = Step("perplexity", {"lengths": (64, 128), "by_position": True, "tokens": 9}, {"tokens": 4, "stride": [2]})
    known = experiment.parser("", "perplexity")
    known.add_argument("--lengths", type=int, nargs="+")
    known.add_argument("--stride", type=int, nargs="+", default=[256])
    known.add_argument("--tokens", type=int)
    known.add_argument("--by-position", action="store_true")

    def read(quick):
        given = vars(known.parse_args(step.arguments(quick)))
        return [given[name] for name in ("lengths", "by_position", "tokens", "stride")]

    assert read(False) == [[64, 128], True, 9, [256]]
    assert read(True) == [[64, 128], True, 4, [2]]  # as in full, but for what is stated to differ


def test_steps_read_what_the_call_names(tmp_path):
    """Texts, a benchmark's items and a corpus: those that are given, and without them what the suite says."""
    steps = tuple(Step(name, data=data) for name, data in (
        ("loss_by_position", Data.BOOKS), ("open_llm", Data.BENCHMARKS), ("longbench_e", Data.BENCHMARKS_GIVEN),
        ("ruler", None),
    ))  # fmt: skip
    suite = Suite((*steps, Step("passkey", quick=None)), seeds=1, books=2)

    def found(**given):
        chain = plan(tmp_path, suite, **given).chains("trained")[0]
        own = {command[0].removeprefix("experiments."): command[1:-2] for command in chain.commands}
        skip = {"finetune": own["finetune"].index("--output") + 2}
        return {name: rest[skip.get(name, 2) :] for name, rest in own.items()}

    plain = {"open_llm": [], "ruler": []}
    assert found() == {"finetune": [], "loss_by_position": ["--books", "2"], "passkey": [], **plain}
    assert found(quick=True) == {"finetune": ["--steps", "2"], "loss_by_position": ["--books", "1"], **plain}
    books = (Path("a.txt"), Path("b.txt"))
    assert found(books=books)["loss_by_position"] == ["--text", "a.txt", "b.txt"]
    assert found(books=books, quick=True)["loss_by_position"] == ["--text", "a.txt"]
    assert found(corpus="texts")["finetune"] == ["--data", "texts"]
    for name in ("open_llm", "longbench_e"):
        (tmp_path / "items" / name).mkdir(parents=True)
        given = found(benchmarks=tmp_path / "items")
        assert given[name] == ["--data", str(tmp_path / "items" / name)]
    assert found(experiments=["ruler"]) == {"finetune": [], "ruler": []}


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
        assert {command[0] for command in chain.commands[1:]} == {f"experiments.{e.experiment}" for e in EVALUATIONS}


def test_a_method_registered_later_is_measured_and_one_that_is_learned_is_not(tmp_path, monkeypatch):
    before = {chain.name for chain in plan(tmp_path).chains("untrained")}
    monkeypatch.setattr(rope, "METHODS", dict(rope.METHODS))
    rope.register("new")(lambda geometry, factor: None)
    rope.register("learned", start=lambda *_: None)(lambda geometry, factor: None)
    assert {chain.name for chain in plan(tmp_path).chains("untrained")} == before | {"new_s=2", "new_s=4"}


def test_times_are_taken_alone_and_of_clex_as_it_was_trained(tmp_path):
    ((command,),) = [chain.commands for chain in plan(tmp_path).timing()]
    given = vars(experiment.parser("", "time_cost").parse_known_args(command[1:])[0])
    assert given["method"] == ["pi", "yarn", "dprope", "clex"] and given["factor"] == 2
    outputs = [line[line.index("--output") + 1] for line in trained(plan(tmp_path).chains("trained"))]
    assert given["weights"] in outputs and "clex_s=2_" in given["weights"]
    assert command[command.index("--length") + 1] == "512"


def test_temperature_is_taken_from_yarn_and_given_to_dprope(tmp_path):
    assert not plan(tmp_path).chains("temperature")
    suite = dataclasses.replace(SUITE, temperature=Temperature(("perplexity",), trained=(2, 4)))
    chains = plan(tmp_path, suite).chains("temperature")
    found = [" ".join(command) for command in trained(chains)]
    assert len(found) == len(set(found)) == 2 * 2 * 3 and len(chains) == 2 * 2 * 4
    for factor, n_hat, own_factor in ((2, 20, "1.0693"), (4, 18, "1.1386")):
        wanted = f"--factor {factor} --n-hat {n_hat} --attention-factor {own_factor} --seed"
        assert sum("--method dprope" in line and wanted in line for line in found) == 3
        wanted = f"--method yarn --factor {factor} --attention-factor 1.0 --seed"
        assert sum(wanted in line for line in found) == 3
    assert {command[0] for chain in chains for command in chain.commands} == {
        "experiments.finetune",
        "experiments.perplexity",
    }


def test_a_further_factor_is_measured_without_training_and_not_quickly(tmp_path):
    suite = dataclasses.replace(SUITE, further={8: (Step("loss_by_position", {"books": 1}, quick=None),)})
    commands = [line for line in lines(plan(tmp_path, suite).chains()) if " 8 " in line]
    assert len(commands) == len(PRESET.comparison(8)) == len({line.split("--method")[1] for line in commands})
    assert all(line.startswith("experiments.beyond.loss_by_position --model toy --method") for line in commands)
    assert all(" --factor 8 " in line and " --books 1 " in line for line in commands)
    assert not any(" 8 " in line for line in lines(plan(tmp_path, suite, quick=True).chains()))


def test_a_selection_that_several_settings_share_is_trained_once(tmp_path):
    chains = plan(tmp_path).chains("ablations")
    settings = [{"n_hat": n} for n in N_HAT.values] + [{"intervals": b} for b in INTERVALS.values]
    selections = {scale(PRESET.geometry, "dprope", 2, **options).interpolated.tobytes() for options in settings}
    assert len(trained(chains)) == len(chains) == len(selections) < len(settings)
    twins = [(chain.name, setting) for chain in chains for _, setting in chain.twins]
    assert (
        "dprope_s=2_seed=0",
        ("dprope", {"intervals": 360}),
    ) in twins  # the default, trained for the comparison as well
    everything = plan(tmp_path).chains()
    assert len({chain.name for chain in everything}) == len(everything)
    assert {" ".join(command) for command in trained(chains)} < {" ".join(command) for command in trained(everything)}


def test_without_seeds_everything_is_measured_without_training(tmp_path):
    significant = 2 * int(scale(PRESET.geometry, "dprope-significant", 2).interpolated.sum())
    suite = Suite(
        (Step("perplexity", {"stride": 64}), Step("open_llm", {"limit": 5}, quick=None)),
        alone=(Step("selections", {"every": 4}, {"every": 32}),),
        factors=(2,),
        ablations=(
            Ablation("n_hat", (48, 46, 40, significant, 20), ("perplexity", "open_llm")),
            Ablation("intervals", INTERVALS.values, ("open_llm",)),
        ),
    )
    made = plan(tmp_path, suite)
    chains = made.chains()
    commands = lines(chains)
    assert {line.split()[0] for line in commands} == {
        f"experiments.{e}" for e in ("perplexity", "open_llm", "selections")
    }
    # Each selection once: the comparison's own stand for settings that lead to the same pairs, whatever the method.
    swept = [("dprope", {"n_hat": n}) for n in suite.ablations[0].values]
    by_intervals = [("dprope", {"intervals": b}) for b in INTERVALS.values]

    def models(settings):
        scalings = [scale(PRESET.geometry, method, 2, **options) for method, options in settings]
        return {(scaling.inv_freq.tobytes(), scaling.attention_factor) for scaling in scalings}

    known = PRESET.comparison(2)
    for option, settings in (("--stride", swept), ("--limit", swept + by_intervals)):
        found = [line for line in commands if option in line]
        assert len(found) == len(set(found)) == len(known) + len(models(settings) - models(known))
    twins = {(name, chain.name, str(setting)) for chain in chains for name, setting in chain.twins}
    assert ("open_llm", "dprope_s=2", "('dprope', {'intervals': 360})") in twins
    for experiment in ("open_llm", "perplexity"):
        assert (experiment, "dprope-significant_s=2", f"('dprope', {{'n_hat': {significant}}})") in twins
    assert not any("'n_hat': 20" in setting for *_, setting in twins)  # one of the comparison, as it is
    quick = lines(dataclasses.replace(made, quick=True).chains())
    assert [line.split("--every ")[1].split()[0] for line in quick if "--every" in line] == ["32"]
    assert not any("--limit" in line for line in quick)
    assert not made.timing() and not dataclasses.replace(made, experiments=("passkey",)).chains()


def test_newer_methods_are_fine_tuned_at_the_first_factor(tmp_path):
    suite = dataclasses.replace(SUITE, newer=Trained((rope.TO_BEAT, rope.COVERED), ("perplexity",), seeds=2))
    own = [chain for chain in plan(tmp_path, suite).chains("trained") if chain.method in suite.newer.methods]
    assert [[command[0] for command in chain.commands] for chain in own] == [
        ["experiments.finetune", "experiments.perplexity"]
    ] * 4
    assert {chain.name for chain in own} == {f"{name}_s=2_seed={n}" for name in suite.newer.methods for n in (0, 1)}
    quick = plan(tmp_path, suite, quick=True).chains("trained")
    assert len([chain for chain in quick if chain.method in suite.newer.methods]) == 2


def test_what_is_not_to_be_trained_is_measured_as_it_is(tmp_path):
    suite = dataclasses.replace(
        SUITE,
        training=Step("finetune", {"length": 64}, data=Data.CORPUS),
        ablations=tuple(dataclasses.replace(ablation, trained=False) for ablation in SUITE.ablations),
        temperature=Temperature(("perplexity",)),
    )
    made = plan(tmp_path, suite, corpus="texts")
    tuned = [" ".join(command) for command in trained(made.chains())]
    assert len(tuned) == 3 * 2 * 5 and all("--data texts --length 64 " in line for line in tuned)
    as_they_are = made.chains("ablations") + made.chains("temperature")
    assert as_they_are and not trained(as_they_are)
    twins = [(chain.name, setting) for chain in as_they_are for _, setting in chain.twins]
    assert ("dprope_s=2", ("dprope", {"intervals": 360})) in twins


def test_nothing_is_trained_that_nothing_is_measured_of(tmp_path):
    suite = dataclasses.replace(SUITE, alone=(Step("disturbance"),))
    assert [chain.name for chain in plan(tmp_path, suite, experiments=["disturbance"]).chains()] == ["alone"]


def test_one_method_alone(tmp_path):
    found = lines(plan(tmp_path, dataclasses.replace(SUITE, alone=(Step("disturbance"),)), methods=["yarn"]).chains())
    assert len([line for line in found if "finetune" in line]) == 3 * 2
    assert all("yarn" in line and "dprope" not in line for line in found)


def test_the_paper_trained_n_hat(tmp_path):
    """LLaMA2: DPRoPE is fine-tuned at n̂ alone, t = 0 measured without; b is varied at that n̂."""
    preset = base_models.get("llama2-13b")
    made = Plan("llama2-13b", preset, tmp_path, tmp_path)
    tuned = [chain.name for chain in made.chains("trained")]
    assert tuned == [
        f"{name}_s={factor}_seed=0"
        for factor, n_hat in ((2, 80), (4, 64))
        for name in ("pi", "yarn", f"dprope_n-hat={n_hat}", "clex")
    ]
    untrained = {chain.name for chain in made.chains("untrained")}
    assert {"dprope_s=2", "dprope_n-hat=80_s=2", "dprope_s=4", "dprope_n-hat=64_s=4"} < untrained
    chains = made.chains("ablations")
    swept = {("n_hat", chain.name) for chain in chains} | {("twin", str(s)) for chain in chains for _, s in chain.twins}
    for n_hat in (56, 64, 72, 88, 96):
        assert ("n_hat", f"dprope_n-hat={n_hat}_s=2_seed=0") in swept
    for intervals in (90, 180, 360, 720):
        found = ("n_hat", f"dprope_intervals={intervals}_n-hat=80_s=2_seed=0") in swept
        assert found or ("twin", str(("dprope", {"n_hat": 80, "intervals": intervals}))) in swept
    assert len(trained(chains)) == len(chains)


@pytest.mark.parametrize("name", [name for name, preset in base_models.MODELS.items() if preset.suite])
def test_every_command_of_a_suite_is_one_that_its_script_takes(tmp_path, name, monkeypatch):
    """Each distinct set of options is parsed by the script itself, which stops before it measures."""
    parsed = []

    class Stop(Exception):
        pass

    def stop(parser, *_):
        parsed.append(parser.parse_known_args(sys.argv[1:])[1])
        raise Stop

    monkeypatch.setattr("experiments.kit.command_line.existing_directory", Path)  # the miniature is yet to be made
    for quick in (False, True):
        made = Plan(name, base_models.get(name), tmp_path, tmp_path, quick)
        kinds = {}
        for chain in [*made.miniature(), *made.chains(), *made.timing()]:
            for command in chain.commands:
                options = tuple(word for word in command if word.startswith("--"))
                kinds.setdefault((command[0], options), command)
        for module, *arguments in kinds.values():
            monkeypatch.setattr(sys, "argv", [module, *arguments])
            with monkeypatch.context() as patched, pytest.raises(Stop):
                patched.setattr("argparse.ArgumentParser.parse_args", stop)
                importlib.import_module(module).main()
    assert parsed and not any(parsed)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (["--model", "smollm2", "--books", "{empty}"], "no text file in"),
        (["--model", "smollm2", "--books", "{empty}/none"], "--books {empty}/none is no directory"),
        (["--model", "smollm2", "--benchmarks", "{empty}/none"], "--benchmarks {empty}/none is no directory"),
        (["--model", "smollm2", "--benchmarks", "{empty}"], "no folder by the name of a benchmark"),
        (["--model", "tiny", "--corpus", "{empty}/none"], "--corpus {empty}/none is no directory"),
        (["--model", "tiny", "--experiments", "passkeys"], "no experiment 'passkeys'; choose among"),
        (["--model", "tiny", "--factor", "2"], "give --factor with --model only"),
        (["--model", "tiny", "--workers", "0"], "--workers"),
        (["--model", "tiny", "--methods", "yarn2"], "unknown method 'yarn2'"),
        (["--model", "smoke"], "has no suite"),
        (["--model", "llama2-7b", "--only", "ablations"], "has no part 'ablations'"),
        (["--model", "{empty}/none", "--factor", "2"], "no checkpoint at"),
        (["--model", "", "--factor", "2"], "--model is empty"),
    ],
)
def test_bad_input_is_refused_before_any_work(call, tmp_path, monkeypatch, given, said):
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    output = tmp_path / "output"
    (tmp_path / "empty").mkdir()
    arguments = [word.format(empty=tmp_path / "empty") for word in given]
    status, out, err = call("rerun", *arguments, "--output", output)
    assert (status, out) == (2, "") and said.format(empty=tmp_path / "empty") in err and err.count("\n") == 1
    assert not output.exists()


def test_a_listed_command_can_be_given_to_a_shell(call, tmp_path):
    book = tmp_path / "Dragon's Blood.txt"
    book.write_text("text")
    listed = ["rerun", "--model", "smollm2", "--experiments", "perplexity", "--list", "--books", tmp_path]
    scored = [line for line in call(*listed)[1].splitlines() if "experiments.perplexity" in line]
    assert scored and all(str(book) in shlex.split(line) for line in scored)


def test_records_stand_again_under_each_setting_of_the_same_pairs(tmp_path):
    """Those of the very run, whatever they were measured on; not another run's whose name begins alike."""

    def write(name, options, seed=None):
        training = {} if seed is None else {"training": {"seed": seed}}
        record = {"method": "dprope", "factor": 2, "options": options, "scores": [name], "identity": "x", **training}
        files.write_json(tmp_path / "perplexity" / f"{name}.json", record)

    write("dprope_n-hat=44_s=2_seed=0", {"n_hat": 44}, seed=0)
    write("dprope_n-hat=44_s=2_seed=0_whole", {"n_hat": 44}, seed=0)
    write("dprope_n-hat=44_s=2", {"n_hat": 44})
    write("dprope_n-hat=44_s=2_seed=01", {"n_hat": 44}, seed=1)
    twins = [("perplexity", ("dprope", {"intervals": 180})), ("ruler", ("dprope", {"intervals": 180}))]
    pool.share(Chain("dprope_n-hat=44_s=2_seed=0", [], twins), tmp_path)
    made = {file.stem: json.loads(file.read_text()) for file in tmp_path.glob("*/*intervals*.json")}
    assert set(made) == {"dprope_intervals=180_s=2_seed=0", "dprope_intervals=180_s=2_seed=0_whole"}
    for name, record in made.items():
        first = name.replace("intervals=180", "n-hat=44")
        assert record["options"] == {"intervals": 180} and record["scores"] == [record["same_selection_as"]] == [first]


def test_commands_run_in_order_and_a_failure_says_where(tmp_path):
    chains = [Chain(name, [["experiments.passkey", "--help"]] * 2) for name in "abc"]
    pool.run(chains, pool.Machine((), 2), tmp_path / "logs")
    assert all((tmp_path / "logs" / f"{name}.log").read_text().count("usage:") == 2 for name in "abc")
    bad = Chain("bad", [["experiments.passkey", "--depths", "0"]])
    with pytest.raises(InputError, match=r"experiments.passkey failed \(.*--depths.*bad.log"):
        pool.run([bad], pool.Machine((), 1), tmp_path / "logs")


def test_commands_that_end_together_are_told_apart(tmp_path, monkeypatch):
    """Two that ask of the same process get its exit status and an error; slow to read it, they would meet often."""
    read, delay = forkserver.read_signed, random.Random(0)

    def slowly(pipe):
        time.sleep(0.2 * delay.random())
        return read(pipe)

    monkeypatch.setattr(forkserver, "read_signed", slowly)
    chains = [Chain(name, [["experiments.passkey", "--help"]] * 6) for name in "abc"]
    pool.run(chains, pool.Machine((), 3), tmp_path / "logs")


def test_of_a_lenient_run_what_refuses_its_input_is_skipped(tmp_path):
    chain = Chain("a", [["experiments.passkey", "--model", "nonesuch"], ["experiments.passkey", "--help"]])
    ((experiment, reason),) = pool.run([chain], pool.Machine((), 1), tmp_path / "logs", lenient=True)
    assert experiment == "passkey" and "nonesuch" in reason
    assert "usage:" in (tmp_path / "logs" / "a.log").read_text()
    for options in (["--no-such-option"], ["--results", str(tmp_path / "logs" / "a.log")]):  # ours, or the machine's
        broken = Chain("b", [["experiments.passkey", *options]])
        with pytest.raises(InputError, match=r"experiments.passkey failed"):
            pool.run([broken], pool.Machine((), 1), tmp_path / "logs", lenient=True)


def test_sizes_follow_a_model_of_ones_own():
    for context_length, factors in ((256, (2,)), (8192, (2, 4))):
        preset = own.scale("mine", "path", RopeGeometry(64, 1e4, context_length), factors)
        options = {step.experiment: step.options for step in preset.suite.evaluations}
        longest = context_length * max(factors)
        for name in ("perplexity", "ruler"):
            assert options[name]["lengths"] == (context_length, *(context_length * factor for factor in factors))
        assert max(options["passkey"]["lengths"]) == 1.25 * longest
        assert options["perplexity"]["tokens"] > longest
        assert options["perplexity"]["stride"] <= context_length
        assert not preset.trained(2) and len(preset.comparison(2)) == len(PRESET.comparison(8))


def test_a_model_of_ones_own_is_measured_and_what_cannot_be_is_said(call, tmp_path, monkeypatch):
    """A real run on a random Llama with L = 256, given by a relative path; a second call finds all done."""
    checkpoint(tmp_path / "mine", max_position_embeddings=256)
    letters = np.random.default_rng(0).choice(list("abcdefgh "), 3000)
    (tmp_path / "texts").mkdir()
    (tmp_path / "texts" / "book.txt").write_text("".join(letters))
    monkeypatch.chdir(tmp_path)
    wanted = ["loss_by_position", "perplexity", "passkey", "disturbance"]
    command = ["rerun", "--model", "mine", "--factor", 2, "--books", "texts", "--output", "out", "--workers", 2]
    status, out, err = call(*command, "--experiments", *wanted)
    assert status == 0, err
    assert "skipped passkey: a passkey prompt does not fit" in out and out.count("skipped") == 1
    assert "MODEL=mine" in out and str(tmp_path / "out" / "results") in out
    folder = tmp_path / "out" / "results" / "mine"
    facts = json.loads((folder / "model.json").read_text())
    assert facts["geometry"] == {"head_dim": 16, "base": 10000.0, "context_length": 256} and facts["factors"] == [2]
    settings = [records.run_name(method, 2, options) for method, options in PRESET.comparison(8)]
    for experiment, file in (("loss_by_position", "_books=1"), ("perplexity", "")):
        assert {path.stem for path in (folder / experiment).iterdir()} == {setting + file for setting in settings}
    assert not (folder / "passkey").exists() and (folder / "disturbance" / "s=2.json").is_file()
    (book,) = json.loads((folder / "loss_by_position" / "pi_s=2_books=1.json").read_text())["blocks"]
    assert book == "book"


def test_another_model_under_the_name_of_one_that_was_measured_is_refused(call, tmp_path):
    first, second = (checkpoint(tmp_path / where / "mine", seed=seed) for where, seed in (("a", 0), ("b", 1)))
    namesake = checkpoint(tmp_path / "tiny")
    (tmp_path / "b" / "mine" / "training.json").write_text("{}")
    results = ["--results", tmp_path / "results", "--output", tmp_path / "out"]
    assert call("disturbance", "--model", first, *results[:2])[0] == 0
    for model, said in ((second, "fine-tuned for a longer context already"), (namesake, "bears its name")):
        status, out, err = call("rerun", "--model", model, *results)
        assert (status, out) == (2, "") and said in err and err.count("\n") == 1
    (tmp_path / "b" / "mine" / "training.json").unlink()
    facts = json.loads((tmp_path / "results/mine/model.json").read_text())
    files.write_json(tmp_path / "results/mine/model.json", facts | {"sha256": {"model.safetensors": "another's"}})
    status, out, err = call("rerun", "--model", second, *results)
    assert (status, out) == (2, "") and "another model of that name" in err and err.count("\n") == 1
    assert not (tmp_path / "out").exists()
