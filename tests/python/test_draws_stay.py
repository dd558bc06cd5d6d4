"""Draws and children that were recorded: a study continues with those of its seed, so none may
change unless the version of the sampler does.
"""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from canvas import _core

TARGETS = Path(__file__).resolve().parents[2] / "examples/targets"
VERSION = 2  # of the sampler that drew what follows
CHANGED = (
    f"other draws than those of version {VERSION} of the sampler: older studies must not go on "
    "with them.  If that is meant, increase CANVAS_SAMPLER_VERSION in include/canvas.h and record "
    "version and draws here"
)
# The first 16 digits of SHA-256 over the first draws of seed 7.
RECORDED = """
resnet18     primitives=3..12               60  fbf8cddfe94ab173
resnet18     primitives=5..25               60  ecd1e18b85887882
resnet18     primitives=3..12 draws=paper   60  d87bcc67a1f188e6
resnet18     primitives=3..8 require=none   60  9bfd7b40b2674db3
vgg16        primitives=3..12               60  a756bd2face76b53
vgg16        primitives=5..25               60  6b2b0fb2ee079d9f
vgg16        primitives=3..12 draws=paper   60  d87bcc67a1f188e6
vgg16        primitives=3..8 require=none   60  acb7358019ab19b9
mobilenet_v2 primitives=3..12               12  370e48798ec86fc7
mobilenet_v2 primitives=5..25               12  701c8487cec0b16c
mobilenet_v2 primitives=3..12 draws=paper   12  d5beeefa569027a1
mobilenet_v2 primitives=3..8 require=none   12  d737362f8607a124
"""


def test_what_is_recorded_is_of_this_version() -> None:
    assert _core.SAMPLER_VERSION == VERSION, "record the draws of the new version here"


@pytest.mark.parametrize("row", RECORDED.strip().splitlines(), ids=lambda row: row[:-24].strip())
def test_draws_are_those_of_before(row: str) -> None:
    name, *options, count, recorded = row.split()
    targets = (TARGETS / f"{name}.txt").read_text()
    found = hashlib.sha256()
    for index in range(int(count)):
        found.update(repr(_core.draw(targets, 7, index, " ".join(options))).encode())
    assert found.hexdigest()[:16] == recorded, CHANGED


@pytest.mark.parametrize(
    ("name", "count", "recorded"),
    [("resnet18", 40, "776244c3b49f66a1"), ("mobilenet_v2", 20, "a87efba75ec2636e")],
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
    assert found.hexdigest()[:16] == recorded, CHANGED
