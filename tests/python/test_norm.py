"""Norms after inner weights: what a training sees, what is folded for inference.

Random statistics, scales and shifts everywhere: 0 and 1 would hide half of the mistakes.
"""

import copy
import pickle

import pytest

torch = pytest.importorskip("torch")
numpy = pytest.importorskip("numpy")

from torch import nn  # noqa: E402
from torch.nn import functional as F  # noqa: E402

import canvas  # noqa: E402
from canvas import _core  # noqa: E402
from canvas.nn.check import compare, draw_norms, small_packs  # noqa: E402
from canvas.nn.pack import load_class  # noqa: E402
from canvas.training.train import recompute_statistics  # noqa: E402

torch.set_num_threads(1)


def text(name: str, nodes: str) -> str:
    lines = [line.strip() for line in nodes.split(";")]
    return "\n".join(["canvas 1", f"kernel {name}", "a = input", *lines, ""])


# name: sizes, the weights that have a norm, nodes
ROWS = {
    "separable": (
        "x0=6",
        [0],
        "u = unfold a over=H k=K; b = fc u to=x0; v = unfold b over=W k=K; c = fc v to=C; out c",
    ),
    "depthwise": (
        "",
        [0],
        "g = group a each; u = unfold g over=H,W k=3; b = fc u to=C; c = fc b to=C; out c",
    ),
    "grouped": (
        "G=2,x0=4",
        [0],
        "g = group a by=G; b = fc g to=x0; r = relu b; c = fc r to=C; out c",
    ),
    "gate": (
        "x0=3",
        [0, 1],
        "f = fold a mean over=H,W; b = fc f to=x0; r = relu b;"
        " c = fc r to=C; s = sigmoid c; m = mul s a; out m",
    ),
    "rows": (
        "x0=3",
        [0, 1],
        "f = fold a mean over=W; b = fc f to=x0; r = tanh b; c = fc r to=C; m = mul c a; out m",
    ),
    "grouped_columns": (
        "G=2,x0=4",
        [0, 1],
        "f = fold a max over=H; g = group f by=G;"
        " b = fc g to=x0; c = fc b to=C; m = add c a; n = fc m to=C; out n",
    ),
    "max_of_two": (
        "x0=4",
        [0, 1],
        "b = fc a to=x0; c = fc a to=x0; m = max b c;"
        " u = unfold m over=H,W k=3; d = fc u to=C; out d",
    ),
    "moved_output": (
        "",
        [0],
        "b = fc a to=C; r = relu b; c = fc r to=C; g = group c by=2;"
        " s = shift g over=H by=1; out s",
    ),
    "b0": ("x0=4", [0], "b0 = fc a to=x0; b1 = relu b0; norm0 = fc b1 to=C; out norm0"),
}
PLAIN = "C=8,H=5,W=6"
BINDINGS = [PLAIN, "Cin=8,Cout=16,H=7,W=4,stride=2", "Cin=24,Cout=8,H=4,W=5"]


def pack(name: str, at: str = PLAIN, norm: str = "batch") -> canvas.KernelPack:
    sizes, _, nodes = ROWS[name]
    at = f"{at},norm={norm}"
    return canvas.KernelPack(_core.bind(text(name, nodes), f"{at},{sizes}" if sizes else at))


def module(p: canvas.KernelPack, seed: int = 0, patterns: bool = True):
    """An instance in float64, evaluation mode, with a past."""
    cls = load_class(p, patterns)
    kernel = cls(cls.BINDINGS[0]["cin"]).double().eval()
    generator = torch.Generator().manual_seed(seed)
    kernel.reset_parameters(generator)
    draw_norms(kernel, generator)
    return kernel


def image(p: canvas.KernelPack, batch: int = 2, seed: int = 1):
    b = p.module.BINDINGS[0]
    generator = torch.Generator().manual_seed(seed)
    shape = (batch, b["cin"], b["h"], b["w"])
    return torch.randn(shape, generator=generator, dtype=torch.float64)


# ---- where norms are ----------------------------------------------------------------------------


@pytest.mark.parametrize("at", BINDINGS)
@pytest.mark.parametrize("name", ROWS)
def test_a_norm_after_every_inner_weight_in_every_copy(name, at):
    p = pack(name, at)
    kernel = module(p)
    assert [i for i in range(9) if hasattr(kernel, f"norm{i}")] == ROWS[name][1]
    for i in ROWS[name][1]:
        norms, weight = getattr(kernel, f"norm{i}"), getattr(kernel, f"w{i}")
        assert len(norms) == kernel.copies == len(weight)
        assert all(norm.num_features == weight.shape[1] for norm in norms)
    assert sum(w.numel() for w in kernel.parameters()) == p.params
    without = pack(name, at, "none")
    assert (p.norm, without.norm) == ("batch", "none")
    assert p.macs == without.macs and p.hash == without.hash and p.kernel == without.kernel


