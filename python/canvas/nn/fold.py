"""Networks for inference: the norms inside their kernels become weights and biases."""

from __future__ import annotations

import copy

from torch import nn

from ..arguments import SWITCH, checked
from ..errors import CanvasError


@checked(inplace=SWITCH)
def fold(network: nn.Module, inplace: bool = False) -> nn.Module:
    """The network in evaluation mode with the norms of its kernels folded: each weight that had
    one is scaled and gets a bias.

    Without `inplace` a deep copy is folded.  What it answers is what the network answers in
    evaluation mode, up to rounding; training it further would be training without norms.  A
    network without such kernels stays as it is.
    """
    if not isinstance(network, nn.Module):
        raise CanvasError(f"a torch.nn.Module is needed, not {type(network).__name__}")
    network = network if inplace else copy.deepcopy(network)
    for module in list(network.modules()):
        if hasattr(type(module), "pack") and hasattr(module, "fold"):
            module.fold()
    return network.eval()
