"""Regions of a model that turn automatic mixed precision off, as `with torch.autocast("cuda",
enabled=False)`: PyTorch exports each as a graph of its own, that is called. They compute the same
without it.
"""

from __future__ import annotations

import operator
from typing import Any

from torch import Tensor
from torch.export import ExportedProgram
from torch.fx import Graph, Node
from torch.fx.node import map_arg

CALL = "wrap_with_autocast"
DEVICE, ENABLED, INNER = 0, 2, 4  # of its arguments; those of the inner graph come behind


def _changes_nothing(node: Node) -> bool:
    if node.op != "call_function" or getattr(node.target, "_name", "") != CALL:
        return False
    return not node.args[ENABLED] or node.args[DEVICE] != "cpu"


def _plain(inner: Graph) -> bool:
    return all(node.op in ("placeholder", "call_function", "output") for node in inner.nodes)


def without_autocast(exported: ExportedProgram) -> None:
    """Changes the graph of `exported`: what such regions compute stands where they were called."""
    renamed = _unwrap_all(exported.graph)
    for spec in exported.graph_signature.output_specs:
        if getattr(spec.arg, "name", None) in renamed:
            spec.arg.name = renamed[spec.arg.name]


def _unwrap_all(graph: Graph) -> dict[str, str]:
    """The names of what gave the regions' results, and of what gives them now."""
    renamed: dict[str, str] = {}
    for node in list(graph.nodes):
        if _changes_nothing(node):
            attribute: Any = node.args[INNER]
            inner = getattr(graph.owning_module, str(attribute.target)).graph
            _unwrap_all(inner)
            if _plain(inner) and all(_is_tensor(user) for user in node.users):
                renamed |= _unwrap(graph, node, inner)
    if renamed and graph.owning_module is not None:
        graph.owning_module.recompile()
    return renamed


def _is_tensor(node: Node) -> bool:
    """A result of the region, and no number or None."""
    return node.target is operator.getitem and isinstance(node.meta.get("val"), Tensor)


def _unwrap(graph: Graph, node: Node, inner: Graph) -> dict[str, str]:
    given = [one for one in inner.nodes if one.op == "placeholder"]
    values: dict[Node, Any] = dict(zip(given, node.args[INNER + 1 :]))
    results: Any = ()
    renamed = {}
    with graph.inserting_before(node):
        for one in inner.nodes:
            if one.op == "output":
                results = map_arg(one.args[0], lambda n: values[n])
            elif one.op == "call_function":
                values[one] = graph.node_copy(one, lambda n: values[n])
    for item in list(node.users):
        result = results[item.args[1]]
        renamed[item.name] = result.name
        item.replace_all_uses_with(result)
        graph.erase_node(item)
    attribute: Any = node.args[INNER]
    graph.erase_node(node)
    if not attribute.users:
        graph.erase_node(attribute)
    return renamed
