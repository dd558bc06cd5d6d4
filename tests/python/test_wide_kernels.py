"""Drawn kernels of the wide space through all checks: 60 in the core tests, 500 with --all.

Each is compared with the interpreter, with and without patterns (`check`), and as the formula that
`canvas show` prints, which formula_text.py evaluates; its gradients with finite differences; its
weights are loaded into a second module; torch exports it.  tests/c/test_emit.c compares as many
with native code.
"""

from __future__ import annotations

import os

import pytest
import torch
from test_formula import compare as equals_its_formula

import canvas
from canvas import KernelPack, _core
from canvas.nn.check import check, small_packs

ALL = os.environ.get("CANVAS_TEST_ALL") == "1"
COUNT, EXPORTED = (500, 500) if ALL else (60, 12)
TARGET = "a 64 64 56 56 3 1 1\n"


def drawn(number: int) -> KernelPack:
    """The first of the draws `number`, `number` + COUNT, ... that fits and does not overflow, at
    small sizes.
    """
    for index in range(number, 40 * COUNT, COUNT):
        how = ("rules", "learned", "paper")[index % 3]
        found = _core.draw(TARGET, 13, index, f"space=wide draws={how}")
        if found is None:
            continue
        try:
            pack = KernelPack(_core.solve(found[0], TARGET, "macs=1x", f"G={found[1]}"))
            check(pack)
        except (canvas.NoSolution, OverflowError):
            continue
        return small_packs(pack)[0]
    raise AssertionError("nothing was drawn")


@pytest.mark.parametrize("number", range(COUNT))
def test_a_drawn_kernel(number: int) -> None:
    small = drawn(number)
    equals_its_formula(small)
    sizes = small.module.BINDINGS[0]
    kernel, again = (small.module(sizes["cin"]).double() for _ in range(2))
    generator = torch.Generator().manual_seed(number)
    x = torch.randn(
        1, sizes["cin"], sizes["h"], sizes["w"], generator=generator, dtype=torch.float64
    )
    with (
        torch.no_grad()
    ):  # factors of 1 and offsets of 0 are ties, at which nothing has a gradient
        for weight in kernel.parameters():
            weight.add_(0.3 * torch.randn(weight.shape, generator=generator, dtype=torch.float64))
    again.load_state_dict(kernel.state_dict(), strict=True)
    y = kernel(x)
    assert torch.equal(again(x), y)

    names = [name for name, _ in kernel.named_parameters()]

    def run(x: torch.Tensor, *weights: torch.Tensor) -> torch.Tensor:
        called = torch.func.functional_call(kernel, dict(zip(names, weights, strict=True)), (x,))
        assert isinstance(called, torch.Tensor)
        return called

    torch.manual_seed(number)  # of the direction
    inputs = (x.clone().requires_grad_(), *kernel.parameters())
    assert torch.autograd.gradcheck(run, inputs, fast_mode=True, atol=1e-4)
    if number < EXPORTED:
        torch.testing.assert_close(torch.export.export(kernel, (x,)).module()(x), y)
