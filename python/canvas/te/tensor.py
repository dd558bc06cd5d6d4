"""Tensors: what is given (placeholder) and what is computed of it (compute)."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from ..arguments import shown
from ..errors import CanvasError
from .expr import INDEX, VALUE, Expr, as_index, as_value, checked_dtype, is_number, sort_of
from .place import mistake, place, raised


class Size(int):
    """A size of a tensor: a whole number, with the `value` that TVM's constants have."""

    @property
    def value(self) -> int:
        return int(self)


class Range:
    """Where an axis begins and how many steps it has (None: that is data)."""

    def __init__(self, low: Any, extent: Any) -> None:
        self.min, self.extent = low, extent


class IterVar(Expr):
    """An axis: of a stage (an argument of its lambda), or one that is reduced over.

    `extent`: its steps; None where it runs over data, from `low` to `high`.  `low` is what it
    counts from.
    """

    __slots__ = ("extent", "high", "low", "reduces")

    def __init__(self, name: str, low: Any, high: Any, reduces: bool) -> None:
        super().__init__("axis", (name,), INDEX, "int32")
        self.reduces, self.low, self.high = reduces, low, high
        known = not isinstance(low, Expr) and not isinstance(high, Expr)
        self.extent: int | None = high - low if known else None

    @property
    def name(self) -> str:
        return str(self.args[0])

    @property
    def var(self) -> IterVar:
        return self

    @property
    def dom(self) -> Range:
        return Range(self.low, self.extent)


class Operation:
    """What makes a tensor: of a placeholder nothing, of a compute its axes and its body."""

    def __init__(self, name: str, at: str, tag: str = "") -> None:
        self.name, self.at, self.tag = name, at, tag
        self.axis: list[IterVar] = []
        self.reduce_axis: list[IterVar] = []
        self.input_tensors: list[Tensor] = []
        self.body: list[Expr] = []
        self.attrs: dict[str, Any] = {}
        self.num_outputs = 1
        self._tensor: Tensor | None = None

    def output(self, index: int = 0) -> Tensor:
        if index != 0 or self._tensor is None:
            raise mistake(f"'{self.name}' has one output, number 0")
        return self._tensor

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name})"


class PlaceholderOp(Operation):
    """An input; of whole numbers with the `bounds` that they lie in, where they are known."""

    bounds: tuple[int, int] | None = None
    rising = False
    constant = False


class ComputeOp(Operation):
    """A stage."""


class TextOp(ComputeOp):
    """An output of a program that was given as text."""

    text = ""
    inputs: Sequence[Tensor] = ()


class Tensor:
    """An array that a program is given or computes; ``A[i, k]`` is an element of it."""

    def __init__(self, shape: Sequence[int], dtype: str, op: Operation) -> None:
        self.shape = tuple(Size(size) for size in shape)
        self.dtype, self.op = dtype, op
        op._tensor = self

    @property
    def name(self) -> str:
        return self.op.name

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def value_index(self) -> int:
        return 0

    def __getitem__(self, indices: Any) -> Expr:
        return self(*indices) if isinstance(indices, tuple) else self(indices)

    def __call__(self, *indices: Any) -> Expr:
        if len(indices) != len(self.shape):
            axes = f"{len(self.shape)} ax" + ("is" if len(self.shape) == 1 else "es")
            raise mistake(f"'{self.name}' has {axes}, and {len(indices)} indices are given")
        found = tuple(as_index(one, f"an index of '{self.name}'") for one in indices)
        for number, (one, size) in enumerate(zip(found, self.shape)):
            if one.op == "integer" and not 0 <= one.args[0] < size:
                raise mistake(
                    f"index {one.args[0]} is out of range: axis {number} of '{self.name}' has "
                    f"size {size}"
                )
        sort = INDEX if self.dtype == "int32" else VALUE
        return Expr("load", (self, *found), sort, self.dtype)

    def __iter__(self) -> Iterator[Expr]:
        raise mistake(f"'{self.name}' is symbolic: load its elements by indices")

    def __bool__(self) -> bool:
        return True

    def __repr__(self) -> str:
        return f"Tensor({self.name}, shape={list(self.shape)}, dtype={self.dtype})"


