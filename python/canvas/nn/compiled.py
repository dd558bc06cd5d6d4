"""Programs as machine code, callable on NumPy arrays and torch CPU tensors.

The core writes C for a program under a schedule and has the machine's compiler make a shared
object of it (docs/native.md); a ``Compiled`` calls the one function in it.  Code that reads and
writes memory by itself must not be called on the wrong memory: all arguments are checked first,
and one message names what does not fit.  The interpreter lock is free while the code
runs, and several threads may call one object.
"""

from __future__ import annotations

import ctypes
import math
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from .. import _core
from ..arguments import TEXT, checked
from ..errors import CanvasError
from .packed import Packed, address

TRIES = 3  # times that something is compiled which does not load

# How the element types of programs are called; NumPy has no bf16 and holds its bits.
_NUMPY = {"f32": "float32", "f64": "float64", "bf16": "uint16", "i32": "int32"}
_TORCH = {"f32": "float32", "f64": "float64", "bf16": "bfloat16", "i32": "int32"}


@dataclass(frozen=True)
class Tensor:
    """An input or output: whole, row-major.  Elements of i32 lie in [least, most]; where they are
    `rising` they never fall along the last axis, from least to most.
    """

    name: str
    dtype: str
    shape: tuple[int, ...]
    least: int = 0
    most: int = 0
    rising: bool = False

    def __str__(self) -> str:
        return f"{self.name} {self.dtype} {list(self.shape)}"


class Compiled:
    """A program as a function: ``compiled(x, w)`` returns the output, or a tuple of several.

    Arguments are the program's inputs in order, NumPy arrays or torch CPU tensors, all of one
    kind; so are the outputs.  `program` and `schedule` are texts (None: the default schedule);
    `machine` is the text of the one that the schedule is bound for ("here": this one).
    Stages of constant inputs alone (``in W f32 [...] const``) are computed once for each state of
    these: again where their memory or version is another one (torch), or a byte of them (NumPy).
    Raises CanvasError where an argument has another dtype or shape than its input, is not
    contiguous, or holds an index out of its range; MemoryError where the code finds no memory.
    """

    def __init__(self, program: str, schedule: str | None = None, machine: str = "here") -> None:
        self.program, self.schedule, self.machine = program, schedule, machine
        inputs, outputs = _core.signature(program)
        self.inputs = [Tensor(*row) for row in inputs]
        self.outputs = [Tensor(*row) for row in outputs]
        on = None if machine == "here" else machine
        made, library = compiled_library(lambda: _core.compile(program, schedule, on))
        self.path, self.function, size, packs, self._takes = made
        self._code = getattr(library, self.function)
        self._packed = (
            Packed(getattr(library, self.function + "_prepare"), size, packs) if size else None
        )
        pointers = sum(self._takes) + len(outputs) + (1 if size else 0)
        self._code.argtypes = [ctypes.c_void_p] * pointers
        self._code.restype = ctypes.c_int

    def __call__(self, *arrays: Any) -> Any:
        torch = self._check_inputs(arrays)
        made = [_new_torch(t, torch) if torch else _new_numpy(t) for t in self.outputs]
        self._run(arrays, made)
        return made[0] if len(made) == 1 else tuple(made)

    def write(self, outputs: Sequence[Any], inputs: Sequence[Any]) -> None:
        """As a call, into arrays that are there: of the outputs' dtypes and shapes, contiguous,
        and apart from the inputs and each other.
        """
        torch = self._check_inputs(inputs)
        if len(outputs) != len(self.outputs):
            names = ", ".join(tensor.name for tensor in self.outputs)
            raise CanvasError(
                f"expected {len(self.outputs)} outputs ({names}), not {len(outputs)}"
            )
        for tensor, array in zip(self.outputs, outputs):
            (_check_torch if torch or _torch_of(array) else _check_numpy)(tensor, array, "output")
            if not _torch_of(array) and not array.flags.writeable:
                raise CanvasError(f"output '{tensor.name}' is read-only")
        _check_apart(self.outputs, outputs, [*inputs, *outputs])
        self._run(inputs, outputs)

    def _check_inputs(self, arrays: Sequence[Any]) -> Any:
        """The module torch, where they are tensors of it."""
        if len(arrays) != len(self.inputs):
            names = ", ".join(tensor.name for tensor in self.inputs)
            raise CanvasError(f"expected {len(self.inputs)} inputs ({names}), not {len(arrays)}")
        torch = _torch_of(arrays[0]) if arrays else None
        for tensor, array in zip(self.inputs, arrays):
            (_check_torch if torch else _check_numpy)(tensor, array, "input")
        return torch

    def _run(self, arrays: Sequence[Any], made: Sequence[Any]) -> None:
        addresses = [_address(array) for array in arrays]
        pointers = [at for at, takes in zip(addresses, self._takes) if takes]
        if self._packed is not None:
            buffer = self._packed.memory(arrays, addresses)  # lives until the call is over
            pointers.append(address(buffer))
        if self._code(*pointers, *map(_address, made)):
            raise MemoryError("there is no memory for the buffers of the code")

    def forget(self) -> None:
        """What was computed of constant inputs is computed anew: for changes of theirs that torch
        does not count, through ``.data`` or ``.numpy()``.
        """
        if self._packed is not None:
            self._packed.forget()

    def __repr__(self) -> str:
        inputs, outputs = (", ".join(map(str, row)) for row in (self.inputs, self.outputs))
        return f"Compiled({self.function}: {inputs} -> {outputs})"

    def __reduce__(self) -> tuple[Any, ...]:
        return Compiled, (self.program, self.schedule, self.machine)


