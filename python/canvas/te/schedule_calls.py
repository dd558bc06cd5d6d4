"""TVM's calls on a schedule: ``s[C].split(x, factor=8)``, ``s.cache_write(C, "local")``.

Calls on loops change the loops of a stage (schedule_loops.py), from which the schedule's text is
written when it is read (schedule_text.py); calls that make or remove a stage edit the program
at once (docs/program.md).  What the schedule language cannot say is refused in one sentence.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any

from .. import _core
from ..arguments import shown
from ..errors import CanvasError
from . import schedule_loops as loops_of
from .place import mistake, place
from .schedule_loops import IterVar, Loops, Said
from .schedule_program import inputs_of, stages_of
from .schedule_text import schedule_text, whose_call

# What TVM has and code for CPUs, or the loop tree, has not; and what to do instead.
REFUSED = {
    "bind": "there are no threads to bind a loop to, code is for CPUs: use parallel",
    "double_buffer": "there is no second buffer to load ahead into: use prefetch",
    "env_threads": "there are no threads around a stage, code is for CPUs",
    "rolling_buffer": "a buffer lives as long as the loops around a stage and its readers",
    "set_store_predicate": "a store has no condition of its own: put it into the expression",
    "storage_align": "a buffer has no gaps: give the tensor another layout with the edit pack",
    "tensorize": "there are no calls of hardware instructions: use vectorize and unroll",
}
SCOPES = ("global", "local", "")


class StageOp:
    """What makes a stage's tensor, as TVM's operations show it."""

    def __init__(self, calls: ScheduleCalls, name: str) -> None:
        self._calls, self.name = calls, name

    @property
    def axis(self) -> list[IterVar]:
        loops = self._calls.loops(self.name)
        return list(loops.order or loops.axes)

    @property
    def reduce_axis(self) -> list[IterVar]:
        return list(self._calls.loops(self.name).reduction)

    def output(self, _index: int = 0) -> StageTensor:
        return StageTensor(self._calls, self.name)

    def __repr__(self) -> str:
        return f"compute({self.name})"


class StageTensor:
    """A tensor that a call on a schedule made: what cache_write, cache_read and rfactor answer."""

    def __init__(self, calls: ScheduleCalls, name: str) -> None:
        self.name, self.op = name, StageOp(calls, name)

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(axis.size or 0 for axis in self.op.axis)

    def __repr__(self) -> str:
        return f"Tensor(shape={list(self.shape)}, op.name={self.name})"


class Stage:
    """``s[C]``: the loops of one stage."""

    def __init__(self, calls: ScheduleCalls, name: str) -> None:
        self._calls, self._name = calls, name

    @property
    def op(self) -> StageOp:
        return StageOp(self._calls, self._name)

    @property
    def leaf_iter_vars(self) -> list[IterVar]:
        return list(self._loops.leaves)

    @property
    def _loops(self) -> Loops:
        return self._calls.loops(self._name)

    def split(
        self, parent: Any, factor: Any = None, nparts: Any = None, *, names: Any = None
    ) -> tuple[IterVar, IterVar]:
        """Two loops in the place of one: the inner has `factor` steps, or the outer `nparts`."""
        return loops_of.split(self._loops, self._own(parent), factor, nparts, names)

    def tile(
        self, x_parent: Any, y_parent: Any, x_factor: Any, y_factor: Any
    ) -> tuple[IterVar, IterVar, IterVar, IterVar]:
        x_outer, x_inner = self.split(x_parent, factor=x_factor)
        y_outer, y_inner = self.split(y_parent, factor=y_factor)
        self.reorder(x_outer, y_outer, x_inner, y_inner)
        return x_outer, y_outer, x_inner, y_inner

    def reorder(self, *args: Any) -> None:
        loops_of.reorder(self._loops, [self._own(loop) for loop in args])

    def fuse(self, *args: Any) -> IterVar:
        return loops_of.fuse(self._loops, [self._own(loop) for loop in args])

    def vectorize(self, var: Any) -> None:
        loops_of.mark(self._loops, self._own(var), "vec", "vectorize")

    def unroll(self, var: Any) -> None:
        loops_of.mark(self._loops, self._own(var), "unroll", "unroll")

    def parallel(self, var: Any) -> None:
        loops_of.mark(self._loops, self._own(var), "para", "parallel")

    def pragma(self, var: Any, pragma_type: str, pragma_value: Any = None) -> None:
        loops_of.pragma(self._loops, self._own(var), pragma_type, pragma_value)

    def prefetch(self, _tensor: Any, var: Any, offset: Any) -> None:
        """Prefetches what the loop reads `offset` iterations later: all of it, not one tensor."""
        loops_of.prefetch(self._loops, self._own(var), offset)

    def compute_at(self, parent: Any, scope: Any) -> None:
        """Compute the stage inside of the loop `scope` of the stage `parent`."""
        reader = parent if isinstance(parent, Stage) else self._calls[parent]
        if reader._name == self._name:
            raise mistake(f"compute_at: '{self._name}' cannot be computed inside of itself")
        loops = reader._loops
        loop = reader._own(scope)
        if loop not in loops.leaves:
            loops_of.mark(loops, loop, "", "compute_at")
        self._loops.at = (loops, loop)
        self._loops.put = loops_of.Said("compute_at", place())

    def compute_root(self) -> None:
        self._loops.at = None

    def compute_inline(self) -> None:
        """The stage's expression stands where it was read: the edit inline."""
        self._calls.edit(f"inline {self._name}", "compute_inline")

    def set_scope(self, scope: str) -> None:
        _checked_scope(scope, "set_scope")

    def __getattr__(self, call: str) -> Any:
        if call in REFUSED:
            raise mistake(f"{call}: {REFUSED[call]}")
        raise AttributeError(f"a stage has no '{call}'")

    def _own(self, loop: Any) -> Any:
        """The stage's loop; an axis of the tensor's definition is that of the stage."""
        return self._calls.own_loop(self._name, loop)

    def __repr__(self) -> str:
        return f"stage({self._name})"


