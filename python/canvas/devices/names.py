"""Devices by name: auto, cpu, cuda, cuda:0,2."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ..errors import CanvasError
from . import fake
from .cuda import Cuda
from .device import Device
from .fake import Fake


def resolve(text: str) -> list[Device]:
    """The devices that are meant and there; raises CanvasError where one is not."""
    if text == "auto":
        return (_all("cuda") if _count_cuda() else []) or [Device("cpu")]
    if text == "cpu":
        return [Device("cpu")]
    kind, _, numbers = text.partition(":")
    there = _all(kind)
    if not there:
        raise CanvasError(f"--device {text}: torch finds no such device here; cpu is always there")
    if not numbers:
        return there
    wanted = [int(number) for number in numbers.split(",")]
    for number in wanted:
        if number >= len(there):
            names = ", ".join(device.name for device in there)
            raise CanvasError(f"--device {text}: there is no {kind}:{number}, only {names}")
    return [there[number] for number in wanted]


def resolve_one(text: str, who: str) -> Device:
    """The device of `who` (a fit, a training), the first of several that were not numbered."""
    found = resolve(text)
    if len(found) > 1 and ":" in text:
        raise CanvasError(f"{who} runs on one device, not on {text_of(found)}")
    return found[0]


def text_of(devices: Sequence[Device]) -> str:
    """As --device takes it."""
    first = devices[0]
    if not first.shared:
        return first.name
    return f"{first.kind}:" + ",".join(device.name.partition(":")[2] for device in devices)


def open_device(name: str) -> Device:
    """The device of a name that `resolve` gave."""
    kind = name.partition(":")[0]
    return KINDS[kind][0](name) if kind in KINDS else Device(name)


def _all(kind: str) -> list[Device]:
    make, count = KINDS[kind]
    return [make(f"{kind}:{number}") for number in range(count())]


def _count_cuda() -> int:
    import torch

    return torch.cuda.device_count() if torch.cuda.is_available() else 0


def _count_fake() -> int:
    return int(fake.facts().get("count", 0))


KINDS: dict[str, tuple[Callable[[str], Device], Callable[[], int]]] = {
    "cuda": (Cuda, _count_cuda),
    "fake": (Fake, _count_fake),
}
