"""Functions on expressions: reductions, conditions, scalar functions."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from ..arguments import shown
from .expr import (
    CONDITION,
    INDEX,
    VALUE,
    Expr,
    absolute,
    as_condition,
    as_value,
    call,
    checked_dtype,
    choose,
    floor_divide,
    is_number,
    least_or_most,
    logic,
    modulo,
    number,
    sort_of,
)
from .place import mistake
from .tensor import IterVar

# What a reduction over no points gives: what stands where a condition leaves a point out.
_NEUTRAL = {"sum": 0.0, "prod": 1.0, "max": -math.inf, "min": math.inf}


# ---- reductions ---------------------------------------------------------------------------------


def sum(expr: Any, axis: Any, where: Any = None, init: Any = None) -> Expr:
    """The sum over one axis of reduction or several; `where`: of the points that it holds for."""
    return reduction("sum", expr, axis, where, init)


def prod(expr: Any, axis: Any, where: Any = None, init: Any = None) -> Expr:
    return reduction("prod", expr, axis, where, init)


def mean(expr: Any, axis: Any, where: Any = None) -> Expr:
    """The mean over all points: of some, a sum `where` they are divided by how many."""
    if where is not None:
        raise mistake("'mean' takes no 'where': divide a sum with it by how many there are")
    return reduction("mean", expr, axis, None, None)


def max(expr: Any, axis: Any, where: Any = None, init: Any = None) -> Expr:
    """The largest over axes of reduction; or, of two expressions, the larger."""
    if _is_axes(axis):
        return reduction("max", expr, axis, where, init)
    return least_or_most("max", expr, axis)


def min(expr: Any, axis: Any, where: Any = None, init: Any = None) -> Expr:
    """The least over axes of reduction; or, of two expressions, the lesser."""
    if _is_axes(axis):
        return reduction("min", expr, axis, where, init)
    return least_or_most("min", expr, axis)


def _is_axes(axis: Any) -> bool:
    return isinstance(axis, (list, tuple)) or (isinstance(axis, IterVar) and axis.reduces)


def reduction(reducer: str, expr: Any, axis: Any, where: Any, init: Any) -> Expr:
    axes = list(axis) if isinstance(axis, (list, tuple)) else [axis]
    for one in axes:
        if not (isinstance(one, IterVar) and one.reduces):
            raise mistake(f"'{reducer}' runs over axes that te.reduce_axis made, not {shown(one)}")
    if not axes or len({id(one) for one in axes}) < len(axes):
        raise mistake(f"'{reducer}' runs over at least one axis, each once")
    if init is not None:
        raise mistake(f"'{reducer}' starts from nothing: add what it shall start from in a stage")
    value = as_value(expr)
    if where is not None:
        value = choose(where, value, _NEUTRAL[reducer])
    return Expr("reduce", (reducer, tuple(axes), value), VALUE, value.dtype)


# ---- conditions ---------------------------------------------------------------------------------


def if_then_else(cond: Any, t: Any, f: Any) -> Expr:
    """One of two, and only that one is evaluated: so padding reads nothing outside."""
    return choose(cond, t, f)


def select(cond: Any, t: Any, f: Any) -> Expr:
    return choose(cond, t, f)


Select = select


def all(*args: Any) -> Expr:
    return _joined("&&", "te.all", args)


def any(*args: Any) -> Expr:
    return _joined("||", "te.any", args)


def _joined(op: str, what: str, args: Sequence[Any]) -> Expr:
    if not args:
        raise mistake(f"{what} takes at least one condition")
    whole = as_condition(args[0])
    for one in args[1:]:
        whole = logic(op, whole, one)
    return whole


# ---- numbers ------------------------------------------------------------------------------------


def const(value: Any, dtype: Any = None) -> Expr:
    """A number of a dtype, where TVM wants one; plain numbers of Python do as well."""
    if not is_number(value):
        raise mistake(f"a constant is a number, not {shown(value)}")
    whole = sort_of(value) == ""
    wanted = checked_dtype(dtype or ("int32" if whole else "float32"), "a constant")
    if wanted == "int32":
        if not whole:
            raise mistake(f"a constant of int32 is a whole number, not {shown(value)}")
        return Expr("integer", (int(value),), INDEX, "int32")
    return number(value, wanted)


def real(index: Any) -> Expr:
    """An index as a value."""
    if isinstance(index, Expr) and index.sort == CONDITION:
        raise mistake("a condition is no value: use te.if_then_else")
    return as_value(index)


_LARGEST = {
    "bfloat16": 3.3895313892515355e38,
    "float32": 3.4028234663852886e38,
    "float64": 1.7976931348623157e308,
}


def max_value(dtype: Any) -> Expr:
    """The largest finite number of a dtype."""
    wanted = checked_dtype(dtype, "the largest number")
    return const(2**31 - 1, wanted) if wanted == "int32" else number(_LARGEST[wanted], wanted)


def min_value(dtype: Any) -> Expr:
    wanted = checked_dtype(dtype, "the least number")
    return const(-(2**31), wanted) if wanted == "int32" else number(-_LARGEST[wanted], wanted)


def infinity(dtype: Any = "float32") -> Expr:
    return number(math.inf, checked_dtype(dtype, "infinity"))


# ---- functions of one value or two --------------------------------------------------------------


def exp(x: Any) -> Expr:
    return call("exp", x)


def log(x: Any) -> Expr:
    return call("log", x)


def sin(x: Any) -> Expr:
    return call("sin", x)


def cos(x: Any) -> Expr:
    return call("cos", x)


def tan(x: Any) -> Expr:
    return call("sin", x) / call("cos", x)


def tanh(x: Any) -> Expr:
    return call("tanh", x)


def sqrt(x: Any) -> Expr:
    return call("sqrt", x)


def rsqrt(x: Any) -> Expr:
    return 1 / call("sqrt", x)


def sigmoid(x: Any) -> Expr:
    return 1 / (1 + call("exp", -as_value(x)))


def erf(x: Any) -> Expr:
    return call("erf", x)


def floor(x: Any) -> Expr:
    return call("floor", x)


def ceil(x: Any) -> Expr:
    return -call("floor", -as_value(x))


def abs(x: Any) -> Expr:
    return absolute(x)


fabs = abs


def power(x: Any, y: Any) -> Expr:
    return call("pow", x, y)


pow = power


def div(a: Any, b: Any) -> Expr:
    """Of indices rounded down, of values as it is."""
    kinds = {sort_of(a), sort_of(b)}
    return as_value(a) / b if VALUE in kinds or kinds == {""} else floor_divide(a, b)


def floordiv(a: Any, b: Any) -> Expr:
    return floor_divide(a, b)


def floormod(a: Any, b: Any) -> Expr:
    return modulo(a, b)


indexdiv, indexmod = floordiv, floormod