@checked(program=TEXT, schedule=TEXT, machine=TEXT)
def compile_program(
    program: str, schedule: str | None = None, *, machine: str = "here"
) -> Compiled:
    """Compile the text of a program (docs/program.md) to machine code.

    `schedule`: the text of a schedule (docs/schedule.md), None for the default one; `machine`: the
    text of the machine that it is bound for (docs/machine.md), "here" for this one.  Raises
    CanvasError for bad input, or if no C compiler works.
    """
    return Compiled(program, schedule, machine)


def compiled_library(compile: Callable[[], Any]) -> tuple[Any, ctypes.CDLL]:
    """What `compile` returns, and the shared object whose path stands first in it, or by the name
    "path".  What somebody removes from the cache before it is loaded is compiled again.
    """
    for left in reversed(range(TRIES)):
        made = compile()
        path = made["path"] if isinstance(made, dict) else made[0]
        try:
            return made, ctypes.CDLL(path, handle=_core.load_object(path))
        except CanvasError:
            if not left:
                raise
    raise AssertionError("unreachable")


# ---- arguments ----------------------------------------------------------------------------------


def _torch_of(array: Any) -> Any:
    """The module torch if this is one of its tensors; torch is not imported for that."""
    torch = sys.modules.get("torch")
    return torch if torch is not None and isinstance(array, torch.Tensor) else None


def _check_torch(tensor: Tensor, array: Any, role: str) -> None:
    torch = _torch_of(array)
    if torch is None:
        raise CanvasError(
            f"{role} '{tensor.name}' is {_kind(array)}, not a torch tensor as the first one is"
        )
    if array.device.type != "cpu" or array.layout != torch.strided:
        raise CanvasError(f"{role} '{tensor.name}' is not a dense tensor on the CPU")
    if array.requires_grad and torch.is_grad_enabled():
        raise CanvasError(
            f"{role} '{tensor.name}' requires a gradient, which code has not: give it under "
            "torch.no_grad() or detached"
        )
    _check(tensor, array, role, str(array.dtype).removeprefix("torch."), _TORCH[tensor.dtype])
    if not array.is_contiguous():
        raise CanvasError(f"{role} '{tensor.name}' is not contiguous, give it .contiguous()")
    if role == "input":
        _check_range(tensor, array)


