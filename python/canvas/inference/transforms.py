"""Calls that PyTorch transforms or traces: it sees the operators of a model, not what machine code
does with the memory of its tensors.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from torch.autograd import forward_ad

from ..errors import CanvasError

_level = torch._C._functorch.maybe_current_level
_modes = torch._C._len_torch_dispatch_stack
_traced = torch._C._is_tracing
_any_autocast = torch._C._is_any_autocast_enabled
_KEYS = torch._C._TorchDispatchModeKey
TRACING = (_KEYS.FAKE, _KEYS.PROXY, _KEYS.FUNCTIONAL)


def check_transforms(names: Sequence[str], flat: Sequence[Any]) -> None:
    """Raises CanvasError where an input belongs to a transform, or PyTorch traces."""
    forward = forward_ad._current_level >= 0
    if not forward and _level() is None and not _modes() and not _traced():
        return
    if _traced() or any(torch._C._get_dispatch_mode(key) is not None for key in TRACING):
        raise CanvasError(
            "PyTorch is tracing, as torch.export and make_fx do, and cannot follow a compiled "
            "network: trace the model itself"
        )
    for name, value in zip(names, flat):
        if not isinstance(value, Tensor):
            continue
        if torch._C._functorch.is_functorch_wrapped_tensor(value):
            raise CanvasError(
                f"input '{name}' is one of a transform of torch.func, as vmap and grad are, which "
                "cannot follow a compiled network: transform the model itself"
            )
        if forward and forward_ad.unpack_dual(value).tangent is not None:
            raise CanvasError(
                f"input '{name}' has a tangent of forward-mode differentiation, which a compiled "
                "network does not compute: call the model itself"
            )


def in_autocast() -> bool:
    """Whether PyTorch would compute in other types on the CPU."""
    return _any_autocast() and torch.is_autocast_enabled("cpu")


def check_plain(what: str, tensor: Tensor) -> None:
    """Raises CanvasError for a subclass whose elements do not lie in its own memory."""
    if type(tensor).__torch_dispatch__ is not Tensor.__torch_dispatch__:
        raise CanvasError(
            f"{what} is of the class {type(tensor).__name__}, whose operators are its own: give a "
            "plain tensor"
        )
