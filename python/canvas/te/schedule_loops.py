"""The loops of one stage as TVM's calls make them: split, fused, reordered and marked.

A stage begins with one loop for each axis.  A call changes the loops of its stage only; how long
they are is known when the schedule is written down (schedule_place.py), for a stage that is
computed inside of another one's loops computes a part of itself.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

from ..arguments import shown
from .place import mistake
from .place import place as line_of_call
from .schedule_program import Axis, StageText


@dataclass(eq=False)
class IterVar:
    """A loop of a stage: of an axis, or of a part of one, or several that are fused."""

    name: str
    size: int | None  # of an axis that is computed whole; None: of data
    reduces: bool
    axis: str = ""  # of a loop that is a whole axis
    of: str = ""  # the axis whose data has its length
    parts: tuple[IterVar, ...] = ()  # of a fused one

    @property
    def dom(self) -> Any:
        return SimpleNamespace(min=0, extent=self.size)

    @property
    def var(self) -> Any:
        return SimpleNamespace(name=self.name)

    def __repr__(self) -> str:
        return f"iter_var({self.name}, {'?' if self.size is None else self.size})"


@dataclass
class Split:
    """A loop in two parts: `factor` steps of the inner or `nparts` of the outer one."""

    outer: IterVar
    inner: IterVar
    factor: int | None
    nparts: int | None


@dataclass(frozen=True)
class Said:
    """A call of the user's: `vectorize` in `gemm.py:12`."""

    call: str
    at: str


@dataclass(eq=False)
class Loops:
    """The loops of the stage `text`, the outermost first in `leaves`, and where it is computed:
    `at` the loop of another stage, or before all that reads it.
    """

    text: StageText
    axes: list[IterVar] = field(default_factory=list)
    reduction: list[IterVar] = field(default_factory=list)
    leaves: list[IterVar] = field(default_factory=list)
    splits: dict[IterVar, Split] = field(default_factory=dict)
    marks: dict[IterVar, str] = field(default_factory=dict)
    ahead: dict[IterVar, int] = field(default_factory=dict)  # iterations of prefetch
    auto: dict[IterVar, int] = field(default_factory=dict)  # unrolled up to so many statements
    at: tuple[Loops, IterVar] | None = None
    order: list[IterVar] = field(default_factory=list)  # of its axes, where TVM has another one
    said: dict[IterVar, list[Said]] = field(default_factory=dict)  # calls on a loop, in order
    put: Said | None = None  # the call that set `at`

    @property
    def name(self) -> str:
        return self.text.name

    @property
    def untouched(self) -> bool:
        return (
            self.at is None
            and not (self.splits or self.marks or self.ahead or self.auto)
            and (self.leaves == [*self.axes, *self.reduction])
        )


def loops_of(text: StageText) -> Loops:
    """A stage as it is before any call."""
    axes = [_whole(axis, False) for axis in text.axes]
    reduction = [_whole(axis, True) for axis in text.reduction]
    return Loops(text, axes, reduction, [*axes, *reduction])


def _whole(axis: Axis, reduces: bool) -> IterVar:
    return IterVar(axis.name, axis.size, reduces, axis.name, axis.of)


# ---- calls --------------------------------------------------------------------------------------


