"""Tensor expressions: programs written in Python as TVM's were, and run without it (docs/te.md).

import canvas.te as tvm

A, B = tvm.placeholder((64, 96), name="A"), tvm.placeholder((96, 64), name="B")
k = tvm.reduce_axis((0, 96), name="k")
C = tvm.compute((64, 64), lambda i, j: tvm.sum(A[i, k] * B[k, j], axis=k), name="C")
print(tvm.program(C))                        # its text, docs/program.md
gemm = tvm.build(tvm.create_schedule(C.op), [A, B, C])
c = gemm(a, b)                               # NumPy arrays or torch tensors
"""

import importlib
from typing import TYPE_CHECKING

from . import target, tir
from .expr import Expr, cast
from .function import Function, build
from .functions import (
    Select,
    abs,
    all,
    any,
    ceil,
    const,
    cos,
    div,
    erf,
    exp,
    fabs,
    floor,
    floordiv,
    floormod,
    if_then_else,
    indexdiv,
    indexmod,
    infinity,
    log,
    max,
    max_value,
    mean,
    min,
    min_value,
    pow,
    power,
    prod,
    real,
    rsqrt,
    select,
    sigmoid,
    sin,
    sqrt,
    sum,
    tan,
    tanh,
)
from .schedule import Schedule, create_schedule, lower
from .target import Device, Target, context, cpu, device
from .tensor import IterVar, Operation, Tensor, compute, placeholder, reduce_axis
from .write_program import from_program, program

if TYPE_CHECKING:
    from . import nd

__all__ = [
    "Device",
    "Expr",
    "Function",
    "IterVar",
    "Operation",
    "Schedule",
    "Select",
    "Target",
    "Tensor",
    "abs",
    "all",
    "any",
    "build",
    "cast",
    "ceil",
    "compute",
    "const",
    "context",
    "cos",
    "cpu",
    "create_schedule",
    "device",
    "div",
    "erf",
    "exp",
    "fabs",
    "floor",
    "floordiv",
    "floormod",
    "from_program",
    "if_then_else",
    "indexdiv",
    "indexmod",
    "infinity",
    "log",
    "lower",
    "max",
    "max_value",
    "mean",
    "min",
    "min_value",
    "nd",
    "placeholder",
    "pow",
    "power",
    "prod",
    "program",
    "real",
    "reduce_axis",
    "rsqrt",
    "select",
    "sigmoid",
    "sin",
    "sqrt",
    "sum",
    "tan",
    "tanh",
    "target",
    "tir",
]

# What TVM has and programs cannot say: each one sentence.
_REFUSED = {
    "var": "sizes are numbers: a program has no variables",
    "size_var": "sizes are numbers: a program has no variables",
    "scan": "a program has no loop from one step to the next: unroll it into stages",
    "extern": "a program calls no functions of others",
    "hybrid": "te.compute says it: a program is expressions, not statements",
    "ir_builder": "te.compute says it: a program is expressions, not statements",
    "comm_reducer": "reducers are te.sum, te.prod, te.mean, te.max and te.min",
    "thread_axis": "there are no threads of a GPU: code is for CPUs",
    "decl_tensor_intrin": "there are no calls of hardware instructions: loops become vectors",
}


def __getattr__(name: str) -> object:
    if name == "nd":  # needs NumPy
        return importlib.import_module(".nd", __name__)
    reason = _REFUSED.get(name)
    raise AttributeError(f"canvas.te has no '{name}'" + (f": {reason}" if reason else ""))
