"""Whether weights are what they were when they were packed.

A tensor is the same while it is the same object, its memory and its version are (operations in
place count the version up), and so are `SEEN` bytes at two places in it: what goes through
``.data`` or ``.numpy()`` and some optimizers torch does not count.  A change by such a road that
leaves both places as they were is seen after ``forget`` only.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence

from torch import Tensor

from .. import _core
from ..errors import CanvasError

SEEN = 16


class WatchedWeights:
    def __init__(self, weights: list[Tensor], names: Sequence[str]) -> None:
        for weight, name in zip(weights, names):
            check_counted(name, weight)
        self.weights = weights
        self._kept = [weight.detach() for weight in weights]  # the memory that is looked at
        self._places = struct.pack(
            f"{4 * len(self._kept)}Q", *(n for tensor in self._kept for n in _places(tensor))
        )
        self._state = _core.watch_states(weights, self._places)

    def same(self, weights: list[Tensor]) -> bool:
        return _core.watch_states(weights, self._places) == self._state


def _places(tensor: Tensor) -> list[int]:
    """A quarter from the start and from the end of a tensor's memory: address, bytes."""
    size = sum((n - 1) * abs(s) for n, s in zip(tensor.shape, tensor.stride())) + 1
    size *= tensor.element_size()
    if not tensor.numel():
        return [0, 0, 0, 0]
    at, seen = tensor.data_ptr(), min(SEEN, size)
    last = min(size - seen, size - size // 4)
    return [at + min(size // 4, size - seen), seen, at + max(0, last - seen), seen]


def check_counted(name: str, weight: Tensor) -> None:
    if weight.is_inference():
        raise CanvasError(
            f"weight '{name}' was made under torch.inference_mode(), where changes are not "
            "counted: make the model outside of it"
        )


def check_numbers(weights: Sequence[Tensor], names: Sequence[str]) -> None:
    for weight, name in zip(weights, names):
        if weight.is_floating_point() and bool(weight.isnan().any()):
            raise CanvasError(
                f"weight '{name}' holds NaN: a network with it has no meaning to compile"
            )