# ---- making them --------------------------------------------------------------------------------


def placeholder(
    shape: Any,
    dtype: Any = "float32",
    name: str = "placeholder",
    *,
    bounds: tuple[int, int] | None = None,
    rising: bool = False,
    constant: bool = False,
) -> Tensor:
    """An input.  Of int32: `bounds` (low, high) of its elements, `high` excluded (None: what the
    loads that use them as indices allow); `rising`: they never fall along the last axis, from the
    first to the last of the bounds.  `constant`: it is the same in many calls, as weights are.
    """
    op = PlaceholderOp(checked_name(name), place())
    kind = checked_dtype(dtype, f"placeholder '{name}'")
    if bounds is not None:
        pair = isinstance(bounds, (tuple, list)) and len(bounds) == 2
        if not pair or kind != "int32" or not all(map(_is_whole, bounds)):
            raise mistake(f"bounds of '{name}' are two whole numbers, of an int32 placeholder")
        op.bounds = (int(bounds[0]), int(bounds[1]))
    op.rising, op.constant = bool(rising), bool(constant)
    return Tensor(checked_shape(shape, f"placeholder '{name}'"), kind, op)


def reduce_axis(dom: Any, name: str = "rv", thread_tag: Any = None) -> IterVar:
    """An axis to reduce over, from dom[0] up to and without dom[1]: whole numbers, or indices
    such as ``ptr[i]`` where it is made inside of compute's function.
    """
    if thread_tag:
        raise mistake("there are no thread tags: code is for CPUs")
    if not isinstance(dom, (tuple, list)) or len(dom) != 2:
        raise mistake(f"an axis runs over (begin, end), not {shown(dom)}")
    ends = [one if isinstance(one, Expr) else _whole(one, "a bound of an axis") for one in dom]
    low, high = (as_index(e, "a bound of an axis") if isinstance(e, Expr) else e for e in ends)
    if not isinstance(low, Expr) and not isinstance(high, Expr) and high <= low:
        raise mistake(f"axis '{name}' has no points from {low} to {high}")
    return IterVar(checked_name(name), low, high, True)


def compute(
    shape: Any,
    fcompute: Callable[..., Any],
    name: str = "compute",
    tag: str = "",
    attrs: Any = None,
    varargs_names: Sequence[str] | None = None,
    *,
    dtype: Any = None,
) -> Any:
    """A stage: `fcompute` of its axes is the expression of one element.  Its axes are called as
    the arguments of the function are.  A tuple of expressions makes as many stages.
    """
    at = place()
    name = checked_name(name)
    sizes = checked_shape(shape, f"compute '{name}'")
    axes = [
        IterVar(word, 0, size, False)
        for word, size in zip(_argument_names(fcompute, len(sizes), name, varargs_names), sizes)
    ]
    try:
        body = fcompute(*axes)
    except CanvasError:
        raise
    except Exception as error:
        raise raised(f"the function of compute '{name}'", error) from error
    if isinstance(body, (tuple, list)):
        if not body:
            raise mistake(f"compute '{name}' says nothing", at)
        words = [f"{name}_v{number}" for number in range(len(body))]
        return [_stage(sizes, axes, one, word, tag, dtype, at) for one, word in zip(body, words)]
    made = _stage(sizes, axes, body, name, tag, dtype, at)
    made.op.attrs = dict(attrs or {})
    return made


def _stage(
    sizes: Sequence[int], axes: list[IterVar], body: Any, name: str, tag: str, dtype: Any, at: str
) -> Tensor:
    op = ComputeOp(name, at, str(tag))
    op.axis = axes
    expr = _body(body, name, at)
    kind = checked_dtype(dtype, f"compute '{name}'") if dtype else expr.dtype or "float32"
    if kind == "int32":
        raise mistake(f"compute '{name}' is of int32: stages hold values, see te.real", at)
    if expr.op == "reduce":
        op.reduce_axis = list(expr.args[1])
    op.body = [expr]
    _look_through(op, expr, at)
    return Tensor(sizes, kind, op)


