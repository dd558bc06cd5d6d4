"""What compiled code has prepared from constant inputs (``in W f32 [...] const``), for as long as
they stay what they were.

A torch tensor is the same while its memory and its version are, which operations in place count
up.  Its memory is kept (not the tensor: ``module.to`` gives a parameter another one), so that
nothing else can come to lie there.  Some changes torch does not count: optimizers with
``fused=True``, and what goes through ``.data`` or ``.numpy()``.  They are seen where they meet one
of `SEEN` bytes that are spread over the tensor, as those of an optimizer's step do; for smaller
ones there is ``Packed.forget``.  NumPy arrays, and tensors without a version, are compared byte
by byte at every call.
"""

from __future__ import annotations

import ctypes
from typing import Any

ALIGNMENT = 64
SEEN = 64


class Packed:
    """Memory that ``NAME_prepare`` fills; ``takes``: which of the program's inputs are packed."""

    def __init__(self, code: Any, size: int, takes: list[bool]) -> None:
        self._code, self._size, self._takes = code, size, takes
        self._code.argtypes = [ctypes.c_void_p] * (sum(takes) + 1)
        self._code.restype = ctypes.c_int
        # Replaced as a whole: another thread may still be reading what was there.
        self._made: tuple[list[Any], list[Any], Any] | None = None

    def forget(self) -> None:
        """The next call prepares anew."""
        self._made = None

    def memory(self, arrays: Any, addresses: list[int]) -> Any:
        """The buffer for these arguments, as they are now; its address is `address(buffer)`."""
        mine = [array for array, takes in zip(arrays, self._takes) if takes]
        states = [_state(array) for array in mine]
        made = self._made
        if made is not None and made[0] == states:
            return made[2]
        buffer = ctypes.create_string_buffer(self._size + ALIGNMENT)
        pointers = [at for at, takes in zip(addresses, self._takes) if takes]
        if self._code(*pointers, address(buffer)):
            raise MemoryError("there is no memory for the buffers of the code")
        kept = [array.detach() for array in mine if hasattr(array, "detach")]
        self._made = (states, kept, buffer)
        return buffer


def address(buffer: Any) -> int:
    at = ctypes.addressof(buffer)
    return at + -at % ALIGNMENT


def _state(array: Any) -> Any:
    """Equal as long as the elements are the same."""
    if not hasattr(array, "data_ptr"):
        return array.tobytes()
    at, size = array.data_ptr(), array.numel() * array.element_size()
    if array.is_inference():
        return ctypes.string_at(at, size)
    every = size // SEEN | 1  # an odd step meets high and low bytes of elements
    spread = memoryview((ctypes.c_ubyte * size).from_address(at))[::every].tobytes()
    return (at, array._version, spread)