class ScheduleCalls:
    """What a schedule needs for TVM's calls; `program` is its text in canonical form.

    `_names` and `_axes`: what the program calls the operations and axes of its expressions.
    """

    program: str

    def _begin(self, program: str, names: dict[Any, str], axes: dict[Any, str]) -> None:
        self.program, self._names, self._axes = program, names, axes
        self._stages = {name: loops_of.loops_of(text) for name, text in stages_of(program).items()}
        self._given = ""

    # ---- what TVM has -----------------------------------------------------------------------

    def __getitem__(self, tensor: Any) -> Stage:
        return Stage(self, self._stage_name(tensor, "s[...]"))

    @property
    def stages(self) -> list[Stage]:
        return [Stage(self, name) for name in self._stages]

    def cache_write(self, tensor: Any, scope: str) -> StageTensor:
        """A stage that computes what the tensor's did, which copies it from now on."""
        _checked_scope(scope, "cache_write")
        if isinstance(tensor, (list, tuple)):
            raise mistake("cache_write takes one tensor here")
        name = self._stage_name(tensor, "cache_write")
        if not self._stages[name].untouched:
            raise mistake(f"cache_write: say it before other calls on '{name}'")
        made = self._new_name(f"{name}_{scope or 'global'}")
        self.edit(f"cache {name} as {made}", "cache_write")
        return StageTensor(self, made)

    def cache_read(self, tensor: Any, scope: str, readers: Any) -> StageTensor:
        """A stage that copies the tensor, for the stage that reads it."""
        _checked_scope(scope, "cache_read")
        several = list(readers) if isinstance(readers, (list, tuple)) else [readers]
        if len(several) != 1:
            raise mistake(
                "cache_read is for one reader here: call it once for each, every copy is a stage"
            )
        reader = self._stage_name(several[0], "cache_read")
        name = self._tensor_name(tensor, "cache_read")
        made = self._new_name(f"{name}_{scope or 'global'}")
        self.edit(f"cache {name} in {reader} as {made}", "cache_read")
        return StageTensor(self, made)

    def rfactor(self, tensor: Any, axis: Any, factor_axis: int = 0) -> StageTensor:
        """Partial sums along `axis`, the inner part of a reduction that was split: the edit
        rfactor.  They are the last axis of what is stored, whatever `factor_axis` is.
        """
        name = self._stage_name(tensor, "rfactor")
        loops = self._stages[name]
        root, factor = _factored(loops, axis)
        made = self._new_name(f"{name}_rf")
        others = [loop for loop in loops.splits if loop is not root]
        if others or loops.at is not None or loops.marks:
            raise mistake(f"rfactor: say it before other calls on '{name}'")
        self._stages[name] = loops_of.loops_of(loops.text)
        self.edit(f"rfactor {name} {root.axis} {factor} as {made}", "rfactor")
        partial = StageTensor(self, made)
        if factor_axis == 0:
            new = self._stages[made]
            new.order = [new.axes[-1], *new.axes[:-1]]
        return partial

    def normalize(self) -> ScheduleCalls:
        return self

    def create_group(self, *_given: Any, **_named: Any) -> Any:
        raise mistake("create_group: say compute_at of each stage")

    # ---- texts ------------------------------------------------------------------------------

    @property
    def schedule(self) -> str:
        """The schedule's text: what was given, or what the calls came to; "" where there were
        none: the default one.
        """
        if self._given or all(loops.untouched for loops in self._stages.values()):
            return self._given
        return schedule_text(self._stages)

    @schedule.setter
    def schedule(self, text: str) -> None:
        self._given = text

    def whose_call(self, line: int, column: int, why: str) -> Said | None:
        """The call that made what stands at a place of the text, where calls made it."""
        if self._given or not self.schedule:
            return None
        return whose_call(self._stages, line, column, why)

    # ---- within -----------------------------------------------------------------------------

    def loops(self, name: str) -> Loops:
        if name not in self._stages:
            raise mistake(f"'{name}' is no stage of the schedule any more, it was inlined")
        return self._stages[name]

    def edit(self, edit: str, call: str) -> None:
        """The program after an edit, and the stages as they were; new ones as they begin."""
        try:
            self.program = _core.edit_program(self.program, edit)
        except CanvasError as error:
            why = re.sub(r"^line \d+, column \d+: ", "", str(error))  # a place in the edit
            raise mistake(f"{call}: {why}") from None
        before, self._stages = self._stages, {}
        for name, text in stages_of(self.program).items():
            known = before.get(name)
            if known is not None and _same_axes(known, text):
                known.text = text
                self._stages[name] = known
            else:
                self._stages[name] = loops_of.loops_of(text)
        for loops in self._stages.values():
            if loops.at is not None and loops.at[0].name not in self._stages:
                loops.at = None

    def own_loop(self, name: str, loop: Any) -> Any:
        """A loop of the stage; an axis that its definition in Python has is the stage's own."""
        if isinstance(loop, IterVar):
            return loop
        loops = self._stages[name]
        for (op, axis), word in self._axes.items():
            if axis is loop and self._names.get(op) == name:
                return next((r for r in [*loops.axes, *loops.reduction] if r.axis == word), loop)
        return loop

    def _stage_name(self, tensor: Any, call: str) -> str:
        name = self._tensor_name(tensor, call)
        if name not in self._stages:
            what = "an input" if name in inputs_of(self.program) else "inlined"
            raise mistake(f"{call}: '{name}' is {what}, no stage with loops")
        return name

    def _tensor_name(self, tensor: Any, call: str) -> str:
        op = getattr(tensor, "op", tensor)
        if isinstance(tensor, Stage):
            return tensor._name
        if isinstance(op, StageOp):
            if op._calls is not self:
                raise mistake(f"{call}: '{op.name}' is a tensor of another schedule")
            return op.name
        for known, name in self._names.items():
            if known is op:
                return name
        word = getattr(op, "name", None)
        raise mistake(f"{call}: {shown(word or tensor)} is no tensor of this schedule")

    def _new_name(self, name: str) -> str:
        taken = {*self._stages, *inputs_of(self.program)}
        ways = [name, *(f"{name}{number}" for number in range(2, 1000))]
        return next(way for way in ways if way not in taken)


def _same_axes(loops: Loops, text: Any) -> bool:
    def shape(axes: Iterable[Any]) -> Sequence[Any]:
        return [(axis.name, axis.size) for axis in axes]

    same = shape(loops.text.axes) == shape(text.axes)
    return same and shape(loops.text.reduction) == shape(text.reduction)


def _checked_scope(scope: Any, call: str) -> None:
    if scope not in SCOPES:
        raise mistake(
            f"{call}: there is no scope {shown(scope)}, code for CPUs has global and local"
        )


def _factored(loops: Loops, axis: Any) -> tuple[IterVar, int]:
    """The reduction and how many partial sums it is split into."""
    for root, split in loops.splits.items():
        if root in loops.reduction and split.inner is axis and axis in loops.leaves:
            return root, int(axis.size)
        if root in loops.reduction and split.outer is axis:
            raise mistake(
                f"rfactor: partial sums run along the inner part of '{root.name}': split it with "
                "nparts and factor the inner loop"
            )
    raise mistake(
        f"rfactor: '{getattr(axis, 'name', shown(axis))}' is no inner part of a reduction of "
        f"'{loops.name}', split the reduction first"
    )
