"""Networks for inference: the norms inside their kernels become weights and biases."""

from __future__ import annotations

import copy

from torch import nn

from ..arguments import SWITCH, checked
from ..errors import CanvasError


@checked(inplace=SWITCH)
def fold(network: nn.Module, inplace: bool = False) -> nn.Module:
    """Fold the norms of a network's kernels into their weights, and return it in evaluation mode.

    Each weight with a norm is scaled and gets a bias.  Without `inplace`, a deep copy is folded.
    Outputs equal those of the network in evaluation mode, up to rounding.  Further training would
    be without norms.  A network without such kernels is unchanged.
    """
    if not isinstance(network, nn.Module):
        raise CanvasError(f"a torch.nn.Module is needed, not {type(network).__name__}")
    network = network if inplace else copy.deepcopy(network)
    for module in list(network.modules()):
        if hasattr(type(module), "pack") and hasattr(module, "fold"):
            module.fold()
    return network.eval()
