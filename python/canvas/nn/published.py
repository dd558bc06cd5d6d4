"""Names that the published release exports and scripts written for it call, beside those that
canvas has anyway: `sample`, `replace`, `seed`, `get_placeholders`, `Placeholder`, `KernelPack`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn

from .. import _core
from ..arguments import SWITCH, checked, shown
from ..errors import CanvasError
from .pack import KernelPack
from .placeholder import Placeholder, draw_pack

LAYER = "layer 64 64 56 56 3x3 1 1"  # what a kernel without a network is drawn for
LKA = """canvas 1
kernel debug_sample
a = input
b = fc a to=C
c = gelu b
d = group c each
e = unfold d over=H,W k=5
f = fc e to=C
g = group f each
h = unfold g over=H,W k=5 dilation=3
i = fc h to=C
j = fc i to=C
k = mul j c
l = fc k to=C
m = add l a
out m
"""


def empty_sample(**options: Any) -> KernelPack:
    """Draw a kernel without a network, for one layer of 64 channels on images of 56 x 56.

    The options are those of `canvas.sample` without the network and its example.
    `canvas.replace(network, pack, re_solve=True)` gives it the sizes of a network.
    """
    return draw_pack(LAYER, **options)


def debug_sample() -> KernelPack:
    """The large kernel attention that the release has as its example: 5x5, 5x5 three apart, 1x1,
    a gate and a residual, for one layer of 64 channels on images of 56 x 56.
    """
    return KernelPack(_core.solve(LKA, LAYER, "macs=100x,params=100x", "G=1 norm=none"))


class Identity(nn.Module):
    """A kernel for `canvas.replace` that hands its input on; built as ``Identity(c, h, w)``."""

    def __init__(self, c: int, h: int = 1, w: int = 1) -> None:
        super().__init__()

    def forward(self, input: Tensor) -> Tensor:
        return input


class Conv2D(nn.Conv2d):
    """A dense 3x3 convolution as a kernel for `canvas.replace`; built as ``Conv2D(c, h, w)``."""

    def __init__(self, c: int, h: int = 1, w: int = 1) -> None:
        super().__init__(c, c, 3, padding=1, bias=False)


def remove_cache() -> None:
    """Do nothing: kernels are not written to files when they are drawn, as the release does it."""


def _check_module(module: object) -> None:
    if not isinstance(module, nn.Module):
        raise CanvasError(f"a torch.nn.Module is needed, not {shown(module)}")


def _inside_placeholders(module: nn.Module) -> tuple[str, ...]:
    return tuple(
        f"{path}." if path else ""
        for path, child in module.named_modules()
        if isinstance(child, Placeholder)
    )


@checked(remove_placeholders=SWITCH)
def get_state_dict(module: nn.Module, remove_placeholders: bool = False) -> dict[str, Tensor]:
    """The weights and buffers of a network as tensors on the CPU; `remove_placeholders` leaves out
    those of kernels.
    """
    _check_module(module)
    out = _inside_placeholders(module) if remove_placeholders else ()
    return {
        name: value.detach().cpu().clone()
        for name, value in module.state_dict().items()
        if not name.startswith(out)
    }


@checked(strict=SWITCH)
def restore_from_state_dict(
    module: nn.Module, state_dict: Mapping[str, Tensor], strict: bool = False
) -> nn.Module:
    """Load what `get_state_dict` gave and return the network; without `strict`, weights of kernels
    may be missing.  Raises CanvasError for any other that is missing, and for those that the
    network has not.
    """
    _check_module(module)
    if not isinstance(state_dict, Mapping):
        raise CanvasError(f"a state_dict is needed, not {shown(state_dict)}")
    own, inside = module.state_dict(), _inside_placeholders(module)
    missing = [name for name in own if name not in state_dict]
    if not strict:
        missing = [name for name in missing if not name.startswith(inside)]
    unknown = [name for name in state_dict if name not in own]
    for names, what in ((missing, "lacks"), (unknown, "has, and the network has not,")):
        if names:
            more = f" and {len(names) - 1} more" if len(names) > 1 else ""
            raise CanvasError(f"the state_dict {what} '{names[0]}'{more}")
    try:
        module.load_state_dict(state_dict, strict=False)
    except RuntimeError as error:
        raise CanvasError(str(error).splitlines()[-1].strip()) from None
    return module


@torch.no_grad()
def init_weights(module: nn.Module) -> None:
    """Initial weights as the release draws them, for ``network.apply(canvas.init_weights)``:
    normal within two deviations, 0.1 for convolutions and 0.02 for linear layers, biases 0,
    layer norms 1.  Weights of kernels keep their own.
    """
    _check_module(module)
    if isinstance(module, (nn.Conv1d, nn.Conv2d, nn.Linear)):
        deviation = 0.02 if isinstance(module, nn.Linear) else 0.1
        nn.init.trunc_normal_(module.weight, std=deviation, a=-2 * deviation, b=2 * deviation)
    if isinstance(module, nn.LayerNorm) and module.weight is not None:
        module.weight.fill_(1)
    biased = isinstance(module, (nn.Conv1d, nn.Conv2d, nn.Linear, nn.LayerNorm))
    if biased and module.bias is not None:
        module.bias.fill_(0)
