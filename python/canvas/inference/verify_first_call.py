"""Verify the first call of compiled code against PyTorch on the same input.

An output passes if it differs from PyTorch's by at most TOLERANCE times the largest element.
Otherwise the network is run in float64 to measure the rounding error of PyTorch's own float32
result.  The bound is then FACTOR times that error.  With Winograd convolutions in tiles of 4 it is
FACTOR_IN_TILES times, as their errors are 7 times those of direct sums (docs/reports/winograd.md).
NaN and infinite values must match exactly; integer and boolean outputs must be equal.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from ..errors import CanvasError

TOLERANCE = 1e-5
FACTOR = 16.0
FACTOR_IN_TILES = 8 * FACTOR

Reference = Callable[[], "Sequence[Any] | None"]


def verify_outputs(
    names: Sequence[str],
    got: Sequence[Any],
    wanted: Sequence[Any],
    reference: Reference,
    factor: float = FACTOR,
) -> None:
    """Raise CanvasError if an output differs by more than its bound.

    `reference` returns the outputs in float64, or None if the model does not run in it.
    """
    doubtful = [i for i in range(len(names)) if _excess(got[i], wanted[i]) > 1]
    if not doubtful:
        return
    exact = reference()
    for i in doubtful:
        bound = _bound(wanted[i], None if exact is None else exact[i], factor)
        truth = wanted[i] if exact is None or not _comparable(exact[i], got[i]) else exact[i]
        off = _largest(got[i], truth) if _dtype(got[i]) == _dtype(wanted[i]) else float("inf")
        if not off <= bound:
            raise CanvasError(
                f"output '{names[i]}' differs from PyTorch's by {off:.3g}, more than the bound "
                f"{bound:.3g}: the compiled code is not used"
            )


def _dtype(value: Any) -> Any:
    return value.dtype if isinstance(value, Tensor) else None


def _excess(got: Any, wanted: Any) -> float:
    if _dtype(got) != _dtype(wanted):
        return float("inf")
    off = _largest(got, wanted)
    bound = _bound(wanted, None, FACTOR)
    return off / bound if bound else (0.0 if off == 0 else float("inf"))


def _bound(wanted: Any, exact: Any, factor: float) -> float:
    rounds = isinstance(wanted, Tensor) and (wanted.is_floating_point() or wanted.is_complex())
    if not rounds or not wanted.numel():
        return 0.0
    finite = wanted.detach()[wanted.isfinite()]
    bound = TOLERANCE * float(finite.abs().max()) if finite.numel() else 0.0
    if not _comparable(exact, wanted):
        return bound
    theirs = _largest(wanted, exact)
    return max(bound, factor * theirs) if theirs < float("inf") else bound


def _comparable(exact: Any, other: Any) -> bool:
    return isinstance(exact, Tensor) and isinstance(other, Tensor) and exact.shape == other.shape


def _largest(got: Any, wanted: Any) -> float:
    """The largest absolute difference; infinite where NaNs, shapes or types do not match."""
    if not isinstance(wanted, Tensor):
        return 0.0 if type(got) is type(wanted) and got == wanted else float("inf")
    if not isinstance(got, Tensor) or got.shape != wanted.shape:
        return float("inf")
    if not wanted.numel():
        return 0.0
    if wanted.is_complex():
        got, wanted = (torch.view_as_real(value.resolve_conj()) for value in (got, wanted))
    a, b = got.detach().double(), wanted.detach().double()
    same = (a == b) | (a.isnan() & b.isnan())
    off = (a - b).abs().masked_fill(same, 0.0)
    return float(off.nan_to_num(nan=float("inf"), posinf=float("inf")).max())
