"""Functions of the core that only tests and benchmarks use: no part of the public interface."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from . import _core

_table: Any = _core._testing


def reach(pack: str) -> str:
    """Why a kernel does not see neighbours along H and W and mix all channels with weights.

    "" if it does.  Of a pack each kernel is judged at its own targets: an axis of one pixel, or
    with a window of one, has no neighbours.
    """
    return str(_table.reach(pack))


def simplify(kernel: str) -> str:
    """The kernel without redundant nodes.

    Equal up to rounding at all sizes, for all weights of the nodes that remain.
    """
    return str(_table.simplify(kernel))


def value_key(kernel: str) -> str:
    """A key of what the simplified kernel computes; '' if it has no small sizes.

    Equal keys: equal functions of image and weights (docs/kernel.md). "" if the kernel has no
    small sizes to evaluate it at.
    """
    return str(_table.value_key(kernel))


def draw_is_free(seed: int, index: int, options: str) -> bool:
    """Whether a draw is one of the share that ignores the drawing rules.

    `options`: those of `draw`; the share is its `free`, by default 0.1.
    """
    return bool(_table.draw_is_free(seed, index, options))


def probability(kernel: str, targets: str, options: str) -> str:
    """The exact probability that one attempt of a draw gives this kernel, as JSON.

    A list with an object for each kind of draw: `share` of the draws, names of the
    `rules` that are kept, `probability`, and `why` it is 0.
    """
    return str(_table.probability(kernel, targets, options))


def successes(targets: str, options: str, seed: int, attempts: int) -> str:
    """How many attempts of a draw give a kernel, as JSON.

    A list in the order of `probability`: `attempts`, `successes`, and the `limit` of a draw.
    """
    return str(_table.successes(targets, options, seed, attempts))


def broken_rules(pack: str, options: str) -> str:
    """The names of the drawing rules that a pack breaks, separated by blanks.

    Rules that the options of a draw switch off are not checked; of a kernel without bind lines
    only rules that need no sizes are.
    """
    return str(_table.broken_rules(pack, options))


def baseline(targets: str) -> str:
    """The cost of the convolutions that the targets replace, without bias, as JSON.

    The fields are those of `cost`.
    """
    return str(_table.baseline(targets))


def network_evaluate(network: str, arrays: Sequence[bytes]) -> list[bytes]:
    """Evaluate the outputs of a network with the interpreter.

    `arrays`: its inputs, then its weights, in the order of the text.  Arrays and results are
    whole tensors of float64, row-major, in the machine's byte order.
    """
    return list(_table.network_evaluate(network, arrays))
