"""A kernel as one node of an exported graph: the operator ``canvas::kernel``.

Within `kernels_as_nodes` the modules made of a pack call the operator in the place of their lines
of PyTorch, so that who reads the graph finds the pack, the binding and the weights: the core
lowers them to a program. Weights are as the module holds them; those with norms are folded by
operators of the graph, so that nothing is copied and norms that change are seen.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from .pack import KernelPack


@torch.library.custom_op("canvas::kernel", mutates_args=())
def kernel(x: Tensor, weights: Sequence[Tensor], pack: str, target: str) -> Tensor:
    """The kernel at a binding; weights and, where it has norms, biases by their names."""
    module = KernelPack(pack).module(x.shape[1], target=target).eval()
    if hasattr(module, "fold"):
        module.fold()
    state = dict(zip(weight_names(module), weights))
    return torch.func.functional_call(module, state, (x,)).contiguous()


@kernel.register_fake
def _shape(x: Tensor, weights: Sequence[Tensor], pack: str, target: str) -> Tensor:
    b = binding(KernelPack(pack), target)
    height, width = (-(-size // b["stride"]) for size in x.shape[2:])
    return x.new_empty((x.shape[0], b["cout"], height, width))


def binding(pack: KernelPack, target: str) -> dict[str, Any]:
    found = next(b for b in pack.module.BINDINGS if b["name"] == target)
    return dict(found)


def weight_names(module: Any) -> list[str]:
    """projection, w0, b0, w1, ... as a lowered program has them: a projection of some layers, a
    bias where there is, or was, a norm.
    """
    names = ["projection"] * (getattr(module, "projection", None) is not None)
    turn = 0
    while hasattr(module, f"w{turn}"):
        names += [f"{letter}{turn}" for letter in "wb" if hasattr(module, f"{letter}{turn}")]
        turn += 1
    return names


@contextmanager
def kernels_as_nodes(model: nn.Module) -> Iterator[None]:
    """Meanwhile kernels in evaluation mode call the operator, if the image is the binding's."""
    taken = [m for m in model.modules() if isinstance(getattr(m, "pack", None), KernelPack)]
    taken = [m for m in taken if not m.training and "forward" not in vars(m)]
    for module in taken:
        vars(module)["forward"] = _forward(module)
    try:
        yield
    finally:
        for module in taken:
            vars(module).pop("forward", None)


def _forward(module: Any) -> Callable[[Tensor], Tensor]:
    usual, pack, target = module.forward, module.pack, module.target
    b = binding(pack, target)

    def forward(x: Tensor) -> Tensor:
        if x.dim() != 4 or tuple(x.shape[1:]) != (b["cin"], b["h"], b["w"]):
            return usual(x)
        if x.dtype != torch.float32 or module.w0.dtype != torch.float32:
            return usual(x)
        return torch.ops.canvas.kernel(x, _folded(module), pack.text, target)

    return forward if hasattr(module, "w0") else usual


def _folded(module: Any) -> list[Tensor]:
    answer: list[Tensor] = []
    for name in weight_names(module):
        turn = name[1:]
        norms = getattr(module, f"norm{turn}", [nn.Identity()])
        if isinstance(norms[0], nn.Identity):
            answer.append(getattr(module, name))
            continue
        scale = torch.stack([n.weight / torch.sqrt(n.running_var + n.eps) for n in norms])
        if name[0] == "w":
            weight = module.get_parameter(name)
            answer.append(weight * scale.reshape(*scale.shape, *[1] * (weight.dim() - 2)))
        else:
            means = torch.stack([n.running_mean for n in norms])
            answer.append(torch.stack([n.bias for n in norms]) - means * scale)
    return answer
