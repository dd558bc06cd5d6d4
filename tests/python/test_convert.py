"""Conversion: which convolutions become placeholders, which do not and why, and what stays."""

import re

import pytest

torch = pytest.importorskip("torch")

from torch import nn  # noqa: E402
from torch.utils.flop_counter import FlopCounterMode  # noqa: E402

import canvas  # noqa: E402
from canvas import _core  # noqa: E402
from canvas.models import resnet8, resnet18  # noqa: E402

torch.set_num_threads(1)


def rows(conversion):
    return {row.name: row.reason or row.status for row in conversion.table}


def chain(*layers, channels=4):
    """The layers after a first convolution, each on its own; images are [1, 4, 9, 9]."""

    class Branches(nn.Module):
        def __init__(self):
            super().__init__()
            self.stem = nn.Conv2d(4, channels, 3, padding=1)
            self.layers = nn.ModuleList(layers)

        def forward(self, x):
            x = self.stem(x)
            return [layer(x) for layer in self.layers]

    return Branches()


IMAGE = torch.randn(1, 4, 9, 9)


class Same(nn.Conv2d):
    """A convolution that adds its zeros itself."""

    def forward(self, x):
        return nn.functional.conv2d(nn.functional.pad(x, (1, 1, 1, 1)), self.weight, self.bias)


class Scaled(nn.Conv2d):
    """A convolution by a weight that is computed."""

    def forward(self, x):
        return self._conv_forward(x, self.weight / self.weight.norm(), self.bias)


class Active(nn.Conv2d):
    def forward(self, x):
        return super().forward(x).relu()


class Masked(nn.Conv2d):
    def forward(self, x):
        return super().forward(x * x)


class Twice(nn.Conv2d):
    def forward(self, x):
        return super().forward(super().forward(x))


@pytest.mark.parametrize(
    ("layer", "reason"),
    [
        (nn.Conv2d(8, 8, 3, padding=1), "replaced"),
        (nn.Conv2d(8, 8, 3, padding="same"), "replaced"),
        (nn.Conv2d(8, 16, 1), "replaced"),
        (nn.Conv2d(8, 16, 1, padding="valid"), "replaced"),
        (nn.Conv2d(8, 4, 5, padding=2, stride=2), "replaced"),
        (nn.Conv2d(8, 8, (3, 1), padding=(1, 0)), "replaced"),
        (nn.Conv2d(8, 8, 3, padding=1, groups=8), "it is depth-wise (depthwise replaces it)"),
        (nn.Conv2d(8, 8, 3, padding=1, groups=2), "replaced"),
        (nn.Conv2d(8, 8, 3, padding=2, dilation=2), "replaced"),
        (nn.Conv2d(8, 8, (3, 1), padding=(2, 0), dilation=(2, 1)), "replaced"),
        (nn.Conv2d(8, 8, 3, padding=1, dilation=(2, 1)), "its dilations 2 and 1 differ"),
        (nn.Conv2d(8, 8, 2), "replaced"),
        (nn.Conv2d(8, 8, 4, padding="same"), "replaced"),
        (nn.Conv2d(8, 8, 3), "replaced"),
        (nn.Conv2d(8, 8, 3, padding="valid"), "replaced"),
        (nn.Conv2d(8, 8, 3, padding=1, padding_mode="reflect"), "replaced"),
        (nn.Conv2d(8, 8, 3, padding=1, stride=(2, 1)), "its strides 2 and 1 differ"),
        (
            nn.Conv2d(8, 9, 1),
            "its channels 8 -> 9 have 1 as common divisor, a kernel would run in 72 copies "
            "(unequal='project': in one)",
        ),
        (nn.ConvTranspose2d(8, 8, 3, padding=1), "its type is ConvTranspose2d"),
        (nn.Conv2d(8, 12, 1), "replaced"),
        (Same(8, 8, 3), "replaced"),
        (Scaled(8, 8, 3, padding=1), "replaced"),
        (Active(8, 8, 1), "its type Active computes more than a convolution"),
        (Masked(8, 8, 1), "its type Masked computes more than a convolution"),
        (Twice(8, 8, 1), "its type Twice computes more than a convolution"),
        (nn.utils.parametrizations.weight_norm(nn.Conv2d(8, 8, 1)), "replaced"),
        (nn.utils.spectral_norm(nn.Conv2d(8, 8, 1)), "it has hooks of its own"),
    ],
)
def test_reasons(layer, reason):
    # Beside it stands a layer that can always be replaced.
    conversion = canvas.convert(chain(nn.Conv2d(8, 8, 1), layer, channels=8), IMAGE)
    assert rows(conversion) == {
        "stem": "it is the first convolution",
        "layers.0": "replaced",
        "layers.1": reason,
    }


