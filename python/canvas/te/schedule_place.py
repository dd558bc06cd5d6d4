"""Where the loops of every stage stand, how long they are and what they are called.

TVM infers how much of a stage is computed where it is read; the schedule language states it by the
loops that cover each axis.  So for a stage that is computed inside of loops of its readers each
axis is looked at: of the index where it is read, what the loops around both fix are the outer
parts of the axis, and what is left is its own.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from .place import mistake
from .schedule_loops import IterVar, Loops, digits
from .schedule_program import Sum, as_sum


@dataclass(eq=False)
class Loop:
    """A loop as in the schedule."""

    name: str
    extent: int
    masked: bool = False
    of: str = ""  # the axis whose data has its length


@dataclass(eq=False)
class Placed:
    """A stage: the loops around it, those that cover its axes, and what its own became."""

    loops: Loops
    path: list[Loop] = field(default_factory=list)  # around all of it
    covers: dict[str, list[Loop]] = field(default_factory=dict)  # by axis, the outermost first
    own: dict[IterVar, Loop] = field(default_factory=dict)

    def inside(self, until: IterVar | None = None) -> list[Loop]:
        """The loops around its statement, or around what stands in the loop `until`."""
        around = list(self.path)
        for leaf in self.loops.leaves:
            around += [self.own[part] for part in leaf.parts or (leaf,) if part in self.own]
            if leaf is until:
                break
        return around

    def sums(self) -> dict[str, Sum]:
        """Each axis as a sum of its loops; not those that run over data."""
        return {
            axis: _as_digits(cover)
            for axis, cover in self.covers.items()
            if not any(loop.of for loop in cover)
        }


def _as_digits(cover: Sequence[Loop]) -> Sum:
    stride, terms = 1, {}
    for loop in reversed(cover):
        terms[loop] = stride
        stride *= loop.extent
    return Sum(0, terms)


def place(stages: Mapping[str, Loops]) -> dict[str, Placed]:
    """All stages, which are in the order of the program; readers are looked at first."""
    placed: dict[str, Placed] = {}
    names: dict[str, Loop] = {}
    for loops in reversed(list(stages.values())):
        one = Placed(loops)
        if loops.at is not None:
            reader, at = loops.at
            if reader.name not in placed:
                raise mistake(
                    f"compute_at: '{reader.name}' is computed before '{loops.name}', which "
                    "therefore cannot be computed inside of it",
                    line_of_put(loops),
                )
            if at not in reader.leaves:
                raise mistake(
                    f"compute_at: '{reader.name}' has no loop '{at.name}' any more; say "
                    f"s[{loops.name}].compute_at after its loops are split, fused and reordered",
                    line_of_put(loops),
                )
            one.path = placed[reader.name].inside(at)
        _cover(one, list(placed.values()), names)
        placed[loops.name] = one
    return {name: placed[name] for name in stages}


# ---- what a stage computes where it stands ------------------------------------------------------


@dataclass
class _Part:
    """Of an axis: what loops around fix, the outermost first, and how much is the stage's own;
    `free`: the loops of its reader that run over that.
    """

    fixed: list[Loop]
    own: int
    free: list[Loop] = field(default_factory=list)


def _cover(one: Placed, readers: list[Placed], names: dict[str, Loop]) -> None:
    loops = one.loops
    taken = {loop.name for loop in one.path}
    for place_of, root in enumerate([*loops.axes, *loops.reduction]):
        size = root.size
        if size is None:
            one.covers[root.axis] = [
                _named(one, root, Loop(root.name, 0, of=root.of), names, taken)
            ]
            continue
        part = _Part([], size)
        if loops.at is not None and not root.reduces:
            part = _needed(one, place_of, size, readers)
        made: dict[IterVar, Loop] = {}
        _extents(loops, root, part.own, made)
        mine = [leaf for leaf in digits(loops, root) if leaf in made]
        kept = [leaf for leaf in mine if made[leaf].extent > 1] or (
            [] if part.fixed else mine[-1:]
        )
        _same_names(kept, made, part.free)
        _remainder(one, part, {leaf: made[leaf] for leaf in kept}, size)
        one.covers[root.axis] = part.fixed + [
            _named(one, leaf, made[leaf], names, taken) for leaf in kept
        ]


def _extents(loops: Loops, loop: IterVar, extent: int, made: dict[IterVar, Loop]) -> None:
    split = loops.splits.get(loop)
    if split is None:
        made[loop] = Loop(loop.name, extent)
        return
    if split.factor is not None:
        inner = min(split.factor, extent)
    else:
        inner = -(-extent // min(split.nparts or 1, extent))
    _extents(loops, split.outer, -(-extent // inner), made)
    _extents(loops, split.inner, inner, made)


def _remainder(one: Placed, part: _Part, kept: Mapping[IterVar, Loop], size: int) -> None:
    """Parts that come to more than the axis: the outermost has no more steps than it needs, the
    innermost is guarded.  What loops around fix is a tile, which is divided without a remainder.
    """
    own = list(kept.values())
    inner = math.prod(loop.extent for loop in own[1:])
    if own and not part.fixed:
        own[0].extent = -(-part.own // inner)
    elif own and inner * own[0].extent != part.own:
        raise mistake(
            f"split: '{one.loops.name}' computes {part.own} places at a time there, and "
            f"{' by '.join(str(loop.extent) for loop in own)} is another number",
            _line_of_split(one.loops, kept),
        )
    product = math.prod(loop.extent for loop in part.fixed + own)
    if product > size and not any(loop.masked for loop in part.fixed + own):
        (own or part.fixed)[-1].masked = True


def _same_names(kept: list[IterVar], made: dict[IterVar, Loop], free: list[Loop]) -> None:
    """Where a stage and its reader split an axis alike, their loops have one name."""
    if [made[leaf].extent for leaf in kept] == [loop.extent for loop in free]:
        for leaf, loop in zip(kept, free):
            made[leaf].name = loop.name
            made[leaf].masked = loop.masked


def _named(
    one: Placed, leaf: IterVar, loop: Loop, names: dict[str, Loop], taken: set[str]
) -> Loop:
    """The loop under a name that no other one has, or one that is the same level of a split."""
    bases = [loop.name, f"{one.loops.name}_{loop.name}"]
    bases += [f"{one.loops.name}_{loop.name}{number}" for number in range(2, 100)]
    for name in bases:
        known = names.get(name)
        if name in taken or (known and not _alike(known, loop)):
            continue
        loop.name = name
        break
    taken.add(loop.name)
    names.setdefault(loop.name, loop)
    one.own[leaf] = loop
    return loop


def _alike(known: Loop, loop: Loop) -> bool:
    return (known.extent, known.masked, known.of) == (loop.extent, loop.masked, loop.of)


# ---- how much of it its readers need ------------------------------------------------------------


def _needed(one: Placed, axis: int, size: int, readers: list[Placed]) -> _Part:
    """Of one axis of a stage that is computed inside of loops of its readers."""
    around = set(map(id, one.path))
    found: _Part | None = None
    for reader in readers:
        for load in reader.loops.text.loads:
            if load.tensor != one.loops.name:
                continue
            _check_inside(one, reader)
            index = as_sum(load.indices[axis], reader.sums())
            part = _part(one, axis, size, index, around)
            if found is not None and found != part:
                part = _Part([], size)
            found = part
    if found is None:
        raise mistake(
            f"compute_at: nothing reads '{one.loops.name}', it is a result", line_of_put(one.loops)
        )
    return found


def _check_inside(one: Placed, reader: Placed) -> None:
    inside = reader.inside()
    if inside[: len(one.path)] != one.path:
        where = one.loops.at
        raise mistake(
            f"compute_at: '{reader.loops.name}' reads '{one.loops.name}' outside of the loop "
            f"'{where[1].name if where else ''}' where it is computed; compute it at a loop "
            "around all that reads it",
            line_of_put(one.loops),
        )


def _part(one: Placed, axis: int, size: int, index: Sum | None, around: set[int]) -> _Part:
    """The outer digits of an index are fixed, the others are the stage's own: all of the axis
    where the index is none that can be seen through.
    """
    if index is None:
        return _Part([], size)
    order = sorted(index.terms, key=lambda loop: (-index.terms[loop], -loop.extent))
    fixed = [loop for loop in order if id(loop) in around]
    free = [loop for loop in order if id(loop) not in around]
    low, high = Sum(index.constant, {loop: index.terms[loop] for loop in free}).range()
    if not fixed:
        return _Part([], size, free if high - low + 1 == size else [])
    own = high - low + 1
    stride = index.terms[fixed[-1]]
    if low != 0 or own > stride or not _are_digits(fixed, index, size):
        _refuse(one, axis)
    return _Part(fixed, min(stride, size), free if own == stride else [])


def _are_digits(fixed: list[Loop], index: Sum, size: int) -> bool:
    for outer, inner in itertools.pairwise(fixed):
        if index.terms[outer] != index.terms[inner] * inner.extent:
            return False
    return index.terms[fixed[0]] * fixed[0].extent >= size


def _refuse(one: Placed, axis: int) -> None:
    name = one.loops.axes[axis].name
    where = one.loops.at
    raise mistake(
        f"compute_at: what is read of '{one.loops.name}' along '{name}' inside of loop "
        f"'{where[1].name if where else ''}' is no tile of its own (tiles overlap there, or "
        "skip some); compute it at another loop, or whole",
        line_of_put(one.loops),
    )


# ---- the line of the user that caused it --------------------------------------------------------


def line_of_put(loops: Loops) -> str | None:
    return loops.put.at if loops.put else None


def _line_of_split(loops: Loops, parts: Iterable[IterVar]) -> str | None:
    """Of the last one that made these parts."""
    said = [one for part in parts for one in loops.said.get(part, ()) if one.call == "split"]
    return said[-1].at if said else line_of_put(loops)
