"""A part of a graph as one native network: its weights are packed again when they change, its
inputs brought into the form that the code reads.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from ..aten.memory_order import Order, restoring
from ..errors import CanvasError
from .locks import PACKING
from .native_network import DTYPES, NativeNetwork
from .watched_weights import WatchedWeights, check_numbers

KEPT = 4  # states of the weights that stay packed: several modules may share one graph

State = tuple[WatchedWeights, Any, Any]  # the weights, packed, for this network


class OtherWeights(CanvasError):
    """A weight has become one of another type or other sizes, through ``.data``."""


class NativePart(nn.Module):
    """Called with all that the part reads, weights too.  `roles`: for each argument the name of
    the weight that it is, or None; `order`: for each weight of the network the place of its
    argument, or the tensor where it is a constant; `strides`: those in which PyTorch wants an
    output, None: as it comes; `made`: words for weights that are none of the model's; `orders`: of
    the axes of the network's inputs and outputs, as they lie in memory; `named`: what messages
    call each argument.
    """

    def __init__(
        self,
        network: NativeNetwork,
        roles: Sequence[str | None],
        order: Sequence[int | Tensor],
        strides: Sequence[tuple[int, ...] | None],
        alone: bool,
        made: Mapping[str, str],
        orders: tuple[Sequence[Order], Sequence[Order]],
        named: Sequence[str],
    ) -> None:
        super().__init__()
        self.network = network
        held = [place if isinstance(place, int) else None for place in order]
        self.names = ["a constant" if at is None else roles[at] or "" for at in held]
        self._words = [made.get(name, f"weight '{name}'") for name in self.names]
        self._in_code = [name in made for name in self.names]
        self._order = list(order)
        self._given = [place for place, role in enumerate(roles) if role is None]
        input_orders, self._output_orders = orders
        given = [named[place] for place in self._given]
        rows = zip(network.inputs, input_orders, given)
        self._forms = [_form(row, order, name) for row, order, name in rows]
        back = [restoring(order) for order in self._output_orders]
        self._back = back if any(back) else None
        self._strides = strides if any(strides) else None
        self._alone = alone
        self._states: list[State] = []
        self._lie: list[Any] | None = None

    def __call__(self, *given: Any) -> Any:
        results = self.run(self.weights_of(given), self.inputs_of(given))
        if self._strides is not None:
            results = [in_strides(y, s) for y, s in zip(results, self._strides)]
        return results[0] if self._alone else tuple(results)

    def weights_of(self, given: Sequence[Any]) -> list[Any]:
        return [given[at] if isinstance(at, int) else at for at in self._order]

    def inputs_of(self, given: Sequence[Any]) -> list[Any]:
        return [given[place] for place in self._given]

    def run(
        self, weights: list[Tensor], inputs: Sequence[Tensor], in_form: bool = False
    ) -> list[Tensor]:
        """Weights and inputs are the network's, in its order; `in_form`: the method of that
        name returned True for inputs of this layout.
        """
        network = self.network.here()
        if network is not self.network:
            self.network = network
        given = inputs if in_form else self.forms_of(inputs)
        results = network.run(self._packed(network, weights), given)
        if self._back is None:
            return results
        return [y if order is None else y.permute(order) for y, order in zip(results, self._back)]

    def forms_of(self, inputs: Sequence[Tensor]) -> list[Tensor]:
        """The inputs as the code reads them."""
        return [form(tensor) for form, tensor in zip(self._forms, inputs)]

    def in_form(self, inputs: Sequence[Tensor]) -> bool:
        """Whether the code can read these inputs where they are, and others that lie so; indices
        are looked at in every call.
        """
        rows = zip(self.network.inputs, self._forms, inputs)
        return all(
            row[1] != "i32" and form(tensor).data_ptr() == tensor.data_ptr()
            for row, form, tensor in rows
        )

    def outputs_as_kept(self, outputs: Sequence[Tensor]) -> list[Tensor]:
        """The outputs as the code writes them."""
        pairs = zip(outputs, self._output_orders)
        return [y if order is None else y.permute(order) for y, order in pairs]

    def _packed(self, network: Any, weights: list[Tensor]) -> Any:
        for watched, packed, of in self._states:
            if of is network and watched.same(weights):
                return packed
        with PACKING:
            self.check_form(weights)
            if self._lie is not None and _strides_of(weights) != self._lie:
                raise OtherWeights("weights lie in memory otherwise than when it was compiled")
            held = [at for at, place in enumerate(self._order) if isinstance(place, int)]
            # a number in the code may be NaN, as what is written where a mask holds
            held = [at for at in held if weights[at].ndim or not self._in_code[at]]
            check_numbers([weights[at] for at in held], [self._words[at] for at in held])
            macs = sum(call[2] for call in network.calls)
            watched = WatchedWeights(weights, self.names, macs)
            packed = network.pack(weights)
            kept = [state for state in self._states if not _shares(state, weights)]
            self._states = [(watched, packed, network), *kept][:KEPT]
        return packed

    def check_form(self, weights: Sequence[Tensor]) -> None:
        for name, weight, row in zip(self.names, weights, self.network.weights):
            dtype, shape = DTYPES[row[2]], tuple(row[3])
            if weight.dtype != dtype or weight.shape != shape:
                raise OtherWeights(
                    f"weight '{name}' is of {weight.dtype} {list(weight.shape)} now, compiled for "
                    f"{dtype} {list(shape)}: compile the model again"
                )
            if not weight.data_ptr():
                raise CanvasError(f"weight '{name}' has no memory: its storage was resized")

    def keep_layout(self) -> None:
        """Weights lie in memory as in the last call from now on: PyTorch's outputs follow."""
        for watched, _, _ in self._states[:1]:
            self._lie = _strides_of(watched.weights)

    def packed(self) -> Any:
        """The weights as they were packed last; there has been a call."""
        return self._states[0][1]

    def forget(self) -> None:
        self._states = []


