"""Tasks: a computation of given sizes that is to be scheduled for a target.

TASK_TABLE has the tasks that AutoScheduler registers, beside those of the user.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, MutableMapping
from typing import Any

from ..arguments import did_you_mean, shown
from ..errors import CanvasError
from ..te.function import checked_target
from ..te.place import mistake, raised
from ..te.tensor import Operation, Tensor
from ..te.write_program import tensors


class Task:
    """`func(*args)` returns ([output operations], [all tensors, inputs first])."""

    def __init__(
        self,
        category: str,
        name: str,
        func: Callable[..., Any],
        args: tuple[Any, ...],
        target: str,
        dev_id: int = 0,
    ) -> None:
        for word, text in (("category", category), ("name", name), ("target", target)):
            if not isinstance(text, str) or not text or "\n" in text:
                raise mistake(f"{word} of a task is a word or more on one line, not {shown(text)}")
        if not callable(func):
            raise mistake(f"func of a task is a function of its args, not {shown(func)}")
        if not isinstance(args, (tuple, list)):
            raise mistake(f"args of a task is a tuple of its sizes, not {shown(args)}")
        if not isinstance(dev_id, int) or isinstance(dev_id, bool) or dev_id < 0:
            raise mistake(f"dev_id of a task is a whole number from 0 up, not {shown(dev_id)}")
        self.category, self.name, self.func = category, name, func
        self.args, self.target, self.dev_id = tuple(map(_plain, args)), target, dev_id
        self.key = f"{category}_{name}_{self.args}_{target}({dev_id})"

    def set_specific_space(self, key: str, type: str, knobs: Any) -> None:
        """Is refused: no schedule here would look at the knob."""
        raise mistake(
            f"knob {shown(key)} is not taken: no search here looks at knobs of one's own, write a "
            "template of canvas.autotvm for them"
        )

    def tensors(self) -> tuple[list[Tensor], list[Tensor]]:
        """(outputs, all tensors), as `func` makes them now."""
        try:
            made = self.func(*self.args)
        except CanvasError:
            raise
        except Exception as error:
            raise raised(f"the function of task '{self.key}'", error) from error
        pair = isinstance(made, (tuple, list)) and len(made) == 2
        if not pair or not all(isinstance(part, (tuple, list)) for part in made):
            raise mistake(
                f"the function of task '{self.key}' answers {shown(made)}, not "
                "([operations], [tensors])"
            )
        for one in (*made[0], *made[1]):
            if not isinstance(one, (Operation, Tensor)):
                raise mistake(
                    f"the function of task '{self.key}' answers {shown(one)} among its tensors"
                )
        return tensors(made[0], "an output"), tensors(made[1], "a tensor")

    def __repr__(self) -> str:
        return f"Task({self.key})"


def _plain(value: Any) -> Any:
    """A number of NumPy's as Python's, so that a key is the same whoever made the numbers."""
    if isinstance(value, (tuple, list)):
        return type(value)(map(_plain, value))
    number = hasattr(value, "__index__") and not isinstance(value, (int, bool))
    return value.__index__() if number else value


class TaskTable(MutableMapping[str, Task]):
    """Tasks by key: the user's, and beneath them those of AutoScheduler, made on first need."""

    def __init__(self) -> None:
        self.ours: dict[str, Task] = {}
        self._built_in: dict[str, Task] | None = None

    @property
    def built_in(self) -> dict[str, Task]:
        if self._built_in is None:
            from .tables import built_in_rows

            self._built_in = {task.key: task for task in (Task(*row) for row in built_in_rows())}
        return self._built_in

    def __getitem__(self, key: str) -> Task:
        return self.ours[key] if key in self.ours else self.built_in[key]

    def __setitem__(self, key: str, task: Task) -> None:
        if not isinstance(task, Task) or key != task.key:
            raise mistake(f"TASK_TABLE has tasks by their keys, not {shown(task)}")
        self.ours[key] = task

    def __delitem__(self, key: str) -> None:
        del self.ours[key]

    def __iter__(self) -> Iterator[str]:
        return iter({**self.built_in, **self.ours})

    def __len__(self) -> int:
        return len({**self.built_in, **self.ours})


TASK_TABLE = TaskTable()


def register_task(task: Task, override: bool = False) -> None:
    """A key is registered once, unless `override`; one of AutoScheduler's own may be replaced."""
    if not isinstance(task, Task):
        raise mistake(f"expected a Task, not {shown(task)}")
    if task.key in TASK_TABLE.ours and not override:
        raise mistake(f"task '{task.key}' is registered already, override=True replaces it")
    TASK_TABLE[task.key] = task


def register(
    func: Callable[..., Any],
    category: str,
    name: str,
    args: tuple[Any, ...],
    target: str,
    dev_id: int = 0,
    override: bool = False,
) -> None:
    register_task(Task(category, name, func, args, target, dev_id), override=override)


def task_of(key: Any) -> Task:
    """The task of a key, for this target."""
    if not isinstance(key, str):
        raise mistake(f"a task is given by its key, a text, not {shown(key)}")
    task = TASK_TABLE.get(key)
    if task is None:
        near = did_you_mean(key, TASK_TABLE)
        raise mistake(f"there is no task '{key}', register it first{near}")
    checked_target(task.target)
    return task
