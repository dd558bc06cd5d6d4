"""The text of a program (docs/program.md) of tensors: `te.program`.

Names come from the user where they are legal, and are made legal and unique where they are not.
The core reads the text, checks it and prints it canonically; its error about a line of the text
is reported with the line of Python that wrote it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from .. import _core
from ..arguments import shown
from ..errors import CanvasError
from .expr import VALUES
from .place import mistake, place
from .ranges import range_of_input
from .tensor import ComputeOp, IterVar, Operation, PlaceholderOp, Tensor, TextOp, walk
from .text_of import hidden_low, text_of

_WORDS = {"canvas", "program", "in", "out", "if", "then", "else", "inf", "true", "false"}
_DTYPES = {**{short: name for name, short in VALUES.items()}, "i32": "int32"}
NAME = 100  # bytes; the language has 128, edits add to them


@dataclass
class Written:
    """A program and what its names are: of tensors, and of the axes of each stage."""

    text: str
    inputs: list[Tensor]
    outputs: list[Tensor]
    names: dict[Operation, str] = field(default_factory=dict)
    axes: dict[tuple[Operation, IterVar], str] = field(default_factory=dict)

    def name(self, tensor: Tensor | Operation) -> str:
        return self.names[tensor.op if isinstance(tensor, Tensor) else tensor]

    def axis(self, op: Operation, axis: IterVar) -> str:
        return self.axes[op, axis]


def program(outputs: Any, name: str | None = None, inputs: Any = None) -> str:
    """The canonical text of the program whose results are `outputs`, tensors or their operations.

    `inputs`: placeholders in the order in which they shall stand (None: as they are met).
    """
    return write(outputs, name, inputs).text


def write(outputs: Any, name: str | None = None, inputs: Any = None) -> Written:
    results = tensors(outputs, "an output")
    if name is not None and not isinstance(name, str):
        raise mistake(f"the name of a program is a text, not {shown(name)}")
    for result in results:
        if not isinstance(result.op, ComputeOp):
            raise mistake(f"'{result.name}' is an input: an output is what a compute makes")
    order = ordered(results)
    if any(isinstance(op, TextOp) for op in order):
        return _of_text(results, order, name)
    wanted = tensors(inputs, "an input") if inputs else []
    made = Written("", _inputs(order, wanted), results)
    stages = [op for op in order if isinstance(op, ComputeOp)]
    _name(made, [*(t.op for t in made.inputs), *stages])
    title = legal(name if name is not None else made.name(results[0]), "program")
    lines = [f"program {title}"]
    for op in (t.op for t in made.inputs):
        lines.append(_input_line(made, op, stages))
    lines += [_stage_line(made, op) for op in stages]
    lines += [f"out {word}" for word in dict.fromkeys(made.name(one) for one in results)]
    made.text = _read(lines, ["", *(t.op.at for t in made.inputs), *(op.at for op in stages)])
    return made


def from_program(text: str) -> tuple[list[Tensor], list[Tensor]]:
    """(outputs, inputs) of a program that is given as text, to be scheduled and built."""
    if not isinstance(text, str):
        raise mistake(f"a program is a text, not {shown(text)}")
    text = _core.print_program(text)
    given, results = _core.signature(text)
    at = place()
    inputs = [_input_of_text(row, at) for row in given]
    outputs = []
    for name, dtype, shape, *_ in results:
        op = TextOp(name, at)
        op.text, op.inputs, op.input_tensors = text, inputs, inputs
        outputs.append(Tensor(shape, _DTYPES[dtype], op))
    return outputs, inputs


def _input_of_text(row: tuple[str, str, tuple[int, ...], int, int, bool], at: str) -> Tensor:
    name, dtype, shape, least, most, rising = row
    op = PlaceholderOp(name, at)
    op.bounds, op.rising = (least, most + 1) if dtype == "i32" else None, rising
    return Tensor(shape, _DTYPES[dtype], op)


def _of_text(results: list[Tensor], order: Sequence[Operation], name: str | None) -> Written:
    ops = [tensor.op for tensor in results]
    first = ops[0]
    texts = {op.text for op in ops if isinstance(op, TextOp)}
    if (
        not isinstance(first, TextOp)
        or len(texts) > 1
        or len(order) > len(first.inputs) + len(ops)
    ):
        raise mistake("what te.from_program answers is a whole: nothing is computed of it")
    outputs = _core.signature(first.text)[1]
    if [row[0] for row in outputs] != [op.name for op in ops]:
        raise mistake(f"the outputs of the program are {', '.join(row[0] for row in outputs)}")
    text = first.text
    if name is not None:
        text = re.sub(r"(?m)^(program )\w+", rf"\g<1>{legal(name, 'program')}", text, count=1)
    made = Written(text, list(first.inputs), results)
    made.names = {tensor.op: tensor.name for tensor in (*first.inputs, *results)}
    return made


def _read(lines: list[str], places: list[str]) -> str:
    """The core's own print; an error of line 3 is one of what wrote line 3."""
    try:
        return _core.print_program("\n".join(lines) + "\n")
    except CanvasError as error:
        found = re.match(r"line (\d+), column \d+: (.*)", str(error), re.S)
        number = int(found[1]) - 1 if found else 0
        if found and 0 < number < len(places):
            raise mistake(found[2], places[number]) from None
        raise mistake(found[2] if found else str(error)) from None


