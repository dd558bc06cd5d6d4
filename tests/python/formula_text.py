"""An evaluator of the text of `canvas show --as formula`: plain NumPy, nothing of the core.

Every line is evaluated at all of its indices at once: an index is an array of integers with an
axis for each variable of the line, and a read is fancy indexing.  Each element of a tensor must be
written once, and one that is read must exist, unless the text lists the tensor as padded.
"""

import itertools
import math
import re
from collections.abc import Iterator, Mapping
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np

TOKENS = re.compile(r"\s+|[A-Za-z_]\w*\u2032*|\d+|.", re.DOTALL)
USUAL = re.compile(r"# Indices count from 0\. Unless a line says otherwise, (.*)\.")
OUTSIDE = re.compile(r"# (.*) (?:is|are) 0 where an index is out of range\.")
WEIGHT = re.compile(r"(W\d+) \[(.*?)\]")

erf = np.vectorize(math.erf, otypes=[float])


class Value(NamedTuple):
    """Numbers for all values of some variables: an axis for each, in order."""

    variables: tuple[str, ...]
    data: Any


def aligned(*values: Value) -> tuple[tuple[str, ...], list[Any]]:
    """All variables, and the data with an axis for each."""
    names = tuple(dict.fromkeys(name for value in values for name in value.variables))
    out = []
    for value in values:
        order = [value.variables.index(name) for name in names if name in value.variables]
        shape = iter(np.transpose(value.data, order).shape)
        out.append(
            np.transpose(value.data, order).reshape(
                [next(shape) if name in value.variables else 1 for name in names]
            )
        )
    return names, out


def applied(function: Any, *values: Value) -> Value:
    names, data = aligned(*values)
    return Value(names, np.asarray(function(*data)))


class Formula:
    """The lines of one kernel, to be evaluated at sizes (of symbols), an input and weights."""

    def __init__(self, text: str) -> None:
        comments = [line for line in text.splitlines() if line.startswith("#")]
        self.lines = [line for line in text.splitlines() if not line.startswith("#")]
        self.usual = dict(self.ranges(next(filter(None, map(USUAL.match, comments)))[1]))
        zeros = next(filter(None, map(OUTSIDE.match, comments)), None)
        self.padded = zeros[1].split(", ") if zeros else []
        self.weight_shapes = {
            name: dims.split(", ")
            for line in comments
            if line.startswith("# Weights: ")
            for name, dims in WEIGHT.findall(line)
        }
        self.read_outside: set[str] = set()

    @staticmethod
    def ranges(text: str) -> Iterator[tuple[str, str]]:
        for part in text.split(", "):
            name, below = part.split(" < ")
            yield name, below

    def __call__(self, sizes: Mapping[str, int], x: Any, weights: list[Any]) -> Any:
        self.sizes = sizes
        assert len(weights) == len(self.weight_shapes)
        self.tensors = {"x": x, **dict(zip(self.weight_shapes, weights))}
        for name, dims in self.weight_shapes.items():
            shape = tuple(int(self.number(dim)) for dim in dims)
            assert self.tensors[name].shape == shape, (name, dims, shape)
        for name, group in itertools.groupby(self.lines, lambda line: re.match(r"\w+", line)[0]):
            assert name not in self.tensors, f"{name} is defined twice"
            self.define(name, list(group))
        return self.tensors["y"]

    def number(self, text: str) -> Fraction:
        value = Parser(self, text, {}, exact=True).all()
        return Fraction(value.data.item())

    def define(self, name: str, lines: list[str]) -> None:
        """The lines that together define a tensor, one part each."""
        parts = []
        for line in lines:
            body, _, ranges = line.partition("   for ")
            place, value = body.split(" = ", 1)
            own = dict(self.ranges(ranges)) if ranges else {}
            indices = split_indices(place[len(name) :])
            names = dict.fromkeys(re.findall(r"[a-z]\w*", place[len(name) :]))
            names = [n for n in names if n not in self.sizes and n != "mod"]
            assert set(own) <= set(names), f"ranges of other variables: {line}"
            below = {n: int(self.number(own.get(n) or self.usual[n])) for n in names}
            scope = {n: variable(n, size) for n, size in below.items()}
            at = [Parser(self, index, scope, exact=True).all() for index in indices]
            result = Parser(self, value, scope).all()
            assert set(result.variables) <= set(names), line
            _, (*at_data, data) = aligned(*every(at, scope), result)
            parts.append(np.broadcast_arrays(*map(whole, at_data), data))
        rank = len(parts[0]) - 1
        shape = [1 + max(int(part[axis].max()) for part in parts) for axis in range(rank)]
        tensor = np.full(shape, np.nan)
        written = np.zeros(shape, int)
        for *at_data, data in parts:
            np.add.at(written, tuple(at_data), 1)
            tensor[tuple(at_data)] = data
        assert (written == 1).all(), f"{name} is not written once everywhere"
        self.tensors[name] = tensor

    def read(self, name: str, indices: list[Value]) -> Value:
        tensor = self.tensors[name]
        assert tensor.ndim == len(indices), name
        names, data = aligned(*indices) if indices else ((), [])
        data = [whole(index) for index in data]
        inside = np.ones((), bool)
        for index, size in zip(data, tensor.shape):
            inside = inside & (index >= 0) & (index < size)
        if not inside.all():
            self.read_outside.add(name)
            assert name in self.padded, f"{name} is read outside"
        places = [np.clip(index, 0, size - 1) for index, size in zip(data, tensor.shape)]
        return Value(names, np.where(inside, tensor[tuple(places)], 0))


