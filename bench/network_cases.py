"""The networks of `./dev bench network`: fixed seeds, statistics as after training."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor, nn

import canvas
import canvas.models
from canvas import _core

ROOT = Path(__file__).resolve().parent.parent
FIGURE6 = ROOT / "examples/kernels/figure6.kernel"
SHARE = 0.5  # of the MACs of the layers that a find replaces in networks it was not found in


@dataclass(frozen=True)
class Network:
    name: str
    make: Callable[[], nn.Module]
    size: int  # of its square images
    channels: int = 3
    dense: bool = True  # it has dense convolutions with a window beside its first layer


@dataclass(frozen=True)
class Case:
    """A network, perhaps with a kernel in the place of its convolutions, at one batch size."""

    network: Network
    kernel: str  # "unchanged", "figure6" or "find"
    batch: int

    @property
    def name(self) -> str:
        changed = "" if self.kernel == "unchanged" else f" {self.kernel}"
        return f"{self.network.name}{changed} b{self.batch}"

    def images(self) -> Tensor:
        n = self.network
        return torch.randn(
            self.batch, n.channels, n.size, n.size, generator=torch.Generator().manual_seed(1)
        )

    def model(self, find: str | None) -> nn.Module:
        """`find`: the text of the kernel or pack of the cases "find"."""
        torch.manual_seed(0)
        model = self.network.make()
        if self.kernel != "unchanged":
            text = FIGURE6.read_text() if self.kernel == "figure6" else find
            assert text
            model = replaced(model, self.images()[:1], text)
        return trained(model).eval()


def solved(pack: str, targets: str, groups: int) -> str:
    """The kernel of a pack with sizes for other layers, at the share of MACs of its search."""
    kernel = re.sub(r"^(bind|norm) .*\n", "", pack, flags=re.M)
    norm = "batch" if re.search(r"^norm batch", pack, re.M) else "none"
    options = f"norm={norm}" + (f",G={groups}" if groups > 1 else "")
    return _core.solve(kernel, targets, f"macs={SHARE}x,params=none", options)


def replaced(model: nn.Module, image: Tensor, text: str) -> nn.Module:
    """With the kernel instead of every dense convolution with a window whose channels its groups
    divide; a pack that was found in another network is solved for this one.
    """
    found = re.search(r"^bind .* G=(\d+)", text, re.M)
    groups = int(found[1]) if found else 1

    def dense(layer: nn.Module, path: str) -> bool:
        assert isinstance(layer, nn.Conv2d)
        divide = layer.in_channels % groups == 0 and layer.out_channels % groups == 0
        return layer.groups == 1 and divide

    conversion = canvas.convert(model.eval(), image, filter_fn=dense)
    if not re.search(r"^bind ", text, re.M):
        text = _core.solve(text, conversion.targets, "macs=none,params=none", "")
    try:
        return canvas.replace(conversion.model, canvas.KernelPack(text))
    except canvas.CanvasError:
        text = solved(text, conversion.targets, groups)
        return canvas.replace(conversion.model, canvas.KernelPack(text))


def trained(model: nn.Module) -> nn.Module:
    """Statistics and weights of normalisations that are neither 0 nor 1."""
    random = torch.Generator().manual_seed(2)
    for layer in model.modules():
        if isinstance(layer, nn.BatchNorm2d):
            assert layer.running_mean is not None and layer.running_var is not None
            layer.running_mean.normal_(0, 0.1, generator=random)
            layer.running_var.uniform_(0.5, 1.5, generator=random)
            nn.init.uniform_(layer.weight, 0.5, 1.5, generator=random)
            nn.init.normal_(layer.bias, 0, 0.1, generator=random)
    return model


# ---- networks that are not built in: torchvision's topologies ----------------------------------


class Inverted(nn.Module):
    """MobileNet-V2's block: expand, depth-wise, project; plus the input where the shapes allow."""

    def __init__(self, cin: int, cout: int, stride: int, expand: int) -> None:
        super().__init__()
        inner = cin * expand
        layers = [] if expand == 1 else conv_norm(cin, inner, 1)
        layers += conv_norm(inner, inner, 3, stride, groups=inner)
        layers += [nn.Conv2d(inner, cout, 1, bias=False), nn.BatchNorm2d(cout)]
        self.layers = nn.Sequential(*layers)
        self.shortcut = stride == 1 and cin == cout

    def forward(self, x: Tensor) -> Tensor:
        return x + self.layers(x) if self.shortcut else self.layers(x)


