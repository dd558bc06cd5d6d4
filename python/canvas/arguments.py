"""The arguments of public functions: a wrong type is one message, and a misspelt word gets the
nearest one that there is.
"""

from __future__ import annotations

import difflib
import functools
import inspect
import os
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple, TypeVar

from .errors import CanvasError
from .text import printable

Function = TypeVar("Function", bound=Callable[..., Any])


class Kind(NamedTuple):
    """What an argument must be."""

    words: str
    holds: Callable[[Any], bool]


def _is_path(text: str | bytes) -> bool:
    return len(text) > 0 and "\0" not in os.fsdecode(text)


TEXT = Kind("a text", lambda value: isinstance(value, str))
PATH = Kind(
    "a path",
    lambda value: isinstance(value, (str, os.PathLike)) and _is_path(os.fspath(value)),
)
WHOLE = Kind(
    "a whole number", lambda value: isinstance(value, int) and not isinstance(value, bool)
)
SWITCH = Kind("True or False", lambda value: isinstance(value, bool))
TILES = Kind(
    "False, True, 2 or 4",
    lambda value: isinstance(value, bool) or (isinstance(value, int) and value in (2, 4)),
)
FUNCTION = Kind("a function", callable)


def checked(**kinds: Kind) -> Callable[[Function], Function]:
    """A function whose arguments of these names must be of these kinds; one whose default is None
    may be None.  Raises CanvasError with one message.
    """

    def wrap(function: Function) -> Function:
        signature = inspect.signature(function)
        free = {name for name in kinds if signature.parameters[name].default is None}
        takes_any = any(p.kind is p.VAR_KEYWORD for p in signature.parameters.values())

        @functools.wraps(function)
        def call(*given: Any, **named: Any) -> Any:
            for name in named:
                if name not in signature.parameters and not takes_any:
                    raise TypeError(
                        f"{function.__name__}() got an unexpected keyword argument '{name}'"
                        + did_you_mean(name, signature.parameters)
                    )
            values = signature.bind(*given, **named).arguments
            for name, kind in kinds.items():
                if name not in values or (values[name] is None and name in free):
                    continue
                if not kind.holds(values[name]):
                    raise CanvasError(f"{name} is {kind.words}, not {shown(values[name])}")
            return function(*given, **named)

        return call  # type: ignore[return-value]

    return wrap


def shown(value: Any, most: int = 60) -> str:
    """A value of a wrong type for a message: as Python writes it, or what it is."""
    try:
        text = repr(value)
    except Exception:  # the code of a stranger's class
        text = ""
    if text and len(text) <= most and "\n" not in text:
        return printable(text)
    return f"a {type(value).__name__}"


def did_you_mean(word: str, known: Iterable[str], prefix: str = "") -> str:
    """`: did you mean 'budget'?` where one of the known words is near, else nothing."""
    near = difflib.get_close_matches(word, list(known), n=1, cutoff=0.7)
    return f"; did you mean '{prefix}{near[0]}'?" if near else ""
