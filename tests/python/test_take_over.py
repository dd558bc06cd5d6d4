"""Operators that start from their layer's weights: what is recovered, and what stays as it is."""

import math

import pytest

torch = pytest.importorskip("torch")

from canvas import _core  # noqa: E402
from canvas.fitting import take_over  # noqa: E402
from canvas.fitting.item_table import fit_operator  # noqa: E402
from canvas.fitting.menu import CONTROLS, Operator, sizes_of  # noqa: E402
from canvas.fitting.take_over import PROJECTION, linear_weights, start_from  # noqa: E402
from canvas.nn.layer_target import Target  # noqa: E402
from canvas.training.layer_data import LayerData  # noqa: E402
from canvas.training.layer_fit import compare  # noqa: E402
from canvas.training.train import recompute_statistics  # noqa: E402

torch.set_num_threads(1)

_, POINTWISE, DEPTHWISE, SEPARABLE, BOTTLENECK, GROUPED, _ = CONTROLS
HEAD = "canvas 1\nkernel k\na = input\n"


def operator(lines, **more):
    return Operator("k", HEAD + lines, **more)


DENSE = operator("b = unfold a over=H,W k=K\nc = fc b to=C\nout c\n", fixed=True)
LOW_RANK = operator("b = fc a to=x0\nc = unfold b over=H,W k=K\nd = fc c to=C\nout d\n")


