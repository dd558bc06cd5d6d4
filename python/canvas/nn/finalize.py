"""A replaced network without placeholders, for tools that rewrite or script networks."""

from __future__ import annotations

import operator
from typing import Any

import torch
from torch import Tensor, nn
from torch.fx import GraphModule, Node
from torch.fx.node import map_arg
from torch.nn import functional as F

from ..arguments import shown
from ..errors import CanvasError
from .convert import put_everywhere, restore_kept
from .layer_view import Images, Restored
from .pack import KernelPack
from .placeholder import Placeholder

MODULE = "call_module"
CONV2D = ("input", "weight", "bias", "stride", "padding", "dilation", "groups")


def finalize(model: nn.Module) -> nn.Module:
    """Put what each placeholder computes in its place, and return the network, which is then made
    of modules that `torch.fx`, `torch.jit.script` and FX quantization take.

    A kernel becomes the torch.fx.GraphModule of its operations, its convolutions modules of their
    own, and a bias is added behind it.  The names of weights change, so load checkpoints before.
     Modes stay.  Raises CanvasError where `model` is no network.
    """
    if not isinstance(model, nn.Module):
        raise CanvasError(f"finalize takes a torch.nn.Module, not {shown(model)}")
    for path, child in list(restore_kept(model).named_modules()):
        if not isinstance(child, Placeholder):
            continue
        if not path:
            raise CanvasError("finalize takes the network around a placeholder")
        put_everywhere(model, child, nn.Identity() if child.kernel is None else _straight(child))
    return model


def _straight(placeholder: Placeholder) -> nn.Module:
    """The kernel of a placeholder as a graph of its operations, with the bias behind it, between
    what makes images of the layer's tensors and back.
    """
    kernel, bias = placeholder.kernel, placeholder.bias
    assert kernel is not None
    training = kernel.training
    if isinstance(getattr(type(kernel), "pack", None), KernelPack):
        kernel = _graph(kernel)
    if bias is not None:
        kernel = Biased(kernel, bias)
    view = placeholder.view
    if not view.is_plain:
        kernel = nn.Sequential(Images(view), kernel, Restored(view))
    return kernel.train(training)


class Biased(nn.Module):
    """A module with a bias [C] per channel behind it."""

    def __init__(self, kernel: nn.Module, bias: nn.Parameter | Tensor) -> None:
        super().__init__()
        self.kernel, self.bias = kernel, bias

    def forward(self, x: Tensor) -> Tensor:
        y: Tensor = self.kernel(x)
        return y + self.bias[:, None, None]


class _Tracer(torch.fx.Tracer):
    """Of the part of a kernel that checks no sizes."""

    traced_func_name = "run"


def _graph(kernel: Any) -> nn.Module:
    """The operations of a generated module, its copies one behind the other."""
    graph = _Tracer().trace(kernel)
    weights: dict[str, Any] = {}
    known: dict[Node, Any] = {}  # what depends on weights and channels alone
    for node in graph.nodes:
        if node.op == "get_attr":
            known[node] = getattr(kernel, str(node.target))
        elif _is_channels(node):
            known[node] = kernel.c
        elif _is_call(node) and all(source in known for source in node.all_input_nodes):
            known[node] = _value(node, known)
    for node in reversed(graph.nodes):
        value = known.get(node)
        if isinstance(value, Tensor) and any(user not in known for user in node.users):
            with graph.inserting_before(node):
                new = graph.get_attr(f"weight{len(weights)}")
            weights[f"weight{len(weights)}"] = nn.Parameter(value.detach().clone())
            node.replace_all_uses_with(new)
        elif isinstance(value, int):
            for user in [user for user in node.users if user not in known]:
                user.args = map_arg(user.args, lambda n, at=node, v=value: v if n is at else n)
        if node in known and not node.users:
            graph.erase_node(node)
    modules = {n.target: kernel.get_submodule(n.target) for n in graph.nodes if n.op == MODULE}
    for node in list(graph.nodes):
        if node.target is F.conv2d and (layer := _convolution(node, weights)) is not None:
            name = f"conv{len(modules)}"
            modules[name] = layer
            with graph.inserting_before(node):
                node.replace_all_uses_with(graph.call_module(name, (node.args[0],)))
            graph.erase_node(node)
    made = GraphModule({**weights, **modules}, graph, type(kernel).__name__)
    made.graph.eliminate_dead_code()
    made.recompile()
    return made


def _convolution(node: Node, weights: dict[str, Any]) -> nn.Conv2d | None:
    """The layer that a call of F.conv2d with weights of its own is."""
    given = dict(zip(CONV2D, node.args, strict=False)) | node.kwargs
    sizes = {name: given[name] for name in CONV2D[3:] if name in given}
    used = [given[name] for name in ("weight", "bias") if given.get(name) is not None]
    if any(n.target not in weights or len(n.users) > 1 for n in used):
        return None
    if set(node.all_input_nodes) != {given["input"], *used}:  # as of groups that count images
        return None
    weight, *bias = (weights[n.target] for n in used)
    outputs, inputs, *window = weight.shape
    inputs *= sizes.get("groups", 1)
    layer = nn.Conv2d(inputs, outputs, window, bias=bool(bias), **sizes)
    layer.weight, layer.bias = weight, bias[0] if bias else None
    return layer


def _is_call(node: Node) -> bool:
    """Of a function that takes something."""
    return node.op in ("call_function", "call_method") and bool(node.all_input_nodes)


def _is_channels(node: Node) -> bool:
    """C of the one line ``N, C, H, W = a.shape`` of a kernel's code."""
    if node.target is not operator.getitem or node.args[1] != 1:
        return False
    source = node.args[0]
    return isinstance(source, Node) and source.target is getattr and source.args[1] == "shape"


def _value(node: Node, known: dict[Node, Any]) -> Any:
    args, names = map_arg((node.args, node.kwargs), lambda source: known[source])
    if node.op == "call_method":
        return getattr(args[0], str(node.target))(*args[1:], **names)
    return node.target(*args, **names)
