"""A graph of PyTorch, exported, as the text of a network: one program per operator.

The graph is walked once. What depends on no input and no weight is computed by PyTorch meanwhile:
a constant. Operators are rows of a table (operator_table.py).
"""

from __future__ import annotations

import operator as python_operator
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from torch import Tensor
from torch.export import ExportedProgram
from torch.export.graph_signature import InputKind, OutputKind
from torch.fx import Node

from ..errors import CanvasError
from .exporting import decomposed, operator_name
from .families import ROWS
from .memory_order import Order, memory_order, ordered, restoring
from .values import Unsupported, Value, axes
from .writer import Writer, stage

FLOATS = torch.float32
WHOLE = (torch.int64, torch.int32)
NO_RESULT = ("aten._assert_tensor_metadata.default", "aten._assert_async.msg",
             "aten.sym_constrain_range_for_size.default")  # fmt: skip
OF_SIZES = {
    "full_like", "zeros_like", "ones_like", "empty_like", "new_zeros", "new_ones", "new_full",
    "new_empty",
}  # fmt: skip


@dataclass(frozen=True)
class Imported:
    """The text; `weights`: for each weight of the text the tensor of the module, live; the names
    of inputs and outputs in the text, in the order of the graph. Tensors of whole numbers and
    bools in the module are copied, and `copied` names them: the weights of the text do not follow.
    """

    text: str
    weights: dict[str, Tensor]
    inputs: list[str]
    outputs: list[str]
    copied: list[str] = field(default_factory=list)
    input_orders: list[Order] = field(default_factory=list)
    output_orders: list[Order] = field(default_factory=list)


def import_graph(
    exported: ExportedProgram, name: str = "model", in_memory_order: bool = False
) -> Imported:
    """`in_memory_order`: the axes of inputs and outputs of the text stand in the order in which
    they lie in memory (channels_last: channels are the last one), and `input_orders`,
    `output_orders` say which; without it they are as the model has them.

    Raises CanvasError, one sentence that names the operator and where it stands.
    """
    if not isinstance(exported, ExportedProgram):
        raise CanvasError(
            f"import_graph takes what torch.export.export gives, not {type(exported).__name__}"
        )
    return _Import(decomposed(exported), in_memory_order).run(name)


def import_part(exported: ExportedProgram) -> Imported:
    """Operators of a graph that `export` gave, as a program of their own, in memory order.  They
    are known or constants: that they are not decomposed again saves its time.
    """
    return _Import(exported, True).run("model")


class _Import:
    def __init__(self, exported: ExportedProgram, in_memory_order: bool) -> None:
        self.exported = exported
        self._in_memory_order = in_memory_order
        self._orders: list[Order] = []  # of inputs
        self.w = Writer()
        self.values: dict[Node, Any] = {}
        self.copied: list[str] = []

    def run(self, name: str) -> Imported:
        self._check_signature()
        specs = iter(self.exported.graph_signature.input_specs)
        inputs: list[str] = []
        for node in self.exported.graph.nodes:
            if node.op == "placeholder":
                self._given(node, next(specs), inputs)
            elif node.op == "get_attr":
                self.values[node] = getattr(self.exported.graph_module, node.target)
            elif node.op == "call_function":
                self.values[node] = write(self.w, node, self.values)
        output = next(node for node in self.exported.graph.nodes if node.op == "output")
        found = outputs(self.w, output.args[0], self.values)
        orders = [self._order(_value_of(node)) for node in output.args[0]]
        found = [_permuted(self.w, value, order, "output") for value, order in zip(found, orders)]
        return Imported(
            self.w.text(name, found),
            dict(self.w.weights),
            inputs,
            [value.name for value in found],
            self.copied,
            self._orders,
            orders,
        )

    def _order(self, fake: Any) -> Order:
        known = self._in_memory_order and isinstance(fake, Tensor) and fake.dtype == FLOATS
        return memory_order(fake) if known else None

    def _check_signature(self) -> None:
        for spec in self.exported.graph_signature.output_specs:
            if spec.kind == OutputKind.USER_OUTPUT:
                continue
            raise CanvasError(
                f"the model writes to '{spec.target}' when it is called, which a network cannot; "
                "call model.eval() first, or leave that away"
            )

    def _given(self, node: Node, spec: Any, inputs: list[str]) -> None:
        fake = node.meta.get("val")
        if not isinstance(fake, Tensor):
            self.values[node] = getattr(spec.arg, "value", None)
            return
        check_sizes(node.name, fake)
        if spec.kind == InputKind.USER_INPUT:
            self._input(node, fake, inputs)
            return
        held = self.exported.state_dict.get(spec.target)
        tensor = self.exported.constants.get(spec.target) if held is None else held
        if not isinstance(tensor, Tensor):
            raise CanvasError(f"the model holds '{spec.target}', which is no tensor")
        if tensor.device.type != "cpu":
            raise CanvasError(
                f"'{spec.target}' is on the device '{tensor.device}', not on the CPU"
            )
        self.values[node] = Held(tensor, spec.target)
        if tensor.dtype in (*WHOLE, torch.bool):
            self.values[node] = tensor
            if spec.kind != InputKind.CONSTANT_TENSOR and node.users:
                self.copied.append(spec.target)

    def _input(self, node: Node, fake: Tensor, inputs: list[str]) -> None:
        if fake.dtype != FLOATS and fake.dtype not in WHOLE:
            raise CanvasError(
                f"input '{node.name}' is of {dtype_of(fake)}, inputs are of float32, or of whole "
                "numbers that embedding reads"
            )
        order = self._order(fake)
        shape = ordered(fake.shape, order)
        value = self.w.input(node.name, shape, "f32" if fake.dtype == FLOATS else "i32")
        self.values[node] = _permuted(self.w, value, restoring(order), "input")
        inputs.append(value.name)
        self._orders.append(order)


