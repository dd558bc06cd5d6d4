"""The operator library: tensor programs by name (docs/operators.md)."""

from __future__ import annotations

from collections.abc import Sequence

from . import _core


def operator_program(name: str, **arguments: int | str | Sequence[int]) -> str:
    """The text of an operator's program; inputs are the data X, then weights and bias, the
    output is Y.

        canvas.operator_program("conv2d_nchw", in_channels=64, height=56, width=56,
                                out_channels=64, kernel=(3, 1), padding=(1, 0), bias=True)

    Raises CanvasError for an unknown name, and for arguments that are unknown, missing or do not
    fit each other.
    """
    words = [f"{key}={_value(value)}" for key, value in arguments.items()]
    return _core.operator_program(name, " ".join(words))


def _value(value: int | str | Sequence[int]) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, int):
        return str(int(value))  # True is 1
    return "x".join(str(number) for number in value)
