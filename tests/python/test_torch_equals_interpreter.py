"""The definition of a kernel is the interpreter: generated modules must equal it in float64.

Also here: what torch's own operators say about kernels that everybody knows, gradients, FLOPs,
parameters, compile and export.
"""

import builtins
import itertools
import keyword
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")

from torch.nn import functional as F  # noqa: E402
from torch.utils.flop_counter import FlopCounterMode  # noqa: E402
from wide_kernels import BOUND_TO_SIZE, EVEN, ROWS  # noqa: E402
from wide_kernels import REFERENCES as WIDE_REFERENCES  # noqa: E402
from wide_kernels import SIZES as WIDE  # noqa: E402

import canvas  # noqa: E402
from canvas import _core  # noqa: E402
from canvas.nn.check import check, compare, small_packs  # noqa: E402
from canvas.nn.pack import load_class  # noqa: E402

torch.set_num_threads(1)

LIBRARY = Path(__file__).parents[2] / "examples" / "kernels"

SIZES = {
    **WIDE,
    "figure9_b": "x0=6",
    "grouped": "G=2",
    "involution": "G=2,x0=6",
    "residual": "x0=6",
    "spatially_separable": "x0=6",
    "squeeze_excite": "x0=3",
}

# name: sizes, then the nodes after `a = input`
MORE = {
    "separable_unfold_first": "- | u = unfold a over=H,W k=K; g = group u each; d = fc g to=C;"
    " e = fc d to=C; out e",
    "multiplier": "x0=3 | g = group a each; u = unfold g over=H,W k=3; d = fc u to=C*x0;"
    " e = fc d to=C; out e",
    "height_then_width": "x0=6 | u = unfold a over=H k=5; v = unfold u over=W k=K;"
    " d = fc v to=x0; e = fc d to=C; out e",
    "window_before_conv": "- | u = unfold a over=H k=3; t = tanh u; v = unfold t over=W k=5;"
    " d = fc v to=C; out d",
    "window_of_the_other_axis": "- | u = unfold a over=W k=3; t = tanh u; v = unfold t over=H k=5;"
    " d = fc v to=C; out d",
    "grouped_windows": "G=2 | u = unfold a over=W k=3; t = sin u; g = group t by=G;"
    " v = unfold g over=H k=3; d = fc v to=C; out d",
    "unfold_read_twice": "- | u = unfold a over=H,W k=3; d = fc u to=C; m = fold u max over=KH,KW;"
    " s = sub d m; out s",
    "pools": "G=2 | g = group a by=G; u = unfold g over=H,W k=K; m = fold u mean over=KH,KW;"
    " v = unfold m over=W k=3; w = fold v max over=KW; d = fc w to=C; out d",
    "pool_over_own_window": "- | u = unfold a over=H k=3; t = tanh u; v = unfold t over=W k=3;"
    " m = fold v mean over=KH,KW; x = fold v max over=KH,KW; s = sub m x; out s",
    "folds_one_by_one": "- | h = fold a mean over=H; w = fold h mean over=W; d = fc w to=C;"
    " m = mul d a; out m",
    "maxima_one_by_one": "- | h = fold a max over=H; w = fold h max over=W; s = add w a; out s",
    "fold_read_twice": "- | h = fold a max over=H; w = fold h max over=W; s = add h a;"
    " t = mul w s; out t",
    "fold_channels": "G=2 | g = group a by=G; f = fold g mean over=G; c = fold g max over=C;"
    " s = max f a; t = min c s; out t",
    "rows": "x0=3 | r = fold a mean over=W; u = unfold r over=H k=3; d = fc u to=x0;"
    " e = fc d to=C; m = mul e a; out m",
    "grouped_vector": "G=2 | v = fold a mean over=H,W; g = group v by=G; d = fc g to=C;"
    " s = sigmoid d; m = mul s a; out m",
    "each_vector": "- | v = fold a mean over=H,W; g = group v each; d = fc g to=C; m = sub d a;"
    " out m",
    "softmax_channel": "- | s = softmax a over=C; d = fc s to=C; out d",
    "softmax_channel_height": "- | s = softmax a over=C,H; out s",
    "softmax_image": "- | s = softmax a over=H,W; m = mul a s; out m",
    "softmax_windows": "- | u = unfold a over=H,W k=3; s = softmax u over=KH,KW; d = fc s to=C;"
    " out d",
    "softmax_group": "G=2 | g = group a by=G; s = softmax g over=G; t = softmax s over=G,C,H,W;"
    " out t",
    "shifts": "- | b = shift a over=H by=2; c = shift b over=W by=-1; d = shift c over=H,W by=1;"
    " e = sub d a; out e",
    "shifts_zero": "- | b = shift a over=H,W by=1 fill=zero; c = shift b over=W by=-2 fill=zero;"
    " d = sub c a; out d",
    "shifted_out": "- | b = shift a over=H by=-9 fill=zero; c = shift a over=H,W by=3 fill=zero;"
    " d = sub c a; e = add d b; out e",
    "shift_windows": "G=2 | g = group a by=G; u = unfold g over=H,W k=3;"
    " s = shift u over=H by=1 fill=zero; t = shift s over=W by=-1 fill=zero; d = fc t to=C; out d",
    "shift_a_row": "- | r = fold a mean over=W; s = shift r over=H by=1 fill=zero; m = mul s a;"
    " out m",
    "softmax_scaled": "G=2 | s = softmax a over=H,W scale=H*W; g = group s by=G;"
    " t = softmax g over=G,C,H scale=3*C/G; u = softmax t over=W scale=7; out u",
    "groups_onto_channels": "G=2 | g = group a by=G; f = fold g mean over=C; m = mul f a; out m",
    "misaligned": "G=2,x0=3 | b = fc a to=x0; u = unfold a over=H,W k=3; d = fc a to=G*x0;"
    " e = add b d; f = fc e to=C; v = fc u to=C; o = max v f; out o",
    "weighted_windows": "- | u = unfold a over=H,W k=3; s = softmax u over=KH,KW; m = mul s u;"
    " f = fold m mean over=KH,KW; out f",
    "weighted_row": "- | u = unfold a over=W k=5; t = tanh u; m = mul t u;"
    " f = fold m mean over=KW; out f",
    "weighted_column": "G=2 | g = group a by=G; u = unfold g over=H k=K; t = tanh u; m = mul t u;"
    " f = fold m mean over=KH; out f",
    "weighted_own_window": "- | u = unfold a over=H k=3; t = sin u; v = unfold t over=W k=3;"
    " s = sigmoid v; m = mul s v; f = fold m mean over=KW; d = fc f to=C; out d",
    "weighted_once": "- | u = unfold a over=H,W k=3; m = mul a u;"
    " f = fold m mean over=KH,KW; out f",
    "weighted_read_twice": "- | u = unfold a over=W k=3; t = tanh u; m = mul t u;"
    " f = fold m mean over=KW; x = fold m max over=KW; s = add f x; out s",
    "left_repeats": "x0=2 | b = fc a to=x0; c = fc a to=x0*KH*KW; d = sub b c; e = fc d to=C;"
    " out e",
    "height_as_channels": "- | r = fold a max over=W; d = fc r to=H; e = fc d to=C; m = add e a;"
    " out m",
    "dilated": "- | u = unfold a over=H,W k=3 dilation=2; d = fc u to=C; out d",
    "dilated_rows": "G=2 | u = unfold a over=H k=K dilation=2; v = unfold u over=W k=3;"
    " g = group v by=G; d = fc g to=C; out d",
    "dilated_pools": "- | u = unfold a over=H,W k=3 dilation=2; m = fold u mean over=KH,KW;"
    " x = fold u max over=KH,KW; s = sub m x; out s",
    "dilated_products": "- | u = unfold a over=H,W k=K dilation=3; t = tanh u; m = mul t u;"
    " f = fold m mean over=KH,KW; out f",
    "scalar": "- | f = fold a mean over=H,W; s = fold f mean over=C; m = add s a; out m",
    "only_windows": "- | u = unfold a over=H,W k=3; f = fold u mean over=C; d = fc f to=C; out d",
    "identity": "- | out a",
    "regrouped": "G=2 | b = group a by=G; c = fold b max over=C; d = group a each; e = mul c d;"
    " out e",
    "functions": "- | b = relu a; c = gelu b; d = sigmoid a; e = tanh d; f = abs e; g = neg f;"
    " h = exp g; i = sin h; j = sqrt a; k = sqr j; l = min i c; m = max l k; out m",
    "exponential_cut_off": "- | b = sqr a; c = exp b; out c",
    "names": "x0=2 | lambda = fc a to=x0; N = relu lambda; C = sqr N; torch = tanh C;"
    " G = neg torch; x0 = abs G; copy = fc x0 to=C; self = unfold copy over=H k=3;"
    " range = sin self; self_ = fold range mean over=KH; h = add self_ a; out h",
}


