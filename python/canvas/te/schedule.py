"""How the loops of a program of tensors run: two texts, a program and its schedule."""

from __future__ import annotations

import re
from typing import Any

from .. import _core
from ..arguments import shown
from ..errors import CanvasError
from .place import mistake, placed
from .schedule_calls import ScheduleCalls
from .tensor import IterVar, Operation, Tensor
from .write_program import Written, tensors, write


class Schedule(ScheduleCalls):
    """`program`: the text of the program, as edits left it; `schedule`: the text of its schedule,
    "" for the default one (docs/schedule.md); `machine`: the text of what it is bound for, "here"
    for this machine.  TVM's calls on it edit both (docs/notebook.md).
    """

    def __init__(self, written: Written, schedule: str = "", machine: str = "here") -> None:
        self.written, self.machine = written, machine
        self._begin(written.text, written.names, written.axes)
        self.schedule = schedule

    @property
    def outputs(self) -> list[Tensor]:
        return self.written.outputs

    @property
    def inputs(self) -> list[Tensor]:
        """Placeholders in the order of the program."""
        return self.written.inputs

    def name(self, tensor: Tensor | Operation) -> str:
        """What the program calls a tensor."""
        return self.written.name(tensor)

    def axis(self, tensor: Tensor | Operation, axis: IterVar) -> str:
        """What the program calls an axis of a stage."""
        return self.written.axis(tensor.op if isinstance(tensor, Tensor) else tensor, axis)

    def bound(self) -> tuple[str, str]:
        """(program, schedule) with every number: what is built."""
        self._check_texts()
        machine = machine_of(self.machine)
        try:
            return _core.bind_schedule(self.program, self.schedule or None, machine)
        except CanvasError as error:
            raise self.told(error) from None

    def code(self) -> str:
        """The C that is built."""
        self._check_texts()
        machine = machine_of(self.machine)
        try:
            return _core.emit(self.program, self.schedule or None, machine)
        except CanvasError as error:
            raise self.told(error) from None

    def told(self, error: CanvasError) -> CanvasError:
        """What to raise where the texts do not fit: with the line of the user's call, if one of
        the calls on the schedule is to blame, else with that of what asks.
        """
        found = re.match(r"line (\d+), column (\d+): (.*)", str(error), re.S)
        said = self.whose_call(int(found[1]), int(found[2]), found[3]) if found else None
        if not found or not said:
            return placed(error)
        line = self.schedule.splitlines()[int(found[1]) - 1].strip()
        return mistake(f"{said.call}: {found[3]}; the schedule says '{line}'", said.at)

    def _check_texts(self) -> None:
        for name in ("program", "schedule", "machine"):
            if not isinstance(getattr(self, name), str):
                raise CanvasError(
                    f"a schedule's {name} is a text, not {shown(getattr(self, name))}"
                )

    def __repr__(self) -> str:
        return f"Schedule({', '.join(tensor.name for tensor in self.outputs)})"

    def __str__(self) -> str:
        return self.program + (f"\n{self.schedule}" if self.schedule else "")


def machine_of(machine: str) -> str | None:
    return None if machine == "here" else machine


def create_schedule(ops: Any) -> Schedule:
    """The default schedule of what operations or tensors need."""
    return Schedule(write(ops))


def lower(
    s: Any, args: Any = None, name: str = "default_function", simple_mode: bool = False
) -> str:
    """The C that ``build`` compiles; `simple_mode`: the schedule, every loop with its number."""
    made = checked_schedule(s)
    if args is not None:
        checked_buffers(made, args)
    try:
        return made.bound()[1] if simple_mode else made.code()
    except CanvasError as error:
        raise placed(error) from None


def checked_schedule(s: Any) -> Schedule:
    if isinstance(s, Schedule):
        return s
    if isinstance(s, (Tensor, Operation)):
        return create_schedule(s)
    raise mistake(f"expected a schedule, as te.create_schedule makes it, not {shown(s)}")


def checked_buffers(s: Schedule, args: Any) -> list[Tensor]:
    """The tensors that a function takes: all inputs and outputs of the program."""
    given = tensors(args, "an argument")
    needed = [*s.inputs, *s.outputs]
    for tensor in needed:
        if not any(tensor is one for one in given):
            kind = "input" if any(tensor is one for one in s.inputs) else "output"
            raise mistake(f"'{tensor.name}' is an {kind} of the program and no argument")
    for number, tensor in enumerate(given):
        if any(tensor is one for one in given[:number]):
            raise mistake(f"'{tensor.name}' is an argument twice")
        known = any(tensor is one for one in needed)
        if not known and tensor.op.input_tensors:
            raise mistake(
                f"'{tensor.name}' is an argument, and neither an input nor an output of the "
                "program: make it one of the outputs"
            )
    return given
