"""torch.export with the operators kept that have a program of their own."""

from __future__ import annotations

import contextlib
import functools
import io
import logging
import sys
import threading
import warnings
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import torch
import torch.fx.traceback as fx_traceback
from torch import fx, nn
from torch.export import ExportedProgram
from torch.export.graph_signature import InputKind
from torch.fx import Graph, Node
from torch.fx.experimental.symbolic_shapes import GuardOnDataDependentSymNode

from ..errors import CanvasError, one_line
from ..nn.kernel_node import kernels_as_nodes
from .autocast import without_autocast
from .encoders import encoders_as_evaluated
from .families import ROWS
from .in_place import without_in_place
from .rebound_buffers import ReboundBuffers, none_rebound
from .shared_copy import escaped, shared_copy, without_fakes
from .watched_code import WatchedCode


def decompositions() -> Any:
    """PyTorch's decompositions to core ATen, without those of operators that are rows."""
    table = torch.export.default_decompositions()
    for name in ROWS:
        space, short, overload = name.split(".")
        packet = getattr(getattr(torch.ops, space), short, None)
        known = getattr(packet, overload, None) if packet is not None else None
        if known is not None:
            table.pop(known, None)
    return table


def operator_name(node: Node) -> str:
    if isinstance(node.target, torch._ops.OpOverload):
        return str(node.target)
    return getattr(node.target, "__name__", str(node.target))


def decomposed(exported: ExportedProgram) -> ExportedProgram:
    """Operators that are no rows, as those that change a tensor in place, in terms of others."""
    names = {operator_name(node) for node in exported.graph.nodes if node.op == "call_function"}
    if all(name in ROWS or not name.startswith("aten.") for name in names):
        return exported
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", OF_COPIES, FutureWarning)
        return exported.run_decompositions(decompositions())


def _without_tokens(exported: ExportedProgram) -> ExportedProgram:
    """What raises an error where a matrix is singular, say, is an operator as others: the tokens
    that keep such operators in order are no inputs of a model.
    """
    if all(spec.kind != InputKind.TOKEN for spec in exported.graph_signature.input_specs):
        return exported
    # PyTorch's own, without a public name: as ExportedProgram.module() has it.
    from torch.export._remove_effect_tokens_pass import _remove_effect_tokens

    return _remove_effect_tokens(exported)


# PyTorch copies how the inputs nest, and warns of its own copy.
OF_COPIES = r"`isinstance\(treespec, LeafSpec\)` is deprecated"
INPUT, CHANGED = "canvas_input", "canvas_changed"


def _with_inputs_marked(exported: ExportedProgram) -> ExportedProgram:
    """A node by itself does not say whether it is an input or what the model holds."""
    given = set(exported.graph_signature.user_inputs)
    for node in exported.graph.nodes:
        if node.op == "placeholder" and node.name in given:
            node.meta[INPUT] = True
    return exported


def is_held(node: Node) -> bool:
    """A parameter or buffer of the model, or a tensor of the graph."""
    named = node.op == "placeholder" and node.name.startswith(("b_", "c_", "p_"))
    return named and INPUT not in node.meta


def _with_changes_marked(
    exported: ExportedProgram, rebound: Sequence[str] = ()
) -> ExportedProgram:
    """Nor whether it is another one at each call."""
    signature = exported.graph_signature
    changed = {*signature.buffers_to_mutate.values(), *rebound}
    names = {name for name, path in signature.inputs_to_buffers.items() if path in changed}
    for node in exported.graph.nodes:
        if node.op == "placeholder" and node.name in names:
            node.meta[CHANGED] = True
    return exported


def changes(node: Node) -> bool:
    """A buffer to which forward writes, or gives another tensor."""
    return CHANGED in node.meta


# Of conditions on values, and of shapes that do not fit: with a traceback each.
LOGGERS = (GuardOnDataDependentSymNode.__module__, "torch._subclasses.fake_tensor")


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Without what PyTorch warns of, logs and prints: a graph of many lines where it fails."""
    talkative = [logging.getLogger(name) for name in LOGGERS]
    levels, said = [logger.level for logger in talkative], io.StringIO()
    for logger in talkative:
        logger.setLevel(logging.CRITICAL)
    try:
        with warnings.catch_warnings(), contextlib.redirect_stderr(said):
            warnings.simplefilter("ignore")
            yield
        _say(said.getvalue())
    finally:
        for logger, level in zip(talkative, levels):
            logger.setLevel(level)


def _say(text: str) -> None:
    """What the model's own code wrote; standard error may be closed, or full."""
    with contextlib.suppress(OSError, ValueError):
        if text and sys.stderr is not None:
            sys.stderr.write(text)


