"""Where networks are trained: the CPU, GPUs, and a fake accelerator for tests.

To add a kind: a file with its Device, and its line in KINDS (names.py).
"""

from .amp import AMP, autocast, check_amp, scaler_of
from .device import Device, DeviceFailed, DeviceLost, OutOfDeviceMemory, device_error
from .names import open_device, resolve, resolve_one, text_of

__all__ = [
    "AMP",
    "Device",
    "DeviceFailed",
    "DeviceLost",
    "OutOfDeviceMemory",
    "autocast",
    "check_amp",
    "device_error",
    "open_device",
    "resolve",
    "resolve_one",
    "scaler_of",
    "text_of",
]
