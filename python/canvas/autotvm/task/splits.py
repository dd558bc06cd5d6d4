"""The ways to split an axis into loops, of which define_split makes a knob."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from ...arguments import shown
from ...errors import CanvasError, one_line
from ...te.place import mistake
from .entities import SplitEntity, is_sizes

WAYS_MOST = 200_000  # of a knob


def _few(ways: Iterator[list[int]]) -> Iterator[list[int]]:
    for number, way in enumerate(ways):
        if number >= WAYS_MOST:
            raise mistake(
                f"define_split: there are more than {WAYS_MOST} ways, take fewer num_outputs or "
                "a max_factor"
            )
        yield way


def filtered(found: list[SplitEntity], wanted: Callable[[SplitEntity], Any]) -> list[SplitEntity]:
    try:
        return [one for one in found if wanted(one)]
    except CanvasError:
        raise
    except Exception as error:
        raise mistake(f"define_split: filter raised {one_line(error)}") from error


def candidates(given: Sequence[Sequence[int]], parts: int) -> list[SplitEntity]:
    if not isinstance(given, (list, tuple)) or not all(map(is_sizes, given)):
        raise mistake(f"define_split: candidate is a list of lists of sizes, not {shown(given)}")
    if any(len(sizes) != parts for sizes in given):
        raise mistake(f"define_split: each candidate has {parts} sizes, as num_outputs says")
    return [SplitEntity(list(sizes)) for sizes in given]


def numbers_of(policy: str, length: int) -> list[int]:
    powers = [2**power for power in range(length.bit_length())]
    if policy == "power2":
        return powers
    divisors = get_factors(length)
    return divisors if policy == "factors" else list(set(divisors) | set(powers))


def get_factors(n: int) -> list[int]:
    """The divisors of a number, ascending."""
    low = [one for one in range(1, math.isqrt(n) + 1) if n % one == 0]
    return sorted({*low, *(n // one for one in low)})


def ways(numbers: Sequence[int], product: int, parts: int, whole: bool) -> Iterator[list[int]]:
    """Sizes of all loops but the outermost, those whose innermost is the first number first;
    `whole`: of those whose product divides the length.
    """

    def some(left: int, inner: int) -> Iterator[list[int]]:
        if left == 0:
            yield []
            return
        for number in numbers:
            more = inner * number
            if more <= product and (product % more == 0 or not whole):
                for rest in some(left - 1, more):
                    yield [*rest, number]

    return _few(some(parts - 1, 1))
