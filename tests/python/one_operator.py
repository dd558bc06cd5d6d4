"""A network of one operator of ATen."""

import operator
from dataclasses import dataclass
from typing import Any

import torch

from canvas import aten
from canvas.aten.graph import Held, outputs, write
from canvas.aten.writer import Writer


@dataclass(frozen=True)
class Constant:
    """An argument that the graph holds."""

    tensor: torch.Tensor


@dataclass(frozen=True)
class Weight:
    """An argument that is a parameter."""

    tensor: torch.Tensor


DTYPES = {torch.float32: "f32", torch.int64: "i32", torch.int32: "i32"}
SEVERAL = ("split", "split_with_sizes", "chunk", "unbind")


class OneOperator:
    def __init__(self, name: str, args: Any, kwargs: Any) -> None:
        self.graph, self.w = torch.fx.Graph(), Writer()
        self.values: dict[Any, Any] = {}
        self.inputs: list[torch.Tensor] = []
        space, short, overload = name.split(".")
        function = getattr(getattr(getattr(torch.ops, space), short), overload)
        with torch.no_grad():
            answer = function(*_plain(args), **kwargs)
        self.node = self.graph.call_function(function, self._place(args), kwargs)
        self.node.meta["val"] = answer
        self.wanted = [answer]
        if isinstance(answer, (tuple, list)):
            self.wanted = list(answer) if short in SEVERAL else [answer[0]]

    def imported(self) -> aten.Imported:
        results = self.values[self.node] = write(self.w, self.node, self.values)
        items = [self.node]
        if isinstance(results, list):
            items = [
                self.graph.call_function(operator.getitem, (self.node, k))
                for k in range(len(self.wanted))
            ]
            for item in items:
                self.values[item] = write(self.w, item, self.values)
        found = outputs(self.w, items, self.values)
        names = [value.name for value in found]
        return aten.Imported(
            self.w.text("one", found), dict(self.w.weights), list(self.w.inputs), names
        )

    def _place(self, value: Any) -> Any:
        if isinstance(value, (list, tuple)):
            return type(value)(self._place(one) for one in value)
        if not isinstance(value, (torch.Tensor, Constant, Weight)):
            return value
        tensor = value if isinstance(value, torch.Tensor) else value.tensor
        prefix = {Constant: "c_", Weight: "p_"}.get(type(value), "x")
        node = self.graph.placeholder(f"{prefix}{len(self.values)}")
        node.meta["val"] = tensor
        if isinstance(value, torch.Tensor):
            self.inputs.append(tensor)
            shape = tuple(tensor.shape)
            self.values[node] = self.w.input(node.name, shape, DTYPES[tensor.dtype])
        else:
            held = Held(tensor, f"layer.{node.name}")
            self.values[node] = held if isinstance(value, Weight) else tensor
        return node


def _plain(value: Any) -> Any:
    if isinstance(value, (list, tuple)):
        return type(value)(_plain(one) for one in value)
    return value.tensor if isinstance(value, (Constant, Weight)) else value
