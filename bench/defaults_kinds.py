"""The programs of `./dev bench defaults` and `./dev bench versions`, by kind."""

from __future__ import annotations

from defaults_cases import example_kernels, operators
from defaults_long import long_sums
from defaults_odd import odd_programs

KINDS = {
    "operators": operators,
    "kernels": example_kernels,
    "odd": odd_programs,
    "long": long_sums,
}
