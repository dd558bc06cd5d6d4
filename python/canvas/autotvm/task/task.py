"""Templates by name, and tasks: a template with its arguments and the space that it defines."""

from __future__ import annotations

import functools
import json
from collections.abc import Callable, Sequence
from typing import Any

from ... import _core, te
from ...arguments import did_you_mean, shown
from ...errors import CanvasError, one_line
from ...te.place import mistake
from ...te.target import Target
from ...te.target import create as create_target
from .dispatcher import ApplyConfig, DispatchContext
from .space import ConfigSpace, InstantiationError

Template = Callable[..., Any]

TASK_TABLE: dict[str, Template] = {}


def template(task_name: Any, func: Template | None = None) -> Any:
    """Registers a function as the template `task_name`: it defines a space by get_config() and
    returns (schedule, [arguments]).  A direct call gets the config of the `with` blocks around it.
    """
    if not isinstance(task_name, str):
        raise mistake(f"a template has a name: @autotvm.template('name'), not {shown(task_name)}")

    if func is not None and not callable(func):
        raise mistake(f"template '{task_name}' is a function, not {shown(func)}")

    def register(function: Template) -> Template:
        known = TASK_TABLE.get(task_name)
        if known is not None and _origin(known) != _origin(function):
            raise mistake(f"template '{task_name}' is registered already, give it another name")

        @functools.wraps(function)
        def call(*args: Any, **kwargs: Any) -> Any:
            if kwargs:
                raise mistake(f"template '{task_name}' takes its arguments without names")
            workload = args_to_workload(args, task_name)
            with ApplyConfig(DispatchContext.current.query(Target.current(), workload)):
                return function(*args)

        TASK_TABLE[task_name] = call
        return call

    return register(func) if func else register


def _origin(function: Any) -> tuple[Any, ...]:
    """Where a function stands: the same cell of a notebook may be run twice."""
    inner = getattr(function, "__wrapped__", function)
    return getattr(inner, "__module__", ""), getattr(inner, "__qualname__", "")


def get_config() -> Any:
    """In a template: the space, or the point of it that it shall be for."""
    return DispatchContext.current.query(Target.current(), None)


# ---- arguments ----------------------------------------------------------------------------------


def serialize_args(args: Sequence[Any]) -> tuple[Any, ...]:
    """Arguments as what can be compared and written down; a tensor is its shape and dtype."""
    return tuple(_plain(one) for one in args)


def _plain(value: Any) -> Any:
    if isinstance(value, te.Tensor):
        return ("TENSOR", tuple(int(size) for size in value.shape), value.dtype)
    if isinstance(value, (tuple, list)):
        return tuple(_plain(one) for one in value)
    if value is None or isinstance(value, (str, bool, float)):
        return value
    if hasattr(value, "__index__"):
        return value.__index__()
    raise mistake(
        f"an argument of a task is a number, a text, a tensor or several, not {shown(value)}"
    )


def deserialize_args(args: Sequence[Any]) -> list[Any]:
    """Tensors again, as placeholders."""
    return [
        te.placeholder(one[1], one[2])
        if isinstance(one, tuple) and one[:1] == ("TENSOR",)
        else one
        for one in args
    ]


def args_to_workload(args: Sequence[Any], task_name: str | None = None) -> tuple[Any, ...]:
    plain = serialize_args(args)
    return plain if task_name is None else (task_name, *plain)


# ---- tasks --------------------------------------------------------------------------------------


class Task:
    """A template with its arguments; `config_space`, `flop` and `target` as of task.create."""

    def __init__(self, name: str, args: Sequence[Any]) -> None:
        self.name, self.args = name, serialize_args(args)
        self.kwargs: dict[str, Any] = {}
        self.config_space = ConfigSpace()
        self.flop: float = 0
        self.target: Any = None
        self.target_host: Any = None

    @property
    def workload(self) -> tuple[Any, ...]:
        return (self.name, *self.args)

    @property
    def func(self) -> Template:
        if self.name not in TASK_TABLE:
            raise mistake(
                f"there is no template '{self.name}'{did_you_mean(self.name, TASK_TABLE)}, "
                "@autotvm.template registers one"
            )
        return TASK_TABLE[self.name]

    def instantiate(self, config: ConfigSpace) -> tuple[Any, list[Any]]:
        """(schedule, arguments) for a point of the space."""
        config.flop, config.errors = 0, []
        with create_target(self.target or "llvm"):
            s, arguments = _called(self, config)
        if not config.valid():
            raise InstantiationError(f"template '{self.name}': {config.errors[0]}")
        return s, arguments

    def __repr__(self) -> str:
        return (
            f"Task(func_name={self.name}, args={self.args}, kwargs={{}}, workload={self.workload})"
        )


def _called(task: Task, config: ConfigSpace) -> tuple[Any, list[Any]]:
    function = task.func
    try:
        with ApplyConfig(config):
            answer = function(*deserialize_args(task.args))
    except CanvasError:
        raise
    except Exception as error:
        raise mistake(f"template '{task.name}' raised {one_line(error)}") from error
    pair = isinstance(answer, (tuple, list)) and len(answer) == 2
    if not pair or not isinstance(answer[0], te.Schedule) or not _is_list(answer[1]):
        raise mistake(
            f"template '{task.name}' answers a schedule and its arguments, not {shown(answer)}"
        )
    return answer[0], list(answer[1])


def _is_list(given: Any) -> bool:
    return isinstance(given, (tuple, list))


def create(task_name: Any, args: Any, target: Any, target_host: Any = None) -> Task:
    """A task with the space that its template defines."""
    if not isinstance(task_name, str) or not isinstance(args, (tuple, list)):
        raise mistake("task.create takes a template's name and a list of its arguments")
    task = Task(task_name, args)
    task.target, task.target_host = create_target(target), target_host
    with task.target:
        s, _ = _called(task, task.config_space)
    if not task.config_space.space_map:
        raise mistake(f"template '{task_name}' defines no knob, there is nothing to tune")
    task.flop = task.config_space.flop or count_flop(s.program)
    return task


def count_flop(program: str) -> float:
    """The floating point operations of a program, as `canvas count` has them."""
    return float(json.loads(_core.count_program(program))["flops"])
