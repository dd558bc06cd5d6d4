"""A model's modules once more, with the same parameters, buffers and attributes: PyTorch puts
other tensors into the modules that it exports, while other threads may call the model.

Attributes that are modules of the model, lists of them or methods of them become those of the
copy.  What code reaches in other ways, as a function that was made where the model is known, is
the model's own: `escaped` finds that afterwards.
"""

from __future__ import annotations

import types
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn
from torch._subclasses.fake_tensor import FakeTensor
from torch._subclasses.functional_tensor import FunctionalTensor


def shared_copy(model: nn.Module) -> nn.Module | None:
    """None where a module is no plain object of Python, or the model a graph, which has modules of
    its own.
    """
    modules = list(model.modules())
    kinds = (torch.jit.ScriptModule, torch.fx.GraphModule)
    if any(isinstance(module, kinds) for module in modules):
        return None
    copies: dict[int, Any] = {}
    for module in modules:
        copies[id(module)] = object.__new__(type(module))
    for module in modules:
        copy = copies[id(module)]
        vars(copy).update({name: _mapped(value, copies) for name, value in vars(module).items()})
        for name, value in _slots(module).items():
            object.__setattr__(copy, name, _mapped(value, copies))
    found: nn.Module = copies[id(model)]
    return found


def _mapped(value: Any, copies: dict[int, Any]) -> Any:
    """The value with the copies in place of modules; lists and dicts are new ones, once each."""
    if id(value) in copies:
        return copies[id(value)]
    if isinstance(value, types.MethodType) and id(value.__self__) in copies:
        return types.MethodType(value.__func__, copies[id(value.__self__)])
    if isinstance(value, dict) and type(value).__module__ in ("builtins", "collections"):
        copies[id(value)] = made = value.copy()
        made.update({key: _mapped(one, copies) for key, one in value.items()})
        return made
    if type(value) is list:
        copies[id(value)] = found = []
        found += [_mapped(one, copies) for one in value]
        return found
    if type(value) in (tuple, set):
        return type(value)(_mapped(one, copies) for one in value)
    return value


def _slots(module: nn.Module) -> dict[str, Any]:
    names = {
        name
        for kind in type(module).__mro__
        for name, member in vars(kind).items()
        if isinstance(member, types.MemberDescriptorType)
    }
    return {name: getattr(module, name) for name in names if hasattr(module, name)}


def escaped(model: nn.Module, exported: Any) -> bool:
    """Whether the code that was exported read tensors of the model itself: constants then."""
    buffers = dict(model.named_buffers(remove_duplicate=False))
    held = {_memory(tensor) for tensor in (*model.parameters(), *buffers.values())}
    return any(
        isinstance(value, Tensor) and name not in buffers and _memory(value) in held
        for name, value in exported.constants.items()
    )


def _memory(tensor: Tensor) -> Any:
    return tensor.untyped_storage().data_ptr() or tensor.data_ptr() or id(tensor)


@contextmanager
def without_fakes(model: nn.Module) -> Iterator[list[str]]:
    """What an export leaves in the model's own tables goes when it ends; then their names."""
    left: list[str] = []
    tables = [
        table
        for module in model.modules()
        for table in (module._parameters, module._buffers, vars(module))
    ]
    before: list[tuple[dict[str, Any], dict[str, Any]]] = [(t, dict(t)) for t in tables]
    try:
        yield left
    finally:
        for table, held in before:
            for name, value in list(table.items()):
                if isinstance(value, (FakeTensor, FunctionalTensor)):
                    left.append(name)
                    table.pop(name)
                    table.update({name: held[name]} if name in held else {})
