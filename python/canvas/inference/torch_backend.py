"""torch.compile(model, backend="canvas"): the graphs that Dynamo finds, compiled as canvas.compile
does.

Dynamo gives weights as arguments of a graph; they become weights of a module of ours, and which
tensors they are is looked at anew at every call, since several modules may share one graph.  The
graph is compiled at its first call, once for each of its inputs' sizes.
"""

from __future__ import annotations

import itertools
import re
import sys
import weakref
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, fx, nn

from .. import aten
from ..errors import CanvasError
from .arguments_flat import KnownLayout, check_gradients, check_leaf, layout_of, sizes_of
from .compile_options import Options, backend_options
from .lifted_graph import CannotExport
from .locks import EXPORTING
from .notices import notify
from .specialization import Specialization, Strides
from .transforms import check_transforms, in_autocast
from .watched_weights import WatchedWeights

SIZES = 8  # of one graph; the least recently called one is dropped first
DROPPED = 64  # dropped sizes of one graph; after so many the others stay in PyTorch
LAYOUTS = 256  # of sizes that stay in PyTorch, that are known at once
STEP = r"\.(\w+)|\[(\d+)\]|\['([^']+)'\]"  # of an attribute, a list, a dict
TABLES = ("__dict__", "_modules", "_parameters", "_buffers")
PATH = rf"[LG](?:{STEP})+"
# A module with a __getattr__ of its own shows its tables as ...__dict__['_parameters']['bias'].
HOLDER = re.compile(r"_modules(?:'\])?\['([^']+)'\]|_(?:parameters|buffers)(?:'\])?\['([^']+)'\]")
WEIGHT = re.compile(r"\b_(?:parameters|buffers)(?:'\])?\[")


def canvas(
    graph: fx.GraphModule, example_inputs: Sequence[Any], *, options: Any = None, mode: Any = None
) -> Any:
    """The backend; options are those of canvas.compile: threads, log, check,
    winograd."""
    try:
        made = backend_options(options, mode)
    except CanvasError as error:
        return _refusing(error)  # Dynamo would wrap it in one of its own
    return DynamoGraph(graph, example_inputs, made)


def _refusing(error: CanvasError) -> Any:
    def call(*_: Any) -> Any:
        raise CanvasError(str(error))

    return call


