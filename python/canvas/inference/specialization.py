"""A module compiled for inputs of certain sizes: its graph, the native parts, and the strides in
which PyTorch gives its outputs.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils import _pytree

from ..aten.memory_order import Order, memory_order
from ..errors import CanvasError
from . import lowering
from .after_fork import FORK, on_one_thread
from .arguments_flat import layout_of
from .buffer_updates import BufferUpdates
from .compile_options import Options
from .cut_graph import Cut, cut_graph, part_program
from .direct_part import direct_of
from .lifted_graph import LiftedGraph, lift_graph
from .memory_bound import check_elements, check_memory, has_fixed_sizes, row_major_bytes
from .native_network import NotCompiled
from .native_part import NativePart, in_strides
from .notices import notify
from .overlap import has_memory, overlap, overlaps_itself
from .verify_first_call import FACTOR, FACTOR_IN_TILES, verify_outputs

_SHARED = (
    "'{}' and '{}' share memory, and the model changes one of them in place: "
    "give it a copy, .clone()"
)
UNCHECKED = (
    "canvas: in a child of a fork the first call of a size is not compared with PyTorch, whose "
    "threads are not there"
)

Strides = Sequence["tuple[int, ...] | None"]
Eager = Callable[[Sequence[Any], bool], Sequence[Any]]  # inputs, whether in float64 -> outputs


class Specialization:
    """Weights are the tensors of `lifted.weights`, inputs all leaves of the arguments, whose
    `names` are those in messages, the results all leaves of the outputs; with `copies` none
    of them is a view of an input.
    """

    def __init__(
        self,
        module: nn.Module,
        args: Sequence[Any],
        kwargs: Mapping[str, Any],
        options: Options,
        names: Sequence[str],
        what: str = "the model",
        copies: bool = False,
    ) -> None:
        self.options = options
        given = row_major_bytes(_pytree.tree_leaves((tuple(args), dict(kwargs))))
        check_memory(f"the inputs of {what} take", given)
        self.lifted: LiftedGraph = lift_graph(module, args, kwargs, what)
        self._names = dict(zip(self.lifted.inputs, names))
        if self.lifted.mutated:
            self._check_apart(
                self.lifted.tensors, _pytree.tree_leaves((tuple(args), dict(kwargs)))
            )
        self.cut: Cut = cut_graph(self.lifted, lowering.unsupported, lowering.constant, copies)
        made = row_major_bytes(self.lifted.made_values(self.cut.views))
        check_memory(f"the outputs of {what} take", made)
        answers = self.lifted.output_values()[len(self.lifted.mutated) :]
        self._fixed = [has_fixed_sizes(value) for value in answers]
        self._expected = [_strides(value) if has_fixed_sizes(value) else None for value in answers]
        self.written: list[str] = []  # weights that the text has as numbers
        self.parts = self._native_parts()
        check_memory(f"{what} needs", given + sum(part.network.memory() for part in self.parts))
        for name, part in zip(self.cut.parts, self.parts):
            setattr(self.cut.outer, name, part)
        self._forward = self.cut.outer.forward
        self._mutated = self.lifted.mutated
        self.buffers = BufferUpdates(module, self.lifted.rebound, self.lifted.weights)
        self.direct = None if self.changes else direct_of(self.cut, self.lifted)
        leaves = _pytree.tree_leaves((tuple(args), dict(kwargs)))
        self._layout, self._orders = layout_of(leaves), _orders(leaves)
        self.used = 0

    @property
    def changes(self) -> list[str]:
        """The weights and inputs that a call changes, in place or by giving others."""
        return [*self.lifted.mutated, *self.lifted.rebound]

    def fits(self, inputs: Sequence[Any]) -> bool:
        """Whether the inputs have the memory format that was compiled.  Native code expects that
        order of axes and copies other inputs; PyTorch operators of the graph need the exact
        layout.
        """
        if self.cut.left or self.cut.views:
            return layout_of(inputs) == self._layout
        return _orders(inputs) == self._orders

    def bind(self, weights: Sequence[Any]) -> Any:
        """What `run` wants of the weights; of the same tensors it need not be made again."""
        if self.direct is None:
            return weights
        return self.direct.part.weights_of(self.direct.given(weights, self.lifted.inputs))

    def in_form(self, inputs: Sequence[Any]) -> bool:
        """Whether native code can read inputs that lie in memory as these where they are."""
        return self.direct is not None and self.direct.part.in_form(self.direct.inputs_of(inputs))

    def run(
        self, bound: Any, inputs: Sequence[Any], strides: Strides, in_form: bool = False
    ) -> list[Any]:
        """What the module changes is changed; `strides` are of outputs and of new buffers, empty
        where all come as they should lie; `in_form`: the method of that name returned True.
        """
        if FORK.child:
            with on_one_thread():
                return self._run(bound, inputs, strides, in_form)
        return self._run(bound, inputs, strides, in_form)

    def _run(
        self, bound: Any, inputs: Sequence[Any], strides: Strides, in_form: bool
    ) -> list[Any]:
        if self.direct is not None:
            results = self.direct.run(bound, inputs, in_form)
            return _laid_out(results, strides) if strides else results
        weights = self.buffers.current_weights(bound)
        if self._mutated:
            self._check_apart(weights, inputs)
        with torch.no_grad():
            results = [_no_weight(y, inputs) for y in self._forward(*weights, *inputs)]
            if self._mutated:
                results = self._write_back(weights, inputs, results)
            results = _laid_out(results, strides)
        if self.lifted.rebound:
            outputs = len(results) - len(self.lifted.rebound)
            self.buffers.set(results[outputs:])
            results = results[:outputs]
        return results

    def first(
        self, weights: Sequence[Any], inputs: Sequence[Any], eager: Eager
    ) -> tuple[list[Any], Strides]:
        """A call with inputs that lie in memory as none before: PyTorch runs on them, too, and
        gives the strides of its outputs.  In a child of a fork it might wait for ever.
        """
        if self._mutated:
            self._check_apart(weights, inputs)
        if FORK.child:
            notify(UNCHECKED if self.options.check else "")
            return self._placed(self.bind(weights), inputs, self._expected)
        given, exact = self._copies(inputs), self._copies(inputs)
        changed = [weights[at] for at in self._changed(self.lifted.weights)]
        with torch.no_grad(), torch.random.fork_rng(devices=[]), self.unchanged(weights):
            wanted = list(eager(given, False))
            rebound = self.buffers.tensors()
            wanted_changes = [given[at] for at in self._changed(self.lifted.inputs)]
            wanted_changes += [weight.clone() for weight in changed]
        found = [
            _strides(value) if fixed else None
            for value, fixed in zip((*wanted, *rebound), self._fixed)
        ]
        results, strides = self._placed(self.bind(weights), inputs, found)
        if self.options.check:
            inputs_changed = [inputs[at] for at in self._changed(self.lifted.inputs)]
            got = [*results, *inputs_changed, *changed, *self.buffers.tensors()]
            names = [*map(str, range(len(results))), *self._changed_names(), *self.lifted.rebound]
            factor = FACTOR_IN_TILES if self.options.winograd == 4 else FACTOR
            reference = functools.partial(self._exact, eager, exact)
            verify_outputs(names, got, [*wanted, *wanted_changes, *rebound], reference, factor)
        return results, strides

    def _placed(
        self, bound: Any, inputs: Sequence[Any], strides: Strides
    ) -> tuple[list[Any], Strides]:
        """The results in these strides; no strides where they come in them every time."""
        if self.direct is None:
            return self.run(bound, inputs, strides), strides
        found = self.direct.run(bound, inputs, False)
        results = _laid_out(found, strides)
        strides = strides if any(map(operator.is_not, results, found)) else []
        return results, strides

    @contextmanager
    def unchanged(self, weights: Sequence[Any]) -> Iterator[None]:
        """Calls within change nothing of the model."""
        held = self.buffers.tensors()
        changed = [weights[at] for at in self._changed(self.lifted.weights)]
        before = [weight.clone() for weight in changed]
        try:
            yield
        finally:
            self.buffers.set(held)
            with torch.no_grad():
                for weight, value in zip(changed, before):
                    weight.copy_(value)

    def _copies(self, inputs: Sequence[Any]) -> list[Any]:
        """The inputs for a run that may change them."""
        if not self._mutated:
            return list(inputs)
        return [_copied(value) for value in inputs]

    def _exact(self, eager: Eager, inputs: list[Any]) -> Sequence[Any] | None:
        """PyTorch's result in float64; None where the model cannot be run in it, or draws or
        changes something.
        """
        if self.changes:
            return None
        double = [
            value.double() if isinstance(value, Tensor) and value.is_floating_point() else value
            for value in inputs
        ]
        try:
            with torch.no_grad(), torch.random.fork_rng(devices=[]):
                return eager(double, True)
        except Exception:  # whatever the code of a stranger's model raises
            return None

    def _changed(self, names: Sequence[str]) -> list[int]:
        return [names.index(name) for name in self._mutated if name in names]

    def _changed_names(self) -> list[str]:
        """Inputs first, then weights."""
        names = [self.lifted.inputs, self.lifted.weights]
        return [self._named(group[at]) for group in names for at in self._changed(group)]

    def _named(self, name: str) -> str:
        """An input as its caller calls it, a weight as the model does."""
        return self._names.get(name, name)

    def _write_back(
        self, weights: Sequence[Any], inputs: Sequence[Any], results: list[Any]
    ) -> list[Any]:
        places = {**dict(zip(self.lifted.inputs, inputs))}
        places.update(zip(self.lifted.weights, weights))
        for name, value in zip(self._mutated, results):
            places[name].copy_(value)
        return results[len(self._mutated) :]

    def _check_apart(self, weights: Sequence[Any], inputs: Sequence[Any]) -> None:
        """What is changed in place has memory of its own, and each of its elements has: the graph
        reads others as they were.
        """
        names = [*self.lifted.weights, *self.lifted.inputs]
        changed = set(self.lifted.mutated)
        memory: dict[int, list[tuple[str, Any]]] = {}
        for name, value in zip(names, [*weights, *inputs]):
            if not has_memory(value):
                continue
            if name in changed and overlaps_itself(value):
                raise CanvasError(
                    f"elements of '{self._named(name)}' share memory, as those of .expand(), and "
                    "the model changes it in place: give it a copy, .contiguous()"
                )
            others = memory.setdefault(value.untyped_storage().data_ptr(), [])
            for other, tensor in others:
                if {name, other} & changed and overlap(value, tensor):
                    raise CanvasError(_SHARED.format(self._named(other), self._named(name)))
            others.append((name, value))
        given = list(zip(self.lifted.inputs, inputs))
        for name, value in zip(names, [*weights, *inputs]):
            for other, tensor in given if name in changed else ():
                if other != name and overlap(value, tensor):
                    raise CanvasError(_SHARED.format(self._named(other), self._named(name)))

    def _native_parts(self) -> list[NativePart]:
        """What the compiler does not compile stays in PyTorch."""
        parts = []
        for name, node in list(self.cut.parts.items()):
            try:
                parts.append(self._native(node))
            except NotCompiled as error:
                self.cut.give_up(name, str(error))
        return parts

    def _native(self, node: Any) -> NativePart:
        sub = getattr(self.cut.outer, node.target)
        alone = not isinstance(sub.graph.output_node().args[0], (tuple, list))
        for computed in sub.graph.nodes:
            check_elements(computed.name, computed.meta.get("val"))
        exported, roles = part_program(self.lifted, node)
        lowered = lowering.lower(
            exported, self.options.threads, self.options.log, self.options.winograd
        )
        network = lowered.network
        own = dict(zip(self.lifted.weights, self.lifted.tensors))
        places = {_identity(own[name]): at for at, name in enumerate(roles) if name}
        read = [lowered.tensors[row[0]] for row in network.weights]
        order = [places.get(_identity(tensor), tensor) for tensor in read]
        read_at = {place for place in order if isinstance(place, int)}
        self.written += [name for at, name in enumerate(roles) if name and at not in read_at]
        strides = [_strides_read(node, place, alone) for place in range(len(network.outputs))]
        orders = (lowered.input_orders, lowered.output_orders)
        named = [self._named(given.name) for given in node.args]
        return NativePart(network, roles, order, strides, alone, self.lifted.made, orders, named)


def _copied(value: Any) -> Any:
    """A tensor that lies as this one does, with the gaps between its elements."""
    if not isinstance(value, Tensor) or value.layout != torch.strided or not value.numel():
        return value.clone() if isinstance(value, Tensor) else value
    span = 1 + sum((n - 1) * step for n, step in zip(value.shape, value.stride()))
    line = value.detach().as_strided((span,), (1,)).clone()
    return line.as_strided(value.shape, value.stride(), 0)


def _identity(tensor: Tensor) -> Any:
    """Equal for tensors that are the same elements of the same memory."""
    return (tensor.data_ptr(), tuple(tensor.shape), tensor.stride(), tensor.dtype)


def _orders(inputs: Sequence[Any]) -> list[Order]:
    return [memory_order(value) if isinstance(value, Tensor) else None for value in inputs]


def _laid_out(results: list[Any], strides: Strides) -> list[Any]:
    return [
        y if s is None or y.stride() == s else in_strides(y, s) for y, s in zip(results, strides)
    ]


def _no_weight(value: Any, inputs: Sequence[Any]) -> Any:
    """A weight that is returned as it is carries no gradient, as no output does; an input is
    itself.
    """
    if not isinstance(value, nn.Parameter) or any(value is given for given in inputs):
        return value
    return value.detach()


def _strides(value: Any) -> tuple[int, ...] | None:
    dense = isinstance(value, Tensor) and value.layout == torch.strided
    return tuple(value.stride()) if dense else None


def _strides_read(node: Any, place: int, alone: bool) -> tuple[int, ...] | None:
    """How PyTorch's operators that read an output of a part expect it in memory."""
    if alone:
        value, users = node.meta.get("val"), node.users
    else:
        found = [user for user in node.users if user.args[1] == place]
        value = found[0].meta.get("val") if found else None
        users = [other for user in found for other in user.users]
    if not isinstance(value, Tensor) or all(user.op == "output" for user in users):
        return None
    return tuple(value.stride())
