"""Small networks of random layers, shapes and branches, the same for the same seed."""

import random
from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

Layer = Callable[[random.Random, int, int], nn.Module]  # channels, size -> a module


class Function(nn.Module):
    def __init__(self, function: Callable[[Tensor], Tensor]) -> None:
        super().__init__()
        self.function = function

    def forward(self, x: Tensor) -> Tensor:
        return self.function(x)


class Branches(nn.Module):
    """Several ways from one image, added, multiplied or side by side."""

    def __init__(self, ways: list[nn.Module], how: str) -> None:
        super().__init__()
        self.ways, self.how = nn.ModuleList(ways), how

    def forward(self, x: Tensor) -> Tensor:
        found = [way(x) for way in self.ways]
        if self.how == "cat":
            return torch.cat(found, 1)
        if self.how == "gate":
            return found[0] * torch.sigmoid(found[1])
        return sum(found[1:], found[0])


class Attention(nn.Module):
    def __init__(self, channels: int, heads: int) -> None:
        super().__init__()
        self.heads, self.mix = heads, nn.Linear(channels, 3 * channels)

    def forward(self, x: Tensor) -> Tensor:
        n, c, h, w = x.shape
        tokens = self.mix(x.flatten(2).transpose(1, 2))
        q, k, v = tokens.reshape(n, h * w, 3, self.heads, c // self.heads).permute(2, 0, 3, 1, 4)
        y = F.scaled_dot_product_attention(q, k, v)
        return y.transpose(1, 2).reshape(n, h * w, c).transpose(1, 2).reshape(n, c, h, w)


class Tokens(nn.Module):
    """Over the channels of each place."""

    def __init__(self, inner: nn.Module) -> None:
        super().__init__()
        self.inner = inner

    def forward(self, x: Tensor) -> Tensor:
        return self.inner(x.permute(0, 2, 3, 1)).permute(0, 3, 1, 2)


def divisor(r: random.Random, number: int) -> int:
    return r.choice([d for d in range(1, number + 1) if number % d == 0])


def convolution(r: random.Random, c: int, size: int) -> nn.Module:
    groups = divisor(r, c)
    k = r.choice([1, 2, 3])
    out = groups * r.randint(1, max(1, 8 // groups))
    step = r.choice([1, 2]) if k > 1 else 1
    pad = r.randint(0, step * (k - 1))
    bias, stride = r.random() < 0.5, r.choice([1, 1, 2])
    if size + 2 * pad < step * (k - 1) + 1:
        pad = step * (k - 1)
    return nn.Conv2d(c, out, k, stride, pad, step, groups, bias)


def transposed(r: random.Random, c: int, size: int) -> nn.Module:
    stride, k, groups = r.choice([1, 2, 3]), r.choice([2, 3]), divisor(r, c)
    extra = r.randint(0, stride - 1)
    return nn.ConvTranspose2d(
        c, groups * r.randint(1, 2), k, stride, r.randint(0, 1), extra, groups
    )


def pool(r: random.Random, c: int, size: int) -> nn.Module:
    k = r.choice([2, 3])
    row = {"kernel_size": k, "stride": r.choice([1, 2, 3]), "padding": r.randint(0, k // 2)}
    row["ceil_mode"] = r.random() < 0.5
    if r.random() < 0.5:
        return nn.MaxPool2d(**row)
    return nn.AvgPool2d(**row, count_include_pad=r.random() < 0.5)


def adaptive(r: random.Random, c: int, size: int) -> nn.Module:
    kind = r.choice([nn.AdaptiveAvgPool2d, nn.AdaptiveMaxPool2d])
    return kind((r.randint(1, 4), r.randint(1, 4)))


def norm(r: random.Random, c: int, size: int) -> nn.Module:
    made: Any = r.choice(
        [nn.BatchNorm2d(c), nn.GroupNorm(divisor(r, c), c), nn.InstanceNorm2d(c, affine=True)]
    )
    if isinstance(made, nn.BatchNorm2d):
        made.running_mean.normal_()
        made.running_var.uniform_(0.5, 2)
    for weight in made.parameters():
        nn.init.normal_(weight)
    return made if size > 1 else nn.BatchNorm2d(c)


def activation(r: random.Random, c: int, size: int) -> nn.Module:
    kinds = [nn.ReLU, nn.ReLU6, nn.LeakyReLU, nn.ELU, nn.GELU, nn.SiLU, nn.Sigmoid, nn.Hardswish]
    kinds += [nn.Hardsigmoid, nn.Tanh, nn.Softplus, nn.Mish, lambda: nn.PReLU(c)]
    return r.choice([*kinds, lambda: nn.Softmax(1), lambda: nn.GELU("tanh")])()


def movement(r: random.Random, c: int, size: int) -> nn.Module:
    pads = [r.randint(0, 2) for _ in range(4)]
    inside = [min(pad, size - 1) for pad in pads]
    groups = divisor(r, c)
    functions: list[Callable[[Tensor], Tensor]] = [
        lambda x: F.pad(x, pads, value=0.5),
        lambda x: F.pad(x, inside, mode="reflect"),
        lambda x: F.pad(x, pads, mode="replicate"),
        lambda x: x.flip(2),
        lambda x: x.roll((1, 2), (2, 3)),
        lambda x: x[:, :, : max(1, size - 1)],
        lambda x: torch.cat(x.chunk(2, 1)[::-1], 1),
        lambda x: F.channel_shuffle(x, groups),
        lambda x: F.interpolate(x, scale_factor=2.0),
        lambda x: F.interpolate(x, size=(5, 3), mode="bilinear"),
        lambda x: F.interpolate(x, size=(4, 6), mode="bilinear", align_corners=True),
        lambda x: x.transpose(2, 3).contiguous(),
        lambda x: x.repeat(1, 2, 1, 1),
    ]
    return Function(r.choice(functions))


def arithmetic(r: random.Random, c: int, size: int) -> nn.Module:
    functions: list[Callable[[Tensor], Tensor]] = [
        lambda x: x * 0.5 + 1,
        lambda x: x / (1 + x.abs()),
        lambda x: x * torch.sigmoid(x.mean((2, 3), keepdim=True)),
        lambda x: x - x.amax(1, keepdim=True),
        lambda x: x * torch.rsqrt(x.var((1, 2, 3), keepdim=True) + 1),
        lambda x: torch.maximum(x, -x * 0.2).clamp(-3, 3),
        lambda x: torch.where(x > 0.1, x, x * x),
    ]
    return Function(r.choice(functions))


def per_place(r: random.Random, c: int, size: int) -> nn.Module:
    if size > 6 or r.random() < 0.5:
        return Tokens(nn.Sequential(nn.LayerNorm(c), nn.Linear(c, r.randint(1, 6))))
    return Attention(c, divisor(r, c))


LAYERS: list[Layer] = [convolution] * 5 + [transposed, pool, adaptive, norm, norm, activation]
LAYERS += [activation, movement, arithmetic, per_place]


def chain(r: random.Random, x: Tensor, depth: int) -> tuple[nn.Module, Tensor]:
    """Layers that run on x; those that do not, and those that grow too large, are left out."""
    layers: list[nn.Module] = []
    while len(layers) < depth:
        c, size = x.shape[1], min(x.shape[2:])
        made = branches(r, x) if r.random() < 0.2 else r.choice(LAYERS)(r, c, size)
        try:
            y = made.eval()(x)
        except (RuntimeError, ValueError):
            continue
        if 0 < y.numel() <= 4000 and bool(y.isfinite().all()):
            layers.append(made)
            x = y
    return nn.Sequential(*layers), x


def branches(r: random.Random, x: Tensor) -> nn.Module:
    ways = [chain(r, x, r.randint(1, 2)) for _ in range(2)]
    shapes = {tuple(y.shape) for _, y in ways}
    modules = [way for way, _ in ways]
    if len(shapes) == 1:
        return Branches(modules, r.choice(["add", "gate", "cat"]))
    if len({(s[0], *s[2:]) for s in shapes}) == 1:
        return Branches(modules, "cat")
    return Branches([nn.Identity(), nn.Conv2d(x.shape[1], x.shape[1], 3, padding=1)], "add")


def draw(seed: int) -> tuple[nn.Module, Tensor]:
    r = random.Random(seed)
    with torch.random.fork_rng(), torch.no_grad():
        torch.manual_seed(seed)
        x = torch.randn(r.randint(1, 2), r.randint(1, 6), r.randint(3, 8), r.randint(3, 8))
        body, y = chain(r, x, r.randint(2, 6))
        if r.random() < 0.5:
            body = nn.Sequential(body, nn.Flatten(), nn.Linear(y[0].numel(), r.randint(1, 5)))
        return body.eval(), x