def variable(name: str, size: int) -> Value:
    return Value((name,), np.array([Fraction(i) for i in range(size)], object))


def whole(data: Any) -> Any:
    """Fractions that must be whole, as int."""
    assert all(Fraction(value).denominator == 1 for value in data.flat), "an index is no integer"
    return data.astype(int)


def every(at: list[Value], scope: Mapping[str, Value]) -> list[Value]:
    """With all variables in the first, so that each has an axis."""
    if not at:
        return at
    first = at[0]
    for value in scope.values():
        first = applied(lambda a, b: a + 0 * b, first, value)
    return [first, *at[1:]]


def split_indices(text: str) -> list[str]:
    """Of "[c, (h - 1) mod H]", or of nothing."""
    if not text:
        return []
    assert text[0] == "[" and text[-1] == "]"
    parts, depth = [""], 0
    for letter in text[1:-1]:
        depth += (letter in "(⌊") - (letter in ")⌋")
        if letter == "," and not depth:
            parts.append("")
        else:
            parts[-1] += letter
    return [part.strip() for part in parts]


class Parser:
    """sum = product {(+|-) product}, product = factor {(·|/|mod) factor}; a Σ takes the rest of
    its product.  `exact`: an index, all of whole numbers and their quotients.
    """

    def __init__(
        self, formula: Formula, text: str, scope: Mapping[str, Value], exact: bool = False
    ) -> None:
        self.formula, self.text, self.exact = formula, text, exact
        self.scope = dict(scope)
        self.tokens = [token for token in TOKENS.findall(text) if not token.isspace()]
        self.at = 0

    def all(self) -> Value:
        value = self.sum()
        assert self.peek() == "", f"{self.peek()} is left of {self.text}"
        return value

    def peek(self, ahead: int = 0) -> str:
        return self.tokens[self.at + ahead] if self.at + ahead < len(self.tokens) else ""

    def take(self, *wanted: str) -> str:
        token = self.peek()
        assert token and (not wanted or token in wanted), f"{token!r} in {self.text}"
        self.at += 1
        return token

    def accept(self, *wanted: str) -> str:
        return self.take() if self.peek() in wanted else ""

    def sum(self) -> Value:
        if self.accept("-"):
            value = applied(lambda a: -a, self.product())
        else:
            value = self.product()
        while sign := self.accept("+", "-"):
            other = self.product()
            value = applied(
                (lambda a, b: a + b) if sign == "+" else (lambda a, b: a - b), value, other
            )
        return value

    def product(self) -> Value:
        value = self.factor()
        while sign := self.accept("·", "/", "mod"):
            function = {
                "·": lambda a, b: a * b,
                "/": lambda a, b: a / b,
                "mod": lambda a, b: a - b * floor(a / b),
            }[sign]
            value = applied(function, value, self.factor())
        return value

    def factor(self) -> Value:
        value = self.atom()
        return applied(lambda a: a * a, value) if self.accept("²") else value

    def atom(self) -> Value:
        token = self.take()
        if token.isdigit():
            return Value((), np.array(Fraction(int(token)) if self.exact else float(token)))
        if token == "π":
            return Value((), np.array(math.pi))
        if token in ("(", "|", "⌊"):
            value = self.sum()
            self.take({"(": ")", "|": "|", "⌊": "⌋"}[token])
            return {"(": value, "|": applied(abs, value), "⌊": applied(floor, value)}[token]
        if token == "Σ" or (token == "max" and self.peek(2) == "<"):
            return self.reduced(np.sum if token == "Σ" else np.max)
        if token in FUNCTIONS:
            self.take("(")
            values = [self.sum()]
            while self.accept(","):
                values.append(self.sum())
            self.take(")")
            return applied(FUNCTIONS[token], *values)
        return self.name(token)

    def name(self, token: str) -> Value:
        number = (lambda n: Fraction(n)) if self.exact else float
        if token in self.scope:
            value = self.scope[token]
            return value if self.exact else applied(lambda a: a.astype(float), value)
        if token in self.formula.sizes:
            return Value((), np.array(number(self.formula.sizes[token])))
        assert not self.exact, f"{token} in an index"
        assert token in self.formula.tensors, f"{token} is not defined"
        exact, self.exact, indices = self.exact, True, []
        if self.accept("["):
            indices.append(self.sum())
            while self.accept(","):
                indices.append(self.sum())
            self.take("]")
        self.exact = exact
        return self.formula.read(token, indices)

    def reduced(self, function: Any) -> Value:
        """Over variables of its own, which no other around it has."""
        self.take("(")
        names = []
        while not names or self.accept(","):
            name = self.take()
            assert name not in self.scope, f"{name} is bound twice in {self.text}"
            self.take("<")
            exact, self.exact = self.exact, True
            size = self.sum().data.item()
            self.exact = exact
            assert Fraction(size).denominator == 1
            self.scope[name] = variable(name, int(size))
            names.append(name)
        self.take(")")
        value = self.product()
        for name in names:
            size = len(self.scope.pop(name).data)
            if name not in value.variables:
                value = (
                    value
                    if function is np.max
                    else applied(np.multiply, value, Value((), np.array(size)))
                )
                continue
            axis = value.variables.index(name)
            left = value.variables[:axis] + value.variables[axis + 1 :]
            value = Value(left, function(value.data, axis=axis))
        return value


def floor(data: Any) -> Any:
    return np.vectorize(math.floor, otypes=[object])(data)


FUNCTIONS = {
    "max": np.maximum,
    "min": np.minimum,
    "exp": np.exp,
    "sin": np.sin,
    "tanh": np.tanh,
    "erf": erf,
    "√": np.sqrt,
}