def kernel_texts() -> dict[str, tuple[str, str]]:
    """name -> (kernel text, sizes)"""
    texts = {
        path.stem: (path.read_text(), SIZES.get(path.stem, ""))
        for path in sorted(LIBRARY.glob("*.kernel"))
    }
    for name, row in {**MORE, **ROWS}.items():
        sizes, _, nodes = row.partition(" | ")
        lines = [line.strip() for line in nodes.split(";")]
        text = "\n".join(["canvas 1", f"kernel {name}", "a = input", *lines, ""])
        texts[name] = (text, "" if sizes == "-" else sizes)
    return texts


TEXTS = kernel_texts()
# Cin, Cout, stride, windows: plain; side by side; averaged; both with odd sizes and a stride.
BINDINGS = {
    "plain": "C=8,H=5,W=6",
    "side_by_side": "Cin=8,Cout=16,H=4,W=5,K=5",
    "averaged": "Cin=24,Cout=8,H=5,W=4,KH=1,KW=3",
    "strided": "Cin=8,Cout=16,H=7,W=9,stride=2,KH=5,KW=3",
    "strided_averaged": "Cin=16,Cout=8,H=8,W=7,stride=3",
    "projected": "Cin=5,Cout=8,H=5,W=4,K=5,projected=1",
    "strided_projected": "Cin=12,Cout=8,H=8,W=7,stride=3,projected=1",
}


