"""The tasks that there are, by name.

    classification    accuracy; KL divergence of the classes
    segmentation      mean IoU; KL divergence of the classes of every pixel
    regression        root of the mean squared error; squared error over the teacher's variance
    multi-label       mean average precision; binary KL divergence of every label
    unlabelled        no metric; KL divergence of the classes

A new one is a file and a line in BUILT_IN, or an object of the user's.
"""

from __future__ import annotations

from typing import Any

from ..arguments import did_you_mean, shown
from ..errors import CanvasError
from ..imports import find_by_name, is_given
from .classification import CLASSIFICATION, UNLABELLED
from .multi_label import MULTI_LABEL
from .regression import REGRESSION
from .segmentation import SEGMENTATION
from .task import Task

BUILT_IN = {
    task.name: task for task in (CLASSIFICATION, SEGMENTATION, REGRESSION, MULTI_LABEL, UNLABELLED)
}


def load_task(given: Any) -> Task:
    """A Task as it is, a built-in one by its name, or `package.module:name` of the user's.

    Raises CanvasError with one message.
    """
    if isinstance(given, Task):
        return given
    if not isinstance(given, str):
        raise CanvasError(f"task is a canvas.Task or a name, not {shown(given)}")
    if given in BUILT_IN:
        return BUILT_IN[given]
    if ":" not in given and not is_given(given):
        raise CanvasError(
            f"no task is called '{given}'{did_you_mean(given, BUILT_IN)}; there are "
            f"{', '.join(BUILT_IN)}, or name your own as package.module:name"
        )
    task = find_by_name(given, "task")
    if not isinstance(task, Task):
        raise CanvasError(f"task '{given}' is {shown(task)}, it must be a canvas.Task")
    return task
