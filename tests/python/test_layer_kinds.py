"""Layers of all kinds: kernels in their places compute, train, compile, export and fit."""

import importlib.util
import itertools
import warnings

import pytest

torch = pytest.importorskip("torch")

from torch import nn  # noqa: E402

import canvas  # noqa: E402
from canvas.fitting.teacher import Teacher  # noqa: E402
from canvas.layer_choice import LayerChoice  # noqa: E402
from canvas.nn.layer_target import Target  # noqa: E402
from canvas.nn.layer_view import View, Window, arranged, padded, restored  # noqa: E402
from canvas.nn.placeholder import Placeholder  # noqa: E402

torch.set_num_threads(1)
EVERY = {"linear": True, "depthwise": True, "policy": "all"}


class Tokens(nn.Module):
    """[N, C, H, W] -> [N, H*W, C] for a layer, and back."""

    def __init__(self, layer):
        super().__init__()
        self.layer = layer

    def forward(self, x):
        n, _, h, w = x.shape
        return self.layer(x.flatten(2).transpose(1, 2)).transpose(1, 2).reshape(n, -1, h, w)


class Last(nn.Module):
    """The channels last for a layer: [N, H, W, C]."""

    def __init__(self, layer):
        super().__init__()
        self.layer = layer

    def forward(self, x):
        return self.layer(x.permute(0, 2, 3, 1)).permute(0, 3, 1, 2)


class Windows(nn.Module):
    """Rows as examples of their own for a layer, as window attention has them: [N*H, W, C]."""

    def __init__(self, layer):
        super().__init__()
        self.layer = layer

    def forward(self, x):
        n, c, h, w = x.shape
        y = self.layer(x.permute(0, 2, 3, 1).reshape(n * h, w, c))
        return y.reshape(n, h, w, -1).permute(0, 3, 1, 2)


class Pixels(nn.Module):
    """A mean over the image for a layer: [N, C]."""

    def __init__(self, layer):
        super().__init__()
        self.layer = layer

    def forward(self, x):
        return self.layer(x.mean((2, 3)))[:, :, None, None]


class Signal(nn.Module):
    """One row for a 1-D layer: [N, C, H*W]."""

    def __init__(self, layer):
        super().__init__()
        self.layer = layer

    def forward(self, x):
        return self.layer(x.flatten(2)).unsqueeze(2)


class Standardised(nn.Conv2d):
    def forward(self, x):
        w = self.weight - self.weight.mean((1, 2, 3), keepdim=True)
        return nn.functional.conv2d(x, w, self.bias, self.stride, self.padding)


class Twice(nn.Module):
    def __init__(self, layer):
        super().__init__()
        self.layer = layer

    def forward(self, x):
        return self.layer(self.layer(x))


class Projected(nn.Conv2d):
    """A convolution whose kernels stand behind a projection."""


KINDS = {
    "groups": nn.Conv2d(16, 32, 3, padding=1, groups=4),
    "depth-wise": nn.Conv2d(16, 16, 3, padding=1, groups=16),
    "depth-wise, strided": nn.Conv2d(16, 32, 3, stride=2, padding=1, groups=16),
    "dilated": nn.Conv2d(16, 16, 3, padding=2, dilation=2),
    "dilated, strided": nn.Conv2d(16, 16, 3, stride=2, padding=3, dilation=3),
    "unequal": nn.Conv2d(16, 24, 3, padding=1),
    "unequal, strided": nn.Conv2d(16, 40, 1, stride=2, bias=False),
    "projected, wider": Projected(16, 24, 3, padding=1),
    "projected, narrower": Projected(16, 10, 3, padding=1, dilation=1),
    "projected, no common divisor": Projected(16, 7, 5, padding=2, bias=False),
    "projected, strided": Projected(16, 40, 3, stride=2, padding=2, dilation=2),
    "even": nn.Conv2d(16, 16, 2, stride=2),
    "even, overlapping": nn.Conv2d(16, 32, 4, stride=2, padding=1),
    "even, wider": nn.Conv2d(16, 16, 4, padding=2),
    "no padding": nn.Conv2d(16, 16, 3),
    "no padding, strided": nn.Conv2d(16, 16, 5, stride=2),
    "more padding": nn.Conv2d(16, 16, 1, padding=2),
    "reflected": nn.Conv2d(16, 16, 3, padding=1, padding_mode="reflect"),
    "subclass": Standardised(16, 16, 3, padding=1, stride=2),
    "parametrized": nn.utils.parametrizations.weight_norm(nn.Conv2d(16, 16, 3, padding=1)),
    "1-D": Signal(nn.Conv1d(16, 16, 5, padding=2)),
    "1-D, strided": Signal(nn.Conv1d(16, 32, 3, stride=2)),
    "tokens": Tokens(nn.Linear(16, 32)),
    "channels last": Last(nn.Linear(16, 24, bias=False)),
    "windows": Windows(nn.Linear(16, 16)),
    "vectors": Pixels(nn.Linear(16, 16)),
    "twice": Twice(nn.Conv2d(16, 16, 3, padding=1)),
}
BY_KIND = pytest.mark.parametrize("layer", KINDS.values(), ids=KINDS)


