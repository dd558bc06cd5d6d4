"""Draws and children that were recorded: a study continues with those of its seed, and none may
change without notice.
"""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from canvas import _core

TARGETS = Path(__file__).resolve().parents[2] / "examples/targets"
# Of commit c5262c51: the first 16 digits of SHA-256 over the first draws of seed 7.
RECORDED = """
resnet18     primitives=3..12               60  cceeb35554809ce0
resnet18     primitives=5..25               60  a9862e59f422663f
resnet18     primitives=3..12 draws=paper   60  b51a9071d279fc24
resnet18     primitives=3..8 require=none   60  dc17168af8d17408
vgg16        primitives=3..12               60  a3b96175b5d776cb
vgg16        primitives=5..25               60  f37bbf22b6a68670
vgg16        primitives=3..12 draws=paper   60  7eae2258a5386d22
vgg16        primitives=3..8 require=none   60  db725796416a86c2
mobilenet_v2 primitives=3..12               12  b502356056986495
mobilenet_v2 primitives=5..25               12  b804f818d7c57539
mobilenet_v2 primitives=3..12 draws=paper   12  fc2ca38785e8fac4
mobilenet_v2 primitives=3..8 require=none   12  e8c4e2ed247d6235
"""


@pytest.mark.parametrize("row", RECORDED.strip().splitlines(), ids=lambda row: row[:-24].strip())
def test_draws_are_those_of_before(row: str) -> None:
    name, *options, count, recorded = row.split()
    targets = (TARGETS / f"{name}.txt").read_text()
    found = hashlib.sha256()
    for index in range(int(count)):
        found.update(repr(_core.draw(targets, 7, index, " ".join(options))).encode())
    assert found.hexdigest()[:16] == recorded


@pytest.mark.parametrize(
    ("name", "count", "recorded"),
    [("resnet18", 40, "b5d0e03318954158"), ("mobilenet_v2", 20, "3782b07753e45082")],
)
def test_children_are_those_of_before(name: str, count: int, recorded: str) -> None:
    """Of one parent and of two, by turns."""
    targets, options = (TARGETS / f"{name}.txt").read_text(), "primitives=3..12"
    parents = [_core.draw(targets, 7, index, options) for index in range(6)]
    found = hashlib.sha256()
    for index in range(count):
        first = index % 5
        some = parents[first : first + 1 + index % 2]
        found.update(repr(_core.mutate(targets, 7, index, options, some)).encode())
    assert found.hexdigest()[:16] == recorded
