"""What a kernel is said to see is what it sees: pixels are changed one by one, and the output is
compared.

The kernels are draws for the target files, each at a small layer, and rows of text.
"""

import os
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")

from canvas import _core, _testing  # noqa: E402
from canvas.errors import NoSolution  # noqa: E402
from canvas.nn.pack import KernelPack  # noqa: E402

torch.set_num_threads(1)

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
DRAWS = 2000 if os.environ.get("CANVAS_TEST_ALL") == "1" else 60
CHANNELS, GROUPS, HEIGHT, WIDTH = 8, 2, 8, 16
SEEDS = 8
NOT_H, NOT_W = "it sees no neighbours along H", "it sees no neighbours along W"
NOT_MIXED = "no fully connected primitive mixes all its channels"


def bound(kernel: str, window: str = "3x3") -> str:
    """The kernel at a layer with this window; "" where it needs too many MACs."""
    layer = f"layer {CHANNELS} {CHANNELS} {HEIGHT} {WIDTH} {window} 1 1"
    for budget in ("macs=1x", "macs=8x", "macs=1000x"):
        try:
            return _core.solve(kernel, layer, f"{budget},params=none", f"G={GROUPS} exempt=1")
        except NoSolution:
            pass
    return ""


def seen(pack: str) -> dict[str, bool]:
    """Whether some output pixel depends on more than one row of the input, and on more than one
    column.
    """
    cls = KernelPack(pack).module
    pixels = HEIGHT * WIDTH
    depends = torch.zeros(HEIGHT, WIDTH, HEIGHT, WIDTH, dtype=torch.bool)  # input, output
    for seed in range(SEEDS):
        generator = torch.Generator().manual_seed(seed)

        def numbers(*shape: int) -> torch.Tensor:
            return torch.randn(shape, generator=generator, dtype=torch.float64)  # noqa: B023

        module = cls(CHANNELS).double().eval()
        if KernelPack(pack).params:
            module.reset_parameters(generator)
        # channels of different size and mean, so that no maximum is always the same one
        image = numbers(CHANNELS, HEIGHT, WIDTH) * numbers(CHANNELS, 1, 1).exp()
        image += 2 * numbers(CHANNELS, 1, 1)
        x, change = image.repeat(pixels + 1, 1, 1, 1), 4 * numbers(CHANNELS)
        for pixel in range(pixels):
            x[pixel, :, pixel // WIDTH, pixel % WIDTH] += change
        with torch.no_grad():
            y = module(x)
        changed = (y[:-1] - y[-1:]).abs() > 1e-10 * y.abs().max()
        depends |= changed.any(1).reshape(depends.shape)
        rows, columns = depends.any(1).sum(0), depends.any(0).sum(0)
        found = {"H": bool((rows > 1).any()), "W": bool((columns > 1).any())}
        if all(found.values()):
            break
    return found


def said(found: dict[str, bool]) -> str:
    """What `reach` says of a kernel that sees this, as long as it is about neighbours."""
    return NOT_H if not found["H"] else NOT_W if not found["W"] else ""


def about_neighbours(why: str) -> str:
    return "" if why == NOT_MIXED else why


@pytest.mark.parametrize("options", ["", "require=none"])
@pytest.mark.parametrize("name", ["resnet18", "vgg16", "mobilenet_v2"])
def test_reach_of_draws(name: str, options: str) -> None:
    """Nothing is seen that is not said.  A little is said that is not seen: values may cancel, as
    in b + (c - b).
    """
    targets = (EXAMPLES / f"targets/{name}.txt").read_text()
    cancelled, compared = [], 0
    for index in range(DRAWS):
        drawn = _core.draw(targets, 7, index, options)
        pack = bound(drawn[0]) if drawn else ""
        if not pack:
            continue
        compared += 1
        says, found = about_neighbours(_testing.reach(pack)), seen(pack)
        assert not (found["H"] and says == NOT_H) and not (found["W"] and says == NOT_W), pack
        if says != said(found):
            cancelled.append(pack)
    assert compared > 0.95 * DRAWS
    assert len(cancelled) <= max(2, DRAWS // 200), "\n".join(cancelled)


ROWS = {  # nodes after `a = input`: what reach says with a window of 3x3
    "identity": ("out a", NOT_H),
    "window": ("b = unfold a over=H,W k=K; c = fc b to=C; out c", ""),
    "window_along_h": ("b = unfold a over=H k=K; c = fc b to=C; out c", NOT_W),
    "lone_shift": ("b = shift a over=H,W by=1; c = fc b to=C; out c", NOT_H),
    "shift_and_add": ("b = shift a over=H,W by=1; c = fc b to=C; d = add a c; out d", ""),
    "pool": ("b = fold a max over=W; c = fc b to=C; d = add c a; out d", NOT_H),
    "fold_of_windows": (
        "b = unfold a over=H k=3; c = fold b max over=KH; d = fc c to=C; out d",
        NOT_W,
    ),
    "softmax_w": ("b = softmax a over=W; c = fc b to=C; out c", NOT_H),
    "softmax_c": ("b = softmax a over=C; c = fc b to=C; out c", NOT_H),
    "softmax_hw": ("b = softmax a over=H,W; c = fc b to=C; out c", ""),
    "columns_onto_rows": ("b = fold a max over=W; c = fc b to=1; d = add c a; out d", ""),
    "two_axes": ("b = shift a over=H by=1; c = add b a; d = fold c mean over=W; e = fc d to=C;"
                 " f = mul e a; out f", ""),
    "unmixed": ("b = unfold a over=H,W k=3; c = group b each; d = fc c to=C; out d", NOT_MIXED),
}  # fmt: skip
KNOWN = {
    "squeeze_excite": "",
    "involution": "",
    "figure8_shift": NOT_MIXED,
    "residual": "",
    "spatially_separable": "",
}


def text(name: str) -> str:
    if name in KNOWN:
        return (EXAMPLES / f"kernels/{name}.kernel").read_text()
    lines = ROWS[name][0].split(";")
    return "\n".join([f"canvas 1\nkernel {name}", "a = input", *map(str.strip, lines)]) + "\n"


@pytest.mark.parametrize("name", [*ROWS, *KNOWN])
def test_reach_of_rows(name: str) -> None:
    expected = KNOWN[name] if name in KNOWN else ROWS[name][1]
    pack = bound(text(name))
    assert _testing.reach(text(name)) == _testing.reach(pack) == expected
    assert said(seen(pack)) == about_neighbours(expected)


@pytest.mark.parametrize(
    ("name", "window", "says", "sees"),
    [
        ("window", "1x1", "", NOT_H),  # k=K is no window, and none is required
        ("window", "3x1", "", NOT_W),
        ("window", "1x3", "", NOT_H),
        ("window_along_h", "3x1", "", NOT_W),
        ("window_along_h", "1x3", NOT_W, NOT_H),
        ("lone_shift", "1x1", "", NOT_H),
        ("identity", "1x1", NOT_MIXED, NOT_H),
        ("squeeze_excite", "1x1", "", ""),
    ],
)
def test_reach_at_windows(name: str, window: str, says: str, sees: str) -> None:
    """An axis along which the layer's window is one pixel wide needs no neighbours."""
    pack = bound(text(name), window)
    assert _testing.reach(pack) == says
    assert said(seen(pack)) == sees


MIXED = "a 16 16 8 8 3x3 1 1\nb 16 16 8 8 1x1 1 1\nc 16 16 8 8 3x1 1 1\nd 16 16 8 8 1x3 1 1\n"


def test_a_draw_for_all_layers_reaches_at_each_alone() -> None:
    """As a fit has it, where each layer has an operator of its own."""
    for index in range(200):
        drawn = _core.draw(MIXED, 7, index, "")
        assert drawn is not None
        pack = _core.solve(drawn[0], MIXED, "macs=none,params=none", f"G={drawn[1]} exempt=1")
        bindings = [line for line in pack.splitlines() if line.startswith("bind")]
        assert len(bindings) == 4 and _testing.reach(pack) == ""
        kernel = pack[: pack.index("bind")]
        assert all(_testing.reach(f"{kernel}{line}\n") == "" for line in bindings), pack


@pytest.mark.parametrize(
    ("targets", "windows"),
    [
        ("p 16 16 8 8 1x1 1 1\n", {"3", "5"}),
        ("p 16 16 8 8 3x3 1 1\n", {"K"}),
        ("p 16 16 8 8 1x1 1 1\nq 16 16 8 8 3x3 1 1\n", {"K"}),
        ("p 16 16 1 1 1x1 1 1\n", set()),
        ("p 16 16 32 1 3x1 1 1\n", {"K"}),
    ],
)
def test_windows_that_are_drawn(targets: str, windows: set[str]) -> None:
    """k=K where it is a window; elsewhere constant ones, where images have several pixels."""
    found = set()
    for index in range(300):
        drawn = _core.draw(targets, 7, index, "")
        for line in drawn[0].splitlines() if drawn else ():
            if "unfold" in line:
                found.add(line.split("k=")[1].split()[0])
    assert found == windows
