"""The `canvas` command where Python is installed."""

from .entry import SUBCOMMANDS, drop_errors, main, subcommand

__all__ = ["SUBCOMMANDS", "drop_errors", "main", "subcommand"]
