"""Activations and arithmetic in place, as relu_, in terms of those that answer a new tensor.

PyTorch's own decompositions do it for every graph, and trace the model anew for that, which takes
twice as long as the export. Here an operator is replaced where that is clearly the same: what it
changes is the new result of another one, and nothing that may be a view of it was made before.
"""

from __future__ import annotations

import torch
from torch.export import ExportedProgram
from torch.fx import Node

from .families import ROWS
from .pointwise import UNARY

# What they answer shares no memory with what they are given.
FRESH = frozenset(UNARY) | {
    "add", "addmm", "avg_pool2d", "batch_norm", "bmm", "cat", "clamp", "conv1d", "conv2d",
    "conv_transpose2d", "convolution", "div", "elu", "gelu", "group_norm", "hardtanh", "kernel",
    "layer_norm", "leaky_relu", "linear", "max_pool2d", "mm", "mul", "softmax", "sub",
}  # fmt: skip
IN_PLACE = frozenset(UNARY) | {
    "add",
    "clamp",
    "div",
    "elu",
    "hardtanh",
    "leaky_relu",
    "mul",
    "sub",
}


def _is_fresh(node: Node) -> bool:
    target = node.target
    return (
        node.op == "call_function"
        and isinstance(target, torch._ops.OpOverload)
        and target.namespace in ("aten", "canvas")
        and target._opname in FRESH
    )


def _same_without(node: Node) -> torch._ops.OpOverload | None:
    """The operator that returns what this one leaves in its first argument; None where there is
    no row for it.
    """
    target = node.target
    if node.op != "call_function" or not isinstance(target, torch._ops.OpOverload):
        return None
    name = target._opname.removesuffix("_")
    if target.namespace != "aten" or name == target._opname or name not in IN_PLACE:
        return None
    if f"aten.{name}.{target._overloadname}" not in ROWS:
        return None
    return getattr(getattr(torch.ops.aten, name), target._overloadname, None)


def _dtype(node: Node) -> torch.dtype | None:
    return getattr(node.meta.get("val"), "dtype", None)


def without_in_place(exported: ExportedProgram) -> None:
    """Changes the graph of `exported` where that is safe."""
    place = {node: number for number, node in enumerate(exported.graph.nodes)}
    for node in exported.graph.nodes:
        same = _same_without(node)
        changed = node.args[0] if node.args else None
        if same is None or not isinstance(changed, Node) or not _is_fresh(changed):
            continue
        before = [user for user in changed.users if place[user] < place[node]]
        after = [user for user in changed.users if place[user] > place[node]]
        types = {_dtype(argument) for argument in node.all_input_nodes}
        if types != {_dtype(changed)} or not all(map(_is_fresh, before)):
            continue
        if any(user.op == "output" for user in after):
            continue
        node.target = same
        if all(user.op != "output" for user in node.users):  # the signature names these
            node._rename(same._opname)
        for user in after:
            user.replace_input_with(changed, node)