# ---- what belongs to it -------------------------------------------------------------------------


def tensors(given: Any, what: str) -> list[Tensor]:
    """Tensors or operations, one or several."""
    several = given if isinstance(given, (list, tuple)) else [given]
    for one in several:
        if not isinstance(one, (Tensor, Operation)):
            raise mistake(f"{what} is a tensor of te, not {shown(one)}")
    found = [one.output(0) if isinstance(one, Operation) else one for one in several]
    if not found:
        raise mistake(f"expected {what}, a tensor of te, and there is none")
    return found


def ordered(results: Sequence[Tensor]) -> list[Operation]:
    """Everything that is needed, each after what it loads."""
    order: list[Operation] = []
    state: dict[Operation, bool] = {}  # False: begun, True: done
    below = [(result.op, False) for result in reversed(results)]
    while below:
        op, loaded = below.pop()
        if loaded:
            state[op] = True
            order.append(op)
        elif op not in state:
            state[op] = False
            below.append((op, True))
            below += [(tensor.op, False) for tensor in reversed(op.input_tensors)]
    return order


def _inputs(order: Sequence[Operation], wanted: Sequence[Tensor]) -> list[Tensor]:
    met = [op.output(0) for op in order if isinstance(op, PlaceholderOp)]
    for tensor in wanted:
        if not any(tensor is one for one in met):
            raise mistake(f"'{tensor.name}' is no input of the program")
    return [*wanted, *(one for one in met if not any(one is other for other in wanted))]


# ---- names --------------------------------------------------------------------------------------


def legal(name: str, instead: str) -> str:
    word = re.sub(r"[^A-Za-z0-9_]", "_", name)[:NAME] or instead
    return f"{word}_" if word in _WORDS else f"_{word}" if word[0].isdigit() else word


def unique(name: str, taken: set[str]) -> str:
    number, word = 1, name
    while word in taken:
        word = f"{name}_{number}"
        number += 1
    taken.add(word)
    return word


def _name(made: Written, ops: Sequence[Operation]) -> None:
    taken: set[str] = set()
    for op in ops:
        made.names[op] = unique(legal(op.name, "T"), taken)
    for op in ops:
        here: set[str] = set()
        for axis in (*op.axis, *op.reduce_axis):
            made.axes[op, axis] = unique(legal(axis.name, "i"), here)


# ---- lines --------------------------------------------------------------------------------------


def _input_line(made: Written, op: Operation, stages: Sequence[ComputeOp]) -> str:
    assert isinstance(op, PlaceholderOp)
    tensor = op.output(0)
    axes = ", ".join(
        f"{name}:{size}" for name, size in zip(_input_axes(made, tensor, stages), tensor.shape)
    )
    line = f"in {made.name(op)} {VALUES.get(tensor.dtype, 'i32')} [{axes}]"
    if tensor.dtype == "int32":
        (low, high), rising = range_of_input(tensor, stages)
        line += f" {low}..{high}" + (" rising" if rising else "")
    return line + (" const" if op.constant else "")


def _input_axes(made: Written, tensor: Tensor, stages: Sequence[ComputeOp]) -> list[str]:
    """Called as the first load that goes along each of them calls them."""
    loads = [
        (op, one)
        for op in stages
        for one in walk(op.body[0])
        if one.op == "load" and one.args[0] is tensor
    ]
    names: set[str] = set()
    found = []
    for number in range(len(tensor.shape)):
        along = ((op, load.args[number + 1]) for op, load in loads)
        known = (made.axes[pair] for pair in along if isinstance(pair[1], IterVar))
        found.append(unique(next(known, f"d{number}"), names))
    return found


def _stage_line(made: Written, op: ComputeOp) -> str:
    body = op.body[0]
    tensor = op.output(0)
    here = {axis: made.axes[op, axis] for axis in (*op.axis, *op.reduce_axis)}
    axes = ", ".join(f"{here[axis]}:{axis.extent}" for axis in op.axis)
    kind = "" if tensor.dtype == "float32" else VALUES[tensor.dtype] + " "
    name = f"{made.name(op)} {kind}" if kind else made.name(op)
    what = body.args[2] if body.op == "reduce" else body
    line = f"{name}[{axes}] = {text_of(what, here, made.names)}"
    if body.op != "reduce":
        return line
    over = ", ".join(f"{here[axis]}:{_over(axis, here, made)}" for axis in op.reduce_axis)
    return f"{line} // {body.args[0]} {over}"


def _over(axis: IterVar, here: dict[IterVar, str], made: Written) -> str:
    """The steps of an axis that is reduced, or from where to where it runs."""
    if axis.extent is not None:
        return str(axis.extent)
    low, high = bounds_of(axis)
    return "..".join(text_of(end, here, made.names) for end in (low, high))


def bounds_of(axis: IterVar) -> tuple[Any, Any]:
    """From where to where it runs; one of ``(0, b - a)`` runs from a to b, shifted by a."""
    low = hidden_low(axis)
    return (axis.low, axis.high) if low is None else (low, axis.high.args[0])
