"""Stands in for canvas.aten and the compiler: a part of a graph is run by PyTorch, through the
memory and in the order in which machine code would run.
"""

from __future__ import annotations

import operator
from types import SimpleNamespace
from typing import Any

import torch

NAMES = {torch.float32: "f32", torch.float64: "f64", torch.int32: "i32", torch.int64: "i32"}
UNKNOWN = ("sin", "sort", "cumsum", "rand", "bernoulli")


class FakeNetwork:
    made = 0  # how many in this process

    def __init__(self, exported: Any, threads: int) -> None:
        FakeNetwork.made += 1
        self.packs = 0
        self.threads = threads
        self.text = f"canvas 1\nnetwork fake{FakeNetwork.made}"
        self.factor = 1.0  # of what it answers
        holders = [n for n in exported.graph.nodes if n.op == "placeholder"]
        signature = exported.graph_signature.input_specs
        self.module = exported.graph_module
        self.weights, self.inputs, self.tensors = [], [], {}
        for node, spec in zip(holders, signature):
            value = node.meta["val"]
            row = (node.name, NAMES.get(getattr(value, "dtype", None)), tuple(value.shape))
            if spec.target is None:
                self.inputs.append((*row, 0, 9, False))
            else:
                found = exported.state_dict.get(spec.target)
                self.tensors[node.name] = (
                    exported.constants[spec.target] if found is None else found
                )
                self.weights.append((row[0], spec.target, *row[1:]))
        self.places = [spec.target is not None for spec in signature]
        values = [n.meta["val"] for n in exported.graph.output_node().args[0]]
        self.outputs = [("y", NAMES[v.dtype], tuple(v.shape)) for v in values]
        work = [n for n in exported.graph.nodes if n.op == "call_function"]
        self.calls = [
            (n.name, n.name, 1000, 100) for n in work if n.target is not operator.getitem
        ]

    def here(self) -> FakeNetwork:
        return self

    def memory(self) -> int:
        return 0

    def pack(self, weights: Any) -> Any:
        self.packs += 1
        return [w.detach().clone() for w in weights]

    def run(self, packed: Any, inputs: Any) -> list[Any]:
        for value, row in zip(inputs, self.inputs):
            assert value.is_contiguous() and tuple(value.shape) == row[2]
            assert NAMES[value.dtype] == row[1]
        weights, given = iter(packed), iter(inputs)
        with torch.no_grad():
            answer = self.module(*(next(weights if w else given) for w in self.places))
        results = [value.contiguous() * self.factor for value in answer]
        assert [tuple(y.shape) for y in results] == [row[2] for row in self.outputs]
        return results

    def seconds(self, packed: Any, inputs: Any, rounds: int) -> list[list[float]]:
        self.run(packed, inputs)
        return [[1e-6] * rounds for _ in self.calls]


def lower(exported: Any, threads: int, log: Any, winograd: bool) -> Any:
    network = FakeNetwork(exported, threads)
    return as_they_are(network, network.tensors)


def as_they_are(network: Any, tensors: Any) -> Any:
    """Lowered, with axes in the order of the model."""
    from canvas.inference.lowering import Lowered

    return Lowered(network, tensors, [None] * len(network.inputs), [None] * len(network.outputs))


def unsupported(node: Any) -> str | None:
    name = str(node.target).removeprefix("aten.").partition(".")[0]
    value = node.meta.get("val")
    value = value[0] if isinstance(value, tuple) else value
    if name in UNKNOWN:
        return "the operator is not known"
    if isinstance(value, torch.Tensor) and value.dtype not in NAMES:
        return f"the type {value.dtype} is not known"
    return None


def install(monkeypatch: Any) -> SimpleNamespace:
    from canvas.inference import lowering

    monkeypatch.setattr(lowering, "lower", lower)
    monkeypatch.setattr(lowering, "unsupported", unsupported)
    return SimpleNamespace(lower=lower)
