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
resnet18     primitives=3..12               60  0961d882e9995f78
resnet18     primitives=5..25               60  374818ef2afadf79
resnet18     primitives=3..12 draws=paper   60  b6cbdd40cd7def6d
resnet18     primitives=3..8 require=none   60  06f917d517f7c1b2
vgg16        primitives=3..12               60  b079cf6523f459db
vgg16        primitives=5..25               60  d0e3a49badac1527
vgg16        primitives=3..12 draws=paper   60  20ea54cd4b1f0697
vgg16        primitives=3..8 require=none   60  06f917d517f7c1b2
mobilenet_v2 primitives=3..12               12  85ad9ff1a021ec47
mobilenet_v2 primitives=5..25               12  02f19010a3fe325d
mobilenet_v2 primitives=3..12 draws=paper   12  e4dd41315ce049bc
mobilenet_v2 primitives=3..8 require=none   12  c09a4dbbdd67db85
resnet18     space=wide                     20 59e2ee3c57c7ff37
resnet18     draws=learned                  30 bac8ae221fe3d40f
resnet18     draws=learned space=wide       20 eecfbcf756ca4ed0
vgg16        draws=learned space=published  20 168162c4ad4e866f
mobilenet_v2 draws=learned space=wide       6 ced59f349a9fc035
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
    [("resnet18", 40, "7c783916a6bd9b6e"), ("mobilenet_v2", 20, "ef4f1883f37e12c6")],
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