# The same with images inside the kernel that are multiples of four.
EVEN_BINDINGS = {
    "C=8,H=5,W=6": "C=8,H=4,W=8",
    "C=8,H=3,W=4": "C=8,H=4,W=4",
    "Cin=8,Cout=16,H=4,W=5,K=5": "Cin=8,Cout=16,H=4,W=8,K=5",
    "Cin=24,Cout=8,H=5,W=4,KH=1,KW=3": "Cin=24,Cout=8,H=8,W=4,KH=1,KW=3",
    "Cin=8,Cout=16,H=7,W=9,stride=2,KH=5,KW=3": "Cin=8,Cout=16,H=7,W=15,stride=2,KH=5,KW=3",
    "Cin=16,Cout=8,H=8,W=7,stride=3": "Cin=16,Cout=8,H=12,W=10,stride=3",
    "Cin=5,Cout=8,H=5,W=4,K=5,projected=1": "Cin=5,Cout=8,H=8,W=4,K=5,projected=1",
    "Cin=12,Cout=8,H=8,W=7,stride=3,projected=1": "Cin=12,Cout=8,H=11,W=12,stride=3,projected=1",
    "Cin=8,Cout=16,H=6,W=4,stride=2,KH=5,KW=3": "Cin=8,Cout=16,H=8,W=16,stride=2,KH=5,KW=3",
    "Cin=16,Cout=8,H=9,W=6,stride=3": "Cin=16,Cout=8,H=12,W=12,stride=3",
    "Cin=6,Cout=8,H=6,W=4,stride=2,projected=1": "Cin=6,Cout=8,H=8,W=8,stride=2,projected=1",
}


def bind(name, at="C=8,H=5,W=6"):
    text, sizes = TEXTS[name]
    at = EVEN_BINDINGS[at] if name in EVEN else at
    return canvas.KernelPack(_core.bind(text, f"{at},{sizes}" if sizes else at))


def module(pack, patterns=True):
    cls = load_class(pack, patterns)
    return cls(cls.BINDINGS[0]["cin"]).double()


def image(pack, batch=2, seed=0):
    b = pack.module.BINDINGS[0]
    generator = torch.Generator().manual_seed(seed)
    shape = (batch, b["cin"], b["h"], b["w"])
    return torch.randn(shape, generator=generator, dtype=torch.float64)


@pytest.mark.parametrize("at", BINDINGS)
@pytest.mark.parametrize("name", TEXTS)
def test_equals_interpreter(name, at):
    compare(bind(name, BINDINGS[at]))


