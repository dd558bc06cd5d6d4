"""What a network tells before training, against explicit sums and kernels known to be equal."""

import math

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from canvas import _core
from canvas.nn.initial_signals import Signals, fingerprint, measure, weights_of
from canvas.nn.layer_target import Target, targets_text
from canvas.nn.pack import KernelPack
from canvas.nn.placeholder import Placeholder, get_placeholders, replace

TARGETS = [Target(f"layer{i}", 8, 8, 6, 6) for i in range(2)]


class Small(nn.Module):
    """Two placeholders, behind activations and norms."""

    def __init__(self):
        super().__init__()
        self.stem = nn.Conv2d(1, 8, 3, padding=1)
        self.layers = nn.ModuleList(Placeholder() for _ in TARGETS)
        self.norms = nn.ModuleList(nn.BatchNorm2d(8) for _ in TARGETS)
        self.head = nn.Linear(8, 3)
        for layer, target in zip(self.layers, TARGETS):
            layer.target, layer.by_hand = target, False

    def forward(self, x):
        x = F.relu(self.stem(x))
        for layer, norm in zip(self.layers, self.norms):
            x = F.relu(norm(layer(x)) + x)
        return self.head(x.mean((2, 3)))


def kernel(*lines):
    return "\n".join(["canvas 1", "kernel k", "a = input", *lines, ""])


def network(text, options="G=2"):
    pack = KernelPack(_core.solve(text, targets_text(TARGETS), "macs=none,params=none", options))
    torch.manual_seed(1)
    return replace(Small(), pack)


def batch(count=16):
    random = torch.Generator().manual_seed(3)
    return torch.randn(count, 1, 6, 6, generator=random), torch.arange(count) % 3


def loss(model, batch):
    return F.cross_entropy(model(batch[0]), batch[1])


def found(model):
    return measure(model, batch(), loss, list(get_placeholders(model).values()))


# ---- equal functions, other functions -----------------------------------------------------------

FC = kernel("b = fc a to=C", "out b")
WINDOW = kernel("b = unfold a over=H,W k=K", "c = fc b to=C", "d = relu c", "out d")
TWO = kernel("b = relu a", "c = fc a to=C", "d = unfold c over=H k=K", "e = fc d to=C",
             "f = fc b to=C", "g = add e f", "out g")  # fmt: skip

EQUAL = {
    "relu of what is rectified": (FC, kernel("b = relu a", "c = fc b to=C", "out c")),
    "relu twice": (
        WINDOW,
        kernel("b = unfold a over=H,W k=K", "c = fc b to=C", "d = relu c", "e = relu d", "out e"),
    ),
    "abs of what is rectified": (FC, kernel("b = abs a", "c = fc b to=C", "out c")),
    "a group at the end": (FC, kernel("b = fc a to=C", "c = group b by=G", "out c")),
    "relu before or behind a shift": (
        kernel("b = shift a over=H,W by=1", "c = relu b", "d = fc c to=C", "out d"),
        kernel("c = relu a", "b = shift c over=H,W by=1", "d = fc b to=C", "out d"),
    ),
    "branches in another order": (
        TWO,
        kernel("b = relu a", "f = fc b to=C", "c = fc a to=C", "d = unfold c over=H k=K",
               "e = fc d to=C", "g = add f e", "out g"),
    ),
    "larger of two, swapped": (
        kernel("b = fc a to=C", "c = shift a over=H,W by=1", "d = fc c to=C", "e = max b d",
               "out e"),
        kernel("c = shift a over=H,W by=1", "d = fc c to=C", "b = fc a to=C", "e = max d b",
               "out e"),
    ),
}  # fmt: skip

