"""An expression as it stands in the text of a program."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .expr import Expr
from .tensor import IterVar, Operation

# How tightly each operation holds its operands; what holds less stands in parentheses.
_LEVELS = {
    "if": 0, "||": 1, "&&": 2, "!": 3,
    "<": 4, "<=": 4, ">": 4, ">=": 4, "==": 4, "!=": 4,
    "+": 5, "-": 5, "*": 6, "/": 6, "%": 6, "neg": 7,
}  # fmt: skip
_LEAF = 8


def text_of(expr: Any, axes: Mapping[IterVar, str], names: Mapping[Operation, str]) -> str:
    return _Writer(axes, names).write(expr, 0)


class _Writer:
    def __init__(self, axes: Mapping[IterVar, str], names: Mapping[Operation, str]) -> None:
        self.axes, self.names = axes, names

    def write(self, expr: Any, least: int) -> str:
        """In parentheses where it holds less than `least`."""
        if not isinstance(expr, Expr):
            return str(expr)
        if expr.op in ("cast", "wide"):
            return self.write(expr.args[0], least)
        if shifted := self.shifted(expr):
            return shifted
        text, level = self.spell(expr)
        return text if level >= least else f"({text})"

    def spell(self, expr: Expr) -> tuple[str, int]:
        """The text and how tightly it holds."""
        op, args = expr.op, expr.args
        level = _LEVELS.get(op, _LEAF)
        if op == "axis":
            return self.axis(expr)
        if op in ("number", "integer"):
            return _number(args[0]), _LEAF if args[0] >= 0 else _LEVELS["neg"]
        if op == "boolean":
            return ("true" if args[0] else "false"), _LEAF
        if op == "load":
            indices = ", ".join(self.write(index, 0) for index in args[1:])
            return f"{self.names[args[0].op]}[{indices}]", _LEAF
        if op in ("call", "real"):
            name, operands = (args[0], args[1:]) if op == "call" else ("real", args)
            return f"{name}({', '.join(self.write(one, 0) for one in operands)})", _LEAF
        if op == "if":
            one, two, three = (self.write(arg, 0) for arg in args)
            return f"if {one} then {two} else {three}", level
        if op in ("neg", "!"):
            return ("-" if op == "neg" else "!") + self.write(args[0], _LEAF), level
        right = level if op in ("+", "*", "&&", "||") and args[1].op == op else level + 1
        return f"{self.write(args[0], level)} {op} {self.write(args[1], right)}", level

    def axis(self, expr: Expr) -> tuple[str, int]:
        """An axis is its name; one that counts from elsewhere than the text does is shifted."""
        assert isinstance(expr, IterVar)
        name = self.axes[expr]
        if expr.extent is not None:
            return (f"{name} + {expr.low}", _LEVELS["+"]) if expr.low else (name, _LEAF)
        if (low := hidden_low(expr)) is not None:
            return f"{name} - {self.write(low, _LEVELS['+'] + 1)}", _LEVELS["-"]
        return name, _LEAF

    def shifted(self, expr: Expr) -> str:
        """`ptr[i] + k` of an axis k of (0, ptr[i+1] - ptr[i]) is what the text calls k."""
        if expr.op != "+":
            return ""
        for axis, other in (expr.args, expr.args[::-1]):
            low = hidden_low(axis) if isinstance(axis, IterVar) else None
            if low is not None and self.write(low, 0) == self.write(other, 0):
                return self.axes[axis]
        return ""


def hidden_low(axis: IterVar) -> Any:
    """a, where the axis is one of (0, b - a)."""
    plain = axis.extent is None and not isinstance(axis.low, Expr) and axis.low == 0
    return axis.high.args[1] if plain and axis.high.op == "-" else None


def _number(value: Any) -> str:
    if isinstance(value, int):
        return str(value)
    if value in (float("inf"), float("-inf")):
        return "inf" if value > 0 else "-inf"
    return repr(int(value)) if value == int(value) and abs(value) < 2**53 else repr(value)
