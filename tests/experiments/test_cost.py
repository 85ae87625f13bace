"""What a plan says a suite takes, against counts by hand."""

import pytest

from eval.perplexity import windows
from experiments import base_models
from experiments.kit import cost
from experiments.kit.plan import Chain, Plan
from experiments.training import budget


@pytest.fixture
def plan(tmp_path):
    return Plan("llama2-7b", base_models.get("llama2-7b"), tmp_path, tmp_path / "results")


def prompts(plan, experiment, *words):
    given = {"factor": ["2"]} | cost.options(["", *words])
    return [(prompt.count, prompt.read, prompt.written) for prompt in cost.PROMPTS[experiment](plan, given)]


def test_prompts_are_counted_from_a_command_line(plan, tmp_path):
    found = prompts(plan, "ruler", "--lengths", "4096", "8192", "--samples", "7", "--tasks", "vt", "qa_1")
    assert found == [(7, 4096 - 30, 30), (7, 4096 - 32, 32), (7, 8192 - 30, 30), (7, 8192 - 32, 32)]
    assert len(prompts(plan, "ruler", "--lengths", "4096")) == 13
    found = prompts(plan, "passkey", "--lengths", "2048", "20480", "--keys", "10")
    assert [(count, read) for count, read, _ in found] == [(50, 2048), (50, 20480)]
    found = prompts(plan, "longbench_e", "--tasks", "qasper", "--limit", "150")
    assert [(count, read) for count, read, _ in found] == [(100, 4000), (50, 8192 - 500)]
    book = tmp_path / "book.txt"
    book.write_bytes(b"a" * 36000)  # 10,000 tokens
    found = prompts(plan, "perplexity", "--lengths", "4096", "8192", "--stride", "256", "--text", str(book))
    brute = sum(end - begin for length in (4096, 8192) for begin, end, _ in windows(10000, length, 256))
    assert sum(count * read for count, read, _ in found) == brute


def test_every_step_that_a_gpu_does_has_a_row_and_the_whole_is_their_sum(plan):
    chains = [*plan.chains(), *plan.timing()]
    table = [line.split() for line in cost.report(plan, chains, 8, 80).splitlines()]
    first = next(number for number, line in enumerate(table) if line[:2] == ["in", "all"])
    rows = [[float(cell.replace(",", "")) for cell in line[-5:]] for line in table[1 : first + 1]]
    *parts, whole = rows
    for column, tolerance in ((0, 0), (1, 0.5), (2, 0.5), (4, 5)):
        assert abs(sum(row[column] for row in parts) - whole[column]) <= tolerance
    assert whole[3] == max(row[3] for row in parts)
    measured = {command[0].removeprefix("experiments.") for chain in chains for command in chain.commands}
    on_cpu = {step.experiment for step in plan.suite.alone}
    assert measured - on_cpu - {"finetune"} == {line[0] for line in table[1:first]} - {"fine-tune,"}


def test_a_fine_tune_takes_what_the_dry_run_says(plan):
    trained = plan.chains("trained")[0]
    row = cost.report(plan, [Chain("one", trained.commands[:1])], 8, 80).splitlines()[1].split()
    one = budget.Plan(8192, 1000, plan.preset.training, 8, 80)
    assert float(row[-3]) == pytest.approx(8 * budget.hours(cost.models.architecture("llama2-7b"), one), abs=0.06)
    assert row[-5] == "1" and float(row[-4].replace(",", "")) == pytest.approx(8192 * 64 * 1000 / 1e6, abs=0.06)


def test_prompts_are_decoded_as_many_at_a_time_as_fit(plan):
    config = cost.models.architecture("llama2-7b")
    weights = 2 * 6_738_415_616
    cache = 2 * 2 * 32 * 4096 * 8192  # keys and values of bfloat16, by layer and width
    fit = int((budget.FILLED * 80e9 - weights) / cache)
    assert cost.together(config, cost.Prompts(500, 8192 - 32, 32), 80) == fit
    assert cost.together(config, cost.Prompts(2, 8192 - 32, 32), 80) == 2
    assert cost.together(config, cost.Prompts(500, 8192 - 32, 32), 1) == 1


@pytest.mark.parametrize("name", ["llama2-13b", "llama2-7b-rehearsal"])
def test_a_plan_needs_neither_weights_nor_network(name, call, monkeypatch):
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    status, out, err = call("rerun", "--model", name, "--plan", "--gpus", 4)
    assert status == 0, err
    assert "4 A100s" in out


def test_a_plan_for_gpus_that_cannot_share_a_batch_is_refused(call):
    status, out, err = call("rerun", "--model", "llama2-7b", "--plan", "--gpus", 7)
    assert (status, out) == (2, "") and "7 GPUs" in err and err.count("\n") == 1


def test_a_plan_of_nothing_for_a_gpu_is_refused(call):
    status, out, err = call("rerun", "--model", "llama2-7b", "--experiments", "disturbance", "--plan")
    assert (status, out) == (2, "") and err.count("\n") == 1
