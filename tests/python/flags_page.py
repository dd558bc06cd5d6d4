"""What docs/flags.md says of a subcommand, made from the rows that the subcommand itself parses
with: the text of `canvas help NAME` for subcommands of the core, the parser for those of Python.
"""

from __future__ import annotations

import re
import subprocess
import sys
import textwrap
from pathlib import Path

from canvas import cli

CANVAS = Path(sys.executable).parent / "canvas"

Row = tuple[str, str]  # a flag or an operand as it is written, what it means


def section(subcommand: str) -> str:
    """Markdown: what the subcommand does, its flags, what is worth knowing, an example."""
    about, rows, notes, example = (
        _python(subcommand) if subcommand in cli.SUBCOMMANDS else _core(subcommand)
    )
    table = [f"| `{cell(flag)}` | {cell(help)} |" for flag, help in rows]
    lines = [_fenced(about), ""]
    if table:
        lines += ["| | |", "|---|---|", *table, ""]
    lines += [notes, ""] if notes else []
    return "\n".join([*lines, "```sh", example, "```", ""])


def _fenced(text: str) -> str:
    """Indented lines, which are lists of words and meanings, as text that keeps its columns."""
    return re.sub(
        r"(?m)(?:^ {4}.*\n)+", lambda lines: f"\n```text\n{textwrap.dedent(lines[0])}```\n\n", text
    )


def subcommands() -> list[str]:
    """All subcommands in the order of `canvas help`."""
    return re.findall(r"^  ([a-z]+) ", said("help"), re.M)


def cell(text: str) -> str:
    """Text that may stand in a table."""
    return text.replace("|", "\\|")


def said(*words: str) -> str:
    done = subprocess.run([CANVAS, *words], capture_output=True, text=True, check=True)
    return done.stdout


def _core(subcommand: str) -> tuple[str, list[Row], str, str]:
    usage, _, rest = said("help", subcommand).partition("\n\n")
    text, _, example = rest.partition("\nExample:\n")
    about, _, options = text.partition("\n\n")
    rows = re.findall(r"^  (-\S.*?)  +(\S.*)$", options, re.M)
    return (
        f"`{usage.removeprefix('usage: ')}`\n\n{about.strip()}",
        rows,
        "",
        re.sub(r"^  ", "", example.rstrip(), flags=re.M),
    )


def _python(subcommand: str) -> tuple[str, list[Row], str, str]:
    parser = cli.subcommand(subcommand).parser()
    actions = [action for action in parser._actions if action.dest != "help"]
    rows = []
    operands = ""
    for action in actions:
        value = action.metavar or ("|".join(action.choices) if action.choices else "")
        takes = f" {value}" if value and action.nargs != 0 else ""
        if not action.option_strings:
            operands += takes
        written = ", ".join(action.option_strings) + takes
        rows.append((written.strip(), " ".join((action.help % vars(action)).split())))
    flags = " [FLAGS]" if any(action.option_strings for action in actions) else ""
    notes, _, example = parser.epilog.partition("Example:\n")
    return (
        f"`canvas {subcommand}{operands}{flags}`\n\n{parser.description}",
        rows,
        notes.strip(),
        re.sub(r"^  ", "", example.rstrip(), flags=re.M),
    )