def _value_of(node: Any) -> Any:
    return node.meta.get("val") if isinstance(node, Node) else node


def _permuted(w: Writer, value: Value, order: Order, what: str) -> Value:
    """The axes in that order."""
    if order is None:
        return value
    w.begin(f"{value.name}_in_order")
    names = axes(value.rank)
    kept = [names[axis] for axis in order]
    line = stage("Y", kept, ordered(value.shape, order), f"X[{', '.join(names)}]")
    return w.call(f"{what}_order", [("X", value)], [line], ordered(value.shape, order))


def outputs(w: Writer, wanted: Sequence[Any], values: Mapping[Node, Any]) -> list[Value]:
    """What is wanted of a graph as values that calls compute, each once."""
    answer: list[Value] = []
    for node in wanted:
        value = values.get(node) if isinstance(node, Node) else node
        if isinstance(value, Held):
            value = w.weight(_of_floats(value), value.source)
        if isinstance(value, Tensor):
            value = w.value(value)
        if not isinstance(value, Value) or value.dtype != "f32" or value.boolean:
            raise CanvasError(
                f"an output of the model, '{node}', is no tensor of float32 that it computes"
            )
        given = value.given or value.name in w.weights
        if given or value.name in {other.name for other in answer}:
            w.begin(f"{value.name}_copy")
            value = w.copied(value)
        answer.append(value)
    if not answer:
        raise CanvasError("the model has no output that it computes")
    return answer


@dataclass(frozen=True)
class Held:
    """A weight that becomes one of the text where it is read."""

    tensor: Tensor
    source: str


# ---- one node -----------------------------------------------------------------------------------


def write(w: Writer, node: Node, values: Mapping[Node, Any]) -> Any:
    """The program and the call of a node; its value, or a list of them."""
    try:
        return written(w, node, values)
    except Unsupported as error:
        raise CanvasError(f"'{operator_name(node)}'{where(node)}: {error}") from None


def written(w: Writer, node: Node, values: Mapping[Node, Any]) -> Any:
    name = operator_name(node)
    if node.target is python_operator.getitem:
        return item_of(node, values[node.args[0]])
    if name in NO_RESULT:
        return None
    args = bound(node)
    if is_constant(node, args, values):
        return computed(node, values)
    if name not in ROWS:
        raise Unsupported("the operator is not known")
    _check_result(node)
    w.begin(node.name)
    result = ROWS[name].write(w, *(_resolved(w, arg, values) for arg in args))
    _check_shapes(node, result)
    return _as_bools(node, result)


def item_of(node: Node, several: Any) -> Any:
    found = several[node.args[1]]
    if found is None and node.users:
        raise Unsupported(f"its result {node.args[1]} is not known, only values are")
    return found


def bound(node: Node) -> list[Any]:
    """The arguments in the order of the schema, with defaults."""
    schema = getattr(node.target, "_schema", None)
    if schema is None:
        return list(node.args)
    args = list(node.args)
    for argument in schema.arguments[len(args) :]:
        default = argument.default_value if argument.has_default_value() else None
        args.append(node.kwargs.get(argument.name, default))
    extra = [a.name for a in schema.arguments if a.name in FACTORY]
    return [arg for a, arg in zip(schema.arguments, args) if a.name not in extra]


FACTORY = ("layout", "device", "pin_memory", "non_blocking", "memory_format")


