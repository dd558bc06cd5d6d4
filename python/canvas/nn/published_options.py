"""The options of the published release, by their names there, as text for the core.

    kernel_sizes=(3, 5), forbidden_filter="softmax, exp"  -->  "windows=3:5 forbid=softmax:exp"

Each is checked here, so that a message names the argument.  docs/kernel.md has their table.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from ..arguments import shown
from ..errors import CanvasError

Reader = Callable[[str, Any], str]


def _words(name: str, value: Any) -> str:
    """Names of primitives, with commas or blanks between."""
    if isinstance(value, (list, tuple)) and all(isinstance(word, str) for word in value):
        value = " ".join(value)
    if not isinstance(value, str):
        raise CanvasError(f"{name} is a text such as 'softmax, exp', not {shown(value)}")
    words = re.split(r"[,\s]+", value.lower().strip(", \t\n"))
    for word in words:
        if word and not re.fullmatch(r"[a-z_][a-z0-9_/]*", word):
            raise CanvasError(f"{name} holds {shown(word)}, which is no name of a primitive")
    return ":".join(re.split("/", word)[0] for word in words)


def _is_whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _numbers(name: str, value: Any) -> list[int]:
    if not isinstance(value, (list, tuple)) or not value or not all(map(_is_whole, value)):
        raise CanvasError(f"{name} is a list of whole numbers such as (3, 5), not {shown(value)}")
    return list(value)


def _windows(name: str, value: Any) -> str:
    for number in _numbers(name, value):
        if number % 2 == 0 or not 3 <= number <= 31:
            raise CanvasError(f"{name} takes odd numbers from 3 to 31, not {number}")
    return ":".join(map(str, value))


def _distances(most: int) -> Reader:
    def read(name: str, value: Any) -> str:
        for number in _numbers(name, value):
            if not 1 <= number <= most:
                raise CanvasError(f"{name} takes numbers from 1 to {most}, not {number}")
        return ":".join(map(str, value))

    return read


def _range(least: int) -> Reader:
    def read(name: str, value: Any) -> str:
        if (
            not isinstance(value, (list, tuple))
            or len(value) != 2
            or not all(map(_is_whole, value))
        ):
            raise CanvasError(f"{name} is a pair of whole numbers, not {shown(value)}")
        if not (least <= value[0] <= value[1] and 1 <= value[1] <= 62):
            raise CanvasError(
                f"{name} takes two numbers from {least} to 62, the smaller one first and not both "
                f"0, not {tuple(value)}"
            )
        return f"{value[0]}..{value[1]}"

    return read


def _share(least: float) -> Reader:
    """A share to thousandths; what is above 0 stays above."""

    def read(name: str, value: Any) -> str:
        good = isinstance(value, (int, float)) and not isinstance(value, bool)
        if not good or not least <= value <= 1:
            above = "above 0 and at most 1" if least else "from 0 to 1"
            raise CanvasError(f"{name} is a number {above}, not {shown(value)}")
        return f"{value:.3f}"

    return read


def _receptive(name: str, value: Any) -> str:
    if not _is_whole(value) or not 1 <= value <= 3969:
        raise CanvasError(f"{name} is a whole number from 1 to 3969, not {shown(value)}")
    return str(value)


def _fixed(name: str, value: Any) -> str:
    if not isinstance(value, bool):
        raise CanvasError(f"{name} is True or False, not {shown(value)}")
    return "allow" if value else "refuse"


# By the release's name: the core's, and what reads a value.
PUBLISHED: dict[str, tuple[str, Reader]] = {
    "allowed_filter": ("allow", _words),
    "forbidden_filter": ("forbid", _words),
    "necessary_filter": ("need", _words),
    "kernel_sizes": ("windows", _windows),
    "dilated_sizes": ("dilations", _distances(15)),
    "shift_sizes": ("shifts", _distances(31)),
    "num_primitive_range": ("primitives", _range(1)),
    "num_max_width_range": ("width", _range(1)),
    "num_weighted_range": ("weighted", _range(0)),
    "max_weighted_ratio": ("weighted_share", _share(0.001)),
    "min_receptive_size": ("receptive", _receptive),
    "force_bmm_possibility": ("with_matmul", _share(0)),
    "ensure_spatial_invariance": ("fixed_hw", _fixed),
}


ARGUMENTS = ("primitives", "groups", "require", "space", "draws")  # that are words of the core

_NAMES = {word: name for name, (word, _) in PUBLISHED.items() if word != "primitives"}
_WORD = re.compile(rf"\b({'|'.join(_NAMES)})=(?=[, ]|$)")


def published_options(given: Mapping[str, Any]) -> str:
    """Those that are given (not None), in the core's words.  Raises CanvasError."""
    texts = []
    for name, value in given.items():
        word, read = PUBLISHED[name]
        if value is not None and (text := read(name, value)):  # a filter may be empty
            texts.append(f"{word}={text}")
    return " ".join(texts)


def by_argument(error: CanvasError, options: str, given: Mapping[str, Any]) -> CanvasError:
    """The core's message about a text of options, with names of arguments for its words."""
    match = re.match(r"line 1, column (\d+): (.*)", str(error), re.DOTALL)
    if not match:
        return CanvasError(_WORD.sub(lambda word: _NAMES[word[1]], str(error)))
    begun = options[: int(match[1])].rpartition(" ")[2].partition("=")[0]
    for name, (word, _) in PUBLISHED.items():
        if word == begun and given.get(name) is not None:
            return CanvasError(f"{name}: {match[2]}")
    return CanvasError(f"{begun}: {match[2]}") if begun in ARGUMENTS else error


def check_running(workers: Any, timeout: Any) -> None:
    """The two options that change no draw."""
    if not _is_whole(workers) or workers < 1:
        raise CanvasError(f"workers is a whole number from 1, not {shown(workers)}")
    number = isinstance(timeout, (int, float)) and not isinstance(timeout, bool)
    if not number or not 0 <= timeout < 1e9:
        raise CanvasError(f"timeout is a number of seconds, 0 for none, not {shown(timeout)}")
