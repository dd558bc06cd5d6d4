"""What a network takes for some examples: one tensor, several, or named ones.

All tensors have the examples along their first axis, so that examples can be cut out and put
together again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn

from .arguments import shown
from .errors import CanvasError


@dataclass(frozen=True)
class Inputs:
    """The arguments of a network, tensors [N, ...], by place and by name."""

    args: tuple[Tensor, ...] = ()
    named: Mapping[str, Tensor] = field(default_factory=dict)

    @classmethod
    def of(cls, value: Any) -> Inputs:
        """A tensor, a tuple or list of them, or a dict of named ones.

        Raises CanvasError for anything else, and where they are not of equally many examples.
        """
        if isinstance(value, Inputs):
            return value
        if isinstance(value, Tensor):
            found = cls((value,))
        elif isinstance(value, (tuple, list)):
            found = cls(tuple(value))
        elif isinstance(value, Mapping):
            found = cls((), dict(value))
        else:
            raise CanvasError(
                "the inputs of a batch are a tensor, a tuple or a dict of tensors, not "
                f"{shown(value)}: give the task inputs=, a function of the batch"
            )
        for tensor in found.tensors:
            if not isinstance(tensor, Tensor):
                raise CanvasError(
                    f"the inputs of a batch hold {shown(tensor)}, where only tensors can be: give "
                    "the task inputs=, a function of the batch"
                )
        counts = {len(tensor) if tensor.ndim else 0 for tensor in found.tensors}
        if len(counts) != 1 or 0 in counts:
            raise CanvasError(
                "the inputs of a batch need the same number of examples along their first axis, "
                f"not {', '.join(str(list(t.shape)) for t in found.tensors) or 'no tensor'}"
            )
        return found

    @property
    def tensors(self) -> tuple[Tensor, ...]:
        return (*self.args, *self.named.values())

    def __len__(self) -> int:
        return len(self.tensors[0])

    def __getitem__(self, at: slice | Tensor) -> Inputs:
        return Inputs(
            tuple(tensor[at] for tensor in self.args),
            {name: tensor[at] for name, tensor in self.named.items()},
        )

    def split(self, size: int) -> Iterator[Inputs]:
        """Parts of `size` examples; the last may be smaller."""
        for start in range(0, len(self), size):
            yield self[start : start + size]

    def to(self, device: torch.device) -> Inputs:
        return Inputs(
            tuple(tensor.to(device) for tensor in self.args),
            {name: tensor.to(device) for name, tensor in self.named.items()},
        )

    def call(self, network: Any) -> Any:
        """What a network gives for them."""
        return network(*self.args, **self.named)

    @property
    def example(self) -> Any:
        """As canvas.convert and canvas.compile take an example."""
        if self.named:
            return dict(self.named)
        return self.args[0] if len(self.args) == 1 else self.args

    @property
    def bytes_each(self) -> int:
        """Of one example."""
        return sum(t.element_size() * t[0].numel() for t in self.tensors)

    @property
    def form(self) -> list[list[Any]]:
        """Of each tensor its name ("" by place), the dimensions of one example, its type; as JSON
        has it.
        """
        every = [*(("", tensor) for tensor in self.args), *self.named.items()]
        return [
            [name, list(tensor.shape[1:]), str(tensor.dtype).removeprefix("torch.")]
            for name, tensor in every
        ]

    @classmethod
    def of_form(
        cls, form: Sequence[Any], count: int, noise: torch.Generator | None = None
    ) -> Inputs:
        """Examples of that form: zeros, or numbers between 0 and 1 where they are floats."""
        args: list[Tensor] = []
        named: dict[str, Tensor] = {}
        for name, dims, dtype in form:
            kind = getattr(torch, dtype)
            tensor = torch.zeros(count, *dims, dtype=kind)
            if noise is not None and kind.is_floating_point:
                tensor = torch.rand(count, *dims, dtype=kind, generator=noise)
            if name:
                named[name] = tensor
            else:
                args.append(tensor)
        return cls(tuple(args), named)

    def same_form(self, other: Inputs) -> bool:
        """Whether examples of both can stand beside each other."""
        forms = [
            [(name, tensor.shape[1:], tensor.dtype) for name, tensor in one._keyed()]
            for one in (self, other)
        ]
        return forms[0] == forms[1]

    def _keyed(self) -> list[tuple[Any, Tensor]]:
        return [*enumerate(self.args), *self.named.items()]


def join(parts: Sequence[Inputs]) -> Inputs:
    """The examples of all parts; raises CanvasError where their shapes differ."""
    for part in parts:
        if not part.same_form(parts[0]):
            shapes = [[list(t.shape[1:]) for t in one.tensors] for one in (parts[0], part)]
            raise CanvasError(
                f"examples have inputs of {shapes[0]} and of {shapes[1]}: a fit takes examples of "
                "one size"
            )
    return Inputs(
        tuple(torch.cat(tensors) for tensors in zip(*(part.args for part in parts))),
        {name: torch.cat([part.named[name] for part in parts]) for name in parts[0].named},
    )


def call(network: nn.Module, given: Tensor | Inputs) -> Any:
    """What a network gives for a tensor, or for inputs of any form."""
    return given.call(network) if isinstance(given, Inputs) else network(given)


# ---- outputs of any form ------------------------------------------------------------------------


def tensors_of(outputs: Any) -> list[Tensor]:
    """The tensors in an output: a tensor, or tuples, lists and dicts of outputs, in order."""
    if isinstance(outputs, Tensor):
        return [outputs]
    if isinstance(outputs, Mapping):
        return [tensor for value in outputs.values() for tensor in tensors_of(value)]
    if isinstance(outputs, (tuple, list)):
        return [tensor for value in outputs for tensor in tensors_of(value)]
    return []


def map_tensors(change: Callable[[Tensor], Tensor], value: Any) -> Any:
    """A batch of tuples, lists and dicts with `change` of each tensor."""
    if isinstance(value, Tensor):
        return change(value)
    if isinstance(value, Mapping):
        return {name: map_tensors(change, part) for name, part in value.items()}
    if isinstance(value, (tuple, list)) and not hasattr(value, "_fields"):
        return type(value)(map_tensors(change, part) for part in value)
    return value
