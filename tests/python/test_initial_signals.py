"""What a network tells before training, against explicit sums and kernels known to be equal."""

import math

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional as F

from canvas import _core
from canvas.nn import initial_signals
from canvas.nn.initial_signals import Signals, fingerprint, measure, naswot, spread, weights_of
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


def found(model):
    return measure(model, *batch(), list(get_placeholders(model).values()))


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
    assert first.fingerprint == second.fingerprint and first.spread != second.spread


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
    assert fingerprint(model, images * math.inf, labels, list(model.layers)) is None


# ---- gradients ----------------------------------------------------------------------------------


def test_the_spread_is_that_of_the_gradients_of_the_first_step():
    model, (images, labels) = network(TWO), batch()
    F.cross_entropy(model.train()(images), labels).backward()
    norms = [
        np.linalg.norm([np.linalg.norm(w.grad.numpy()) for w in layer.kernel.parameters()])
        for layer in model.layers
    ]
    again = network(TWO)
    assert found(again).spread == pytest.approx(abs(math.log10(norms[0] / norms[1])), rel=1e-5)


def test_norms_and_biases_are_no_weights():
    convolution = nn.Conv2d(2, 3, 1)
    assert weights_of(nn.Sequential(convolution, nn.BatchNorm2d(3))) == [convolution.weight]


@pytest.mark.parametrize(
    ("norms", "expected"),
    [([1.0, 10.0], 1.0), ([10.0, 1.0, 5.0], 1.0), ([2.0, 2.0], 0.0), ([3.0], None), ([], None)],
)
def test_spread(norms, expected):
    assert spread(norms) == expected


def test_a_layer_that_vanishes_is_seen_in_the_spread():
    plain, faint = network(FC), network(FC)
    faint.norms[1].weight.data.fill_(1e-5)
    assert found(faint).spread > found(plain).spread + 2


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
    assert signals.broken == broken and signals.fingerprint is signals.spread is None


def test_layers_without_weights_have_no_spread():
    signals = found(network(kernel("out a")))
    assert signals.spread is None and signals.fingerprint and not signals.broken


# ---- activations --------------------------------------------------------------------------------


def naswot_by_numpy(codes):
    """The paper's definition, one pair at a time."""
    count = len(codes[0])
    flat = np.concatenate([code.reshape(count, -1).numpy() for code in codes], axis=1)
    both = [[np.sum(flat[i] == flat[j]) for j in range(count)] for i in range(count)]
    return np.log(np.linalg.det(np.array(both, float)))


def test_naswot_is_the_papers():
    random = torch.Generator().manual_seed(5)
    codes = [torch.rand(6, 4, 3, generator=random) > 0.5, torch.rand(6, 7, generator=random) > 0.5]
    assert naswot(codes) == pytest.approx(naswot_by_numpy(codes))
    codes[0][1], codes[1][1] = codes[0][0], codes[1][0]  # two images look alike
    assert naswot(codes) == 0
    assert naswot([]) is None


@pytest.mark.parametrize("inplace", [False, True])
def test_the_networks_own_activations_count_those_of_kernels_do_not(inplace, monkeypatch):
    seen = []
    monkeypatch.setattr(
        initial_signals, "naswot", lambda codes: seen.append(codes) or naswot(codes)
    )
    model = nn.Sequential(nn.Conv2d(1, 4, 3), nn.Sequential(nn.ReLU(), nn.Conv2d(4, 4, 1)),
                          nn.ReLU(inplace), nn.GELU(), nn.Flatten(), nn.Linear(64, 3))  # fmt: skip
    images, labels = batch()
    with torch.no_grad():
        before = model[1](model[0](images))
    measure(model, images, labels, [model[1]])
    assert [code.shape for code in seen[0]] == 2 * [before.shape]
    assert torch.equal(seen[0][0], before > 0)


def test_nothing_stays_hooked():
    model = network(FC)
    found(model)
    assert not any(m._forward_hooks or m._forward_pre_hooks for m in model.modules())


def test_signals_are_told_as_json():
    assert Signals(1.0, 2.0, "f").to_json() == {
        "spread": 1.0, "naswot": 2.0, "fingerprint": "f", "broken": "", "seconds": {}
    }  # fmt: skip
