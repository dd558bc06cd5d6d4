"""The text of a network, built call by call.

A program is written for each call; programs of the same text are one, and are named by their
operator. Weights are tensors of the module, the same memory once however often it is named.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from .values import Shape, Unsupported, Value, axes, broadcast, number, uniform

WORDS = ["canvas", "network", "program", "in", "weight", "from", "out", "end", "rising"]
NAME_LIMIT = 100
SOURCE = re.compile(r"[A-Za-z_][A-Za-z0-9_.]*\Z")

Given = tuple[str, Value] | tuple[str, Value, list[str]]


def sizes(names: Sequence[str], shape: Sequence[int]) -> str:
    """n:1, c:4"""
    return ", ".join(f"{name}:{size}" for name, size in zip(names, shape))


def stage(
    name: str,
    names: Sequence[str],
    shape: Sequence[int],
    body: str,
    reducer: str = "",
    over: Sequence[tuple[str, int]] = (),
) -> str:
    """A line of a program; without axes to reduce over there is no reduction."""
    line = f"{name}[{sizes(names, shape)}] = {body}"
    if reducer and over:
        line += f" // {reducer} " + ", ".join(f"{axis}:{size}" for axis, size in over)
    return line


class Writer:
    def __init__(self) -> None:
        self.programs: dict[str, str] = {}  # text behind the name -> name
        self.weights: dict[str, Tensor] = {}
        self.inputs: dict[str, Value] = {}
        self.ranges: dict[str, int] = {}  # of inputs of i32: the end
        self._tensors: set[str] = set(WORDS)
        self._names: dict[str, int] = {}
        self._lines: list[str] = []
        self._weight_lines: list[str] = []
        self._known: dict[Any, Value] = {}
        self._copies: dict[Any, tuple[Tensor, Tensor]] = {}  # the first keeps its address taken
        self._next = "value"

    # -- names --

    def begin(self, name: str) -> None:
        """What the next call computes is called so."""
        self._next = name

    def _unique(self, wanted: str) -> str:
        plain = re.sub(r"[^A-Za-z0-9_]", "_", wanted)[-NAME_LIMIT:] or "value"
        plain = plain if not plain[0].isdigit() else f"v{plain}"
        name, turn = plain, 1
        while name in self._tensors:
            turn += 1
            name = f"{plain}_{turn}"
        self._tensors.add(name)
        return name

    # -- what is given --

    def input(self, name: str, shape: Shape, dtype: str) -> Value:
        value = Value(self._unique(name), shape, given=True, dtype=dtype)
        self.inputs[value.name] = value
        return value

    def weight(self, tensor: Tensor, source: str | None = None, name: str = "") -> Value:
        """A tensor of f32, live: whoever reads the text finds it in `weights`."""
        return self._weight(tensor, "f32", source, name or source or "constant")

    def _weight(self, tensor: Tensor, dtype: str, source: str | None, name: str) -> Value:
        key = _identity(tensor)
        if key in self._known:
            return self._known[key]
        value = Value(self._unique(name), tuple(tensor.shape), constant=True, dtype=dtype)
        where = f" from {source}" if source and SOURCE.match(source) else ""
        span = f" 0..{int(tensor.max()) + 1}" if dtype == "i32" else ""
        self._weight_lines.append(f"weight {value.name} {dtype} {list(value.shape)}{span}{where}")
        self._known[key] = value
        self.weights[value.name] = tensor
        return value

    def value(self, x: Any) -> Value:
        """A tensor of f32 for an argument: itself, or a weight that holds a constant."""
        if isinstance(x, Value):
            if x.dtype != "f32":
                raise Unsupported("it computes with int64, only float32 is known")
            return x
        if not isinstance(x, Tensor):
            x = torch.tensor(x, device="cpu")
        if x.dtype == torch.float64 or not x.numel():
            raise Unsupported(f"it reads a constant of {_plain(x.dtype)} {list(x.shape)}")
        return self.weight(x if x.dtype == torch.float32 else self._kept_as(x, torch.float32))

    def index(self, x: Any, end: int) -> Value:
        """A tensor of i32 below `end`: an input of whole numbers, or a constant."""
        if isinstance(x, Value):
            if x.dtype != "i32":
                raise Unsupported("its indices are computed, only inputs and constants are known")
            if x.given:
                self.ranges[x.name] = min(end, self.ranges.get(x.name, end))
            return x
        if bool((x < 0).any()) or bool((x >= end).any()):
            raise Unsupported(f"it reads a constant index that is not below {end}")
        return self._weight(self._kept_as(x, torch.int32), "i32", None, "indices")

    def _kept_as(self, x: Tensor, dtype: torch.dtype) -> Tensor:
        key = (_identity(x), dtype)
        if key not in self._copies:
            self._copies[key] = (x, x.detach().to(dtype, copy=True))
        return self._copies[key][1]

    # -- calls --

    def call(self, kind: str, given: Sequence[Given], lines: Sequence[str], shape: Shape) -> Value:
        """A call of a program of these lines, whose last is the result."""
        name = self._program(kind, given, lines)
        constant = all(row[1].constant for row in given)
        value = Value(self._unique(self._next), tuple(shape), constant)
        arguments = ", ".join(row[1].name for row in given)
        self._lines.append(f"{value.name} f32 {list(value.shape)} = {name}({arguments})")
        return value

    def _program(self, kind: str, given: Sequence[Given], lines: Sequence[str]) -> str:
        ins = []
        for letter, value, *named in given:
            names = named[0] if named else axes(value.rank)
            line = f"in {letter} {value.dtype} [{sizes(names, value.shape)}]"
            if value.dtype == "i32":
                line += f" 0..{self._end(value)}"
            ins.append(line + (" const" if value.constant else ""))
        out = lines[-1].partition("[")[0]
        return self.add_program(kind, "\n".join([*ins, *lines, f"out {out}"]))

    def _end(self, value: Value) -> int:
        return self.ranges[value.name] if value.given else int(self.weights[value.name].max()) + 1

    def add_program(self, kind: str, body: str) -> str:
        """The name of the program of this text."""
        if body not in self.programs:
            turn = self._names[kind] = self._names.get(kind, 0) + 1
            self.programs[body] = kind if turn == 1 else f"{kind}_{turn}"
        return self.programs[body]

    def call_program(self, kind: str, body: str, given: Sequence[Value], shape: Shape) -> Value:
        """A call of a program that is given as text."""
        value = Value(self._unique(self._next), tuple(shape), all(v.constant for v in given))
        name = self.add_program(kind, body)
        arguments = ", ".join(v.name for v in given)
        self._lines.append(f"{value.name} f32 {list(value.shape)} = {name}({arguments})")
        return value

    def copied(self, x: Value) -> Value:
        """The same as what a call computes: outputs are that."""
        names = axes(x.rank)
        body = f"X[{', '.join(names)}]"
        return self.call("copy", [("X", x)], [stage("Y", names, x.shape, body)], x.shape)

    def text(self, name: str, outputs: Sequence[Value]) -> str:
        lines = ["canvas 1", f"network {name}"]
        for body, program in self.programs.items():
            lines += [f"program {program}", body, "end"]
        for value in self.inputs.values():
            span = f" 0..{self.ranges.get(value.name, 2**31)}" if value.dtype == "i32" else ""
            lines.append(f"in {value.name} {value.dtype} {list(value.shape)}{span}")
        lines += self._weight_lines + self._lines
        return "\n".join([*lines, f"out {', '.join(v.name for v in outputs)}"]) + "\n"


def _identity(tensor: Tensor) -> Any:
    """Equal for tensors that are the same elements of the same memory."""
    if tensor.is_meta or type(tensor) not in (Tensor, torch.nn.Parameter):
        return id(tensor)
    return (tensor.data_ptr(), tuple(tensor.shape), tensor.stride(), tensor.dtype)


def _plain(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")


# ---- element by element -------------------------------------------------------------------------


def elements(w: Writer, kind: str, body: str, boolean: bool = False, **given: Any) -> Value:
    """One expression of each element: {A} in `body` is the argument A, which is broadcast; numbers
    and constants of one number are written into it.
    """
    plain: dict[str, str] = {}
    tensors: dict[str, Value] = {}
    for letter, x in given.items():
        same = uniform(x) if isinstance(x, Tensor) and x.numel() < 1 << 20 else None
        if isinstance(x, Value) or (isinstance(x, Tensor) and same is None):
            tensors[letter] = w.value(x)
        else:
            plain[letter] = number(x if same is None else same)
    shapes = [v.shape for v in tensors.values()]
    shapes += [tuple(x.shape) for x in given.values() if isinstance(x, Tensor)]
    shape = broadcast(*shapes)
    names = axes(len(shape))
    for letter, value in tensors.items():
        plain[letter] = f"{letter}[{', '.join(spot(names, value.shape, shape))}]"
    line = stage("Y", names, shape, body.format(**plain))
    made = w.call(kind, [(k, v, axes(v.rank)) for k, v in tensors.items()], [line], shape)
    return Value(made.name, made.shape, made.constant, boolean=boolean)


def spot(names: Sequence[str], shape: Shape, whole: Shape) -> list[str]:
    """The indices of what is broadcast to axes of these names and sizes."""
    rows = list(zip(names, whole))[len(whole) - len(shape) :]
    return ["0" if own < size else name for own, (name, size) in zip(shape, rows)]
