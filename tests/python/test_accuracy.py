"""What rounds badly in float32 when it is written down naively: long sums, means of large numbers,
interpolation between infinities, and the sign of 0.  Compiled networks beside PyTorch."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

import canvas


class Network(nn.Module):
    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__()
        self.function = function

    def forward(self, *inputs: Tensor) -> Any:
        return self.function(*inputs)


def compiled(function: Callable[..., Any], x: Tensor, check: bool = True) -> Any:
    model = function if isinstance(function, nn.Module) else Network(function)
    return canvas.compile(model.eval(), x, check=check)(x)


def relative_error(got: Tensor, exact: Tensor) -> float:
    return float((got.double() - exact).abs().max() / exact.abs().max())


LONG_SUMS: dict[str, tuple[Callable[[Tensor], Tensor], tuple[int, ...]]] = {
    "columns": (lambda x: x.sum(0), (100000, 4)),
    "all": (lambda x: x.mean(), (1, 3, 512, 512)),
    "pixels": (lambda x: x.mean((1, 2)), (1, 300, 300, 16)),
    "the middle": (lambda x: x.sum(1), (2, 50021, 5)),
    "odd rows": (lambda x: F.adaptive_avg_pool2d(x, 1), (2, 8, 301, 299)),
    "squares": (lambda x: (x * x).mean((0, 1)), (300, 300, 3)),
    "all squares": (lambda x: (x * x).mean(), (1, 64, 57, 57)),
    "squares and their mean": (lambda x: (x * x + 0 * x.mean(0)).mean(0), (4099, 33)),
    "many squares": (lambda x: (x * x).sum(0), (786432, 3)),
    "a norm of squares": (lambda x: F.rms_norm(x, [64, 57, 57], eps=1.0), (1, 64, 57, 57)),
}


@pytest.mark.parametrize("name", LONG_SUMS)
def test_long_sums_are_as_exact_as_those_of_pytorch(name: str) -> None:
    function, shape = LONG_SUMS[name]
    x = torch.full(shape, 0.3)  # each addition is rounded the same way
    assert relative_error(compiled(function, x), function(x.double())) < 4e-6


def test_a_long_product_of_matrices() -> None:
    x = torch.full((40000, 3), 0.3)
    exact = x.double().t() @ x.double()
    assert relative_error(compiled(lambda x: x.t() @ x, x), exact) < 1e-5


NORMS: dict[str, Callable[[], nn.Module]] = {
    "layer": lambda: nn.LayerNorm((6, 30)),
    "groups": lambda: nn.GroupNorm(2, 4),
    "one group": lambda: nn.GroupNorm(1, 4),
    "instance": lambda: nn.InstanceNorm2d(4, affine=True),
    "a long layer": lambda: nn.LayerNorm((4, 6, 60)),
}


def shape_of(name: str) -> tuple[int, ...]:
    return (2, 4, 6, 60 if name == "a long layer" else 30)


SPARSE: dict[str, tuple[Callable[[], nn.Module], tuple[int, ...], int]] = {
    "layer": (lambda: nn.LayerNorm((8, 9, 28)), (8, 9, 28), 1),
    "groups": (lambda: nn.GroupNorm(8, 8), (8, 64, 64), 8),
}


@pytest.mark.parametrize("name", SPARSE)
@pytest.mark.parametrize("seed", range(3))
def test_the_mean_of_what_is_mostly_one_number_is_as_exact_as_of_what_is_not(
    name: str, seed: int
) -> None:
    """The first element is none of these: less it, they are a sum that rounds in one direction."""
    torch.manual_seed(seed)
    make, shape, groups = SPARSE[name]
    norm, x = make(), torch.randn(3, *shape) * (torch.rand(shape[1:]) > 0.8)
    x[..., 0, 0] = 1.2
    function = lambda x: norm(x).reshape(3, groups, -1).mean(2)  # noqa: E731 - 0, but for rounding
    got = compiled(function, x, check=False)
    with torch.no_grad():
        norm.double()
        assert float((got.double() - function(x.double())).abs().max()) < 1e-6


def by_batch_norm(weight: Tensor) -> Tensor:
    rows = weight.reshape(1, len(weight), -1)
    filters = F.batch_norm(rows, None, None, training=True, momentum=0.0, eps=1e-6)
    return filters.reshape_as(weight)


def by_var_mean(weight: Tensor) -> Tensor:
    var, mean = torch.var_mean(weight, dim=(1, 2, 3), keepdim=True, correction=0)
    return (weight - mean) / torch.sqrt(var + 1e-6)


def by_mean_and_std(weight: Tensor) -> Tensor:
    less = weight - weight.mean((1, 2, 3), keepdim=True)
    return less / less.std((1, 2, 3), keepdim=True)


class Standardized(nn.Conv2d):
    """Filters less their mean, by their spread, as NFNet, BiT and others have them."""

    def __init__(self, function: Callable[[Tensor], Tensor]) -> None:
        super().__init__(128, 64, 1)
        self.function = function

    def forward(self, x: Tensor) -> Tensor:
        return F.conv2d(x, self.function(self.weight))


@pytest.mark.parametrize("function", [by_batch_norm, by_var_mean, by_mean_and_std])
@pytest.mark.parametrize("seed", range(3))
def test_filters_without_their_mean(seed: int, function: Callable[[Tensor], Tensor]) -> None:
    """What is left of a filter's mean is multiplied by the sum of the inputs."""
    torch.manual_seed(seed)
    layer, x = Standardized(function), torch.rand(1, 128, 8, 8)
    with torch.no_grad():
        layer.weight.normal_()
        got = compiled(layer, x, check=False)
        assert relative_error(got, layer.double()(x.double())) < 1e-6


