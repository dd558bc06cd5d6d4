"""The key of what a kernel computes: known equal and different kernels, and no false merge.

The oracle of a merge is evaluation in double precision on 8 random inputs, with weights of equal
shapes matched in every order.
"""

from __future__ import annotations

import itertools
import re
from pathlib import Path

import numpy as np
import pytest
from conftest import ALL

from canvas import _core, _testing

TARGETS = (Path(__file__).resolve().parents[2] / "examples/targets/resnet18.txt").read_text()
AT = "C=8,H=5,W=4,K=3"
IMAGES = 8


def kernel(nodes: str, fc: bool = True) -> str:
    lines = "\n".join(line.strip() for line in nodes.split(";"))
    return f"canvas 1\nkernel k\na = input\n{'b = fc a to=C' if fc else ''}\n{lines}\n"


EQUAL = {
    "neg": ("c = sub a b; out c", "c = neg b; d = add c a; out d"),
    "order": ("c = mul a b; out c", "c = mul b a; out c"),
    "distributive": (
        "c = add a b; d = mul c c; out d",
        "c = sqr a; d = sqr b; e = mul a b; f = add e e; g = add c d; h = add f g; out h",
    ),
    "cancelled far away": (
        "c = add a b; d = add c c; e = sub d a; f = sub e b; out f",
        "c = add a b; out c",
    ),
    "mean of a sum": (
        "c = add a b; d = fold c mean over=H,W; e = mul d a; out e",
        "c = fold a mean over=H,W; d = fold b mean over=H,W; e = add c d; f = mul e a; out f",
    ),
    "halves": ("c = relu b; d = neg b; e = relu d; f = sub c e; g = tanh f; out g",
               "c = tanh b; out c"),
    "absolute": ("c = relu b; d = neg b; e = relu d; f = add c e; out f", "c = abs b; out c"),
    "max and min": ("c = max a b; d = min a b; e = add c d; out e", "c = add a b; out c"),
    "distributive lattice": (
        "c = min a b; d = relu b; e = max c d; out e",
        "c = relu b; d = max a c; e = max b c; f = min d e; out f",
    ),
    "odd": ("c = neg b; d = sin c; out d", "c = sin b; d = neg c; out d"),
    "even": ("c = neg b; d = sqrt c; out d", "c = sqrt b; out c"),
    "shift of a product": (
        "c = mul a b; d = shift c over=H by=1; out d",
        "c = shift a over=H by=1; d = shift b over=H by=1; e = mul d c; out e",
    ),
    "shift read twice": (
        "c = shift b over=W by=1; d = relu c; e = add c d; out e",
        "c = relu b; d = add b c; e = shift d over=W by=1; out e",
    ),
    "renamed weights": (
        "c = fc a to=x0; d = relu c; e = fc d to=C; f = add e b; out f",
        "c = fc a to=x3; d = relu c; e = fc d to=C; f = add b e; out f",
    ),
}  # fmt: skip
DIFFERENT = {
    "sign": ("c = relu b; d = sub b c; out d", "c = relu b; d = sub c b; out d"),
    "max, min": ("c = max a b; out c", "c = min a b; out c"),
    "fill": (
        "c = shift b over=H by=1; out c",
        "c = shift b over=H by=1 fill=zero; out c",
    ),
    "activation": ("c = relu b; out c", "c = gelu b; out c"),
    "direction": ("c = shift b over=H by=1; out c", "c = shift b over=H by=-1; out c"),
    "window": (
        "c = unfold b over=W k=K; d = fc c to=C; out d",
        "c = unfold b over=W k=3; d = fc c to=C; out d",
    ),
    "width": (
        "c = fc b to=x0; d = relu c; e = fc d to=C; out e",
        "c = fc b to=C; d = relu c; e = fc d to=C; out e",
    ),
    "weights of their own": (
        "c = relu b; d = fc c to=C; e = add d d; out e",
        "c = relu b; d = fc c to=C; e = fc c to=C; f = add d e; out f",
    ),
    "of scalars": (
        "c = fold b max over=H,W; d = fold c max over=C; e = relu d; f = mul e a; out f",
        "c = fold b max over=H,W; d = fold c max over=C; f = mul d a; out f",
    ),
    "scale": (
        "c = softmax b over=H,W; out c",
        "c = softmax b over=H,W scale=H*W; out c",
    ),
}


