"""The options that a study stores as JSON: those of a search, or of a fit.

A fit names itself under COMMAND; options without it are those of a search.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from .errors import CanvasError
from .fit_options import FIT_OPTIONS, read_fit_options
from .options import OPTIONS, changed, json_object, read_options

COMMAND = "command"
SEARCH, FIT = "search", "fit"
READERS: dict[str, Callable[[Mapping[str, Any]], dict[str, Any]]] = {
    SEARCH: read_options,
    FIT: read_fit_options,
}
ROWS = {SEARCH: OPTIONS, FIT: FIT_OPTIONS}
# Options younger than some studies, and what these were made with whatever the default is now.
BEFORE = {"space": "paper", "distribution": "rules"}


def command_of(options: Mapping[str, Any]) -> str:
    """The command whose options these are."""
    return str(options.get(COMMAND, SEARCH))


def stored_options(text: str) -> dict[str, Any]:
    """The options that a study stores as JSON; options that it lacks are default, or those of its
    time.

    Raises CanvasError with one message where the text is damaged.
    """
    stored = json_object(text)
    command = command_of(stored)
    if command not in READERS:
        raise CanvasError("its options are of no command that this canvas knows")
    names = {option.name for option in ROWS[command]}
    given = {name: value for name, value in {**BEFORE, **stored}.items() if name in names}
    try:
        values = READERS[command](given)
    except CanvasError as error:
        raise CanvasError(f"its options: {error}") from None
    return values if command == SEARCH else {COMMAND: command, **values}


def other_question(old: Mapping[str, Any], new: Mapping[str, Any]) -> str:
    """The differences of two questions, such as `--epochs 3 instead of 6`, or ""."""
    if command_of(old) != command_of(new):
        return f"a {command_of(new)} instead of a {command_of(old)}"
    return changed(old, new, ROWS[command_of(new)])
