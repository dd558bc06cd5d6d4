"""What a search is about: a network, its task and its data, by name or as objects.

Whatever has a name is sent to children as that: a model or a task as package.module:name, data as
a name or as stored images.  An object without a name gets one that this process alone knows
(imports.py); the search then runs here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import nn

from ..arguments import shown
from ..data import Data, NamedSource, Streamed, as_data, streamed
from ..data.readers import READERS, image_options
from ..data.streamed import streamed_by_name
from ..errors import CanvasError
from ..imports import find_by_name, give, is_given, name_of
from ..inputs import Inputs
from ..layer_choice import LayerChoice
from ..nn.convert import copied
from ..nn.network import Recipe, build_network, form_of
from ..tasks import BUILT_IN, Task, load_task
from ..tasks.check_task import check_task
from ..tasks.classification import CLASSIFICATION
from ..tasks.evaluate import NotFinite, evaluate, failing_as
from .child_import import check_child_import


@dataclass
class Subject:
    """`model`, `task_name`, `data_name`: what jobs call them; `source` is there after `read`."""

    model: str
    task: Task
    task_name: str
    data: Any
    data_name: str = ""
    loop: dict[str, str] = field(default_factory=dict)  # names of `train` and `score`
    example: Any = None
    _source: NamedSource | None = field(default=None, repr=False)

    @classmethod
    def of(
        cls, model: Any, data: Any, task: Any, loop: Mapping[str, Any], example: Any = None
    ) -> Subject:
        """Raises CanvasError for what is no task or no loop; other words are checked with the
        options.
        """
        found = load_task(task)
        name = task if isinstance(task, str) else _task_name(found)
        return cls(_model_name(model), found, name, data, "", _loop_names(loop), example)

    @property
    def source(self) -> NamedSource:
        assert self._source is not None
        return self._source

    @property
    def given(self) -> str:
        """What runs in this process alone, in words; "" where children can have it all."""
        names = {"the model": self.model, "the task": self.task_name, "the data": self.data_name}
        names |= {f"the {name} function": value for name, value in self.loop.items()}
        return " and ".join(what for what, name in names.items() if is_given(name))

    def read(self, options: Mapping[str, Any], beside: Path | None = None) -> None:
        """Read the data, of which the folder `beside` may have an index; raises CanvasError for
        what cannot be used or imported.
        """
        importable = {"model": self.model, "task": self.task_name, **self.loop}
        for what, name in importable.items():
            if not is_given(name) and ":" in name:
                check_child_import(name, what)
        if self.loop:
            self._read_example(options)
            return
        if self.data is None:
            raise CanvasError("a search needs data, or train and score: a loop of your own")
        if self.task.loss is None or self.task.metric is None:
            raise CanvasError(
                f"task '{self.task_name}' has no loss or no metric: a search trains and compares "
                "networks by them, canvas.fit can do without"
            )
        asked = image_options(options)
        named = isinstance(self.data, str)
        if named and ":" in self.data and self.data.partition(":")[0] not in READERS:
            self._loaders(streamed_by_name(self.data), self.data, asked)
        elif named or isinstance(self.data, Data) or self.task is CLASSIFICATION:
            if isinstance(self.data, Streamed):
                self._loaders(self.data, give(self.data, "data"), asked)
            else:
                self._source = as_data(self.data, beside=beside, **asked)
        else:
            source = self.data if isinstance(self.data, Streamed) else streamed(self.data)
            self._loaders(source, give(source, "data"), asked)

    def _read_example(self, options: Mapping[str, Any]) -> None:
        """What stands for the data where a loop of the user's has its own."""
        if self.data is not None:
            raise CanvasError(
                "a loop of yours has its own data: leave data out, or train and score"
            )
        if self.example is None:
            raise CanvasError(f"with train and score a search needs example_input=, {EXAMPLE}")
        given = example_of(self.example)
        if options["finalists"]:
            raise CanvasError(
                "a loop of yours has no test split, on which finals are scored: give finalists=0"
            )
        names = f"{self.loop['train']} {self.loop['score']}"
        batches = [(given.example, torch.zeros(len(given)))]
        self._source = Streamed(batches, batches, batches, f"loop {names}")

    def _loaders(self, source: Streamed, name: str, asked: Mapping[str, Any]) -> None:
        words = [word for word, value in asked.items() if value is not None]
        if words:
            raise CanvasError(f"loaders give their examples complete: leave {min(words)} out")
        self._source, self.data_name = source, name

    def recipe(self, options: Mapping[str, Any]) -> Recipe:
        """The unchanged network; 0 classes where its outputs are no scores of classes."""
        shape, classes, inputs = self._form()
        words = (str(LayerChoice.of(options)), options["seed"], inputs)
        return Recipe(self.model, options["width"], shape, classes, *words)

    def _form(self) -> tuple[tuple[int, int, int], int, Sequence[Any]]:
        """[C, H, W] of an image, number of classes, and the form of inputs that are not just one
        image.
        """
        source = self.source
        if self.loop:
            shape, form = form_of(example_of(self.example))
            return shape, 0, form
        if isinstance(source, Data):
            return source.shape, source.classes if self.task is CLASSIFICATION else 0, ()
        inputs = self.task.inputs_of(source.first("train", 1)[0])
        shape, form = form_of(inputs)
        classes = 0
        if self.task is CLASSIFICATION and isinstance(source, Streamed):
            classes = source.classes()
        return shape, classes, form

    def check(self, recipe: Recipe) -> None:
        """Raise CanvasError where the task does not go with the unchanged network and the data."""
        if self.loop or (self.task is CLASSIFICATION and isinstance(self.source, Data)):
            return  # plan_network has seen to that
        network = build_network(recipe)
        with failing_as(f"the network on examples of task '{self.task.name}'"):
            check_task(network, self.source, self.task, distilled=False)
            try:
                evaluate(self.task, network, self.source.scoring("validation"))
            except NotFinite as error:
                raise CanvasError(f"the network cannot be trained: {error}") from None

    def recorded_task(self) -> dict[str, Any] | None:
        """The task as a study keeps it; None for the usual one."""
        if self.task is CLASSIFICATION:
            return None
        return {"name": self.task.name, "metric": self.task.judged_by.to_json()}


