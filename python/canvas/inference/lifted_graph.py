"""A module as a graph of PyTorch's core operators for inputs of certain sizes: weights and inputs
are placeholders, nothing is changed in place.
"""

from __future__ import annotations

import re
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn
from torch.export.graph_signature import InputKind, OutputKind
from torch.utils import _pytree

from .. import aten
from ..errors import CanvasError

MUTATED = (OutputKind.BUFFER_MUTATION, OutputKind.PARAMETER_MUTATION,
           OutputKind.USER_INPUT_MUTATION)  # fmt: skip


class CannotExport(CanvasError):
    """PyTorch cannot write the model as one graph."""


@dataclass
class LiftedGraph:
    """`weights`: the names in the module of what the first placeholders stand for, parameters and
    buffers, and their tensors; `constants` are tensors of the graph itself. `mutated`: for each of
    the first outputs the weight or input into which it is written back; `rebound`: the
    buffers that get the last outputs; `made`: what messages call
    tensors that the model's code makes, to which PyTorch gives numbers.
    """

    exported: Any
    weights: list[str]
    tensors: list[torch.Tensor]
    inputs: list[str]
    mutated: list[str]
    rebound: list[str]
    made: dict[str, str]

    @property
    def graph_module(self) -> Any:
        return self.exported.graph_module

    @property
    def out_spec(self) -> Any:
        spec = self.exported.call_spec.out_spec
        return spec.children()[0] if self.rebound else spec

    def output_values(self) -> list[Any]:
        """PyTorch's description of each output: a tensor without memory, with its sizes."""
        leaves = self.graph_module.graph.output_node().args[0]
        return [
            leaf.meta.get("val") if isinstance(leaf, torch.fx.Node) else None for leaf in leaves
        ]

    def made_values(self, views: Container[str]) -> list[Any]:
        """Of those outputs that are not views of inputs, which have these names."""
        leaves = self.graph_module.graph.output_node().args[0]
        return [
            leaf.meta.get("val")
            for leaf in leaves
            if isinstance(leaf, torch.fx.Node) and leaf.name not in views
        ]


def lift_graph(
    module: nn.Module, args: Sequence[Any], kwargs: Mapping[str, Any], what: str = "the model"
) -> LiftedGraph:
    """Raises CanvasError where PyTorch cannot export it.  Inputs that share memory are
    replaced by others: the caller that runs the graph checks that.
    """
    args, kwargs = _apart(module, (tuple(args), dict(kwargs)))
    try:
        return _read(*aten.export_with_buffers(module, args, kwargs), what)
    except CanvasError as error:
        raise CannotExport(str(error).replace("the model", what, 1)) from None


def _apart(module: nn.Module, given: Any) -> Any:
    leaves, spec = _pytree.tree_flatten(given)
    taken = {_memory(held) for held in (*module.parameters(), *module.buffers())}
    for place, leaf in enumerate(leaves):
        if isinstance(leaf, torch.Tensor) and leaf.numel():
            if _memory(leaf) in taken:
                leaves[place] = torch.empty_strided(
                    leaf.shape, leaf.stride(), dtype=leaf.dtype, device=leaf.device
                )
            taken.add(_memory(leaf))
    return _pytree.tree_unflatten(leaves, spec)


def _memory(tensor: torch.Tensor) -> int:
    """PyTorch's tensors of zeros alone have none."""
    return -id(tensor) if tensor._is_zerotensor() else tensor.untyped_storage().data_ptr()


def _read(exported: Any, rebound: list[str], what: str) -> LiftedGraph:
    signature = exported.graph_signature
    weights: list[str] = []
    tensors: list[torch.Tensor] = []
    inputs: list[str] = []
    for spec in signature.input_specs:
        if spec.kind == InputKind.USER_INPUT:
            inputs.append(spec.arg.name)
        elif spec.target in exported.state_dict:
            weights.append(spec.target)
            tensors.append(exported.state_dict[spec.target])
        elif isinstance(exported.constants.get(spec.target), torch.Tensor):
            weights.append(spec.target)
            tensors.append(exported.constants[spec.target])
        else:
            kind = type(exported.constants.get(spec.target)).__name__
            raise CanvasError(
                f"{what} reads '{spec.target}', a {kind}, and a graph holds tensors alone"
            )
    mutated = [spec.target for spec in signature.output_specs if spec.kind in MUTATED]
    return LiftedGraph(exported, weights, tensors, inputs, mutated, rebound, _made(exported))


def _made(exported: Any) -> dict[str, str]:
    words = {}
    nodes = {node.name: node for node in exported.graph.nodes}
    for spec in exported.graph_signature.input_specs:
        if re.fullmatch(r"(.+\.)?lifted_tensor_\d+", spec.target or ""):
            node = nodes[spec.arg.name]
            sizes = list(exported.constants[spec.target].shape)
            place = next((aten.where(user) for user in node.users), "")
            place = "" if "(Wrapper)" in place else place  # of PyTorch, around a graph of Dynamo
            words[spec.target] = f"a constant of sizes {sizes} in the code of forward{place}"
    return words
