"""Draws and children that were recorded: a study continues with those of its seed, and none may
change without notice.
"""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from canvas import _core

TARGETS = Path(__file__).resolve().parents[2] / "examples/targets"
# Since draws are simplified: the first 16 digits of SHA-256 over the first draws of seed 7.
RECORDED = """
resnet18     primitives=3..12               60  b546ebd55aafdbfa
resnet18     primitives=5..25               60  62f5d578a1650dc7
resnet18     primitives=3..12 draws=paper   60  0fe3089fe66f55d5
resnet18     primitives=3..8 require=none   60  ab6242628c6c5c67
vgg16        primitives=3..12               60  8d46a7c365ecacf2
vgg16        primitives=5..25               60  6e4a06195d24ddda
vgg16        primitives=3..12 draws=paper   60  0fe3089fe66f55d5
vgg16        primitives=3..8 require=none   60  202afe6e045c13c9
mobilenet_v2 primitives=3..12               12  c13416f36b53ccf3
mobilenet_v2 primitives=5..25               12  fdc11dfd93a9eefa
mobilenet_v2 primitives=3..12 draws=paper   12  84306b3451181bbc
mobilenet_v2 primitives=3..8 require=none   12  bdc03c4f5d6a93d3
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
    [("resnet18", 40, "11ab5fd88137695d"), ("mobilenet_v2", 20, "b3caec637dff48c7")],
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
