"""How far a network is from its teacher: the Kullback-Leibler divergence of its outputs, and the
loss of distillation.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F

BATCH = 256
SHARE, TEMPERATURE = 0.9, 4.0  # of distillation


def outputs_of(network: nn.Module, images: Tensor) -> Tensor:
    """The network's outputs [N, classes] on `images` [N, C, H, W], in evaluation mode."""
    network.eval()
    with torch.no_grad():
        return torch.cat([network(batch) for batch in images.split(BATCH)])


def divergence(outputs: Tensor, teacher: Tensor) -> float:
    """KL(teacher, outputs) in nats, the mean over images; infinite for outputs that are NaN."""
    log_p = F.log_softmax(teacher.double(), 1)
    log_q = F.log_softmax(outputs.double(), 1)
    value = float((log_p.exp() * (log_p - log_q)).sum(1).mean())
    return value if value == value else float("inf")


def distillation(
    outputs: Tensor,
    teacher: Tensor,
    labels: Tensor,
    share: float = SHARE,
    temperature: float = TEMPERATURE,
) -> Tensor:
    """The loss of distillation: `share` of KL at a temperature, times its square as usual, and the
    rest of the cross-entropy with the labels.
    """
    soft = F.kl_div(
        F.log_softmax(outputs / temperature, 1),
        F.log_softmax(teacher / temperature, 1),
        reduction="batchmean",
        log_target=True,
    )
    return share * temperature**2 * soft + (1 - share) * F.cross_entropy(outputs, labels)


def imitation(teacher: nn.Module, images: Tensor, outputs: Tensor, labels: Tensor) -> Tensor:
    """The loss of distillation of a network's outputs on a batch; the teacher runs beside it."""
    with torch.no_grad():
        wanted = teacher(images)
    return distillation(outputs, wanted, labels)
