"""Normalisations: of a batch as it is in inference, of a layer, of groups, of an instance.

The mean of a row is the sum of two floats, so that numbers near it keep their digits and what all
elements have in common costs none: a shift C near the mean, and the mean R of the elements less C.
The smaller R is, the less it rounds.  C is the mean of a sample.  Of long rows, whose sums round
more, and of weights, which are normalised once, it is the mean of the row; M is then C + R,
rounded, and D what M lacks.  Of equal numbers C is that number, and the result is 0.
"""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any

from .movement import view
from .operator_table import operator
from .values import Unsupported, Value, axes, number
from .writer import Writer, stage

LONG = 1024  # elements of a row from which on C is its mean
SAMPLES = 8, 32  # elements of a sample, one of EACH of a row; powers of 2
EACH = 6

Load = Callable[[list[str]], str]  # indices along the reduced axes -> the load of an element
Over = list[tuple[str, int]]


def _shift(
    own: list[str], shape: tuple[int, ...], load: Load, over: Over, whole: bool
) -> list[str]:
    """Stages of C, near the mean; `whole`: of the row, not of a sample."""
    names, first = [name for name, _ in over], load(["0" for _ in over])
    if whole:
        lines = [stage("P", own, shape, f"{load(names)} - {first}", "mean", over)]
        return [*lines, stage("C", own, shape, f"{first} + P[{', '.join(own)}]")]
    sizes = [size for _, size in over]
    size, (least, most) = prod(sizes), SAMPLES
    count = 1 << (min(size, max(least, min(most, size // EACH))).bit_length() - 1)
    picked = [load(_unravelled(at * size // count, sizes)) for at in range(count)]
    while len(picked) > 1:  # in pairs: exact of equal numbers
        picked = [f"({a} + {b})" for a, b in zip(picked[::2], picked[1::2])]
    return [stage("C", own, shape, f"{picked[0]} * {number(1 / count)}" if count > 1 else first)]


def _unravelled(at: int, sizes: list[int]) -> list[str]:
    indices: list[str] = []
    for size in reversed(sizes):
        indices.insert(0, str(at % size))
        at //= size
    return indices


def is_long(x: Value, over: Over) -> bool:
    return x.constant or prod(size for _, size in over) >= LONG


def less_mean(
    own: list[str], shape: tuple[int, ...], load: Load, over: Over, whole: bool
) -> tuple[list[str], str]:
    """Stages of the mean; what is subtracted from an element."""
    at = ", ".join(own)
    lines = _shift(own, shape, load, over, whole)
    element = load([name for name, _ in over])
    lines.append(stage("R", own, shape, f"{element} - C[{at}]", "mean", over))
    if not whole:
        return lines, " - C[{0}] - R[{0}]"
    lines += [
        stage("M", own, shape, f"C[{at}] + R[{at}]"),
        stage("D", own, shape, f"R[{at}] - (M[{at}] - C[{at}])"),
    ]
    return lines, " - M[{0}] - D[{0}]"


def _moments(
    own: list[str], shape: tuple[int, ...], load: Load, over: Over, whole: bool
) -> tuple[list[str], str]:
    """Stages of the mean and of the variance V; what is subtracted from an element."""
    lines, less = less_mean(own, shape, load, over, whole)
    left = load([name for name, _ in over]) + less.format(", ".join(own))
    return [*lines, stage("V", own, shape, f"({left}) * ({left})", "mean", over)], less


def _normalised(element: str, less: str, at: str, eps: float) -> str:
    """Less its mean, by its spread, which stand at `at` in the stages of _moments."""
    return f"({element}{less.format(at)}) / sqrt(V[{at}] + {number(eps)})"


def _affine(body: str, weight: bool, bias: bool, at: str) -> str:
    body = f"{body} * G[{at}]" if weight else body
    return f"{body} + B[{at}]" if bias else body


def _given(w: Writer, x: Value, weight: Any, bias: Any, names: list[str]) -> list[Any]:
    rows: list[Any] = [("X", x)]
    if weight is not None:
        rows.append(("G", w.value(weight), names))
    if bias is not None:
        rows.append(("B", w.value(bias), names))
    return rows


@operator("normalisation", "_native_batch_norm_legit_no_training")
def batch_norm_inference(
    w: Writer, x: Any, weight: Any, bias: Any, mean: Any, var: Any, _momentum: Any, eps: float
) -> list[Any]:
    x = w.value(x)
    weight, bias, mean, var = (_of_channels(w, each, x) for each in (weight, bias, mean, var))
    names = axes(x.rank)
    c = names[1]
    body = f"(X[{', '.join(names)}] - M[{c}]) / sqrt(V[{c}] + {number(eps)})"
    line = stage("Y", names, x.shape, _affine(body, weight is not None, bias is not None, c))
    given = [*_given(w, x, weight, bias, [c]), ("M", w.value(mean), [c]), ("V", w.value(var), [c])]
    return [w.call("batch_norm", given, [line], x.shape), None, None]


def _of_channels(w: Writer, each: Any, x: Value) -> Any:
    """A number for each channel; PyTorch takes them in any shape, as [c, 1, 1]."""
    if each is None or tuple(each.shape) == x.shape[1:2]:
        return each
    if prod(each.shape) != x.shape[1]:
        raise Unsupported(f"it has {x.shape[1]} channels, and weights of {list(each.shape)}")
    return view(w, w.value(each), x.shape[1:2])


@operator("normalisation", "batch_norm")
def batch_norm(
    w: Writer,
    x: Any,
    weight: Any,
    bias: Any,
    mean: Any,
    var: Any,
    training: bool,
    momentum: Any,
    eps: float,
    *_cudnn: Any,
) -> Any:
    if training or mean is None:
        raise Unsupported("it normalises by its own batch, call model.eval() first")
    return batch_norm_inference(w, x, weight, bias, mean, var, momentum, eps)[0]


def _by_group(
    w: Writer, kind: str, x: Value, weight: Any, bias: Any, groups: int, eps: float
) -> Value:
    """Of X [n, c, ...] the mean and the variance over each group of channels and the image."""
    n, channels, *image = x.shape
    names = axes(x.rank)
    c, per, rest = names[1], channels // groups, names[2:]
    over = ([(c, per)] if per > 1 else []) + list(zip(rest, image))
    group = "0" if groups == 1 else (c if per == 1 else f"{c}/{per}")

    def load(indices: list[str]) -> str:
        own = indices[0] if per > 1 else "0"
        if groups > 1:
            own = "g" if per == 1 else f"g*{per}" if own == "0" else f"g*{per}+{own}"
        return f"X[{', '.join([names[0], own, *indices[len(indices) - len(rest) :]])}]"

    lines, less = _moments([names[0], "g"], (n, groups), load, over, is_long(x, over))
    element = f"X[{', '.join([names[0], c, *rest])}]"
    body = _normalised(element, less, f"{names[0]}, {group}", eps)
    body = _affine(body, weight is not None, bias is not None, c)
    lines.append(stage("Y", names, x.shape, body))
    return w.call(kind, _given(w, x, weight, bias, [c]), lines, x.shape)


@operator("normalisation", "native_group_norm")
def native_group_norm(
    w: Writer, x: Any, weight: Any, bias: Any, _n: int, _c: int, _hw: int, groups: int, eps: float
) -> list[Any]:
    return [_by_group(w, "group_norm", w.value(x), weight, bias, groups, eps), None, None]


@operator("normalisation", "group_norm")
def group_norm(
    w: Writer, x: Any, groups: int, weight: Any, bias: Any, eps: float, *_cudnn: Any
) -> Value:
    return _by_group(w, "group_norm", w.value(x), weight, bias, groups, eps)


@operator("normalisation", "instance_norm")
def instance_norm(
    w: Writer,
    x: Any,
    weight: Any,
    bias: Any,
    mean: Any,
    var: Any,
    by_input: bool,
    momentum: Any,
    eps: float,
    *_cudnn: Any,
) -> Any:
    x = w.value(x)
    if not by_input:
        return batch_norm_inference(w, x, weight, bias, mean, var, momentum, eps)[0]
    return _by_group(w, "instance_norm", x, weight, bias, x.shape[1], eps)


@operator("normalisation", "_native_batch_norm_legit.no_stats")
def own_batch_norm(
    w: Writer, x: Any, weight: Any, bias: Any, training: bool, _momentum: Any, eps: float
) -> list[Any]:
    """What instance normalisation becomes: one image whose channels are each of their own."""
    x = w.value(x)
    if x.shape[0] != 1:
        raise Unsupported("it normalises by its own batch, call model.eval() first")
    return [_by_group(w, "instance_norm", x, weight, bias, x.shape[1], eps), None, None]


def _layer(
    w: Writer, x: Any, shape: Any, weight: Any, bias: Any, eps: Any, centred: bool
) -> Value:
    x = w.value(x)
    names, first = axes(x.rank), x.rank - len(shape)
    lead, last = names[:first], names[first:]
    load, over = f"X[{', '.join(names)}]", list(zip(last, x.shape[first:]))
    at = ", ".join(lead)
    if centred:

        def load_at(indices: list[str]) -> str:
            return f"X[{', '.join([*lead, *indices])}]"

        lines, less = _moments(lead, x.shape[:first], load_at, over, is_long(x, over))
        body = _normalised(load, less, at, eps)
    else:
        lines = [stage("V", lead, x.shape[:first], f"{load} * {load}", "mean", over)]
        body = f"{load} / sqrt(V[{at}] + {number(eps)})"
    body = _affine(body, weight is not None, bias is not None, ", ".join(last))
    lines.append(stage("Y", names, x.shape, body))
    kind = "layer_norm" if centred else "rms_norm"
    return w.call(kind, _given(w, x, weight, bias, last), lines, x.shape)


@operator("normalisation", "native_layer_norm")
def native_layer_norm(
    w: Writer, x: Any, shape: Any, weight: Any, bias: Any, eps: float
) -> list[Any]:
    return [_layer(w, x, shape, weight, bias, eps, True), None, None]


@operator("normalisation", "layer_norm")
def layer_norm(
    w: Writer, x: Any, shape: Any, weight: Any, bias: Any, eps: float, *_cudnn: Any
) -> Value:
    return _layer(w, x, shape, weight, bias, eps, True)


@operator("normalisation", "rms_norm")
def rms_norm(w: Writer, x: Any, shape: Any, weight: Any, eps: Any) -> Value:
    return _layer(w, x, shape, weight, None, 1.1920928955078125e-07 if eps is None else eps, False)
