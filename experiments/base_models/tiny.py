"""A small Llama trained here, its weights in the repository: every artifact, end to end."""

from core import rope
from core.geometry import RopeGeometry
from experiments.base_models.model import Model, Training
from experiments.kit.suite import Ablation, Data, Learned, Step, Suite, Temperature, Trained

# Of RULER's 13 tasks, those whose prompts fit in 1,024 tokens of tiny's small vocabulary, what is generated included.
_RULER = ("niah_single_1", "niah_single_2", "niah_multikey_2", "niah_multikey_3", "vt", "cwe", "fwe")
_EVALUATIONS = (
    Step("perplexity", {"lengths": (1024, 2048, 4096), "tokens": 6144}, {"lengths": (1024, 2048), "tokens": 2560}),
    Step(
        "passkey",
        {"lengths": (512, 1024, 2048, 3072, 4096), "keys": 2},
        {"lengths": (1024, 2048), "depths": 3, "keys": 1},
    ),
    Step("ruler", {"samples": 4, "tasks": _RULER}, {"samples": 1, "lengths": (1024, 2048)}),
    Step("longbench_e", {"margin": 128, "new_tokens": 64}, data=Data.MINIATURE),
    Step("open_llm", data=Data.MINIATURE),
)

# 32,768 tokens of the book that no one trains on, at each factor.
_POSITIONS = {factor: (Step("loss_by_position", {"excerpts": 32 // factor}, {"excerpts": 2}),) for factor in (2, 4)}

MODEL = Model(
    title="tiny (5.3 M)",
    model="repository:models/tiny",
    geometry=RopeGeometry(head_dim=64, base=1300.0, context_length=1024),
    # What is published since is measured by position; the rule to beat, and what is ours, by all.
    compared=(
        *(rope.ORIGINAL, rope.UNIT, rope.NTK, rope.RIVAL, rope.TO_BEAT),
        *(rope.OURS, rope.OURS_BY_NOISE, rope.COVERED),
    ),
    # By the same rule as smollm2's; here the pairs are 23-31.
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
        evaluations=_EVALUATIONS,
        alone=(Step("disturbance"), Step("selections")),
        further=_POSITIONS,
        # The loss is flat within 80 steps at s = 2 and within 144 at s = 4.
        learned=Learned(
            Step("learned", {"steps": 200, "evaluate_every": 4}, {"steps": 2, "sequences": 1}),
            (rope.RIVAL, rope.ORIGINAL),
            seeds=3,
        ),
        miniature=Step("miniature", {"samples": 3, "documents": 60}, {"samples": 1, "documents": 10}),
        seeds=3,
        # Short sequences, many rounds: what is timed side by side meets the same machine.
        timing=Step("time_cost", {"length": 512}, {"repeats": 1}),
        ablations=(
            Ablation("n_hat", (48, 44, 40, 36, 32, 28)),  # the paper's 96-56 of 128 dimensions
            Ablation("intervals", (90, 180, 360, 720)),
        ),
        # Fine-tuned where the temperature is greatest.
        temperature=Temperature(("perplexity", "passkey"), trained=(4,)),
        newer=Trained((rope.TO_BEAT, rope.COVERED), ("perplexity", "passkey")),
    ),
)
