"""What a user names as package.module:name: a model, a task, data."""

from __future__ import annotations

import importlib
from typing import Any

from .errors import CanvasError, one_line


def find_by_name(name: str, what: str) -> Any:
    """The object that `name` names, its module imported; `what` it is stands in messages.

    Raises CanvasError with one message where the name has another form, or nothing is there.
    """
    module_name, _, attribute = name.partition(":")
    parts = [*module_name.split("."), *attribute.split(".")]
    if not all(part.isidentifier() for part in parts):
        raise CanvasError(f"{what} '{name}' is not of the form package.module:callable")
    try:
        target: Any = importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        if error.name and (module_name == error.name or module_name.startswith(error.name + ".")):
            raise CanvasError(
                f"{what} '{name}': there is no module '{error.name}'; "
                "install it or start in its folder"
            ) from error
        raise CanvasError(
            f"{what} '{name}': its module needs '{error.name}', not installed"
        ) from error
    except (Exception, SystemExit) as error:  # a script reads its own arguments and exits
        raise CanvasError(
            f"{what} '{name}': its module cannot be imported: {one_line(error)}"
        ) from error
    for part in attribute.split("."):
        if not hasattr(target, part):
            raise CanvasError(f"{what} '{name}': module '{module_name}' has no '{attribute}'")
        target = getattr(target, part)
    return target