@pytest.mark.parametrize("at", BINDINGS)
@pytest.mark.parametrize("name", TEXTS)
def test_flops_and_params(name, at):
    pack = bind(name, BINDINGS[at])
    for patterns in (True, False):
        kernel, x = module(pack, patterns), image(pack)
        with FlopCounterMode(display=False) as counter:
            y = kernel(x)
        b = kernel.BINDINGS[0]
        h, w = -(-b["h"] // b["stride"]), -(-b["w"] // b["stride"])
        assert y.shape == (2, b["cout"], h, w)
        assert counter.get_total_flops() == 2 * 2 * pack.macs
        assert sum(p.numel() for p in kernel.parameters()) == pack.params


@pytest.mark.parametrize("name", TEXTS)
def test_gradients(name):
    pack = bind(name, "C=8,H=3,W=4")
    kernel, x = module(pack), image(pack, batch=1, seed=5)
    names = [key for key, _ in kernel.named_parameters()]

    def run(x, *weights):
        return torch.func.functional_call(kernel, dict(zip(names, weights)), (x,))

    inputs = [x.requires_grad_(), *kernel.parameters()]
    assert torch.autograd.gradcheck(run, inputs, fast_mode=True, atol=1e-4)


@pytest.mark.parametrize("name", TEXTS)
def test_batch_state_and_memory_format(name):
    pack = bind(name, BINDINGS["strided"])
    first, second = module(pack), module(pack, patterns=False)
    second.load_state_dict(first.state_dict(), strict=True)
    x = image(pack, batch=3)
    y = first(x)
    torch.testing.assert_close(first(x[1:2]), y[1:2])
    torch.testing.assert_close(second(x), y)
    torch.testing.assert_close(first(x.to(memory_format=torch.channels_last)), y)
    single = first.float()(x.float())
    assert single.dtype == torch.float32
    torch.testing.assert_close(single.double(), y, rtol=1e-3, atol=1e-3)


# -- kernels that take the stride themselves --

# name: sizes, then the nodes after `a = input`; all of TEXTS are beside them, where they can
STRIDES = {
    "subsampled": "- | b = subsample a over=H,W by=S; d = fc b to=C; out d",
    "subsampled_group": "G=2 | g = group a by=G; b = subsample g over=W by=S; d = fc b to=C;"
    " e = subsample d over=H by=S; out e",
    "window_then_subsample": "- | u = unfold a over=H,W k=K; b = subsample u over=H,W by=S;"
    " d = fc b to=C; out d",
    "subsample_then_window": "- | b = subsample a over=H,W by=S; u = unfold b over=H,W k=K;"
    " d = fc u to=C; out d",
    "depthwise": "- | g = group a each; u = unfold g over=H,W k=K stride=S dilation=2;"
    " d = fc u to=C; e = fc d to=C; out e",
    "grouped_dilated": "G=2 | u = unfold a over=H,W k=K stride=S dilation=2; g = group u by=G;"
    " d = fc g to=C; out d",
    "one_axis": "- | u = unfold a over=W k=K stride=S; d = fc u to=C; s = subsample d over=H by=S;"
    " out s",
    "axes_apart": "x0=6 | u = unfold a over=H k=5 stride=S; v = unfold u over=W k=K dilation=2;"
    " d = fc v to=x0; e = fc d to=C; s = subsample e over=W by=S; out s",
    "pools": "- | u = unfold a over=H,W k=K stride=S; m = fold u mean over=KH,KW;"
    " x = fold u max over=KH,KW; s = sub m x; out s",
    "pool_rows": "- | s = subsample a over=W by=S; u = unfold s over=H k=3 stride=S;"
    " m = fold u max over=KH; out m",
    "dilated_pools": "- | u = unfold a over=H,W k=3 stride=S dilation=2;"
    " m = fold u mean over=KH,KW; x = fold u max over=KH,KW; s = sub m x; out s",
    "weighted_rows": "- | s = subsample a over=W by=S;"
    " u = unfold s over=H k=3 stride=S dilation=2; t = tanh u; m = mul t u;"
    " f = fold m mean over=KH; out f",
    "scaled": "- | b = subsample a over=H,W by=S; s = softmax b over=H,W scale=H*W/S/S; out s",
    "scores": "- | b = matmul a a scaled over=C; c = subsample b over=H,W by=S;"
    " d = matmul a c over=H,W with=H2,W2; e = fc d to=C; out e",
    "second_rows": "- | b = matmul a a over=C,H; c = subsample b over=W by=S;"
    " d = fold c max over=W2; e = fold d mean over=W; x = subsample a over=H,W by=S;"
    " g = add e x; out g",
    "names": "- | S = unfold a over=H,W k=3 stride=S; stride = fc S to=C; s = relu stride; out s",
}
STRIDE_BINDINGS = {
    "plain": "C=8,H=5,W=6",
    "side_by_side": "Cin=8,Cout=16,H=6,W=4,stride=2,KH=5,KW=3",
    "averaged": "Cin=16,Cout=8,H=9,W=6,stride=3",
    "projected": "Cin=6,Cout=8,H=6,W=4,stride=2,projected=1",
}


def strided_packs(name, mode):
    """A kernel at each of STRIDE_BINDINGS; None if it cannot take the stride."""
    if mode:
        text, sizes = TEXTS[name]
        try:
            text = _core.strided(text, mode)
        except canvas.CanvasError as error:
            assert "cannot take the stride in a window" in str(error)
            return None
    else:
        sizes, _, nodes = STRIDES[name].partition(" | ")
        text = "\n".join(["canvas 1", "kernel k", "a = input", *nodes.split(";"), ""])
    sizes = "" if sizes == "-" else sizes
    return [
        canvas.KernelPack(_core.bind(text, f"{at},{sizes}" if sizes else at))
        for at in (EVEN_BINDINGS[at] if name in EVEN else at for at in STRIDE_BINDINGS.values())
    ]


@pytest.mark.parametrize(
    ("name", "mode"),
    [*((name, "") for name in STRIDES), *itertools.product(TEXTS, ("window", "output"))],
)
def test_strided_kernels(name, mode):
    packs = strided_packs(name, mode)
    if packs is None:
        assert mode == "window" and name in {"figure9_a", "height_as_channels"} | BOUND_TO_SIZE
        return
    for pack in packs:
        compare(pack)
        kernel, x = module(pack), image(pack)
        with FlopCounterMode(display=False) as counter:
            y = kernel(x)
        b = kernel.BINDINGS[0]
        assert y.shape == (2, b["cout"], b["h"] // b["stride"], b["w"] // b["stride"])
        assert counter.get_total_flops() == 2 * 2 * pack.macs


@pytest.mark.parametrize("patterns", [True, False])
@pytest.mark.parametrize("dilation", [1, 2])
def test_strided_convolution_is_conv2d(patterns, dilation):
    nodes = f"u = unfold a over=H,W k=K stride=S dilation={dilation}\nd = fc u to=C\nout d\n"
    text = f"canvas 1\nkernel k\na = input\n{nodes}"
    pack = canvas.KernelPack(_core.bind(text, "Cin=8,Cout=16,H=6,W=4,stride=2,KH=5,KW=3"))
    kernel, x = module(pack, patterns), image(pack)
    options = {"stride": 2, "dilation": dilation, "padding": (2 * dilation, dilation)}
    torch.testing.assert_close(kernel(x), F.conv2d(x, kernel.w0.flatten(0, 1), **options))
    if patterns:
        assert pack.torch_code.count("F.conv2d(a, self.w0[copy], stride=(S, S), ") == 1
    assert "torch.stack([" not in pack.torch_code


def test_strided_module_says_what_it_wants():
    pack = strided_packs("depthwise", "")[1]
    with pytest.raises(ValueError, match=r"H and W to be multiples of 2, not 6x5"):
        module(pack)(torch.zeros(1, 8, 6, 5).double())
    assert module(pack)(torch.zeros(1, 8, 8, 10).double()).shape == (1, 16, 4, 5)


@pytest.mark.parametrize("name", ["involution", "pools", "shifts", "softmax_scaled"])
def test_strided_kernels_compile_and_export(name):
    pack = strided_packs(name, "window")[1]
    kernel, x = module(pack), image(pack)
    y = kernel(x)
    compiled = torch.compile(kernel, backend="eager", fullgraph=True)
    torch.testing.assert_close(compiled(x), y)
    torch.testing.assert_close(torch.export.export(kernel, (x,)).module()(x), y)
    torch._dynamo.reset()


def test_strided_gradients():
    for name, mode in [("pool_rows", ""), ("depthwise", ""), ("involution", "window")]:
        pack = strided_packs(name, mode)[1]
        kernel, x = module(pack), image(pack, batch=1, seed=5)
        names = [key for key, _ in kernel.named_parameters()]

        def run(x, *weights, kernel=kernel, names=names):
            return torch.func.functional_call(kernel, dict(zip(names, weights)), (x,))

        inputs = [x.requires_grad_(), *kernel.parameters()]
        assert torch.autograd.gradcheck(run, inputs, fast_mode=True, atol=1e-4)


# -- torch's own operators on copied weights --


def same(x, w, **options):
    """A convolution that keeps the size of the image."""
    pad = (w.shape[-2] // 2, w.shape[-1] // 2)
    return F.conv2d(x, w, padding=pad, **options)


def involution(x, w):
    n, c, h, w_ = x.shape
    middle = F.relu(same(x, w[0].unflatten(1, (-1, 1, 1))))
    filters = same(middle, w[1].unflatten(1, (-1, 1, 1))).reshape(n, 2, 1, 9, h, w_)
    windows = F.unfold(x, 3, padding=1).reshape(n, 2, c // 2, 9, h, w_)
    return (filters * windows).sum(3).reshape(x.shape) / 9


def squeeze_excite(x, w):
    gate = F.linear(F.relu(F.linear(F.adaptive_avg_pool2d(x, 1).flatten(1), w[0])), w[1])
    return x * torch.sigmoid(gate)[:, :, None, None]


def figure6(x, w):
    light = same(x, w[0].reshape(8, 1, 3, 1), groups=8)
    return same(light + torch.roll(x, 1, 3), w[1].reshape(8, 8, 1, 1))


def figure8_shift(x, w):
    light = same(x, w[0].reshape(8, 1, 1, 3), groups=8)
    return light + torch.roll(light, 1, 2)


def figure9_a(x, w):
    scale = F.linear(x.mean((2, 3)), w[0])
    return x * scale.reshape(-1, 1, *x.shape[2:])


def figure9_b(x, w):
    pointwise = F.relu(same(x, w[0].reshape(6, 8, 1, 1)))
    return torch.roll(same(pointwise, w[1].reshape(8, 6, 1, 1)), (1, 1), (2, 3))


def moved(x, down, right):
    """A depth-wise convolution with a single one, which sees zeros outside the image."""
    w = torch.zeros(x.shape[1], 1, 7, 7, dtype=x.dtype)
    w[:, 0, 3 - down, 3 - right] = 1
    return same(x, w, groups=x.shape[1])


def softmax_scaled(x, w):
    n, c, h, w_ = x.shape
    s = torch.softmax(x.flatten(2), 2).reshape(n, c * h, w_) * h * w_
    t = torch.softmax(s, 1) * 3 * c / 2
    return torch.softmax(t, 2).reshape(x.shape) * 7


REFERENCES = {
    **WIDE_REFERENCES,
    "convolution": lambda x, w: same(x, w[0]),
    "pointwise": lambda x, w: same(x, w[0].reshape(8, 8, 1, 1)),
    "grouped": lambda x, w: same(x, w[0], groups=2),
    "depthwise_separable": lambda x, w: same(
        same(x, w[0].reshape(8, 1, 3, 3), groups=8), w[1].reshape(8, 8, 1, 1)
    ),
    "separable_unfold_first": lambda x, w: same(
        same(x, w[0].reshape(8, 1, 3, 3), groups=8), w[1].reshape(8, 8, 1, 1)
    ),
    "spatially_separable": lambda x, w: same(
        same(x, w[0].reshape(6, 8, 3, 1)), w[1].reshape(8, 6, 1, 3)
    ),
    "residual": lambda x, w: x + same(F.relu(same(x, w[0])), w[1].reshape(8, 6, 1, 1)),
    "squeeze_excite": squeeze_excite,
    "involution": involution,
    "figure6": figure6,
    "figure8_window": lambda x, w: same(x, w[0].reshape(8, 1, 3, 3), groups=8),
    "figure8_shift": figure8_shift,
    "figure9_a": figure9_a,
    "figure9_b": figure9_b,
    "shifts_zero": lambda x, w: moved(moved(x, 1, 1), 0, -2) - x,
    "shifted_out": lambda x, w: moved(x, 3, 3) - x,
    "shift_a_row": lambda x, w: moved(x.mean(3, keepdim=True), 1, 0) * x,
    "softmax_scaled": softmax_scaled,
}


def test_every_kernel_of_the_library_has_a_reference():
    assert {path.stem for path in LIBRARY.glob("*.kernel")} <= set(REFERENCES)


@pytest.mark.parametrize("name", ["convolution", "pointwise", "grouped", "involution"])
def test_becomes_channels_last(name):
    """Weights of any number of axes: PyTorch itself rejects to convert those of five."""
    for at in ("plain", "side_by_side", "averaged"):
        kernel = module(bind(name, BINDINGS[at]))
        x = image(bind(name, BINDINGS[at]))
        y, before = kernel(x), {key: w.clone() for key, w in kernel.state_dict().items()}
        kernel.to(memory_format=torch.channels_last)
        torch.testing.assert_close(kernel(x.to(memory_format=torch.channels_last)), y)
        after = kernel.state_dict()
        assert all(torch.equal(after[key], w) for key, w in before.items())
        for w in kernel.parameters():
            assert w.dim() != 5 or w[0].is_contiguous(memory_format=torch.channels_last)
        assert kernel.half().w0.dtype == torch.half


@pytest.mark.parametrize(("name", "patterns"), list(itertools.product(REFERENCES, (True, False))))
def test_equals_torch(name, patterns):
    pack = bind(name)
    kernel, x = module(pack, patterns), image(pack)
    weights = [w.detach()[0].clone() for w in kernel.parameters()]
    torch.testing.assert_close(kernel(x), REFERENCES[name](x, weights))


@pytest.mark.parametrize("patterns", [True, False])
def test_equals_torch_with_copies_and_stride(patterns):
    pack = bind("convolution", "Cin=8,Cout=16,H=7,W=9,stride=2")
    kernel, x = module(pack, patterns), image(pack)
    pooled = F.avg_pool2d(x, 2, ceil_mode=True, count_include_pad=False)
    torch.testing.assert_close(kernel(x), same(pooled, kernel.w0.flatten(0, 1)))

    pack = bind("convolution", "Cin=16,Cout=8,H=5,W=6")
    kernel, x = module(pack, patterns), image(pack)
    torch.testing.assert_close(kernel(x), same(x, torch.cat(list(kernel.w0), 1)) / 2)


# Its two spellings call all that a template may: a shift clamped by min(), stacked windows, a sum
# of products of an involution.
NAMED = """canvas 1
kernel named
a = input
{0} = fc a to=KH*KW*C
p1 = shift {0} over=H,W by=3 fill=zero
p2 = unfold a over=H,W k=K
p3 = group p2 each
p4 = mul p1 p3
p5 = fold p4 mean over=KH,KW
p6 = unfold p5 over=W k=3
p7 = fold p6 max over=KW
q = fc p7 to=C
out q
"""
OWN_NAMES = {
    "torch",
    "nn",
    "F",
    "math",
    "self",
    "x",
    "copy",
    "N",
    "C",
    "i",
    "j",
    "w",
    "b",
    "template",
}


@pytest.mark.parametrize("patterns", [True, False])
def test_node_names_hide_nothing(patterns):
    names = OWN_NAMES | {*dir(builtins), *keyword.kwlist, *keyword.softkwlist, "min_", "w0", "x0"}
    x = torch.linspace(-1, 1, 80, dtype=torch.float64).reshape(1, 4, 5, 4)
    want = None
    for name in sorted(names - {"input", "out"}):
        text = NAMED.format(name)
        for picture in (_core.dot(text), _core.svg(text)):
            assert f"{name} = fc a" in picture
        code = _core.torch_code(_core.bind(text, "C=4,H=5,W=4"), patterns)
        space: dict = {}
        exec(compile(code, name, "exec"), space)
        (cls,) = (v for k, v in space.items() if k.startswith("Kernel_"))
        kernel = cls(4).double()
        kernel.reset_parameters(torch.Generator().manual_seed(0))
        got = kernel(x)
        want = got if want is None else want
        assert torch.equal(got, want), name
        assert "min(3, H)" in code and ("zip(" in code) == patterns


def test_weights_start_with_fan_in_scaling():
    pack = bind("convolution", "C=64,H=5,W=6")
    kernel = module(pack)
    kernel.reset_parameters(torch.Generator().manual_seed(1))
    assert kernel.w0.std().item() == pytest.approx((64 * 9) ** -0.5, rel=0.02)
    first = kernel.w0.clone()
    kernel.reset_parameters(torch.Generator().manual_seed(1))
    assert torch.equal(first, kernel.w0)


# -- tracing --

TRACED = [
    "involution",
    "pools",
    "squeeze_excite",
    "window_of_the_other_axis",
    "shifts",
    "shifted_out",
    "softmax_scaled",
]


@pytest.mark.parametrize("name", TRACED)
def test_compiles_and_exports(name):
    pack = bind(name, BINDINGS["strided"])
    kernel, x = module(pack), image(pack)
    y = kernel(x)
    compiled = torch.compile(kernel, backend="eager", fullgraph=True)
    torch.testing.assert_close(compiled(x), y)
    torch.testing.assert_close(torch.export.export(kernel, (x,)).module()(x), y)
    torch._dynamo.reset()


def test_other_image_sizes():
    kernel = module(bind("involution"))
    assert kernel(torch.randn(1, 8, 9, 4).double()).shape == (1, 8, 9, 4)
    fixed = module(bind("figure9_a"))
    with pytest.raises(ValueError, match=r"fix its images .* to 5x6, not 9x4"):
        fixed(torch.randn(1, 8, 9, 4).double())
    with pytest.raises(ValueError, match=r"wants \[N, 8, H, W\], not \[1, 4, 9, 4\]"):
        kernel(torch.randn(1, 4, 9, 4).double())


def test_extreme_inputs_keep_finite_gradients():
    pack = bind("functions")
    kernel = module(pack).float()
    for value in (0.0, 1e4, -1e4):
        x = torch.full((1, 8, 5, 6), value, requires_grad=True)
        y = kernel(x)
        y.sum().backward()
        assert y.isfinite().all() and x.grad.isfinite().all()


# -- sampled kernels --

TARGETS = """a 64 64 56 56 3 1 1
b 64 128 56 56 3 2 1
c 128 64 28 28 5x3 1 1
"""


def draws(count, start=0, space="paper"):
    """`count` sampled packs of TARGETS that fit the budget, with their index."""
    index, found = start, 0
    while found < count:
        options = f"space={space} require={'none' if index % 2 else 'reach'}"
        drawn = _core.draw(TARGETS, 11, index, options)
        index += 1
        if drawn is None:
            continue
        try:
            pack = canvas.KernelPack(_core.solve(drawn[0], TARGETS, "macs=1x", f"G={drawn[1]}"))
        except canvas.NoSolution:
            continue
        found += 1
        yield index - 1, pack


def one_sampled(index, pack):
    """Small bindings against the interpreter; the real sizes where they are cheap."""
    try:
        check(pack)
    except OverflowError:
        return "redrawn"
    for row, target in enumerate(pack.cost["targets"]):
        if target["macs"] + target["elementwise"] < 40e6:
            compare(pack, row, elements=8)
            break
    cls = pack.module
    kernel = cls(64, target="a")
    assert sum(p.numel() for p in kernel.parameters()) == pack.cost["targets"][0]["params"]
    return "equal"


@pytest.mark.parametrize("space", ["paper", "published"])  # test_wide_kernels.py: wide
def test_sampled_kernels(space):
    results = [one_sampled(index, pack) for index, pack in draws(60, space=space)]
    assert results.count("equal") >= 55


@pytest.mark.nightly
def test_many_sampled_kernels():
    results = [one_sampled(index, pack) for index, pack in draws(1000, start=1000)]
    assert results.count("equal") >= 950


def strided(index, pack):
    """A sampled kernel that takes the stride itself, solved anew; None where it cannot."""
    try:
        text = _core.strided(pack.kernel, ("window", "output")[index // 2 % 2])
        groups = pack.module.BINDINGS[0].get("g", 1)
        return canvas.KernelPack(
            _core.solve(text, TARGETS, "macs=none,params=none", f"G={groups}")
        )
    except canvas.CanvasError as error:
        assert "cannot take the stride" in str(error) or isinstance(error, canvas.NoSolution)
        return None


def test_sampled_kernels_with_strides():
    packs = [strided(index, pack) for index, pack in draws(60, start=100)]
    assert len([pack for pack in packs if pack is None]) <= 15
    results = [one_sampled(0, pack) for pack in packs if pack is not None]
    assert results.count("equal") >= len(results) - 5


def test_flops_of_sampled_kernels():
    for _, pack in itertools.islice(draws(60), 0, 60, 3):
        small = small_packs(pack)[-1]
        kernel, x = module(small), image(small)
        with FlopCounterMode(display=False) as counter:
            kernel(x)
        assert counter.get_total_flops() == 2 * 2 * small.macs


def test_check_finds_a_wrong_module(monkeypatch):
    pack = bind("figure6")
    code = _core.torch_code

    def wrong(text, patterns=True):
        return code(text, patterns).replace("torch.roll(a, 1,", "torch.roll(a, -1,")

    monkeypatch.setattr(_core, "torch_code", wrong)
    with pytest.raises(ArithmeticError, match="the interpreter says"):
        compare(pack)
