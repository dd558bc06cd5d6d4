"""The table of a fit: every operator at every layer and size, fitted, scored and timed.

A row is a pure function of the teacher, the operator and the seed, so that a table can be computed
in any order, in pieces, and be continued.
"""

from __future__ import annotations

import copy
import math
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import torch

from .. import _core
from ..errors import CanvasError, one_line
from ..nn.layer_time import convolution, seconds_of
from ..training.train import recompute_statistics
from .choice import Item
from .layer_data import LayerData
from .layer_fit import BATCH, compare, fit_layer, take_scale
from .menu import KEEP, Sized
from .take_over import start_from
from .teacher import Fitted, Teacher

NAN = "its outputs are not finite"
SHORT, LONG = 40, 100  # steps: of every item, of the better half
HELD_OUT = 256  # recorded images for the error, not for the fit


@dataclass(frozen=True)
class Row:
    """An item of the table: `error` of the layer's outputs, `loss` of the whole network with this
    item alone (nats), `seconds` as native code for one image; infinite where it failed, and
    `why` is the reason.
    """

    sized: Sized | None  # None: the layer is kept
    layer: str
    steps: int
    error: float
    loss: float
    seconds: float
    macs: int
    params: int
    fitted: Fitted | None = None
    why: str = ""

    @property
    def name(self) -> str:
        return KEEP if self.sized is None else self.sized.name

    def item(self) -> Item:
        """As the integer program takes it."""
        costs = {"macs": float(self.macs), "params": float(self.params), "latency": self.seconds}
        return Item(self.layer, self.name, self.loss, costs)


def kept_rows(teacher: Teacher, timed: bool) -> list[Row]:
    """A row for each layer as it stands: the loss of new statistics alone, its own costs."""
    rows = []
    for target in teacher.targets:
        seconds = seconds_of(convolution(target.line().split()[1:], 1)) if timed else math.nan
        rows.append(
            Row(None, target.name, 0, 0.0, teacher.floor, seconds, target.macs, target.params)
        )
    return rows


def fit_item(
    teacher: Teacher,
    data: LayerData,
    sized: Sized,
    steps: int,
    seed: int,
    timed: bool,
    take_over: bool = True,
) -> Row:
    """Fit, score and time one item.  A failure is a row with infinite loss."""
    cost = sized.pack.cost
    row = Row(
        sized, sized.layer, steps, 1.0, math.inf, math.inf, int(cost["macs"]), int(cost["params"])
    )
    try:
        fitted, error = fit_operator(data, sized, steps, seed, take_over)
        row = replace(row, error=error, fitted=fitted)
        seconds = seconds_of(_core.lower(sized.pack.text, 0, 1)) if timed else math.nan
        loss = teacher.loss_of(sized.layer, fitted)
        return replace(row, loss=loss, seconds=seconds, why="" if math.isfinite(loss) else NAN)
    except (CanvasError, RuntimeError) as error:
        return replace(row, why=one_line(error))


def fit_operator(
    data: LayerData, sized: Sized, steps: int, seed: int, take_over: bool = True
) -> tuple[Fitted, float]:
    """The operator after `steps` steps at its layer, and its error on recorded images that the fit
    did not see.  With `take_over`, weights that enter linearly start from the layer's.
    """
    target = sized.pack.targets[0]
    torch.manual_seed(seed)
    module = sized.pack.module(sized.pack.module.BINDINGS[0]["cin"], target=target)
    held_out, seen = data.split(min(HELD_OUT, len(data.inputs) // 4))
    if take_over:
        start_from(module, seen, seed)
    fit_layer(module, seen, steps, seed)
    recompute_statistics(module, seen.inputs[: 2 * HELD_OUT].float(), BATCH)
    error = compare(module, held_out).error
    bias = take_scale(module, compare(module, seen.split(2 * HELD_OUT)[0]))
    return Fitted(module.eval(), bias), error


def better_half(rows: Sequence[Row]) -> list[Row]:
    """Of each layer, the items with the smaller losses: half of them, rounded up."""
    chosen = []
    for layer in dict.fromkeys(row.layer for row in rows):
        own = sorted((row for row in rows if row.layer == layer), key=lambda row: row.loss)
        chosen += own[: (len(own) + 1) // 2]
    return chosen


def fill(
    teacher: Teacher,
    data: Mapping[str, LayerData],
    menu: Sequence[Sized],
    seed: int,
    timed: bool,
    say: Callable[[str], None] = lambda line: None,
    until: float = math.inf,
    take_over: bool = True,
) -> list[Row]:
    """The table of a menu: every item for SHORT steps, the better half of each layer for LONG
    ones.  At `until` (time.monotonic) it ends with the rows that are there.  `take_over` as in
    `fit_operator`.
    """
    rows: dict[tuple[str, str], Row] = {}
    for steps in (SHORT, LONG):
        for sized in menu if steps == SHORT else _better(rows.values()):
            if time.monotonic() > until:
                say(f"the time for fits is over: {len(rows)} of {len(menu)} items are fitted")
                return list(rows.values())
            row = fit_item(teacher, data[sized.layer], sized, steps, seed, timed, take_over)
            old = rows.get((row.layer, row.name))
            if old is None or row.loss < old.loss:
                rows[row.layer, row.name] = row
            loss = f"loss {row.loss:.4f}" if not row.why else f"failed: {row.why}"
            say(f"{row.layer} {row.name} after {steps} steps: error {row.error:.3f}, {loss}")
    return list(rows.values())


def _better(rows: Iterable[Row]) -> list[Sized]:
    found = better_half([row for row in rows if math.isfinite(row.loss)])
    return [row.sized for row in found if row.sized is not None and _has_weights(row)]


def _has_weights(row: Row) -> bool:
    return row.fitted is not None and any(p.numel() for p in row.fitted.module.parameters())


def fresh(row: Row, data: LayerData, steps: int, seed: int) -> Fitted:
    """The row's operator fitted anew for more steps."""
    assert row.sized is not None and row.fitted is not None
    if not _has_weights(row):
        return Fitted(copy.deepcopy(row.fitted.module), row.fitted.bias)
    return fit_operator(data, row.sized, steps, seed)[0]
