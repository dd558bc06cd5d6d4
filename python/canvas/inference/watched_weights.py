"""Whether weights are what they were when they were packed.

A tensor is the same while it is the same object, its memory and its version are (operations in
place count the version up), and so are `SEEN` bytes at two places in it: what goes through
``.data`` or ``.numpy()`` and some optimizers torch does not count.  A change by such a road that
leaves both places as they were is seen after ``forget`` only.
"""

from __future__ import annotations

import ctypes
import operator
from collections.abc import Sequence

from torch import Tensor

from ..errors import CanvasError

SEEN = 16

_pointer = Tensor.data_ptr
_version = operator.attrgetter("_version")


class WatchedWeights:
    def __init__(self, weights: Sequence[Tensor], names: Sequence[str]) -> None:
        for weight, name in zip(weights, names):
            check_counted(name, weight)
        self.weights = weights
        self._kept = [weight.detach() for weight in weights]  # the memory that is looked at
        self._pointers = [*map(_pointer, weights)]
        self._versions = [*map(_version, weights)]
        self._views = [view for tensor in self._kept for view in _places(tensor)]
        self._bytes = [*map(memoryview.tobytes, self._views)]

    def same(self, weights: Sequence[Tensor]) -> bool:
        return (
            (weights is self.weights or all(map(operator.is_, weights, self.weights)))
            and [*map(_version, weights)] == self._versions
            and [*map(_pointer, weights)] == self._pointers
            and [*map(memoryview.tobytes, self._views)] == self._bytes
        )


def _places(tensor: Tensor) -> list[memoryview]:
    """Bytes a quarter from the start and from the end of a tensor's memory."""
    size = sum((n - 1) * abs(s) for n, s in zip(tensor.shape, tensor.stride())) + 1
    size *= tensor.element_size()
    if not tensor.numel():
        return []
    memory = memoryview((ctypes.c_ubyte * size).from_address(tensor.data_ptr()))
    return [memory[at : at + SEEN] for at in {size // 4, max(0, size - size // 4 - SEEN)}]


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
