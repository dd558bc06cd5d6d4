"""A schedule's text from the loops of its stages."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from .schedule_loops import IterVar, Loops
from .schedule_place import Loop, Placed, place


def schedule_text(stages: Mapping[str, Loops]) -> str:
    """The schedule that the stages, in the order of the program, stand for."""
    placed = place(stages)
    roots = [one for one in placed.values() if one.loops.at is None]
    lines = [line for one in roots for line in _Writer(placed).stage(one, 0)]
    return "\n".join(lines) + "\n"


@dataclass
class _Writer:
    placed: Mapping[str, Placed]

    def stage(self, one: Placed, depth: int) -> Iterator[str]:
        """Its loops; what is computed in one of them stands before those that are deeper."""
        unrolled = _unrolled(one)
        waiting: list[str] = []
        for leaf in one.loops.leaves:
            waiting += _loop(one, leaf, leaf in unrolled)
            inner = [other for other in self.placed.values() if self._is_in(other, one, leaf)]
            if not inner:
                continue
            if waiting:
                yield _line(depth, ", ".join(waiting) + " =>")
                depth, waiting = depth + 1, []
            for other in inner:
                yield from self.stage(other, depth)
        if waiting:
            yield _line(depth, ", ".join(waiting) + " =>")
            depth += 1
        yield _line(depth, _statement(one))

    @staticmethod
    def _is_in(other: Placed, one: Placed, leaf: IterVar) -> bool:
        at = other.loops.at
        return at is not None and at[0] is one.loops and at[1] is leaf


def _line(depth: int, text: str) -> str:
    return "    " * depth + text


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
