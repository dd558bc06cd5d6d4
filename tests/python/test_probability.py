"""The exact probability of a draw agrees with counting; the rules pass the example kernels."""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from pathlib import Path

import pytest

from canvas import CanvasError, _core, _testing

ROOT = Path(__file__).resolve().parents[2]
RESNET18 = (ROOT / "examples/targets/resnet18.txt").read_text()
EXAMPLES = sorted((ROOT / "examples/kernels").glob("*.kernel"))
FEW = "16,8,8;32,4,4"


def kernel_of(nodes: str) -> str:
    return "canvas 1\nkernel k\na = input\n" + nodes.replace(";", "\n") + "\n"


def tries(kernel: str, targets: str, options: str) -> list[float]:
    """The probability in each kind of draw."""
    kinds = json.loads(_testing.probability(kernel, targets, options))
    return [kind["probability"] for kind in kinds]


def of_draw(kernel: str, options: str) -> float:
    kinds = json.loads(_testing.probability(kernel, RESNET18, options))
    successes = json.loads(_testing.successes(RESNET18, options, 1, 4000))
    return sum(
        kind["share"] * kind["probability"] / (found["successes"] / found["attempts"])
        for kind, found in zip(kinds, successes, strict=True)
    )


@pytest.mark.parametrize(
    ("options", "nodes"),
    [
        # of one length, and none that others of that length are simplified to
        ("primitives=2 draws=paper", "b = unfold a over=H,W k=K;c = fc b to=C;out c"),
        ("primitives=3", "b = unfold a over=H,W k=K;c = fc b to=C;d = sin c;out d"),
        (
            "primitives=4",
            "b = unfold a over=H k=K;c = fc b to=x0;d = unfold c over=W k=K;e = fc d to=C;out e",
        ),
    ],
)
def test_draws_are_as_probable_as_computed(options: str, nodes: str) -> None:
    kernel, count = kernel_of(nodes), 4000
    wanted = _core.hash(kernel)
    drawn = (_core.draw(RESNET18, 1, index, options) for index in range(count))
    found = sum(draw is not None and _core.hash(draw[0]) == wanted for draw in drawn)
    expected = count * of_draw(kernel, options)
    assert 2 < expected < 2000
    assert abs(found - expected) < 4 * math.sqrt(expected)


@pytest.mark.parametrize(
    "options",
    [
        "broadcast=1",  # symmetric kernels
        "broadcast=1 fold=1 elementwise=1 to_one=0.3 image_fold=0.2 other_functions=0.02",
    ],
)
def test_all_kernels_together_are_all_successes(options: str) -> None:
    """The probabilities of all kernels that were drawn, and a share for those that were not: as
    many as draws met once (Good and Turing).
    """
    zeros = ("grouping", "softmax", "elementwise", "fold", "shift", "unfold")
    none = " ".join(f"{name}=0" for name in zeros if f"{name}=" not in options.split("image_")[0])
    options = f"draws=paper primitives=4 require=none groups=4 {none} {options}"
    drawn = [_core.draw(FEW, 5, index, options) for index in range(3000)]
    kernels = {_core.hash(draw[0]): draw[0] for draw in drawn if draw}
    counts = Counter(_core.hash(draw[0]) for draw in drawn if draw)
    missing = sum(count == 1 for count in counts.values()) / len(drawn)
    (found,) = json.loads(_testing.successes(FEW, options, 1, 20000))
    success = found["successes"] / found["attempts"]
    together = sum(tries(kernel, FEW, options)[0] for kernel in kernels.values())
    assert together / success == pytest.approx(1 - missing, abs=0.03)


def test_the_order_of_nodes_and_inputs_does_not_matter() -> None:
    options = "draws=paper primitives=5 require=none"
    nodes = "b = fc a to=x0;c = relu b;d = fc a to=x0;e = add c d;f = fc e to=C;out f"
    other = "d = fc a to=x3;b = fc a to=x3;c = relu b;e = add d c;f = fc e to=C;out f"
    (first,) = tries(kernel_of(nodes), FEW, options)
    assert first > 0
    assert tries(kernel_of(other), FEW, options) == [pytest.approx(first)]


@pytest.mark.parametrize(
    ("name", "options"),
    [("depthwise_separable", ""), ("spatially_separable", ""), ("residual", ""),
     ("involution", ""), ("squeeze_excite", "require=none")],
)  # fmt: skip
def test_what_the_paper_found_again_can_be_drawn(name: str, options: str) -> None:
    kernel = (ROOT / f"examples/kernels/{name}.kernel").read_text()
    kinds = json.loads(_testing.probability(kernel, RESNET18, options))
    assert any(kind["probability"] > 0 and kind["rules"] for kind in kinds)


def exceptions() -> dict[str, set[str]]:
    """The table in docs/kernel.md: names of kernels by the rule that rejects them."""
    text = (ROOT / "docs/kernel.md").read_text().split("with these exceptions")[1]
    rows = re.findall(r"^\| `(\w+)` \| ([\w, ]+) \|", text.split("\n\n")[1], re.M)
    return {rule: set(names.split(", ")) for rule, names in rows}


def solved_anyhow(kernel: str) -> str:
    """Without a budget; of images that can be pooled, if need be."""
    try:
        return _core.solve(kernel, RESNET18, "macs=none,params=none", "G=8")
    except _core.NoSolution:
        return _core.solve(kernel, "64,28,28;128,28,28", "macs=none,params=none", "G=8")


def test_rules_reject_the_listed_examples_alone() -> None:
    found: dict[str, set[str]] = {}
    for path in EXAMPLES:
        kernel = path.read_text()
        try:
            pack = _core.solve(kernel, RESNET18, "macs=0.5x,params=0.5x", "G=8")
        except _core.NoSolution:
            pack = solved_anyhow(kernel)
        for rule in _testing.broken_rules(pack, "").split():
            found.setdefault(rule, set()).add(path.stem)
    assert found == exceptions()


def test_arguments_are_checked() -> None:
    kernel = EXAMPLES[0].read_text()
    with pytest.raises(CanvasError, match="expected 'rules', 'learned' or 'paper'"):
        _testing.probability(kernel, FEW, "draws=no")
    with pytest.raises(CanvasError, match="the option 'attempts' is -1, give 0 or more"):
        _testing.successes(FEW, "", 1, -1)
