"""The networks that a search knows by name; to add one: a function here, and its name in BUILT_IN.

An export cuts what it needs out of this file, so that nothing here needs the rest of Canvas.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from torch import Tensor, nn

SMALL_IMAGE = 64  # up to this size a 3x3 stem without pooling: a 7x7 stride 2 would leave nothing


class BasicBlock(nn.Module):
    """conv-bn-relu-conv-bn plus a shortcut, then relu; the shortcut is a 1x1 convolution where
    the shape changes.
    """

    def __init__(self, cin: int, cout: int, stride: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(cin, cout, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(cout)
        self.conv2 = nn.Conv2d(cout, cout, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(cout)
        self.relu = nn.ReLU(inplace=True)
        self.downsample: nn.Module | None = None
        if stride != 1 or cin != cout:
            self.downsample = nn.Sequential(
                nn.Conv2d(cin, cout, 1, stride, bias=False), nn.BatchNorm2d(cout)
            )

    def forward(self, x: Tensor) -> Tensor:
        shortcut = x if self.downsample is None else self.downsample(x)
        y = self.relu(self.bn1(self.conv1(x)))
        return self.relu(self.bn2(self.conv2(y)) + shortcut)


class ResNet(nn.Module):
    """Stem, stages of basic blocks (each stage doubles the channels, all but the first halve the
    image), mean, linear.

    Input [N, channels, H, W], output [N, classes].  The module names are torchvision's.
    """

    def __init__(
        self, blocks: Sequence[int], channels: int, classes: int, width: int, large_stem: bool
    ) -> None:
        super().__init__()
        if large_stem:
            self.conv1 = nn.Conv2d(channels, width, 7, 2, 3, bias=False)
            self.maxpool: nn.Module = nn.MaxPool2d(3, 2, 1)
        else:
            self.conv1 = nn.Conv2d(channels, width, 3, 1, 1, bias=False)
            self.maxpool = nn.Identity()
        self.bn1 = nn.BatchNorm2d(width)
        self.relu = nn.ReLU(inplace=True)
        self.stages: list[str] = []
        cin = width
        for stage, count in enumerate(blocks):
            cout = width << stage
            layers = []
            for block in range(count):
                layers.append(BasicBlock(cin, cout, 2 if stage > 0 and block == 0 else 1))
                cin = cout
            self.stages.append(f"layer{stage + 1}")
            self.add_module(self.stages[-1], nn.Sequential(*layers))
        self.fc = nn.Linear(cin, classes)

    def forward(self, x: Tensor) -> Tensor:
        x = self.maxpool(self.relu(self.bn1(self.conv1(x))))
        for stage in self.stages:
            x = self.get_submodule(stage)(x)
        return self.fc(x.mean(dim=(2, 3)))


def resnet8(
    channels: int = 3, classes: int = 10, image_size: int = 32, width: int = 16
) -> nn.Module:
    """Three stages of one block with width, 2*width and 4*width channels; always the small
    stem.
    """
    return ResNet((1, 1, 1), channels, classes, width, large_stem=False)


def resnet18(
    channels: int = 3, classes: int = 1000, image_size: int = 224, width: int = 64
) -> nn.Module:
    """torchvision's resnet18 topology; the 7x7 stem and its pooling only for images larger than
    64.
    """
    return ResNet((2, 2, 2, 2), channels, classes, width, large_stem=image_size > SMALL_IMAGE)


BUILT_IN: dict[str, Callable[..., nn.Module]] = {"resnet8": resnet8, "resnet18": resnet18}
