"""What a run needs, against the published sizes, the paper's hours, and what was measured."""

import pytest
import torch
import transformers

import records
from experiments.kit.model import resolve
from experiments.training import budget
from records import RESULTS
from tests.files import read

SEVEN = resolve("llama2-7b").architecture


@pytest.mark.parametrize(
    "model, published",
    [("llama2-7b", 6_738_415_616), ("llama2-13b", 13_015_864_320), ("smollm2", 134_515_008)],
)
def test_parameters_are_those_published_and_tied_ones_count_once(model, published):
    assert budget.parameters(resolve(model).architecture) == published


def test_the_papers_hours():
    """6 hours on 8 A100 for 7B at s = 2: 1,000 steps of 64 sequences of 8,192 tokens."""
    work = budget.flops(SEVEN, 1000 * 64 * 8192, 8192)
    assert work / (8 * budget.A100) == pytest.approx(6 * 3600, rel=0.05)


@pytest.mark.parametrize("tokens, measured", [(8192, 3.5937), (16384, 5.6207)])
def test_a_step_holds_what_was_measured_on_a_gpu(tokens, measured):
    """GB of four of 7B's layers beside weights and moments, in results/gpu.csv."""
    layers = transformers.LlamaConfig(**SEVEN.to_dict() | {"num_hidden_layers": 4})
    held = budget.activations(layers, tokens, checkpointing=True)
    assert sum(held.values()) / 1e9 == pytest.approx(measured, rel=0.15)


@pytest.mark.parametrize(
    "arguments, status, lines",
    # by hand from `memory`: 13B at s = 4 takes 45.3 GB on 8 GPUs, 30.7 on 16
    [
        (
            "llama2-13b --factor 4 --n-hat 64 --gpus 8",
            0,
            ["dprope_n-hat=64_s=4_seed=0", "DPRoPE (n̂ = 64)", "45.3 GB"],
        ),
        ("llama2-13b --factor 4 --gpus 16", 0, ["30.7 GB"]),
        ("llama2-7b --gpus 5", 0, ["on each of 4 GPUs"]),  # which share a batch of 64
        ("tiny --batch 3 --device-batch 2 --gpus 1", 2, ["3 sequences cannot be divided"]),
        ("tiny --method clex", 0, ["clex_s=2_seed=0"]),
    ],
)
def test_a_dry_run_says_what_is_true_and_trains_nothing(
    call, monkeypatch, arguments, status, lines
):
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 0)
    ended, out, err = call("finetune", "--dry-run", "--model", *arguments.split())
    assert ended == status
    for line in lines:
        assert line in out + err


def test_on_a_cpu_the_hours_are_its_own_or_none(call, monkeypatch):
    """A record's own run takes what it took: the median over the records of its device."""
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 0)
    file = RESULTS / "tiny/finetune/pi_s=2_seed=0.json"
    record = read(file)["environment"]
    for device, says in (("another", "unknown: "), (record["device"], " hours, as ")):
        monkeypatch.setattr(records, "environment", lambda device=device: {"device": device})
        status, out, _ = call("finetune", "--dry-run", "--model", "tiny", "--method", "pi")
        assert status == 0
        assert "A100" not in out
        last = out.splitlines()[-1]
        assert says in last
    assert float(last.split()[1]) * 3600 == pytest.approx(record["seconds"], rel=0.5)
