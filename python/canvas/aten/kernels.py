"""Kernels of canvas: the program to which the core lowers one at its binding."""

from __future__ import annotations

from typing import Any

from .. import _core
from ..nn.pack import KernelPack
from .movement import view
from .operator_table import operator
from .values import Unsupported, Value
from .writer import Writer


@operator("kernel", "canvas.kernel")
def kernel(w: Writer, x: Any, weights: Any, text: str, target: str) -> Value:
    x, pack = w.value(x), KernelPack(text)
    given = [x, *(w.value(weight) for weight in weights)]
    program = _core.lower(text, pack.targets.index(target), x.shape[0])
    body = program.partition("\nprogram ")[2].partition("\n")[2].rstrip("\n")
    inputs, outputs = _core.signature(program)
    for at, (value, (name, _, shape, *_)) in enumerate(zip(given, inputs)):
        if value.shape == (1, *shape):  # one copy: the module has an axis for copies, always
            given[at] = value = view(w, value, shape)
        if value.shape != tuple(shape):
            raise Unsupported(f"its '{name}' is {list(value.shape)}, not {list(shape)}")
    if len(inputs) != len(given):
        raise Unsupported(f"it has {len(given)} inputs, its program {len(inputs)}")
    kind = f"kernel_{pack.hash[:8]}"
    return w.call_program(kind, body, given, tuple(outputs[0][2]))