def test_only_inner_weights():
    for nodes in ("b = fc a to=C; out b", "g = group a by=2; b = fc g to=C; out b", "out a"):
        with_norm = _core.bind(text("k", nodes), f"{PLAIN},norm=batch")
        assert with_norm == _core.bind(text("k", nodes), PLAIN)


@pytest.mark.parametrize("patterns", [True, False])
@pytest.mark.parametrize("name", ROWS)
def test_without_norm_the_code_is_what_it_was(name, patterns):
    code = _core.torch_code(pack(name, norm="none").text, patterns)
    assert "Norm" not in code and "fold(self)" not in code and "self.b0" not in code


# ---- what is trained ----------------------------------------------------------------------------


def normalised(z, weight, bias):
    """By the formula: over everything but the outputs of the weight."""
    over = [0, *range(2, z.dim())]
    mean = z.mean(over, keepdim=True)
    variance = ((z - mean) ** 2).mean(over, keepdim=True)
    shape = [1, -1] + [1] * (z.dim() - 2)
    return (z - mean) / torch.sqrt(variance + 1e-5) * weight.reshape(shape) + bias.reshape(shape)


def test_training_normalises_by_the_batch():
    p = pack("separable", BINDINGS[1])
    kernel, x = module(p).train(), image(p, batch=3)
    pooled = F.avg_pool2d(x, 2, ceil_mode=True, count_include_pad=False)
    wanted = []
    for r in range(2):
        norm = kernel.norm0[r]
        z = F.conv2d(pooled, kernel.w0[r].unsqueeze(3), padding=(1, 0))
        y = normalised(z, norm.weight, norm.bias)
        wanted.append(F.conv2d(y, kernel.w1[r].unsqueeze(2), padding=(0, 1)))
    torch.testing.assert_close(kernel(x), torch.cat(wanted, 1))


def test_training_normalises_a_vector_by_the_batch():
    p = pack("gate")
    kernel, x = module(p).train(), image(p, batch=5)
    one, two = kernel.norm0[0], kernel.norm1[0]
    b = normalised(F.linear(x.mean((2, 3)), kernel.w0[0]), one.weight, one.bias)
    c = normalised(F.linear(F.relu(b), kernel.w1[0]), two.weight, two.bias)
    torch.testing.assert_close(kernel(x), x * torch.sigmoid(c)[:, :, None, None])


@pytest.mark.parametrize("name", ROWS)
def test_gradients(name):
    p = pack(name, "C=8,H=3,W=4")
    kernel, x = module(p).train(), image(p, batch=3)
    names = [key for key, _ in kernel.named_parameters()]

    def run(x, *weights):
        return torch.func.functional_call(kernel, dict(zip(names, weights)), (x,))

    inputs = [x.requires_grad_(), *kernel.parameters()]
    assert torch.autograd.gradcheck(run, inputs, fast_mode=True, atol=1e-4)


def test_statistics_are_recomputed_like_those_of_the_network():
    p = pack("separable")
    kernel, x = module(p).float(), image(p, batch=8).float()
    recompute_statistics(kernel, x.split(8))
    z = F.conv2d(x, kernel.w0[0].unsqueeze(3), padding=(1, 0))
    torch.testing.assert_close(kernel.norm0[0].running_mean, z.mean((0, 2, 3)))
    torch.testing.assert_close(kernel.norm0[0].running_var, z.var((0, 2, 3)))


def test_parameters_are_drawn_anew():
    kernel = module(pack("separable"))
    kernel.reset_parameters(torch.Generator().manual_seed(0))
    norm = kernel.norm0[0]
    assert norm.weight.eq(1).all() and norm.bias.eq(0).all() and norm.running_mean.eq(0).all()


# ---- what is folded -----------------------------------------------------------------------------


@pytest.mark.parametrize("at", BINDINGS)
@pytest.mark.parametrize("name", ROWS)
def test_equals_interpreter(name, at):
    compare(pack(name, at))


