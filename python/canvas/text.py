"""Text from elsewhere on a terminal: whatever the terminal would obey is escaped."""

from __future__ import annotations


def printable(text: str) -> str:
    """`text` with everything escaped that would not stand on one line of a terminal."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def printable_lines(text: str) -> str:
    """`text` with everything escaped but its line breaks."""
    return "\n".join(map(printable, text.split("\n")))
