"""Placeholders for the convolutions, and if wanted the linear layers, of any network.

One real forward pass with hooks shows which of them run, in which order and on what; each gets a
row in a table: replaced, or skipped and why (survey.py has the rules).  Nothing else of the
network changes, all weights stay.  policy="spatial" leaves out 1x1 windows.  An image of one pixel
has no neighbours to see: a convolution on one (in squeeze-and-excitation, behind a global pooling)
stays, but for policy="all".
"""

from __future__ import annotations

import copy
import warnings
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from dataclasses import replace as replaced
from typing import Any

from torch import nn

from ..arguments import FUNCTION, SWITCH, TEXT, checked, shown
from ..errors import CanvasError
from ..layer_choice import POLICIES, LayerChoice
from .layer_target import plain_name, targets_text
from .placeholder import Placeholder, replace, run_quietly
from .survey import Filter, Survey

__all__ = ["Conversion", "Row", "convert", "replace"]

LITTLE = 0.5  # share of a network's MACs in layers replaced, below which a conversion warns
MANY = 0.9  # share in layers of the table, below which it names what else there is


@dataclass(frozen=True)
class Row:
    """What became of one layer; `macs` of one image, 0 where it did not run."""

    name: str
    status: str  # "replaced" or "skipped"
    reason: str
    macs: int
    kind: str = "convolution"  # or "linear"


@dataclass(frozen=True)
class Conversion:
    """A network with placeholders, its targets text, and a row per convolution (and linear layer,
    if these are replaced) in the order they run.

    `covered` is the share of the network's MACs (`macs`, of one image) in the layers replaced: it
    bounds the speed-up.  `warning`: where most of the MACs are if less than half of them are
    there, else "".  str() is the table.
    """

    model: nn.Module
    targets: str
    table: tuple[Row, ...]
    covered: float
    macs: int
    warning: str = ""

    def __str__(self) -> str:
        names = max(len(row.name) for row in self.table)
        lines = [f"{'layer':{names}}  {'MACs':>13}"]
        for row in self.table:
            what = row.status if row.status == "replaced" else f"skipped: {row.reason}"
            lines.append(f"{row.name:{names}}  {row.macs:13,}  {what}")
        count = sum(row.status == "replaced" for row in self.table)
        what = "layers" if any(row.kind == "linear" for row in self.table) else "convolutions"
        lines.append(
            f"{count} of {len(self.table)} {what} replaced, {self.covered:.1%} of the network's "
            f"MACs: at most {self.bound:.3g} times as fast"
        )
        lines += [f"warning: {self.warning}"] * bool(self.warning)
        return "\n".join(lines) + "\n"

    @property
    def bound(self) -> float:
        """How many times fewer MACs are left if the layers replaced take none."""
        return 1 / max(1 - self.covered, 1 / max(self.macs, 1))


@checked(
    policy=TEXT, filter_fn=FUNCTION, inplace=SWITCH, linear=SWITCH, depthwise=SWITCH, unequal=TEXT
)
def convert(
    model: nn.Module,
    example_input: Any,
    policy: str = "paper",
    filter_fn: Filter | None = None,
    inplace: bool = False,
    linear: bool = False,
    depthwise: bool = False,
    unequal: str = "gcd",
) -> Conversion:
    """Replace the convolutions of a network by placeholders.

    `example_input`: a tensor, or a tuple or dict of arguments, as the network takes it.  `policy`:
    "paper" (any window), "spatial" (only larger than 1x1) or "all" (also on images of one pixel).
    ``filter_fn(layer, path)`` returns False for layers to keep.  Without `inplace`, a deep copy is
    converted.  `linear`: linear layers are replaced, too; `depthwise`: depth-wise convolutions,
    too.  `unequal`: what becomes of layers where neither number of channels is a multiple of the
    other; "gcd": kernels with their greatest common divisor of channels, one for each pair of
    blocks of inputs and outputs; "project": kernels behind a learned 1x1 convolution to the
    layer's output channels, which budgets count; "skip": they stay.  Until canvas.replace, a
    placeholder computes the layer it replaces.

    Warns if less than half of the network's MACs are in the layers replaced.  Raises CanvasError
    for bad input, and if no layer can be replaced; the message names a policy that finds some.
    """
    choice = LayerChoice(policy, linear, depthwise, unequal).checked()
    conversion = convert_layers(model, example_input, choice, filter_fn, inplace)
    if conversion.warning:
        warnings.warn(conversion.warning, stacklevel=3)
    return conversion


def convert_layers(
    model: nn.Module,
    example_input: Any,
    choice: LayerChoice | str = "paper",
    filter_fn: Filter | None = None,
    inplace: bool = False,
    named: Collection[str] = (),
) -> Conversion:
    """`convert` by the choice of layers, or its text.  `named`: targets that a pack names; others
    stay, and those are replaced on images of one pixel, too (a pack of an earlier version may have
    sizes for them).
    """
    if not isinstance(model, nn.Module):
        raise CanvasError(f"a torch.nn.Module is needed, not {type(model).__name__}")
    choice = LayerChoice.parse(choice) if isinstance(choice, str) else choice
    if isinstance(model, (nn.Conv1d, nn.Conv2d)) or (
        choice.linear and isinstance(model, nn.Linear)
    ):
        raise CanvasError("the network is a single layer; wrap it in nn.Sequential")
    model = model if inplace else copied(model)
    survey = Survey.of(model, example_input, choice.linear, named)
    reasons = {path: survey.reason(path, choice, filter_fn) for path in survey.paths}
    taken: set[str] = set()
    placed = {
        path: Placeholder.instead_of(
            survey.layers[path],
            survey.target(path, plain_name(path, taken), choice),
            survey.view(path),
        )
        for path, reason in reasons.items()
        if not reason
    }
    try:
        for path, placeholder in placed.items():
            put_everywhere(model, survey.layers[path], placeholder)
        read = _read_by_the_network(model, example_input, placed)
        reasons |= read
    except BaseException:  # the network is as it was, whatever ended the conversion
        for placeholder in placed.values():
            _take_out(model, placeholder)
        raise
    if all(reasons.values()):
        raise CanvasError(_nothing(survey, choice, filter_fn, reasons, read))
    targets = [p.target for p in placed.values() if p.target is not None]
    rows = tuple(
        Row(path, "skipped" if why else "replaced", why, survey.macs(path), survey.kind(path))
        for path, why in reasons.items()
    )
    covered = sum(row.macs for row in rows if row.status == "replaced") / max(survey.total, 1)
    warning = _little(rows, covered, survey.total, choice) if covered < LITTLE else ""
    return Conversion(model, targets_text(targets), rows, covered, survey.total, warning)


