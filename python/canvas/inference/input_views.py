"""Outputs that are views of inputs, as x.t() and x[:, 1:]: PyTorch's own operators make them of
the input at each call, so that they are views here, too, and begin where PyTorch's do.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from .lifted_graph import LiftedGraph


def views_apart(lifted: LiftedGraph) -> set[Any]:
    """Changes the graph: such outputs get nodes of their own, which are returned.  What a buffer
    gets is not among them: it has memory of its own.
    """
    graph = lifted.graph_module.graph
    output = graph.output_node()
    apart: set[Any] = set()
    answers, inputs = list(output.args[0]), set(lifted.inputs) - set(lifted.mutated)
    for place in range(len(lifted.mutated), len(answers) - len(lifted.rebound)):
        chain = _chain(answers[place], inputs)
        copies: dict[Any, Any] = {}
        with graph.inserting_before(output):
            for node in chain:
                copies[node] = graph.node_copy(node, _of(copies))
        apart.update(copies.values())
        answers[place] = copies.get(answers[place], answers[place])
    output.args = (tuple(answers),)
    for node in reversed(list(graph.nodes)):
        if node.op == "call_function" and not node.users and _is_view(node):
            graph.erase_node(node)
    return apart


def _of(copies: dict[Any, Any]) -> Callable[[Any], Any]:
    return lambda node: copies.get(node, node)


def _chain(node: Any, inputs: set[str]) -> list[Any]:
    """The operators between an input and its view; none where it is no view of an input."""
    chain: list[Any] = []
    while isinstance(node, torch.fx.Node) and node.op == "call_function" and _is_view(node):
        chain.insert(0, node)
        node = node.args[0]
    given = isinstance(node, torch.fx.Node) and node.op == "placeholder" and node.name in inputs
    return chain if given and _share_memory(node.meta["val"], chain) else []


def _is_view(node: Any) -> bool:
    """Whether it may be a view of its first argument, and reads no other one."""
    if len(node.all_input_nodes) != 1 or node.all_input_nodes[0] is not node.args[0]:
        return False
    if node.target is operator.getitem:
        return True
    schema = getattr(node.target, "_schema", None)
    if schema is None or not schema.arguments or not schema.returns:
        return False
    first = schema.arguments[0].alias_info
    answered = [one.alias_info for one in schema.returns]
    return first is not None and not first.is_write and all(answered)


def _share_memory(given: Any, chain: list[Any]) -> bool:
    """As reshape does or does not, by how the input lies in memory."""
    if not isinstance(given, Tensor) or given.layout != torch.strided:
        return False
    shape, strides = tuple(given.shape), tuple(given.stride())
    first = torch.empty_strided(shape, strides, dtype=given.dtype, device="meta")
    value: Any = first
    try:
        for node in chain:
            value = node.target(value, *node.args[1:], **node.kwargs)
    except Exception:  # of what needs memory, as another device
        return False
    return isinstance(value, Tensor) and _memory(value) == _memory(first)


def _memory(tensor: Tensor) -> int:
    return tensor.untyped_storage()._cdata


class InputViews:
    """The operators of a graph that make views, run without the graph around them."""

    def __init__(self, nodes: Sequence[Any], inputs: Sequence[Any]) -> None:
        """`nodes` in the order of the graph; `inputs`: the nodes of all inputs."""
        places = {node: ~place for place, node in enumerate(inputs)}
        self._steps: list[Any] = []
        for node in nodes:
            self._steps.append((node.target, places[node.args[0]], node.args[1:], node.kwargs))
            places[node] = len(places) - len(inputs)

    def of(self, inputs: Sequence[Any]) -> list[Any]:
        """The result of each operator for these inputs."""
        made: list[Any] = []
        for function, place, args, kwargs in self._steps:
            source = made[place] if place >= 0 else inputs[~place]
            made.append(function(source, *args, **kwargs))
        return made