def network(layer):
    torch.manual_seed(0)
    return nn.Sequential(nn.Conv2d(3, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU(), layer)


def image(count=2, size=12):
    return torch.randn(count, 3, size, size, generator=torch.Generator().manual_seed(1))


def unequal(net):
    """What becomes of its layers with unequal channels."""
    projected = any(isinstance(child, Projected) for child in net.modules())
    return "project" if projected else "gcd"


def convert(net, **choice):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return canvas.convert(net, image(), **{**EVERY, "unequal": unequal(net), **choice})


def replaced(layer, **options):
    """A network with a kernel in the place of the layer, and the pack."""
    net = network(layer)
    model = convert(net).model
    pack = canvas.sample(model, budget="macs=4x,params=none", require="none", seed=3, **options)
    return canvas.replace(model, pack), pack, net


@BY_KIND
def test_a_kernel_stands_for_it(layer):
    model, pack, net = replaced(layer, norm="batch")
    pack.check()
    x = image()
    assert model(x).shape == net(x).shape
    before = model.train()(x)
    before.square().mean().backward()
    gradients = [p.grad for p in model[3].parameters()]
    assert gradients and all(g is not None and g.isfinite().all() for g in gradients)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter -= 0.1 * parameter.grad
    assert not torch.equal(model(x), before)


@BY_KIND
def test_until_then_it_is_itself(layer):
    net = network(layer).eval()
    conversion = convert(net)
    assert [row.status for row in conversion.table] == ["skipped", "replaced"]
    torch.testing.assert_close(conversion.model(image()), net(image()))
    target = conversion.targets.split()
    assert 0 < conversion.covered < 1 and len(target) in (8, 9, 10)


@pytest.mark.parametrize("name", ["groups", "depth-wise, strided", "dilated", "unequal", "1-D"])
def test_a_target_counts_what_the_layer_costs(name):
    conversion = convert(network(KINDS[name]))
    target = Target.from_line(conversion.targets)
    assert target.macs == conversion.table[1].macs
    assert target.params == sum(p.numel() for p in KINDS[name].parameters() if p.dim() > 1)


@BY_KIND
def test_its_native_code(layer):
    model, _, _ = replaced(layer)
    model = canvas.fold(model)
    compiled = canvas.compile(model, image())
    with torch.no_grad():
        torch.testing.assert_close(compiled(image()), model(image()), rtol=1e-4, atol=1e-4)


@BY_KIND
def test_tools_that_trace_and_script(layer):
    model, _, _ = replaced(layer)
    model = canvas.fold(model)
    wanted = model(image())
    final = canvas.finalize(model)
    assert not any(isinstance(child, Placeholder) for child in final.modules())
    for made in (final, torch.jit.script(final), torch.fx.symbolic_trace(final)):
        torch.testing.assert_close(made(image()), wanted)


@BY_KIND
def test_another_image_size(layer):
    net = network(layer)
    conversion = convert(net)
    any_size = {"require": "none", "draws": "rules,fixed_hw=refuse"}
    pack = canvas.sample(conversion.model, budget="macs=4x,params=none", seed=3, **any_size)
    larger = convert(net, inplace=False)
    canvas.get_placeholders(larger.model, image(2, 20))
    model = canvas.replace(larger.model, pack)
    assert model(image(2, 20)).shape == net(image(2, 20)).shape


@BY_KIND
def test_operators_fit_to_it(layer):
    """The layer's own operator takes over what the layer has learnt, seen as the kernel sees it:
    all of it, where no pooling, smaller window or border comes between.
    """
    from canvas.fitting.item_table import fit_operator
    from canvas.fitting.menu import Operator, sizes_of
    from canvas.nn.controls import DENSE

    net = network(layer).eval()
    choice = str(LayerChoice("all", linear=True, depthwise=True, unequal=unequal(net)))
    teacher = Teacher(net, choice, image(64), image(32))
    target = teacher.targets[0]
    data = teacher.layer_data(1 << 26, 64)[0][target.name]
    assert data.inputs.shape[1:] == (target.cin, target.h, target.w)
    down = -(-target.h // target.stride), -(-target.w // target.stride)
    assert data.outputs.shape[1:] == (target.cout, *down)
    sized = sizes_of(Operator("own", DENSE, fixed=True), target)[0]
    fitted, error = fit_operator(data, sized, 20, 1, True)
    view = teacher.holders[target.name].view
    half = view.down.is_half_padded and view.right.is_half_padded
    exact = target.stride == 1 and half and getattr(layer, "padding_mode", "zeros") == "zeros"
    exact &= not (target.projected and target.cout < target.cin)
    assert error < (0.01 if exact else 0.95)
    with teacher.swapped(target.name, fitted) as swapped:
        assert swapped(image()).shape == net(image()).shape


def test_a_window_makes_as_many_rows_as_the_layer():
    sizes = itertools.product(range(1, 8), range(1, 5), (1, 2, 3), range(8), range(1, 24))
    for k, stride, dilation, padding, size in sizes:
        layer = nn.Conv1d(1, 1, k, stride=stride, padding=padding, dilation=dilation)
        window = Window(dilation * (k - 1) + 1, stride, padding, padding)
        if size + 2 * padding < window.span:
            continue
        rows = layer(torch.zeros(1, 1, size)).shape[-1]
        seen = padded(torch.zeros(1, 1, 1, size), Window().numbers, window.numbers)
        assert window.places(size) == rows == -(-seen.shape[-1] // stride)
        if window.is_half_padded:
            assert seen.shape[-1] == size


@pytest.mark.parametrize(
    ("view", "shape", "images"),
    [
        (View(2, True), (5, 7), (5, 7, 1, 1)),
        (View(3, True), (5, 4, 7), (5, 7, 1, 4)),
        (View(4, True), (5, 3, 4, 7), (5, 7, 3, 4)),
        (View(2, True, 2), (6, 7), (3, 7, 2, 1)),
        (View(3, True, 2), (6, 4, 7), (3, 7, 2, 4)),
        (View(4, True, 2), (6, 3, 4, 7), (3, 7, 6, 4)),
        (View(3), (5, 7, 4), (5, 7, 1, 4)),
        (View(2), (5, 7), (5, 7, 1, 1)),
        (View(), (5, 7, 3, 4), (5, 7, 3, 4)),
    ],
)
def test_tensors_become_images_and_back(view, shape, images):
    x = torch.randn(shape)
    y = view.arranged(x)
    assert y.shape == images and view.restored(y).equal(x)
    words = view.rank, view.last, view.pieces
    assert torch.jit.script(arranged)(x, *words).equal(y)
    assert torch.jit.script(restored)(y, *words).equal(x)


def test_pixels_that_a_kernel_sees_of_a_layer_without_padding():
    x = torch.arange(36.0).reshape(1, 1, 6, 6)
    valid, patches = Window(3, 1), Window(2, 2)
    assert padded(x, valid.numbers, valid.numbers).equal(x[..., 1:5, 1:5])
    assert padded(x, patches.numbers, patches.numbers).equal(x)


@pytest.mark.parametrize("shape", [(3, 8), (3, 8, 10), (3, 8, 6, 10)])
def test_placeholders_by_hand_take_what_the_published_ones_take(shape):
    net = nn.Sequential(canvas.Placeholder())
    x = torch.randn(shape)
    assert net(x) is x
    pack = canvas.sample(net, x, budget="macs=1x", require="none", seed=1)
    window = {2: "KH=1 KW=1", 3: "KH=1 KW=3", 4: "KH=3 KW=3"}[len(shape)]
    assert window in pack.text
    assert canvas.replace(net, pack)(x).shape == shape


class Reads(nn.Module):
    """A network that reads an attribute of a layer beside calling it."""

    def __init__(self):
        super().__init__()
        self.one, self.two = nn.Conv2d(16, 16, 1), nn.Conv2d(16, 16, 3, padding=1)

    def forward(self, x):
        return self.one(x).to(self.two.weight.dtype) + self.two(x).mean()


class Asks(Reads):
    """A network that does something else where a layer has no weight."""

    def forward(self, x):
        return super().forward(x) if hasattr(self.two, "weight") else x


class Insists(Reads):
    """A network that fails where a layer is none of PyTorch's."""

    def forward(self, x):
        if not isinstance(self.two, nn.Conv2d):
            raise TypeError("no convolution")
        return self.two(x)


class FirstAxis(nn.Module):
    """Linear layers whose first axis is (or is not) the examples."""

    def __init__(self, order):
        super().__init__()
        self.order, self.layer = order, nn.Linear(16, 16)
        self.register_buffer("table", torch.ones(6, 16))

    def forward(self, x):
        _, c, _, w = x.shape
        if self.order == "table":
            return self.layer(self.table).mean(0) + x.mean((0, 2, 3))
        if self.order == "positions":
            return self.layer(x.flatten(2).permute(2, 0, 1)).mean(0)
        rows = x.permute(0, 2, 3, 1) if self.order == "examples" else x.permute(2, 0, 3, 1)
        return self.layer(rows.reshape(-1, w, c)).reshape(-1, c).mean(0)


class Called(nn.Module):
    def __init__(self, how):
        super().__init__()
        self.how, self.layer = how, Wrapped(16, 16, 3, padding=1)

    def forward(self, x):
        return self.layer(input=x) if self.how == "by keyword" else self.layer(x, None)


class Wrapped(nn.Conv2d):
    def forward(self, input, mask=None):
        return super().forward(input)


class Dynamic(nn.Conv2d):
    def forward(self, x):
        return self._conv_forward(x, self.weight * x.mean(), self.bias)


class Dropping(nn.Conv2d):
    def forward(self, x):
        return nn.functional.dropout(super().forward(x), 0.5, self.training)


class Tied(nn.Module):
    def __init__(self):
        super().__init__()
        self.table, self.layer = nn.Embedding(16, 16), nn.Linear(16, 16)
        self.layer.weight = self.table.weight

    def forward(self, x):
        return self.layer(x.mean((2, 3))) + self.table.weight.mean()


@pytest.mark.parametrize(
    ("part", "name", "reason"),
    [
        (Reads(), "3.two", "the network reads its 'weight'"),
        (Asks(), "3.two", "the network reads its 'weight'"),
        (FirstAxis("examples"), "3.layer", ""),
        (FirstAxis("positions"), "3.layer", "the first axis of its input is not the examples"),
        (FirstAxis("rows"), "3.layer", "the first axis of its input is not the examples"),
        (FirstAxis("table"), "3.layer", "the first axis of its input is not the examples"),
        (Called("by keyword"), "3.layer", ""),
        (Called("with more"), "3.layer", "it is called with more than its input"),
        (Dynamic(16, 16, 1), "3", "its type Dynamic has a weight that depends on its input"),
        (Dropping(16, 16, 1), "3", "its type Dropping computes more than a convolution"),
        (Tied(), "3.layer", "it shares its weight with '3.table'"),
        (nn.TransformerEncoderLayer(16, 2, 32, batch_first=True), "3.linear1",
         "the network reads its 'weight'"),
    ],
    ids=lambda value: value if isinstance(value, str) and " " in value else "",
)  # fmt: skip
def test_layers_that_a_kernel_cannot_stand_for(part, name, reason):
    tokens = isinstance(part, nn.TransformerEncoderLayer)
    inner = Flat(part) if tokens else part
    name = name.replace("3.", "3.part.") if tokens else name
    net = nn.Sequential(*network(inner), Rest()).eval()
    conversion = convert(net)
    assert {row.name: row.reason for row in conversion.table}[name] == reason
    model = conversion.model
    if any(row.status == "replaced" for row in conversion.table):
        pack = canvas.sample(model, image(), budget="macs=4x,params=none", require="none", seed=2)
        canvas.replace(model, pack)
    model.eval()(image())


class Flat(nn.Module):
    """Tokens for a part that takes [N, L, C]."""

    def __init__(self, part):
        super().__init__()
        self.part = part

    def forward(self, x):
        return self.part(x.flatten(2).transpose(1, 2)).mean((0, 1))


class Rest(nn.Module):
    """A layer that can be replaced behind whatever comes before."""

    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(1, 8, 1)
        self.last = nn.Conv2d(8, 8, 3, padding=1)

    def forward(self, x):
        return self.last(self.conv(x.reshape(1, 1, 1, -1).expand(2, 1, 4, -1)))


def test_a_network_that_cannot_be_converted_is_as_it_was():
    """Converted in place: its layers are put back."""
    net = network(Insists())
    with pytest.raises(canvas.CanvasError, match=r"does not run on .*no convolution"):
        canvas.convert(net, image(), inplace=True)
    assert not any(isinstance(child, canvas.Placeholder) for child in net.modules())
    net(image())


@pytest.mark.parametrize("failure", [KeyboardInterrupt(), SystemExit(3), OSError("torn")])
def test_whatever_ends_a_conversion_leaves_the_network_as_it_was(failure):
    net = network(nn.Conv2d(16, 16, 3))
    calls = []

    def stop(module, inputs):
        calls.append(isinstance(net[3], Placeholder))
        if calls[-1]:
            raise failure

    net[0].register_forward_pre_hook(stop)
    with pytest.raises((type(failure), canvas.CanvasError)):
        canvas.convert(net, image(), inplace=True)
    assert calls[-1] and not any(isinstance(child, Placeholder) for child in net.modules())


def test_a_network_that_reads_all_its_layers_is_one_message():
    net = nn.Sequential(*network(Reads()), Asks())
    only = {"filter_fn": lambda _, path: path.endswith("two")}
    with pytest.raises(canvas.CanvasError, match=r"no policy .*: .*2 because the network reads"):
        canvas.convert(net, image(), **only)


def test_a_pack_whose_layers_stay_is_no_other_network(monkeypatch):
    """`canvas train` and `canvas export` with another choice of layers than the search's."""
    from canvas.nn import network as networks
    from canvas.nn.network import Recipe, build_network

    def build(in_channels, num_classes):
        layers = nn.Conv2d(16, 24, 3, padding=1), nn.Conv2d(24, num_classes, 3, padding=1)
        return nn.Sequential(
            network(nn.Sequential(*layers)), nn.AdaptiveAvgPool2d(1), nn.Flatten()
        )

    monkeypatch.setattr(networks, "load_model", lambda model, channels, classes, **more: build(
        channels, classes))  # fmt: skip
    pack = canvas.sample(convert(build(3, 24), unequal="project").model, seed=1)
    recipe = Recipe("own:build", None, (3, 12, 12), 24, "all unequal=skip", 0)
    message = r"the pack has a kernel for '0\.3\.0', which stays: neither of its channels 16 -> 24"
    with pytest.raises(canvas.CanvasError, match=message):
        build_network(recipe, pack.text)
    kept = canvas.get_placeholders(convert(build(3, 24)).model)["0.3.0"].target
    second = canvas.KernelPack("canvas 1\n" + pack.kernel.partition("\n")[2]
                               + pack.text[pack.text.index("bind 0.3.1") :])  # fmt: skip
    mixed = canvas.KernelPack.join([second], keep=[kept])
    assert build_network(recipe, mixed.text)(image()).shape == (2, 24)


def test_kept_layers_have_no_projection():
    """A pack keeps a convolution, whatever stands before the kernels of others."""
    net = network(nn.Sequential(nn.Conv2d(16, 24, 3, padding=1), nn.Conv2d(24, 40, 3, padding=1)))
    model = convert(net, unequal="project").model
    targets = [p.target for p in canvas.get_placeholders(model).values()]
    whole = canvas.sample(model, seed=1)
    first = canvas.KernelPack(whole.text[: whole.text.index("bind 3.1")])
    pack = canvas.KernelPack.join([first], keep=targets[1:])
    assert "projected" not in pack.text.partition("keep")[2]
    made = pack.text.replace("keep 3.1", "keep 3.1", 1).rstrip("\n") + " projected=1\n"
    assert canvas.KernelPack(made) == pack
    larger = convert(net, unequal="project").model
    canvas.get_placeholders(larger, image(2, 20))
    assert canvas.replace(larger, pack)(image(2, 20)).shape == net(image(2, 20)).shape


def test_images_of_a_batch_do_not_mix():
    for order in ("examples", "positions", "rows"):
        net = nn.Sequential(*network(Windows(nn.Linear(16, 16))), FirstAxis(order)).eval()
        model = convert(net).model
        body = model[:4]
        for seed in range(6):
            pack = canvas.sample(model, image(), budget="macs=4x,params=none", require="none",
                                 seed=seed)  # fmt: skip
            kernels = canvas.replace(convert(net).model, pack).eval()[:4]
            whole = kernels(image(4))
            parts = torch.cat([kernels(image(4)[i : i + 1]) for i in range(4)])
            torch.testing.assert_close(whole, parts, rtol=1e-4, atol=1e-4)
        assert body(image(4)).shape == whole.shape


def test_attention_counts_as_its_products():
    class Attention(nn.Module):
        def __init__(self, fused):
            super().__init__()
            self.fused, self.layer = fused, nn.Linear(16, 48)

        def forward(self, x):
            q, k, v = self.layer(x.flatten(2).transpose(1, 2)).chunk(3, -1)
            if self.fused:
                return nn.functional.scaled_dot_product_attention(q, k, v)
            return (q @ k.transpose(1, 2)).softmax(-1) @ v

    shares = [convert(network(Attention(fused))).covered for fused in (False, True)]
    assert shares[0] == pytest.approx(shares[1]) and shares[0] < 0.7


@pytest.mark.parametrize(
    ("net", "example", "message"),
    [
        (nn.Sequential(nn.Conv2d(3, 8, 1), nn.Conv2d(8, 8, 1)), torch.zeros(0, 3, 8, 8),
         "the example input is empty"),
        (nn.Sequential(nn.Linear(16, 16)), torch.zeros(2, 0, 16), r"\[2, 0, 16\] is empty"),
        (nn.Sequential(nn.Linear(16, 16)).to(torch.complex64),
         torch.zeros(2, 16, dtype=torch.complex64), "its weights are complex"),
        (nn.Sequential(nn.Linear(16, 16)), torch.zeros(2, 1, 1, 1, 16), "its input has 5 axes"),
    ],
)  # fmt: skip
def test_examples_that_show_nothing(net, example, message):
    with pytest.raises(canvas.CanvasError, match=message):
        canvas.convert(net, example, linear=True)


def test_inputs_of_other_axes_are_one_message():
    net = nn.Sequential(nn.Linear(16, 16), nn.Linear(16, 16))
    model = canvas.convert(net, torch.zeros(2, 7, 16), linear=True).model
    with pytest.raises(canvas.CanvasError, match="it was converted for inputs of 3 axes"):
        canvas.get_placeholders(model, torch.zeros(2, 4, 5, 16))
    model = canvas.replace(model, canvas.sample(model, torch.zeros(2, 7, 16), seed=1))
    for shape in ((16,), (2, 16), (2, 3, 4, 16)):
        with pytest.raises(canvas.CanvasError, match="a kernel for inputs of 3 axes"):
            model(torch.zeros(shape))


def test_what_is_replaced_on_request():
    net = network(nn.Sequential(KINDS["depth-wise"], KINDS["unequal"], Tokens(nn.Linear(24, 24))))
    kinds = {
        (): {"3.1"},
        ("depthwise",): {"3.0", "3.1"},
        ("linear",): {"3.1", "3.2.layer"},
        ("project",): {"3.1"},
        ("skip",): set(),
    }
    for asked, wanted in kinds.items():
        choice = {"linear": "linear" in asked, "depthwise": "depthwise" in asked}
        choice["unequal"] = asked[0] if asked in (("project",), ("skip",)) else "gcd"
        if not wanted:
            with pytest.raises(canvas.CanvasError, match="neither of its channels 16 -> 24"):
                convert(net, **choice)
            continue
        table = convert(net, **choice).table
        assert {row.name for row in table if row.status == "replaced"} == wanted
    with pytest.raises(canvas.CanvasError, match="unequal 'pad' is unknown, it is one of: gcd"):
        convert(net, unequal="pad")


def test_a_pack_stands_for_the_layers_that_it_was_made_for():
    """With projections, or without."""
    ways = ("project", "gcd")
    for made, given in (ways, ways[::-1]):
        net = network(nn.Conv2d(16, 24, 3, padding=1))
        pack = canvas.sample(convert(net, unequal=made).model, seed=1)
        other = convert(net, unequal=given).model
        with pytest.raises(canvas.CanvasError, match="has no binding for '3 16 24 12 12 3x3 1 1"):
            canvas.replace(other, pack)
        assert other[3].kernel is None


def test_a_choice_is_one_text():
    for choice in itertools.product(
        ("paper", "all"), (False, True), (False, True), ("gcd", "skip")
    ):
        made = LayerChoice(*choice)
        assert LayerChoice.parse(str(made)) == made
    assert str(LayerChoice()) == "paper" and LayerChoice.of({"policy": "all"}).policy == "all"


def test_conversions_of_little_warn():
    net = network(nn.Sequential(KINDS["depth-wise"], nn.Conv2d(16, 16, 1)))
    with pytest.warns(UserWarning, match=r"% of the network's MACs are in layers replaced; most"):
        conversion = canvas.convert(net, image())
    assert str(conversion).splitlines()[-1] == f"warning: {conversion.warning}"
    with pytest.warns(UserWarning, match=r"% are not in convolutions \(linear=True\)"):
        canvas.convert(
            network(nn.Sequential(nn.Conv2d(16, 16, 1), Tokens(nn.Linear(16, 99)))), image()
        )
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        conversion = canvas.convert(network(KINDS["no padding"]), image())
    assert not conversion.warning and "warning" not in str(conversion)


def test_packs_from_before_a_layer_could_be_replaced():
    """A pack names all layers that it was made for: others stay."""
    from canvas.nn.convert import convert_layers

    net = network(nn.Sequential(nn.Conv2d(16, 16, 3, padding=1), KINDS["dilated"]))
    old = canvas.convert(net, image(), filter_fn=lambda _, path: path == "3.0")
    pack = canvas.sample(old.model, seed=1)
    new = convert_layers(network(net[3]), image(), named=pack.targets)
    assert [row.status for row in new.table] == ["skipped", "replaced", "skipped"]
    assert new.table[2].reason == "the pack does not name it"
    canvas.replace(new.model, pack)(image())


def test_exported_code_is_the_same_network(tmp_path, monkeypatch):
    """What `canvas export` writes for layers whose tensors are no images, read back."""
    from canvas.deploy.network_code import network_code
    from canvas.nn.network import Recipe, build_network

    (tmp_path / "kinds.py").write_text(
        "from torch import nn\n"
        "class Tokens(nn.Module):\n"
        "    def __init__(self):\n"
        "        super().__init__()\n"
        "        self.layer = nn.Linear(16, 32)\n"
        "    def forward(self, x):\n"
        "        return self.layer(x.flatten(2).transpose(1, 2)).mean(1)\n"
        "def build(in_channels, num_classes):\n"
        "    shared = nn.Conv2d(16, 16, 3)\n"
        "    return nn.Sequential(nn.Conv2d(in_channels, 16, 3, padding=1), nn.Conv2d(16, 16, 2,\n"
        "        stride=2), shared, shared, nn.Conv2d(16, 16, 3, padding=2, dilation=2),\n"
        "        Tokens(), nn.Linear(32, num_classes))\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    recipe = Recipe("kinds:build", None, (3, 20, 20), 10, "paper linear=yes", 1)
    model = convert(build_network(recipe), policy="paper", depthwise=False).model
    pack = canvas.sample(model, image(2, 20), budget="macs=4x,params=none", seed=2)
    network = build_network(recipe, pack.text).eval()
    about = {"shape": (3, 20, 20), "classes": 10, "mean": (), "deviation": ()}
    code = network_code("A network", recipe, pack.text, network, about)
    path = tmp_path / "network.py"
    path.write_text(code)
    spec = importlib.util.spec_from_file_location("exported_kinds", path)
    exported = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(exported)
    other = exported.build().eval()
    other.load_state_dict(network.state_dict())
    torch.testing.assert_close(other(image(2, 20)), network(image(2, 20)))
    canvas.export(
        pack,
        tmp_path / "out",
        model="kinds:build",
        data="synthetic",
        policy="paper",
        linear="yes",
        image_size=20,
    )  # which reads it back and compares
