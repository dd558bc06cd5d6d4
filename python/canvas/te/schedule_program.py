"""What the calls of a schedule need of a program's text: its stages, their axes, and where each
stage reads another one.

Indices are expressions of axes with + - * / %, which Python reads as it stands; a ``Sum`` is one
of them as a sum of multiples of loops.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

_STAGE = re.compile(r"^(\w+)(?: \w+)? ?\[([^\]]*)\] = (.*?)(?: // (\w+) (.*))?$")
_LOAD = re.compile(r"\b([A-Za-z_]\w*)\[")


@dataclass(frozen=True)
class Axis:
    """An axis of a stage; `size` None: from one index up to another, data of the axis `of`."""

    name: str
    size: int | None
    of: str = ""


@dataclass(frozen=True)
class Load:
    """Where a stage reads a tensor: one text for each index."""

    tensor: str
    indices: tuple[str, ...]


@dataclass(frozen=True)
class StageText:
    """A stage of a program."""

    name: str
    axes: tuple[Axis, ...]
    reduction: tuple[Axis, ...]
    loads: tuple[Load, ...]


def stages_of(program: str) -> dict[str, StageText]:
    """The stages of a program in canonical form, in order, by name."""
    found = (_STAGE.match(line) for line in program.splitlines() if not line.startswith("#"))
    stages = (_stage(*match.groups()) for match in found if match)
    return {stage.name: stage for stage in stages}


def outputs_of(program: str) -> list[str]:
    """The names that stand after `out`."""
    line = program.rstrip().rsplit("\nout ", 1)[-1]
    return [name.strip() for name in line.split(",")]


def inputs_of(program: str) -> list[str]:
    """The names of the inputs, in order."""
    return re.findall(r"^in (\w+)", program, re.M)


def _stage(name: str, axes: str, body: str, _reducer: str, over: str | None) -> StageText:
    spatial = tuple(_axis(part) for part in split_commas(axes))
    reduced = tuple(_axis(part) for part in split_commas(over or ""))
    named = [axis.name for axis in spatial]
    reduced = tuple(
        Axis(a.name, a.size, _first_of(named, a.of) if a.size is None else "") for a in reduced
    )
    return StageText(name, spatial, reduced, tuple(_loads(body)))


def _axis(part: str) -> Axis:
    name, _, size = part.partition(":")
    return Axis(name, int(size)) if size.isdigit() else Axis(name, None, size)


def _first_of(names: list[str], text: str) -> str:
    words = re.findall(r"[A-Za-z_]\w*", text)
    return next((word for word in words if word in names), "")


def split_commas(text: str) -> Iterator[str]:
    """The parts between commas that stand in no bracket."""
    depth, part = 0, ""
    for letter in text:
        depth += (letter in "([{") - (letter in ")]}")
        if letter == "," and depth == 0:
            yield part.strip()
            part = ""
        else:
            part += letter
    if part.strip():
        yield part.strip()


def _loads(body: str) -> Iterator[Load]:
    for match in _LOAD.finditer(body):
        depth, end = 1, match.end()
        while depth and end < len(body):
            depth += (body[end] == "[") - (body[end] == "]")
            end += 1
        yield Load(match[1], tuple(split_commas(body[match.end() : end - 1])))


# ---- indices as sums of loops -------------------------------------------------------------------


@dataclass
class Sum:
    """A number plus multiples of loops, each from 0 to its extent - 1."""

    constant: int = 0
    terms: dict[Any, int] = field(default_factory=dict)

    def plus(self, other: Sum, sign: int = 1) -> Sum:
        terms = dict(self.terms)
        for loop, factor in other.terms.items():
            terms[loop] = terms.get(loop, 0) + sign * factor
        return Sum(
            self.constant + sign * other.constant, {k: v for k, v in terms.items() if v != 0}
        )

    def times(self, factor: int) -> Sum:
        terms = {loop: f * factor for loop, f in self.terms.items() if factor}
        return Sum(self.constant * factor, terms)

    def range(self) -> tuple[int, int]:
        low = high = self.constant
        for loop, factor in self.terms.items():
            low += min(0, factor * (loop.extent - 1))
            high += max(0, factor * (loop.extent - 1))
        return low, high

    def divided(self, by: int) -> tuple[Sum, Sum] | None:
        """(quotient, remainder) where both are sums; None: they are not."""
        quotient, rest = Sum(self.constant // by), Sum(self.constant % by)
        for loop, factor in self.terms.items():
            if factor % by == 0:
                quotient.terms[loop] = factor // by
            else:
                rest.terms[loop] = factor
        low, high = rest.range()
        return (quotient, rest) if low >= 0 and high < by else None


def as_sum(index: str, axes: Mapping[str, Sum]) -> Sum | None:
    """An index as a sum, its axes given as sums; None where it is none, as for data."""
    try:
        return _sum(ast.parse(index, mode="eval").body, axes)
    except SyntaxError:
        return None


def _sum(node: ast.expr, axes: Mapping[str, Sum]) -> Sum | None:
    if isinstance(node, ast.Constant) and isinstance(node.value, int):
        return Sum(node.value)
    if isinstance(node, ast.Name):
        return axes.get(node.id)
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        inner = _sum(node.operand, axes)
        return inner and inner.times(-1)
    if isinstance(node, ast.BinOp):
        left, right = _sum(node.left, axes), _sum(node.right, axes)
        return None if left is None or right is None else _combined(node.op, left, right)
    return None


def _combined(op: ast.operator, left: Sum, right: Sum) -> Sum | None:
    if isinstance(op, (ast.Add, ast.Sub)):
        return left.plus(right, 1 if isinstance(op, ast.Add) else -1)
    if isinstance(op, ast.Mult):
        if left.terms and right.terms:
            return None
        return right.times(left.constant) if right.terms else left.times(right.constant)
    if isinstance(op, (ast.Div, ast.Mod)) and not right.terms and right.constant > 0:
        parts = left.divided(right.constant)
        return parts and parts[isinstance(op, ast.Mod)]
    return None
