"""AutoScheduler's CPU template as text of our schedules (docs/schedule.md).

    cache_write; each axis split into so many levels; loops level by level; the spatial loops of
    level 0 fused and parallel; the cache computed at the first loop of level 1 that has more than
    one step; in it the reductions between the levels of space; the innermost vectorized, the
    last two levels unrolled

A stage without a reduction has no cache of its own.  A loop that cannot be vectors or
unrolled by the check of schedules stays as it is.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass

from .. import _core
from ..errors import CanvasError

_STAGE = re.compile(r"(?m)^(?!in |out |program |canvas )(\w+)(?: \w+)? ?\[(.*?)\] = (.*)$")
_OVER = re.compile(r" // \w+ (.*)$")
Parts = Sequence[int]


@dataclass(frozen=True)
class Stage:
    """A stage of a program: its axes with their sizes, and those that it reduces over."""

    name: str
    axes: list[tuple[str, int]]
    over: list[tuple[str, int]]

    def loop(self, axis: str, level: int) -> str:
        return f"{self.name}_{axis}_{level}"


def stages_of(program: str) -> list[Stage]:
    found = []
    for name, axes, body in _STAGE.findall(program):
        over = _OVER.search(body)
        found.append(Stage(name, _sizes(axes), _sizes(over[1]) if over else []))
    return found


def stage_names(program: str) -> list[str]:
    return [name for name, _, _ in _STAGE.findall(program)]


def _sizes(text: str) -> list[tuple[str, int]]:
    pairs = (part.split(":") for part in text.split(", ") if part)
    sizes = []
    for name, size in pairs:
        if not size.isdigit():
            raise CanvasError(f"axis '{name}' runs over data, the template splits axes of a size")
        sizes.append((name, int(size)))
    return sizes


@dataclass(frozen=True)
class Tiles:
    """The parts of each axis of a stage, outermost first; 0 is a hole of a sketch."""

    stage: Stage
    spatial: list[list[int]]
    reduce: list[list[int]]

    @property
    def levels(self) -> int:
        return max(map(len, [*self.spatial, *self.reduce]), default=1)


def schedule_text(tiles: Sequence[Tiles], caches: dict[str, str], marks: int) -> str:
    """`caches`: the name of a stage's cache; `marks`: 2 vectors and unrolled loops, 1 vectors
    alone, 0 none.
    """
    return "".join(_nest(one, caches.get(one.stage.name), marks) for one in tiles)


def _nest(tiles: Tiles, cache: str | None, marks: int) -> str:
    writer = _Writer(tiles, marks)
    outer, inner = writer.outer_and_inner()
    around = writer.group(outer[0]) + writer.loops(outer[1])
    text = ", ".join(around) + " =>\n" if around else ""
    margin = "    " if around else ""
    if cache is not None:
        loops = writer.loops(writer.cache_order(inner), innermost=True)
        text += f"{margin}{', '.join(loops)} =>\n{margin}    {writer.leaf(cache, True)}\n"
    copy = writer.loops(inner, innermost=True)
    own = cache is None and bool(tiles.reduce)
    leaf = writer.leaf(tiles.stage.name, own)
    return text + (
        f"{margin}{', '.join(copy)} =>\n{margin}    {leaf}\n" if copy else f"{margin}{leaf}\n"
    )


class _Writer:
    """One stage's loops: (axis, level) are looked up in the parts of the axes."""

    def __init__(self, tiles: Tiles, marks: int) -> None:
        self.tiles, self.marks = tiles, marks
        self.seen: set[str] = set()
        stage = tiles.stage
        self.parts = {
            name: parts
            for (name, _), parts in zip(
                [*stage.axes, *stage.over], [*tiles.spatial, *tiles.reduce]
            )
        }
        self.space = [name for name, _ in stage.axes]
        self.reductions = [name for name, _ in stage.over]

    def at(self, names: Sequence[str], level: int) -> list[tuple[str, int]]:
        return [(name, level) for name in names if level < len(self.parts[name])]

    def outer_and_inner(
        self,
    ) -> tuple[tuple[list[tuple[str, int]], list[tuple[str, int]]], list[tuple[str, int]]]:
        """((the parallel group, loops up to where the cache is computed), loops within)."""
        rest = [one for level in range(1, self.tiles.levels) for one in self.at(self.space, level)]
        first = next((i for i, (a, n) in enumerate(rest) if n == 1 and self.parts[a][1] != 1), -1)
        around = rest[: first + 1] if self.tiles.reduce else []
        return (self.at(self.space, 0), around), rest[len(around) :]

    def cache_order(self, inner: Sequence[tuple[str, int]]) -> list[tuple[str, int]]:
        """Reductions of level 0, then space and reductions level by level; the last the other way
        round.
        """
        last = self.tiles.levels - 1
        order = self.at(self.reductions, 0) if last else []
        for level in range(1, last):
            order += [one for one in inner if one[1] == level] + self.at(self.reductions, level)
        order += self.at(self.reductions, last)
        return order + [one for one in inner if one[1] == last and last]

    def group(self, loops: Sequence[tuple[str, int]]) -> list[str]:
        names = [self.loop(*one) for one in loops]
        if len(names) > 1:
            return ["{" + ", ".join(names) + "}:para"]
        return [name + ":para" for name in names]

    def loops(self, loops: Sequence[tuple[str, int]], innermost: bool = False) -> list[str]:
        wide = [one for one in loops if one[0] in self.space and self.parts[one[0]][one[1]] != 1]
        vector = wide[-1] if wide and innermost and self.marks else None
        if vector and loops.index(vector) < max(
            (i for i, one in enumerate(loops) if one[0] in self.reductions and self.big(one)),
            default=-1,
        ):
            vector = None
        unrolled = self.marks > 1 and innermost
        return [
            self.loop(*one)
            + (":vec" if one == vector else ":unroll" if unrolled and self.late(one) else "")
            for one in loops
        ]

    def big(self, one: tuple[str, int]) -> bool:
        return self.parts[one[0]][one[1]] != 1

    def late(self, one: tuple[str, int]) -> bool:
        """A spatial loop of the last two levels that really runs."""
        return one[0] in self.space and one[1] >= max(1, self.tiles.levels - 2) and self.big(one)

    def loop(self, axis: str, level: int) -> str:
        """Its name, with its number where it comes first; the outermost has what is left."""
        name = self.tiles.stage.loop(axis, level)
        if name in self.seen or level == 0:
            return name
        self.seen.add(name)
        return f"{name}:{self.parts[axis][level] or '?'}"

    def leaf(self, name: str, reduces: bool) -> str:
        axes = ", ".join(self.cover(axis) for axis in self.space)
        over = ", ".join(self.cover(axis) for axis in self.reductions) if reduces else ""
        return f"@{name} = {axes}" + (f" // {over}" if over else "")

    def cover(self, axis: str) -> str:
        names = [self.tiles.stage.loop(axis, level) for level in range(len(self.parts[axis]))]
        return "{" + ", ".join(names) + f"}}/{axis}"


