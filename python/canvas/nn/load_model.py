"""Load the network of a search: a built-in one, or a callable of the user.

A model is named by a string, since a name can be sent to a child process:

    resnet8, resnet18          built in, with a `width` (channels of the first stage)
    package.module:callable    your function or class; it must return a torch.nn.Module

The callable gets those of these keyword arguments that its signature names (a plain ``**kwargs``
names none but num_classes):

    channels, in_channels, in_chans    channels of the images
    classes, num_classes               number of classes
    image_size, img_size               height (= width) of the images
    width                              only if the user gives one
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import nn

from ..errors import CanvasError, one_line
from ..imports import find_by_name, is_given
from .behaviour import check_answer, check_first_step
from .built_in import BUILT_IN


def confirm_model(stored: str, given: str | None, where: str) -> None:
    """Reject a model that only a file names, since building it would run code that the file
    chooses.  A model that is not built in must also be `given` by the user.
    """
    if given is None and stored not in BUILT_IN:
        raise CanvasError(
            f"{where} names the model '{stored}', which is code: give the same name as the option "
            "model to allow its import"
        )


def load_model(
    name: str,
    *,
    channels: int = 3,
    classes: int = 10,
    image_size: int = 32,
    width: int | None = None,
) -> nn.Module:
    """Build the network `name` for images [channels, image_size, image_size] and `classes`
    classes.

    Raises CanvasError if the name does not exist, its module cannot be imported, or the callable
    fails or does not return a torch.nn.Module.
    """
    build, arguments = model_call(
        name, channels=channels, classes=classes, image_size=image_size, width=width
    )
    return _built(name, build, arguments)


def _built(name: str, build: Callable[..., Any], arguments: Mapping[str, Any]) -> nn.Module:
    try:
        model = build(**arguments)
    except (Exception, SystemExit) as error:
        raise CanvasError(f"model '{name}' cannot be built: {one_line(error)}") from error
    if not isinstance(model, nn.Module):
        raise CanvasError(
            f"model '{name}' returned an object of type {type(model).__name__}, "
            "it must return a torch.nn.Module"
        )
    return model


def load_for(name: str, shape: Sequence[int] | None, width: int | None) -> nn.Module:
    """The network `name` for inputs [N, *shape], of which nothing more is known; raises as
    `load_model` does.
    """
    facts: dict[str, int] = {}
    if shape is not None:
        facts = {"channels": shape[0], "image_size": shape[1]}
    build, arguments = _call(name, facts, width)
    return _built(name, build, arguments)


def model_call(
    name: str, *, channels: int, classes: int, image_size: int, width: int | None
) -> tuple[Callable[..., Any], dict[str, Any]]:
    """The callable of `name`, and the keyword arguments that it gets; no classes: 0."""
    known = {"channels": channels, "classes": classes, "image_size": image_size}
    return _call(name, {word: value for word, value in known.items() if value}, width)


SYNONYMS = {
    "channels": ("channels", "in_channels", "in_chans"),
    "classes": ("classes", "num_classes"),
    "image_size": ("image_size", "img_size"),
}


def _call(
    name: str, known: Mapping[str, int], width: int | None
) -> tuple[Callable[..., Any], dict[str, Any]]:
    """The callable of `name`, and those of the known facts that it takes."""
    build = find_model(name)
    facts: dict[str, Any] = {
        word: value for fact, value in known.items() for word in SYNONYMS[fact]
    }
    if width is not None:
        facts["width"] = width
    accepted = _keyword_names(build)
    if width is not None and "width" not in accepted:
        raise CanvasError(f"model '{name}' takes no width: leave the option width out")
    return build, {key: facts[key] for key in facts if key in accepted}


def check_model(model: nn.Module, name: str, shape: Sequence[int], classes: int) -> None:
    """Raise CanvasError if a network does not map [2, *shape] to [2, classes] in evaluation, or
    fails in the first step of a training.  Its state and training modes are restored.
    """
    modes = [(module, module.training) for module in model.modules()]
    try:
        _check_evaluation(model, name, shape, classes)
        check_first_step(model, name, shape, classes)
    finally:
        for module, training in modes:
            module.training = training


def _check_evaluation(model: nn.Module, name: str, shape: Sequence[int], classes: int) -> None:
    try:
        with torch.no_grad():
            output = model.eval()(torch.zeros(2, *shape))
    except Exception as error:
        size = "x".join(map(str, shape))
        raise CanvasError(
            f"model '{name}' does not take images of {size}: {one_line(error)}"
        ) from error
    check_answer(output, name, classes, 2)


def find_model(name: str) -> Any:
    """The callable that `name` names, imported; raises CanvasError with one message."""
    if name in BUILT_IN:
        return BUILT_IN[name]
    if ":" not in name and not is_given(name):
        known = " and ".join(BUILT_IN)
        raise CanvasError(
            f"no model is called '{name}': there are {known}, "
            "or name your own as package.module:callable"
        )
    target = find_by_name(name, "model")
    if not callable(target):
        raise CanvasError(
            f"model '{name}' is of type {type(target).__name__}, it must be callable"
        )
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
