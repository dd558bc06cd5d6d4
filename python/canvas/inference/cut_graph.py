"""A graph cut into native parts and what stays in PyTorch."""

from __future__ import annotations

import operator
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch
from torch.export.graph_signature import (
    ExportGraphSignature,
    InputKind,
    InputSpec,
    OutputKind,
    OutputSpec,
    TensorArgument,
)
from torch.fx.passes.infra.partitioner import CapabilityBasedPartitioner, Partition

from .input_views import views_apart
from .lifted_graph import LiftedGraph

Unsupported = Callable[[Any], "str | None"]
Constant = Callable[[Any], bool]

# Operators with enough work for a part of their own; others make a part from LEAST of them on.
HEAVY = {"convolution", "mm", "bmm", "addmm", "baddbmm", "linear", "matmul", "kernel",
         "conv1d", "conv2d", "conv3d", "conv_transpose1d", "conv_transpose2d", "conv_transpose3d",
         "scaled_dot_product_attention"}  # fmt: skip
LEAST = 4
NUMBERS = (bool, int, float, torch.SymInt, torch.SymFloat, torch.SymBool)
VIEWS = {"getitem", "view", "reshape", "permute", "transpose", "t", "expand", "unsqueeze",
         "squeeze", "slice", "alias", "clone", "detach", "_unsafe_view", "_to_copy"}  # fmt: skip


@dataclass
class Cut:
    """`outer`: a graph whose calls of modules are the parts, by name; `left`: how many operators
    stay in PyTorch, by operator with the reason; `views`: the names of those that make views of
    inputs, which are returned; `moved`: bytes that go between the parts and PyTorch at each call.
    """

    outer: Any
    parts: dict[str, Any] = field(default_factory=dict)
    left: Counter[str] = field(default_factory=Counter)
    views: set[str] = field(default_factory=set)
    operators: int = 0
    moved: int = 0
    crossings: int = 0

    def give_up(self, name: str, why: str) -> None:
        """PyTorch computes a part, as the graph has it."""
        del self.parts[name]
        nodes = getattr(self.outer, name).graph.nodes
        self.left[why] += sum(_is_operator(node) for node in nodes)
        self.moved = self.crossings = 0
        for part in self.parts.values():
            _count(self, part)

    def notice(self) -> str:
        """What stays in PyTorch and what it costs, one line; "" where nothing does."""
        if not self.left:
            return ""
        words = [f"{why}{f' ({n} times)' if n > 1 else ''}" for why, n in self.left.most_common(3)]
        more = f" and {len(self.left) - 3} more" if len(self.left) > 3 else ""
        left = sum(self.left.values())
        head = f"canvas: {left} of {self.operators} operators stay in PyTorch"
        if not self.parts:
            return f"{head}: {'; '.join(words)}{more}"
        parts = f"{len(self.parts)} native part{'' if len(self.parts) == 1 else 's'}"
        tensors = f"{self.crossings} tensor{'' if self.crossings == 1 else 's'}"
        cost = f"{tensors} of {self.moved} bytes between at each call"
        return f"{head}: {'; '.join(words)}{more}; {parts}, {cost}"


class _Known:
    """What the partitioner asks."""

    def __init__(self, unsupported: Unsupported) -> None:
        self.unsupported = unsupported
        self.reasons: dict[Any, str | None] = {}
        self.refused: set[Any] = set()  # for what stands around them

    def reason(self, node: Any) -> str | None:
        node = _base(node)
        if node not in self.reasons:
            self.reasons[node] = self.unsupported(node)
        return self.reasons[node]

    def refuse(self, node: Any, why: str) -> None:
        self.reasons[_base(node)] = why
        self.refused.add(_base(node))

    def is_node_supported(self, _modules: Any, node: Any) -> bool:
        return node.op == "call_function" and self.reason(node) is None


def _base(node: Any) -> Any:
    while node.target is operator.getitem:
        node = node.args[0]
    return node


