"""Finds out why an operator has no program, by writing it on a scratch writer with stand-ins for
the arguments. The partitioner uses it.
"""

from __future__ import annotations

import operator as python_operator
from typing import Any
from weakref import WeakKeyDictionary

import torch
from torch import Tensor
from torch.fx import Node

from ..errors import CanvasError, one_line
from .exporting import changes, is_held
from .graph import (
    FLOATS,
    WHOLE,
    bound,
    check_sizes,
    computed,
    dtype_of,
    is_constant,
    item_of,
    nodes_in,
    of_sizes,
    results_of,
    written,
)
from .values import Unsupported, Value
from .writer import Writer


def unsupported(node: Node) -> str | None:
    """Why a node of an exported graph has no program; None where it has one."""
    try:
        _try(node)
    except CanvasError as error:
        return str(error)
    except Exception as error:
        return f"its arguments are not understood ({one_line(error)})"
    return None


def _try(node: Node) -> None:
    if node.op != "call_function" or node.target is python_operator.getitem:
        return
    w = Writer()
    values: dict[Node, Any] = {}
    for arg in bound(node):
        for one in nodes_in(arg):
            values[one] = _stand_in(w, one)
    result = written(w, node, values)
    if isinstance(result, Tensor) and result.is_floating_point():
        w.value(result)
    if isinstance(result, list):
        for user in node.users:
            item_of(user, result)
    if any(isinstance(fake, Tensor) and fake.dtype == torch.bool for fake in results_of(node)):
        _check_bool(node)


def _stand_in(w: Writer, node: Node) -> Any:
    """A value for an argument: a constant where it is one, else an input or a weight."""
    fake = results_of(node)[0] if node.op == "placeholder" else node.meta.get("val")
    if node.op == "call_function":
        known = constant(node)
        if known is not None:
            return known
    if node.op == "get_attr":
        return getattr(node.graph.owning_module, str(node.target))
    if not isinstance(fake, Tensor):
        if node.op == "placeholder":
            raise Unsupported("an argument of it is no tensor")
        raise Unsupported("an argument of it is a size that is computed")
    check_sizes(node.name, fake)
    held = is_held(node)
    if fake.dtype in (*WHOLE, torch.bool) and changes(node):
        raise Unsupported(f"it reads {dtype_of(fake)} that forward changes")
    if fake.dtype in WHOLE:
        if held:
            return torch.zeros(tuple(fake.shape), dtype=fake.dtype)
        if node.op != "placeholder":
            raise Unsupported("it reads whole numbers that are computed, only inputs are known")
        return Value(node.name, tuple(fake.shape), given=True, dtype="i32")
    if fake.dtype == torch.bool:
        if node.op == "placeholder" and not held:
            raise Unsupported("it reads an input of bools")
        return Value(node.name, tuple(fake.shape), boolean=True)
    if fake.dtype != FLOATS:
        raise Unsupported(f"it reads {dtype_of(fake)}, only float32 is known")
    return Value(node.name, tuple(fake.shape))


_constants: WeakKeyDictionary[Node, Any] = WeakKeyDictionary()


def constant(node: Node) -> Any:
    """What PyTorch computes of no input and no weight; None where it is not so.  Of the bools and
    whole numbers that the model holds and does not change it is computed, too: here of zeros in
    their place, where they have an answer.
    """
    if node not in _constants:
        try:
            _constants[node] = _constant(node)
        except Exception:  # whatever PyTorch raises of zeros, as of a division
            _constants[node] = None
    return _constants[node]


def _constant(node: Node) -> Any:
    if node.op == "placeholder":
        return _held_zeros(node)
    if node.op != "call_function" or node.target is python_operator.getitem:
        return None
    from_sizes = of_sizes(node)
    values: dict[Node, Any] = {}
    for arg in node.args:
        for one in nodes_in(arg):
            values[one] = constant(one)
            if values[one] is None and not from_sizes:
                return None
    if not is_constant(node, list(node.args), values):
        return None
    return computed(node, values)


def _held_zeros(node: Node) -> Any:
    fake = node.meta.get("val")
    copied = isinstance(fake, Tensor) and fake.dtype in (*WHOLE, torch.bool) and is_held(node)
    copied = copied and not changes(node)
    return torch.zeros(tuple(fake.shape), dtype=fake.dtype) if copied else None


def _check_bool(node: Node) -> None:
    """Bools are 0 and 1 in a network: PyTorch outside of it must not meet them."""
    for user in node.users:
        if user.op == "output" or unsupported(user) is not None:
            raise Unsupported("its bools are read where no network is")
