"""Maxima and means of windows, and of windows whose places follow from the size of the result."""

from __future__ import annotations

from functools import partial
from typing import Any

from .convolutions import SPACE, padded
from .operator_table import add
from .values import Unsupported, Value, axes, number, spread
from .writer import Writer, stage


def _out(size: int, k: int, by: int, pad: int, step: int, ceil: bool) -> int:
    reach = size + 2 * pad - step * (k - 1) - 1
    out = (reach + (by - 1 if ceil else 0)) // by + 1
    return out - 1 if ceil and (out - 1) * by >= size + pad else out


def _windows(
    x: Value,
    image: list[str],
    window: Any,
    stride: Any,
    pads: Any,
    steps: Any,
    ceil: bool,
    zero: str,
) -> tuple[list[str], str, tuple[int, ...]]:
    """(the stage of the padded image, if any, the load of an element of a window, the shape)."""
    count = len(image)
    lead, sizes = axes(x.rank)[: x.rank - count], list(x.shape[x.rank - count :])
    names = [*lead, *image]
    out = [_out(*row, ceil) for row in zip(sizes, window, stride, pads, steps)]
    full = [
        (places - 1) * by + step * (k - 1) + 1
        for places, by, step, k in zip(out, stride, steps, window)
    ]
    lines, source = [], "X"
    if any(pads) or any(whole > size for whole, size in zip(full, sizes)):
        body, _ = padded(names, image, sizes, pads, full, zero)
        lines.append(stage("pad", names, (*x.shape[: x.rank - count], *full), body))
        source = "pad"
    at = list(lead)
    for axis, k, by, step in zip(image, window, stride, steps):
        index = axis if by == 1 else f"{axis}*{by}"
        at.append(index if k == 1 else f"{index}+k{axis}" + ("" if step == 1 else f"*{step}"))
    return lines, f"{source}[{', '.join(at)}]", (*x.shape[: x.rank - count], *out)


def _image(x: Value, count: int) -> list[str]:
    if x.rank not in (count + 1, count + 2):
        raise Unsupported(f"it reads {x.rank} axes")
    return SPACE[count]


def _names(x: Value, image: list[str]) -> list[str]:
    return [*axes(x.rank)[: x.rank - len(image)], *image]


def max_pool(
    w: Writer,
    x: Any,
    window: Any,
    stride: Any,
    padding: Any,
    dilation: Any,
    ceil: bool,
    *,
    count: int,
) -> Value:
    x = w.value(x)
    image = _image(x, count)
    window = spread(window, count)
    stride = spread(stride, count) if stride else window
    pads, steps = spread(padding, count), spread(dilation, count)
    lines, load, shape = _windows(x, image, window, stride, pads, steps, ceil, "-inf")
    over = [(f"k{axis}", k) for axis, k in zip(image, window) if k > 1]
    names = _names(x, image)
    lines.append(stage("Y", names, shape, load, "max", over))
    return w.call("max_pool", [("X", x, names)], lines, shape)


def _with_indices(*args: Any, **options: Any) -> list[Any]:
    return [max_pool(*args, **options), None]


def avg_pool(
    w: Writer,
    x: Any,
    window: Any,
    stride: Any = (),
    padding: Any = 0,
    ceil: bool = False,
    count_pad: bool = True,
    divisor: Any = None,
    *,
    count: int,
) -> Value:
    x = w.value(x)
    image = _image(x, count)
    window = spread(window, count)
    stride = spread(stride, count) if stride else window
    pads = spread(padding, count)
    lines, load, shape = _windows(x, image, window, stride, pads, [1] * count, ceil, "0")
    over = [(f"k{axis}", k) for axis, k in zip(image, window) if k > 1]
    names, sizes, many = _names(x, image), x.shape[-count:], [count_pad] * count
    rows = zip(image, sizes, window, stride, pads, shape[-count:], many)
    factors = [_covered(*row) for row in rows]
    count_text = number(divisor) if divisor else " * ".join(factors)
    if over:
        lines.append(stage("Y_sum", names, shape, load, "sum", over))
        load = f"Y_sum[{', '.join(names)}]"
    lines.append(stage("Y", names, shape, f"{load} / ({count_text})"))
    return w.call("avg_pool", [("X", x, names)], lines, shape)


