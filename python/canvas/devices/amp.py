"""Automatic mixed precision: what of a training is computed in 16 bits."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Any

from ..errors import CanvasError
from .device import Device

if TYPE_CHECKING:
    import torch

AMP = ("no", "bf16", "fp16")


def check_amp(device: Device, amp: str) -> None:
    """Raise CanvasError where the device cannot train in these 16 bits."""
    able = {"no": True, "bf16": device.has_bf16(), "fp16": device.has_fp16()}[amp]
    if not able:
        others = "no or fp16" if amp == "bf16" and device.has_fp16() else "no"
        others = "no or bf16" if amp == "fp16" and device.has_bf16() else others
        raise CanvasError(f"{device.name} cannot train with --amp {amp}: it takes {others}")


def autocast(place: torch.device, amp: str) -> AbstractContextManager[Any]:
    """Around the forward of a network and its loss."""
    import torch

    if amp == "no":
        return nullcontext()
    dtype = torch.bfloat16 if amp == "bf16" else torch.float16
    return torch.autocast(place.type, dtype)


def scaler_of(place: torch.device, amp: str) -> Any:
    """What keeps small gradients of 16 bits from becoming 0; it does nothing unless `amp` is fp16
    on a device.
    """
    import torch

    return torch.amp.GradScaler(place.type, enabled=amp == "fp16" and place.type != "cpu")
