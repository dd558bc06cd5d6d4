"""The networks that a search can take: two of our own, or any callable of yours.

A model is named by one string, because a name can travel to a child process where code must not:

    resnet8, resnet18          built in, with a `width` (channels of the first stage)
    package.module:callable    your function or class; it must return a torch.nn.Module

A callable of yours is handed those of these facts that its signature names (a plain
``**kwargs`` names none):

    channels, in_channels, in_chans    channels of the images
    classes, num_classes               number of classes
    image_size, img_size               height (= width) of the images
    width                              only when the user asked for one
"""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from .errors import CanvasError, one_line

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


def confirm_model(stored: str, given: str | None, where: str) -> None:
    """Reject a model that only a file names: to build it would run whatever code the file's text
    points to.  Built-in networks are known; another must be `given` by the user, too.
    """
    if given is None and stored not in BUILT_IN:
        raise CanvasError(
            f"{where} names the model '{stored}', which is code: give it with --model, and it is "
            "imported"
        )


def load_model(
    name: str,
    *,
    channels: int = 3,
    classes: int = 10,
    image_size: int = 32,
    width: int | None = None,
) -> nn.Module:
    """Build the network called `name` for images [channels, image_size, image_size] and
    `classes` classes.

    Raises CanvasError with one sentence for a name that does not exist, a module that cannot be
    imported, and a callable that fails or returns something that is no torch.nn.Module.
    """
    build, arguments = model_call(
        name, channels=channels, classes=classes, image_size=image_size, width=width
    )
    try:
        model = build(**arguments)
    except Exception as error:
        raise CanvasError(f"model '{name}' cannot be built: {one_line(error)}") from error
    if not isinstance(model, nn.Module):
        raise CanvasError(
            f"model '{name}' returned a {type(model).__name__}, it must return a torch.nn.Module"
        )
    return model


def model_call(
    name: str, *, channels: int, classes: int, image_size: int, width: int | None
) -> tuple[Callable[..., Any], dict[str, Any]]:
    """The callable behind `name` and those of the facts that it is handed, by keyword."""
    build = _find(name)
    facts: dict[str, Any] = {
        "channels": channels,
        "in_channels": channels,
        "in_chans": channels,
        "classes": classes,
        "num_classes": classes,
        "image_size": image_size,
        "img_size": image_size,
    }
    if width is not None:
        facts["width"] = width
    accepted = _keyword_names(build)
    if width is not None and "width" not in accepted:
        raise CanvasError(f"model '{name}' takes no width: leave --width out")
    return build, {key: facts[key] for key in facts if key in accepted}


def check_model(model: nn.Module, name: str, shape: Sequence[int], classes: int) -> None:
    """Reject a network that does not map [2, *shape] to [2, classes]; the network is left as it
    was.
    """
    training = model.training
    model.eval()
    try:
        with torch.no_grad():
            output = model(torch.zeros(2, *shape))
    except Exception as error:
        size = "x".join(map(str, shape))
        raise CanvasError(
            f"model '{name}' does not take images of {size}: {one_line(error)}"
        ) from error
    finally:
        model.train(training)
    if not isinstance(output, Tensor) or tuple(output.shape) != (2, classes):
        got = list(output.shape) if isinstance(output, Tensor) else type(output).__name__
        raise CanvasError(
            f"model '{name}' must answer [N, {classes}] for N images of this data, not {got} for 2"
        )


def _find(name: str) -> Any:
    if name in BUILT_IN:
        return BUILT_IN[name]
    module_name, colon, attribute = name.partition(":")
    if not colon:
        known = " and ".join(BUILT_IN)
        raise CanvasError(
            f"no model is called '{name}': there are {known}, "
            "or name your own as package.module:callable"
        )
    parts = module_name.split(".")
    if not all(part.isidentifier() for part in parts) or not attribute:
        raise CanvasError(f"model '{name}' is not of the form package.module:callable")
    try:
        target: Any = importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        if error.name and (module_name == error.name or module_name.startswith(error.name + ".")):
            raise CanvasError(
                f"model '{name}': there is no module '{error.name}'; "
                "install it or start in its folder"
            ) from error
        raise CanvasError(
            f"model '{name}': its module needs '{error.name}', not installed"
        ) from error
    except Exception as error:
        raise CanvasError(
            f"model '{name}': its module cannot be imported: {one_line(error)}"
        ) from error
    for part in attribute.split("."):
        if not hasattr(target, part):
            raise CanvasError(f"model '{name}': module '{module_name}' has no '{attribute}'")
        target = getattr(target, part)
    if not callable(target):
        raise CanvasError(f"model '{name}' is a {type(target).__name__}, it must be callable")
    return target


def _keyword_names(build: Callable[..., Any]) -> set[str]:
    """The parameters that may be given by keyword; of ``**kwargs`` nothing is assumed but
    num_classes.
    """
    try:
        parameters = inspect.signature(build).parameters.values()
    except (TypeError, ValueError):
        return set()
    names = {
        parameter.name
        for parameter in parameters
        if parameter.kind in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY)
    }
    if any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters):
        names.add("num_classes")  # torchvision's and timm's builders pass it on
    return names
