"""An accelerator that computes on the CPU and has little memory: for tests of what a GPU needs.

CANVAS_FAKE_DEVICES names a folder with devices.json:

    {"count": 2, "memory": 1000, "need": 400, "lost": [], "bf16": true}

A training takes `need` bytes from its first forward on, or what "needs" has for a network of so
many parameters; trainings of all processes on a device share its `memory`, each by a file
FAKE-N/PID.  `lost` lists devices that do not answer.  Both are found out in the middle of a
forward, with the words of torch.cuda; tests change the file while a search runs.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .device import Device

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

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.hook: Any = None

    @property
    def folder(self) -> Path:
        return Path(os.environ[FOLDER], self.name.replace(":", "-"))

    @property
    def own(self) -> Path:
        return self.folder / str(os.getpid())

    def memory(self) -> tuple[int, int]:
        self.check()
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
            raise RuntimeError("CUDA error: all CUDA-capable device(s) is/are busy or unavailable")

    def begin(self, network: nn.Module) -> None:
        self.folder.mkdir(exist_ok=True)
        self.hook = network.register_forward_pre_hook(self._forward)

    def _forward(self, network: nn.Module, inputs: Any) -> None:
        self.check()
        if not self.own.exists():
            known = facts()
            params = str(sum(weight.numel() for weight in network.parameters()))
            self.own.write_text(str(int(known.get("needs", {}).get(params, known["need"]))))
            used = sum(self.used().values())
            if used > int(known["memory"]):
                raise RuntimeError(
                    f"CUDA out of memory. {self.name} has {known['memory']} bytes, not {used}"
                )

    def end(self, network: nn.Module) -> None:
        if self.hook is not None:
            self.hook.remove()
        self.own.unlink(missing_ok=True)

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
