"""The `canvas` command where Python is installed."""

from .entry import SUBCOMMANDS, main, subcommand

__all__ = ["SUBCOMMANDS", "main", "subcommand"]