@pytest.mark.parametrize("name", NORMS)
def test_a_norm_of_what_is_constant_is_its_bias(name: str) -> None:
    norm = NORMS[name]().eval()
    with torch.no_grad():
        norm.get_parameter("bias").uniform_(-1, 1)
        x = torch.full(shape_of(name), 117.3)
        wanted = norm(torch.zeros_like(x))
        assert torch.equal(compiled(norm, x, check=False), wanted)


@pytest.mark.parametrize("name", NORMS)
def test_a_norm_of_what_differs_little(name: str) -> None:
    torch.manual_seed(0)
    norm = NORMS[name]().eval()
    x = torch.randn(shape_of(name)) * 1e-2 + 1000.0
    with torch.no_grad():
        exact = norm.double()(x.double())
        assert relative_error(compiled(norm.float(), x), exact) < 1e-5


@pytest.mark.parametrize("dims", [0, 1, (0, 1)])
@pytest.mark.parametrize("name", ["var", "std"])
def test_the_spread_of_what_differs_little(name: str, dims: Any) -> None:
    torch.manual_seed(0)
    x = torch.randn(40, 70) * 1e-3 + 1000.0

    def spread(x: Tensor) -> Tensor:
        return getattr(x, name)(dims)  # type: ignore[no-any-return]

    assert relative_error(compiled(spread, x), spread(x.double())) < 1e-5


@pytest.mark.parametrize("function", [torch.var_mean, torch.std_mean])
@pytest.mark.parametrize("dims", [1, (0, 1)])
@pytest.mark.parametrize("large", [torch.inf, -torch.inf, torch.nan, 1e30])
def test_a_mean_and_the_spread_of_what_is_not_finite(
    function: Callable[..., Any], dims: Any, large: float
) -> None:
    x = torch.randn(3, 40)
    x[0, 3] = large
    got = compiled(lambda x: function(x, dims), x, check=False)
    wanted = function(x, dims)
    torch.testing.assert_close(got[1], wanted[1], equal_nan=True)
    if large != 1e30:  # its square is beyond float32, see docs/aten.md
        torch.testing.assert_close(got[0], wanted[0], equal_nan=True)


@pytest.mark.parametrize("corners", [False, True])
@pytest.mark.parametrize("values", [(torch.inf, torch.inf), (3e38, -3e38)])
def test_interpolation_between_extremes(values: tuple[float, float], corners: bool) -> None:
    x = torch.randn(1, 2, 5, 5)
    x[0, 1, 2, 1:3] = torch.tensor(values)

    def larger(x: Tensor) -> Tensor:
        return F.interpolate(x, size=(8, 8), mode="bilinear", align_corners=corners)

    torch.testing.assert_close(compiled(larger, x), larger(x), equal_nan=True)


