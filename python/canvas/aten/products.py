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

SMALL_BATCH = 400  # products of a matrix; below it PyTorch's baddbmm calls no BLAS


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
    bias = w.value(bias)
    plain = bias.shape == shape[-1:]
    at = "o" if plain else ", ".join(spot(names, bias.shape, shape))
    lines = [
        stage("Y_sum", names, shape, body, "sum", over),
        stage("Y", names, shape, f"Y_sum[{', '.join(names)}] + B[{at}]"),
    ]
    own = ["o"] if plain else axes(bias.rank)
    return w.call("linear", [*given, ("B", bias, own)], lines, shape)


@operator("product", "addmm baddbmm")
def addmm(w: Writer, x: Any, a: Any, b: Any, beta: Any, alpha: Any) -> Any:
    """beta*x + alpha*(a b).  A factor of 0 drops its term, with the NaN and inf in it, as BLAS
    does; small batches PyTorch multiplies itself, without that rule for alpha.
    """
    x, a, b = w.value(x), w.value(a), w.value(b)
    lead = a.shape[:-2]
    names = [*("b" for _ in lead), "i", "j"]
    rows, inner, columns = a.shape[-2], a.shape[-1], b.shape[-1]
    shape = (*lead, rows, columns)
    front = names[:-2]
    load = f"C[{', '.join(spot(names, x.shape, shape))}]"
    added = load if beta == 1 else f"{number(beta)} * {load}"
    if alpha == 0 and not (lead and rows * inner * columns < SMALL_BATCH):
        if beta == 0:
            return torch.zeros(shape, device="cpu")
        return w.call("scaled", [("C", x)], [stage("Y", names, shape, added)], shape)
    body = f"A[{', '.join([*front, 'i', 'k'])}] * B[{', '.join([*front, 'k', 'j'])}]"
    given: list[Any] = [("A", a, [*front, "i", "k"]), ("B", b, [*front, "k", "j"])]
    total = f"Y_sum[{', '.join(names)}]" + ("" if alpha == 1 else f" * {number(alpha)}")
    lines = [stage("Y_sum", names, shape, body, "sum", [("k", inner)])]
    if beta == 0:
        lines.append(stage("Y", names, shape, total))
        return w.call("product_scaled", given, lines, shape)
    lines.append(stage("Y", names, shape, f"{total} + {added}"))
    return w.call("linear_added", [*given, ("C", x)], lines, shape)


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
    fused = _is_fused(q, k, v, mask)
    scale = 1 / math.sqrt(q.shape[-1]) if scale is None else scale
    scores = product(w, "scores", q, k, scale, b_rows=True)
    if causal:
        names = axes(scores.rank)
        i, j = names[-2:]
        load = f"X[{', '.join(names)}]"
        later = "-inf" if fused else f"{load} - inf"
        line = stage("Y", names, scores.shape, f"if {j} <= {i} then {load} else {later}")
        scores = w.call("causal", [("X", scores)], [line], scores.shape)
    if mask is not None:
        scores = _masked(w, scores, mask)
    return product(w, "weighted", softmax(w, scores, -1, safe=True), v)


def _is_fused(q: Value, k: Value, v: Value, mask: Any) -> bool:
    """Whether PyTorch calls its fused kernel, which overwrites the scores of later keys; else it
    adds -inf to them, so that NaN stays.
    """
    alike = q.rank == 4 and q.shape[-1] == k.shape[-1] == v.shape[-1]
    return alike and (mask is None or len(mask.shape) in (2, 4))


def _masked(w: Writer, scores: Value, mask: Any) -> Value:
    """PyTorch adds -inf where a mask of bools hides a key, so that NaN stays."""
    boolean = mask.boolean if isinstance(mask, Value) else mask.dtype == torch.bool
    if not boolean:
        return plus(w, scores, mask)
    return elements(w, "masked", "if {M} != 0 then {X} else {X} - inf", X=scores, M=mask)


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
