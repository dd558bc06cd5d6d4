"""Tasks, their spaces, and which config a template gets."""

from . import dispatcher, space
from .dispatcher import ApplyConfig, DispatchContext, FallbackContext
from .space import ConfigEntity, ConfigSpace, FallbackConfigEntity
from .task import (
    TASK_TABLE,
    Task,
    args_to_workload,
    create,
    deserialize_args,
    get_config,
    serialize_args,
    template,
)

__all__ = [
    "TASK_TABLE",
    "ApplyConfig",
    "ConfigEntity",
    "ConfigSpace",
    "DispatchContext",
    "FallbackConfigEntity",
    "FallbackContext",
    "Task",
    "args_to_workload",
    "create",
    "deserialize_args",
    "dispatcher",
    "get_config",
    "serialize_args",
    "space",
    "template",
]
