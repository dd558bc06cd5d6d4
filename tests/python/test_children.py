"""Children of kernels: solved, and the same in PyTorch as in the interpreter; simplification
keeps values and gradients."""

import itertools

import pytest

torch = pytest.importorskip("torch")

import canvas  # noqa: E402
from canvas import _core, _testing  # noqa: E402
from canvas.nn import controls  # noqa: E402
from canvas.nn.check import check  # noqa: E402

torch.set_num_threads(1)

TARGETS = "a 64 64 28 28 3 1 1\nb 64 128 28 28 3 2 1\nc 128 128 14 14 3 1 1\n"
TWO_SIZES = """canvas 1
kernel bottleneck_of_two_sizes
a = input
b = fc a to=x0
c = relu b
d = unfold c over=H,W k=K
e = fc d to=x1
f = relu e
g = fc f to=C
out g
"""
DENSE = "canvas 1\nkernel dense\na = input\nb = unfold a over=H,W k=K\nc = fc b to=C\nout c\n"
KNOWN = [
    DENSE,
    controls.GROUPED,
    controls.DEPTHWISE_SEPARABLE,
    controls.SPATIALLY_SEPARABLE,
    TWO_SIZES,
]


def families(options=""):
    """Parents without end: known kernels and draws, one or two."""
    drawn = filter(None, (_core.draw(TARGETS, 3, i, options) for i in itertools.count()))
    for i, draw in enumerate(drawn):
        yield [draw] if i % 2 else [(KNOWN[i // 2 % len(KNOWN)], 4), draw]


def children(count, options=""):
    for index, parents in enumerate(itertools.islice(families(options), count)):
        child = _core.mutate(TARGETS, 1, index, options, parents)
        if child is not None:
            yield child


def solved(child):
    try:
        return canvas.KernelPack(_core.solve(child[0], TARGETS, "macs=1x", f"G={child[1]}"))
    except canvas.NoSolution:
        return None


def test_children_equal_the_interpreter():
    packs = [pack for pack in map(solved, children(40)) if pack is not None]
    assert len(packs) >= 24
    for pack in packs:
        try:
            check(pack)
        except OverflowError:
            continue


@pytest.mark.nightly
def test_many_children_equal_the_interpreter():
    made = list(children(1000)) + list(children(500, "require=none primitives=3..16"))
    packs = [pack for pack in map(solved, made) if pack is not None]
    assert len(packs) >= 0.6 * len(made)
    for pack in packs:
        try:
            check(pack)
        except OverflowError:
            continue


@pytest.mark.parametrize("parent", KNOWN)
def test_known_kernels_have_children_that_fit_half_a_budget(parent):
    made = [_core.mutate(TARGETS, 1, i, "", [(parent, 4)]) for i in range(200)]
    kernels = {_core.hash(child[0]): child for child in made if child is not None}
    assert len(kernels) > 10
    fitting = 0
    for kernel, groups in kernels.values():
        try:
            _core.solve(kernel, TARGETS, "macs=0.5x", f"G={groups}")
            fitting += 1
        except canvas.NoSolution:
            pass
    assert fitting > 0  # of a dense convolution few do: most keep it and add to it


# Nodes between `b = fc a to=C` and the output: a rewrite whose gradient might differ.
REWRITTEN = {
    "relu of relu": "c = relu b; d = relu c; out d",
    "abs of relu": "c = relu b; d = abs c; out d",
    "relu of sqr": "c = sqr b; d = relu c; out d",
    "relu of products": "c = relu a; d = relu b; e = mul c d; f = abs e; out f",
    "sqr of abs": "c = abs b; d = sqr c; out d",
    "sqrt of neg": "c = neg b; d = sqrt c; out d",
    "neg of sub": "c = sub a b; d = neg c; out d",
    "mul of itself": "c = mul b b; out c",
    "larger of signs": "c = neg b; d = max b c; out d",
    "larger of relu": "c = relu b; d = max b c; out d",
    "fold of fold": "c = fold b mean over=H; d = fold c mean over=W; e = mul d b; out e",
    "fold of shift": "c = shift b over=H by=1; d = fold c max over=H,W; e = mul d b; out e",
    "shifts": "c = shift b over=W by=1; d = shift c over=W by=2; e = tanh d; out e",
    "windows": "c = unfold b over=H k=3; d = unfold c over=W k=3;"
    " e = fold d mean over=KH,KW; out e",
    "absorption": "c = min a b; d = max b c; e = tanh d; out e",
    "a repeated maximum": "c = fold a mean over=H; d = max c b; e = max c d; out e",
    "a shift through fc": "c = shift b over=H by=1; d = fc c to=C; out d",
    "zeros through relu": "c = shift b over=H by=1 fill=zero; d = relu c; out d",
    "windows of maxima": "c = unfold b over=W k=3; d = fold c max over=C; e = fc d to=C; out e",
    "groups": "c = group b by=2; d = group a by=2; e = add c d; f = relu e; out f",
}


def answer(kernel):
    """Output and gradients at one size, weights filled by their size."""
    module = canvas.KernelPack(_core.bind(kernel, "C=4,H=5,W=6,K=3")).module(4).double()
    generator = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.copy_(torch.randn(parameter.shape, generator=generator).double())
    x = torch.randn(2, 4, 5, 6, generator=generator).double().requires_grad_()
    y = module(x)
    (y * torch.linspace(-1, 1, y.numel()).double().reshape(y.shape)).sum().backward()
    return [y, x.grad, *(p.grad for p in module.parameters())]


@pytest.mark.parametrize("name", REWRITTEN)
def test_simplified_kernels_have_the_same_gradients(name):
    nodes = "\n".join(line.strip() for line in REWRITTEN[name].split(";"))
    kernel = f"canvas 1\nkernel k\na = input\nb = fc a to=C\n{nodes}\n"
    simple = _testing.simplify(kernel)
    assert _core.hash(simple) != _core.hash(kernel)
    for before, after in zip(answer(kernel), answer(simple), strict=True):
        torch.testing.assert_close(after, before, rtol=1e-9, atol=1e-12)
