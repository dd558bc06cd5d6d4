"""`python -m canvas` is the `canvas` command."""

import os
import sys

from .workers import signals

for descriptor in (0, 1, 2):  # what is closed would be taken by the next file that is opened
    try:
        os.fstat(descriptor)
    except OSError:
        os.open(os.devnull, os.O_RDWR)
if sys.stderr is None:
    sys.stderr = open(2, "w", closefd=False)  # noqa: SIM115 (until the end)

with signals.loading("canvas"):
    from . import cli


def main() -> int:
    """Run the command line of this process; returns the exit code."""
    code = 130
    try:
        code = cli.main()
        signals.ignore_all()
    except KeyboardInterrupt:  # one that came after the subcommand's end
        signals.ignore_all()
    cli.drop_errors()
    return code


if __name__ == "__main__":
    sys.exit(main())
