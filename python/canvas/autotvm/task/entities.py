"""What a knob chooses, and how it is applied to a stage."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from ...arguments import shown
from ...te.place import mistake

# What parts of an axis y are called: yo and yi, or yt, yo and yi.
_PARTS = {2: "oi", 3: "toi"}


class SplitEntity:
    """The sizes of the loops that an axis becomes; -1: what is left."""

    def __init__(self, size: Sequence[int]) -> None:
        self.size = list(size)

    def apply(self, sch: Any, op: Any, axis: Any) -> list[Any]:
        """The loops, the outermost first."""
        word = axis.name if len(axis.name) < 3 else f"{axis.name}_"
        ends = _PARTS.get(len(self.size), [str(place) for place in range(len(self.size))])
        made = []
        for place in range(1, len(self.size)):
            inner = f"{word}{ends[place]}"
            if place < len(self.size) - 1:
                inner = f"{word}{ends[place]}{ends[-1]}"
            factor = math.prod(self.size[place:])
            names = (f"{word}{ends[place - 1]}", inner)
            outer, axis = sch[op].split(axis, factor=factor, names=names)
            made.append(outer)
        return [*made, axis]

    def __repr__(self) -> str:
        return str(self.size)


class ReorderEntity:
    """An order of axes."""

    def __init__(self, perm: Sequence[int]) -> None:
        self.perm = list(perm)

    def apply(self, sch: Any, op: Any, axes: Sequence[Any]) -> list[Any]:
        order = [axes[place] for place in self.perm if place < len(axes)]
        sch[op].reorder(*order)
        return order

    def __repr__(self) -> str:
        return str(self.perm)


class AnnotateEntity:
    """A mark for each axis; or, of caches, the axes that they are computed at."""

    def __init__(self, anns: Sequence[Any]) -> None:
        self.anns = list(anns)

    def apply(
        self,
        sch: Any,
        op: Any,
        axes: Sequence[Any],
        axis_lens: Sequence[int] | None = None,
        max_unroll: int | None = None,
        vec_size: Sequence[int] | None = None,
        cfg: Any = None,
        source: Sequence[Sequence[Any]] | None = None,
    ) -> list[Any]:
        if source is not None:
            for tensors, place in zip(source, self.anns):
                for tensor in tensors:
                    sch[tensor].compute_at(sch[op], axes[place])
            return list(axes)
        for place, (axis, mark) in enumerate(zip(axes, self.anns)):
            length = axis_lens[place] if axis_lens else None
            if mark == "unroll":
                if max_unroll and length and length > max_unroll:
                    cfg.raise_error("Too large factor for unrolling")
                sch[op].unroll(axis)
            elif mark == "vec":
                if vec_size and length not in vec_size:
                    cfg.raise_error("Wrong size of lanes in vectorization")
                sch[op].vectorize(axis)
        return list(axes)

    def __repr__(self) -> str:
        return str(self.anns)


class OtherOptionEntity:
    """A value of a knob."""

    def __init__(self, val: Any) -> None:
        self.val = val

    def __repr__(self) -> str:
        return str(self.val)


# AutoTVM's letters, the class, and what it holds.
_KINDS: dict[str, tuple[Any, str]] = {
    "sp": (SplitEntity, "size"),
    "re": (ReorderEntity, "perm"),
    "an": (AnnotateEntity, "anns"),
    "ot": (OtherOptionEntity, "val"),
}


def entity_to_json(entity: Any) -> tuple[str, Any]:
    for letters, (kind, field) in _KINDS.items():
        if isinstance(entity, kind):
            return letters, getattr(entity, field)
    raise mistake(f"a knob is no entity of AutoTVM's: {shown(entity)}")


def is_sizes(given: Any) -> bool:
    return isinstance(given, (list, tuple)) and all(
        isinstance(one, int) and not isinstance(one, bool) for one in given
    )


def entity_from_json(name: Any, letters: Any, value: Any) -> Any:
    if not isinstance(name, str):
        raise mistake(f"a knob has a name, a text, not {shown(name)}")
    if not isinstance(letters, str) or letters not in _KINDS:
        raise mistake(f"knob '{name}' is of a kind {shown(letters)}, there are sp, re, an, ot")
    if letters == "ot":
        return OtherOptionEntity(value)
    if letters == "an" and not isinstance(value, (list, tuple)):
        raise mistake(f"knob '{name}' is a list of marks, not {shown(value)}")
    if letters != "an" and not (is_sizes(value) and value):
        raise mistake(f"knob '{name}' is whole numbers, not {shown(value)}")
    if letters == "sp" and any(one < 1 for one in value[1:]):
        raise mistake(f"knob '{name}': sizes are from 1, the first may be -1: {shown(value)}")
    if letters == "re" and sorted(value) != list(range(len(value))):
        raise mistake(f"knob '{name}' is an order of axes from 0, not {shown(value)}")
    return _KINDS[letters][0](value)
