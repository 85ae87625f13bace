"""What the suites measure beyond the paper, and that the paper's part stands without it."""

from dataclasses import replace

import pytest

import records
from core import discovery, rope
from core.rope import scale
from experiments import suites
from experiments.kit.model import Model
from tests.experiments.test_rerun import chains, suite_of
from tests.files import read
from tests.models import random_model


def lines(every):
    return [" ".join(command) for chain in every for command in chain.commands]


SEEDS = [f"s={factor}_seed={seed}" for seed in range(3) for factor in (2, 4)]


@pytest.mark.parametrize(
    ("methods", "wanted"),
    [
        (None, ["new_s=2", "new_s=4"]),
        (["new"], [*(f"new_{run}" for run in SEEDS), "new_s=2", "new_s=4"]),
        (["learned"], [f"learned_{run}" for run in SEEDS]),
    ],
)
def test_a_method_registered_later_is_measured_and_fine_tuned_if_asked_for(
    tmp_path, monkeypatch, methods, wanted
):
    """Without training, by what needs none."""
    before = {chain.name for chain in chains(suite_of("tiny", tmp_path))}
    for name in ("new", "learned"):
        monkeypatch.setitem(rope.METHODS, name, None)  # which takes it away afterwards
        del rope.METHODS[name]
    rope.register("new")(
        lambda geometry, factor: rope.RopeScaling(geometry.inv_freq, 1.0, geometry.inv_freq < 0)
    )
    rope.register("learned", start=lambda *_: None)(lambda geometry, factor: None)
    asked = replace(suite_of("tiny", tmp_path), methods=methods)
    names = [chain.name for chain in chains(asked)]
    assert sorted(names) == sorted([*wanted, *(() if methods else before)])


def test_settings_of_the_same_frequencies_are_measured_once(tmp_path):
    """Each different selection once, whatever the method; what is measured anyway stands for it."""
    suite = suite_of("tiny", tmp_path)
    geometry = suite.model.geometry
    significant = 2 * int(scale(geometry, "dprope-significant", 2).interpolated.sum())
    others = [("dprope", {}), ("dprope", {"n_hat": 20}), ("dprope-significant", {}), ("clex", {})]
    settings = [("dprope", {"n_hat": n}) for n in (48, 46, 20, significant)]
    settings += [("dprope", {"intervals": b}) for b in (90, 180, 360)]
    chosen = suite.distinct(settings, 2, others)

    def frequencies(setting):
        return scale(geometry, setting[0], 2, **setting[1]).inv_freq.tobytes()

    assert len(chosen) < len(settings)
    assert len({frequencies(setting) for setting in chosen}) == len(chosen)
    assert {frequencies(setting) for setting in chosen} == {frequencies(each) for each in settings}
    # they stand for b = 360, for n̂ = 20 and for n̂ = `significant`
    assert all(setting in chosen for setting in others if setting[0] != "clex")


def test_without_the_folder_of_what_is_beyond_the_paper_its_part_is_measured(tmp_path, monkeypatch):
    every = set(lines(chains(suite_of("smollm2", tmp_path))))
    module = discovery.module
    monkeypatch.setattr(
        discovery, "module", lambda name: None if ".beyond." in name else module(name)
    )
    of_paper = lines(chains(suite_of("smollm2", tmp_path)))
    assert len(suites.find("smollm2")) == 1 and set(of_paper) < every
    methods = {line.split("--method ")[1].split()[0] for line in of_paper if "--method " in line}
    assert methods == {"original", "pi", "yarn", "dprope", "clex"}


ARMS = [  # fixed before any was scored; of each seed from 1 on, one sequence of each book
    "yarn_s=2_seed=0",
    "dprope_n-hat=40_s=2_seed=0",
    "dprope_s=2_seed=0",
    "yarn_s=2_seed=1",
    "dprope_n-hat=40_s=2_seed=1",
    "original_s=2_seed=1",
    "dprope_attention-factor=1.0693_n-hat=40_s=2_seed=1",
    "dprope_s=2_seed=1",
    "pi_s=2_seed=1",
    "yarn_s=2_seed=2",
    "dprope_n-hat=40_s=2_seed=2",
    "yarn_s=2_seed=3",
    "dprope_n-hat=40_s=2_seed=3",
    "clex_s=2_seed=0",
]


def test_smollm2_trains_its_arms_in_their_order_under_their_names_and_scores_each_at_once(
    done, tmp_path, monkeypatch
):
    """The name of a chain is that of the record which its training writes. SmolLM2's own
    configuration, which takes seconds to read, has no part in it."""
    monkeypatch.setattr(Model, "config", random_model().config)
    trained = []
    for chain in chains(suite_of("smollm2", tmp_path)):
        (module, *words), *scoring = chain.commands
        if module == "experiments.finetune":
            trained.append(chain.name)
            assert done(module, *words, "--dry-run").split()[:2] == ["run", chain.name]
            output = words[words.index("--output") + 1]
            assert ("--per-book" in words) == (not chain.name.endswith("seed=0"))
            scripts = [(command[0], command[2]) for command in scoring[:2]]
            names = "loss_by_position", "needles"
            assert scripts == [(f"experiments.beyond.{name}", output) for name in names]
    assert trained == ARMS


@pytest.mark.parametrize("model", ["tiny", "smollm2"])
def test_a_committed_record_belongs_to_a_chain_of_the_suite(tmp_path, model):
    measured = set()
    for chain in chains(suite_of(model, tmp_path)):
        measured |= {(command[0].split(".")[-1], chain.name) for command in chain.commands}
    # What chooses its methods itself has no method in its records' names, and learned factors are
    # measured in the chain that learns them.
    of_model = records.RESULTS / model
    checked = 0
    for file in [*of_model.glob("*/*.json"), *of_model.glob("beyond/*/*.json")]:
        experiment = file.parent.name
        record = read(file)
        if experiment != "time_cost" and record["run"]["method"] != "factors":
            runs = {(experiment, file.stem), (experiment, records.run_of(record["run"]))}
            assert runs & measured, file
            checked += 1
    assert checked > 50