def _body(body: Any, name: str, at: str) -> Expr:
    """What is computed, as one value or a reduction."""
    if isinstance(body, Expr) and body.op == "reduce":
        return body
    if not isinstance(body, Expr) and not is_number(body):
        raise mistake(f"compute '{name}' makes {shown(body)}, not an expression", at)
    if isinstance(body, Expr) and body.op == "cast":
        return body
    if isinstance(body, Expr) and sort_of(body) == INDEX:
        raise mistake(f"compute '{name}' makes an index: te.real of it is a value", at)
    try:
        return as_value(body)
    except CanvasError as error:
        raise mistake(str(error).partition(": ")[2], at) from None


def _look_through(op: ComputeOp, expr: Expr, at: str) -> None:
    """Every axis is one of the stage's; which tensors are loaded, the first one first."""
    legal = {id(axis) for axis in (*op.axis, *op.reduce_axis)}
    for one in walk(expr):
        if isinstance(one, IterVar) and id(one) not in legal:
            word = "reduced over" if one.reduces else "of the function"
            raise mistake(f"axis '{one.name}' stands in '{op.name}' and is not {word} there", at)
        if one.op == "load" and not any(t is one.args[0] for t in op.input_tensors):
            op.input_tensors.append(one.args[0])


def walk(expr: Expr) -> Iterator[Expr]:
    """An expression and all that is in it, each once, as it is read; the bounds of what is
    reduced over come last.
    """
    seen: set[int] = set()
    below: list[Any] = [expr]
    while below:
        one = below.pop()
        if not isinstance(one, Expr) or id(one) in seen:
            continue
        seen.add(id(one))
        yield one
        if one.op == "reduce":
            below += [end for axis in reversed(one.args[1]) for end in (axis.high, axis.low)]
        below += reversed(one.args)


# ---- what is given ------------------------------------------------------------------------------


def _argument_names(
    function: Any, count: int, name: str, given: Sequence[str] | None
) -> list[str]:
    """The names of the function's arguments; i0, i1, ... of ``*args``."""
    if not callable(function):
        raise mistake(f"compute '{name}' takes a function of its axes, not {shown(function)}")
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):
        parameters = [inspect.Parameter("i", inspect.Parameter.VAR_POSITIONAL)]
    plain = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    words = [p.name for p in parameters if p.kind in plain]
    needed = sum(p.kind in plain and p.default is p.empty for p in parameters)
    rest = [p.name for p in parameters if p.kind == inspect.Parameter.VAR_POSITIONAL]
    if needed > count or (len(words) < count and not rest):
        what = f"{count} ax" + ("is" if count == 1 else "es")
        raise mistake(
            f"compute '{name}' has {what}, and its function takes {len(words)} arguments"
        )
    if rest:
        stem = rest[0] if len(rest[0]) == 1 else "i"
        words += [f"{stem}{number}" for number in range(count - len(words))]
        if given:
            words = [str(word) for word in given]
            if len(words) != count:
                raise mistake(f"compute '{name}' has {count} axes, not {len(words)} names")
    return words[:count]


def checked_name(name: Any) -> str:
    if not isinstance(name, str):
        raise mistake(f"a name is a text, not {shown(name)}")
    return name


def checked_shape(shape: Any, what: str) -> tuple[int, ...]:
    """Sizes above 0; a number alone is one size."""
    sizes = shape if isinstance(shape, (tuple, list)) else (shape,)
    found = tuple(_whole(size, f"a size of {what}") for size in sizes)
    if any(size <= 0 for size in found):
        raise mistake(f"{what} has shape {list(found)}: sizes are from 1 up")
    return found


def _is_whole(value: Any) -> bool:
    return is_number(value) and sort_of(value) == ""


def _whole(value: Any, what: str) -> int:
    if isinstance(value, Expr) and value.op == "integer":
        return int(value.args[0])
    if not _is_whole(value):
        raise mistake(f"{what} is a whole number, not {shown(value)}")
    return int(value)