def test_equals_numpy():
    p = pack("depthwise")
    kernel, x = module(p), image(p, batch=1)
    norm = kernel.norm0[0]
    w, v = (getattr(kernel, f"w{i}").detach().numpy()[0] for i in (0, 1))
    mean, var, scale, shift = (
        t.detach().numpy()[:, None, None]
        for t in (norm.running_mean, norm.running_var, norm.weight, norm.bias)
    )
    padded = numpy.pad(x.numpy()[0], ((0, 0), (1, 1), (1, 1)))
    z = sum(
        w[:, i, j, None, None] * padded[:, i : i + 5, j : j + 6]
        for i in range(3)
        for j in range(3)
    )
    y = (z - mean) / numpy.sqrt(var + 1e-5) * scale + shift
    wanted = numpy.einsum("tc,chw->thw", v, y)
    with torch.no_grad():
        for kernel_now in (kernel, kernel.fold()):
            numpy.testing.assert_allclose(kernel_now(x).numpy()[0], wanted, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("patterns", [True, False])
@pytest.mark.parametrize("name", ROWS)
def test_folded_equals_unfolded(name, patterns):
    for at in BINDINGS:
        p = pack(name, at)
        kernel, x = module(p, patterns=patterns), image(p)
        for dtype, close in ((torch.float64, 1e-11), (torch.float32, 1e-4)):
            before = copy.deepcopy(kernel).to(dtype)
            after = copy.deepcopy(before).fold()
            x = x.to(dtype)
            with torch.no_grad():
                wanted, got = before(x), after(x)
            torch.testing.assert_close(
                got, wanted, rtol=close, atol=close * float(wanted.abs().max())
            )
            assert got.dtype == dtype and not any(
                isinstance(m, (nn.BatchNorm1d, nn.BatchNorm2d)) for m in after.modules()
            )


TARGETS = "first 8 8 6 6 3 1 1\nsecond 8 16 7 6 3 2 1\nthird 16 8 4 5 3 1 1\n"


def test_folded_equals_unfolded_on_draws():
    """Kernels as they are drawn, each at three layers: plain, side by side, averaged."""
    normed = 0
    for index in range(40):
        drawn = _core.draw(TARGETS, 5, index, "primitives=5..12 require=reach")
        if drawn is None:
            continue
        kernel, groups = drawn
        try:
            solved = _core.solve(kernel, TARGETS, "macs=2x,params=none", f"G={groups} norm=batch")
        except canvas.NoSolution:
            continue
        p = canvas.KernelPack(solved)
        normed += p.norm == "batch"
        for target in range(3):
            try:
                compare(p, target, seed=index, elements=20)
            except OverflowError:
                pass
    assert normed > 10


def test_check_folds():
    p = pack("separable", BINDINGS[1])
    p.check()
    assert all(small.norm == "batch" for small in small_packs(p))


def test_a_second_fold_changes_nothing():
    p = pack("max_of_two")
    kernel, x = module(p).fold(), image(p)
    once = kernel(x)
    assert torch.equal(kernel.fold()(x), once)


def test_folded_modules_are_copied_pickled_and_loaded():
    p = pack("separable", BINDINGS[1])
    kernel, x = module(p).fold(), image(p)
    assert {"b0", "w0", "w1"} == set(kernel.state_dict())
    fresh = module(p, seed=9).fold()
    fresh.load_state_dict(kernel.state_dict())
    for twin in (copy.deepcopy(kernel), pickle.loads(pickle.dumps(kernel)), fresh):
        assert torch.equal(twin(x), kernel(x))
    last = kernel.to(memory_format=torch.channels_last)
    torch.testing.assert_close(last(x.to(memory_format=torch.channels_last)), fresh(x))


def test_compiles_and_exports():
    p = pack("max_of_two", BINDINGS[1])
    for kernel in (module(p), module(p).fold()):
        x = image(p)
        y = kernel(x)
        compiled = torch.compile(kernel, backend="eager", fullgraph=True)
        torch.testing.assert_close(compiled(x), y)
        torch.testing.assert_close(torch.export.export(kernel, (x,)).module()(x), y)


# ---- without PyTorch ----------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["separable", "gate"])
def test_machine_code_takes_the_folded_operands(name):
    p = pack(name, BINDINGS[1])
    kernel, x = module(p), image(p)
    wanted = kernel(x).detach().float()
    kernel.fold().float()
    code = p.compile(batch=2)
    names = [operand.name for operand in code.inputs[1:]]
    assert [n for n in names if n[0] == "b"] == [f"b{i}" for i in ROWS[name][1]]
    operands = [getattr(kernel, name).detach() for name in names]
    torch.testing.assert_close(code(x.float(), *operands), wanted, rtol=1e-4, atol=1e-4)


# ---- whole networks -----------------------------------------------------------------------------


def network():
    torch.manual_seed(0)
    layers = [nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8), nn.Conv2d(8, 16, 3, 2, 1)]
    return nn.Sequential(*layers, nn.Flatten(1))


def test_a_network_is_folded():
    example = torch.zeros(1, 3, 6, 6)
    converted = canvas.convert(network(), example).model
    sampled = canvas.sample(converted, seed=3, primitives=(5, 8), norm="batch")
    assert sampled.norm == "batch"
    whole = canvas.replace(converted, sampled)
    draw_norms(whole, torch.Generator().manual_seed(1))
    whole.eval()
    x = torch.randn(2, 3, 6, 6)
    folded = canvas.fold(whole)
    assert folded is not whole and folded[1].running_mean is not whole[1].running_mean
    with torch.no_grad():
        torch.testing.assert_close(folded(x), whole(x), rtol=1e-4, atol=1e-4)
    assert folded[2].bias is not None and isinstance(folded[1], nn.BatchNorm2d)
    assert canvas.fold(whole, inplace=True) is whole
    torch.testing.assert_close(whole(x), folded(x))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: canvas.fold("network"), "a torch.nn.Module is needed, not str"),
        (
            lambda: canvas.sample(nn.Identity(), norm="layer"),
            "norm is one of: batch, none, not 'layer'",
        ),
    ],
)
def test_mistakes(call, message):
    with pytest.raises(canvas.CanvasError) as caught:
        call()
    assert str(caught.value) == message
