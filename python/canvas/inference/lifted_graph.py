"""A module as a graph of PyTorch's core operators for inputs of certain sizes: weights and inputs
are placeholders, nothing is changed in place.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn
from torch.export.graph_signature import InputKind, OutputKind

from .. import aten
from ..errors import CanvasError

MUTATED = (OutputKind.BUFFER_MUTATION, OutputKind.USER_INPUT_MUTATION)


class CannotExport(CanvasError):
    """PyTorch cannot write the model as one graph."""


@dataclass
class LiftedGraph:
    """`weights`: the names in the module of what the first placeholders stand for, parameters and
    buffers, and their tensors; `constants` are tensors of the graph itself. `mutated`: for each of
    the first outputs the weight or input into which it is written back.
    """

    exported: Any
    weights: list[str]
    tensors: list[torch.Tensor]
    inputs: list[str]
    mutated: list[str]

    @property
    def graph_module(self) -> Any:
        return self.exported.graph_module

    @property
    def out_spec(self) -> Any:
        return self.exported.call_spec.out_spec

    def output_values(self) -> list[Any]:
        """What PyTorch says of each output: a tensor without memory, with its sizes."""
        leaves = self.graph_module.graph.output_node().args[0]
        return [leaf.meta.get("val") for leaf in leaves if isinstance(leaf, torch.fx.Node)]


def lift_graph(
    module: nn.Module, args: Sequence[Any], kwargs: Mapping[str, Any], what: str = "the model"
) -> LiftedGraph:
    """Raises CanvasError where PyTorch cannot export it."""
    try:
        return _read(aten.export(module, args, kwargs), what)
    except CanvasError as error:
        raise CannotExport(str(error).replace("the model", what, 1)) from None


def _read(exported: Any, what: str) -> LiftedGraph:
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
            raise CanvasError(f"{what} holds '{spec.target}', which is no tensor")
    mutated = [spec.target for spec in signature.output_specs if spec.kind in MUTATED]
    return LiftedGraph(exported, weights, tensors, inputs, mutated)
