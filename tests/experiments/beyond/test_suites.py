"""What the suites measure beyond the paper, and that the paper's part stands without it."""

import shutil
from pathlib import Path

import pytest

from core import rope
from core.rope import scale
from experiments import base_models, suites
from experiments.suites.steps import flags
from tests.experiments.test_rerun import KNOWN, chains, suite_of


def lines(found):
    return [" ".join(command) for chain in found for command in chain.commands]


def test_a_method_registered_later_is_measured_and_one_that_is_learned_is_not(tmp_path, monkeypatch):
    before = {chain.name for chain in chains(suite_of("tiny", tmp_path))}
    for name in ("new", "learned"):
        monkeypatch.setitem(rope.METHODS, name, None)  # which takes it away afterwards
    rope.register("new")(lambda geometry, factor: rope.RopeScaling(geometry.inv_freq, 1.0, geometry.inv_freq < 0))
    rope.register("learned", start=lambda *_: None)(lambda geometry, factor: None)
    assert {chain.name for chain in chains(suite_of("tiny", tmp_path))} == before | {"new_s=2", "new_s=4"}


def test_settings_of_the_same_frequencies_are_measured_once(tmp_path):
    """Each different selection once, whatever the method; what is measured anyway stands for it."""
    suite, geometry = suite_of("tiny", tmp_path), base_models.get("tiny").geometry
    significant = 2 * int(scale(geometry, "dprope-significant", 2).interpolated.sum())
    known = [("dprope", {}), ("dprope", {"n_hat": 20}), ("dprope-significant", {}), ("clex", {})]
    asked = [("dprope", {"n_hat": n}) for n in (48, 46, 20, significant)]
    asked += [("dprope", {"intervals": b}) for b in (90, 180, 360)]
    found = {str(first): others for first, others in suite.distinct(asked, 2, known)}

    def frequencies(setting):
        return scale(geometry, setting[0], 2, **setting[1]).inv_freq.tobytes()

    assert len(found) == len({frequencies(setting) for setting in asked}) < len(asked)
    assert {"intervals": 360} in [options for _, options in found["('dprope', {})"]]
    assert ("dprope", {"n_hat": significant}) in found["('dprope-significant', {})"]
    assert found["('dprope', {'n_hat': 20})"] == []  # one of those known, as it is
    for setting in asked:
        (stands,) = [first for first, others in found.items() if first == str(setting) or setting in others]
        assert frequencies(eval(stands)) == frequencies(setting)


def test_without_the_folder_of_what_is_beyond_the_paper_its_part_is_measured(tmp_path, monkeypatch):
    every = {name: set(lines(chains(suite_of(name, tmp_path)))) for name in KNOWN[1:3]}
    shutil.copytree(Path(suites.__file__).parent, tmp_path / "suites", ignore=shutil.ignore_patterns("beyond"))
    monkeypatch.setattr(suites, "__path__", [str(tmp_path / "suites")])
    for name in every:
        found = lines(chains(suite_of(name, tmp_path)))
        assert len(suites.find(name)) == 1 and set(found) < every[name]
        methods = {line.split("--method ")[1].split()[0] for line in found if "--method " in line}
        assert methods == {"original", "pi", "yarn", "dprope", "clex"}


@pytest.mark.parametrize("name", KNOWN)
def test_an_experiment_alone_has_the_options_of_the_suites_first_command_of_it(name, tmp_path):
    """Also one of the last part, whose chain is made only if the suite runs."""
    first = {}
    for chain in chains(suite_of(name, tmp_path)):
        for module, *options in chain.commands:
            if "--factor" in options and not module.endswith("finetune"):
                factor = float(options[options.index("--factor") + 1])
                first.setdefault((module.split(".")[-1], factor), options)
    assert name != "tiny" or {("learned", 2), ("searched", 4)} < first.keys()
    for (experiment, factor), options in first.items():
        asked = suites.defaults(name, base_models.get(name), experiment, int(factor))
        stated = set(flags({**asked, "factor": int(factor)}))
        assert stated <= set(options), (experiment, factor)
