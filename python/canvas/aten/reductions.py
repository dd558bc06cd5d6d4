"""Sums, means and extremes over axes, and softmax."""

from __future__ import annotations

from functools import partial
from math import prod
from typing import Any

from .norms import is_long, less_mean
from .operator_table import add, operator
from .values import Unsupported, Value, axes, number, place, places
from .writer import Writer, stage

LEAST = "-3.4028234663852886e+38"  # of float32: masks of it hide nothing where all are that


class Reduced:
    """Axes of a tensor of which some are reduced: names and shape of the result."""

    def __init__(self, x: Value, dims: Any, keep: bool) -> None:
        self.names = axes(x.rank)
        self.gone = places(dims, x.rank)
        rows = list(enumerate(zip(self.names, x.shape)))
        self.over = [row for at, row in rows if at in self.gone]
        kept = [row for at, row in rows if at not in self.gone]
        whole = [(f"{row[0]}1", 1) if at in self.gone else row for at, row in rows]
        self.inner = [name for name, _ in kept]  # of stages within
        self.inner_shape = tuple(size for _, size in kept)
        self.out = [name for name, _ in (whole if keep else kept)]
        self.shape = tuple(size for _, size in (whole if keep else kept))
        self.count = prod(size for _, size in self.over)
        self.load = f"X[{', '.join(self.names)}]"

    def load_at(self, indices: list[str]) -> str:
        """The load of an element at these places of the reduced axes."""
        at = list(self.names)
        for axis, index in zip(self.gone, indices):
            at[axis] = index
        return f"X[{', '.join(at)}]"


def reduce(
    w: Writer, x: Any, dims: Any = None, keep: bool = False, *, kind: str, by: str
) -> Value:
    """`any` and `all` ask of each number whether it is 0."""
    x = w.value(x)
    r = Reduced(x, dims, keep)
    asks = kind in ("any", "all")
    load = f"if {r.load} != 0 then 1 else 0" if asks and not x.boolean else r.load
    made = w.call(kind, [("X", x)], [stage("Y", r.out, r.shape, load, by, r.over)], r.shape)
    boolean = asks or (x.boolean and by in ("max", "min"))
    return Value(made.name, made.shape, made.constant, boolean=boolean)


def mean(w: Writer, x: Any, dims: Any = None, keep: bool = False, *_dtype: Any) -> Value:
    """Of weights with what is left of it, as norms.py has theirs."""
    x = w.value(x)
    if not x.constant:
        return reduce(w, x, dims, keep, kind="mean", by="mean")
    r = Reduced(x, dims, keep)
    m, d = (f"{name}[{', '.join(r.inner)}]" for name in "MD")
    lines = [
        stage("M", r.inner, r.inner_shape, r.load, "mean", r.over),
        stage("D", r.inner, r.inner_shape, f"{r.load} - {m}", "mean", r.over),
        stage("Y", r.out, r.shape, f"if {m} > -inf && {m} < inf then {m} + {d} else {m}"),
    ]
    return w.call("mean", [("X", x)], lines, r.shape)


def _typed(
    w: Writer, x: Any, dims: Any = None, keep: bool = False, *_dtype: Any, by: str
) -> Value:
    return reduce(w, x, dims, keep, kind=by, by=by)


def _whole(w: Writer, x: Any, *_dtype: Any, by: str) -> Value:
    return reduce(w, x, kind=by, by=by)


def _mean_of_all(w: Writer, x: Any, *_dtype: Any) -> Value:
    return mean(w, x)


def _values(w: Writer, x: Any, dim: Any, keep: bool, *, by: str) -> list[Any]:
    return [reduce(w, x, [dim], keep, kind=by, by=by), None]


add("reduction", "sum.dim_IntList", partial(_typed, by="sum"))
add("reduction", "sum", partial(_whole, by="sum"))
add("reduction", "mean.dim", mean)
add("reduction", "mean", _mean_of_all)
for _by in ("max", "min"):
    add("reduction", f"a{_by}", partial(_typed, by=_by))
    add("reduction", _by, partial(_whole, by=_by))
    add("reduction", f"{_by}.dim", partial(_values, by=_by))
add("reduction", "any.dim any.dims", partial(reduce, kind="any", by="max"))
add("reduction", "any", partial(reduce, kind="any", by="max"))
add("reduction", "all.dim all.dims", partial(reduce, kind="all", by="min"))


@operator("reduction", "prod.dim_int")
def product(w: Writer, x: Any, dim: int, keep: bool, *_dtype: Any) -> Value:
    return reduce(w, x, [dim], keep, kind="prod", by="prod")


def _moment(w: Writer, x: Any, dims: Any, correction: Any, keep: bool, *, by: str) -> Value:
    """`by`: var or std."""
    x = w.value(x)
    r = Reduced(x, dims, keep)
    less = r.count - (1 if correction is None else correction)
    if less <= 0:
        raise Unsupported("it divides by no degrees of freedom")
    inner = ", ".join(r.inner)
    mean = f"S[{inner}] / {number(less)}"
    lines, mean_of = less_mean(r.inner, r.inner_shape, r.load_at, r.over, is_long(x, r.over))
    left = r.load + mean_of.format(inner)
    lines += [
        stage("S", r.inner, r.inner_shape, f"({left}) * ({left})", "sum", r.over),
        stage("Y", r.out, r.shape, f"sqrt({mean})" if by == "std" else mean),
    ]
    return w.call(by, [("X", x)], lines, r.shape)


