"""A schedule's text from the loops of its stages, and back: which call of the user's a place in
the text comes from.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from .schedule_loops import IterVar, Loops, Said
from .schedule_place import Loop, Placed, place

_MARKING = ("vectorize", "unroll", "parallel", "pragma", "prefetch")  # calls that mark a loop


class _Piece(NamedTuple):
    """A part of a line: a loop of a stage, or what computes an element of it (`leaf` None)."""

    text: str
    one: Placed
    leaf: IterVar | None

    def said(self) -> list[Said]:
        """The calls on the loop, and on those that it was fused of."""
        if self.leaf is None:
            return [self.one.loops.put] if self.one.loops.put else []
        loops = [*self.leaf.parts, self.leaf]
        return [said for loop in loops for said in self.one.loops.said.get(loop, ())]


class _Line(NamedTuple):
    depth: int
    pieces: list[_Piece]

    def __str__(self) -> str:
        end = " =>" if self.pieces[0].leaf else ""
        return "    " * self.depth + ", ".join(piece.text for piece in self.pieces) + end

    def at(self, column: int) -> _Piece:
        """The piece that stands at a column, counted from 1."""
        end = 4 * self.depth
        for piece in self.pieces:
            end += len(piece.text) + 2
            if column <= end:
                break
        return piece


def schedule_text(stages: Mapping[str, Loops]) -> str:
    """The schedule that the stages, in the order of the program, stand for."""
    return "".join(f"{line}\n" for line in _lines(stages))


def whose_call(stages: Mapping[str, Loops], number: int, column: int, why: str) -> Said | None:
    """The call of the user's that a mistake is about: it was found at a place in the text, both
    counted from 1, and `why` names loops and stages in quotes.
    """
    lines = _lines(stages)
    if not 0 < number <= len(lines):
        return None
    piece = lines[number - 1].at(column)
    named = re.findall(r"'(\w+)'", why)
    there = [
        other
        for line in lines
        for other in line.pieces
        if re.split(r"\W", other.text.lstrip("@{"), maxsplit=1)[0] in named
    ]
    nearest = [piece, *sorted(there, key=lambda other: other.one is not piece.one)]
    marks = [said for one in nearest for said in reversed(one.said()) if said.call in _MARKING]
    others = [said for one in nearest for said in reversed(one.said())]
    return next(iter([*marks, *others]), None)


def _lines(stages: Mapping[str, Loops]) -> list[_Line]:
    placed = place(stages)
    roots = [one for one in placed.values() if one.loops.at is None]
    return [line for one in roots for line in _Writer(placed).stage(one, 0)]


@dataclass
class _Writer:
    placed: Mapping[str, Placed]

    def stage(self, one: Placed, depth: int) -> Iterator[_Line]:
        """Its loops; what is computed in one of them stands before those that are deeper."""
        unrolled = _unrolled(one)
        waiting: list[_Piece] = []
        for leaf in one.loops.leaves:
            waiting += [_Piece(text, one, leaf) for text in _loop(one, leaf, leaf in unrolled)]
            inner = [other for other in self.placed.values() if self._is_in(other, one, leaf)]
            if not inner:
                continue
            if waiting:
                yield _Line(depth, waiting)
                depth, waiting = depth + 1, []
            for other in inner:
                yield from self.stage(other, depth)
        if waiting:
            yield _Line(depth, waiting)
            depth += 1
        yield _Line(depth, [_Piece(_statement(one), one, None)])

    @staticmethod
    def _is_in(other: Placed, one: Placed, leaf: IterVar) -> bool:
        at = other.loops.at
        return at is not None and at[0] is one.loops and at[1] is leaf


def _loop(one: Placed, leaf: IterVar, unrolled: bool) -> list[str]:
    """A loop, or a group where it is fused and runs as one."""
    word = one.loops.marks.get(leaf, "unroll" if unrolled else "")
    ahead = f":pf({one.loops.ahead[leaf]})" if leaf in one.loops.ahead else ""
    parts = [one.own[part] for part in leaf.parts or (leaf,) if part in one.own]
    if not parts:
        return []
    if len(parts) > 1 and (word in ("para", "vec") or ahead):
        mark = ":para" if word == "para" else ":fold:vec" if word == "vec" else ":fold"
        return ["{" + ", ".join(_extent(loop) for loop in parts) + "}" + mark + ahead]
    return [_extent(loop) + _mark(loop, word) + ahead for loop in parts]


def _extent(loop: Loop) -> str:
    if loop.of:
        return f"{loop.name}:dyn({loop.of})"
    return f"{loop.name}:{loop.extent}" + (":mask" if loop.masked else "")


def _mark(loop: Loop, word: str) -> str:
    """Lanes that are neither whole vectors nor a power of two are masked."""
    odd = loop.extent % 16 and loop.extent & (loop.extent - 1)
    mask = ":mask" if word == "vec" and odd and not loop.masked else ""
    return (f":{word}" if word and not (word == "vec" and loop.extent == 1) else "") + mask


def _statement(one: Placed) -> str:
    axes = [_covered(one, root) for root in one.loops.axes]
    text = f"@{one.loops.name} = {', '.join(axes)}" if axes else f"@{one.loops.name} ="
    if one.loops.reduction:
        text += " // " + ", ".join(_covered(one, root) for root in one.loops.reduction)
    return text


def _covered(one: Placed, root: IterVar) -> str:
    loops = [loop.name for loop in one.covers[root.axis]]
    if loops == [root.axis]:
        return root.axis
    return "{" + ", ".join(loops) + "}/" + root.axis


def _unrolled(one: Placed) -> set[IterVar]:
    """What `auto_unroll_max_step` unrolls: the innermost loops, up to so many steps."""
    found: set[IterVar] = set()
    for limit in one.loops.auto.values():
        steps = 1
        for leaf in reversed(one.loops.leaves):
            loop = one.own.get(leaf)
            if one.loops.marks.get(leaf) == "vec" or (not leaf.parts and loop is None):
                continue
            if loop is None or loop.of or steps * loop.extent > limit:
                break
            steps *= loop.extent
            found.add(leaf)
    return found
