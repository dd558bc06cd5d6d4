"""Normalisations: of a batch as it is in inference, of a layer, of groups, of an instance.

Where a mean is subtracted, the first element is so before: what all elements have in common would
leave little of their differences in float32, and of constant ones something else than 0.  Where
the first element is far from most, as in sparse images, these are a long sum of equal numbers,
which rounds in one direction: D is what is left of the mean.  Of weights D is always taken: it is
computed once, and what a filter's mean is off, a convolution multiplies by the sum of its inputs.
"""

from __future__ import annotations

from math import prod
from typing import Any

from .movement import view
from .operator_table import operator
from .values import Unsupported, Value, axes, number
from .writer import Writer, stage

LONG = 1024  # elements of a mean from which on what is left of it is added


def _has_rest(x: Value, over: list[tuple[str, int]]) -> bool:
    return x.constant or prod(size for _, size in over) > LONG


def _moments(
    own: list[str], shape: tuple[int, ...], element: str, over: list[tuple[str, int]], rest: bool
) -> list[str]:
    """Stages of the mean M and the variance V of `element`, which has the first one subtracted."""
    less = f"{element} - M[{', '.join(own)}]"
    lines = [stage("M", own, shape, element, "mean", over)]
    if rest:
        lines.append(stage("D", own, shape, less, "mean", over))
    return [*lines, stage("V", own, shape, f"({less}) * ({less})", "mean", over)]


def _normalised(element: str, at: str, eps: float, rest: bool) -> str:
    """Less its mean, by its spread, which stand at `at` in the stages of _moments."""
    left = f" - D[{at}]" if rest else ""
    return f"({element} - M[{at}]{left}) / sqrt(V[{at}] + {number(eps)})"


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
    channel = c if groups == 1 else ("g" if per == 1 else f"g*{per}+{c}")
    channel = "0" if channels == 1 else channel
    if groups == 1 and per == 1:
        channel = "0"
    group = "0" if groups == 1 else (c if per == 1 else f"{c}/{per}")
    corner = ["0" for _ in rest]

    def less_first(own: str, group: str) -> str:
        first = group if per == 1 or group == "0" else f"{group}*{per}"
        begin = ", ".join([names[0], first, *corner])
        return f"X[{', '.join([names[0], own, *rest])}] - X[{begin}]"

    within = less_first(channel, "0" if groups == 1 else "g")
    has_rest = _has_rest(x, over)
    lines = _moments([names[0], "g"], (n, groups), within, over, has_rest)
    body = _normalised(less_first(c, group), f"{names[0]}, {group}", eps, has_rest)
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
    begin = f"X[{', '.join([*lead, *('0' for _ in last)])}]"
    if centred:
        has_rest = _has_rest(x, over)
        lines = _moments(lead, x.shape[:first], f"{load} - {begin}", over, has_rest)
        body = _normalised(f"{load} - {begin}", at, eps, has_rest)
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
