"""Expressions as Python objects: what the operators of Python make of axes, elements and numbers.

An expression is of one of three sorts, as in the text of programs (docs/program.md): a value, an
index, or a condition.  Numbers of Python follow what they stand beside, and an index beside a
value becomes ``real(index)``.  Nothing is simplified here: the core prints the canonical text.
"""

from __future__ import annotations

import math
from typing import Any

from ..arguments import shown
from .place import mistake

VALUE, INDEX, CONDITION = "value", "index", "condition"
DEPTH, SIZE = 180, 2**18  # what a program's text may hold (docs/program.md)

# What dtypes are called in NumPy's and TVM's way, and in the text of programs; narrow ones first.
VALUES = {"bfloat16": "bf16", "float32": "f32", "float64": "f64"}
INTEGERS = ("int", "int32", "int64")
NARROW_FIRST = tuple(VALUES)


class Expr:
    """One operation and its operands.  `dtype` of a value is what its stage would be stored as,
    "" of a number, which follows the others.
    """

    __slots__ = ("args", "at", "depth", "dtype", "op", "size", "sort")

    def __init__(self, op: str, args: tuple[Any, ...], sort: str, dtype: str = "") -> None:
        self.op, self.args, self.sort, self.dtype = op, args, sort, dtype
        below = [arg for arg in args if isinstance(arg, Expr)]
        self.depth: int = 1 + max((arg.depth for arg in below), default=0)
        self.size: int = 1 + sum(arg.size for arg in below)
        if self.depth > DEPTH or self.size > SIZE:
            raise mistake(
                f"the expression nests deeper than {DEPTH} levels or has more than {SIZE} "
                "operations, give a part of it a compute of its own"
            )

    def astype(self, dtype: str) -> Expr:
        return cast(dtype, self)

    def __add__(self, other: Any) -> Expr:
        return arithmetic("+", self, other)

    def __radd__(self, other: Any) -> Expr:
        return arithmetic("+", other, self)

    def __sub__(self, other: Any) -> Expr:
        return arithmetic("-", self, other)

    def __rsub__(self, other: Any) -> Expr:
        return arithmetic("-", other, self)

    def __mul__(self, other: Any) -> Expr:
        return arithmetic("*", self, other)

    def __rmul__(self, other: Any) -> Expr:
        return arithmetic("*", other, self)

    def __truediv__(self, other: Any) -> Expr:
        return divide(self, other)

    def __rtruediv__(self, other: Any) -> Expr:
        return divide(other, self)

    def __floordiv__(self, other: Any) -> Expr:
        return floor_divide(self, other)

    def __rfloordiv__(self, other: Any) -> Expr:
        return floor_divide(other, self)

    def __mod__(self, other: Any) -> Expr:
        return modulo(self, other)

    def __rmod__(self, other: Any) -> Expr:
        return modulo(other, self)

    def __pow__(self, other: Any) -> Expr:
        return call("pow", self, other)

    def __rpow__(self, other: Any) -> Expr:
        return call("pow", other, self)

    def __neg__(self) -> Expr:
        return negate(self)

    def __pos__(self) -> Expr:
        return self

    def __abs__(self) -> Expr:
        return absolute(self)

    def __lt__(self, other: Any) -> Expr:
        return compare("<", self, other)

    def __le__(self, other: Any) -> Expr:
        return compare("<=", self, other)

    def __gt__(self, other: Any) -> Expr:
        return compare(">", self, other)

    def __ge__(self, other: Any) -> Expr:
        return compare(">=", self, other)

    def __eq__(self, other: Any) -> Expr:  # type: ignore[override]
        return compare("==", self, other)

    def __ne__(self, other: Any) -> Expr:  # type: ignore[override]
        return compare("!=", self, other)

    def __hash__(self) -> int:
        return id(self) >> 4

    def __and__(self, other: Any) -> Expr:
        return logic("&&", self, other)

    def __rand__(self, other: Any) -> Expr:
        return logic("&&", other, self)

    def __or__(self, other: Any) -> Expr:
        return logic("||", self, other)

    def __ror__(self, other: Any) -> Expr:
        return logic("||", other, self)

    def __invert__(self) -> Expr:
        return Expr("!", (as_condition(self),), CONDITION)

    def __bool__(self) -> bool:
        """Of == and != whether both sides are the same object, so that lists and sets of them
        work; all others are known when the program runs, and not here.
        """
        if self.op in ("==", "!=") and isinstance(self.args[0], Expr):
            return (self.args[0] is self.args[1]) == (self.op == "==")
        raise mistake(
            "an expression is neither true nor false while the program is written: use te.all, "
            "te.any and te.if_then_else"
        )

    def __iter__(self) -> Any:
        raise mistake("an expression is one number, there is nothing to go through")

    def __repr__(self) -> str:
        return f"a {self.sort}" if self.op != "axis" else str(self.args[0])


