"""Thousands of drawn kernels, judged by a short fit to one layer.

    draws, then children of the best -> sizes for half of the layer's MACs -> 60 steps -> error

The error ranks kernels about as well as an epoch of training (docs/reports/pretests.md).  What
budgets limit counts beside it: of two good kernels with the same error the cheaper one is better,
by MACs, weights or predicted native time.  Kernels come in generations: each is a function of the
seed and of the errors of the generations before it, so that its kernels may be fitted in any
order.
"""

from __future__ import annotations

import itertools
import json
import math
import random
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType

import numpy as np

from .. import _core
from ..errors import CanvasError
from ..nn.layer_target import Target, screening_layer, targets_text
from ..nn.pack import KernelPack
from ..study import ScreenedKernel
from ..training.layer_data import LayerData
from .forks import run_forked
from .item_table import fit_operator
from .menu import Operator, Sized, sizes_of

STEPS = 60
SHARE = 0.5  # of the layer's MACs
GENERATION = 16  # kernels
DRAWN = 3  # generations before the first children
FRESH = 0.2  # share of later kernels that are draws
PARENTS = 16  # the best kernels
GRAFTS = 0.25  # share of the children that have two parents
GOOD = 0.45  # error above which a kernel is not fitted further
TRIES = 2000  # draws of a generation, after which the screening ends


Errors = Callable[[Sequence[Sized], float], Iterator[tuple[int, tuple[float, float]]]]


@dataclass(frozen=True)
class Screened:
    """A kernel and what became of it: the error after STEPS steps, 0..1, and its hash; `costs`: by
    quantity, at the layer of the fit.
    """

    operator: Operator
    hash: str
    error: float
    costs: tuple[float, ...] = ()


def screen(
    targets: Sequence[Target],
    data: LayerData,
    seed: int,
    count: int,
    workers: int = 1,
    until: float = math.inf,
    known: Mapping[str, float] = MappingProxyType({}),
    tell: Callable[[int, Screened, float], None] = lambda number, item, seconds: None,
    quantities: Sequence[str] = ("macs",),
    errors_of: Errors | None = None,
    how: str = "",
) -> list[Screened]:
    """At most `count` different kernels with their errors on the layer of `screening_layer`, whose
    inputs and outputs are `data`, in the order tried; fewer where `until` (time.monotonic) comes.

    `known`: errors by hash that an earlier run has found; `tell` hears of every other kernel: its
    number from 1, what became of it, the processor seconds of its fit.  `quantities`: what budgets
    limit, of macs, params and latency.  `errors_of` fits the kernels of a generation (default: in
    `workers` children).  `how`: the options of draws, as the core spells them.
    """
    layer, lines = screening_layer(targets), targets_text(targets)
    found: list[Screened] = []
    seen: set[str] = set()

    def forked(jobs: Sequence[Sized], until: float) -> Iterator[tuple[int, tuple[float, float]]]:
        return run_forked(
            lambda sized: error_of(sized, data, seed), jobs, workers, until, lost=(1.0, 0.0)
        )

    for generation in itertools.count():
        size = min(GENERATION, count - len(found))
        if size <= 0 or time.monotonic() > until:
            break
        items = _generation(lines, layer, found, seen, seed, generation, size, quantities, how)
        errors = {i: known[item.hash] for i, (item, _) in enumerate(items) if item.hash in known}
        asked = [i for i in range(len(items)) if i not in errors]
        jobs = [items[i][1] for i in asked]
        for at, (error, seconds) in (errors_of or forked)(jobs, until):
            i = asked[at]
            errors[i] = error
            tell(len(found) + i + 1, replace(items[i][0], error=error), seconds)
        found += [replace(items[i][0], error=errors[i]) for i in sorted(errors)]
        if len(errors) < size:
            break
    return found


def screened_before(
    rows: Sequence[ScreenedKernel], targets: Sequence[Target], quantities: Sequence[str]
) -> list[Screened]:
    """What `screen` gave in an earlier run, from its rows."""
    layer = screening_layer(targets)
    found = []
    for row in rows:
        operator = Operator(_name(row.number), row.kernel, control=False, groups=row.groups)
        sized = sizes_of(operator, layer, (SHARE,))
        if sized:
            costs = _costs(sized[0], quantities)
            found.append(Screened(operator, row.hash, row.error, costs))
    return found


