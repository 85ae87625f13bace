"""What a run needs, against the published sizes, the paper's hours, and what a real pass over a small model holds."""

from dataclasses import replace

import numpy as np
import pytest
import torch
import transformers

from core import rope
from core.rope import RopeGeometry
from experiments.base_models import MODELS
from experiments.kit.base_model import BaseModel
from experiments.training import budget
from tests.models import random_model

SEVEN, THIRTEEN = (BaseModel(f"llama2-{size}b").architecture for size in (7, 13))
PAPERS = MODELS["llama2-7b"].training


@pytest.mark.parametrize("config, count", [(SEVEN, 6_738_415_616), (THIRTEEN, 13_015_864_320)])
def test_parameters_are_those_published(config, count):
    assert budget.parameters(config) == count


def test_parameters_of_a_tied_model_count_once():
    model = random_model(tie_word_embeddings=True)
    assert budget.parameters(model.config) == model.num_parameters()
    size = budget.sizes(model.config)
    assert size.multiplied == size.parameters  # the one matrix is the head's too
    untied = random_model()
    assert budget.sizes(untied.config).multiplied == untied.num_parameters() - 300 * 64


def test_the_papers_hours():
    """6 hours on 8 A100 for 7B at s = 2: 1,000 steps of 64 sequences of 8,192 tokens."""
    assert budget.hours(SEVEN, budget.Plan(8192, 1000, PAPERS)) == pytest.approx(6, rel=0.05)


def saved_for_backward(model, tokens, autocast):
    """Bytes of the different tensors that a forward pass keeps, the weights and their copies not counted."""
    weights = {parameter.untyped_storage().data_ptr() for parameter in model.parameters()}
    kept, shapes = {}, {tuple(parameter.shape) for parameter in model.parameters() if parameter.ndim == 2}

    def pack(tensor):
        if not {tuple(tensor.shape), tuple(reversed(tensor.shape))} & shapes:
            kept.setdefault(tensor.untyped_storage().data_ptr(), tensor.untyped_storage())
        return tensor

    hooks = torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor)
    with hooks, torch.autocast("cpu", torch.bfloat16, enabled=autocast):
        output = model.model(torch.arange(tokens)[None] % 50, use_cache=False)
    assert output.last_hidden_state.grad_fn
    return sum(storage.nbytes() for place, storage in kept.items() if place not in weights)


@pytest.mark.parametrize("autocast", [False, True])
def test_activations_are_what_a_forward_pass_keeps(autocast):
    """In bfloat16 or under autocast, of a small model, from two depths: what a layer adds."""
    kept = []
    for layers in (1, 4):
        config = transformers.LlamaConfig(
            hidden_size=64, intermediate_size=176, num_hidden_layers=layers, num_attention_heads=4,
            num_key_value_heads=2, vocab_size=50,
        )  # fmt: skip
        model = transformers.AutoModelForCausalLM.from_config(config).train()
        kept.append(saved_for_backward(model if autocast else model.bfloat16(), 128, autocast))
    parts = budget.activations(budget.sizes(config), 128, checkpointing=False, autocast=autocast)
    gradients = 128 * 3 * 2 * 176
    assert (parts["activations"] - gradients) / 4 == pytest.approx((kept[1] - kept[0]) / 3, rel=0.03)


def test_memory_at_the_papers_scale():
    """By hand: 2 + 4 + 12 bytes a parameter, divided by the GPUs."""
    parts = budget.memory(SEVEN, budget.Plan(8192, 1000, PAPERS))
    states = [parts[name] for name in ("weights", "gradients", "optimizer")]
    assert states == pytest.approx([n * 6.738415616 / 8 for n in (2, 4, 12)])
    assert 20 < sum(parts.values()) < 25
    assert sum(budget.memory(THIRTEEN, budget.Plan(16384, 500, PAPERS)).values()) < 0.85 * 80
    alone = budget.memory(SEVEN, budget.Plan(8192, 1000, PAPERS, gpus=1))
    assert sum(alone[name] for name in ("weights", "gradients", "optimizer")) == pytest.approx(16 * 6.738415616)


@pytest.mark.parametrize(("gpus", "length"), [(1, 2048), (8, 2048), (8, 16384), (64, 8192)])
def test_the_device_batch_is_the_largest_that_fits_and_divides(gpus, length):
    settings = budget.fitted(SEVEN, PAPERS, length, gpus, 80)
    each = settings.device_batch
    assert settings == replace(PAPERS, device_batch=each)

    def fits(count):
        plan = budget.Plan(length, 1, replace(PAPERS, device_batch=count), gpus)
        return 64 % (count * gpus) == 0 and sum(budget.memory(SEVEN, plan).values()) <= 0.85 * 80

    assert each == max([count for count in (1, 2, 4, 8, 16, 32, 64) if fits(count)], default=1)