# ---- sorts --------------------------------------------------------------------------------------


def is_number(value: Any) -> bool:
    """A number of Python or NumPy."""
    return not isinstance(value, Expr) and (
        isinstance(value, (int, float)) or (type(value).__module__ == "numpy" and _scalar(value))
    )


def _scalar(value: Any) -> bool:
    return getattr(value, "shape", None) == () and value.dtype.kind in "biuf"


def sort_of(value: Any) -> str:
    """The sort of an operand; "" of a whole number, which follows the other one."""
    if isinstance(value, Expr):
        if value.op == "reduce":
            raise mistake(
                "a reduction is all that a compute says: give it one of its own and load that"
            )
        return value.sort
    if is_number(value):
        kind = getattr(getattr(value, "dtype", None), "kind", "")
        if kind == "b" or isinstance(value, bool):
            return CONDITION
        return "" if kind in ("i", "u") or isinstance(value, int) else VALUE
    raise mistake(
        f"an operand is an expression or a number, not {shown(value)}"
        + ("; load an element, as A[i, j]" if type(value).__name__ == "Tensor" else "")
    )


def as_value(operand: Any) -> Expr:
    sort = sort_of(operand)
    if sort == CONDITION:
        raise mistake("a condition is no value: use te.if_then_else")
    if not isinstance(operand, Expr):
        return number(operand)
    if operand.op == "cast":
        raise mistake(
            "a value is rounded where a stage stores it, and nowhere else: give what is cast to "
            f"'{operand.dtype}' a compute of its own"
        )
    return Expr("real", (operand,), VALUE) if sort == INDEX else operand


def as_index(operand: Any, what: str = "an index") -> Expr:
    sort = sort_of(operand)
    if sort in (VALUE, CONDITION):
        raise mistake(f"{what} is made of axes, whole numbers and int32 tensors, not of {sort}s")
    if isinstance(operand, Expr):
        return operand
    if abs(int(operand)) > 2**62:
        raise mistake(f"{int(operand)} is out of the range of indices")
    return Expr("integer", (int(operand),), INDEX, "int32")


def as_condition(operand: Any) -> Expr:
    if sort_of(operand) != CONDITION:
        raise mistake("a condition is a comparison, or te.all and te.any of some, not a number")
    if isinstance(operand, Expr):
        return operand
    return Expr("boolean", (bool(operand),), CONDITION, "bool")


def number(value: Any, dtype: str = "") -> Expr:
    try:
        known = float(value)
    except OverflowError:
        raise mistake("a whole number of more than 308 digits is no number of programs") from None
    if math.isnan(known):
        raise mistake("nan is no number of programs")
    return Expr("number", (known,), VALUE, dtype)


def both(left: Any, right: Any) -> tuple[Expr, Expr]:
    """Two operands of one sort: indices if both are, else values."""
    sorts = {sort_of(left), sort_of(right)}
    turn = as_value if VALUE in sorts or sorts == {""} or CONDITION in sorts else as_index
    return turn(left), turn(right)


def wider(*operands: Expr) -> str:
    """The dtype of what is made of values: the widest of theirs."""
    known = [arg.dtype for arg in operands if arg.dtype in VALUES]
    return max(known, key=NARROW_FIRST.index, default="")