def _strides_of(tensors: Sequence[Tensor]) -> list[Any]:
    return [tensor.stride() for tensor in tensors]


def _shares(state: State, weights: Sequence[Tensor]) -> bool:
    """Whether a state is an older one of these weights."""
    return any(old is new for old, new in zip(state[0].weights, weights))


def _form(row: Any, order: Order, name: str) -> Callable[[Tensor], Tensor]:
    """What brings a tensor into the form of an input of the network."""
    dtype = DTYPES[row[1]]
    if dtype != torch.int32:
        return _contiguous if order is None else lambda x: _contiguous(x.permute(order))
    least, most = row[3], row[4]

    def whole(tensor: Tensor) -> Tensor:
        low, high = (int(end) for end in tensor.aminmax())
        if low < least or high > most:
            raise CanvasError(
                f"input '{name}' holds indices from {low} to {high}, outside of {least} to {most}"
            )
        return tensor.to(torch.int32).contiguous()

    return whole


def _contiguous(tensor: Tensor) -> Tensor:
    """Row-major, its sign in memory: a view of PyTorch may leave that to who reads it, and zeros
    that derivatives are made of have no memory.
    """
    if tensor._is_zerotensor():
        return torch.zeros(tensor.shape, dtype=tensor.dtype, device=tensor.device)
    tensor = tensor if tensor.is_contiguous() else tensor.contiguous()
    return tensor.resolve_neg() if tensor.is_neg() else tensor


def in_strides(tensor: Tensor, strides: tuple[int, ...] | None) -> Tensor:
    """The same elements in memory as PyTorch would lay them out, gaps and all; those that share
    memory there are equal.
    """
    if strides is None or tensor.stride() == strides:
        return tensor
    if all(a == b or n == 1 for a, b, n in zip(tensor.stride(), strides, tensor.shape)):
        return tensor.as_strided(tensor.shape, strides)
    made = torch.empty_strided(tensor.shape, strides, dtype=tensor.dtype, device=tensor.device)
    once = tuple(slice(1) if stride == 0 else slice(None) for stride in strides)
    made[once].copy_(tensor[once])
    return made
