"""The table of a fit: every operator at every layer and size, fitted, scored and timed.

A row is a pure function of the teacher, the operator and the seed, so that a table can be computed
in any order, in pieces, and be continued.
"""

from __future__ import annotations

import itertools
import math
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from types import MappingProxyType

import torch

from .. import _core
from ..errors import CanvasError, one_line
from ..nn.layer_time import convolution, seconds_of
from ..training.layer_data import LayerData
from ..training.layer_fit import fit_module, take_scale
from .choice import Item
from .forks import run_forked
from .menu import KEEP, Sized, in_turns
from .take_over import start_from
from .teacher import Fitted, Teacher
from .weight_files import fitted_to_bytes

NAN = "its outputs are not finite"
SHORT, LONG = 40, 100  # steps: of every item, of the better half


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
    fitted: Fitted | None = None  # while it is in memory
    why: str = ""
    weights: str = ""  # sha256 of the fitted ones, as a fit keeps them

    @property
    def name(self) -> str:
        return KEEP if self.sized is None else self.sized.name

    def item(self) -> Item:
        """As the integer program takes it."""
        costs = {"macs": float(self.macs), "params": float(self.params), "latency": self.seconds}
        return Item(self.layer, self.name, self.loss, costs)


def kept_rows(
    teacher: Teacher, timed: bool, time_of: Callable[[str], float] = seconds_of
) -> list[Row]:
    """A row for each layer as it stands: the loss of new statistics alone, its own costs.
    `time_of` gives the seconds of a program.
    """
    rows = []
    for target in teacher.targets:
        seconds = time_of(convolution(target.line().split()[1:], 1)) if timed else math.nan
        rows.append(
            Row(None, target.name, 0, 0.0, teacher.floor, seconds, target.macs, target.params)
        )
    return rows


@dataclass(frozen=True)
class Way:
    """How items are fitted: from a seed; `timed`: as native code, too; with `take_over`, weights
    that enter linearly start from the layer's.
    """

    seed: int
    timed: bool
    take_over: bool = True


def fit_item(teacher: Teacher, data: LayerData, sized: Sized, steps: int, way: Way) -> Row:
    """Fit, score and time one item.  A failure is a row with infinite loss."""
    cost = sized.pack.cost
    row = Row(
        sized, sized.layer, steps, 1.0, math.inf, math.inf, int(cost["macs"]), int(cost["params"])
    )
    try:
        fitted, error = fit_operator(data, sized, steps, way.seed, way.take_over)
        row = replace(row, error=error, fitted=fitted)
        seconds = seconds_of(_core.lower(sized.pack.text, 0, 1)) if way.timed else math.nan
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
    start = partial(start_from, seed=seed) if take_over else None
    error, match = fit_module(module, data, steps, seed, start)
    return Fitted(module.eval(), take_scale(module, match)), error


@dataclass(frozen=True)
class Outcome:
    """What a child reports of an item: the figures of its Row, its weights as a file, and the
    processor seconds that it took.
    """

    error: float
    loss: float
    seconds: float
    why: str
    weights: bytes
    used: float


def outcome_of(teacher: Teacher, data: LayerData, sized: Sized, steps: int, way: Way) -> Outcome:
    begun = time.process_time()
    row = fit_item(teacher, data, sized, steps, way)
    weights = b"" if row.fitted is None else fitted_to_bytes(row.fitted)
    return Outcome(row.error, row.loss, row.seconds, row.why, weights, time.process_time() - begun)


def lost(why: str) -> Outcome:
    """That of an item whose child has died."""
    return Outcome(1.0, math.inf, math.inf, why, b"", 0.0)


Key = tuple[str, str, int]  # layer, name of the item, steps
Outcomes = Callable[[Sequence[Sized], int, float], Iterator[tuple[int, Outcome]]]


def fill(
    teacher: Teacher,
    data: Mapping[str, LayerData],
    menu: Sequence[Sized],
    way: Way,
    workers: int = 1,
    until: tuple[float, float] = (math.inf, math.inf),
    known: Mapping[Key, Row] = MappingProxyType({}),
    tell: Callable[[Row, Outcome], Row] = lambda row, outcome: row,
    outcomes_of: Outcomes | None = None,
) -> list[Row]:
    """The table of a menu: every item for SHORT steps, the better half of each layer for LONG
    ones; of both the better row.  At the two moments `until` (time.monotonic) these end with the
    rows that are there.

    `known` are rows of an earlier run; `tell` hears of every other one, keeps its weights, and
    gives the row that stands for it.  `outcomes_of` does so many steps with items until a moment
    (default: in `workers` children).
    """
    rows: dict[tuple[str, str], Row] = {}
    for steps, end in zip((SHORT, LONG), until, strict=True):
        asked: list[Sized] = []
        for sized in in_turns(menu) if steps == SHORT else _better(rows.values()):
            key = (sized.layer, sized.name, steps)
            if key in known:
                _keep_better(rows, known[key])
            else:
                asked.append(sized)

        def job(sized: Sized, steps: int = steps) -> Outcome:
            return outcome_of(teacher, data[sized.layer], sized, steps, way)

        every = (
            outcomes_of(asked, steps, end)
            if outcomes_of
            else run_forked(job, asked, workers, end, lost)
        )
        for at, outcome in every:
            cost = asked[at].pack.cost
            row = Row(
                asked[at], asked[at].layer, steps, outcome.error, outcome.loss, outcome.seconds,
                int(cost["macs"]), int(cost["params"]), why=outcome.why,
            )  # fmt: skip
            _keep_better(rows, tell(row, outcome))
    order = {(sized.layer, sized.name): at for at, sized in enumerate(menu)}
    return [rows[key] for key in sorted(rows, key=lambda key: order[key])]


def _keep_better(rows: dict[tuple[str, str], Row], row: Row) -> None:
    old = rows.get((row.layer, row.name))
    if old is None or row.loss < old.loss:
        rows[row.layer, row.name] = row


def better_half(rows: Sequence[Row]) -> list[Row]:
    """Of each layer, the items with the smaller losses: half of them, rounded up."""
    chosen = []
    for layer in dict.fromkeys(row.layer for row in rows):
        own = sorted((row for row in rows if row.layer == layer), key=_by_loss)
        chosen += own[: (len(own) + 1) // 2]
    return chosen


def _by_loss(row: Row) -> tuple[float, str]:
    return row.loss, row.name


def _better(rows: Iterable[Row]) -> list[Sized]:
    """Those to fit longer, the best of every layer first, so that a time limit leaves these."""
    own: dict[str, list[Row]] = {}
    for row in better_half([row for row in rows if math.isfinite(row.loss)]):
        own.setdefault(row.layer, []).append(row)
    best = (row for rank in itertools.zip_longest(*own.values()) for row in rank if row)
    return [row.sized for row in best if row.sized is not None and row.params]
