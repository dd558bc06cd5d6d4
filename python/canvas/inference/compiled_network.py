"""canvas.compile: a model as native code, called as the model is."""

from __future__ import annotations

import copy
import itertools
import operator
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn
from torch.utils import _pytree

from ..arguments import PATH, TEXT, WHOLE, checked, shown
from ..errors import CanvasError, one_line
from .arguments_flat import (
    FlatArguments,
    KnownLayout,
    check_gradients,
    example_of,
    layout_of,
    sizes_of,
)
from .compile_options import Options, options_of
from .export_c import save_network
from .lifted_graph import CannotExport
from .locks import EXPORTING
from .model_state import ModelState, check_weights
from .native_part import OtherWeights
from .network_report import NetworkReport, report_of
from .notices import notify
from .specialization import Specialization, Strides
from .transforms import check_transforms, in_autocast

_REQUIRES_GRAD = operator.attrgetter("requires_grad")
LAYOUTS = 256  # of inputs that are known at once
SIZES = 8  # kept compiled; the one that was called longest ago goes first


@dataclass(frozen=True)
class _Ready:
    """What a call of a certain layout needs."""

    state: ModelState  # of the model that it was made of
    size: Specialization
    bound: Any  # the weights, as the size wants them
    strides: Strides
    rebuild: Callable[[list[Any]], Any]
    differentiates: bool  # PyTorch, outside of it
    layout: KnownLayout

    def fits(self, flat: Sequence[Any]) -> bool:
        """Fast-path check of the inputs; False means 'use the slow lookup'."""
        if torch.is_grad_enabled() is not self.differentiates:
            return False
        if not self.layout.fits(flat):
            return False
        return not (self.differentiates and any(map(_REQUIRES_GRAD, flat)))


