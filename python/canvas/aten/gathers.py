"""Elements whose places are data or follow from other sizes: embedding, constant indices,
interpolation.
"""

from __future__ import annotations

from fractions import Fraction
from functools import partial
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from .movement import move
from .operator_table import add, operator
from .values import Shape, Unsupported, Value, axes, place
from .writer import Writer, stage

SMALL_DENOMINATOR = 10000  # of a scale that indices are computed of; others have tables


@operator("index", "embedding")
def embedding(w: Writer, weight: Any, indices: Any, *_options: Any) -> Value:
    weight = w.value(weight)
    index = w.index(indices, weight.shape[0])
    names = axes(index.rank + 1)
    shape = (*index.shape, weight.shape[1])
    body = f"W[I[{', '.join(names[:-1])}], {names[-1]}]"
    given: list[Any] = [("W", weight, ["v", "e"]), ("I", index, names[:-1])]
    return w.call("embedding", given, [stage("Y", names, shape, body)], shape)


@operator("index", "index.Tensor _unsafe_index.Tensor")
def index(w: Writer, x: Any, indices: Any) -> Any:
    x = w.value(x)
    picked = {
        dim: constant_indices(i, x.shape[dim]) for dim, i in enumerate(indices) if i is not None
    }
    first, last = min(picked), max(picked)
    shape = tuple(torch.broadcast_shapes(*(i.shape for i in picked.values())))
    lead = first if last - first + 1 == len(picked) else 0
    kept = [dim for dim in range(x.rank) if dim not in picked]
    before, after = kept[:lead], kept[lead:]
    out = (*(x.shape[d] for d in before), *shape, *(x.shape[d] for d in after))
    names = axes(len(out))
    own = names[lead : lead + len(shape)]
    at = dict(zip([*before, *after], [*names[:lead], *names[lead + len(shape) :]]))
    return _gathered(w, x, at, picked, own, out)


@operator("index", "index_select")
def index_select(w: Writer, x: Any, dim: int, picked: Any) -> Any:
    x = w.value(x)
    dim = place(dim, x.rank)
    return index(
        w, x, [None] * dim + [picked.reshape(-1) if isinstance(picked, Tensor) else picked]
    )


def constant_indices(picked: Any, size: int) -> Tensor:
    """Whole numbers counted from the front."""
    if not isinstance(picked, Tensor):
        raise Unsupported("its indices are computed, only constant ones are known")
    if picked.dtype == torch.bool:
        raise Unsupported("its indices are bools")
    return torch.where(picked < 0, picked + size, picked)


def _gathered(
    w: Writer, x: Value, at: dict[int, str], picked: dict[int, Tensor], own: list[str], out: Shape
) -> Any:
    """`at`: the index of each axis that stays; `own`: the axes of the result for those picked."""
    given: list[Any] = [("X", x)]
    for dim, where in picked.items():
        text = _regular(where, own, x.shape[dim])
        if text is None:
            value = w.index(where.contiguous(), x.shape[dim])
            letter, names = f"I{dim}", axes(where.dim())
            given.append((letter, value, names))
            named = own[len(own) - where.dim() :]
            spots = ["0" if size == 1 else name for name, size in zip(named, where.shape)]
            text = f"{letter}[{', '.join(spots)}]"
        at[dim] = text
    load = f"X[{', '.join(at[dim] for dim in range(x.rank))}]"
    made = w.call("gather", given, [stage("Y", axes(len(out)), out, load)], out)
    return Value(made.name, made.shape, made.constant, boolean=x.boolean)


def _regular(where: Tensor, own: list[str], size: int) -> str | None:
    """Indices in equal steps along one axis, perhaps kept within the tensor, as a formula."""
    long = [dim for dim, n in enumerate(where.shape) if n > 1]
    flat = where.reshape(-1).tolist()
    if not long:
        return str(flat[0])
    if len(long) > 1:
        return None
    name = own[len(own) - where.dim() + long[0]]
    for start, step in ((flat[0], flat[1] - flat[0]), (flat[-1] - len(flat) + 1, 1)):
        plain = [start + step * i for i in range(len(flat))]
        body = name if step == 1 else f"{name}*{step}" if step >= 0 else f"-{name}*{-step}"
        if step < 0:
            body = f"{start}-{name}" + ("" if step == -1 else f"*{-step}")
        elif start:
            body += f"+{start}" if start > 0 else f"-{-start}"
        if plain == flat:
            return body
        if step and [min(max(i, 0), size - 1) for i in plain] == flat:
            return f"min(max({body}, 0), {size - 1})"
    return None


# ---- interpolation ------------------------------------------------------------------------------


def _targets(x: Value, size: Any, scales: Any, count: int) -> list[int]:
    if size is not None:
        return list(size)
    return [int(n * scale) for n, scale in zip(x.shape[-count:], scales)]