def _check_numpy(tensor: Tensor, array: Any, role: str) -> None:
    import numpy

    if not isinstance(array, numpy.ndarray):
        raise CanvasError(
            f"{role} '{tensor.name}' is {_kind(array)}, not a NumPy array or torch tensor"
        )
    if isinstance(array, numpy.ma.MaskedArray):
        raise CanvasError(
            f"{role} '{tensor.name}' is masked, code reads all of it: give it through .filled()"
        )
    _check(tensor, array, role, array.dtype.name, _NUMPY[tensor.dtype])
    if not array.dtype.isnative:
        raise CanvasError(
            f"{role} '{tensor.name}' has its bytes in the other order, give it through "
            f".astype('{_NUMPY[tensor.dtype]}')"
        )
    if not (array.flags.c_contiguous and array.flags.aligned):
        raise CanvasError(
            f"{role} '{tensor.name}' is not contiguous in C order, give it through "
            "numpy.ascontiguousarray"
        )
    if role == "input":
        _check_range(tensor, array)


def _check(tensor: Tensor, array: Any, role: str, dtype: str, wanted: str) -> None:
    if dtype != wanted and not (tensor.dtype == "bf16" and dtype == "bfloat16"):
        raise CanvasError(f"{role} '{tensor.name}' is of {dtype}, not {wanted}")
    if tuple(array.shape) != tensor.shape:
        raise CanvasError(
            f"{role} '{tensor.name}' has shape {list(array.shape)}, not {list(tensor.shape)}"
        )


def _check_apart(tensors: Sequence[Tensor], outputs: Sequence[Any], arrays: Sequence[Any]) -> None:
    """No output lies where another array does."""
    spans = [(_address(array), _address(array) + array.nbytes) for array in arrays]
    mine = len(arrays) - len(outputs)  # the outputs are the last of them
    for place, tensor in enumerate(tensors, mine):
        for other, (low, high) in enumerate(spans):
            if other != place and low < spans[place][1] and spans[place][0] < high:
                raise CanvasError(f"output '{tensor.name}' shares memory with another argument")


def _check_range(tensor: Tensor, array: Any) -> None:
    """Indices: one out of range would read or write anywhere."""
    if tensor.dtype != "i32":
        return
    low, high = int(array.min()), int(array.max())
    if low < tensor.least or high > tensor.most:
        raise CanvasError(
            f"input '{tensor.name}' holds indices from {low} to {high}, outside of "
            f"{tensor.least} to {tensor.most}"
        )
    if tensor.rising and not (
        bool((array[..., 0] == tensor.least).all())
        and bool((array[..., -1] == tensor.most).all())
        and bool((array[..., 1:] >= array[..., :-1]).all())
    ):
        raise CanvasError(
            f"input '{tensor.name}' has to rise along its last axis, from {tensor.least} to "
            f"{tensor.most}"
        )


def _kind(array: Any) -> str:
    name = f"{type(array).__module__}.{type(array).__qualname__}"
    return f"a {name.removeprefix('builtins.')}"


# ---- memory -------------------------------------------------------------------------------------


def _new_torch(tensor: Tensor, torch: Any) -> Any:
    return torch.empty(tensor.shape, dtype=getattr(torch, _TORCH[tensor.dtype]))


def _new_numpy(tensor: Tensor) -> Any:
    import numpy

    if math.prod(tensor.shape) * 8 > sys.maxsize:
        raise MemoryError(f"output '{tensor.name}' is larger than any memory")
    return numpy.empty(tensor.shape, dtype=_NUMPY[tensor.dtype])


def _address(array: Any) -> int:
    return int(array.data_ptr() if hasattr(array, "data_ptr") else array.ctypes.data)