def _unbiased(w: Writer, x: Any, dims: Any, unbiased: bool, keep: bool, *, by: str) -> Value:
    return _moment(w, x, dims, int(unbiased), keep, by=by)


def _with_mean(
    w: Writer, x: Any, dims: Any, correction: Any, keep: bool, *, by: str
) -> list[Value]:
    """Of what holds an infinity both are NaN, as PyTorch has them."""
    spread, m = _moment(w, x, dims, correction, keep, by=by), mean(w, x, dims, keep)
    names = axes(m.rank)
    at = ", ".join(names)
    body = f"if M[{at}] > -inf && M[{at}] < inf then M[{at}] else M[{at}] - M[{at}]"
    return [spread, w.call("mean", [("M", m)], [stage("Y", names, m.shape, body)], m.shape)]


for _by in ("var", "std"):
    add("reduction", f"{_by}.correction", partial(_moment, by=_by))
    add("reduction", f"{_by}.dim", partial(_unbiased, by=_by))
    add("reduction", f"{_by}_mean.correction", partial(_with_mean, by=_by))


@operator("reduction", "linalg_vector_norm")
def vector_norm(w: Writer, x: Any, order: Any, dims: Any, keep: bool, *_dtype: Any) -> Value:
    if order not in (1, 2):
        raise Unsupported(f"a norm of order {order} is not known, 1 and 2 are")
    x = w.value(x)
    r = Reduced(x, dims, keep)
    inner = ", ".join(r.inner)
    term = f"abs({r.load})" if order == 1 else f"{r.load} * {r.load}"
    total = f"S[{inner}]" if order == 1 else f"sqrt(S[{inner}])"
    lines = [
        stage("S", r.inner, r.inner_shape, term, "sum", r.over),
        stage("Y", r.out, r.shape, total),
    ]
    return w.call("norm", [("X", x)], lines, r.shape)


def _finite(largest: str) -> str:
    """What exponents are less by: the largest, unless infinite ones would cancel each other."""
    return f"if {largest} < inf && {largest} > -inf then {largest} else 0"


@operator("reduction", "logsumexp")
def logsumexp(w: Writer, x: Any, dims: Any, keep: bool) -> Value:
    x = w.value(x)
    r = Reduced(x, dims, keep)
    inner = ", ".join(r.inner)
    lines = [
        stage("M", r.inner, r.inner_shape, r.load, "max", r.over),
        stage("Z", r.inner, r.inner_shape, _finite(f"M[{inner}]")),
        stage("S", r.inner, r.inner_shape, f"exp({r.load} - Z[{inner}])", "sum", r.over),
        stage("Y", r.out, r.shape, f"Z[{inner}] + log(S[{inner}])"),
    ]
    return w.call("logsumexp", [("X", x)], lines, r.shape)


# ---- softmax ------------------------------------------------------------------------------------


def softmax(w: Writer, x: Any, dim: int, *_rest: Any, safe: bool = False) -> Value:
    """`safe`: 0 where all are -inf, as of a query whose keys are all hidden."""
    x = w.value(x)
    r = Reduced(x, [place(dim, x.rank)], False)
    inner, every = ", ".join(r.inner), ", ".join(r.names)
    least = f"max(M[{inner}], {LEAST})" if safe else f"M[{inner}]"
    total = f"max(S[{inner}], 0.5)" if safe else f"S[{inner}]"  # 1 is one of its terms
    lines = [
        stage("M", r.inner, r.inner_shape, r.load, "max", r.over),
        stage("E", r.names, x.shape, f"exp({r.load} - {least})"),
        stage("S", r.inner, r.inner_shape, f"E[{every}]", "sum", r.over),
        stage("Y", r.names, x.shape, f"E[{every}] / {total}"),
    ]
    return w.call("softmax", [("X", x)], lines, x.shape)


def log_softmax(w: Writer, x: Any, dim: int, *_rest: Any) -> Value:
    x = w.value(x)
    r = Reduced(x, [place(dim, x.rank)], False)
    inner = ", ".join(r.inner)
    lines = [
        stage("M", r.inner, r.inner_shape, r.load, "max", r.over),
        stage("S", r.inner, r.inner_shape, f"exp({r.load} - M[{inner}])", "sum", r.over),
        stage("Y", r.names, x.shape, f"{r.load} - M[{inner}] - log(S[{inner}])"),
    ]
    return w.call("log_softmax", [("X", x)], lines, x.shape)


add("softmax", "_softmax softmax.int", softmax)
add("softmax", "_safe_softmax", partial(softmax, safe=True))
add("softmax", "_log_softmax log_softmax.int", log_softmax)
