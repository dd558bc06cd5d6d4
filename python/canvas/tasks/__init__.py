"""What a network is trained for: its loss, its metric, and how far it is from another one."""

from .known import BUILT_IN, load_task
from .task import Task

__all__ = ["BUILT_IN", "Task", "load_task"]
