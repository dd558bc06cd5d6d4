"""A schedule as a function of arrays: `te.build`."""

from __future__ import annotations

import re
from typing import Any

from .. import _core
from ..arguments import shown
from ..errors import CanvasError
from ..nn.compiled import Compiled
from .place import mistake
from .schedule import Schedule, checked_buffers, checked_schedule, machine_of
from .tensor import Tensor
from .time_evaluator import time_evaluator


class Function:
    """``function(a, b, c)``: arrays in the order of the arguments that it was built with, NumPy's
    or torch CPU tensors; outputs are written in place.  Without the outputs they are returned:
    ``c = function(a, b)``.
    """

    def __init__(self, s: Schedule, args: list[Tensor], name: str) -> None:
        self.entry_name = self.name = name
        self.args = args
        self.program, self.schedule = s.program, s.schedule
        self.compiled = Compiled(s.program, s.schedule or None, s.machine)
        self._inputs = [_position(args, tensor) for tensor in s.inputs]
        self._outputs = [_position(args, tensor) for tensor in s.outputs]
        results = {id(tensor) for tensor in s.outputs}
        self._given = [place for place, t in enumerate(args) if id(t) not in results]

    def __call__(self, *arrays: Any) -> Any:
        if len(arrays) == len(self.args):
            values = [arrays[place] for place in self._inputs]
            self.compiled.write([arrays[place] for place in self._outputs], values)
            return None
        if len(arrays) == len(self._given):
            by_place = dict(zip(self._given, arrays))
            return self.compiled(*(by_place[place] for place in self._inputs))
        names = ", ".join(tensor.name for tensor in self.args)
        raise CanvasError(
            f"expected {len(self.args)} arguments ({names}), or {len(self._given)} without the "
            f"outputs, not {len(arrays)}"
        )

    def time_evaluator(
        self,
        func_name: str,
        dev: Any = None,
        number: int = 10,
        repeat: int = 1,
        min_repeat_ms: float = 0,
    ) -> Any:
        """What times calls: ``evaluator(*arrays).mean`` is seconds of one run."""
        _, bound = _core.bind_schedule(
            self.program, self.schedule or None, machine_of(self.compiled.machine)
        )
        return time_evaluator(self, ":para" in bound, number, repeat, min_repeat_ms)

    def get_source(self) -> str:
        """The C."""
        machine = machine_of(self.compiled.machine)
        return _core.emit(self.program, self.schedule or None, machine)

    def __repr__(self) -> str:
        return f"Function({self.name}: {', '.join(map(str, self.args))})"


def _position(args: list[Tensor], tensor: Tensor) -> int:
    return next(place for place, one in enumerate(args) if one is tensor)


def build(
    inputs: Any,
    args: Any = None,
    target: Any = "llvm",
    target_host: Any = None,
    name: str = "default_function",
) -> Function:
    """A schedule as machine code, a function of `args`: its inputs and outputs, in any order."""
    made = checked_schedule(inputs)
    if not isinstance(name, str):
        raise mistake(f"the name of a function is a text, not {shown(name)}")
    checked_target(target)
    if target_host is not None:
        checked_target(target_host)
    if args is None:
        args = [*made.inputs, *made.outputs]
    tensors = checked_buffers(made, args)
    try:
        return Function(made, tensors, name)
    except CanvasError as error:
        raise made.told(error) from None


def checked_target(target: Any) -> str:
    """What code is for: "llvm" is C for the processor of this machine, its flags are found out."""
    words = str(target) if isinstance(target, str) or hasattr(target, "kind") else ""
    kind = re.split(r"\s", words.strip(), maxsplit=1)[0]
    if kind in ("llvm", "c"):
        return kind
    if kind in ("cuda", "nvptx"):
        raise mistake(f"target '{kind}' comes later: code is for CPUs, target 'llvm'")
    raise mistake(f"there is no target {shown(target)}: code is for CPUs, target 'llvm'")
