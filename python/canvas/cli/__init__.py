"""The `canvas` command where Python is installed."""

from .entry import SUBCOMMANDS, main

__all__ = ["SUBCOMMANDS", "main"]
