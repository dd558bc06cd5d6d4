"""Tensors written in part: what is left of x[:, 1:] = y once nothing is changed in place."""

from __future__ import annotations

from math import prod
from typing import Any

import torch
from torch import Tensor

from .gathers import constant_indices
from .movement import view
from .operator_table import operator
from .pointwise import converted, expand, masked_fill
from .values import Unsupported, Value, axes, place
from .writer import Writer, stage


@operator("written in part", "copy fill.Tensor fill.Scalar")
def copy(w: Writer, x: Any, source: Any) -> Any:
    """`source` in the place of every element of x, as one of its type."""
    return expand(w, converted(w, source, x), x)


def _scattered(w: Writer, x: Any, y: Any, dim: int, at: str, where: list[str]) -> Any:
    """Y, at this index of `dim`, where the conditions hold; X elsewhere."""
    x, y = w.value(x), w.value(y)
    names = axes(x.rank)
    within = [*names[:dim], *([at] if at else []), *names[dim + 1 :]]
    body = f"if {' && '.join(where)} then B[{', '.join(within)}] else A[{', '.join(names)}]"
    line = stage("Y", names, x.shape, body)
    return w.call("scatter", [("A", x), ("B", y)], [line], x.shape)


@operator("written in part", "slice_scatter")
def slice_scatter(
    w: Writer, x: Any, y: Any, dim: int, start: int | None, end: int | None, step: int
) -> Any:
    dim = place(dim, len(x.shape))
    taken = range(x.shape[dim])[slice(start, end, step)]
    if len(taken) in (0, x.shape[dim]):
        return y if taken else x
    name, first, last = axes(len(x.shape))[dim], taken.start, taken[-1]
    at = f"{name}-{first}" if first else name
    where = [f"{first} <= {name}"] if first else []
    where += [f"{name} <= {last}"] if last + 1 < x.shape[dim] else []
    where += [f"({at})%{step} == 0"] if step > 1 else []
    return _scattered(w, x, y, dim, at if step == 1 else f"({at})/{step}", where)


@operator("written in part", "select_scatter")
def select_scatter(w: Writer, x: Any, y: Any, dim: int, index: int) -> Any:
    rank = len(x.shape)
    dim = place(dim, rank)
    return _scattered(w, x, y, dim, "", [f"{axes(rank)[dim]} == {index % x.shape[dim]}"])


# ---- x[mask] = y, x[:, [0, 2]] = y --------------------------------------------------------------


@operator("written in part", "index_put")
def index_put(w: Writer, x: Any, indices: Any, y: Any, accumulate: bool) -> Any:
    given = {dim: index for dim, index in enumerate(indices) if index is not None}
    (dim, index), *others = given.items()
    if accumulate or others:
        raise Unsupported("only one mask or one list of constant indices is known, without adding")
    if _is_mask(index):
        return _masked(w, x, dim, index, y)
    index = constant_indices(index, x.shape[dim])
    if index.ndim != 1 or not all(0 <= at < x.shape[dim] for at in index.tolist()):
        raise Unsupported(f"its indices are no list of places in an axis of {x.shape[dim]}")
    return _put(w, w.value(x), dim, index, y)


def _is_mask(index: Any) -> bool:
    return index.boolean if isinstance(index, Value) else index.dtype == torch.bool


def _masked(w: Writer, x: Any, dim: int, mask: Any, y: Any) -> Any:
    if prod(y.shape) != 1:
        raise Unsupported("what it writes where a mask holds has to be one number")
    after = len(x.shape) - dim - len(mask.shape)
    mask = view(w, mask, (*mask.shape, *[1] * after))
    return masked_fill(w, x, mask, y if isinstance(y, Tensor) else view(w, y, ()))


def _put(w: Writer, x: Value, dim: int, index: Tensor, y: Any) -> Any:
    """Of the same place written twice the last one stays, as on one thread of PyTorch."""
    places, written = torch.zeros(x.shape[dim], dtype=torch.int64), torch.zeros(x.shape[dim])
    for at, place_of in enumerate(index.tolist()):
        places[place_of], written[place_of] = at, 1
    y = expand(w, y, (*x.shape[:dim], len(index), *x.shape[dim + 1 :]))
    names = axes(x.rank)
    name = names[dim]
    from_y = ", ".join([*names[:dim], f"P[{name}]", *names[dim + 1 :]])
    body = f"if M[{name}] != 0 then B[{from_y}] else A[{', '.join(names)}]"
    given: list[Any] = [("A", x), ("B", y), ("P", w.index(places, len(index)), [name])]
    given.append(("M", w.value(written), [name]))
    return w.call("index_put", given, [stage("Y", names, x.shape, body)], x.shape)