@pytest.mark.parametrize("weight", [0.0, 0.4, 0.5, 1.0, 1.5, -2.0])
@pytest.mark.parametrize("alike", [True, False])
def test_a_weighted_mean_of_what_differs_much(weight: float, alike: bool) -> None:
    """With a weight of 1 it is the second, however large the first one is."""
    ends = torch.tensor([[1e8, 1.0], [1.0, -1e8], [3e38, -3e38], [-2.0, 3e38]])
    w: Any = weight if alike else torch.full((4,), weight)

    def between(x: Tensor) -> Tensor:
        return torch.lerp(x[:, 0], x[:, 1], w)

    got, wanted = compiled(between, ends), between(ends)
    torch.testing.assert_close(got, wanted, rtol=1e-6, atol=0, equal_nan=True)


SIGNS: dict[str, Callable[[Tensor], Tensor]] = {
    "division": lambda x: x / -0.0,
    "product": lambda x: x * -0.0,
    "sum": lambda x: x + -0.0,
    "clamp": lambda x: x.clamp(max=-0.0),
    "choice": lambda x: x.masked_fill(x > 0, -0.0),
    "border": lambda x: F.pad(x, (1, 1), value=-0.0),
    "tensor": lambda x: x * torch.full((5,), -0.0),
}


@pytest.mark.parametrize("name", SIGNS)
def test_a_constant_zero_keeps_its_sign(name: str) -> None:
    x = torch.tensor([1.0, -2.0, 0.0, -0.0, 3.0])
    wanted, got = SIGNS[name](x), compiled(SIGNS[name], x)
    assert torch.equal(got.isnan(), wanted.isnan())
    assert torch.equal(got.signbit()[~got.isnan()], wanted.signbit()[~got.isnan()])


def test_zeros_of_both_signs_are_no_constant() -> None:
    zeros = torch.tensor([0.0, -0.0, 0.0, 0.0])
    x = torch.ones(4)
    model = Network(lambda x: x / model.get_buffer("zeros"))
    model.register_buffer("zeros", zeros)
    assert torch.equal(compiled(model, x), x / zeros)


def test_a_mask_of_infinities_takes_no_longer() -> None:
    """exp of what is 0: denormal numbers on the way take a hundred cycles each."""
    x = torch.randn(256, 1024)
    masked = x.masked_fill(torch.ones(256, 1024, dtype=torch.bool).triu(1), -torch.inf)
    network = canvas.compile(Network(lambda x: x.softmax(-1)).eval(), x)
    taken: dict[str, list[float]] = {"plain": [], "masked": []}
    for _ in range(20):
        for name, given in (("plain", x), ("masked", masked)):
            start = time.thread_time()
            network(given)
            taken[name].append(time.thread_time() - start)
    assert min(taken["masked"]) < 2 * min(taken["plain"])
    torch.testing.assert_close(network(masked), masked.softmax(-1))


NEAR_ZERO: dict[str, Callable[[Tensor], Tensor]] = {
    "log1p": torch.log1p,
    "expm1": torch.expm1,
    "elu": lambda x: F.elu(x, alpha=0.7),
    "elu of negative slope": lambda x: F.elu(x, alpha=-0.7),
    "celu": lambda x: F.celu(x, alpha=0.7),
    "selu": F.selu,
    "softplus": F.softplus,
    "sharp softplus": lambda x: F.softplus(x, beta=4.0),
    "logsigmoid": F.logsigmoid,
    "mish": F.mish,
}
SPECIAL = [0.0, -0.0, torch.inf, -torch.inf, torch.nan, -1.0, -1.0000001, -0.9999999, 88.7, 89.0,
           1e-45, -1e-45, 1e-40, -1e-40, 3.4e38, -3.4e38, -17.4, -104.5, 20.0, 20.1]  # fmt: skip


def test_functions_that_are_small_near_zero() -> None:
    """The error is relative to each result."""
    size = torch.logspace(-38, 1, 4001)
    x = torch.cat([size, -size, torch.tensor(SPECIAL)])
    model = Network(lambda x: [function(x) for function in NEAR_ZERO.values()]).eval()
    with torch.no_grad():
        results = zip(NEAR_ZERO, canvas.compile(model, x)(x), model(x.double()))
    for name, got, exact in results:
        wanted = exact.float()  # with its infinities
        finite = wanted.isfinite()
        assert torch.equal(got[~finite].isnan(), wanted[~finite].isnan()), name
        assert torch.equal(got[wanted.isinf()], wanted[wanted.isinf()]), name
        off = (got - exact)[finite].abs()
        allowed = 2**-21 * exact[finite].abs() + 2**-142
        assert bool((off <= allowed).all()), (name, x[finite][off > allowed])
        assert torch.equal(got.signbit()[finite], wanted.signbit()[finite]), name