def _resolved(w: Writer, arg: Any, values: Mapping[Node, Any]) -> Any:
    if isinstance(arg, Node):
        value = values[arg]
        return w.weight(_of_floats(value), value.source) if isinstance(value, Held) else value
    if isinstance(arg, (list, tuple)):
        return [_resolved(w, one, values) for one in arg]
    if isinstance(arg, (torch.SymInt, torch.SymFloat, torch.SymBool)):
        raise Unsupported("a size of it is not fixed, export without dynamic_shapes")
    return arg


def _of_floats(held: Held) -> Tensor:
    if held.tensor.dtype == FLOATS:
        return held.tensor
    raise Unsupported(f"its weight '{held.source}' is of {dtype_of(held.tensor)}, not of float32")


def nodes_in(arg: Any) -> list[Node]:
    if isinstance(arg, Node):
        return [arg]
    if isinstance(arg, (list, tuple)):
        return [node for one in arg for node in nodes_in(one)]
    return []


def is_constant(node: Node, args: list[Any], values: Mapping[Node, Any]) -> bool:
    if of_sizes(node):
        return True
    known = isinstance(node.target, torch._ops.OpOverload)
    if known and torch.Tag.nondeterministic_seeded in node.target.tags:
        return False
    return all(
        isinstance(values[one], (Tensor, int, float)) for arg in args for one in nodes_in(arg)
    )


def of_sizes(node: Node) -> bool:
    """Whether it reads a tensor for its sizes alone."""
    return isinstance(node.target, torch._ops.OpOverload) and node.target._opname in OF_SIZES


def computed(node: Node, values: Mapping[Node, Any]) -> Any:
    if of_sizes(node):
        shape = tuple(results_of(node)[0].shape)
        like = torch.empty(shape, dtype=results_of(node)[0].dtype, device="cpu")
        fixed = {nodes_in(node.args[0])[0]: like}
        values = {**values, **fixed}
    args, kwargs = torch.fx.node.map_arg((node.args, dict(node.kwargs)), lambda n: values[n])
    with torch.no_grad():
        return node.target(*args, **kwargs)


# ---- checks -------------------------------------------------------------------------------------


def results_of(node: Node) -> list[Any]:
    fake = node.meta.get("val")
    return list(fake) if isinstance(fake, (list, tuple)) else [fake]


def check_sizes(name: str, fake: Tensor) -> None:
    if any(isinstance(size, torch.SymInt) for size in fake.shape):
        raise CanvasError(
            f"a size of '{name}' is not fixed, networks have fixed sizes: export without "
            "dynamic_shapes"
        )
    if not fake.numel():
        raise CanvasError(f"'{name}' is empty, its shape is {list(fake.shape)}")


def _check_result(node: Node) -> None:
    for at, fake in enumerate(results_of(node)):
        if not isinstance(fake, Tensor) or (at and not _read(node, at)):
            continue
        if any(isinstance(size, torch.SymInt) for size in fake.shape):
            raise Unsupported("a size of it is not fixed, export without dynamic_shapes")
        if fake.dtype not in (FLOATS, torch.bool):
            raise Unsupported(f"it computes {dtype_of(fake)}, only float32 is known")
        if not fake.numel():
            raise Unsupported(f"its result is empty, {list(fake.shape)}")


def _read(node: Node, at: int) -> bool:
    return any(user.args[1:] == (at,) and user.users for user in node.users)


def _check_shapes(node: Node, result: Any) -> None:
    """What the program computes has PyTorch's shape: a row that is wrong is an error here."""
    results = result if isinstance(result, list) else [result]
    for value, fake in zip(results, results_of(node)):
        known = isinstance(value, Value) and isinstance(fake, Tensor)
        if known and value.shape != tuple(fake.shape):
            raise Unsupported(f"its program gives {list(value.shape)}, PyTorch {list(fake.shape)}")


def _as_bools(node: Node, result: Any) -> Any:
    """PyTorch's types show which results are bools, also a bool that is written into floats."""
    results = result if isinstance(result, list) else [result]
    typed = [
        replace(value, boolean=fake.dtype == torch.bool)
        if isinstance(value, Value) and isinstance(fake, Tensor)
        else value
        for value, fake in zip(results, results_of(node))
    ]
    return typed if isinstance(result, list) else typed[0]


def dtype_of(tensor: Tensor) -> str:
    return str(tensor.dtype).removeprefix("torch.")


def where(node: Node) -> str:
    """in 'layer1.0.conv' of the model"""
    stack = node.meta.get("nn_module_stack")
    if not stack:
        return ""
    path, kind = list(stack.values())[-1][:2]
    path = path.removeprefix("L['self']").lstrip(".")
    kind = kind if isinstance(kind, str) else getattr(kind, "__name__", "")
    kind = kind.rpartition(".")[2]
    return f" in '{path}' ({kind})" if path else f" in the model itself ({kind})"