class CompiledNetwork:
    """Called as the model is, on inputs of the example's sizes; the first size, the batch, may
    differ: for each one the network is compiled anew, and the last 8 are kept.

    For inference: outputs carry no gradient.  Weights may change, and modules: what was prepared
    of them is prepared again.  Other attributes of modules, say numbers, are those of the time
    when a size was compiled.  Raises CanvasError where an input does not fit, the model is in
    training mode, or the first call of a size differs from PyTorch.
    """

    def __init__(self, model: nn.Module, example_input: Any, options: Options) -> None:
        self.model = model
        self._options = options
        self._example = example_of(example_input)
        self._arguments = FlatArguments(model, self._example)
        check_transforms(self._arguments.names, _pytree.tree_leaves(self._example))
        self._clock = itertools.count()
        self._shown = False
        self._last: _Ready | None = None  # of what is ready, the one that served the last call
        with EXPORTING:
            self._start()
            self._example_size()
        self._opaque = torch.compiler.disable(self.__call__)  # torch.compile does not look inside

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if torch.compiler.is_dynamo_compiling():
            return self._opaque(*args, **kwargs)
        plain = not kwargs and len(args) == self._arguments.plain
        flat = args if plain else self._arguments.flatten(args, kwargs)
        check_transforms(self._arguments.names, flat)
        state = self._state
        state.check_training()
        if in_autocast():
            raise CanvasError(
                "torch.autocast is on, but a compiled network computes in the model's own types: "
                "call it outside"
            )
        ready = self._last
        fits = ready is not None and ready.fits(flat)
        if not fits:
            ready = self._ready.get((torch.is_grad_enabled(), layout_of(flat)))
        # another thread may have started anew meanwhile
        if ready is None or ready.state is not state or not state.same():
            return self._first(flat)
        self._last = ready
        ready.size.used = next(self._clock)
        try:
            in_form = fits and ready.layout.in_form
            return ready.rebuild(ready.size.run(ready.bound, flat, ready.strides, in_form))
        except OtherWeights:
            with EXPORTING:
                self._start()
                return self._first(flat)

    @checked(rounds=WHOLE)
    def report(self, rounds: int = 30) -> NetworkReport:
        """Where the time goes for the example's sizes: docs/networks.md."""
        if rounds < 1:
            raise CanvasError(f"rounds is from 1 on, not {rounds}")
        size = self._example_size()
        return report_of(size, self._weights(size), _pytree.tree_leaves(self._example), rounds)

    @checked(folder=PATH, name=TEXT)
    def save(self, folder: str | os.PathLike[str], name: str | None = None) -> None:
        """C, weights and the network's text for the example's sizes in a new folder, to be built
        without Python: docs/deploy.md.  `name` is what its files and functions begin with (None:
        "model").  Raises CanvasError where a part stays in PyTorch.
        """
        with EXPORTING:
            size, flat = self._example_size(), _pytree.tree_leaves(self._example)
            if size.cut.views and not size.changes:
                size = self._specialization(*self._example, copies=True)
            if size.changes:
                raise CanvasError(
                    f"the model changes '{size.changes[0]}' when it is called, and what is "
                    "saved only answers: leave that away"
                )
            if size.direct is None:
                left = "; ".join(size.cut.left) or "it answers an input or a weight as it is"
                raise CanvasError(
                    "only what is native code as a whole can be saved, and a part of this model "
                    f"stays in PyTorch: {left}"
                )
            weights = size.bind(self._weights(size))
            size.direct.part.check_form(weights)
            with torch.no_grad():
                wanted = size.direct.results_of(self._eager(flat, False))
            part = size.direct.part
            wanted = part.outputs_as_kept(wanted)
            given = part.forms_of(size.direct.inputs_of(flat))
            name = part.network.name if name is None else name
            save_network(part.network, weights, given, wanted, folder, name)

    @property
    def text(self) -> str:
        """What was compiled for the example's sizes, as a network's text; where PyTorch has a part
        of the graph, one text for each native part.
        """
        return "\n".join(part.network.text for part in self._example_size().parts)

    def forget(self) -> None:
        """Weights are packed anew: for changes of few elements that torch does not count, through
        ``.data`` or ``.numpy()``.
        """
        with EXPORTING:
            for size in self._sizes.values():
                for part in size.parts:
                    part.forget()

    def __copy__(self) -> Any:
        return self.__deepcopy__({})

    def __deepcopy__(self, _memory: Any) -> Any:
        raise CanvasError("a compiled network is not copied: copy the model and compile that")

    def __reduce__(self) -> Any:
        raise CanvasError("a compiled network is not pickled: pickle the model, or use .save()")

    def __repr__(self) -> str:
        return f"CompiledNetwork({type(self.model).__name__}: {self._arguments})"

    # ---- sizes ----------------------------------------------------------------------------------

    def _start(self) -> None:
        """The model as it is now; nothing is compiled of it yet."""
        state = ModelState(self.model)
        state.check_training()
        check_weights(self.model)
        self._sizes: dict[Any, Specialization] = {}
        self._ready: dict[Any, _Ready] = {}
        self._last = None
        self._state = state

    def _first(self, flat: Sequence[Any]) -> Any:
        """A call whose inputs are of other sizes, or lie in memory in another way, than before."""
        with EXPORTING:
            if not self._state.same():
                self._start()
            self._arguments.check(flat)
            if torch.is_grad_enabled():
                check_gradients(self._arguments.names, flat)
            try:
                return self._prepared(flat)
            except OtherWeights:
                self._start()
                return self._prepared(flat)

    def _prepared(self, flat: Sequence[Any]) -> Any:
        size, layout = self._size(flat), (torch.is_grad_enabled(), layout_of(flat))
        weights, rebuild = self._weights(size), _rebuild(size.lifted.out_spec)
        try:
            results, strides = size.first(weights, flat, self._eager)
        except CanvasError:
            raise
        except Exception:  # PyTorch's own, of a model that does not run as it is now
            self._start()
            raise
        bound, known = size.bind(weights), KnownLayout(flat, size.in_form)
        ready = _Ready(self._state, size, bound, strides, rebuild, layout[0], known)
        for part in size.parts:
            part.keep_layout()
        if len(self._ready) >= LAYOUTS:
            del self._ready[next(iter(self._ready))]
        self._ready[layout] = self._last = ready
        return rebuild(results)

    def _example_size(self) -> Specialization:
        with EXPORTING:
            if not self._state.same():
                self._start()
            return self._size(_pytree.tree_leaves(self._example))

    def _size(self, flat: Sequence[Any]) -> Specialization:
        key = sizes_of(flat)
        size = self._sizes.get(key)
        if size is not None and not size.fits(flat):  # PyTorch's part of it is for one layout
            key = layout_of(flat)
            size = self._sizes.get(key)
        if size is None:
            if len(self._sizes) >= SIZES:
                self._drop()
            args, kwargs = _pytree.tree_unflatten(list(flat), self._arguments.spec)
            try:
                size = self._specialization(args, kwargs)
            except CannotExport:
                self._check_runs(args, kwargs)
                raise
            size.buffers.follow = self._state.follow
            if not self._shown:
                notify(size.cut.notice())
            self._shown = True
            self._sizes[key] = size
            self._state.watch(size.written)
        size.used = next(self._clock)
        return size

    def _specialization(self, args: Any, kwargs: Any, copies: bool = False) -> Specialization:
        names = self._arguments.names
        return Specialization(self.model, args, kwargs, self._options, names, copies=copies)

    def _check_runs(self, args: Any, kwargs: Any) -> None:
        """An error of the call itself is reported as such, not by PyTorch's exporter."""
        try:
            with torch.no_grad():
                self.model(*args, **kwargs)
        except Exception as error:  # whatever the code of a stranger's model raises
            given = str(self._arguments) or "no input"
            raise CanvasError(
                f"the model cannot be called with {given}: {one_line(error)}"
            ) from None

    def _drop(self) -> None:
        oldest = min(self._sizes, key=lambda key: self._sizes[key].used)
        size = self._sizes.pop(oldest)
        self._ready = {key: row for key, row in self._ready.items() if row.size is not size}
        self._last = None

    def _weights(self, size: Specialization) -> list[Any]:
        """The tensors that the graph's weights stand for, as they are now; the graph's own
        constants.
        """
        found = [self._state.tensor(name) for name in size.lifted.weights]
        return [own if now is None else now for own, now in zip(size.lifted.tensors, found)]

    def _eager(self, flat: Sequence[Any], double: bool) -> list[Any]:
        model = copy.deepcopy(self.model).double() if double else self.model
        args, kwargs = _pytree.tree_unflatten(list(flat), self._arguments.spec)
        return _pytree.tree_leaves(model(*args, **kwargs))


