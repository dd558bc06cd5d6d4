"""Convolutions of images of one to three axes, in both directions.

A transposed one is written per place of the output: of the window it meets every stride-th element
only, by a condition on a remainder, as in the operators: the default schedule splits the axes by
it. Of a window that is no longer than the stride it meets one element, or none.
"""

from __future__ import annotations

from typing import Any

from .movement import view
from .operator_table import operator
from .values import Unsupported, Value, spread
from .writer import Writer, stage

SPACE = {1: ["w"], 2: ["h", "w"], 3: ["d", "h", "w"]}


def padded(
    names: list[str],
    image: list[str],
    sizes: list[int],
    low: list[int],
    full: list[int],
    zero: str,
) -> tuple[str, str]:
    """(the condition under which a place of the padded image is one of X, the load there); ""
    where there is nothing to pad.
    """
    bounds, at = [], list(names)
    for axis, size, before, whole in zip(image, sizes, low, full):
        if before > 0:
            bounds.append(f"{before} <= {axis}")
        if whole - before > size:
            bounds.append(f"{axis} < {before + size}")
        if before:
            at[names.index(axis)] = f"{axis}-{before}" if before > 0 else f"{axis}+{-before}"
    load = f"X[{', '.join(at)}]"
    return (f"if {' && '.join(bounds)} then {load} else {zero}" if bounds else load), load


@operator("convolution", "convolution")
def convolution(
    w: Writer,
    x: Any,
    weight: Any,
    bias: Any,
    stride: Any,
    padding: Any,
    dilation: Any,
    transposed: bool,
    output_padding: Any,
    groups: int,
) -> Value:
    x, weight = w.value(x), w.value(weight)
    count = weight.rank - 2
    if count not in SPACE:
        raise Unsupported("a convolution has one to three axes")
    if x.rank == count + 1:  # one image
        args = (stride, padding, dilation, transposed, output_padding, groups)
        made = convolution(w, view(w, x, (1, *x.shape)), weight, bias, *args)
        return view(w, made, made.shape[1:])
    by, pads, steps = (spread(value, count) for value in (stride, padding, dilation))
    if transposed:
        more = spread(output_padding, count)
        return _transposed(w, x, weight, bias, by, pads, steps, more, groups)
    return _forward(w, x, weight, bias, by, pads, steps, groups)


def _channel(groups: int, inner: int, outer: int) -> str:
    """The channel of the image that an output channel o meets as its c-th."""
    if groups == 1:
        return "c"
    first = "o" if outer == 1 else f"o/{outer}"
    if inner == 1:
        return first
    return f"{first}*{inner}+c"