@pytest.mark.parametrize("name", EQUAL)
def test_equal_kernels_have_equal_keys(name: str) -> None:
    one, other = (_testing.value_key(kernel(nodes)) for nodes in EQUAL[name])
    assert one == other and len(one) == 32


@pytest.mark.parametrize("name", EQUAL)
def test_equal_kernels_are_equal(name: str) -> None:
    one, other = (kernel(nodes) for nodes in EQUAL[name])
    assert same_numbers(one, other)


@pytest.mark.parametrize("name", DIFFERENT)
def test_different_kernels_have_different_keys(name: str) -> None:
    one, other = (_testing.value_key(kernel(nodes)) for nodes in DIFFERENT[name])
    assert one and other and one != other


# ---- no false merge -----------------------------------------------------------------------------


def program_of(text: str) -> str | None:
    names = set(re.findall(r"\bx\d+\b", text))
    at = ",".join([AT, *(f"{name}=4" for name in sorted(names))])
    try:
        return _core.lower(_core.bind(text, at + (",G=2" if re.search(r"\bG\b", text) else "")),
                           0, IMAGES)  # fmt: skip
    except (ValueError, OverflowError, _core.NoSolution):
        return None


def shapes_of(program: str) -> list[tuple[int, ...]]:
    return [
        tuple(int(size) for size in re.findall(r":(\d+)", line))
        for line in program.splitlines()
        if line.startswith("in w")
    ]


def same_numbers(one: str, other: str) -> bool:
    """Whether both compute the same with the weights of the first one, in some order."""
    programs = [program_of(text) for text in (one, other)]
    if programs[0] is None or programs[1] is None:
        return programs[0] is programs[1]
    shapes, others = (shapes_of(program) for program in programs if program)
    if sorted(shapes) != sorted(others):
        return False
    random = np.random.default_rng(0)
    image = random.standard_normal((IMAGES, 8, 5, 4)).tobytes()
    weights = [random.standard_normal(shape).tobytes() for shape in shapes]
    wanted = np.frombuffer(_core.evaluate(programs[0], [image, *weights]))
    for order in itertools.permutations(range(len(shapes))):
        if any(shapes[i] != shape for i, shape in zip(order, others, strict=True)):
            continue
        found = np.frombuffer(_core.evaluate(programs[1], [image, *(weights[i] for i in order)]))
        if np.allclose(found, wanted, rtol=1e-7, atol=1e-9 * np.abs(wanted).max()):
            return True
    return False


def pairs(count: int) -> dict[str, list[str]]:
    """Draws with children of theirs, different kernels by their keys."""
    found: dict[str, dict[str, str]] = {}
    for index in range(count // 8 + 1):
        options = ("", "draws=paper", "primitives=2..5 draws=paper")[index % 3]
        parent = _core.draw(TARGETS, 11, index, options)
        if parent is None:
            continue
        made = (_core.mutate(TARGETS, 11, 8 * index + i, options, [parent]) for i in range(8))
        for each in (parent, *made):
            if each is not None:
                key = _testing.value_key(each[0])
                found.setdefault(key, {})[_core.hash(each[0])] = each[0]
    return {key: list(kernels.values()) for key, kernels in found.items() if key}


@pytest.mark.timeout(3600 if ALL else 300)
def test_no_false_merge() -> None:
    """A kernel and its children are near each other: of 10,000 such pairs none merges falsely."""
    for kernels in pairs(10_000 if ALL else 240).values():
        for other in kernels[1:]:
            assert same_numbers(kernels[0], other), f"{kernels[0]}\n{other}"
