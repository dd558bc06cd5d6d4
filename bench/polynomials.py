"""The coefficients of src/emit/vector_math.c: minimax polynomials by linear programming.

    python bench/polynomials.py          needs mpmath and scipy

Each row fits p so that the relative error of the whole function, in which p is one term, is as
small as it can be on the interval; then coefficients are rounded to fp32 one by one, the others
fitted again after each.  Printed: the error that is left and the coefficients, lowest power first,
as C writes them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import mpmath as mp
import numpy as np
from scipy.optimize import linprog

POINTS = 400
Function = Callable[[Any], Any]


@dataclass(frozen=True)
class Term:
    """`p` approximates on [low, high]; `share` is d(function)/function per unit of p."""

    name: str
    p: Function
    share: Function
    low: Any
    high: Any
    degree: int


def root(f: Function) -> Function:
    """f(sqrt(s)); at 0 what it is nearby."""
    return lambda s: f(mp.sqrt(max(s, mp.mpf("1e-14"))))


HALF_LOG_2 = mp.mpf("0.34692")
TERMS = (
    Term(
        "exp(r) = 1 + r + r^2 p(r)",
        lambda r: (mp.expm1(r) - r) / r**2,
        lambda r: r**2 / mp.exp(r),
        -HALF_LOG_2,
        HALF_LOG_2,
        4,
    ),
    Term(
        "expm1(r) = r + r^2 p(r)",
        lambda r: (mp.expm1(r) - r) / r**2,
        lambda r: r**2 / mp.expm1(r),
        -HALF_LOG_2,
        HALF_LOG_2,
        5,
    ),
    Term(
        "log(1 + f) = f - f^2/2 + f^3 p(f)",
        lambda f: (mp.log1p(f) - f + f * f / 2) / f**3,
        lambda f: f**3 / mp.log1p(f),
        mp.sqrt(mp.mpf("0.5")) - 1,
        mp.sqrt(2) - 1,
        8,
    ),
    Term(
        "tanh(x) = x + x^3 p(x^2)",
        root(lambda x: (mp.tanh(x) - x) / x**3),
        root(lambda x: x**3 / mp.tanh(x)),
        mp.mpf(0),
        mp.mpf("0.625") ** 2,
        5,
    ),
    Term(
        "erf(x) = 1 - (1 - s/4)^4, s = x + x p(x)",
        lambda x: 4 * (1 - mp.erfc(x) ** 0.25) / x - 1,
        lambda x: x * mp.erfc(x) ** 0.75 / mp.erf(x),
        mp.mpf("1e-6"),
        mp.mpf(4),
        10,
    ),
    Term(
        "sin(r) = r + r^3 p(r^2)",
        root(lambda x: (mp.sin(x) - x) / x**3),
        root(lambda x: x**3 / mp.sin(x)),
        mp.mpf(0),
        mp.mpf("0.6175"),
        3,
    ),
    Term(
        "cos(r) = 1 - r^2/2 + r^4 p(r^2)",
        root(lambda x: (mp.cos(x) - 1 + x * x / 2) / x**4),
        root(lambda x: x**4 / mp.cos(x)),
        mp.mpf(0),
        mp.mpf("0.6175"),
        2,
    ),
)


def fit(term: Term, points: Sequence[Any], known: dict[int, float]) -> dict[int, float]:
    """The coefficients that are not known yet, so that the largest error is least."""
    powers = [power for power in range(term.degree + 1) if power not in known]
    shares = [term.share(x) for x in points]
    wanted = np.array(
        [
            float(w * (term.p(x) - sum(c * x**k for k, c in known.items())))
            for x, w in zip(points, shares)
        ]
    )
    table = np.array([[float(w * x**k) for k in powers] for x, w in zip(points, shares)])
    sizes = np.abs(table).max(0)
    scale = np.abs(wanted).max()
    side = np.ones((len(points), 1))
    rows = np.block([[table / sizes / scale, -side], [-table / sizes / scale, -side]])
    least = linprog(
        [0.0] * len(powers) + [1.0],
        A_ub=rows,
        b_ub=np.concatenate([wanted, -wanted]) / scale,
        bounds=[(None, None)] * len(powers) + [(0, None)],
        method="highs",
        options={"dual_feasibility_tolerance": 1e-10, "primal_feasibility_tolerance": 1e-10},
    )
    return {power: value / size for power, value, size in zip(powers, least.x, sizes)}


def coefficients(term: Term) -> tuple[list[float], float]:
    """fp32 coefficients, lowest power first, and the largest error left."""
    middle, half = (term.low + term.high) / 2, (term.high - term.low) / 2
    points = [middle + half * mp.cos(mp.pi * (2 * i + 1) / (2 * POINTS)) for i in range(POINTS)]
    known: dict[int, float] = {}
    for power in range(term.degree + 1):
        known[power] = float(np.float32(fit(term, points, known)[power]))
    error = max(
        abs(term.share(x) * (sum(c * x**k for k, c in known.items()) - term.p(x))) for x in points
    )
    return [known[power] for power in range(term.degree + 1)], float(error)


def main() -> None:
    mp.mp.dps = 40
    for term in TERMS:
        found, error = coefficients(term)
        print(f"{term.name}: 2^{np.log2(error):.1f}")
        print("   ", " ".join(value.hex() for value in found))


if __name__ == "__main__":
    main()