EXAMPLE = (
    "what the network takes: a tensor [N, C, H, W], a tuple of tensors or a dict of named ones"
)


def example_of(value: Any) -> Inputs:
    """Raises CanvasError for what is no input of a network."""
    try:
        return Inputs.of(value)
    except CanvasError:
        raise CanvasError(f"example_input is {EXAMPLE}, not {shown(value)}") from None


def _loop_names(loop: Mapping[str, Any]) -> dict[str, str]:
    """Names of the functions of a loop; {} where there is none."""
    given = {name: value for name, value in loop.items() if value is not None}
    if not given:
        return {}
    if missing := [name for name in loop if name not in given]:
        raise CanvasError(f"a loop of yours needs train and score: {missing[0]} is missing")
    names = {}
    for what, value in given.items():
        if not isinstance(value, str) and not callable(value):
            raise CanvasError(f"{what} is a function, not {shown(value)}")
        names[what] = value if isinstance(value, str) else name_of(value) or give(value, what)
        find_by_name(names[what], what)
    return names


def _model_name(model: Any) -> str:
    if isinstance(model, str):
        return model
    if isinstance(model, nn.Module):
        kept = copied(model)
        return give(lambda: copied(kept), type(model).__name__)
    if not callable(model):
        raise CanvasError(
            f"model is a name, a torch.nn.Module or a callable that returns one, not "
            f"{shown(model)}"
        )
    return name_of(model) or give(model, getattr(model, "__name__", type(model).__name__))


def _task_name(task: Task) -> str:
    """A built-in one's own name; others are objects without a name that could be imported."""
    return task.name if BUILT_IN.get(task.name) is task else give(task, task.name)
