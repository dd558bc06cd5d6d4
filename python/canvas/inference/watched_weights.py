"""Whether weights are what they were when they were packed.

A tensor is the same while it is the same object and its memory and its version are (operations in
place count the version up).  What goes through ``.data`` or ``.numpy()`` torch does not count:
sums of the bytes show it.  Of each tensor `SEEN` bytes at two places are looked at in every call,
and of all of them a window that moves on from call to call: where the weights take no more than
the window, every change is seen at once, else in one of the next `calls`.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence

from torch import Tensor

from .. import _core
from ..errors import CanvasError
from . import tensor_access

SEEN = 16
WINDOW = 1 << 16  # bytes of each call, about 2 us
PER_BYTE = 1024  # and one more for so many multiplications of the network, below 1 % of its time


class WatchedWeights:
    def __init__(self, weights: list[Tensor], names: Sequence[str], macs: int = 0) -> None:
        for weight, name in zip(weights, names):
            check_counted(name, weight)
        self.weights = weights
        self._kept = [weight.detach() for weight in weights]  # the memory that is looked at
        ranges = [_range(tensor) for tensor in self._kept]
        self._window, self._turn = WINDOW + macs // PER_BYTE, 0
        size = sum(count for _, count in ranges)
        self.calls = max(1, -(-size // self._window))
        every = _core.watch_blocks(_packed(ranges))
        if self.calls == 1:
            self._always, self._turning = every, b""
        else:
            places = [place for row in ranges for place in _places(*row)]
            self._always, self._turning = _core.watch_blocks(_packed(places)), every
        self._direct = tensor_access.direct()
        self._state = _core.watch_states(weights, self._direct)

    def same(self, weights: list[Tensor]) -> bool:
        turn = _core.watch_same(
            weights,
            self._direct,
            self._state,
            self._always,
            self._turning,
            self._turn,
            self._window,
        )
        if turn < 0:
            return False
        self._turn = turn
        return True


Range = tuple[int, int]  # address, bytes


def _range(tensor: Tensor) -> Range:
    if not tensor.numel():
        return 0, 0
    reach = sum((n - 1) * abs(s) for n, s in zip(tensor.shape, tensor.stride())) + 1
    return tensor.data_ptr(), reach * tensor.element_size()


def _places(at: int, size: int) -> list[Range]:
    """A quarter from the start and from the end."""
    seen = min(SEEN, size)
    last = min(size - seen, size - size // 4)
    return [(at + min(size // 4, size - seen), seen), (at + max(0, last - seen), seen)]


def _packed(ranges: Sequence[Range]) -> bytes:
    return struct.pack(f"{2 * len(ranges)}Q", *(n for row in ranges for n in row))


def check_counted(name: str, weight: Tensor) -> None:
    if weight.is_inference():
        raise CanvasError(
            f"weight '{name}' was made under torch.inference_mode(), where changes are not "
            "counted: make the model outside of it"
        )


def check_numbers(weights: Sequence[Tensor], words: Sequence[str]) -> None:
    for weight, word in zip(weights, words):
        if weight.is_floating_point() and bool(weight.isnan().any()):
            raise CanvasError(f"{word} holds NaN: a network with it has no meaning to compile")
