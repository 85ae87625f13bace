"""Muon for the matrices of the layers, AdamW for embeddings, norms and the output head.

Muon moves a matrix by the orthogonal factor of its momentum, so that all its directions learn at
the same rate (Jordan et al., "Muon", 2024). The size of its steps is matched to AdamW's, so that
both use one learning rate (Liu et al., "Muon is Scalable for LLM Training", 2025, equation 4).
torch.optim.Muon multiplies in bfloat16, which is 20 times slower than float32 on CPUs without such
an instruction. This one does not.
"""

import torch

MOMENTUM = 0.95
# Learning rates of the other weights, relative to that of the matrices. The matrices hold the
# initial heads and must move slowly.
EMBEDDING, HEAD = 2.0, 3.0
_COEFFICIENTS = (
    3.4445,
    -4.7750,
    2.0315,
)  # Jordan's quintic; five rounds bring all singular values near 1
_ROUNDS = 5


class Muon(torch.optim.AdamW):
    """Muon for every matrix of a model except embedding and output head, AdamW for everything else.

    Args:
        model: the model whose parameters are trained.
        learning_rate, betas, weight_decay: as for AdamW; Muon uses the first and the last.
    """

    def __init__(
        self,
        model: torch.nn.Module,
        learning_rate: float,
        betas: tuple[float, float],
        weight_decay: float,
    ) -> None:
        matrices = []
        others = []
        head = []
        for name, parameter in model.named_parameters():
            inner = parameter.ndim == 2 and "embed" not in name and "lm_head" not in name
            (matrices if inner else head if "lm_head" in name else others).append(parameter)
        groups = [
            {"params": matrices, "muon": True},
            {"params": others, "muon": False, "lr": EMBEDDING * learning_rate},
            {"params": head, "muon": False, "lr": HEAD * learning_rate},
        ]
        groups = [
            group for group in groups if group["params"]
        ]  # a tied head has no weights of its own
        super().__init__(groups, lr=learning_rate, betas=betas, weight_decay=weight_decay)

    @torch.no_grad()
    def step(self, closure=None):
        """One step of both."""
        groups = self.param_groups
        self.param_groups = [group for group in groups if not group["muon"]]
        super().step(closure)
        self.param_groups = groups
        for group in groups:
            if group["muon"]:
                self._move(group)

    def _move(self, group: dict) -> None:
        """Muon's step of a group of matrices."""
        for parameter in group["params"]:
            state = self.state[parameter]
            if not state:
                state["step"] = torch.zeros(())
                state["momentum"] = torch.zeros_like(parameter)
            state["momentum"].lerp_(parameter.grad, 1 - MOMENTUM)
            ahead = parameter.grad.lerp(state["momentum"], MOMENTUM)
            parameter.mul_(1 - group["lr"] * group["weight_decay"])
            size = (
                0.2 * max(parameter.shape) ** 0.5
            )  # a root mean square of 0.2, as AdamW's steps have
            parameter.add_(orthogonal(ahead), alpha=-group["lr"] * size)


def orthogonal(matrix: torch.Tensor) -> torch.Tensor:
    """Nearly U Vᵀ of the singular value decomposition U S Vᵀ; the result's singular values are
    between 0.7 and 1.2."""
    a, b, c = _COEFFICIENTS
    wide = matrix.T if matrix.shape[0] > matrix.shape[1] else matrix
    wide = wide / (wide.norm() + 1e-7)
    for _ in range(_ROUNDS):
        square = wide @ wide.T
        wide = a * wide + (b * square + c * square @ square) @ wide
    return wide.T if matrix.shape[0] > matrix.shape[1] else wide
