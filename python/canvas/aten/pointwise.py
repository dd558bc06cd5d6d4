"""Functions of each element: activations, arithmetic with broadcast, comparisons and choices."""

from __future__ import annotations

from functools import partial
from typing import Any

import torch
from torch import Tensor

from .operator_table import add, operator
from .values import Unsupported, Value, axes, number
from .writer import Writer, elements, spot, stage

# Operators of one tensor and no option.
UNARY = {
    "relu": "max({X}, 0)",
    "relu6": "min(max({X}, 0), 6)",
    "sigmoid": "1 / (1 + exp(-{X}))",
    "tanh": "tanh({X})",
    "silu": "{X} / (1 + exp(-{X}))",
    "hardsigmoid": "min(max({X} + 3, 0), 6) / 6",
    "hardswish": "{X} * min(max({X} + 3, 0), 6) / 6",
    "mish": "{X} * tanh(if {X} > 20 then {X} else log1p(exp({X})))",
    "selu": "1.0507009873554805 * (if {X} > 0 then {X} else 1.6732632423543772 * expm1({X}))",
    "log_sigmoid": "min({X}, 0) - log1p(exp(-abs({X})))",
    "neg": "-{X}",
    "abs": "abs({X})",
    "exp": "exp({X})",
    "expm1": "expm1({X})",
    "log": "log({X})",
    "log1p": "log1p({X})",
    "log2": "log({X}) / 0.6931471805599453",
    "log10": "log({X}) / 2.302585092994046",
    "sqrt": "sqrt({X})",
    "rsqrt": "1 / sqrt({X})",
    "reciprocal": "1 / {X}",
    "square": "{X} * {X}",
    "sin": "sin({X})",
    "cos": "cos({X})",
    "tan": "sin({X}) / cos({X})",
    "erf": "erf({X})",
    "floor": "floor({X})",
    "ceil": "-floor(-{X})",
    "trunc": "if {X} < 0 then -floor(-{X}) else floor({X})",
    "sign": "if {X} > 0 then 1 else if {X} < 0 then -1 else 0",
}
# Of two, either of which may be a number.
BINARY = {
    "mul.Tensor mul.Scalar": "{A} * {B}",
    "maximum max.other": "max({A}, {B})",
    "minimum min.other": "min({A}, {B})",
}
COMPARE = {"gt": ">", "ge": ">=", "lt": "<", "le": "<=", "eq": "==", "ne": "!="}
GELU = {
    "none": "0.5 * {X} * (1 + erf({X} * 0.7071067811865476))",
    "tanh": "0.5 * {X} * (1 + tanh(0.7978845608028654 * ({X} + 0.044715 * {X} * {X} * {X})))",
}


def _unary(w: Writer, x: Any, *, kind: str, body: str) -> Value:
    return elements(w, kind, body, X=x)


def _binary(w: Writer, a: Any, b: Any, *, kind: str, body: str) -> Value:
    return elements(w, kind, body, A=a, B=b)


def _compare(w: Writer, a: Any, b: Any, *, kind: str, sign: str) -> Value:
    return elements(w, kind, f"if {{A}} {sign} {{B}} then 1 else 0", True, A=a, B=b)


for _name, _body in UNARY.items():
    add("element by element", _name, partial(_unary, kind=_name, body=_body))
for _name, _body in BINARY.items():
    _kind = _name.partition(".")[0].partition(" ")[0]
    add("arithmetic", _name, partial(_binary, kind=_kind, body=_body))
for _name, _sign in COMPARE.items():
    _write = partial(_compare, kind=_name, sign=_sign)
    add("comparison", f"{_name}.Scalar {_name}.Tensor", _write)


# ---- with options -------------------------------------------------------------------------------


@operator("element by element", "gelu")
def gelu(w: Writer, x: Any, approximate: str) -> Value:
    return elements(w, "gelu", GELU[approximate], X=x)


@operator("element by element", "leaky_relu")
def leaky_relu(w: Writer, x: Any, slope: Any) -> Value:
    return elements(w, "leaky_relu", "if {X} > 0 then {X} else {X} * {S}", X=x, S=slope)


@operator("element by element", "elu")
def elu(w: Writer, x: Any, alpha: Any, scale: Any, input_scale: Any) -> Value:
    body = "if {X} < 0 then {A} * expm1({X} * {S}) else {X} * {C}"
    return elements(w, "elu", body, X=x, A=alpha * scale, C=scale, S=input_scale)


@operator("element by element", "celu")
def celu(w: Writer, x: Any, alpha: Any) -> Value:
    return elements(w, "celu", "if {X} > 0 then {X} else {A} * expm1({X} / {A})", X=x, A=alpha)