def cut_graph(
    lifted: LiftedGraph, unsupported: Unsupported, constant: Constant, copies: bool = False
) -> Cut:
    """The graph of `lifted` is changed: its nodes move into the parts.  `constant`: whether a node
    is computed while a part is written; `copies`: no output is a view of an input.
    """
    gm, known = lifted.graph_module, _Known(unsupported)
    _erase_assertions(gm.graph)
    views = set() if copies else views_apart(lifted)
    for node in views:
        known.refuse(node, "it makes a view of an input")
    _share_no_constants(gm.graph, constant)
    functions = [node for node in gm.graph.nodes if node.op == "call_function"]
    calls = [node for node in functions if node not in views]
    operators = [node for node in calls if node.target is not operator.getitem]
    cut = Cut(gm, operators=len(operators), views={node.name for node in views})
    chosen, small = _partitions(gm, calls, known)
    while _refuse_at_borders(chosen, known):
        chosen, small = _partitions(gm, calls, known)
    few = {node for part in small for node in part.nodes}
    for node in operators:
        if node in few:
            cut.left["parts too small to gain"] += 1
        elif (why := known.reason(node)) is not None:
            cut.left[f"{_name(node)}: {why}"] += 1
    if chosen:
        CapabilityBasedPartitioner(gm, known).fuse_partitions(chosen, prefix="part")
    for node in gm.graph.nodes:
        if node.op == "call_module":
            _answer_in_order(gm, node)
            cut.parts[node.target] = node
    for node in cut.parts.values():
        _count(cut, node)
    gm.recompile()
    return cut


def _partitions(gm: Any, calls: list[Any], known: _Known) -> tuple[list[Any], list[Any]]:
    """(those that become parts, those that are too small)."""
    if all(known.is_node_supported(None, node) for node in calls):
        return ([Partition(id=0, nodes=calls)] if calls else []), []
    proposed = CapabilityBasedPartitioner(gm, known, allows_single_node_partition=True)
    found = proposed.propose_partitions()
    return (
        [part for part in found if _gains(part.nodes)],
        [part for part in found if not _gains(part.nodes)],
    )


def _erase_assertions(graph: Any) -> None:
    """That a tensor has the type it was exported with; a part would read it for nothing else."""
    for node in list(graph.nodes):
        if node.target is torch.ops.aten._assert_tensor_metadata.default:
            graph.erase_node(node)


def _share_no_constants(graph: Any, constant: Constant) -> None:
    """Constants of types that do not pass into a part or out of it get a node for each of their
    readers, so that none has to.
    """
    for node in reversed(list(graph.nodes)):
        if node.op != "call_function" or _crosses(node) or not constant(node):
            continue
        for user in list(node.users)[1:]:
            with graph.inserting_before(node):
                user.replace_input_with(node, graph.node_copy(node))


def _crosses(node: Any) -> bool:
    """Whether a part may read or give it: it is of float32, or several results."""
    value = node.meta.get("val")
    if isinstance(value, torch.Tensor):
        return value.dtype == torch.float32
    return not isinstance(value, NUMBERS)


def _refuse_at_borders(chosen: list[Any], known: _Known) -> bool:
    """Bools and whole numbers stay where they are computed."""
    before = len(known.refused)
    for part in chosen:
        inside = set(part.nodes)
        for node in part.nodes:
            if not _crosses(node) and any(user not in inside for user in node.users):
                known.refuse(node, f"its {_dtype(node)} is read where no network is")
            for given in node.all_input_nodes:
                computed = given.op == "call_function" and given not in inside
                if computed and not _crosses(given):
                    known.refuse(node, f"it reads {_dtype(given)} that PyTorch computes")
    return len(known.refused) > before


def _dtype(node: Any) -> str:
    value = node.meta["val"]
    if isinstance(value, NUMBERS):
        return "number"
    return str(value.dtype).removeprefix("torch.")