class DynamoGraph:
    """Called with all arguments of the graph, weights and numbers among them."""

    def __init__(self, graph: fx.GraphModule, given: Sequence[Any], options: Options) -> None:
        self._graph, self._options = graph, options
        holders = [node for node in graph.graph.nodes if node.op == "placeholder"]
        self._weights = [i for i, node in enumerate(holders) if _is_weight(node, given[i])]
        self._inputs = [i for i in range(len(holders)) if i not in set(self._weights)]
        self._names = [_name(holders[i]) for i in self._inputs]
        self._weight_names = _distinct([_weight_name(holders[i]) for i in self._weights])
        self._roots = _roots([holders[i] for i in self._weights])
        self._sizes: dict[Any, Specialization | None] = {}
        self._ready: dict[Any, _Ready] = {}
        self._last: _Ready | None = None  # of these, the one that served the last call
        self._clock = itertools.count()
        self._dropped = 0
        self._differentiates = aten.transforms(graph.graph)  # then it may, itself

    def __call__(self, *given: Any) -> Any:
        inputs = [given[i] for i in self._inputs]
        self._refuse(inputs)
        ready = self._last
        fits = ready is not None and ready.layout.fits(inputs)
        if not fits:
            ready = self._ready.get(layout_of(inputs))
        if ready is None:
            return self._first(given, inputs)
        size, bound, written = ready.size, ready.bound, ready.written
        if written is not None and not written.same(written.of(given)):
            self._forget(size)
            return self._first(given, inputs)
        if size is None or bound is None:
            return self._eager(given)
        self._last = ready
        size.used = next(self._clock)
        in_form = fits and ready.layout.in_form
        return tuple(size.run(bound.of(given), inputs, ready.strides, in_form))

    def _refuse(self, inputs: Sequence[Any]) -> None:
        check_transforms(self._names, inputs)
        for root in self._roots:
            module = root()
            if module is not None and module.training:
                raise CanvasError(
                    "the model is in training mode, and the backend 'canvas' is for inference: "
                    "call model.eval() first"
                )
        if in_autocast():
            raise CanvasError(
                "torch.autocast is on, but the backend 'canvas' computes in the model's own "
                "types: call it outside"
            )
        if torch.is_grad_enabled():
            check_gradients(self._names, inputs)

    def _eager(self, given: Sequence[Any]) -> Any:
        with torch.set_grad_enabled(self._differentiates):
            results = self._graph(*given)
        return tuple([y.detach() if isinstance(y, Tensor) and y.requires_grad else y
                      for y in results])  # fmt: skip

    def _first(self, given: Sequence[Any], inputs: list[Any]) -> Any:
        weights = [given[i] for i in self._weights]
        with EXPORTING:
            size = self._size(given, inputs)
            layout = layout_of(inputs)
            if size is None:
                if len(self._ready) < LAYOUTS:
                    self._ready[layout] = _Ready(KnownLayout(inputs, _none))
                return self._eager(given)
            places = self._places(size)

            def eager(leaves: Sequence[Any], double: bool) -> list[Any]:
                held = [w.double() if double and w.is_floating_point() else w for w in weights]
                return list(self._graph(*self._joined(held, leaves)))

            results, strides = size.first(_bound(places, weights), inputs, eager)
            written = None
            if size.written:
                written = _Written(size, dict(zip(self._weight_names, self._weights)), given)
            bound = _Bound(size, [self._argument(place) for place in places], len(given))
            known = KnownLayout(inputs, size.in_form)
            self._ready[layout] = _Ready(known, size, bound, strides, written)
        return tuple(results)

    def _size(self, given: Sequence[Any], inputs: list[Any]) -> Specialization | None:
        """None: PyTorch cannot export it, or it is empty; the user gets a notice."""
        key = sizes_of(inputs)
        size = self._sizes.get(key)
        if size is not None and not size.fits(inputs):
            key = layout_of(inputs)
            size = self._sizes.get(key)
        if key not in self._sizes:
            if any(isinstance(value, int) for value in inputs):
                notify(
                    "canvas: sizes that vary are compiled one by one, the last 8 of a graph kept"
                )
            if len(self._sizes) >= SIZES:
                if self._dropped == DROPPED:
                    notify(
                        f"canvas: after {DROPPED + SIZES} sizes of a graph others stay in PyTorch"
                    )
                    return None
                self._drop()
                self._dropped += 1
            self._sizes[key] = size = self._made(given, inputs)
        return size

    def _drop(self) -> None:
        def last(key: Any) -> int:
            size = self._sizes[key]
            return -1 if size is None else size.used

        self._forget(self._sizes[min(self._sizes, key=last)])

    def _forget(self, size: Specialization | None) -> None:
        self._sizes = {key: other for key, other in self._sizes.items() if other is not size}
        self._ready = {key: row for key, row in self._ready.items() if row.size is not size}
        self._last = None

    def _made(self, given: Sequence[Any], inputs: list[Any]) -> Specialization | None:
        for name, value in zip(self._names, inputs):
            if isinstance(value, Tensor) and not value.numel():
                return None
            check_leaf(name, value)
        for name, i in zip(self._weight_names, self._weights):
            check_leaf(name, given[i])
        calls = sum(node.op.startswith("call") for node in self._graph.graph.nodes)
        what = f"a graph of {calls} operators"
        try:
            size = Specialization(
                self._module(given), inputs, {}, self._options, self._names, what
            )
        except CannotExport as error:
            notify(f"canvas: {what} stays in PyTorch: {error}")
            return None
        if not self._sizes:
            notify(size.cut.notice())
        size.used = next(self._clock)
        return size if size.parts else None

    def _module(self, given: Sequence[Any]) -> nn.Module:
        """The graph with weights of its own instead of arguments."""
        root, graph = nn.Module(), fx.Graph()
        for name, child in self._graph.named_children():
            root.add_module(name, child)
        for name, value in vars(self._graph).items():
            if isinstance(value, Tensor):
                setattr(root, name, value)
        for name, buffer in self._graph.named_buffers(recurse=False):
            root.register_buffer(name, buffer)
        nodes = list(self._graph.graph.nodes)
        holders = [node for node in nodes if node.op == "placeholder"]
        copies = {holders[i]: graph.node_copy(holders[i]) for i in self._inputs}
        for name, i in zip(self._weight_names, self._weights):
            _attach(root, name, given[i])
            copies[holders[i]] = graph.get_attr(name)
        for node in nodes:
            if node not in copies:
                copies[node] = graph.node_copy(node, copies.__getitem__)
        return fx.GraphModule(root, graph).eval()

    def _places(self, size: Specialization) -> list[Any]:
        """For each weight of the graph its place among those of a call, or the constant itself."""
        place = {name: i for i, name in enumerate(self._weight_names)}
        pairs = zip(size.lifted.weights, size.lifted.tensors)
        return [place.get(name, own) for name, own in pairs]

    def _argument(self, place: Any) -> Any:
        """The place among all arguments of a weight that has one among the weights."""
        return self._weights[place] if isinstance(place, int) else place

    def _joined(self, weights: Sequence[Any], inputs: Sequence[Any]) -> list[Any]:
        given: list[Any] = [None] * (len(self._weights) + len(self._inputs))
        for places, values in ((self._weights, weights), (self._inputs, inputs)):
            for i, value in zip(places, values):
                given[i] = value
        return given