def transforms(graph: Graph) -> bool:
    """Whether torch.vmap, torch.func.grad or the like are in it: calls that begin and end."""
    targets = [node.target for node in graph.nodes if node.op == "call_function"]
    return any("functorch" in str(getattr(one, "__module__", "")) for one in targets)


def export(
    model: nn.Module, args: Sequence[Any], kwargs: Mapping[str, Any] | None = None
) -> ExportedProgram:
    """A model as import_graph reads it best: kernels of canvas and the operators of the table are
    one node each. Raises CanvasError where PyTorch cannot export it.
    """
    exported, rebound = export_with_buffers(model, args, kwargs)
    if rebound:
        raise CanvasError(
            f"the model writes to '{rebound[0]}' when it is called, which a network cannot: leave "
            "that away"
        )
    return exported


def export_with_buffers(
    model: nn.Module, args: Sequence[Any], kwargs: Mapping[str, Any] | None = None
) -> tuple[ExportedProgram, list[str]]:
    """(the graph, the buffers that get other tensors in forward); where there are any, the model's
    answer is a pair: its own and these tensors.
    """
    given = (tuple(args), dict(kwargs or {}))
    with _quiet():
        copy = shared_copy(model)
        if copy is not None:
            rebound = ReboundBuffers(copy)
            with contextlib.suppress(_Untold):
                with without_fakes(model) as left:
                    exported = _exported(copy, *given)
                if not left and not escaped(model, exported):
                    return _with_changes_marked(exported, rebound.names), rebound.names
        try:
            with without_fakes(model), none_rebound(model):
                return _with_changes_marked(_exported(model, *given)), []
        except _Untold as error:
            raise CanvasError(f"PyTorch cannot export the model: {error}") from None


class _Untold(Exception):
    """An export failed, of what another try may not."""


@contextlib.contextmanager
def _marks_of_this_thread() -> Iterator[None]:
    """While one thread exports, a flag of all threads is set, and one that runs Dynamo's code
    marks it in a dictionary that the export replaces: KeyError('custom').
    """
    annotate, own = getattr(fx_traceback, "annotate", None), threading.get_ident()
    if annotate is None:  # an older PyTorch has no marks
        yield
        return

    over = False  # modules that PyTorch imports meanwhile keep what they find

    @functools.wraps(annotate)
    def of_own(marks: dict[str, Any]) -> Any:
        other = not over and threading.get_ident() != own
        return contextlib.nullcontext() if other else annotate(marks)

    inner = getattr(annotate, "__wrapped__", annotate)  # which Dynamo knows it by
    fx_traceback.annotate, of_own.__wrapped__ = of_own, inner
    try:
        yield
    finally:
        fx_traceback.annotate, over = annotate, True


def _depends_on_values(traced: bool) -> str:
    """Why there is no graph; `traced`: the model is one of torch.compile already."""
    if traced:
        return (
            "PyTorch cannot export the model: a number in it is known only when it runs, as one "
            "that a tensor holds; or one of a module that has changed, then "
            "torch._dynamo.config.specialize_float = True has it compiled as a constant"
        )
    return (
        "PyTorch cannot export the model: its code depends on the values of a tensor, as "
        "'if y.sum() > 0:' does; torch.compile(model, backend=\"canvas\") compiles what "
        "is before and after that"
    )


def _exported(model: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> ExportedProgram:
    watched = WatchedCode()
    with (
        torch.no_grad(),
        kernels_as_nodes(model),
        encoders_as_evaluated(model),
        _marks_of_this_thread(),
        watched,
    ):
        try:
            exported = torch.export.export(model, args, kwargs, strict=False)
            if transforms(exported.graph):
                raise CanvasError(
                    "PyTorch cannot export the model: its code transforms functions, as "
                    "torch.vmap and torch.func.grad do"
                )
            without_autocast(exported)
            without_in_place(exported)
            return _with_inputs_marked(_without_tokens(decomposed(exported)))
        except CanvasError:
            raise
        except GuardOnDataDependentSymNode:
            raise CanvasError(_depends_on_values(isinstance(model, fx.GraphModule))) from None
        except Exception as error:  # whatever the code of a stranger's model raises
            if isinstance(error, OSError) and "temporary directory" in str(error):
                raise CanvasError(
                    "PyTorch cannot write its temporary files: make room, raise the limit of file "
                    "sizes (ulimit -f), or set TMPDIR to another folder"
                ) from None
            raise _Untold(watched.reason(error) or one_line(error)) from None
