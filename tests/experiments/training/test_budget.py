"""What a run needs, against the published sizes, the paper's hours, and what a real pass over a
small model holds."""

import json

import pytest
import torch
import transformers

from core.geometry import RopeGeometry, RopeScaling
from experiments.base_models import MODELS
from experiments.kit import records
from experiments.kit.checkpoint import Checkpoint
from experiments.kit.records import RESULTS
from experiments.training import budget
from tests.models import random_model

SEVEN = budget.sizes(Checkpoint("llama2-7b").architecture)
THIRTEEN = budget.sizes(Checkpoint("llama2-13b").architecture)
PAPERS = MODELS["llama2-7b"].training


def test_parameters_are_those_published_and_tied_ones_count_once():
    assert SEVEN.parameters == 6_738_415_616
    assert THIRTEEN.parameters == 13_015_864_320
    model = random_model(tie_word_embeddings=True)
    size = budget.sizes(model.config)
    # the one matrix is the head's too
    assert size.parameters == size.multiplied == model.num_parameters()
    untied = random_model()
    assert budget.sizes(untied.config).multiplied == untied.num_parameters() - 300 * 64


def test_the_papers_hours():
    """6 hours on 8 A100 for 7B at s = 2: 1,000 steps of 64 sequences of 8,192 tokens."""
    work = budget.flops(SEVEN, 1000 * 64 * 8192, 8192)
    assert work / (8 * budget.A100) == pytest.approx(6 * 3600, rel=0.05)


def saved_for_backward(model, tokens, autocast):
    """Bytes of the different tensors that a forward pass keeps, the weights and their copies not
    counted."""
    weights = {parameter.untyped_storage().data_ptr() for parameter in model.parameters()}
    shapes = {parameter.shape for parameter in model.parameters() if parameter.ndim == 2}
    kept = {}

    def pack(tensor):
        storage = tensor.untyped_storage()
        copied = tensor.ndim == 2 and not shapes.isdisjoint({tensor.shape, tensor.T.shape})
        if storage.data_ptr() not in weights and not copied:
            kept[storage.data_ptr()] = storage
        return tensor

    hooks = torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor)
    with hooks, torch.autocast("cpu", torch.bfloat16, enabled=autocast):
        output = model.model(torch.arange(tokens)[None] % 50, use_cache=False)
    assert output.last_hidden_state.grad_fn
    return sum(storage.nbytes() for storage in kept.values())


@pytest.mark.parametrize("autocast", [False, True])
def test_activations_are_what_a_forward_pass_keeps(autocast):
    """In bfloat16 or under autocast, of a small model, from two depths: what a layer adds."""
    kept = []
    for layers in (1, 4):
        config = transformers.LlamaConfig(
            hidden_size=64,
            intermediate_size=176,
            num_hidden_layers=layers,
            num_attention_heads=4,
            num_key_value_heads=2,
            vocab_size=50,
        )
        model = transformers.AutoModelForCausalLM.from_config(config).train()
        kept.append(saved_for_backward(model if autocast else model.bfloat16(), 128, autocast))
    phases = budget.activations(budget.sizes(config), 128, checkpointing=False, autocast=autocast)
    gradients = 128 * 3 * 2 * 176
    a_layer = (phases["activations"] - gradients) / 4
    assert a_layer == pytest.approx((kept[1] - kept[0]) / 3, rel=0.03)


def test_memory_at_the_papers_scale():
    """By hand: 2 + 4 + 12 bytes a parameter, divided by the GPUs; on one GPU 4 + 4 + 8."""
    for gpus, bytes_each in ((8, [2, 4, 12]), (1, [4, 4, 8])):
        peak = budget.memory(SEVEN, PAPERS, 8192, gpus)
        states = [peak[name] for name in ("weights", "gradients", "optimizer")]
        assert states == pytest.approx([n * 6.738415616 / gpus for n in bytes_each])


@pytest.mark.parametrize(
    ("arguments", "status", "lines"),
    # by hand from `memory`: 13B at s = 4 takes 45.3 GB on 8 GPUs, 30.7 on 16
    [
        (
            "llama2-13b --factor 4 --n-hat 64 --gpus 8 --memory 40",
            0,
            ["dprope_n-hat=64_s=4_seed=0", "dprope (n̂ = 64)", "45.3 GB", "fills more"],
        ),
        ("llama2-13b --factor 4 --gpus 16 --memory 40", 0, ["30.7 GB of 40", "fits"]),
        ("llama2-7b --gpus 5", 2, ["a batch of 64 sequences cannot be divided"]),
        ("tiny", 0, ["dprope_s=2_seed=0", "dprope (t = 0)", "on each of 1 GPUs: fits"]),
        ("tiny --method pi", 0, ["pairs 0–31 of 32 are interpolated"]),
        ("tiny --method original", 0, ["none of 32 pairs is interpolated"]),
    ],
)
def test_a_dry_run_says_what_is_true_and_trains_nothing(call, arguments, status, lines):
    ended, out, err = call("finetune", "--dry-run", "--model", *arguments.split())
    assert ended == status
    for line in lines:
        assert line in out + err


def test_pairs_are_named_and_those_of_a_blend_counted():
    geometry = RopeGeometry(head_dim=12, base=10000.0, context_length=64)

    def said(*divisors):
        inv_freq = geometry.inv_freq / divisors
        return budget.pairs(geometry, RopeScaling(inv_freq, 1.0, inv_freq < 0), 4.0)

    assert said(1, 4, 1, 4, 4, 4) == "pairs 1, 3–5 of 6 are interpolated"
    blend = "2 of 6 pairs are divided by 1, 1 by s = 4, 3 by 1.5 to 3"
    assert said(1, 1, 1.5, 2, 3, 4) == blend


def test_on_a_cpu_the_hours_are_its_own_or_none(call, monkeypatch):
    """A record's own run takes what it took: the median over the records of its device."""
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 0)
    file = RESULTS / "tiny" / "finetune" / "pi_s=2_seed=0.json"
    record = json.loads(file.read_text())["environment"]
    for device, says in (("another", "unknown: "), (record["device"], " hours, as ")):
        monkeypatch.setattr(records, "environment", lambda device=device: {"device": device})
        status, out, _ = call("finetune", "--dry-run", "--model", "tiny", "--method", "pi")
        assert status == 0
        assert "A100" not in out
        last = out.splitlines()[-1]
        assert says in last
    assert float(last.split()[1]) * 3600 == pytest.approx(record["seconds"], rel=0.5)