def _name(number: int) -> str:
    return f"k{number:04d}"


def _generation(
    lines: str,
    layer: Target,
    found: Sequence[Screened],
    seen: set[str],
    seed: int,
    generation: int,
    size: int,
    quantities: Sequence[str],
    how: str,
) -> list[tuple[Screened, Sized]]:
    """The next kernels, without their errors, each with its sizes at the layer."""
    chance = random.Random(f"{seed} {generation}")
    best = list(itertools.islice(best_first(found), PARENTS))
    items: list[tuple[Screened, Sized]] = []
    for index in range(generation * TRIES, (generation + 1) * TRIES):
        if len(items) == size:
            break
        if generation < DRAWN or not best or chance.random() < FRESH:
            drawn = _core.draw(lines, seed, index, how)
        else:
            parents = chance.sample(best, 2 if len(best) > 1 and chance.random() < GRAFTS else 1)
            pairs = [(item.operator.kernel, item.operator.groups or 1) for item in parents]
            drawn = _core.mutate(lines, seed, index, how, pairs)
        if drawn is None or (hash := _core.hash(drawn[0])) in seen:
            continue
        seen.add(hash)
        name = _name(len(found) + len(items) + 1)
        operator = Operator(name, drawn[0], control=False, groups=drawn[1])
        if sized := sizes_of(operator, layer, (SHARE,)):
            costs = _costs(sized[0], quantities)
            items.append((Screened(operator, hash, math.nan, costs), sized[0]))
    return items


def _costs(sized: Sized, quantities: Sequence[str]) -> tuple[float, ...]:
    """Of an item, infinite where there is none."""
    found = []
    for name in quantities:
        if name == "latency":
            try:
                predicted = _core.predict_program(_core.lower(sized.pack.text, 0, 1))
                found.append(float(json.loads(predicted)["seconds"]))
            except CanvasError:
                found.append(math.inf)
        else:
            found.append(float(sized.pack.cost[name]))
    return tuple(found)


def error_of(sized: Sized, data: LayerData, seed: int) -> tuple[float, float]:
    """The error of a kernel, 1 where it cannot be fitted, and the processor seconds."""
    begun = time.process_time()
    try:
        error = fit_operator(data, sized, STEPS, seed)[1]
    except (CanvasError, RuntimeError):
        error = 1.0
    return error, time.process_time() - begun


def best_first(found: Sequence[Screened]) -> Iterator[Screened]:
    """Good kernels front by front: first those that no other one beats in error and costs, then
    those that only these beat, and so on, within a front by error.  Then the others by error.
    """
    left = sorted((i for i in found if i.error <= GOOD), key=lambda item: item.error)
    values = np.array([(item.error, *item.costs) for item in left])
    at = np.arange(len(left))
    while len(at):
        rows = values[at]
        no_worse = (rows[:, None] <= rows[None]).all(2)
        beaten = (no_worse & ~no_worse.T).any(0)
        yield from (left[i] for i in at[~beaten])
        at = at[beaten]
    yield from sorted((i for i in found if i.error > GOOD), key=lambda item: item.error)


def survivors(found: Sequence[Screened], count: int) -> list[Operator]:
    """At most `count` good kernels, the best first: each error below GOOD, of kernels that use the
    same primitives the same number of times only the best two.
    """
    chosen: list[Operator] = []
    alike: dict[tuple[str, ...], int] = {}
    for item in best_first(found):
        kind = _primitives(item.operator.kernel)
        if item.error > GOOD or alike.get(kind, 0) >= 2 or len(chosen) == count:
            continue
        alike[kind] = alike.get(kind, 0) + 1
        chosen.append(item.operator)
    return chosen


def _primitives(kernel: str) -> tuple[str, ...]:
    nodes = (line.split() for line in KernelPack(kernel).kernel.splitlines())
    return tuple(sorted(words[2] for words in nodes if words[1:2] == ["="]))
