"""draws=learned: what it learns from, its probabilities, and that options hold in its draws."""

from __future__ import annotations

import functools
import json
import math
import os
import re
import time
from collections import Counter
from pathlib import Path

import pytest
import torch

import canvas
from canvas import _core, _testing

ROOT = Path(__file__).resolve().parents[2]
RESNET18 = (ROOT / "examples/targets/resnet18.txt").read_text()
EXAMPLES = {file.stem: file.read_text() for file in (ROOT / "examples/kernels").glob("*.kernel")}
SOURCE = ROOT / "src/sample/known_kernels.c"
FEW = "16,8,8;32,4,4"

# Example kernels that no learned draw for ResNet-18 is, and why.
NEVER = {
    "eca": "no fully connected primitive mixes all its channels",
    "figure8_shift": "no fully connected primitive mixes all its channels",
    "figure8_window": "no fully connected primitive mixes all its channels",
    "figure9_b": "it sees no neighbours along H",
    "grouped": "no fully connected primitive mixes all its channels",
    "large_kernel_attention": "some weight has no effect on the smallest images",  # windows of 19
    "octave": "not drawn: d = pool c by=2",  # images of 7 rows
    "pointwise": "it sees no neighbours along H",
    "published": "no fully connected primitive mixes all its channels",
    "shuffle": "no fully connected primitive mixes all its channels",
    "spatial_bottleneck": "not drawn: b = pool a by=2",
}
# The sum over all orders takes a while.
long = pytest.mark.skipif(not os.environ.get("CANVAS_TEST_ALL"), reason="one of the long tests")
LONG = {"large_kernel_attention", "coord_conv"}


def kernel_of(nodes: str) -> str:
    return "canvas 1\nkernel k\na = input\n" + nodes.replace(";", "\n") + "\n"


def known_text() -> str:
    head, _, _ = SOURCE.read_text().partition("{")
    rows = []
    for name in sorted(EXAMPLES):
        simple = _testing.simplify(EXAMPLES[name])
        kept = [re.sub(r"\s*:.*", "", line) for line in simple.splitlines() if line]
        assert kept.pop(0) == "canvas 1"
        rows.append("\n".join(f'    "{line}\\n"' for line in kept) + ",\n")
    return head + "{\n" + "".join(rows) + "};\n"


def test_it_learns_from_all_example_kernels() -> None:
    """With CANVAS_UPDATE=1 the file is written: all learned draws become others."""
    if os.environ.get("CANVAS_UPDATE"):
        SOURCE.write_text(known_text())
    assert SOURCE.read_text() == known_text()


@functools.cache
def successes(targets: str, options: str) -> list[dict[str, int]]:
    found: list[dict[str, int]] = json.loads(_testing.successes(targets, options, 1, 6000))
    return found


def expected_share(kernel: str, targets: str, options: str) -> float:
    kinds = json.loads(_testing.probability(kernel, targets, options))
    return sum(
        kind["share"] * kind["probability"] * found["attempts"] / max(1, found["successes"])
        for kind, found in zip(kinds, successes(targets, options), strict=True)
    )


@pytest.mark.parametrize(
    ("name", "options"),
    [
        # of one length, so that none is a longer kernel that was simplified
        ("convolution", "draws=learned primitives=2"),
        ("convolution", "draws=learned primitives=2 known=0 free=0"),
        ("residual", "draws=learned primitives=5"),
        ("residual", "draws=learned primitives=5 known=1"),
        pytest.param("involution", "draws=learned primitives=8", marks=long),
        pytest.param(
            "squeeze_excite",
            "draws=learned primitives=6 known=0.5 free=0 space=wide",
            marks=long,
        ),
        pytest.param(
            "ghost",
            "draws=learned primitives=5 known=0.9 space=wide nonlinear=0 free_size=0",
            marks=long,
        ),
    ],
)
def test_draws_are_as_probable_as_computed(name: str, options: str) -> None:
    count = 1500
    wanted = _core.hash(_testing.simplify(EXAMPLES[name]))
    drawn = (_core.draw(RESNET18, 1, index, options) for index in range(count))
    found = sum(draw is not None and _core.hash(draw[0]) == wanted for draw in drawn)
    expected = count * expected_share(EXAMPLES[name], RESNET18, options)
    assert 2 < expected < count
    assert abs(found - expected) < 4 * math.sqrt(expected)


