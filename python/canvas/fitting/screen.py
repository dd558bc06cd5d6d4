"""Thousands of drawn kernels, judged by a short fit to one layer.

    draws, then children of the best -> sizes for half of the layer's MACs -> 60 steps -> error

The error ranks kernels as their fits to all layers do (docs/search.md).  Kernel i is a function of
the seed and of what came of the kernels before it.
"""

from __future__ import annotations

import math
import random
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from .. import _core
from ..errors import CanvasError
from ..nn.layer_target import Target, screening_layer, targets_text
from ..nn.pack import KernelPack
from ..training.layer_data import LayerData
from .item_table import fit_operator
from .menu import Operator, Sized, sizes_of

STEPS = 60
SHARE = 0.5  # of the layer's MACs
DRAWS = 48  # kernels before the first children
PARENTS = 16  # the best ones
GRAFTS = 0.25  # share of the children that have two parents
GOOD = 0.45  # error above which a kernel is not fitted further
TRIES = 2000  # draws without a new kernel after which the screening ends


@dataclass(frozen=True)
class Screened:
    """A kernel and what became of it: the error after STEPS steps, 0..1, and its hash."""

    operator: Operator
    hash: str
    error: float


def screen(
    targets: Sequence[Target],
    data: LayerData,
    seed: int,
    count: int,
    until: float = math.inf,
    say: Callable[[str], None] = lambda line: None,
) -> list[Screened]:
    """At most `count` different kernels with their errors on the layer of `screening_layer`, whose
    inputs and outputs are `data`, in the order tried; fewer where `until` (time.monotonic) comes.
    """
    layer, lines = screening_layer(targets), targets_text(targets)
    chance = random.Random(seed)
    found: list[Screened] = []
    known: set[str] = set()
    index = tries = 0
    while len(found) < count and tries < TRIES and time.monotonic() < until:
        drawn = _next_kernel(lines, found, seed, index, chance)
        index += 1
        tries += 1
        if drawn is None or (hash := _core.hash(drawn[0])) in known:
            continue
        known.add(hash)
        operator = Operator(f"k{len(known):04d}", drawn[0], control=False, groups=drawn[1])
        sized = sizes_of(operator, layer, (SHARE,))
        if not sized:
            continue
        tries = 0
        found.append(Screened(operator, hash, _error(sized[0], data, seed)))
        if len(found) % 50 == 0:
            least = min(item.error for item in found)
            say(f"{len(found)} kernels screened, least error {least:.3f}")
    return found


def _next_kernel(
    lines: str, found: Sequence[Screened], seed: int, index: int, chance: random.Random
) -> tuple[str, int] | None:
    best = sorted(found, key=lambda item: item.error)[:PARENTS]
    if len(found) < DRAWS or chance.random() < 0.2:
        return _core.draw(lines, seed, index, "")
    parents = chance.sample(best, 2 if chance.random() < GRAFTS else 1)
    pairs = [(item.operator.kernel, item.operator.groups or 1) for item in parents]
    return _core.mutate(lines, seed, index, "", pairs)


def _error(sized: Sized, data: LayerData, seed: int) -> float:
    try:
        return fit_operator(data, sized, STEPS, seed)[1]
    except (CanvasError, RuntimeError):
        return 1.0


def survivors(found: Sequence[Screened], count: int) -> list[Operator]:
    """At most `count` good kernels, the best first: each error below GOOD, of kernels that use the
    same primitives the same number of times only the best two.
    """
    chosen: list[Operator] = []
    alike: dict[tuple[str, ...], int] = {}
    for item in sorted(found, key=lambda item: item.error):
        kind = _primitives(item.operator.kernel)
        if item.error > GOOD or alike.get(kind, 0) >= 2 or len(chosen) == count:
            continue
        alike[kind] = alike.get(kind, 0) + 1
        chosen.append(item.operator)
    return chosen


def _primitives(kernel: str) -> tuple[str, ...]:
    nodes = (line.split() for line in KernelPack(kernel).kernel.splitlines())
    return tuple(sorted(words[2] for words in nodes if words[1:2] == ["="]))