def test_reasons_that_lie_in_the_network():
    shared = nn.Conv2d(4, 4, 1)
    tied, twice = nn.Conv2d(4, 4, 1), nn.Conv2d(4, 4, 1)
    tied.weight = shared.weight
    net = chain(nn.Conv2d(4, 4, 1), shared, shared, tied, nn.Sequential(twice, twice))
    net.unused = nn.Conv2d(4, 4, 1)
    assert rows(canvas.convert(net, IMAGE)) == {
        "stem": "it is the first convolution",
        "layers.0": "replaced",
        "layers.1": "it shares its weight with 'layers.3'",
        "layers.3": "it shares its weight with 'layers.1'",
        "layers.4.0": "replaced",
        "unused": "the example input does not reach it",
    }


def test_layers_that_run_several_times():
    class Again(nn.Module):
        def __init__(self):
            super().__init__()
            self.stem, self.once = nn.Conv2d(4, 4, 1), nn.Conv2d(4, 4, 1)
            self.same, self.other = nn.Conv2d(4, 4, 1), nn.Conv2d(4, 4, 1)

        def forward(self, x):
            x = self.same(self.same(self.once(self.stem(x))))
            return self.other(x), self.other(x[..., ::2])

    net = Again()
    conversion = canvas.convert(net, IMAGE)
    assert rows(conversion) == {
        "stem": "it is the first convolution",
        "once": "replaced",
        "same": "replaced",
        "other": "replaced",
    }
    with FlopCounterMode(display=False) as counter:
        net(IMAGE)
    assert sum(row.macs for row in conversion.table) == counter.get_total_flops() // 2
    assert "other 4 4 9 9 1x1" in conversion.targets  # the larger of its inputs
    model = canvas.replace(conversion.model, canvas.sample(conversion.model, require="none"))
    assert [y.shape for y in model(IMAGE)] == [y.shape for y in net(IMAGE)]


def test_a_module_at_several_paths_is_one_layer():
    layer = nn.Conv2d(8, 8, 3, padding=1)
    net = chain(layer, nn.Sequential(layer), channels=8)
    conversion = canvas.convert(net, IMAGE)
    model = canvas.replace(conversion.model, canvas.sample(conversion.model, seed=1))
    first, second = model(IMAGE)
    assert rows(conversion)["layers.0"] == "replaced" and model.layers[1][0] is model.layers[0]
    assert torch.equal(first, second) and not torch.equal(first, net(IMAGE)[0])


def test_policy_and_filter():
    net = chain(nn.Conv2d(4, 4, 1), nn.Conv2d(4, 4, 3, padding=1))
    assert rows(canvas.convert(net, IMAGE, policy="spatial"))["layers.0"] == "its window is 1x1"
    kept = canvas.convert(net, IMAGE, filter_fn=lambda layer, path: path != "layers.1")
    assert rows(kept)["layers.1"] == "the filter leaves it out"


def test_resnet18_is_the_published_set():
    net = resnet18()
    conversion = canvas.convert(net, torch.zeros(1, 3, 224, 224))
    assert sum(row.status == "replaced" for row in conversion.table) == 19
    assert conversion.targets.count("\n") == 19
    assert 0.93 < conversion.covered < 0.94
    assert "layer2.0.downsample.0 64 128 56 56 1x1 2 1\n" in conversion.targets
    assert "layer2.0.conv1 64 128 56 56 3x3 2 1\n" in conversion.targets
    assert str(conversion).endswith(
        "19 of 20 convolutions replaced, 93.5% of the network's MACs: at most 15.3 times as fast\n"
    )


def test_conversion_computes_the_same_until_replaced():
    net = nn.Sequential(
        nn.Conv2d(4, 8, 3, padding=1), nn.BatchNorm2d(8), nn.Conv2d(8, 16, 3, stride=2, padding=1)
    )
    before = {key: value.clone() for key, value in net.state_dict().items()}
    conversion = canvas.convert(net, IMAGE)
    assert isinstance(net[2], nn.Conv2d) and conversion.model is not net
    assert all(torch.equal(value, before[key]) for key, value in net.state_dict().items())
    assert torch.equal(conversion.model.eval()(IMAGE), net.eval()(IMAGE))
    assert canvas.convert(net, IMAGE, inplace=True).model is net
    assert isinstance(net[2], canvas.Placeholder)


def test_bias_and_other_weights_stay():
    net = nn.Sequential(nn.Conv2d(4, 8, 1), nn.Conv2d(8, 8, 1), nn.Conv2d(8, 8, 1, bias=False))
    bias = net[1].bias
    stem = net[0].weight
    model = canvas.convert(net, IMAGE, inplace=True).model
    pack = canvas.sample(model, IMAGE, seed=1)
    canvas.replace(model, pack)
    assert model[1].bias is bias and model[0].weight is stem and model[2].bias is None
    assert model[1].original is None
    count = sum(p.numel() for p in model.parameters())
    assert count == pack.params + stem.numel() + 8 + 8
    with torch.no_grad():
        x = model[0](IMAGE)
        expected = model[1].kernel(x) + bias.reshape(8, 1, 1)
        torch.testing.assert_close(model[1](x), expected)