@dataclass(frozen=True)
class _Ready:
    """What a call of a certain layout needs; without a size PyTorch runs the graph."""

    layout: KnownLayout
    size: Specialization | None = None
    bound: _Bound | None = None
    strides: Strides = ()
    written: _Written | None = None


def _none(_: Sequence[Any]) -> bool:
    return False


class _Written(WatchedWeights):
    """Weights that a text has as numbers; `places`: of all weights among a call's arguments."""

    def __init__(
        self, size: Specialization, places: Mapping[str, int], given: Sequence[Any]
    ) -> None:
        self._places = [places[name] for name in size.written if name in places]
        super().__init__(self.of(given), size.written)

    def of(self, given: Sequence[Any]) -> list[Any]:
        return [given[at] for at in self._places]


class _Bound:
    """The weights as a size wants them, of the arguments of a call: the places of weights and the
    constants between them are brought into order as weights are, once.
    """

    def __init__(self, size: Specialization, places: Sequence[Any], arguments: int) -> None:
        order = size.bind(places)
        self._constants = tuple(at for at in order if not isinstance(at, int))
        last = itertools.count(arguments)
        self._order = [at if isinstance(at, int) else next(last) for at in order]

    def of(self, given: tuple[Any, ...]) -> list[Any]:
        held = given + self._constants
        return [held[at] for at in self._order]


def _bound(places: Sequence[Any], weights: Sequence[Any]) -> list[Any]:
    return [weights[place] if isinstance(place, int) else place for place in places]


# ---- what Dynamo knows of an argument -----------------------------------------------------------


def _source(node: Any) -> Any:
    return getattr(node.meta.get("grapharg"), "source", None)


def _is_weight(node: Any, value: Any) -> bool:
    if isinstance(value, nn.Parameter):
        return True
    name = str(getattr(_source(node), "name", ""))
    return isinstance(value, Tensor) and WEIGHT.search(name) is not None


def _name(node: Any) -> str:
    """As the caller calls it: x, states.0 of L['states'][0], self.last of L['self'].last and of
    what Python has on the way there.
    """
    path = str(getattr(_source(node), "name", ""))
    if not re.fullmatch(PATH, path):
        return str(node.name)
    words = ["".join(groups) for groups in re.findall(STEP, path[1:])]
    return ".".join(word for word in words if word not in TABLES)


def _weight_name(node: Any) -> str:
    """model.layer1.conv.weight, as in its state dict, under one name that nothing else has."""
    words = HOLDER.findall(str(getattr(_source(node), "name", "")))
    return ".".join(["model", *(a or b for a, b in words)] if words else ["model", node.name])


def _distinct(names: Sequence[str]) -> list[str]:
    """Several models in one graph may have weights of one name."""
    seen: dict[str, int] = {}
    result = []
    for name in names:
        seen[name] = seen.get(name, 0) + 1
        result.append(name if seen[name] == 1 else f"{name}_{seen[name]}")
    return result


def _attach(root: nn.Module, path: str, tensor: Tensor) -> None:
    *folders, name = path.split(".")
    for folder in folders:
        if folder not in root._modules:
            root.add_module(folder, nn.Module())
        root = getattr(root, folder)
    if isinstance(tensor, nn.Parameter):
        root.register_parameter(name, tensor)
    else:
        root.register_buffer(name, tensor)


def _roots(weights: Sequence[Any]) -> list[Any]:
    """The modules whose weights the graph reads: Dynamo looks at `training` only where a layer
    reads it.
    """
    scope = _scope()
    names = {re.match(r"L\['(\w+)'\]", str(getattr(_source(n), "name", ""))) for n in weights}
    found = [scope.get(match[1]) for match in names if match]
    modules = {id(value): value for value in found if isinstance(value, nn.Module)}
    return [weakref.ref(module) for module in modules.values()]


def _scope() -> Mapping[str, Any]:
    """The local variables of the function that Dynamo compiles, as it holds them further up."""
    frame: Any = sys._getframe()
    while frame is not None:
        scope = getattr(frame.f_locals.get("self"), "local_scope", None)
        if isinstance(scope, Mapping):
            return scope
        frame = frame.f_back
    return {}