class _Noting(Placeholder):
    """A placeholder that notes what the network reads of its layer: a kernel does not have it."""

    def __getattr__(self, name: str) -> Any:
        original = self.__dict__.get("_modules", {}).get("original")
        if original is not None and not name.startswith("_") and hasattr(original, name):
            self.__dict__["wanted"] = name
        return super().__getattr__(name)


@contextmanager
def _noting(placed: Mapping[str, Placeholder]) -> Iterator[None]:
    """Meanwhile the placeholders are of that class."""
    for holder in placed.values():
        holder.__class__ = _Noting
    try:
        yield
    finally:
        for holder in placed.values():
            holder.__class__ = Placeholder


def _read_by_the_network(
    model: nn.Module, example_input: Any, placed: dict[str, Placeholder]
) -> dict[str, str]:
    """Take out the placeholders of layers whose attributes the network reads beside calling them,
    and return the reasons.
    """
    reasons: dict[str, str] = {}
    while placed:
        failure = None
        with _noting(placed):
            try:
                run_quietly(model, example_input, {})
            except CanvasError as error:
                failure = error
        wanted = {
            path: name
            for path, holder in placed.items()
            if (name := holder.__dict__.pop("wanted", ""))
        }
        for path, name in wanted.items():
            _take_out(model, placed.pop(path))
            reasons[path] = f"the network reads its '{name}'"
        if failure and not wanted:
            raise failure
        if not wanted:
            break
    return reasons


def _take_out(model: nn.Module, placeholder: Placeholder) -> None:
    assert placeholder.original is not None
    put_everywhere(model, placeholder, placeholder.original)


def restore_kept(model: nn.Module) -> nn.Module:
    """Put the convolutions of placeholders without a kernel back in their places, and return the
    network: after `replace`, those of layers that a pack keeps.
    """
    if not isinstance(model, nn.Module):
        raise CanvasError(f"restore_kept takes a torch.nn.Module, not {shown(model)}")
    for child in list(model.modules()):
        if isinstance(child, Placeholder) and child.kernel is None and child.original is not None:
            put_everywhere(model, child, child.original)
    return model


def copied(model: nn.Module) -> nn.Module:
    """A deep copy; CanvasError with one message if the model cannot be copied."""
    try:
        return copy.deepcopy(model)
    except Exception as error:
        raise CanvasError(
            f"the network cannot be copied ({type(error).__name__}); convert it with inplace=True"
        ) from error


def put_everywhere(model: nn.Module, old: nn.Module, new: nn.Module) -> None:
    """`new` at all paths of `old`, which may be a part of several modules."""
    paths = [p for p, child in model.named_modules(remove_duplicate=False) if child is old]
    for path in paths:
        put_layer(model, path, new)


def put_layer(model: nn.Module, path: str, layer: nn.Module) -> None:
    parent, _, name = path.rpartition(".")
    setattr(model.get_submodule(parent), name, layer)


def _nothing(
    survey: Survey,
    choice: LayerChoice,
    filter_fn: Filter | None,
    reasons: Mapping[str, str],
    read: Collection[str],
) -> str:
    """The message for a network in which no layer can be replaced; `read`: layers that no policy
    replaces, as the network reads them.
    """
    what = "layer" if choice.linear else "convolution"
    for other in (policy for policy in POLICIES if policy != choice.policy):
        wider = replaced(choice, policy=other)
        left = [path for path in survey.paths if path not in read]
        count = sum(not survey.reason(path, wider, filter_fn) for path in left)
        if count:
            return (
                f"policy '{choice.policy}' finds no {what} to replace; "
                f"policy '{other}' would replace {count}"
            )
    counts: dict[str, int] = {}
    for reason in reasons.values():
        counts[reason] = counts.get(reason, 0) + 1
    common = sorted(counts.items(), key=lambda item: -item[1])[:3]
    why = ", ".join(f"{count} because {reason}" for reason, count in common)
    return f"no policy finds a {what} to replace in this network: {why}"


def _little(rows: Sequence[Row], covered: float, macs: int, choice: LayerChoice) -> str:
    """The warning for a network of which few MACs are in layers that are replaced: those that most
    of the others are in.
    """
    lost: dict[str, int] = {}
    for row in rows:
        if row.status != "replaced":
            lost[row.reason] = lost.get(row.reason, 0) + row.macs
    most = max(lost, key=lambda reason: lost[reason], default="")
    why = f"; most of the convolutions that stay: {most}" if most else ""
    listed = sum(row.macs for row in rows) / max(macs, 1)
    other = not choice.linear and listed < MANY
    hint = f"; {1 - listed:.1%} are not in convolutions (linear=True)" if other else ""
    return f"{covered:.1%} of the network's MACs are in layers replaced{why}{hint}"