@operator("element by element", "prelu")
def prelu(w: Writer, x: Any, slope: Any) -> Value:
    if isinstance(slope, Value) and slope.shape in ((), (1,)):
        return elements(w, "prelu", "if {X} > 0 then {X} else {X} * {S}", X=x, S=slope)
    x, slope = w.value(x), w.value(slope)
    names = axes(x.rank)
    at = f"X[{', '.join(names)}]"
    factor = f"S[{'0' if slope.shape == (1,) else names[1]}]"
    line = stage("Y", names, x.shape, f"if {at} > 0 then {at} else {at} * {factor}")
    return w.call("prelu", [("X", x), ("S", slope)], [line], x.shape)


@operator("element by element", "softplus")
def softplus(w: Writer, x: Any, beta: Any, threshold: Any) -> Value:
    body = "if {X} * {B} > {T} then {X} else log1p(exp({X} * {B})) / {B}"
    return elements(w, "softplus", body, X=x, B=beta, T=threshold)


@operator("element by element", "hardtanh")
def hardtanh(w: Writer, x: Any, least: Any, most: Any) -> Value:
    return elements(w, "hardtanh", "min(max({X}, {A}), {B})", X=x, A=least, B=most)


@operator("element by element", "threshold")
def threshold(w: Writer, x: Any, limit: Any, other: Any) -> Value:
    return elements(w, "threshold", "if {X} <= {A} then {B} else {X}", X=x, A=limit, B=other)


@operator("element by element", "hardshrink")
def hardshrink(w: Writer, x: Any, limit: Any) -> Value:
    return elements(w, "hardshrink", "if abs({X}) <= {A} then 0 else {X}", X=x, A=limit)


@operator("element by element", "glu")
def glu(w: Writer, x: Any, dim: int) -> Value:
    x = w.value(x)
    dim, names = dim % x.rank, axes(x.rank)
    half = x.shape[dim] // 2
    other = [f"{name}+{half}" if at == dim else name for at, name in enumerate(names)]
    shape = tuple(half if at == dim else size for at, size in enumerate(x.shape))
    body = f"X[{', '.join(names)}] / (1 + exp(-X[{', '.join(other)}]))"
    return w.call("glu", [("X", x)], [stage("Y", names, shape, body)], shape)


@operator("arithmetic", "clamp clamp.Tensor")
def clamp(w: Writer, x: Any, least: Any, most: Any) -> Value:
    body = "{X}" if least is None else "max({X}, {A})"
    body = body if most is None else f"min({body}, {{B}})"
    given = {"A": least, "B": most}
    return elements(w, "clamp", body, X=x, **{k: v for k, v in given.items() if v is not None})


@operator("arithmetic", "clamp_min")
def clamp_min(w: Writer, x: Any, least: Any) -> Value:
    return clamp(w, x, least, None)


@operator("arithmetic", "clamp_max")
def clamp_max(w: Writer, x: Any, most: Any) -> Value:
    return clamp(w, x, None, most)


def _times(alpha: Any) -> str:
    return "{B}" if alpha == 1 else f"{number(alpha)} * {{B}}"


@operator("arithmetic", "add.Tensor add.Scalar")
def plus(w: Writer, a: Any, b: Any, alpha: Any = 1) -> Value:
    if _is_bool(a) and _is_bool(b) and alpha:
        return elements(w, "or", "max({A}, {B})", True, A=a, B=b)
    return elements(w, "add", f"{{A}} + {_times(alpha)}", A=a, B=b)


@operator("arithmetic", "sub.Tensor sub.Scalar")
def minus(w: Writer, a: Any, b: Any, alpha: Any = 1) -> Value:
    return elements(w, "sub", f"{{A}} - {_times(alpha)}", A=a, B=b)


@operator("arithmetic", "rsub.Scalar rsub.Tensor")
def reversed_minus(w: Writer, a: Any, b: Any, alpha: Any = 1) -> Value:
    body = "{B} - {A}" if alpha == 1 else f"{{B}} - {number(alpha)} * {{A}}"
    return elements(w, "rsub", body, A=a, B=b)


@operator("arithmetic", "div.Tensor div.Scalar")
def divided(w: Writer, a: Any, b: Any) -> Value:
    return elements(w, "div", "{A} / {B}", A=a, B=b)


@operator("arithmetic", "addcmul")
def addcmul(w: Writer, x: Any, a: Any, b: Any, value: Any) -> Value:
    return elements(w, "addcmul", "{X} + {V} * {A} * {B}", X=x, A=a, B=b, V=value)


@operator("arithmetic", "addcdiv")
def addcdiv(w: Writer, x: Any, a: Any, b: Any, value: Any) -> Value:
    return elements(w, "addcdiv", "{X} + {V} * {A} / {B}", X=x, A=a, B=b, V=value)