def conv(cin, cout, seed=0, kernel=3, **more):
    torch.manual_seed(seed)
    return torch.nn.Conv2d(cin, cout, kernel, padding=kernel // 2, **more)


def recorded(layer, cin, size=8, count=256):
    """Outputs of a layer for images with neighbours and channels that are alike, as inside a
    network.
    """
    generator = torch.Generator().manual_seed(5)
    noise = torch.randn(count, cin, size, size, generator=generator)
    mixed = torch.nn.functional.conv2d(
        noise, 0.3 * torch.randn(cin, cin, 1, 1, generator=generator)
    )
    images = torch.relu(mixed + torch.nn.functional.avg_pool2d(noise, 3, 1, 1))
    with torch.no_grad():
        return LayerData(images, layer(images))


def target_of(data, kernel=3):
    stride = data.inputs.shape[2] // data.outputs.shape[2]
    size = data.inputs.shape[2]
    channels = (data.inputs.shape[1], data.outputs.shape[1])
    return Target("t", *channels, size, size, kernel, kernel, stride)


def made(sized, seed=1):
    torch.manual_seed(seed)
    return sized.pack.module(sized.pack.module.BINDINGS[0]["cin"], target="t")


def error(module, data):
    """Of a module in evaluation mode."""
    recompute_statistics(module, data.inputs.split(32))
    return compare(module, data).error


def started(sized, data, **more):
    """The module after the start, and its error."""
    module = made(sized)
    assert start_from(module, data, 1, **more)
    return module, error(module, data)


def by_way(operator, data, share, windowed=False):
    items = sizes_of(operator, target_of(data), (share,))
    return next(item for item in items if item.windowed == windowed)


def centre_tap(stride=1):
    layer = conv(8, 16, stride=stride)
    with torch.no_grad():
        kept = layer.weight[:, :, 1, 1].clone()
        layer.weight.zero_()[:, :, 1, 1] = kept
    return layer


def low_rank(cin=16, rank=4):
    return torch.nn.Sequential(conv(cin, rank, 1, 1, bias=False), conv(rank, cin, 2))


def separable(cin, cout, rank, stride=1):
    """A 3x1 and a 1x3 convolution."""
    torch.manual_seed(4)
    first = torch.nn.Conv2d(cin, rank, (3, 1), padding=(1, 0), stride=(stride, 1), bias=False)
    second = torch.nn.Conv2d(rank, cout, (1, 3), padding=(0, 1), stride=(1, stride))
    return torch.nn.Sequential(first, second)


@pytest.mark.parametrize(
    ("layer", "kernel", "share", "windowed"),
    [
        (conv(16, 16, groups=4), GROUPED, 0.25, False),
        (conv(16, 16, groups=4, bias=False), GROUPED, 0.25, False),
        (conv(16, 16, groups=4, stride=2), GROUPED, 0.25, True),
        (centre_tap(), POINTWISE, 1, False),
        (centre_tap(stride=2), POINTWISE, 1, True),
        (low_rank(), LOW_RANK, 0.4, False),
        (separable(16, 16, 8), SEPARABLE, 0.4, False),
        (separable(16, 16, 4, stride=2), SEPARABLE, 0.5, True),
        (conv(16, 8), DENSE, 1, False),
    ],
)  # fmt: skip
def test_a_layer_that_the_operator_contains_is_recovered(layer, kernel, share, windowed):
    cin = next(m for m in layer.modules() if isinstance(m, torch.nn.Conv2d)).in_channels
    data = recorded(layer, cin, 12 if windowed else 8)
    sized = by_way(kernel, data, share, windowed)
    before = error(made(sized), data)
    module, after = started(sized, data, sweeps=12)
    assert before > 0.5 and after < 2e-3
    if len(linear_weights(module)) == 1:
        assert after < 1e-5


def test_an_operator_behind_a_pooling_comes_as_near_as_it_can():
    """The pooled images are all that a dense kernel sees: the regression on them is the limit."""
    data = recorded(conv(8, 8, stride=2), 8)
    sized = by_way(DENSE, data, 1)
    _, after = started(sized, data)
    pooled = torch.nn.functional.avg_pool2d(data.inputs, 2)
    seen = torch.nn.functional.unfold(pooled, 3, padding=1).transpose(1, 2).flatten(0, 1)
    wanted = data.outputs.flatten(2).transpose(1, 2).flatten(0, 1)
    wanted = (wanted - wanted.mean(0)) / wanted.std(0)
    centred = (seen - seen.mean(0)).double()
    best = centred @ torch.linalg.lstsq(centred, wanted.double()).solution
    limit = float((best - wanted).square().mean())
    assert 0.05 < limit < after + 1e-4 and after < 1.01 * limit


def test_on_large_images_few_are_enough_for_the_covariances(monkeypatch):
    monkeypatch.setattr(take_over, "UNFOLDED", 1)
    data = recorded(separable(16, 16, 8), 16)
    _, after = started(by_way(SEPARABLE, data, 0.4), data, sweeps=12)
    assert after < 5e-3


def test_white_noise_gives_the_singular_value_decomposition():
    """On white noise the best 3x1 and 1x3 pair is the truncated decomposition of the weights."""
    layer = conv(8, 8, seed=3, bias=False)
    images = torch.randn(256, 8, 16, 16, generator=torch.Generator().manual_seed(1))
    with torch.no_grad():
        data = LayerData(images, layer(images))
    sized = by_way(SEPARABLE, data, 0.4)
    module, after = started(sized, data, sweeps=20)
    rank = module.w0.shape[1]
    weight = layer.weight.detach().permute(1, 2, 0, 3).reshape(24, 24)  # [cin kh, cout kw]
    scale = data.outputs.std(dim=(0, 2, 3)).repeat_interleave(3)  # channels count alike
    left, values, right = torch.linalg.svd(weight / scale)
    first, second = left[:, :rank] * values[:rank], right[:rank] * scale
    split = torch.nn.Sequential(
        torch.nn.Conv2d(8, rank, (3, 1), padding=(1, 0), bias=False),
        torch.nn.Conv2d(rank, 8, (1, 3), padding=(0, 1), bias=False),
    )
    with torch.no_grad():
        split[0].weight.copy_(first.T.reshape(rank, 8, 3, 1))
        split[1].weight.copy_(second.reshape(rank, 8, 1, 3).transpose(0, 1))
    optimal = compare(split, data).error
    assert optimal > 0.05 and 0.97 * optimal < after < 1.02 * optimal


# -- which weights --


@pytest.mark.parametrize(
    ("lines", "weights"),
    [
        ("b = fc a to=C\nout b\n", [0]),
        ("b = fc a to=x0\nc = relu b\nd = fc c to=C\nout d\n", [1]),
        ("b = fc a to=C\nc = tanh b\nout c\n", []),
        ("b = fc a to=C\nc = neg b\nout c\n", [0]),
        ("b = fc a to=C\nc = fc a to=C\nd = sigmoid b\ne = mul d c\nout e\n", [1]),
        ("b = fc a to=C\nc = fc a to=C\nd = mul b c\nout d\n", [0, 1]),
        ("b = fc a to=C\nc = shift b over=H by=1\nd = mul b c\nout d\n", []),
        ("b = fc a to=C\nc = shift b over=H by=1\nd = sub b c\nout d\n", [0]),
        ("b = fc a to=C\nc = fc a to=C\nd = max b c\ne = fc d to=C\nout e\n", [2]),
        ("b = unfold a over=H k=K\nmean = fold b mean over=KH\nc = fc mean to=C\nout c\n", [0]),
        ("b = fc a to=C\nc = unfold b over=H k=K\nd = fold c max over=KH\nout d\n", []),
        ("b = fc a to=C\nc = softmax b over=H,W\nd = fc a to=C\ne = mul c d\nout e\n", [1]),
        ("b = group a each\nc = unfold b over=H k=K\nd = fc c to=C\ne = add a d\nout e\n", [0]),
        ("out a\n", []),
    ],
)
def test_linear_weights(lines, weights):
    sized = sizes_of(operator(lines, fixed=True), Target("t", 8, 8, 6, 6))
    assert linear_weights(made(sized[0])) == weights


@pytest.mark.parametrize(
    ("lines", "weights"),
    [
        ("b = unfold a over=H,W k=K\nc = fc b to=C\nout c\n", [PROJECTION, 0]),
        ("b = unfold a over=H,W k=K\nc = relu b\nd = fc c to=C\nout d\n", [0]),
        ("b = fc a to=C\nc = mul a b\nd = fc c to=C\nout d\n", [0, 1]),
        ("out a\n", [PROJECTION]),
    ],
)
def test_projections_are_weights_like_others(lines, weights):
    """The start comes nearer to the layer with them than without."""
    target = Target("t", 12, 8, 8, 8, projected=1)
    sized = sizes_of(operator(lines, fixed=True), target)[0]
    module = made(sized)
    assert linear_weights(module) == weights
    if weights[0] == PROJECTION:
        data = recorded(conv(12, 8), 12)
        before = module.projection.detach().clone()
        least = started(sized, data)[1]
        assert start_from(module, data, 1) and not torch.equal(module.projection, before)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(take_over, "linear_weights", lambda module: weights[1:])
            other = started(sized, data)[1] if weights[1:] else error(made(sized), data)
        assert least < 0.97 * other


def test_activations_keep_the_weights_before_them():
    data = recorded(conv(16, 16), 16)
    sized = by_way(BOTTLENECK, data, 0.5)
    fresh = made(sized)
    module, after = started(sized, data)
    assert torch.equal(module.w0, fresh.w0) and torch.equal(module.w1, fresh.w1)
    assert not torch.equal(module.w2, fresh.w2)
    assert after < error(fresh, data) - 0.02


def same(one, two):
    pairs = zip(one.state_dict().values(), two.state_dict().values(), strict=True)
    return all(torch.equal(a, b) for a, b in pairs)


def test_without_linear_weights_nothing_changes():
    data = recorded(conv(8, 8), 8)
    for lines in ("out a\n", "b = fc a to=C\nc = tanh b\nout c\n"):
        sized = by_way(operator(lines, fixed=True), data, 1)
        module = made(sized)
        assert not start_from(module, data, 1) and same(module, made(sized))


@pytest.mark.parametrize("value", [math.nan, math.inf, 1e30])
def test_values_that_overflow_leave_the_random_start(value):
    data = recorded(conv(8, 8), 8)
    data.inputs[3] = value
    for kernel in (POINTWISE, SEPARABLE, BOTTLENECK):
        sized = by_way(kernel, data, 0.5)
        module = made(sized)
        if not start_from(module, data, 1):
            assert same(module, made(sized))
        assert all(p.isfinite().all() for p in module.parameters())
    data.outputs[3] = value
    module = made(sized)
    if not start_from(module, data, 1):
        assert same(module, made(sized))
    assert all(p.isfinite().all() for p in module.parameters())


def test_dead_inputs_and_outputs_are_no_trouble():
    data = recorded(conv(8, 8), 8)
    data.inputs[:, 2] = 0
    data.outputs[:, 5] = 1
    module = made(by_way(SEPARABLE, data, 0.5))
    assert start_from(module, data, 1)
    assert all(p.isfinite().all() for p in module.parameters())
    zeros = LayerData(torch.zeros_like(data.inputs), data.outputs)
    assert not start_from(made(by_way(SEPARABLE, data, 0.5)), zeros, 1)


def test_the_start_is_a_function_of_its_arguments():
    data = recorded(conv(8, 16, stride=2), 8)
    sized = by_way(SEPARABLE, data, 0.5)
    one, two, other = made(sized), made(sized), made(sized)
    torch.manual_seed(0)
    assert start_from(one, data, 1)
    torch.manual_seed(1)
    assert start_from(two, data, 1) and start_from(other, data, 2)
    assert same(one, two) and not same(one, other)


def test_a_start_reads_no_images_that_the_error_is_taken_on():
    """The held-out images are the first: others than they give the same operator."""
    data = recorded(conv(8, 8), 8)
    sized = by_way(GROUPED, data, 0.5)
    other = LayerData(data.inputs.clone(), data.outputs.clone())
    other.outputs[: len(data.inputs) // 4] = 0
    one, two = (fit_operator(d, sized, 0, 1)[0].module for d in (data, other))
    assert same(one, two)


def test_a_fit_can_do_without():
    data = recorded(conv(16, 16, groups=4), 16)
    sized = by_way(GROUPED, data, 0.25)
    assert fit_operator(data, sized, 20, 1)[1] < 1e-2
    assert fit_operator(data, sized, 20, 1, take_over=False)[1] > 0.1


def test_drawn_kernels_come_no_farther_from_their_layer():
    """On images that the start did not see; activations, products and folds included."""
    target = Target("t", 16, 16, 8, 8)
    data = recorded(conv(16, 16), 16, count=320)
    held_out, seen = data.split(64)
    tried = better = 0
    for index in range(400):
        drawn = _core.draw(target.line() + "\n", 3, index, "")
        items = drawn and sizes_of(Operator("k", drawn[0], groups=drawn[1]), target, (0.5,))
        if not items:
            continue
        random, taken = made(items[0]), made(items[0])
        start_from(taken, seen, 1)
        errors = []
        for module in (random, taken):
            recompute_statistics(module, seen.inputs[:256].split(32))
            errors.append(compare(module, held_out).error)
        assert errors[1] <= errors[0] + 0.01, drawn[0]
        tried += 1
        better += errors[1] < 0.9 * errors[0]
        if tried == 30:
            break
    assert tried == 30 and better >= 10
