"""Breadth: what is true of one kernel must be true of hundreds.

Drawn kernels through every check there is (text, identity, cost, module against interpreter,
gradients), through what users do to modules (autocast, channels_last, deepcopy, pickle), the scale
of their numbers, and every layer of ResNet-18, VGG-16 and MobileNet-V2.  Core runs take a dozen
kernels, `./dev test --all` hundreds.
"""

import copy
import itertools
import json
import math
import os
import pickle
import random
import re
import sys
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")

from torch.utils.flop_counter import FlopCounterMode  # noqa: E402

import canvas  # noqa: E402
from canvas import _core, _testing  # noqa: E402
from canvas.nn.check import check, small_packs  # noqa: E402
from canvas.nn.pack import load_class  # noqa: E402

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "bench"))

import bench_sampling  # noqa: E402

torch.set_num_threads(1)

ALL = os.environ.get("CANVAS_TEST_ALL") == "1"


def seeds(core, every):
    """1, 2, ...: `core` of them, `every` where all is tested; the tests' parameters."""
    return [pytest.param(seed, id=str(seed)) for seed in range(1, 1 + (every if ALL else core))]


# -- every check of a kernel --


@pytest.mark.parametrize("seed", seeds(12, 500))
def test_every_check(seed):
    pack = bench_sampling.draw(seed)
    check_text(pack)
    check_identity(pack, random.Random(seed))
    small = small_packs(pack)
    check_cost(small[-1])
    try:
        check(pack)  # with and without patterns
    except OverflowError:
        return  # exp of exp: nothing finite to compare
    check_gradients(small[-1], seed)


def check_text(pack):
    """Printing what was parsed gives the same text, with shapes or without."""
    assert _core.print_kernels(pack.kernel) == pack.kernel
    assert _core.print_kernels(without_shapes(pack.kernel)) == pack.kernel
    again = canvas.KernelPack(pack.text)
    assert again.text == pack.text and again.hash == pack.hash
    assert pickle.loads(pickle.dumps(pack)) == pack


def without_shapes(kernel):
    return re.sub(r" +: .*", "", kernel)


ARITY = {row["name"].split()[0]: row["inputs"] for row in json.loads(_core.primitives())}
COMMUTES = {row["name"] for row in json.loads(_core.primitives()) if "commutes" in row["facts"]}


def check_identity(pack, rng):
    """Other names, variables, orders of independent nodes and of commutative inputs: one hash.
    Any one size more: another.
    """
    for _ in range(3):
        assert _core.hash(respelled(pack.kernel, rng)) == pack.hash
    for old, new in [("sub ", "add "), ("relu ", "neg "), ("by=1", "by=2"), (" mean ", " max ")]:
        if old in pack.kernel:
            other = without_shapes(pack.kernel).replace(old, new, 1)
            assert _core.hash(other) != pack.hash


def respelled(kernel, rng):
    lines = kernel.splitlines()
    nodes, shapes = {}, {}
    for line in lines[2:-1]:
        name, right = line.split(" = ", 1)
        words, _, shapes[name] = right.partition(" : ")
        word, *rest = words.split()
        nodes[name] = (word, rest[: ARITY[word]], rest[ARITY[word] :])
    order = ["a"]
    while len(order) < len(nodes):
        ready = [n for n in nodes if n not in order and set(nodes[n][1]) <= set(order)]
        order.append(rng.choice(ready))
    numbers = rng.sample(range(16), 16)
    names = dict(zip(order, rng.sample([f"node{i}" for i in range(99)], len(order))))
    text = lines[:2]
    for name in order:
        word, inputs, rest = nodes[name]
        if word in COMMUTES and len({shapes[n].strip() for n in inputs}) == 1:
            rng.shuffle(inputs)
        rest = [re.sub(r"\bx(\d+)", lambda m: f"x{numbers[int(m[1])]}", item) for item in rest]
        text.append(" ".join([names[name], "=", word, *(names[n] for n in inputs), *rest]))
    return "\n".join([*text, f"out {names[lines[-1].split()[1]]}", ""])


def module(pack, target=0, patterns=True, seed=0):
    cls = load_class(pack, patterns)
    binding = cls.BINDINGS[target]
    kernel = cls(binding["cin"], target=binding["name"])
    if pack.params:
        kernel.reset_parameters(torch.Generator().manual_seed(seed))
    return kernel


def image(pack, target=0, batch=2, seed=0):
    b = pack.module.BINDINGS[target]
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(batch, b["cin"], b["h"], b["w"], generator=generator)


def check_cost(pack):
    for patterns in (True, False):
        kernel = module(pack, patterns=patterns)
        with FlopCounterMode(display=False) as counter:
            kernel(image(pack))
        assert counter.get_total_flops() == 2 * 2 * pack.macs
        assert sum(p.numel() for p in kernel.parameters()) == pack.params