def _rebuild(spec: Any) -> Callable[[list[Any]], Any]:
    """What makes the model's answer of its leaves."""
    if spec.is_leaf():
        return _only
    if spec.type is tuple and all(child.is_leaf() for child in spec.children()):
        return tuple
    return lambda leaves: _pytree.tree_unflatten(leaves, spec)


def _only(leaves: list[Any]) -> Any:
    return leaves[0]


@checked()
def compile(
    model: nn.Module,
    example_input: Any,
    *,
    threads: int = 1,
    log: str | os.PathLike[str] | None = None,
    check: bool = True,
    winograd: bool | int = False,
) -> CompiledNetwork:
    """Compile a model in evaluation mode to native code for this machine, for inference.

    Returns a callable with the signature of the model.  `example_input`: a tensor, or a tuple or
    dict of arguments, as the model takes them.  `threads`: threads of large calls.  `log`: a
    tuning log (docs/tune.md) whose schedules are used.  `check`: compare the first call of each
    input size with PyTorch.  `winograd`: allow Winograd for 3x3 convolutions, in tiles of 2 (True
    or 2) or also 4, which round more.

    Unsupported operators run in PyTorch; a line on standard error names them.  Raises CanvasError
    if the model cannot be exported, is not on the CPU or is in training mode, or if no C compiler
    works.
    """
    if not isinstance(model, nn.Module):
        raise CanvasError(f"model must be a torch.nn.Module, not {shown(model)}")
    if isinstance(model, torch.jit.ScriptModule):
        raise CanvasError("model is a TorchScript module: give the nn.Module that it was made of")
    return CompiledNetwork(model, example_input, options_of(threads, log, check, winograd))