def split(
    loops: Loops, loop: IterVar, factor: Any, nparts: Any, names: tuple[str, str] | None = None
) -> tuple[IterVar, IterVar]:
    """The loop becomes two; `names`: of the two, by default its own with o and i."""
    place = _leaf(loops, loop, "split")
    if (factor is None) == (nparts is None):
        raise mistake("split takes either factor or nparts")
    number = factor if nparts is None else nparts
    word = "factor" if nparts is None else "nparts"
    if not isinstance(number, int) or isinstance(number, bool) or number < 1:
        raise mistake(f"split: {word} is a whole number from 1, not {shown(number)}")
    if loop.parts:
        raise mistake(f"split: '{loop.name}' is fused, split its parts before they are fused")
    if loop.of:
        raise mistake(f"split: data says how long '{loop.name}' is, such a loop stays whole")
    first, second = names or _parts_of(loop.name)
    outer, inner = (IterVar(name, None, loop.reduces) for name in (first, second))
    if loop.size is not None:
        inner.size = min(number, loop.size) if nparts is None else -(-loop.size // number)
        outer.size = -(-loop.size // inner.size)
    loops.splits[loop] = Split(outer, inner, factor, nparts)
    loops.said[outer], loops.said[inner] = loops.said[loop][-1:], loops.said[loop][-1:]
    loops.leaves[place : place + 1] = [outer, inner]
    return outer, inner


def _parts_of(name: str) -> tuple[str, str]:
    joint = "" if len(name) < 3 else "_"
    return f"{name}{joint}o", f"{name}{joint}i"


def fuse(loops: Loops, fused: Sequence[IterVar]) -> IterVar:
    """Loops that stand next to each other become one."""
    if not fused:
        raise mistake("fuse takes one loop or more")
    places = [_leaf(loops, loop, "fuse") for loop in fused]
    if places != list(range(places[0], places[0] + len(places))):
        names = ", ".join(loop.name for loop in fused)
        raise mistake(f"fuse: {names} do not stand next to each other, reorder them first")
    parts = tuple(part for loop in fused for part in (loop.parts or (loop,)))
    if len({part.reduces for part in parts}) > 1:
        raise mistake("fuse: a loop over an axis and one that reduces do not become one")
    if len(fused) == 1:
        return fused[0]
    sizes = [part.size for part in parts]
    size = 1
    for one in sizes:
        size *= one or 1
    name = "_".join(part.name for part in parts)
    made = IterVar(name, None if None in sizes else size, parts[0].reduces, parts=parts)
    loops.said[made] = loops.said[fused[0]][-1:]
    loops.leaves[places[0] : places[0] + len(places)] = [made]
    return made


def reorder(loops: Loops, order: Sequence[IterVar]) -> None:
    """The loops named take each other's places, in this order."""
    places = [_leaf(loops, loop, "reorder") for loop in order]
    if len(set(places)) != len(places):
        raise mistake("reorder: a loop is named twice")
    for place, loop in zip(sorted(places), order):
        loops.leaves[place] = loop


def mark(loops: Loops, loop: IterVar, word: str, call: str) -> None:
    """`word` of the schedule language: vec, unroll or para."""
    _leaf(loops, loop, call)
    loops.marks[loop] = word


def prefetch(loops: Loops, loop: IterVar, offset: Any) -> None:
    _leaf(loops, loop, "prefetch")
    if not isinstance(offset, int) or offset < 1:
        raise mistake(f"prefetch: the offset is a whole number from 1, not {shown(offset)}")
    loops.ahead[loop] = offset


def pragma(loops: Loops, loop: IterVar, word: str, value: Any) -> None:
    """`auto_unroll_max_step`; what unrolling is `unroll_explicit` makes no difference here."""
    _leaf(loops, loop, "pragma")
    if word == "auto_unroll_max_step":
        if not isinstance(value, int) or value < 0:
            raise mistake(f"pragma: '{word}' is a whole number from 0, not {shown(value)}")
        loops.auto[loop] = value
    elif word not in ("unroll_explicit", "auto_unroll_max_depth"):
        raise mistake(
            f"pragma: there is no '{word}' here, only auto_unroll_max_step and unroll_explicit"
        )


def _leaf(loops: Loops, loop: Any, call: str) -> int:
    """Where a loop stands among those of its stage."""
    for place, one in enumerate(loops.leaves):
        if one is loop:
            loops.said.setdefault(loop, []).append(Said(call, line_of_call()))
            return place
    name = getattr(loop, "name", None)
    if not isinstance(loop, IterVar):
        raise mistake(
            f"{call}: {shown(name or loop)} is no loop of stage '{loops.name}', "
            f"take one of s[{loops.name}].op.axis or of what split answers"
        )
    there = ", ".join(one.name for one in loops.leaves)
    if any(one.name == name for one in loops.leaves):
        raise mistake(
            f"{call}: that '{name}' is of another stage, not the '{name}' of '{loops.name}'"
        )
    raise mistake(f"{call}: stage '{loops.name}' has no loop '{name}' now, its loops are {there}")


def digits(loops: Loops, loop: IterVar) -> Iterator[IterVar]:
    """The loops that an axis, or a part of one, became, the outermost first."""
    made = loops.splits.get(loop)
    if made is None:
        yield loop
    else:
        yield from digits(loops, made.outer)
        yield from digits(loops, made.inner)