def check_gradients(pack, seed):
    """Along random directions of image and weights, autograd's derivative is that of the module's
    values, with and without patterns; where the values have a kink, it lies between the slopes.
    """
    for patterns in (True, False):
        kernel = module(pack, patterns=patterns).double()
        names = [name for name, _ in kernel.named_parameters()]
        point = [image(pack).double(), *(p.detach() for p in kernel.parameters())]
        generator = torch.Generator().manual_seed(seed)
        way = [torch.randn(p.shape, generator=generator, dtype=torch.float64) for p in point]
        way = [w / w.norm() for w in way]
        out = torch.randn(kernel(point[0]).shape, generator=generator, dtype=torch.float64)

        def value(x, *weights, kernel=kernel, names=names, out=out):
            call = torch.func.functional_call
            return (call(kernel, dict(zip(names, weights)), (x,)) * out).sum()

        def at(t, value=value, point=point, way=way):
            return value(*(p + t * w for p, w in zip(point, way))).item()

        leaves = [p.clone().requires_grad_() for p in point]
        gradients = torch.autograd.grad(value(*leaves), leaves)
        slope = sum((g * w).sum() for g, w in zip(gradients, way)).item()
        step, here = 1e-6, at(0.0)
        sides = sorted([(at(step) - here) / step, (here - at(-step)) / step])
        size = max(1.0, abs(here), *(g.abs().max().item() for g in gradients))
        assert sides[0] - 1e-4 * size <= slope <= sides[1] + 1e-4 * size


# -- what users do to modules --


@pytest.mark.parametrize("seed", seeds(12, 60))
def test_what_users_do(seed):
    pack = bench_sampling.draw(seed)
    wider = [i for i, b in enumerate(pack.module.BINDINGS) if b["cout"] != b["cin"]]
    for target in (0, wider[0]):
        kernel, x = module(pack, target), image(pack, target, batch=4)
        y, gradients = run(kernel, x)
        with torch.autocast("cpu", torch.bfloat16):
            half, half_gradients = run(kernel, x)
        assert distance(half, y) < 0.1
        assert all(g.isfinite().all() for g in half_gradients)
        strided, strided_gradients = run(
            copy.deepcopy(kernel).to(memory_format=torch.channels_last),
            x.to(memory_format=torch.channels_last),
        )
        assert distance(strided, y) < 1e-4
        assert all(distance(*pair) < 1e-3 for pair in zip(strided_gradients, gradients))
        for other in (copy.deepcopy(kernel), pickle.loads(pickle.dumps(kernel))):
            assert type(other) is type(kernel) and other.target == kernel.target
            same, same_gradients = run(other, x)
            assert torch.equal(same, y)
            assert all(torch.equal(*pair) for pair in zip(same_gradients, gradients))
            assert not {id(p) for p in other.parameters()} & {id(p) for p in kernel.parameters()}


def run(kernel, x):
    """The output, and the gradients of image and weights (0 where one has none)."""
    x = x.detach().clone(memory_format=torch.preserve_format).requires_grad_()
    leaves = [x, *kernel.parameters()]
    y = kernel(x)
    gradients = torch.autograd.grad(
        y.float().square().mean(), leaves, allow_unused=True, materialize_grads=True
    )
    return y.detach().float(), gradients


def distance(a, b):
    """Of the whole tensors, relative to the second."""
    return ((a - b).norm() / b.norm().clamp(min=1e-6)).item()


# -- the scale of the numbers --


def test_outputs_keep_their_scale():
    scales = list(bench_sampling.measure_all(40))
    assert bench_sampling.share(scales) >= 0.95
    check_gains(scales)


def check_gains(scales):
    """What a softmax makes small is scaled where it is made, not by enormous weights behind it."""
    gains = [gain for scale in scales for gain in scale.gains]
    assert len(gains) > len(scales) and max(gains) < 30


CONSTANT = """canvas 1
kernel constant
a = input
b = fc a to=C
c = unfold b over=W k=K
d = fc c to=C
e = sqrt d
f = softmax e over=C scale=C
g = unfold f over=H k=K
h = fold g max over=KH
i = fold a mean over=H,W
j = fold i mean over=C
k = sigmoid j
l = min k h
out l
"""


def test_weights_do_not_move_constants():
    """The output is a half nearly everywhere; only saturated weights could make it vary."""
    pack = canvas.KernelPack(
        _core.solve(CONSTANT, bench_sampling.small_targets(), "macs=1x", "G=2")
    )
    gains = bench_sampling.Scale(0, pack, ()).gains
    assert len(gains) == 2 and max(gains) < 30


@pytest.mark.nightly
@pytest.mark.timeout(3600)
def test_outputs_of_a_thousand_kernels_keep_their_scale():
    scales = list(bench_sampling.measure_all(1000))
    assert bench_sampling.share(scales) >= 0.95
    check_gains(scales)


