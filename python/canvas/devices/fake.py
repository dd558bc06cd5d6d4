"""An accelerator that computes on the CPU and has little memory: for tests of what a GPU needs.

CANVAS_FAKE_DEVICES names a folder with devices.json:

    {"count": 2, "memory": 1000, "need": 400, "lost": [], "bf16": true}

A training takes `need` bytes, or what "needs" has for a network of so many parameters; trainings
of all processes on a device share its `memory`, each by a file FAKE-N/PID.  `lost` lists devices
that do not answer; tests change the file while a search runs.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .device import Device, DeviceLost, OutOfDeviceMemory

if TYPE_CHECKING:
    from torch import nn

FOLDER = "CANVAS_FAKE_DEVICES"


def facts() -> dict[str, Any]:
    """What devices.json holds; nothing without the variable."""
    if FOLDER not in os.environ:
        return {}
    found = json.loads(Path(os.environ[FOLDER], "devices.json").read_text())
    return dict(found)


class Fake(Device):
    """`name`: fake:N."""

    kind = "fake"
    shared = True

    @property
    def folder(self) -> Path:
        return Path(os.environ[FOLDER], self.name.replace(":", "-"))

    def memory(self) -> tuple[int, int]:
        total = int(facts()["memory"])
        return total - sum(self.used().values()), total

    def used(self) -> dict[int, int]:
        """Bytes by process; those that are gone have given theirs back."""
        found = {}
        for place in self.folder.glob("*"):
            with suppress(OSError, ValueError):
                if Path(f"/proc/{place.name}").exists():
                    found[int(place.name)] = int(place.read_text())
        return found

    def peak(self) -> int:
        self.check()
        return self.used().get(os.getpid(), 0)

    def check(self) -> None:
        if self.name in facts()["lost"]:
            raise DeviceLost(f"{self.name} is gone")

    @contextmanager
    def training(self, network: nn.Module) -> Iterator[None]:
        self.check()
        known = facts()
        params = sum(weight.numel() for weight in network.parameters())
        need = int(known.get("needs", {}).get(str(params), known["need"]))
        self.folder.mkdir(exist_ok=True)
        own = self.folder / str(os.getpid())
        own.write_text(str(need))
        try:
            used = sum(self.used().values())
            if used > int(known["memory"]):
                raise OutOfDeviceMemory(f"{self.name} has {known['memory']} bytes, not {used}")
            yield
        finally:
            own.unlink(missing_ok=True)

    def seconds(self, run: Callable[[], Any], times: int) -> float:
        begun = time.perf_counter()
        for _ in range(times):
            run()
        return (time.perf_counter() - begun) / times

    def graph(self, network: nn.Module, images: Any) -> nn.Module:
        return network

    def has_bf16(self) -> bool:
        return bool(facts().get("bf16", True))

    def has_fp16(self) -> bool:
        return True