def checked_dtype(dtype: Any, what: str) -> str:
    """A dtype that values are stored as, or "int32"."""
    word = {"float": "float32", "double": "float64"}.get(str(dtype), str(dtype))
    if word in VALUES:
        return word
    if word in INTEGERS:
        return "int32"
    raise mistake(f"{what} has dtype {shown(dtype)}: there are {', '.join(VALUES)} and int32")


# ---- operations ---------------------------------------------------------------------------------


def arithmetic(op: str, left: Any, right: Any) -> Expr:
    a, b = both(left, right)
    if a.sort == INDEX and (same := _same_index(op, a, b)) is not None:
        return same
    return Expr(op, (a, b), a.sort, wider(a, b))


def _same_index(op: str, a: Expr, b: Expr) -> Expr | None:
    """Of indices: what nothing is done to, and numbers alone."""
    x, y = (one.args[0] if one.op == "integer" else None for one in (a, b))
    if x is not None and y is not None:
        return as_index({"+": x + y, "-": x - y, "*": x * y}[op])
    if y == (1 if op == "*" else 0):
        return a
    return b if op != "-" and x == (1 if op == "*" else 0) else None


def divide(left: Any, right: Any) -> Expr:
    a, b = both(left, right)
    if a.sort == INDEX:
        raise mistake("'/' of two indices: write '//', or te.real(i) / n for a value")
    return Expr("/", (a, b), VALUE, wider(a, b))


def floor_divide(left: Any, right: Any) -> Expr:
    a, b = both(left, right)
    if a.sort == VALUE:
        return call("floor", Expr("/", (a, b), VALUE, wider(a, b)))
    _check_divisor(b, "//")
    return Expr("/", (a, b), INDEX)


def modulo(left: Any, right: Any) -> Expr:
    a, b = both(left, right)
    if a.sort == VALUE:
        raise mistake("'%' is of indices: programs have no remainder of values")
    _check_divisor(b, "%")
    return Expr("%", (a, b), INDEX)


def _check_divisor(divisor: Expr, op: str) -> None:
    if divisor.op != "integer" or divisor.args[0] <= 0:
        raise mistake(f"'{op}' of indices is by a whole number above 0")


def negate(operand: Any) -> Expr:
    a = as_index(operand) if sort_of(operand) == INDEX else as_value(operand)
    return Expr("neg", (a,), a.sort, a.dtype)


def absolute(operand: Any) -> Expr:
    if sort_of(operand) == INDEX:
        return least_or_most("max", operand, negate(operand))
    return call("abs", operand)


def compare(op: str, left: Any, right: Any) -> Expr:
    a, b = both(left, right)
    return Expr(op, (a, b), CONDITION, "bool")


def logic(op: str, left: Any, right: Any) -> Expr:
    return Expr(op, (as_condition(left), as_condition(right)), CONDITION, "bool")


def call(name: str, *operands: Any) -> Expr:
    """A function of values."""
    values = tuple(as_value(operand) for operand in operands)
    return Expr("call", (name, *values), VALUE, wider(*values))


def least_or_most(name: str, left: Any, right: Any) -> Expr:
    a, b = both(left, right)
    return Expr("call", (name, a, b), a.sort, wider(a, b))


def choose(condition: Any, then: Any, otherwise: Any) -> Expr:
    a, b = both(then, otherwise)
    return Expr("if", (as_condition(condition), a, b), a.sort, wider(a, b))


def cast(dtype: str, operand: Any) -> Expr:
    """As another dtype: an index as a value, a value as what its stage is stored as."""
    wanted = checked_dtype(dtype, "a cast")
    if wanted == "int32":
        if sort_of(operand) == VALUE:
            raise mistake("a value becomes no index: programs have no cast to int32")
        return as_index(operand)
    value = as_value(operand)
    if value.dtype and NARROW_FIRST.index(wanted) < NARROW_FIRST.index(value.dtype):
        return Expr("cast", (value,), VALUE, wanted)
    return Expr("wide", (value,), VALUE, wanted)