def _covered(axis: str, size: int, k: int, by: int, pad: int, out: int, count_pad: bool) -> str:
    """How many elements along an axis the mean counts at a place of the result."""
    low, high = (0, size + 2 * pad) if count_pad else (pad, size + pad)  # of the padded image
    if (not pad or count_pad) and (out - 1) * by + k <= high:
        return str(k)
    return f"real(min({axis}*{by}+{k}, {high}) - max({axis}*{by}, {low}))"


def _adaptive(w: Writer, x: Any, out: Any, count: int, reducer: str) -> Value:
    x = w.value(x)
    image = _image(x, count)
    out = [size if size is not None else -1 for size in spread(out, count)]
    sizes = x.shape[-count:]
    out = [whole if size == -1 else size for size, whole in zip(out, sizes)]
    if all(whole % size == 0 for whole, size in zip(sizes, out)):
        window = [whole // size for whole, size in zip(sizes, out)]
        if reducer == "max":
            return max_pool(w, x, window, window, 0, 1, False, count=count)
        return avg_pool(w, x, window, window, count=count)
    return _uneven(w, x, image, list(sizes), out, reducer)


def _uneven(
    w: Writer, x: Value, image: list[str], sizes: list[int], out: list[int], reducer: str
) -> Value:
    """Place i of o takes [i*n/o], ..., [((i+1)*n-1)/o] of n elements."""
    at, bounds, over, counts = axes(x.rank)[: x.rank - len(image)], [], [], []
    for axis, n, o in zip(image, sizes, out):
        first, last = f"{axis}*{n}/{o}", f"(({axis}+1)*{n}-1)/{o}"
        longest = max(((i + 1) * n - 1) // o - i * n // o + 1 for i in range(o))
        at.append(f"{first}+k{axis}")
        over.append((f"k{axis}", longest))
        bounds.append(f"{first}+k{axis} <= {last}")
        counts.append(f"real({last}-{first}+1)")
    names, shape = _names(x, image), (*x.shape[: x.rank - len(image)], *out)
    zero = "0" if reducer == "sum" else "-inf"
    body = f"if {' && '.join(bounds)} then X[{', '.join(at)}] else {zero}"
    if reducer == "max":
        lines = [stage("Y", names, shape, body, "max", over)]
        return w.call("adaptive_max_pool", [("X", x, names)], lines, shape)
    lines = [stage("Y_sum", names, shape, body, "sum", over)]
    mean = f"Y_sum[{', '.join(names)}] / ({' * '.join(counts)})"
    lines.append(stage("Y", names, shape, mean))
    return w.call("adaptive_avg_pool", [("X", x, names)], lines, shape)


def adaptive_avg_pool(w: Writer, x: Any, out: Any, *, count: int) -> Value:
    return _adaptive(w, x, out, count, "sum")


def adaptive_max_pool(w: Writer, x: Any, out: Any, *, count: int) -> list[Any]:
    return [_adaptive(w, x, out, count, "max"), None]


for _count in SPACE:
    add("pooling", f"max_pool{_count}d", partial(max_pool, count=_count))
    add("pooling", f"avg_pool{_count}d", partial(avg_pool, count=_count))
    add("pooling", f"adaptive_avg_pool{_count}d", partial(adaptive_avg_pool, count=_count))
    add("pooling", f"adaptive_max_pool{_count}d", partial(adaptive_max_pool, count=_count))
    if _count > 1:
        add("pooling", f"max_pool{_count}d_with_indices", partial(_with_indices, count=_count))
        add("pooling", f"_adaptive_avg_pool{_count}d", partial(adaptive_avg_pool, count=_count))