# ---- entities -----------------------------------------------------------------------------------


def checked_parts(stage: Stage, spatial: object, reduce: object) -> Tiles:
    """The entities of a stage, which multiply up to its sizes; none at all is one level."""
    return Tiles(
        stage,
        _checked(stage, "spatial", stage.axes, spatial),
        _checked(stage, "reduce", stage.over, reduce),
    )


def _checked(
    stage: Stage, what: str, axes: Sequence[tuple[str, int]], entities: object
) -> list[list[int]]:
    if not isinstance(entities, (list, tuple)):
        raise CanvasError(f"'{what}' of '{stage.name}' is a list of the parts of its axes")
    if not entities:
        return [[size] for _, size in axes]
    if len(entities) != len(axes):
        raise CanvasError(
            f"the config is of another task: '{what}' has parts of {len(entities)} axes, and "
            f"'{stage.name}' has {len(axes)}"
        )
    for (axis, size), parts in zip(axes, entities):
        fits = isinstance(parts, (list, tuple)) and parts and all(map(_is_part, parts))
        if not fits or math.prod(parts) != size:
            raise CanvasError(
                f"the config is of another task: the parts {parts} of '{what}' do not multiply "
                f"up to {size}, the size of axis '{axis}' of '{stage.name}'"
            )
    return [list(parts) for parts in entities]


def _is_part(part: object) -> bool:
    return isinstance(part, int) and not isinstance(part, bool) and part > 0


def bound(program: str, tiles: Sequence[Tiles]) -> tuple[str, str]:
    """(program after edits, schedule) of the template, with as many marks as are legal."""
    edited, caches = cached(program, tiles)
    problem: CanvasError | None = None
    for marks in (2, 1, 0):
        try:
            return edited, _core.bind_schedule(edited, schedule_text(tiles, caches, marks))[1]
        except CanvasError as error:
            problem = problem or error
    raise CanvasError(f"the template does not fit the program: {problem}")


def cached(program: str, tiles: Sequence[Tiles]) -> tuple[str, dict[str, str]]:
    """The program with a cache for each stage that reduces, and their names."""
    caches = {}
    for one in tiles:
        name = one.stage.name
        if one.reduce:
            caches[name] = f"{name}_local"
            program = _core.edit_program(program, f"cache {name} as {caches[name]}")
    return program, caches


def is_template(schedule: str, program: str) -> bool:
    """Whether the loops of a schedule are called as the template calls them."""
    return all(
        re.search(rf"\b{re.escape(stage.loop(axis, 0))}\b", schedule)
        for stage in stages_of(program)
        for axis, _ in stage.axes
    )


def parts_in(schedule: str, stage: Stage, axis: str, size: int, levels: int) -> list[int]:
    """The parts of an axis, read from a schedule of the template."""
    parts = [1] * levels
    for level in range(1, levels):
        found = re.search(rf"\b{re.escape(stage.loop(axis, level))}:(\d+)", schedule)
        parts[level] = int(found[1]) if found else 1
    parts[0] = size // math.prod(parts[1:])
    return parts
