"""What a kernel is said to see is what it sees: one pixel is changed, and the output is compared.

The kernels are draws for the target files and rows of text.  Each stands at layers of one image
with windows along both axes, along H alone and along W alone: the last two say of one axis what it
sees, as the other needs no neighbours.
"""

import os
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")

from canvas import _core, _testing  # noqa: E402
from canvas.errors import NoSolution  # noqa: E402
from canvas.nn.pack import KernelPack  # noqa: E402

torch.set_num_threads(1)

TARGETS = Path(__file__).resolve().parents[2] / "examples/targets"
KERNELS = Path(__file__).resolve().parents[2] / "examples/kernels"
ALL = os.environ.get("CANVAS_TEST_ALL") == "1"
DRAWS = 2000 if ALL else 150
CHANNELS, GROUPS, HEIGHT, WIDTH = 8, 2, 8, 16
SEEDS = 8
LAYERS = {"both": "3x3", "H": "3x1", "W": "1x3"}


def bound(kernel: str, window: str) -> str:
    """The kernel at a layer with this window."""
    layer = f"layer {CHANNELS} {CHANNELS} {HEIGHT} {WIDTH} {window} 1 1"
    for budget in ("macs=1x", "macs=8x", "macs=1000x"):
        try:
            return _core.solve(kernel, layer, f"{budget},params=none", f"G={GROUPS} exempt=1")
        except NoSolution:
            pass
    return ""


def seen(pack: str) -> dict[str, bool]:
    """Whether some output pixel depends on more than one row of the input, and on more than one
    column: the pixels of the input are changed one by one.
    """
    cls = KernelPack(pack).module
    pixels = HEIGHT * WIDTH
    depends = torch.zeros(HEIGHT, WIDTH, HEIGHT, WIDTH, dtype=torch.bool)  # input, output
    for seed in range(SEEDS):
        generator = torch.Generator().manual_seed(seed)
        module = cls(CHANNELS).double().eval()
        if KernelPack(pack).params:
            module.reset_parameters(generator)
        size = (CHANNELS, HEIGHT, WIDTH)
        x = torch.randn(size, generator=generator, dtype=torch.float64).repeat(pixels + 1, 1, 1, 1)
        change = torch.randn(CHANNELS, generator=generator, dtype=torch.float64)
        for pixel in range(pixels):
            x[pixel, :, pixel // WIDTH, pixel % WIDTH] += 4 * change
        with torch.no_grad():
            y = module(x)
        changed = (y[:-1] - y[-1:]).abs() > 1e-10 * y.abs().max()
        depends |= changed.any(1).reshape(depends.shape)
        found = {
            "H": bool((depends.any(1).sum(0) > 1).any()),
            "W": bool((depends.any(0).sum(0) > 1).any()),
        }
        if all(found.values()):
            break
    return found