def _answer_in_order(gm: Any, part: Any) -> None:
    """The part's outputs stand in the order of the graph's, as far as they are such."""
    wanted = list(gm.graph.output_node().args[0])
    taken = [user for user in part.users if user.target is operator.getitem]
    taken.sort(key=lambda node: (wanted.index(node) if node in wanted else len(wanted)))
    output = getattr(gm, part.target).graph.output_node()
    if len(taken) < 2 or len(taken) != len(output.args[0]):
        return
    output.args = (tuple(output.args[0][node.args[1]] for node in taken),)
    for place, node in enumerate(taken):
        node.args = (part, place)
    getattr(gm, part.target).recompile()


def _gains(nodes: Any) -> bool:
    work = [_operator(node) for node in nodes if _operator(node) not in VIEWS]
    return len(work) >= LEAST or any(name in HEAVY for name in work)


def _operator(node: Any) -> str:
    return _name(node).removeprefix("aten.").partition(".")[0].rpartition("::")[2]


def _name(node: Any) -> str:
    name = str(node.target) if isinstance(node.target, torch._ops.OpOverload) else ""
    return name or getattr(node.target, "__name__", str(node.target))


def _is_operator(node: Any) -> bool:
    return node.op == "call_function" and node.target is not operator.getitem


def _count(cut: Cut, part: Any) -> None:
    """Tensors between this part and what PyTorch computes."""
    given = [node for node in part.args if _in_pytorch(cut, _base(node))]
    taken = [part, *(user for user in part.users if user.target is operator.getitem)]
    for node in [*given, *taken]:
        value = node.meta.get("val")
        read = node in given or any(_in_pytorch(cut, user) for user in node.users)
        if read and isinstance(value, torch.Tensor):
            cut.crossings += 1
            cut.moved += value.numel() * value.element_size()


def _in_pytorch(cut: Cut, node: Any) -> bool:
    given_up = node.op == "call_module" and node.target not in cut.parts
    return _is_operator(node) or given_up


def part_program(lifted: LiftedGraph, part: Any) -> tuple[Any, list[str | None]]:
    """(the part as an exported program of its own, for each of its arguments the name of the
    weight that it is, or None).
    """
    outer = lifted.exported
    sub = getattr(lifted.graph_module, part.target)
    kinds = {spec.arg.name: spec for spec in outer.graph_signature.input_specs}
    specs: list[InputSpec] = []
    roles: list[str | None] = []
    for given, node in zip(part.args, [n for n in sub.graph.nodes if n.op == "placeholder"]):
        spec = kinds.get(given.name) if given.op == "placeholder" else None
        weight = spec is not None and spec.kind != InputKind.USER_INPUT
        argument = TensorArgument(name=node.name)
        if spec is not None and weight:
            specs.append(InputSpec(spec.kind, argument, spec.target, spec.persistent))
        else:
            specs.append(InputSpec(InputKind.USER_INPUT, argument, None))
        roles.append(spec.target if spec is not None and weight else None)
    return _exported(outer, sub, specs), roles


def _exported(outer: Any, sub: Any, specs: list[InputSpec]) -> Any:
    output = sub.graph.output_node()
    if not isinstance(output.args[0], (tuple, list)):
        output.args = ((output.args[0],),)
    outputs = [
        OutputSpec(OutputKind.USER_OUTPUT, TensorArgument(name=node.name), None)
        for node in output.args[0]
    ]
    names = {spec.target for spec in specs if spec.target is not None}
    return torch.export.ExportedProgram(
        root=sub,
        graph=sub.graph,
        graph_signature=ExportGraphSignature(specs, outputs),
        state_dict={name: outer.state_dict[name] for name in names if name in outer.state_dict},
        range_constraints={},
        module_call_graph=_call_graph(len(specs) - len(names), len(outputs)),
        constants={name: outer.constants[name] for name in names if name in outer.constants},
    )


def _call_graph(inputs: int, outputs: int) -> list[Any]:
    from torch.export import ModuleCallEntry, ModuleCallSignature
    from torch.utils import _pytree

    leaves = tuple(range(inputs))
    in_spec = _pytree.tree_flatten((leaves, {}))[1]
    out_spec = _pytree.tree_flatten(tuple(range(outputs)))[1]
    signature = ModuleCallSignature([], [], in_spec, out_spec)
    return [ModuleCallEntry("", signature)]
