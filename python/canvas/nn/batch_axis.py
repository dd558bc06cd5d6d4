"""Whether the first axis of what a layer sees is the examples, one block for each in their order.

Of a convolution it is.  A linear layer may see [L, N, C], or windows of all images side by side: a
kernel in its place would mix the images of a batch.  Two batches of two examples, of which the
second ones differ, show it: the first half of the axis is the same.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from ..errors import CanvasError
from .placeholder import run_quietly


def mixed(
    model: nn.Module, example_input: Any, layers: Collection[nn.Module], lengths: Mapping[Any, int]
) -> set[nn.Module]:
    """The layers whose first axis is not the examples in their order, or does not grow from its
    `lengths` with their number; none where the network does not run on twice as many.
    """
    twice = [_stacked(example_input, other) for other in (_same, _other)]
    try:
        first, second = (_inputs(model, example, layers) for example in twice)
    except CanvasError:
        return set()
    return {
        layer
        for layer in layers
        if not _in_order(first[layer], second[layer], lengths.get(layer, 0))
    }


def _in_order(first: Sequence[Tensor], second: Sequence[Tensor], length: int) -> bool:
    for a, b in zip(first, second):
        half = a.shape[0] // 2
        if a.shape != b.shape or a.shape[0] != 2 * length:
            return False
        if not a.is_meta and not torch.equal(a[:half], b[:half]):
            return False
    return True


def _inputs(
    model: nn.Module, example: Any, layers: Collection[nn.Module]
) -> dict[nn.Module, list[Tensor]]:
    """What each layer sees, once of each length."""
    seen: dict[nn.Module, list[Tensor]] = {layer: [] for layer in layers}

    def note(layer: nn.Module, args: Any, kwargs: Mapping[str, Any]) -> None:
        value = args[0] if args else kwargs.get("input")
        if isinstance(value, Tensor) and value.dim() and not seen[layer]:
            seen[layer].append(value.detach().clone())

    run_quietly(model, example, dict.fromkeys(layers, note))
    return seen


def _stacked(example: Any, other: Any) -> Any:
    """The example twice, one behind the other, the second one changed."""
    if isinstance(example, Mapping):
        return {name: _stacked(value, other) for name, value in example.items()}
    if isinstance(example, (tuple, list)):
        return tuple(_stacked(value, other) for value in example)
    if isinstance(example, Tensor) and example.dim():
        return torch.cat([example, other(example)])
    return example


def _same(value: Tensor) -> Tensor:
    return value


def _other(value: Tensor) -> Tensor:
    """Other values of the same kind."""
    if value.is_floating_point() and not value.is_meta:
        noise = torch.randn(value.shape, generator=torch.Generator().manual_seed(0))
        return value + noise.to(value)
    return value.roll(1, -1)
