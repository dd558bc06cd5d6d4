"""A network's text as machine code: loaded, its weights packed, called on whole row-major tensors.

Calls may come from several threads: each takes an arena from a list of free ones, or makes one.
The interpreter lock is free while the code runs.
"""

from __future__ import annotations

import ctypes
import math
import os
import re
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from .. import _core
from ..errors import CanvasError
from ..nn.compiled import compiled_library
from . import tensor_access
from .huge_pages import Memory
from .new_tensors import empty
from .notices import notify

DTYPES = {"f32": torch.float32, "f64": torch.float64, "bf16": torch.bfloat16, "i32": torch.int32}


class NotCompiled(CanvasError):
    """The compiler does not compile the network, under whatever schedules."""


class PackedWeights:
    """Weights as the code wants them; `kept` holds the memory to which the pointers lead."""

    def __init__(self, weights: Sequence[Tensor], size: int) -> None:
        self.kept = [_apart(weight) for weight in weights]
        self.pointers = _pointers(self.kept)
        self.memory = Memory(size)
        self.address = self.memory.address
        self.at = ctypes.addressof(self.pointers)


class NativeNetwork:
    """`weights` are (name, source, dtype, shape), `outputs` (name, dtype, shape), `inputs` these
    and the least and the most of elements that are i32, `calls` (program, results, macs, bytes).
    """

    def __init__(
        self,
        text: str,
        threads: int = 1,
        log: str | os.PathLike[str] | None = None,
        winograd: bool | int = False,
    ) -> None:
        self.threads = threads
        self._process, self._made_of, self._winograd = os.getpid(), text, winograd
        self._options: dict[str, Any] = {"log": log, "threads": threads}
        if winograd:
            text = _core.network_optimize(text)
            text = _core.network_optimize(text, "winograd4" if winograd == 4 else "winograd")
        made, library = _compiled(text, optimize=not winograd, **self._options)
        self.path: str = made["path"]
        self.name: str = made["function"]
        self.text: str = made["text"]
        self.weights: list[Any] = made["weights"]
        self.inputs = _with_ranges(made["inputs"], text)
        self.outputs: list[Any] = made["outputs"]
        self.calls: list[Any] = made["calls"]
        self._packed, self._arena = made["packed"], made["arena"]
        self._results = [(tuple(row[2]), _steps(row[2]), DTYPES[row[1]]) for row in self.outputs]
        self._load = _function(library, f"{self.name}_load", 2)
        run = _function(library, f"{self.name}_run", 5)
        self._library = library  # what was loaded stays while it may be called
        self._run_at = ctypes.cast(run, ctypes.c_void_p).value or 0
        self._direct = tensor_access.direct()
        self._call = _function(library, f"{self.name}_call", 5, first=ctypes.c_int)
        self._free: list[Memory] = []

    def here(self) -> NativeNetwork:
        """Itself; in a child of a fork, where OpenMP would wait for threads that are not there,
        the same for one thread.
        """
        if self.threads == 1 or self._process == os.getpid():
            return self
        return NativeNetwork(self._made_of, 1, self._options["log"], self._winograd)

    def memory(self) -> int:
        """Bytes of values, packed weights and outputs."""
        outputs = sum(math.prod(shape) * dtype.itemsize for shape, _, dtype in self._results)
        return int(self._arena) + int(self._packed) + outputs

    def source(self, name: str) -> dict[str, str]:
        """The same as C, by file names, which begin with `name`, as its functions do."""
        return _core.network_source(self.text, optimize=False, name=name, **self._options)

    def pack(self, weights: Sequence[Tensor]) -> PackedWeights:
        packed = PackedWeights(weights, self._packed)
        if self._load(packed.pointers, packed.address):
            raise MemoryError("there is no memory for the weights of the network")
        return packed

    def run(self, packed: PackedWeights, inputs: Sequence[Tensor]) -> list[Tensor]:
        """Inputs are contiguous and of the network's dtypes and shapes: the caller has checked."""
        results = [empty(shape, steps, dtype) for shape, steps, dtype in self._results]
        arena = self._taken()
        failed = _core.call_run(
            self._run_at,
            packed.at,
            packed.address,
            arena.address,
            inputs,
            results,
            self._direct,
        )
        self._free.append(arena)
        if failed:
            raise MemoryError("there is no memory for the buffers of the network")
        return results

    def seconds(
        self, packed: PackedWeights, inputs: Sequence[Tensor], rounds: int
    ) -> list[list[float]]:
        """For each call of the network its seconds in every round: all calls in order, again and
        again.
        """
        from time import perf_counter

        results = [empty(shape, steps, dtype) for shape, steps, dtype in self._results]
        arena = self._taken()
        given = (packed.at, packed.address, _pointers(inputs), _pointers(results), arena.address)
        taken: list[list[float]] = [[] for _ in self.calls]
        for _ in range(rounds + 1):
            for number, column in enumerate(taken):
                start = perf_counter()
                self._call(number, *given)
                column.append(perf_counter() - start)
        self._free.append(arena)
        return [column[1:] for column in taken]  # the first round warms up

    def _taken(self) -> Memory:
        try:
            return self._free.pop()
        except IndexError:
            return Memory(self._arena)


NO_CODE = re.compile("(program '.*' of )?the network does not compile: ", re.DOTALL)
RANGE = re.compile(r"in (\w+) i32 \[[^]]*\] (-?\d+)\.\.(-?\d+)")


def _compiled(text: str, **options: Any) -> tuple[dict[str, Any], ctypes.CDLL]:
    try:
        made, library = compiled_library(lambda: _core.network_compile(text, **options))
    except CanvasError as error:
        if NO_CODE.match(str(error)):
            raise NotCompiled(str(error)) from None
        raise
    for program in made["simpler"]:
        notify(f"canvas: '{program}' gets a simpler schedule: the code of a better one does not "
             "compile")  # fmt: skip
    return made, library


def _with_ranges(inputs: Sequence[Any], text: str) -> list[Any]:
    """The text's own inputs stand after its programs."""
    lines = text.rpartition("\nend\n")[2].splitlines()
    found = {m[1]: (int(m[2]), int(m[3]) - 1) for line in lines if (m := RANGE.match(line))}
    return [(*row, *found.get(row[0], (0, 0))) for row in inputs]


def _pointers(tensors: Sequence[Tensor]) -> Any:
    """An array of C of where their elements are."""
    return (ctypes.c_void_p * max(1, len(tensors)))(*(tensor.data_ptr() for tensor in tensors))


def _function(library: Any, name: str, pointers: int, first: Any = None) -> Any:
    function = getattr(library, name)
    function.argtypes = [*([first] if first else []), *[ctypes.c_void_p] * pointers]
    function.restype = ctypes.c_int
    return function


def _steps(shape: Sequence[int]) -> tuple[int, ...]:
    """The strides of a row-major tensor."""
    return tuple(math.prod(shape[axis + 1 :]) for axis in range(len(shape)))


def _apart(weight: Tensor) -> Tensor:
    """The weight row-major, its sign in memory: itself where it is so, else a copy."""
    return weight.detach().contiguous().resolve_neg()