def _forward(
    w: Writer, x: Value, weight: Value, bias: Any, stride: Any, padding: Any, dilation: Any, g: int
) -> Value:
    image = SPACE[len(stride)]
    out_channels, inner, *window = weight.shape
    sizes = list(x.shape[2:])
    full = [size + 2 * pad for size, pad in zip(sizes, padding)]
    out = [
        (whole - step * (k - 1) - 1) // by + 1
        for whole, step, k, by in zip(full, dilation, window, stride)
    ]
    shape = (x.shape[0], out_channels, *out)
    lines, source = [], "X"
    if any(padding):
        names, source = ["n", "c", *image], "pad"
        body, _ = padded(names, image, sizes, padding, full, "0")
        lines.append(stage("pad", names, (*x.shape[:2], *full), body))
    where, taps, over = [], [], []
    if inner > 1 or g == 1:
        over.append(("c", inner))
    for axis, by, step, k in zip(image, stride, dilation, window):
        index = axis if by == 1 else f"{axis}*{by}"
        tap = "0" if k == 1 else f"k{axis}"
        if k > 1:
            index += f"+{tap}" if step == 1 else f"+{tap}*{step}"
            over.append((tap, k))
        where.append(index)
        taps.append(tap)
    channel = _channel(g, inner, out_channels // g)
    load = f"{source}[n, {channel}, {', '.join(where)}]"
    factor = f"W[o, {'c' if inner > 1 or g == 1 else '0'}, {', '.join(taps)}]"
    kind = "depthwise" if inner == 1 and g > 1 else "conv"
    names = ["o", "c", *(f"k{axis}" for axis in image)]
    return _summed(w, kind, x, (weight, names), bias, lines, shape, f"{load} * {factor}", over)


def _summed(
    w: Writer,
    kind: str,
    x: Value,
    weight: tuple[Value, list[str]],
    bias: Any,
    lines: list[str],
    shape: tuple[int, ...],
    body: str,
    over: list[tuple[str, int]],
) -> Value:
    image = SPACE[x.rank - 2]
    names = ["n", "o", *image]
    given: list[Any] = [("X", x, ["n", "c", *image]), ("W", *weight)]
    if bias is None:
        return w.call(kind, given, [*lines, stage("Y", names, shape, body, "sum", over)], shape)
    if over:
        lines = [*lines, stage("Y_sum", names, shape, body, "sum", over)]
        body = f"Y_sum[{', '.join(names)}]"
    body = f"({body})" if body.startswith("if ") else body
    given.append(("B", w.value(bias), ["o"]))
    return w.call(kind, given, [*lines, stage("Y", names, shape, f"{body} + B[o]")], shape)


def _transposed(
    w: Writer,
    x: Value,
    weight: Value,
    bias: Any,
    stride: Any,
    padding: Any,
    dilation: Any,
    more: Any,
    g: int,
) -> Value:
    image = SPACE[len(stride)]
    channels, outer, *window = weight.shape
    inner, sizes = channels // g, list(x.shape[2:])
    out = [
        (size - 1) * by - 2 * pad + step * (k - 1) + extra + 1
        for size, by, pad, step, k, extra in zip(sizes, stride, padding, dilation, window, more)
    ]
    shape = (x.shape[0], outer * g, *out)
    over, where, taps, low, full = [], [], [], [], []
    bounds: list[str] = []
    if inner > 1 or g == 1:
        over.append(("c", inner))
    for axis, by, pad, step, k, size in zip(image, stride, padding, dilation, window, out):
        index, tap, reach, last = _phase(axis, by, pad, step, k, bounds)
        if reach > 1:
            over.append((f"k{axis}", reach))
        where.append(index)
        taps.append(tap)
        low.append(last)
        full.append((size - 1 + pad) // by + last + 1)
    names, source, lines = ["n", "c", *image], "X", []
    if any(low) or full != sizes:
        body, _ = padded(names, image, sizes, low, full, "0")
        lines.append(stage("pad", names, (*x.shape[:2], *full), body))
        source = "pad"
    channel = _channel(g, inner, outer)
    o = "o" if g == 1 else ("0" if outer == 1 else f"o%{outer}")
    body = f"{source}[n, {channel}, {', '.join(where)}] * W[{channel}, {o}, {', '.join(taps)}]"
    if bounds:
        body = f"if {' && '.join(bounds)} then {body} else 0"
    kernel = ["i", "o", *(f"k{axis}" for axis in image)]
    return _summed(w, "conv_transposed", x, (weight, kernel), bias, lines, shape, body, over)


def _phase(
    axis: str, by: int, pad: int, step: int, k: int, bounds: list[str]
) -> tuple[str, str, int, int]:
    """(the index into the padded image, that into the window, how many elements of the window,
    how far the image is padded before).
    """
    at = f"({axis}+{pad})" if pad else axis
    step = 1 if k == 1 else step
    if by == 1:
        last = step * (k - 1)
        tap = "0" if k == 1 else f"k{axis}"
        far = "" if k == 1 else f"-{tap}" if step == 1 else f"-{tap}*{step}"
        return f"{axis}+{pad + last}{far}", tap, k, last
    if step == 1 and k <= by:
        tap = f"{at}%{by}"
        if k < by:
            bounds.append(f"{tap} < {k}")
        return f"{at}/{by}", tap, 1, 0
    last = -(-step * (k - 1) // by)
    place = f"({axis}+{pad}+{last * by}-k{axis}*{step})"
    bounds.append(f"{place}%{by} == 0")
    return f"{place}/{by}", f"k{axis}", k, last


def _spelled(count: int, transposed: bool) -> Any:
    def write(w: Writer, x: Any, weight: Any, bias: Any, *rest: Any) -> Value:
        if transposed:
            stride, padding, more, groups, dilation = rest
        else:
            stride, padding, dilation, groups = rest
            more = 0
        if padding == "valid":
            padding = 0
        if isinstance(padding, str):
            return _same(w, x, weight, bias, stride, dilation, groups, count)
        return convolution(w, x, weight, bias, stride, padding, dilation, transposed, more, groups)

    return write


def _same(
    w: Writer, x: Any, weight: Any, bias: Any, stride: Any, dilation: Any, groups: int, count: int
) -> Value:
    """padding="same": what is odd of the padding comes last."""
    from .movement import constant_pad

    weight, steps = w.value(weight), spread(dilation, count)
    whole = [step * (k - 1) for step, k in zip(steps, weight.shape[2:])]
    if any(total % 2 for total in whole):
        pads = [side for total in reversed(whole) for side in (0, total % 2)]
        x = constant_pad(w, x, pads, 0)
    padding = [total // 2 for total in whole]
    return convolution(w, x, weight, bias, stride, padding, steps, False, 0, groups)


for _count in SPACE:
    operator("convolution", f"conv{_count}d conv{_count}d.padding")(_spelled(_count, False))
    _name = "conv_transpose1d" if _count == 1 else f"conv_transpose{_count}d.input"
    operator("convolution", _name)(_spelled(_count, True))
