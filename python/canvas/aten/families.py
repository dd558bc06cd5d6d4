"""All rows: a family adds its own when it is imported."""

from . import (  # noqa: F401
    convolutions,
    gathers,
    kernels,
    movement,
    norms,
    pointwise,
    pooling,
    products,
    reductions,
    writes,
)
from .operator_table import ROWS

__all__ = ["ROWS"]
