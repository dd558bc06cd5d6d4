"""What a shell offers when the user presses TAB in a subcommand written in Python;
cli/cmd_completion.c holds the scripts and completes every other subcommand.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterator


def ways_to_end(parser: argparse.ArgumentParser, words: list[str]) -> Iterator[str]:
    """A line `WORD\\tHELP` for each way to end the last word; none where a file may stand.

    `words`: those after the subcommand, the last one as far as it is typed.
    """
    *before, typed = words
    value_of = _flags(parser).get(before[-1]) if before else None
    if value_of is not None and value_of.nargs != 0:
        offers = dict.fromkeys(_choices(value_of), "")
    elif typed.startswith("-"):
        offers = {flag: _help(action) for flag, action in _flags(parser).items()}
    else:
        offers = {}
    for word, help in offers.items():
        if word.startswith(typed):
            yield f"{word}\t{help}" if help else word


def _flags(parser: argparse.ArgumentParser) -> dict[str, argparse.Action]:
    return {flag: action for action in parser._actions for flag in action.option_strings}


def _choices(action: argparse.Action) -> list[str]:
    """Of choices, and of a metavar such as yes|no."""
    metavar = str(action.metavar)
    words = metavar.split("|") if re.fullmatch(r"[a-z0-9-]+(\|[a-z0-9-]+)+", metavar) else []
    return [str(choice) for choice in action.choices or words]


def _help(action: argparse.Action) -> str:
    return " ".join(((action.help or "") % vars(action)).split())
