"""The space of a template: knobs by name, each a list of entities, and points of it by index.

Order and names are AutoTVM's, so that an index means the same point: the first knob changes
fastest, and of a split the outermost of the numbers that are chosen.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from ...arguments import shown
from ...errors import CanvasError, one_line
from ...te.place import mistake
from .entities import (
    AnnotateEntity,
    OtherOptionEntity,
    ReorderEntity,
    SplitEntity,
    entity_from_json,
    entity_to_json,
)
from .orders import marks_of, permutations
from .splits import candidates, filtered, get_factors, numbers_of, ways

POLICIES = ("factors", "power2", "verbose", "candidate")


class InstantiationError(CanvasError):
    """The error of a config that a template raises by ``cfg.raise_error``."""


class VirtualAxis:
    """An axis of which only the length counts."""

    def __init__(self, var: Any, name: str | None = None) -> None:
        self.name, self.length = name or getattr(var, "name", "axis"), _length(var)

    def __repr__(self) -> str:
        return f"vaxis({self.name})"


def _length(var: Any) -> int:
    extent = getattr(getattr(var, "dom", None), "extent", None)
    found = getattr(var, "length", extent if extent is not None else var)
    if isinstance(found, bool) or not isinstance(found, int) or found < 1:
        raise mistake(
            f"an axis of a space is a length from 1 or a loop of known length, not {shown(var)}"
        )
    return int(found)


class Axis:
    """One of the axes that a knob makes of what it is defined on."""

    def __init__(self, space: TransformSpace | None, index: int) -> None:
        self.space, self.index = space, index
        self.length = getattr(space, "product", 1)


class TransformSpace:
    """The entities of a knob."""

    num_output = 0

    def __init__(self) -> None:
        self.entities: list[Any] = []

    def __len__(self) -> int:
        return len(self.entities)

    def __getitem__(self, index: int) -> Any:
        return self.entities[index]


class SplitSpace(TransformSpace):
    """The ways to split an axis into `num_outputs` loops; the outermost is what is left, -1."""

    def __init__(
        self,
        axes: Sequence[VirtualAxis],
        policy: str,
        num_outputs: int = 0,
        max_factor: int = 1 << 31,
        filter: Callable[[SplitEntity], Any] | None = None,
        no_tail: bool | None = None,
        candidate: Sequence[Sequence[int]] = (),
    ) -> None:
        super().__init__()
        self.policy, self.product = policy, axes[0].length
        self.num_output = num_outputs
        if isinstance(num_outputs, bool) or not isinstance(num_outputs, int) or num_outputs < 1:
            raise mistake(
                f"define_split: num_outputs is a whole number from 1, not {shown(num_outputs)}"
            )
        if filter is not None and not callable(filter):
            raise mistake(f"define_split: filter is a function, not {shown(filter)}")
        if policy not in POLICIES:
            raise mistake(
                f"define_split: there is no policy {shown(policy)}, there are "
                f"{', '.join(POLICIES)}"
            )
        if policy == "candidate":
            found = candidates(candidate, num_outputs)
        else:
            whole = policy == "factors" if no_tail is None else no_tail
            numbers = [one for one in numbers_of(policy, self.product) if one <= max_factor]
            found = [
                SplitEntity([-1, *sizes])
                for sizes in ways(numbers, self.product, num_outputs, whole)
            ]
        self.entities = found if filter is None else filtered(found, filter)

    def __repr__(self) -> str:
        return (
            f"Split(policy={self.policy}, product={self.product}, "
            f"num_outputs={self.num_output}) len={len(self)}"
        )


class ReorderSpace(TransformSpace):
    """Orders of axes."""

    def __init__(self, axes: Sequence[Any], policy: str, **more: Any) -> None:
        super().__init__()
        self.policy, self.num_output = policy, len(axes)
        self.entities = [ReorderEntity(list(one)) for one in permutations(axes, policy, more)]

    def __repr__(self) -> str:
        return f"Reorder(policy={self.policy}) len={len(self)}"


class AnnotateSpace(TransformSpace):
    """Marks of axes: none, unroll, vec."""

    def __init__(self, axes: Sequence[Any], policy: str, **more: Any) -> None:
        super().__init__()
        self.policy, self.num_output = policy, len(axes)
        self.entities = [AnnotateEntity(list(one)) for one in marks_of(axes, policy, more)]

    def __repr__(self) -> str:
        return f"Annotate(policy={self.policy}) len={len(self)}"


class OtherOptionSpace(TransformSpace):
    """A knob with listed values."""

    def __init__(self, _axes: Sequence[Any], _policy: Any, candidate: Sequence[Any]) -> None:
        super().__init__()
        if isinstance(candidate, (str, bytes)) or not hasattr(candidate, "__iter__"):
            raise mistake(f"define_knob: candidate is a list of values, not {shown(candidate)}")
        self.entities = [OtherOptionEntity(value) for value in candidate]

    def __repr__(self) -> str:
        return f"OtherOption({self.entities}) len={len(self)}"


_ENTITIES = {
    SplitSpace: SplitEntity,
    ReorderSpace: ReorderEntity,
    AnnotateSpace: AnnotateEntity,
    OtherOptionSpace: OtherOptionEntity,
}


class ConfigSpace:
    """The space that a template defines while it is called with one; until a point is chosen each
    knob is its first entity.
    """

    def __init__(self) -> None:
        self.space_map: dict[str, Any] = {}
        self._entity_map: dict[str, Any] = {}
        self._collect = True
        self.errors: list[str] = []
        self.code_hash: str | None = None
        self.flop: float = 0
        self.cost: float | None = None
        self.is_fallback = False

    @staticmethod
    def axis(var: Any) -> VirtualAxis:
        """An axis of a length, or of that of a loop."""
        return VirtualAxis(var)

    reduce_axis = axis

    def define_split(self, name: str, axis: Any, policy: str = "factors", **kwargs: Any) -> Any:
        """A knob that splits an axis into `num_outputs` loops.  Policies: factors (divisors),
        power2, verbose (both), candidate (those of `candidate`).  `max_factor`, `filter` (of an
        entity) and `no_tail` leave some out.
        """
        return self._define(SplitSpace, name, [axis], policy, kwargs)

    def define_reorder(self, name: str, axes: Sequence[Any], policy: str, **kwargs: Any) -> Any:
        """A knob that orders axes.  Policies: identity, all, interval_all, candidate,
        interleave.
        """
        return self._define(ReorderSpace, name, axes, policy, kwargs)

    def define_annotate(self, name: str, axes: Sequence[Any], policy: str, **kwargs: Any) -> Any:
        """A knob that marks axes.  Policies: unroll, vec, try_unroll, try_vec, try_unroll_vec,
        locate_cache.
        """
        return self._define(AnnotateSpace, name, axes, policy, kwargs)

    def define_knob(self, name: str, candidate: Sequence[Any]) -> Any:
        """A knob with listed values."""
        return self._define(OtherOptionSpace, name, [], None, {"candidate": candidate})

    def add_flop(self, flop: Any) -> None:
        """Floating point operations of the task, where they shall not be counted."""
        value = getattr(flop, "value", flop)
        number = isinstance(value, (int, float)) and not isinstance(value, bool)
        if not number and not hasattr(value, "__index__"):
            raise mistake(f"add_flop takes a number, not {shown(flop)}")
        if not 0 <= value < math.inf:
            raise mistake(f"add_flop takes a number of operations, not {shown(flop)}")
        self.flop += float(value)

    def raise_error(self, msg: str) -> None:
        """The config is not one that the template takes."""
        self.errors.append(str(msg))

    def valid(self) -> bool:
        return not self.errors

    def _define(
        self, kind: Any, name: str, axes: Sequence[Any], policy: Any, more: dict[str, Any]
    ) -> list[Axis]:
        if not isinstance(name, str) or not name:
            raise mistake(f"a knob has a name, a text, not {shown(name)}")
        if not self._collect:
            number = more.get("num_outputs", len(axes) if kind is not OtherOptionSpace else 0)
            self._check_known(kind, name, number)
            return [Axis(None, place) for place in range(number)]
        axes = [one if isinstance(one, (VirtualAxis, Axis)) else VirtualAxis(one) for one in axes]
        try:
            space = kind(axes, policy, **more)
        except TypeError as error:
            text = one_line(error).partition(": ")[2]
            raise mistake(f"knob '{name}': {text.partition('() ')[2] or text}") from None
        except KeyError as error:
            raise mistake(f"knob '{name}': policy '{policy}' takes {error}") from None
        if not len(space):
            raise mistake(f"knob '{name}' has nothing to choose from, every way is left out")
        self.space_map[name] = space
        self._entity_map[name] = space[0]
        return [Axis(space, place) for place in range(space.num_output)]

    def _check_known(self, kind: Any, name: str, number: int) -> None:
        """What was chosen for a knob is of its kind, and a split has as many parts."""
        known = self._entity_map.get(name)
        wanted = _ENTITIES[kind]
        if known is None:
            return  # reported where it is read
        if not isinstance(known, wanted):
            raise mistake(
                f"the config is of another template: knob '{name}' is {known!r}, no "
                f"{wanted.__name__}"
            )
        if isinstance(known, SplitEntity) and len(known.size) != number:
            raise mistake(
                f"the config is of another template: knob '{name}' has {len(known.size)} parts, "
                f"not {number}"
            )

    def __len__(self) -> int:
        return math.prod(len(space) for space in self.space_map.values())

    def get(self, index: int) -> ConfigEntity:
        """The point of an index, from 0."""
        if not isinstance(index, int) or isinstance(index, bool) or not 0 <= index < len(self):
            raise mistake(
                f"an index of this space is from 0 to {len(self) - 1}, not {shown(index)}"
            )
        entities, left = {}, index
        for name, space in self.space_map.items():
            left, place = divmod(left, len(space))
            entities[name] = space[place]
        return ConfigEntity(index, self.code_hash, entities, [])

    def __iter__(self) -> Iterator[str]:
        return iter(self._entity_map)

    def __contains__(self, name: object) -> bool:
        return name in self._entity_map

    def __getitem__(self, name: str) -> Any:
        if name not in self._entity_map:
            knobs = ", ".join(self._entity_map)
            raise mistake(
                f"a config has no knob '{name}', "
                + (f"its knobs are {knobs}" if knobs else "it has none at all")
            )
        return self._entity_map[name]

    def __repr__(self) -> str:
        rows = (f"  {n:2} {name}: {one}\n" for n, (name, one) in enumerate(self.space_map.items()))
        return f"ConfigSpace (len={len(self)}, space_map=\n{''.join(rows)})"


class ConfigEntity(ConfigSpace):
    """A point of a space: each knob is one entity.  Exported to AutoTVM's JSON and imported."""

    def __init__(
        self, index: int, code_hash: str | None, entity_map: dict[str, Any], constraints: Any
    ) -> None:
        super().__init__()
        self.index, self.code_hash, self._entity_map = index, code_hash, entity_map
        self._constraints, self._collect = constraints, False

    def get_other_option(self) -> dict[str, Any]:
        knobs = self._entity_map.items()
        return {name: one.val for name, one in knobs if isinstance(one, OtherOptionEntity)}

    def to_json_dict(self) -> dict[str, Any]:
        entity = [[name, *entity_to_json(one)] for name, one in self._entity_map.items()]
        return {"index": self.index, "code_hash": self.code_hash, "entity": entity}

    @staticmethod
    def from_json_dict(json_dict: Any) -> ConfigEntity:
        try:
            index, code_hash = json_dict["index"], json_dict["code_hash"]
            rows = [(name, kind, value) for name, kind, value in json_dict["entity"]]
            if not isinstance(json_dict["entity"], (list, tuple)):
                raise TypeError
        except (KeyError, TypeError, ValueError):
            raise mistake(
                "a config has 'index', 'code_hash' and rows [knob, sp|re|an|ot, value] as its "
                f"'entity', not {shown(json_dict)}"
            ) from None
        if isinstance(index, bool) or not isinstance(index, int) or index < 0:
            raise mistake(f"the index of a config is a whole number from 0, not {shown(index)}")
        entities = {name: entity_from_json(name, kind, value) for name, kind, value in rows}
        if len(entities) != len(rows):
            raise mistake("a config has a knob twice")
        return ConfigEntity(index, code_hash, entities, [])

    def __len__(self) -> int:
        return 1

    def __repr__(self) -> str:
        rows = ", ".join(f"('{name}', {one})" for name, one in self._entity_map.items())
        return f"[{rows}],{self.code_hash},{self.index}"


class FallbackConfigEntity(ConfigSpace):
    """What a template is called with where nothing was chosen: it may choose itself."""

    def __init__(self) -> None:
        super().__init__()
        self.is_fallback = True

    def fallback_split(self, name: str, constraints: Sequence[int]) -> None:
        """A split whose parts are the largest divisors up to these; -1: any."""
        space = self.space_map.get(name)
        if not isinstance(space, SplitSpace) or len(constraints) != space.num_output:
            raise mistake(f"fallback_split: '{name}' is no split into {len(constraints)} parts")
        left, sizes = space.product, []
        for most in reversed(constraints):
            sizes.append(max(one for one in get_factors(left) if most == -1 or one <= most))
            left //= sizes[-1]
        self._entity_map[name] = SplitEntity(sizes[::-1])

    def __setitem__(self, name: str, entity: Any) -> None:
        self._entity_map[name] = entity

    def __repr__(self) -> str:
        rows = ", ".join(f"('{name}', {one})" for name, one in self._entity_map.items())
        return f"[{rows}],{self.code_hash}"