# -- every layer of three networks (behaviour 21) --

NETWORKS = ("resnet18", "vgg16", "mobilenet_v2")
# MACs of the classifier, and published MACs of the whole network
TOTALS = {
    "vgg16": (25088 * 4096 + 4096 * 4096 + 4096 * 1000, 15_470_264_320),
    "mobilenet_v2": (1280 * 1000, 300_774_272),
}
KERNELS = sorted(path.stem for path in (ROOT / "examples/kernels").glob("*.kernel"))


def targets(network, shrink=1):
    """Lines of examples/targets with the images `shrink` times smaller, at least 3x3."""
    lines = []
    for line in (ROOT / f"examples/targets/{network}.txt").read_text().splitlines():
        if line.startswith("#"):
            continue
        name, cin, cout, h, w, *rest = line.split()
        h, w = (str(max(3, math.ceil(int(size) / shrink))) for size in (h, w))
        lines.append(" ".join([name, cin, cout, h, w, *rest]))
    return "\n".join(lines) + "\n"


@pytest.mark.parametrize("network", TOTALS)
def test_target_tables_add_up(network):
    """Layers replaced, layers skipped (comments `#: NAME C_in ...`) and the classifier are all."""
    text = (ROOT / f"examples/targets/{network}.txt").read_text()
    classifier, published = TOTALS[network]
    total = classifier + json.loads(_testing.baseline(targets(network)))["macs"]
    for line in re.findall(r"^#: (.*)", text, re.M):
        _, *numbers = line.split()[:8]
        cin, cout, h, w, k, stride, groups = map(int, numbers)
        total += cin // groups * cout * k * k * -(-h // stride) * -(-w // stride)
    assert total == published


def solve(kernel, text, groups, budget="macs=2x,params=2x"):
    """A pack within a budget that a depth-wise separable convolution keeps on 1x1 layers."""
    try:
        return canvas.KernelPack(_core.solve(kernel, text, budget, f"G={groups} exempt=1"))
    except canvas.NoSolution:
        return None


def check_layers(pack):
    """Builds for every layer (equal ones once), keeps the shape, finite forward and backward."""
    seen = set()
    for target, b in enumerate(pack.module.BINDINGS):
        sizes = tuple(value for key, value in b.items() if key != "name")
        if sizes in seen:
            continue
        seen.add(sizes)
        y, gradients = run(module(pack, target), image(pack, target))
        stride = b["stride"]
        assert y.shape == (2, b["cout"], -(-b["h"] // stride), -(-b["w"] // stride)), b
        assert y.isfinite().all(), b
        assert all(g.isfinite().all() for g in gradients), b


# Examples that no sizes fit: images of odd size cannot be pooled by two, and several dense
# operators are more than twice a network of 1x1 convolutions.
UNFIT = {
    *itertools.product(("octave", "spatial_bottleneck", "dynamic_convolution"), NETWORKS),
    ("axial_shift", "mobilenet_v2"),
    ("channel_attention", "mobilenet_v2"),
    ("convnext", "mobilenet_v2"),
    ("multi_head_attention", "mobilenet_v2"),
    ("published", "mobilenet_v2"),
}


@pytest.mark.parametrize(("kernel", "network"), list(itertools.product(KERNELS, NETWORKS)))
def test_every_layer_of_every_network(kernel, network):
    text = (ROOT / f"examples/kernels/{kernel}.kernel").read_text()
    pack = solve(text, targets(network, shrink=16), 8)
    assert (pack is None) == ((kernel, network) in UNFIT)
    if pack is not None:
        check_layers(pack)


@pytest.mark.parametrize(("seed", "network"), list(itertools.product(range(1, 5), NETWORKS)))
def test_sampled_kernels_on_every_layer(seed, network):
    check_drawn(targets(network, shrink=16), seed)


def check_drawn(text, seed):
    for index in range(100):
        drawn = _core.draw(text, seed, index, "")
        pack = solve(drawn[0], text, drawn[1]) if drawn else None
        if pack is not None:
            return check_layers(pack)
    return pytest.fail(f"no kernel for these targets in 100 draws of seed {seed}")


@pytest.mark.nightly
@pytest.mark.parametrize("network", NETWORKS)
def test_many_sampled_kernels_on_every_layer(network):
    for seed in range(100, 140):
        check_drawn(targets(network, shrink=16), seed)


@pytest.mark.nightly
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("network", NETWORKS)
def test_full_sizes(network):
    for kernel in ("involution", "depthwise_separable", "squeeze_excite", "figure8_shift"):
        text = (ROOT / f"examples/kernels/{kernel}.kernel").read_text()
        check_layers(solve(text, targets(network), 8))
    for seed in range(200, 204):
        check_drawn(targets(network), seed)