def nearest(w: Writer, x: Any, size: Any, scales: Any = None, *, count: int) -> Any:
    """PyTorch's own result for 0, 1, 2, ... shows which element is the nearest."""
    x = w.value(x)
    out = _targets(x, size, scales, count)
    shape = (*x.shape[: x.rank - count], *out)
    names, rest = axes(x.rank), x.rank - count
    at, picked = dict(enumerate(names)), {}
    for axis, (n, o) in enumerate(zip(x.shape[rest:], out), rest):
        scale = scales[axis - rest] if scales is not None and size is None else None
        where = _nearest_of(n, o, scale, count)
        if where.tolist() == [i * n // o for i in range(o)]:
            at[axis] = _ratio(names[axis], n, o)
        else:
            picked[axis] = where
    if not picked:
        return move(w, "nearest", x, shape, [at[axis] for axis in range(x.rank)])
    given: list[Any] = [("X", x)]
    for axis, where in picked.items():
        given.append((f"I{axis}", w.index(where, x.shape[axis]), [names[axis]]))
        at[axis] = f"I{axis}[{names[axis]}]"
    load = f"X[{', '.join(at[axis] for axis in range(x.rank))}]"
    return w.call("nearest", given, [stage("Y", names, shape, load)], shape)


def _nearest_of(n: int, o: int, scale: float | None, count: int) -> Tensor:
    """For `o` places along one of `count` axes of size `n`: of images PyTorch leaves an axis whose
    size stays as it is, whatever the scale, but not of rows and volumes.
    """
    image = torch.arange(n, dtype=torch.float32, device="cpu").view(1, 1, *[1] * (count - 1), n)
    others = [1] * (count - 1)
    if scale is None:
        answer = F.interpolate(image, size=[*others, o], mode="nearest")
    else:
        answer = F.interpolate(image, scale_factor=[*others, scale], mode="nearest")
    return answer.flatten().long()


def _ratio(name: str, n: int, o: int) -> str:
    ratio = Fraction(n, o)
    top = name if ratio.numerator == 1 else f"{name}*{ratio.numerator}"
    return top if ratio.denominator == 1 else f"{top}/{ratio.denominator}"


Terms = list[tuple[str, str]]  # of a sum: weight, index along the axis


def linear(w: Writer, x: Any, size: Any, corners: bool, scales: Any = None, *, count: int) -> Any:
    """Between two neighbours along each axis in turn.  Each neighbour has a weight: between two
    infinities is another one, as in PyTorch.
    """
    x = w.value(x)
    out = _targets(x, size, scales, count)
    rest, names, shape = x.rank - count, axes(x.rank), list(x.shape)
    lines: list[str] = []
    given: list[Any] = [("X", x)]
    source = "X"
    for axis in reversed(range(rest, x.rank)):
        n, o = x.shape[axis], out[axis - rest]
        scale = scales[axis - rest] if scales is not None and size is None else None
        if n == o:  # PyTorch copies then, whatever the scale
            continue
        terms = _neighbours(names[axis], n, o, corners, scale)
        if not terms:
            tables = _tables(w, axis, names[axis], n, o, float(scale or 1))
            given += tables
            near, low, far, high = (f"{table[0]}[{names[axis]}]" for table in tables)
            terms = [(near, low), (far, high)]
        products = []
        for weight, index in terms:
            at = ", ".join(index if i == axis else name for i, name in enumerate(names))
            products.append(f"{weight} * {source}[{at}]" if weight else f"{source}[{at}]")
        shape[axis] = o
        source = f"Y{axis}"
        lines.append(stage(source, names, shape, " + ".join(products)))
    return w.call("linear_between", given, lines, tuple(shape)) if lines else x


def _neighbours(name: str, n: int, o: int, corners: bool, scale: float | None) -> Terms:
    """Place t/d of the image, in whole numbers; empty where the scale is no small fraction."""
    if corners and (o == 1 or n == 1):
        return [("", "0")]
    t, d = f"{name}*{n - 1}", o - 1
    if not corners:
        step = Fraction(n, o) if scale is None else _inverse(scale)
        if step is None:
            return []
        p, q = step.numerator, step.denominator
        t, d = f"max((2*{name}+1)*{p}-{q}, 0)", 2 * q
    low, high = f"min({t}/{d}, {n - 1})", f"min({t}/{d}+1, {n - 1})"
    return [(f"real({d}-{t}%{d}) / {d}", low), (f"real({t}%{d}) / {d}", high)]


def _inverse(scale: float) -> Fraction | None:
    """1/scale where the scale is the double nearest to a small fraction, as 1.7 and 1/3 are."""
    small = Fraction(scale).limit_denominator(SMALL_DENOMINATOR)
    return 1 / small if small and float(small) == scale else None


def _tables(w: Writer, axis: int, name: str, n: int, o: int, scale: float) -> list[Any]:
    """Weight and index of either neighbour for each place, as PyTorch computes them: in float32,
    the product and the difference rounded once.
    """
    step = torch.tensor(1 / scale, dtype=torch.float32, device="cpu").double()
    places = torch.arange(o, dtype=torch.float64, device="cpu") + 0.5
    at = (places * step - 0.5).float().clamp(min=0)
    low = at.floor().clamp(max=n - 1)
    far = (at - low).clamp(max=1)
    return [
        (f"N{axis}", w.weight(1 - far), [name]),
        (f"L{axis}", w.index(low.long(), n), [name]),
        (f"F{axis}", w.weight(far), [name]),
        (f"H{axis}", w.index((low + 1).clamp(max=n - 1).long(), n), [name]),
    ]


for _count, _kind in ((1, "linear1d"), (2, "bilinear2d"), (3, "trilinear3d")):
    add("interpolation", f"upsample_nearest{_count}d.vec", partial(nearest, count=_count))
    add("interpolation", f"upsample_{_kind}.vec", partial(linear, count=_count))