def test_another_example_changes_the_targets():
    net = nn.Sequential(nn.Conv2d(4, 8, 1), nn.Conv2d(8, 16, 3, padding=1, stride=2))
    model = canvas.convert(net, IMAGE).model
    assert model[1].target.line() == "1 8 16 9 9 3x3 2 1"
    pack = canvas.sample(model, torch.zeros(1, 4, 5, 7), seed=1)
    assert model[1].target.line() == "1 8 16 5 7 3x3 2 1"
    assert canvas.replace(model, pack)(torch.zeros(1, 4, 5, 7)).shape == (1, 16, 3, 4)


def test_macs_of_the_table():
    net = chain(
        nn.Conv2d(4, 4, 3, padding=1, stride=2),
        nn.Conv2d(4, 8, 1),
        nn.Conv2d(4, 4, 3, groups=2),
        nn.ConvTranspose2d(4, 6, 2, stride=2),
    )
    conversion = canvas.convert(net, torch.randn(3, 4, 9, 9))
    with FlopCounterMode(display=False) as counter:
        net(IMAGE)
    assert sum(row.macs for row in conversion.table) == counter.get_total_flops() // 2
    macs = {row.name: row.macs for row in conversion.table}
    assert macs["layers.0"] == 4 * 4 * 9 * 25 and macs["layers.1"] == 4 * 8 * 81
    replaced = sum(row.macs for row in conversion.table if row.status == "replaced")
    covered = replaced / sum(macs.values())
    assert conversion.covered == pytest.approx(covered)


def test_strides_and_copies_end_to_end():
    net = nn.Sequential(
        nn.Conv2d(3, 8, 3, padding=1),
        nn.Conv2d(8, 16, 3, stride=2, padding=1),
        nn.Conv2d(16, 16, 5, stride=3, padding=2),
        nn.Conv2d(16, 4, 1),
    )
    x = torch.randn(2, 3, 13, 11)
    conversion = canvas.convert(net, x)
    pack = canvas.sample(conversion.model, budget="macs=0.5x,params=none", seed=2)
    pack.check()
    model = canvas.replace(conversion.model, pack)
    assert model(x).shape == net(x).shape
    with FlopCounterMode(display=False) as counter:
        model(x[:1])
    stem = 3 * 8 * 9 * 13 * 11
    assert counter.get_total_flops() == 2 * (pack.macs + stem)


def test_kernels_that_take_the_stride_equal_the_convolutions():
    torch.manual_seed(0)
    net = resnet8(channels=3, image_size=16, width=8).eval()
    x = torch.randn(2, 3, 16, 16)
    conversion = canvas.convert(net, x, policy="all")
    model = conversion.model
    text = "canvas 1\nkernel conv\na = input\nb = unfold a over=H,W k=K\nc = fc b to=C\nout c\n"
    kernel = _core.strided(text, "window")
    pack = canvas.KernelPack(_core.solve(kernel, conversion.targets, "macs=1x", ""))
    pack.check()
    canvas.replace(model, pack)
    layers = dict(net.named_modules())
    strides = set()
    with torch.no_grad():
        for path, holder in canvas.get_placeholders(model).items():
            holder.kernel.w0.copy_(layers[path].weight.reshape(holder.kernel.w0.shape))
            strides.add(holder.kernel.stride)
        assert strides == {1, 2}
        torch.testing.assert_close(model.eval()(x), net(x))
        torch.testing.assert_close(canvas.compile(model, x)(x), net(x), rtol=1e-4, atol=1e-4)
    with FlopCounterMode(display=False) as counter:
        model(x)
    with FlopCounterMode(display=False) as original:
        net(x)
    assert counter.get_total_flops() == original.get_total_flops()


@pytest.mark.parametrize(
    ("net", "options", "message"),
    [
        (nn.Linear(4, 4), {}, "has no convolution"),
        (nn.Conv2d(4, 4, 1), {}, "single layer"),
        (3, {}, "torch.nn.Module is needed, not int"),
        (
            chain(nn.Conv2d(4, 4, 1)),
            {"policy": "every"},
            "policy 'every' is unknown, it is one of",
        ),
        (
            chain(nn.Conv2d(4, 4, 1)),
            {"policy": "spatial"},
            "policy 'spatial' finds no convolution to replace; policy 'paper' would replace 1",
        ),
        (
            chain(nn.Conv2d(4, 5, 1), nn.Conv2d(4, 4, 1, groups=4)),
            {},
            "no policy finds a convolution to replace in this network: 1 because it is the first",
        ),
        (chain(nn.Conv2d(8, 8, 1)), {}, "does not run on the example input"),
        (chain(nn.Conv2d(4, 4, 1)), {"example_input": None}, "not NoneType"),
    ],
)
def test_bad_input_is_one_message(net, options, message):
    with pytest.raises(canvas.CanvasError, match=re.escape(message)) as error:
        canvas.convert(net, **{"example_input": IMAGE, **options})
    assert "\n" not in str(error.value)
