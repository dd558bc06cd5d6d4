"""What a user names or gives: a model, a task, data.

package.module:name    imported by whoever needs it, also in another process
@name                  an object that the caller gave, known to this process alone
"""

from __future__ import annotations

import importlib
import sys
from typing import Any

from .errors import CanvasError, one_line

_given: dict[str, Any] = {}  # by name


def give(value: Any, label: str) -> str:
    """The name by which this process finds an object that cannot be imported, @LABEL#NUMBER; each
    object has a number of its own.
    """
    name = "@" + "".join(c if c.isalnum() or c in "_-." else "-" for c in label)[:40]
    name += f"#{len(_given) + 1}"
    _given[name] = value
    return name


def stored_name(name: str) -> str:
    """A name as a study keeps it: of a given object without the number, which is another one in
    another run.
    """
    return name.partition("#")[0] if is_given(name) else name


def is_given(name: str) -> bool:
    """Whether a name stands for an object that a caller gave."""
    return name.startswith("@")


def name_of(value: Any) -> str | None:
    """package.module:name of a function, class or other object that can be imported by that; None
    where there is none, as in a notebook.
    """
    module, path = getattr(value, "__module__", None), getattr(value, "__qualname__", None)
    if not isinstance(module, str) or not isinstance(path, str) or module == "__main__":
        return None
    found: Any = sys.modules.get(module)
    for part in path.split("."):
        found = getattr(found, part, None)
    return f"{module}:{path}" if found is value else None


def find_by_name(name: str, what: str) -> Any:
    """The object that `name` names, its module imported; `what` it is stands in messages.

    Raises CanvasError with one message where the name has another form, or nothing is there.
    """
    if is_given(name):
        if name not in _given:
            raise CanvasError(
                f"{what} '{name}' was an object that a caller gave: give it again, in Python"
            )
        return _given[name]
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
