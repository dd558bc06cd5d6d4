"""The orders and the marks of axes that a policy names."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ...arguments import shown
from ...te.place import mistake


def permutations(
    axes: Sequence[Any], policy: str, more: Mapping[str, Any]
) -> Iterator[Sequence[int]]:
    """Of define_reorder."""
    places = range(len(axes))
    if policy == "identity":
        yield places
    elif policy == "all":
        yield from itertools.permutations(places)
    elif policy == "interval_all":
        begin, end = more["interval"]
        for middle in itertools.permutations(range(begin, end)):
            yield (*range(begin), *middle, *range(end, len(axes)))
    elif policy == "candidate":
        for order in more["candidate"]:
            yield [_place(axes, axis) for axis in order]
    elif policy == "interleave":
        yield from _interleaved(axes, more["spatial"], more["reduce"])
    else:
        raise mistake(
            f"define_reorder: there is no policy {shown(policy)}, there are identity, all, "
            "interval_all, candidate, interleave"
        )


def _place(axes: Sequence[Any], axis: Any) -> int:
    for place, one in enumerate(axes):
        if one is axis:
            return place
    raise mistake(f"define_reorder: {shown(axis)} is none of the axes")


def _interleaved(
    axes: Sequence[Any], spatial: Sequence[Sequence[Any]], reduce: Sequence[Sequence[Any]]
) -> Iterator[list[int]]:
    outer = [[_place(axes, axis) for axis in chain] for chain in spatial]
    inner = [[_place(axes, axis) for axis in chain] for chain in reduce]
    for first in _merged([chain[:-1] for chain in outer]):
        for last in _merged([chain[-1:] for chain in outer] + inner):
            yield first + last


def _merged(chains: list[list[int]]) -> Iterator[list[int]]:
    """Of chains the longest goes first; of equal ones the first."""
    longest = max(chains, key=len, default=[])
    if not longest:
        yield []
        return
    at = next(place for place, chain in enumerate(chains) if len(chain) == len(longest))
    rest = [chain[1:] if place == at else chain for place, chain in enumerate(chains)]
    for after in _merged(rest):
        yield [longest[0], *after]


def marks_of(axes: Sequence[Any], policy: str, more: Mapping[str, Any]) -> Iterator[Sequence[Any]]:
    """Of define_annotate: at most one axis is vec."""
    if policy == "locate_cache":
        yield from itertools.combinations(range(len(axes)), int(more["num_anchor"]))
        return
    words = policy.replace("try", "none").split("_")
    if any(mark not in ("none", "unroll", "vec") for mark in words):
        raise mistake(
            f"define_annotate: there is no policy {shown(policy)}, there are unroll, vec, "
            "try_unroll, try_vec, try_unroll_vec, locate_cache"
        )
    for one in itertools.product(words, repeat=len(axes)):
        if one.count("vec") <= 1:
            yield one
