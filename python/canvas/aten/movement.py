"""What moves elements and computes nothing: other sizes, parts, several in one, paddings."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any

from .operator_table import add, operator
from .values import Shape, Unsupported, Value, axes, number, place, places, spread
from .writer import Writer, stage

MOST = 64  # tensors that one program puts together


def move(w: Writer, kind: str, x: Value, shape: Shape, at: Sequence[str], body: str = "") -> Value:
    """Every element of the result is the one of X at these indices; {X} in `body` is the load."""
    load = f"X[{', '.join(at)}]"
    line = stage("Y", axes(len(shape)), shape, body.replace("{X}", load) or load)
    made = w.call(kind, [("X", x)], [line], shape)
    return Value(made.name, made.shape, made.constant, boolean=x.boolean)


# ---- the same elements in order, other sizes ----------------------------------------------------


def view(w: Writer, x: Any, shape: Sequence[int]) -> Any:
    if isinstance(x, Value) and x.dtype != "f32":
        raise Unsupported("it reshapes whole numbers, only embedding reads them")
    x = w.value(x)
    shape = tuple(shape)
    if -1 in shape:
        rest = prod(size for size in shape if size != -1)
        shape = tuple(prod(x.shape) // rest if size == -1 else size for size in shape)
    if shape == x.shape:
        return x
    return move(w, "view", x, shape, view_indices(x.shape, shape))


def view_indices(old: Shape, new: Shape) -> list[str]:
    """The indices of the old shape for the axes of the new one. Axes are taken together only as
    far as their sizes need it: [2, 3, 4] as [2, 12] leaves the first alone.
    """
    names, answer = axes(len(new)), []
    first, at = 0, 0
    while at < len(old):
        if old[at] == 1:
            answer.append("0")
            at += 1
            continue
        while first < len(new) and new[first] == 1:
            first += 1
        ends = at + 1, first + 1
        while (a := prod(old[at : ends[0]])) != (b := prod(new[first : ends[1]])):
            ends = (ends[0] + 1, ends[1]) if a < b else (ends[0], ends[1] + 1)
        answer += _within(old[at : ends[0]], names[first : ends[1]], new[first : ends[1]])
        at, first = ends
    return answer


def _within(old: Shape, names: Sequence[str], new: Shape) -> list[str]:
    named = [(name, size) for name, size in zip(names, new) if size > 1]
    terms = []
    for position, (name, _) in enumerate(named):
        factor = prod(size for _, size in named[position + 1 :])
        terms.append(name if factor == 1 else f"{name}*{factor}")
    flat = "+".join(terms) or "0"
    inner = flat if len(terms) == 1 and "*" not in flat else f"({flat})"
    answer = []
    for position, size in enumerate(old):
        below = prod(old[position + 1 :])
        index = flat if below == 1 and position == 0 else f"{inner}/{below}"
        index = inner if below == 1 else index
        above = prod(old[:position])
        if size == 1:
            answer.append("0")
        else:
            answer.append(index if above == 1 else f"{index}%{size}")
    return answer


add("shape", "view _unsafe_view reshape", view)


@operator("shape", "flatten.using_ints")
def flatten(w: Writer, x: Value, start: int, end: int) -> Any:
    start, end = place(start, x.rank), place(end, x.rank)
    return view(w, x, (*x.shape[:start], -1, *x.shape[end + 1 :]))


@operator("shape", "unflatten.int")
def unflatten(w: Writer, x: Value, dim: int, shape: Any) -> Any:
    dim = place(dim, x.rank)
    inner = [x.shape[dim] // -prod(shape) if size == -1 else size for size in shape]
    return view(w, x, (*x.shape[:dim], *inner, *x.shape[dim + 1 :]))


@operator("shape", "squeeze squeeze.dim squeeze.dims")
def squeeze(w: Writer, x: Value, dims: Any = None) -> Any:
    gone = places(dims, x.rank)
    kept = [size for at, size in enumerate(x.shape) if size != 1 or at not in gone]
    return view(w, x, kept)


@operator("shape", "unsqueeze")
def unsqueeze(w: Writer, x: Value, dim: int) -> Any:
    dim = dim % (x.rank + 1)
    return view(w, x, (*x.shape[:dim], 1, *x.shape[dim:]))


# ---- another order ------------------------------------------------------------------------------


@operator("shape", "permute")
def permute(w: Writer, x: Any, order: Any) -> Any:
    x = w.value(x)
    order = [place(dim, x.rank) for dim in order]
    if order == sorted(order):
        return x
    shape, names = tuple(x.shape[dim] for dim in order), axes(x.rank)
    return move(w, "permute", x, shape, [names[order.index(dim)] for dim in range(x.rank)])


@operator("shape", "transpose.int")
def transpose(w: Writer, x: Any, a: int, b: int) -> Any:
    order = list(range(x.rank))
    a, b = place(a, x.rank), place(b, x.rank)
    order[a], order[b] = b, a
    return permute(w, x, order)


@operator("shape", "t")
def t(w: Writer, x: Any) -> Any:
    return transpose(w, x, 0, 1) if x.rank == 2 else x


@operator("shape", "flip")
def flip(w: Writer, x: Any, dims: Any) -> Any:
    x = w.value(x)
    at = axes(x.rank)
    for dim in places(dims, x.rank) if dims else []:
        at[dim] = f"{x.shape[dim] - 1}-{at[dim]}"
    return move(w, "flip", x, x.shape, at)


@operator("shape", "roll")
def roll(w: Writer, x: Any, shifts: Any, dims: Any) -> Any:
    x = w.value(x)
    if not dims:
        flat = roll(w, view(w, x, (-1,)), shifts, [0])
        return view(w, flat, x.shape)
    at = axes(x.rank)
    for shift, dim in zip(spread(shifts, len(dims)), spread(dims, len(dims))):
        dim = place(dim, x.rank)
        size = x.shape[dim]
        at[dim] = f"({at[dim]}+{-shift % size})%{size}" if shift % size else at[dim]
    return move(w, "roll", x, x.shape, at)


@operator("shape", "pixel_shuffle")
def pixel_shuffle(w: Writer, x: Any, by: int) -> Any:
    return _pixels(w, w.value(x), by, True)


@operator("shape", "pixel_unshuffle")
def pixel_unshuffle(w: Writer, x: Any, by: int) -> Any:
    return _pixels(w, w.value(x), by, False)


def _pixels(w: Writer, x: Value, by: int, larger: bool) -> Any:
    *lead, channels, height, width = x.shape
    *names, c, h, v = axes(x.rank)
    square = by * by
    if larger:
        shape = (*lead, channels // square, height * by, width * by)
        at = [*names, f"{c}*{square}+{h}%{by}*{by}+{v}%{by}", f"{h}/{by}", f"{v}/{by}"]
        return move(w, "pixel_shuffle", x, shape, at)
    shape = (*lead, channels * square, height // by, width // by)
    at = [*names, f"{c}/{square}", f"{h}*{by}+{c}/{by}%{by}", f"{v}*{by}+{c}%{by}"]
    return move(w, "pixel_unshuffle", x, shape, at)


@operator("shape", "channel_shuffle")
def channel_shuffle(w: Writer, x: Any, groups: int) -> Any:
    x = w.value(x)
    at = axes(x.rank)
    at[1] = f"{at[1]}%{groups}*{x.shape[1] // groups}+{at[1]}/{groups}"
    return move(w, "channel_shuffle", x, x.shape, at)


# ---- parts --------------------------------------------------------------------------------------


def part(w: Writer, x: Value, dim: int, start: int, count: int, step: int = 1) -> Any:
    if count == x.shape[dim]:
        return x
    if not count:
        raise Unsupported("its result is empty")
    at, shape = axes(x.rank), list(x.shape)
    shape[dim] = count
    at[dim] = at[dim] if step == 1 else f"{at[dim]}*{step}"
    at[dim] += f"+{start}" if start else ""
    return move(w, "slice", x, tuple(shape), at)


@operator("parts", "slice.Tensor")
def slice_of(w: Writer, x: Any, dim: int, start: Any, end: Any, step: int) -> Any:
    x = w.value(x)
    dim = place(dim, x.rank)
    taken = range(x.shape[dim])[slice(start, end, step)]
    return part(w, x, dim, taken.start, len(taken), step)


@operator("parts", "narrow")
def narrow(w: Writer, x: Any, dim: int, start: int, length: int) -> Any:
    x = w.value(x)
    dim = place(dim, x.rank)
    return part(w, x, dim, start % x.shape[dim], length)


@operator("parts", "select.int")
def select(w: Writer, x: Any, dim: int, index: int) -> Any:
    x = w.value(x)
    dim = place(dim, x.rank)
    shape = x.shape[:dim] + x.shape[dim + 1 :]
    at = axes(len(shape))
    return move(w, "select", x, shape, [*at[:dim], str(index % x.shape[dim]), *at[dim:]])


@operator("parts", "split_with_sizes split.sizes")
def split_with_sizes(w: Writer, x: Any, counts: Any, dim: int) -> Any:
    x, start, answer = w.value(x), 0, []
    for count in counts:
        answer.append(part(w, x, place(dim, x.rank), start, count))
        start += count
    return answer


@operator("parts", "split.Tensor")
def split(w: Writer, x: Any, size: int, dim: int) -> Any:
    whole = x.shape[place(dim, x.rank)]
    counts = [min(size, whole - start) for start in range(0, whole, size)]
    return split_with_sizes(w, x, counts, dim)


@operator("parts", "chunk")
def chunk(w: Writer, x: Any, chunks: int, dim: int) -> Any:
    return split(w, x, -(-x.shape[place(dim, x.rank)] // chunks), dim)


@operator("parts", "unbind.int")
def unbind(w: Writer, x: Any, dim: int) -> Any:
    return [select(w, x, dim, index) for index in range(x.shape[place(dim, x.rank)])]


# ---- several in one -----------------------------------------------------------------------------


@operator("several in one", "cat")
def cat(w: Writer, tensors: Any, dim: int) -> Any:
    boolean = all(isinstance(x, Value) and x.boolean for x in tensors)
    given = [w.value(x) for x in tensors]
    if len(given) > MOST:
        halves = given[: len(given) // 2], given[len(given) // 2 :]
        return cat(w, [cat(w, half, dim) for half in halves], dim)
    if len(given) == 1:
        return given[0]
    rank = given[0].rank
    dim, names = place(dim, rank), axes(rank)
    body, start, ends = "", 0, []
    for value in given:
        start += value.shape[dim]
        ends.append(start)
    for letter in range(len(given)):
        first = ends[letter] - given[letter].shape[dim]
        at = [f"{name}-{first}" if n == dim and first else name for n, name in enumerate(names)]
        load = f"X{letter}[{', '.join(at)}]"
        last = letter == len(given) - 1
        body += load if last else f"if {names[dim]} < {ends[letter]} then {load} else "
    shape = tuple(start if at == dim else size for at, size in enumerate(given[0].shape))
    line = stage("Y", names, shape, body)
    made = w.call("cat", [(f"X{k}", v) for k, v in enumerate(given)], [line], shape)
    return Value(made.name, made.shape, made.constant, boolean=boolean)


@operator("several in one", "stack")
def stack(w: Writer, tensors: Any, dim: int) -> Any:
    given = [w.value(x) for x in tensors]
    return cat(w, [unsqueeze(w, x, dim) for x in given], place(dim, given[0].rank + 1))


@operator("several in one", "repeat")
def repeat(w: Writer, x: Any, times: Any) -> Any:
    x = w.value(x)
    lead = len(times) - x.rank
    old = (1,) * lead + x.shape
    shape = tuple(size * by for size, by in zip(old, times))
    names = axes(len(shape))
    at = [
        "0" if size == 1 else name if by == 1 else f"{name}%{size}"
        for name, size, by in zip(names, old, times)
    ]
    return x if shape == x.shape else move(w, "repeat", x, shape, at[lead:])


# ---- paddings -----------------------------------------------------------------------------------


@operator("padding", "constant_pad_nd")
def constant_pad(w: Writer, x: Any, pads: Any, value: Any) -> Any:
    x = w.value(x)
    names, at, bounds, shape = axes(x.rank), axes(x.rank), [], list(x.shape)
    for axis, (low, high) in _sides(x.rank, pads):
        name, size = names[axis], x.shape[axis]
        shape[axis] = size + low + high
        if shape[axis] < 1:
            raise Unsupported("its result is empty")
        if low:
            at[axis] = f"{name}-{low}" if low > 0 else f"{name}+{-low}"
        bounds += [f"{low} <= {name}"] if low > 0 else []
        bounds += [f"{name} < {low + size}"] if high > 0 else []
    if not bounds:
        return x if tuple(shape) == x.shape else move(w, "crop", x, tuple(shape), at)
    body = f"if {' && '.join(bounds)} then {{X}} else {number(value)}"
    return move(w, "pad", x, tuple(shape), at, body)


def _sides(rank: int, pads: Sequence[int]) -> list[tuple[int, tuple[int, int]]]:
    """(axis, (before, after)): the last axis comes first in PyTorch."""
    pairs = zip(pads[::2], pads[1::2])
    return [(rank - 1 - turn, pair) for turn, pair in enumerate(pairs)]


def _mirrored(name: str, low: int, size: int) -> str:
    at = f"({name}-{low})"
    once = f"max({at}, -{at})"
    far = f"({size - 1}-{once})"
    return f"min(max({size - 1}-max({far}, -{far}), 0), {size - 1})"


def _nearest(name: str, low: int, size: int) -> str:
    return f"min(max({name}-{low}, 0), {size - 1})"


def _around(name: str, low: int, size: int) -> str:
    return f"({name}+{-low % size})%{size}"


def _pad_by(rule: Callable[[str, int, int], str], kind: str) -> Callable[..., Any]:
    def write(w: Writer, x: Any, pads: Any) -> Any:
        x = w.value(x)
        at, shape = axes(x.rank), list(x.shape)
        for axis, (low, high) in _sides(x.rank, pads):
            shape[axis] += low + high
            at[axis] = rule(at[axis], low, x.shape[axis]) if low or high else at[axis]
        return move(w, kind, x, tuple(shape), at)

    return write


MODES = {
    "reflect": _pad_by(_mirrored, "pad_reflect"),
    "replicate": _pad_by(_nearest, "pad_replicate"),
    "circular": _pad_by(_around, "pad_circular"),
}
for _n in "123":
    add("padding", f"reflection_pad{_n}d", MODES["reflect"])
    add("padding", f"replication_pad{_n}d", MODES["replicate"])


@operator("padding", "pad")
def pad(w: Writer, x: Any, pads: Any, mode: str, value: Any) -> Any:
    if mode == "constant":
        return constant_pad(w, x, pads, 0 if value is None else value)
    return MODES[mode](w, x, pads)
