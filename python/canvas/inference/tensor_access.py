"""Reads memory, version and layout of a tensor from PyTorch without Python in between.

A tensor of C++ is one pointer, to what PyTorch calls its implementation, and Python's object of a
tensor holds it at a fixed place.  `at::TensorBase::_version` and the C functions for `data_ptr`
and the like take the address of that place: nothing is counted, kept or freed.  All of it is
tried on tensors that change in the ways weights do; where anything is missing or differs from
Python's result, tensors are read by their attributes.
"""

from __future__ import annotations

import ctypes
import functools
import itertools
import struct
import sys
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from .. import _core

# int64_t at::TensorBase::_version() const; bool at::native::is_neg(const at::Tensor &) and alike;
# int32_t (at::Tensor *, the result *)
FUNCTIONS = {
    "version": "_ZNK2at10TensorBase8_versionEv",
    "data_ptr": "aoti_torch_get_data_ptr",
    "is_neg": "_ZN2at6native6is_negERKNS_6TensorE",
    "is_zero": "_ZN2at6native14_is_zerotensorERKNS_6TensorE",
} | {
    name: f"aoti_torch_get_{name}"
    for name in ("dtype", "dim", "sizes", "strides", "device_type", "layout")
}
SIZE = 8 * (len(FUNCTIONS) + 3)  # of what `direct` gives


@functools.cache
def direct() -> bytes:
    """What _core.watch_states and others take; empty: tensors are read by their attributes."""
    try:
        with torch.inference_mode(False), torch.device("cpu"):
            made = _made()
            return made if _right(made) else b""
    except Exception:  # another PyTorch than those that are known
        return b""


def _made() -> bytes:
    if sys.implementation.name != "cpython" or struct.calcsize("P") != 8:
        return b""
    library = ctypes.CDLL(torch._C.__file__)  # loaded already, and all that it needs
    found = [getattr(library, name) for name in FUNCTIONS.values()]
    functions = [ctypes.cast(function, ctypes.c_void_p).value for function in found]
    places = {_place(make()) for make in _SCRATCH for _ in range(3)}
    return struct.pack(f"{SIZE // 8}Q", *places, *functions, id(Tensor), id(nn.Parameter))


def _place(tensor: Tensor) -> int:
    """Where in the object the address of its implementation is, in bytes; one place has it."""
    words = (ctypes.c_uint64 * (type(tensor).__basicsize__ // 8)).from_address(id(tensor))
    (place,) = (at for at, word in enumerate(words) if word == tensor._cdata)
    return 8 * place


def _right(made: bytes) -> bool:
    """Whether direct results are Python's, and changes are seen, for both types of tensors."""
    pairs = itertools.product(_SCRATCH, _CHANGES)
    return (
        bool(made)
        and all(_seen(made, make(), change) for make, change in pairs)
        and _dense_alone(made)
    )


def _dense_alone(made: bytes) -> bool:
    """Whether it is seen of tensors that their elements do not lie in memory as they are."""
    dense = torch.zeros(2, 3)
    negative = torch.zeros(2, 3, dtype=torch.complex64).conj().imag.as_strided((2, 3), (3, 1))
    nowhere = [torch.zeros(2, 3, device="meta"), torch._efficientzerotensor((2, 3))]
    others = [*nowhere, negative, dense.to_sparse()]
    turned = [dense.t(), dense.double(), torch.zeros(2, 3, 1), torch.zeros(2, 4)]
    held = _core.call_layouts([dense], made)
    form = struct.pack("4q", *dense.shape, *dense.stride())
    return (
        held.endswith(form)
        and _core.call_same_layouts([torch.ones(2, 3)], made, held)
        and not any(_core.call_same_layouts([other], made, held) for other in [*others, *turned])
        and not any(_core.call_layouts([other], made) for other in others)
    )


def _seen(made: bytes, tensor: Tensor, change: Callable[[Tensor], Any]) -> bool:
    def state() -> bytes:
        return _core.watch_states([tensor], made)

    def same() -> bool:
        return _core.watch_same([tensor], made, before, b"", b"", 0, 0) == 0

    def by_python() -> bytes:
        return struct.pack("4Q", id(tensor), tensor._cdata, tensor.data_ptr(), tensor._version)

    before = state()
    if not before.startswith(by_python()) or not same():
        return False
    kept = tensor.detach()  # no other memory may lie where this one did
    with torch.no_grad():
        change(tensor)
    return bool(kept.numel()) and not same() and state().startswith(by_python())


def _plain() -> Tensor:
    return torch.ones(5)


def _parameter() -> Tensor:
    return nn.Parameter(torch.ones(5))


def _in_place(tensor: Tensor) -> None:
    tensor.add_(1)


def _other_memory(tensor: Tensor) -> None:
    tensor.data = torch.ones(5)


def _other_type(tensor: Tensor) -> None:
    tensor.data = torch.ones(5, dtype=torch.bfloat16)


def _other_strides(tensor: Tensor) -> None:
    tensor.data = tensor.data.as_strided((5,), (0,))


def _other_sizes(tensor: Tensor) -> None:
    tensor.data = tensor.data[:4]


def _swapped(tensor: Tensor) -> None:
    other = torch.ones(5)
    torch.utils.swap_tensors(
        tensor, nn.Parameter(other) if type(tensor) is nn.Parameter else other
    )


_SCRATCH = (_plain, _parameter)
_CHANGES = (_in_place, _other_memory, _other_type, _other_strides, _other_sizes, _swapped)