def test_on_one_gpu_activations_are_recomputed_only_if_one_sequence_does_not_fit():
    """SmolLM2's sizes at 16,384 tokens; less memory leaves fewer sequences, and in the end recomputes."""
    config = transformers.LlamaConfig(
        hidden_size=576, intermediate_size=1536, num_hidden_layers=30, num_attention_heads=9, num_key_value_heads=3,
        vocab_size=49152, tie_word_embeddings=True,
    )  # fmt: skip
    settings = replace(PAPERS, batch=16)
    found = [budget.fitted(config, settings, 16384, 1, memory, decides=True) for memory in (800, 150, 80, 24, 8, 1)]
    ways = [(each.device_batch, each.checkpointing) for each in found]
    assert ways == [(16, False), (8, False), (4, False), (1, False), (2, True), (1, True)]
    assert budget.fitted(config, settings, 16384, 1, 800) == replace(settings, device_batch=16)  # as it was asked
    assert budget.fitted(config, settings, 16384, 8, 800, decides=True).checkpointing  # several GPUs as they are told

    steps = [replace(settings, device_batch=4, checkpointing=False)]
    while less := budget.smaller(steps[-1], decides=True):
        steps.append(less)
    assert [(each.device_batch, each.checkpointing) for each in steps] == [(4, 0), (2, 0), (1, 0), (1, 1)]
    assert budget.smaller(steps[2], decides=False) is None


@pytest.mark.parametrize(
    ("model", "factor", "gpus", "memory", "said"),
    [  # by hand from `memory`: 13B at s = 4 takes 45.0 GB on 8 GPUs, 30.4 on 16; 7B at s = 2 takes 38.3 on 4, 22.4 on 8
        ("13b", 4, 4, 40, "does not fit on 4; it fits on 16 of 40 GB"),
        ("13b", 4, 8, 40, "does not fit on 8; it fits on 16 of 40 GB"),
        ("13b", 4, 16, 40, "fits on 16"),
        ("7b", 2, 4, 40, "fits on 4, but fills more than 85%"),
        ("7b", 2, 8, 40, "fits on 8"),
        ("13b", 4, 64, 16, "no number of 16 GB"),
    ],
)
def test_a_dry_run_says_on_how_many_gpus_each_of_the_papers_runs_fits(call, model, factor, gpus, memory, said):
    status, out, _ = call("finetune", "--model", "llama2-7b", "--dry-run", "--gpus", gpus, "--memory", memory)
    (line,) = [line for line in out.splitlines() if line.startswith(f"llama2-{model}, s = {factor}: ")]
    assert status == 0 and said in line
    assert out.count("llama2-") == 4 and ("may run out" in line) == ("but" in line)


def test_a_number_of_gpus_that_cannot_divide_the_batch_is_refused_with_those_that_can(call):
    for gpus, others in ((5, "4 or 8"), (6, "4 or 8"), (65, "64")):
        status, out, err = call("finetune", "--model", "llama2-13b", "--dry-run", "--gpus", gpus)
        assert (status, out, err.count("\n")) == (2, "", 1) and f"or {others} GPUs" in err


@pytest.mark.parametrize(
    ("method", "options", "said"),
    [
        ("dprope", {"n_hat": 40}, "dprope, n̂ = 40 of 64: interpolates pairs "),
        ("dprope", {"n_hat": 0}, "dprope, n̂ = 0 of 64: interpolates no pair"),
        ("pi", {}, "pi, n̂ = 64 of 64: interpolates pairs 0-31"),
        ("yarn", {}, "yarn: divides the pairs by 1 to 2"),
    ],
)
def test_a_dry_run_names_what_it_would_train(method, options, said):
    geometry = RopeGeometry(64, 1e4, 1024)
    scaling = rope.scale(geometry, method, 2, **options)
    line = budget.decided(method, geometry, scaling, 2)
    assert line.startswith(said)
    if "n_hat" in options:
        listed = line.partition("pairs ")[2].split(", ") if options["n_hat"] else []
        ends = [[int(end) for end in run.split("-")] for run in listed]
        pairs = [pair for run in ends for pair in range(run[0], run[-1] + 1)]
        assert pairs == np.flatnonzero(scaling.interpolated).tolist() and len(pairs) == options["n_hat"] / 2


def test_disk_tokens_and_host_memory():
    plan = budget.Plan(8192, 1000, PAPERS)
    assert plan.tokens == 524_288_000
    files = budget.disk(SEVEN, plan)
    assert files["checkpoint"] == files["checkpoint that replaces it"] == pytest.approx(95, rel=0.01)
    assert files["result"] == pytest.approx(13.48, abs=0.01)
    assert files["tokens"] == pytest.approx(1.0486, abs=1e-3)
    assert budget.tokenising_hours(plan) == pytest.approx(24 / 60, rel=0.01)
    assert 13.5 < budget.host_memory(SEVEN, plan) < 100
