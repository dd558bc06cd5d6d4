"""The range of an int32 input without one: what the loads that its elements index allow.

A pointer, of which a reduction's bounds are made, runs from 0 to the size of what the reduction
goes along, and rises.  Any other runs as far as keeps every index that it stands in inside.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from .expr import Expr
from .place import mistake
from .tensor import ComputeOp, IterVar, PlaceholderOp, Tensor, walk

Interval = tuple[int, int]


def range_of_input(tensor: Tensor, stages: Sequence[ComputeOp]) -> tuple[Interval, bool]:
    """((low, high), rising), `high` excluded."""
    op = tensor.op
    assert isinstance(op, PlaceholderOp)
    if op.bounds is not None:
        return op.bounds, op.rising
    sizes = list(_pointed(tensor, stages))
    if sizes:
        return (0, min(sizes) + 1), True
    most = min((_most(tensor, *use) for use in _uses(tensor, stages)), default=-1)
    if most < 0:
        raise mistake(
            f"the range of '{tensor.name}' is not to be seen from what it indexes: say "
            "bounds=(low, high)",
            op.at,
        )
    return (0, most + 1), op.rising


def _holds(expr: Any, tensor: Tensor) -> bool:
    if not isinstance(expr, Expr):
        return False
    is_it = expr.op == "load" and expr.args[0] is tensor
    return is_it or any(_holds(arg, tensor) for arg in expr.args)


def _pointed(tensor: Tensor, stages: Sequence[ComputeOp]) -> Iterator[int]:
    """Sizes along which axes run whose bounds are elements of the tensor."""
    for stage in stages:
        bounded = [
            axis
            for axis in stage.reduce_axis
            if _holds(axis.low, tensor) or _holds(axis.high, tensor)
        ]
        for load in (one for one in walk(stage.body[0]) if one.op == "load" and bounded):
            for index, size in zip(load.args[1:], load.args[0].shape):
                if any(_is_along(index, axis) for axis in bounded):
                    yield int(size)


def _is_along(index: Expr, axis: IterVar) -> bool:
    """k, or low + k of an axis that counts from 0."""
    if index is axis:
        return True
    return index.op == "+" and any(arg is axis for arg in index.args)


def _uses(tensor: Tensor, stages: Sequence[ComputeOp]) -> Iterator[tuple[Expr, int]]:
    """The indices that its elements stand in, and the size of what they index."""
    for stage in stages:
        for load in (one for one in walk(stage.body[0]) if one.op == "load"):
            for index, size in zip(load.args[1:], load.args[0].shape):
                if _holds(index, tensor):
                    yield index, int(size)


def _most(tensor: Tensor, index: Expr, size: int) -> int:
    """The largest element that keeps the index below the size; -1: not even 0 does."""
    least, most = -1, 2**31 - 1
    while least < most:
        middle = (least + most + 1) // 2
        found = _interval(index, tensor, middle)
        if found is not None and found[0] >= 0 and found[1] < size:
            least = middle
        else:
            most = middle - 1
    return least


def _interval(expr: Expr, tensor: Tensor, most: int) -> Interval | None:
    """What an index may be while elements of the tensor are from 0 to `most`."""
    if expr.op == "integer":
        return expr.args[0], expr.args[0]
    if isinstance(expr, IterVar):
        return None if expr.extent is None else (expr.low, expr.low + expr.extent - 1)
    if expr.op == "load":
        bounds = getattr(expr.args[0].op, "bounds", None)
        if expr.args[0] is tensor:
            return 0, most
        return (bounds[0], bounds[1] - 1) if bounds else None
    parts = [_interval(arg, tensor, most) for arg in expr.args if isinstance(arg, Expr)]
    if any(part is None for part in parts):
        return None
    return _combined(expr.op, [part for part in parts if part is not None])


def _combined(op: str, parts: Sequence[Interval]) -> Interval | None:
    if op == "neg":
        return -parts[0][1], -parts[0][0]
    if op not in ("+", "-", "*", "/", "%"):
        return None
    (a, b), (c, d) = parts
    if op == "+":
        return a + c, b + d
    if op == "-":
        return a - d, b - c
    if op == "*":
        corners = [a * c, a * d, b * c, b * d]
        return min(corners), max(corners)
    return (a // c, b // c) if op == "/" else (0, c - 1)
