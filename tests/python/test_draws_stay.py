"""Draws and children that were recorded: a study continues with those of its seed, and none may
change without notice.
"""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from canvas import _core

TARGETS = Path(__file__).resolve().parents[2] / "examples/targets"
# Since three quarters of the draws have a free size: the first 16 digits of SHA-256 over the first
# draws of seed 7.
RECORDED = """
resnet18     primitives=3..12               60  2d841a626c12b8b9
resnet18     primitives=5..25               60  267057d42febf1f0
resnet18     primitives=3..12 draws=paper   60  01043e903f01ac06
resnet18     primitives=3..8 require=none   60  0ba763bb8a5f4a4a
vgg16        primitives=3..12               60  01da5d3e8ef6da3f
vgg16        primitives=5..25               60  451b1035f552bec2
vgg16        primitives=3..12 draws=paper   60  7634a0fbabca64a0
vgg16        primitives=3..8 require=none   60  8007b010253084e1
mobilenet_v2 primitives=3..12               12  2ee018bfbe60fd44
mobilenet_v2 primitives=5..25               12  9d4fc0e9401bc765
mobilenet_v2 primitives=3..12 draws=paper   12  4eac3c4fc2139a31
mobilenet_v2 primitives=3..8 require=none   12  25f0d1e5f06d328f
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
    [("resnet18", 40, "eaf984e92f4a233c"), ("mobilenet_v2", 20, "760d19601bb8cacd")],
)
def test_children_are_those_of_before(name: str, count: int, recorded: str) -> None:
    """Of one parent and of two, by turns."""
    targets, options = (TARGETS / f"{name}.txt").read_text(), "primitives=3..12"
    drawn = [_core.draw(targets, 7, index, options) for index in range(8)]
    parents = [draw for draw in drawn if draw][:6]
    found = hashlib.sha256()
    for index in range(count):
        first = index % 5
        some = parents[first : first + 1 + index % 2]
        found.update(repr(_core.mutate(targets, 7, index, options, some)).encode())
    assert found.hexdigest()[:16] == recorded