OTHERS = [
    FC,
    WINDOW,
    TWO,
    kernel("out a"),
    kernel("b = fc a to=C", "c = relu b", "out c"),
    kernel("b = fc a to=C", "c = fc b to=C", "out c"),
    kernel("b = fc a to=C", "c = fc a to=C", "d = max b c", "out d"),
    kernel("b = fc a to=C", "c = fc a to=C", "d = min b c", "out d"),
    kernel("b = shift a over=H,W by=1", "c = fc b to=C", "out c"),
    kernel("b = shift a over=H,W by=-1", "c = fc b to=C", "out c"),
    kernel("b = group a by=G", "c = unfold b over=H,W k=K", "d = fc c to=C", "out d"),
    kernel("b = unfold a over=H,W k=K", "d = fc b to=C", "out d"),
]


@pytest.mark.parametrize("pair", EQUAL.values(), ids=EQUAL)
def test_equal_functions_have_one_fingerprint(pair):
    first, second = (found(network(text)).fingerprint for text in pair)
    assert first == second and first


def test_norms_inside_are_part_of_the_function():
    chain = kernel("b = fc a to=C", "c = fc b to=C", "out c")
    again = kernel("d = relu a", "b = fc d to=C", "c = fc b to=C", "out c")
    plain, *normed = (found(network(chain, "G=2")), found(network(chain, "G=2 norm=batch")),
                      found(network(again, "G=2 norm=batch")))  # fmt: skip
    assert plain.fingerprint != normed[0].fingerprint == normed[1].fingerprint


def test_other_functions_have_others():
    prints = [found(network(text)).fingerprint for text in OTHERS]
    assert len(set(prints)) == len(OTHERS) and all(prints)


def test_a_fingerprint_does_not_depend_on_where_weights_start():
    models = [network(TWO), network(TWO)]
    for parameter in models[1].layers.parameters():
        nn.init.normal_(parameter, std=3)
    first, second = (found(model) for model in models)
    assert first.fingerprint and first.fingerprint == second.fingerprint


def test_weights_of_one_shape_are_told_apart():
    """Else the larger of two products would be one product."""
    double = kernel("b = fc a to=C", "c = fc a to=C", "d = max b c", "out d")
    assert found(network(double)).fingerprint != found(network(FC)).fingerprint


def test_a_network_that_holds_float32_has_a_fingerprint_of_fewer_digits():
    model = network(FC)
    model.head.register_forward_pre_hook(lambda head, inputs: (inputs[0].float(),))
    numbers = found(model).fingerprint.split()
    assert [len(number) for number in numbers] == 4 * [len("1.234e+00")]


def test_a_function_without_finite_numbers_has_no_fingerprint():
    model, (images, labels) = network(FC), batch()
    assert fingerprint(model, (images * math.inf, labels), loss, list(model.layers)) is None


# ---- gradients ----------------------------------------------------------------------------------


def test_norms_and_biases_are_no_weights():
    convolution = nn.Conv2d(2, 3, 1)
    assert weights_of(nn.Sequential(convolution, nn.BatchNorm2d(3))) == [convolution.weight]


def silent(model):
    model.norms[1].weight.data.zero_()


def overflowing(model):
    model.stem.weight.data.fill_(math.inf)


def steep(model):
    model.head.weight.register_hook(lambda gradient: gradient)
    model.layers[0].kernel.w0.register_hook(lambda gradient: gradient * math.nan)


@pytest.mark.parametrize(
    ("spoil", "broken"),
    [
        (silent, "no gradient reaches 1 of 2 layers at the first step"),
        (overflowing, "the loss is nan before the first step"),
        (steep, "a gradient is not finite at the first step"),
    ],
)
def test_what_cannot_be_trained_is_said_in_a_sentence(spoil, broken):
    model = network(FC)
    spoil(model)
    signals = found(model)
    assert signals.broken == broken and signals.fingerprint is None


def test_layers_without_weights_are_not_broken():
    signals = found(network(kernel("out a")))
    assert signals.fingerprint and not signals.broken


def test_signals_are_told_as_json():
    assert Signals("f").to_json() == {"fingerprint": "f", "broken": "", "seconds": {}}