@operator("arithmetic", "lerp.Scalar lerp.Tensor")
def lerp(w: Writer, a: Any, b: Any, weight: Any) -> Value:
    """From the nearer end, as PyTorch does: with a weight of 1 it is b, however large a is."""
    first, last = "{A} + {V} * ({B} - {A})", "{B} - (1 - {V}) * ({B} - {A})"
    if isinstance(weight, (int, float)):
        return elements(w, "lerp", first if abs(weight) < 0.5 else last, A=a, B=b, V=weight)
    either = f"if abs({{V}}) < 0.5 then {first} else {last}"
    return elements(w, "lerp", either, A=a, B=b, V=weight)


POWERS = {0.5: "sqrt({A})", 1: "{A}", 2: "{A} * {A}", 3: "{A} * {A} * {A}", -1: "1 / {A}",
          -0.5: "1 / sqrt({A})", -2: "1 / ({A} * {A})"}  # fmt: skip


@operator("arithmetic", "pow.Tensor_Scalar pow.Tensor_Tensor pow.Scalar")
def power(w: Writer, a: Any, b: Any) -> Value:
    if isinstance(b, (int, float)) and b in POWERS:
        return elements(w, "pow", POWERS[b], A=a)
    return elements(w, "pow", "pow({A}, {B})", A=a, B=b)


# ---- bools, which are 0 and 1 -------------------------------------------------------------------


@operator("comparison", "where.self where.ScalarOther where.ScalarSelf where.Scalar")
def where(w: Writer, condition: Any, a: Any, b: Any) -> Value:
    boolean = all(_is_bool(x) for x in (a, b))
    return elements(w, "where", "if {C} != 0 then {A} else {B}", boolean, C=condition, A=a, B=b)


def _is_bool(x: Any) -> bool:
    if isinstance(x, Value):
        return x.boolean
    return x.dtype == torch.bool if isinstance(x, Tensor) else isinstance(x, bool)


@operator("comparison", "masked_fill.Scalar masked_fill.Tensor")
def masked_fill(w: Writer, x: Any, mask: Any, value: Any) -> Value:
    body = "if {M} != 0 then {V} else {X}"
    if not _is_bool(x):
        return elements(w, "masked_fill", body, X=x, M=mask, V=value)
    value = bool(value) if isinstance(value, (int, float)) else converted(w, value, torch.bool)
    return elements(w, "masked_fill", body, True, X=x, M=mask, V=value)


@operator("comparison", "logical_not bitwise_not")
def logical_not(w: Writer, x: Any) -> Value:
    return elements(w, "logical_not", "if {X} == 0 then 1 else 0", True, X=x)


@operator("comparison", "logical_and bitwise_and.Tensor")
def logical_and(w: Writer, a: Any, b: Any) -> Value:
    body = "if {A} != 0 && {B} != 0 then 1 else 0"
    return elements(w, "logical_and", body, True, A=a, B=b)


@operator("comparison", "logical_or bitwise_or.Tensor")
def logical_or(w: Writer, a: Any, b: Any) -> Value:
    body = "if {A} != 0 || {B} != 0 then 1 else 0"
    return elements(w, "logical_or", body, True, A=a, B=b)


# ---- the same -----------------------------------------------------------------------------------


@operator("the same", "clone contiguous detach alias lift_fresh_copy lift_fresh")
def same(w: Writer, x: Any, *_options: Any) -> Any:
    return x


@operator("the same", "dropout feature_dropout alpha_dropout")
def dropout(w: Writer, x: Any, _p: float, train: bool | None) -> Any:
    if train:
        raise Unsupported("it drops at random, call model.eval() first")
    return x


@operator("the same", "native_dropout")
def native_dropout(w: Writer, x: Any, p: float, train: bool | None) -> list[Any]:
    return [dropout(w, x, p, train), None]


@operator("the same", "_to_copy to.dtype to.dtype_layout to.other type_as")
def converted(w: Writer, x: Any, kind: Any = None, *_options: Any) -> Any:
    """`kind`: the type, or a tensor that has it; as bools, numbers are 1 where they are not 0."""
    x = w.value(x)
    if kind == torch.bool or (isinstance(kind, (Value, Tensor)) and _is_bool(kind)):
        return x if x.boolean else elements(w, "bool", "if {X} != 0 then 1 else 0", True, X=x)
    return Value(x.name, x.shape, x.constant, x.given, False, x.dtype)


@operator("the same", "expand expand_as")
def expand(w: Writer, x: Any, shape: Any, implicit: bool = False) -> Any:
    x = w.value(x)
    shape = shape.shape if isinstance(shape, (Value, Tensor)) else shape
    lead = len(shape) - x.rank
    full = tuple(x.shape[at - lead] if size == -1 else size for at, size in enumerate(shape))
    if full == x.shape:
        return x
    names = axes(len(full))
    body = f"X[{', '.join(spot(names, x.shape, full))}]"
    made = w.call("expand", [("X", x)], [stage("Y", names, full, body)], full)
    return Value(made.name, made.shape, made.constant, boolean=x.boolean)