@pytest.mark.parametrize("known", [0, 0.5])
def test_all_kernels_together_are_all_successes(known: float) -> None:
    """The probabilities of all kernels that were drawn, and a share for those that were not: as
    many as draws met once (Good and Turing).
    """
    options = f"draws=learned primitives=3 require=none groups=4 free=0 nonlinear=0 known={known}"
    options += " free_size=0 softmax=0 shift=0"
    drawn = [_core.draw(FEW, 5, index, options) for index in range(1500)]
    kernels = {_core.hash(draw[0]): draw[0] for draw in drawn if draw}
    counts = Counter(_core.hash(draw[0]) for draw in drawn if draw)
    missing = sum(count == 1 for count in counts.values()) / len(drawn)
    together = sum(expected_share(kernel, FEW, options) for kernel in kernels.values())
    assert together == pytest.approx(1 - missing, abs=0.03)


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=long if name in LONG else ()) for name in sorted(EXAMPLES)]
)
def test_every_example_is_drawn_once_in_a_million_or_never(name: str) -> None:
    kinds = json.loads(_testing.probability(EXAMPLES[name], RESNET18, "draws=learned space=wide"))
    probability = sum(kind["share"] * kind["probability"] for kind in kinds)
    if name in NEVER:
        assert probability == 0
        assert NEVER[name] in {kind["why"] for kind in kinds}
    else:
        assert probability > 1e-6


def test_a_beginning_keeps_to_the_space_and_to_filters() -> None:
    options = "draws=learned known=1 free=0"
    for limits in (
        "space=paper",
        "space=wide forbid=matmul:norm:fold",
        "space=wide allow=fc:unfold:add",
    ):
        for index in range(60):
            drawn = _core.draw(RESNET18, 3, index, f"{options} {limits}")
            if drawn is None:
                continue
            words = set(re.findall(r"= (\w+)", drawn[0])) - {"input"}
            if limits == "space=paper":
                assert not words & {"matmul", "norm", "scale", "bias", "stack", "pick", "swap"}
            elif "allow" in limits:
                assert words <= {"fc", "unfold", "add"}
            else:
                assert not words & {"matmul", "norm", "fold"}


def test_where_no_known_kernel_may_be_drawn_the_weights_alone_draw() -> None:
    options = "draws=learned known=1 free=0 allow=scale:unfold:fold:tanh space=wide require=none"
    options += " free_size=0"
    drawn = [_core.draw(RESNET18, 1, index, options) for index in range(50)]
    assert sum(draw is not None for draw in drawn) > 10


@pytest.mark.parametrize("options", ["need=softmax", "need=gelu:tanh", "with_matmul=1"])
def test_needed_primitives_are_there(options: str) -> None:
    for index in range(40):
        drawn = _core.draw(RESNET18, 2, index, f"draws=learned space=wide {options}")
        if drawn is not None:
            wanted = options.split("=")[1].replace("1", "matmul").split(":")
            assert any(f"= {word} " in drawn[0] for word in wanted)


def test_beginnings_keep_to_shares_of_0_and_to_windows_of_the_space() -> None:
    for index in range(150):
        wide = _core.draw(RESNET18, 1, index, "space=wide draws=learned,known=1,image_fold=0")
        folded = re.findall(r"= fold \w+ \w+ over=(\S+)", wide[0]) if wide else []
        assert not {"H", "W"} & set(",".join(folded).split(","))
        paper = _core.draw(RESNET18, 1, index, "draws=learned,known=1")
        assert paper is None or "unfold" not in re.sub(r"unfold .* k=K", "", paper[0])


def test_a_draw_of_many_primitives_ends() -> None:
    begun = time.process_time()
    for index in range(2):
        _core.draw(RESNET18, 1, index, "space=wide draws=learned primitives=40..60")
    assert time.process_time() - begun < 60


def test_a_fit_refuses_options_of_draws_before_it_begins() -> None:
    with pytest.raises(
        canvas.CanvasError, match="--distribution learned,known=2: number 2 is not"
    ):
        canvas.fit(torch.nn.Identity(), "digits", distribution="learned,known=2")


def test_primitives_hold_for_beginnings_too() -> None:
    for index in range(200):
        drawn = _core.draw(
            RESNET18, 4, index, "draws=learned known=0.8 primitives=4..5 space=wide"
        )
        if drawn is not None:
            assert 4 <= drawn[0].count("\n") - 4 <= 5


def test_a_fit_asks_for_a_distribution_that_can_be() -> None:
    with pytest.raises(canvas.CanvasError, match="distribution takes rules, learned or paper"):
        canvas.fit(torch.nn.Identity(), "digits", distribution="even")


def test_no_kernel_of_that_name() -> None:
    with pytest.raises(canvas.CanvasError, match="the name of a kernel of examples/kernels"):
        _core.draw(FEW, 1, 0, "draws=learned without=involve")
    assert _core.draw(FEW, 1, 0, "draws=learned without=involution")
