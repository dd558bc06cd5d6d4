"""Text from elsewhere: what a terminal would obey, or a spreadsheet would compute, is escaped."""

from __future__ import annotations

import re
from typing import Any

NUMBER = re.compile(r"[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?", re.ASCII)
FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n", "\uff1d", "\uff0b", "\uff0d", "\uff20")


def printable(text: str) -> str:
    """`text` with everything escaped that would not stand on one line of a terminal."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def several(count: int | float, thing: str) -> str:
    """1 epoch, 3 epochs."""
    return f"{count:.0f} {thing}{'' if count == 1 else 's'}"


def printable_lines(text: str) -> str:
    """`text` with everything escaped but its line breaks."""
    return "\n".join(map(printable, text.split("\n")))


def csv_cell(value: Any) -> Any:
    """A value as a cell of CSV.  A text on one line; one that a spreadsheet would take for a
    formula begins with an apostrophe.  Numbers stay what they are, as texts too.
    """
    if not isinstance(value, str):
        return value
    text = printable(value)
    formula = value.lstrip(" ").startswith(FORMULA) and len(text) > 1
    return f"'{text}" if formula and not NUMBER.fullmatch(text) else text
