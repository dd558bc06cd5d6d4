"""Products of matrices, and attention made of them."""

from __future__ import annotations

import math
from typing import Any

import torch

from .movement import view
from .operator_table import operator
from .pointwise import plus
from .reductions import softmax
from .values import Unsupported, Value, axes, broadcast, number
from .writer import Writer, elements, spot, stage


def product(w: Writer, kind: str, a: Any, b: Any, factor: Any = 1, b_rows: bool = False) -> Value:
    """[..., i, k] times [..., k, j] with the axes before broadcast; `b_rows`: b is [..., j, k]."""
    a, b = w.value(a), w.value(b)
    lead = broadcast(a.shape[:-2], b.shape[:-2])
    rank = len(lead) + 2
    names = [*(f"b{at}" if len(lead) > 1 else "b" for at in range(len(lead))), "i", "j"]
    i, k, j = a.shape[-2], a.shape[-1], b.shape[-2 if b_rows else -1]
    at = [*spot(names, a.shape[:-2], lead), "i", "k"]
    to = [*spot(names, b.shape[:-2], lead), *(("j", "k") if b_rows else ("k", "j"))]
    body = f"A[{', '.join(at)}] * B[{', '.join(to)}]"
    shape = (*lead, i, j)
    other = "j k" if b_rows else "k j"
    given: list[Any] = [("A", a, _own(names, a, "i k")), ("B", b, _own(names, b, other))]
    if factor == 1:
        return w.call(kind, given, [stage("Y", names, shape, body, "sum", [("k", k)])], shape)
    lines = [
        stage("P", names, shape, body, "sum", [("k", k)]),
        stage("Y", names, shape, f"P[{', '.join(names[:rank])}] * {number(factor)}"),
    ]
    return w.call(kind, given, lines, shape)


def _own(names: list[str], x: Value, last: str) -> list[str]:
    lead = names[:-2]
    return [*lead[len(lead) - (x.rank - 2) :], *last.split()]


@operator("product", "mm bmm")
def mm(w: Writer, a: Any, b: Any) -> Value:
    return product(w, "matmul", a, b)


@operator("product", "matmul")
def matmul(w: Writer, a: Any, b: Any) -> Any:
    a, b = w.value(a), w.value(b)
    row, column = a.rank == 1, b.rank == 1
    a = view(w, a, (1, *a.shape)) if row else a
    b = view(w, b, (*b.shape, 1)) if column else b
    made = product(w, "matmul", a, b)
    (*lead, i, j) = made.shape
    return view(w, made, (*lead, *(() if row else (i,)), *(() if column else (j,))))


@operator("product", "mv dot")
def mv(w: Writer, a: Any, b: Any) -> Any:
    return matmul(w, a, b)


@operator("product", "linear")
def linear(w: Writer, x: Any, weight: Any, bias: Any) -> Value:
    x, weight = w.value(x), w.value(weight)
    names = [*axes(x.rank + 1)[: x.rank - 1], "o"]
    names = [f"a{name}" if name in "ok" else name for name in names[:-1]] + ["o"]
    shape = (*x.shape[:-1], weight.shape[0])
    lead = names[:-1]
    body = f"X[{', '.join([*lead, 'k'])}] * W[o, k]"
    over = [("k", weight.shape[1])]
    given: list[Any] = [("X", x, [*lead, "k"]), ("W", weight, ["o", "k"])]
    if bias is None:
        return w.call("linear", given, [stage("Y", names, shape, body, "sum", over)], shape)
    lines = [
        stage("Y_sum", names, shape, body, "sum", over),
        stage("Y", names, shape, f"Y_sum[{', '.join(names)}] + B[o]"),
    ]
    return w.call("linear", [*given, ("B", w.value(bias), ["o"])], lines, shape)


@operator("product", "addmm baddbmm")
def addmm(w: Writer, x: Any, a: Any, b: Any, beta: Any, alpha: Any) -> Value:
    """beta*x + alpha*(a b)"""
    x, a, b = w.value(x), w.value(a), w.value(b)
    lead = a.shape[:-2]
    names = [*("b" for _ in lead), "i", "j"]
    shape = (*lead, a.shape[-2], b.shape[-1])
    front = names[:-2]
    body = f"A[{', '.join([*front, 'i', 'k'])}] * B[{', '.join([*front, 'k', 'j'])}]"
    load = f"C[{', '.join(spot(names, x.shape, shape))}]"
    total = f"Y_sum[{', '.join(names)}]" + ("" if alpha == 1 else f" * {number(alpha)}")
    lines = [
        stage("Y_sum", names, shape, body, "sum", [("k", a.shape[-1])]),
        stage("Y", names, shape, f"{total} + {load if beta == 1 else f'{number(beta)} * {load}'}"),
    ]
    given: list[Any] = [("A", a, [*front, "i", "k"]), ("B", b, [*front, "k", "j"]), ("C", x)]
    return w.call("linear_added", given, lines, shape)


# ---- attention ----------------------------------------------------------------------------------


@operator("attention", "scaled_dot_product_attention")
def attention(
    w: Writer,
    q: Any,
    k: Any,
    v: Any,
    mask: Any = None,
    drop: float = 0.0,
    causal: bool = False,
    scale: Any = None,
    grouped: bool = False,
) -> Value:
    if drop:
        raise Unsupported("it drops at random, call model.eval() first")
    q, k, v = w.value(q), w.value(k), w.value(v)
    if grouped and q.shape[-3] != k.shape[-3]:
        raise Unsupported("queries that share keys (enable_gqa) are not known")
    scale = 1 / math.sqrt(q.shape[-1]) if scale is None else scale
    scores = product(w, "scores", q, k, scale, b_rows=True)
    if causal:
        names = axes(scores.rank)
        i, j = names[-2:]
        body = f"if {j} <= {i} then X[{', '.join(names)}] else -inf"
        line = stage("Y", names, scores.shape, body)
        scores = w.call("causal", [("X", scores)], [line], scores.shape)
    if mask is not None:
        scores = _masked(w, scores, mask)
    shares = softmax(w, scores, -1, safe=mask is not None)
    return product(w, "weighted", shares, v)


def _masked(w: Writer, scores: Value, mask: Any) -> Value:
    boolean = mask.boolean if isinstance(mask, Value) else mask.dtype == torch.bool
    if not boolean:
        return plus(w, scores, mask)
    return elements(w, "masked", "if {M} != 0 then {X} else -inf", X=scores, M=mask)


# What export makes of attention on the CPU; of the results the second is for training alone.
@operator("attention", "_scaled_dot_product_flash_attention_for_cpu")
def flash(
    w: Writer,
    q: Any,
    k: Any,
    v: Any,
    drop: float,
    causal: bool,
    mask: Any,
    scale: Any,
) -> list[Any]:
    return [attention(w, q, k, v, mask, drop, causal, scale), None]
