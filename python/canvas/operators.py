"""The operator library: tensor programs by name (docs/operators.md)."""

from __future__ import annotations

from collections.abc import Sequence

from . import _core
from .arguments import TEXT, checked, shown
from .errors import CanvasError


@checked(name=TEXT)
def operator_program(name: str, **arguments: int | float | str | Sequence[int]) -> str:
    """The text of an operator's program; inputs are the data X, then weights and bias, the
    first output is Y.

        canvas.operator_program("conv2d_nchw", in_channels=64, height=56, width=56,
                                out_channels=64, kernel=(3, 1), padding=(1, 0), bias=True)

    Raises CanvasError for an unknown name, and for arguments that are unknown, missing or do not
    fit each other.
    """
    words = [f"{key}={_value(key, value)}" for key, value in arguments.items()]
    return _core.operator_program(name, " ".join(words))


def _value(name: str, value: int | float | str | Sequence[int]) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, int):
        return str(int(value))  # True is 1
    if isinstance(value, float):
        return repr(value)
    if not isinstance(value, (list, tuple)) or not all(isinstance(n, int) for n in value):
        raise CanvasError(f"{name} is a number, a text or several numbers, not {shown(value)}")
    return "x".join(str(number) for number in value)