def conv_norm(
    cin: int, cout: int, window: int, stride: int = 1, groups: int = 1
) -> list[nn.Module]:
    conv = nn.Conv2d(cin, cout, window, stride, window // 2, groups=groups, bias=False)
    return [conv, nn.BatchNorm2d(cout), nn.ReLU6()]


def mobilenet_v2(classes: int = 1000) -> nn.Module:
    rows = [(1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1)]
    rows += [(6, 160, 3, 2), (6, 320, 1, 1)]  # expansion, channels, blocks, stride
    layers: list[nn.Module] = conv_norm(3, 32, 3, 2)
    cin = 32
    for expand, cout, count, stride in rows:
        for block in range(count):
            layers.append(Inverted(cin, cout, 1 if block else stride, expand))
            cin = cout
    layers += [*conv_norm(cin, 1280, 1), nn.AdaptiveAvgPool2d(1), nn.Flatten()]
    return nn.Sequential(*layers, nn.Dropout(0.2), nn.Linear(1280, classes))


def vgg16(classes: int = 1000) -> nn.Module:
    layers: list[nn.Module] = []
    cin = 3
    for width, count in ((64, 2), (128, 2), (256, 3), (512, 3), (512, 3)):
        for _ in range(count):
            layers += [nn.Conv2d(cin, width, 3, padding=1), nn.ReLU(inplace=True)]
            cin = width
        layers.append(nn.MaxPool2d(2))
    layers += [nn.AdaptiveAvgPool2d(7), nn.Flatten(), nn.Linear(512 * 49, 4096), nn.ReLU(True)]
    layers += [nn.Dropout(), nn.Linear(4096, 4096), nn.ReLU(True), nn.Dropout()]
    return nn.Sequential(*layers, nn.Linear(4096, classes))


def twice(cin: int, cout: int) -> nn.Sequential:
    first = [nn.Conv2d(cin, cout, 3, padding=1, bias=False), nn.BatchNorm2d(cout), nn.ReLU()]
    second = [nn.Conv2d(cout, cout, 3, padding=1, bias=False), nn.BatchNorm2d(cout), nn.ReLU()]
    return nn.Sequential(*first, *second)


class UNet(nn.Module):
    """Four halvings, transposed convolutions on the way up, shortcuts by concatenation."""

    def __init__(self, width: int = 32, classes: int = 2) -> None:
        super().__init__()
        widths = [width << level for level in range(5)]
        self.down = nn.ModuleList(twice(cin, cout) for cin, cout in zip([3, *widths[:-1]], widths))
        self.pool = nn.MaxPool2d(2)
        wide = widths[:0:-1]
        self.up = nn.ModuleList(nn.ConvTranspose2d(c, c // 2, 2, 2) for c in wide)
        self.merge = nn.ModuleList(twice(c, c // 2) for c in wide)
        self.head = nn.Conv2d(width, classes, 1)

    def forward(self, x: Tensor) -> Tensor:
        passed = []
        for level, layer in enumerate(self.down):
            x = layer(self.pool(x) if level else x)
            passed.append(x)
        for up, merge, other in zip(self.up, self.merge, passed[-2::-1]):
            x = merge(torch.cat([other, up(x)], 1))
        return self.head(x)


NETWORKS = (
    Network("ResNet-8@16", lambda: canvas.models.resnet8(channels=1), 16, 1),
    Network("ResNet-18@32", lambda: canvas.models.resnet18(classes=10, image_size=32), 32),
    Network("ResNet-18@224", canvas.models.resnet18, 224),
    Network("MobileNet-V2@224", mobilenet_v2, 224, dense=False),
    Network("VGG-16@224", vgg16, 224),
    Network("U-Net@128", UNet, 128),
)


def cases(find: bool) -> Iterator[Case]:
    kernels = ("unchanged", "figure6", "find") if find else ("unchanged", "figure6")
    for network in NETWORKS:
        for kernel in kernels if network.dense else ("unchanged",):
            for batch in (1, 16):
                yield Case(network, kernel, batch)
