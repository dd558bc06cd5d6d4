"""The arguments of a call as a flat list, as those of the example were, and what is wrong with
them.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils import _pytree

from .. import _core
from ..arguments import shown
from ..errors import CanvasError
from . import tensor_access
from .transforms import check_plain

Given = tuple[tuple[Any, ...], dict[str, Any]]


def example_of(example_input: Any) -> Given:
    """A tensor is the one argument, a tuple or list are several, a dict are named ones."""
    if isinstance(example_input, Mapping):
        return (), dict(example_input)
    if isinstance(example_input, (tuple, list)) and not hasattr(example_input, "_fields"):
        return tuple(example_input), {}
    return (example_input,), {}


class FlatArguments:
    def __init__(self, model: nn.Module, given: Given) -> None:
        self._model, self._example = model, given
        flat, self.spec = _pytree.tree_flatten(given)
        self._wanted = flat_kinds(flat)
        self.names = _names(model, given)
        for name, value in zip(self.names, flat):
            check_leaf(name, value)
        _check_example(flat)
        # Calls with so many tensors and nothing else are flat already.
        tensors = not given[1] and all(isinstance(value, Tensor) for value in given[0])
        self.plain = len(given[0]) if tensors else -1

    def flatten(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[Any]:
        flat, spec = _pytree.tree_flatten((args, kwargs))
        if spec == self.spec:
            return flat
        args, kwargs = self._arranged(args, kwargs)
        flat, spec = _pytree.tree_flatten((args, kwargs))
        if spec != self.spec:
            raise CanvasError(f"arguments differ in number or form from the example's, {self}")
        return flat

    def check(self, flat: Sequence[Any]) -> None:
        """Tensors are dense, on the CPU, of the example's type and sizes but for the first."""
        for name, value, wanted in zip(self.names, flat, self._wanted):
            check_leaf(name, value)
            if isinstance(wanted, Kind) != isinstance(value, Tensor):
                what = f"a tensor, {wanted}" if isinstance(wanted, Kind) else "no tensor"
                raise CanvasError(f"input '{name}' is {shown(value)}, compiled for {what}")
            if isinstance(wanted, Kind):
                wanted.check(name, value)

    def _arranged(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Given:
        """By position and by name as in the example, by the model's signature if it has one."""
        try:
            signature = inspect.signature(self._model.forward)
            bound = dict(signature.bind(*args, **kwargs).arguments)
            first = list(signature.bind(*self._example[0], **self._example[1]).arguments)
        except (TypeError, ValueError):
            return args, kwargs
        kinds = {p.kind for p in signature.parameters.values()}
        if kinds & {inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD}:
            return args, kwargs
        placed = first[: len(self._example[0])]
        named = {name: value for name, value in bound.items() if name not in placed}
        return tuple(bound[name] for name in placed if name in bound), {
            name: named[name] for name in [*self._example[1], *named] if name in named
        }

    def __str__(self) -> str:
        return ", ".join(f"{name} {kind}" for name, kind in zip(self.names, self._wanted))


class Kind:
    """What a tensor of the example was."""

    def __init__(self, tensor: Tensor) -> None:
        self.dtype, self.shape = tensor.dtype, tuple(tensor.shape)

    def check(self, name: str, tensor: Tensor) -> None:
        if tensor.dtype != self.dtype:
            raise CanvasError(f"input '{name}' is of {_dtype(tensor.dtype)}, compiled for {self}")
        shape = tuple(tensor.shape)
        if len(shape) != len(self.shape) or shape[1:] != self.shape[1:]:
            raise CanvasError(
                f"input '{name}' has sizes {list(shape)}, compiled for {self}: only the first, "
                "the batch, may differ"
            )

    def __str__(self) -> str:
        return f"{_dtype(self.dtype)} {list(self.shape)}"


def _is_numpy(value: Any) -> bool:
    return type(value).__module__.split(".")[0] == "numpy"


def _check_example(flat: Sequence[Any]) -> None:
    """Sizes are no example: what the model computes of numbers alone is no network."""
    if not flat or any(isinstance(value, Tensor) for value in flat):
        return
    sizes = [value for value in flat if isinstance(value, int) and value > 0]
    hint = "pass what the model is called with"
    if len(sizes) == len(flat) and len(flat) > 1:
        batch = sizes if len(sizes) != 3 else [1, *sizes]
        hint += f", such as torch.randn({', '.join(map(str, batch))})"
    raise CanvasError(f"example_input holds no tensor: {hint}")


def flat_kinds(flat: Sequence[Any]) -> list[Any]:
    return [Kind(value) if isinstance(value, Tensor) else value for value in flat]


def check_leaf(name: str, value: Any) -> None:
    if not isinstance(value, Tensor):
        if value is not None and not isinstance(value, (bool, int, float, str)):
            hint = ": torch.from_numpy makes a tensor of it" if _is_numpy(value) else ""
            raise CanvasError(
                f"input '{name}' is {shown(value)}, not a tensor, number or text{hint}"
            )
        return
    check_plain(f"input '{name}'", value)
    if value.device.type != "cpu":
        raise CanvasError(
            f"input '{name}' is on the device '{value.device}': compiled networks run on the CPU"
        )
    if value.layout != torch.strided:
        kind = "sparse" if "sparse" in str(value.layout) else f"of the layout {value.layout}"
        raise CanvasError(f"input '{name}' is {kind}: give a dense tensor, .to_dense()")
    if not value.numel():
        raise CanvasError(f"input '{name}' is empty, its sizes are {list(value.shape)}")


def check_gradients(names: Sequence[str], flat: Sequence[Any]) -> None:
    for name, value in zip(names, flat):
        if isinstance(value, Tensor) and value.requires_grad:
            raise CanvasError(
                f"input '{name}' requires a gradient, which a compiled network does not compute: "
                "call it under torch.no_grad(), or give .detach()"
            )


def layout_of(flat: Sequence[Any]) -> Any:
    """What decides which code a call takes and how its outputs lie in memory."""
    return tuple(
        [
            (
                type(value),
                value.dtype,
                value.shape,
                value.stride(),
                value.is_cpu,
                value.requires_grad,
            )
            if isinstance(value, Tensor) and value.layout == torch.strided
            else _value(value)
            for value in flat
        ]
    )


class KnownLayout:
    """Of inputs that were looked at before: whether others lie in memory so is known in half a
    microsecond.  `in_form`: such inputs are, for native code.
    """

    def __init__(self, flat: Sequence[Any], in_form: Callable[[Sequence[Any]], bool]) -> None:
        self._layouts = _core.call_layouts(flat, tensor_access.direct())
        self.in_form = bool(self._layouts) and in_form(flat)

    def fits(self, flat: Sequence[Any]) -> bool:
        """False also where that has to be looked up."""
        return _core.call_same_layouts(flat, tensor_access.direct(), self._layouts)


def sizes_of(flat: Sequence[Any]) -> Any:
    """As `layout_of`, wherever the elements lie."""
    return tuple(
        [
            (value.dtype, value.shape) if isinstance(value, Tensor) else _value(value)
            for value in flat
        ]
    )


def _value(value: Any) -> Any:
    """Numbers and texts are part of what is compiled; nothing else comes so far."""
    known = value is None or isinstance(value, (bool, int, float, str))
    return (type(value), repr(value)) if known else object()


def _dtype(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")


def _names(model: nn.Module, given: Given) -> list[str]:
    """Those of the parameters of `forward`, with what leads to a leaf of one: mask, states.0, and
    rest.0 of *rest.
    """
    try:
        parameters = list(inspect.signature(model.forward).parameters.values())
    except (TypeError, ValueError):
        parameters = []
    placed = [p.name for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    rest = next((p.name for p in parameters if p.kind == p.VAR_POSITIONAL), None)
    if rest is not None:
        placed += [f"{rest}.{at}" for at in range(len(given[0]) - len(placed))]
    found = []
    for path, _ in _pytree.tree_flatten_with_path(given)[0]:
        words = [str(getattr(key, "idx", getattr(key, "key", key))) for key in path]
        known = words[0] == "0" and int(words[1]) < len(placed)
        first = placed[int(words[1])] if known else words[1]
        found.append(".".join([first, *words[2:]]))
    return found
