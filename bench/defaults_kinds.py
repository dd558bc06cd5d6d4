"""The programs of `./dev bench defaults` and `./dev bench versions`, by kind."""

from __future__ import annotations

from collections.abc import Iterator

from defaults_cases import example_kernels, operators
from defaults_images import many_images
from defaults_long import long_sums
from defaults_odd import odd_programs
from defaults_windows import windows

KINDS = {
    "operators": operators,
    "kernels": example_kernels,
    "odd": odd_programs,
    "long": long_sums,
    "images": many_images,
    "windows": windows,
}


def programs(only: str | None) -> Iterator[tuple[str, str]]:
    """(name, text) of all, or of one kind."""
    for kind, cases in KINDS.items():
        if only in (None, kind):
            yield from ((case.name, case.program) for case in cases())
