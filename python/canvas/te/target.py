"""Targets and devices as TVM's programs name them: there is one, this machine's processor."""

from __future__ import annotations

from types import TracebackType
from typing import ClassVar

from ..arguments import shown
from ..errors import CanvasError
from .function import checked_target


class Target:
    """``Target("llvm -mcpu=cascadelake")``: code is C for the processor that it is built on,
    whatever its flags say; in a ``with`` block the current one.
    """

    _stack: ClassVar[list[Target]] = []

    def __init__(self, target: str | Target) -> None:
        self.kind = checked_target(target)
        self.text = str(target)
        self.keys, self.model = ["cpu"], "unknown"

    @staticmethod
    def current(allow_none: bool = True) -> Target | None:
        if not Target._stack and not allow_none:
            raise CanvasError("there is no current target: say with tvm.target.Target('llvm'):")
        return Target._stack[-1] if Target._stack else None

    def __enter__(self) -> Target:
        Target._stack.append(self)
        return self

    def __exit__(
        self,
        _kind: type[BaseException] | None,
        _error: BaseException | None,
        _trace: TracebackType | None,
    ) -> None:
        Target._stack.pop()

    def __str__(self) -> str:
        return self.text

    def __repr__(self) -> str:
        return self.text


def create(target: str | Target) -> Target:
    return target if isinstance(target, Target) else Target(target)


class Device:
    """Where arrays lie: in the memory of this machine."""

    exist = True

    def __init__(self, device_id: int = 0) -> None:
        self.device_type, self.device_id = 1, device_id

    def sync(self) -> None:
        """Nothing runs after a call is over."""

    def __repr__(self) -> str:
        return f"cpu({self.device_id})"


def cpu(dev_id: int = 0) -> Device:
    if isinstance(dev_id, bool) or not isinstance(dev_id, int):
        raise CanvasError(f"a device is a whole number, not {shown(dev_id)}")
    return Device(dev_id)


def device(dev_type: str, dev_id: int = 0) -> Device:
    """``device("llvm", 0)`` or ``device("cpu")``."""
    if dev_type != "cpu":
        checked_target(dev_type)
    return cpu(dev_id)


def context(dev_type: str, dev_id: int = 0) -> Device:
    return device(dev_type, dev_id)
