"""Buffers that forward gives another tensor, as `self.n = self.n + 1` does: the new ones become
outputs of the graph, behind those of the model.

PyTorch's export knows them in the outermost module alone, and writes into another one where a
buffer before them is None.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from torch import nn
from torch.nn.modules.module import register_module_buffer_registration_hook

from ..errors import CanvasError


class ReboundBuffers:
    """`names`: of the buffers, in the order of the outputs; `root` is a copy for the export."""

    def __init__(self, root: nn.Module) -> None:
        self.names: list[str] = []
        self._tables = [(path, module._buffers) for path, module in root.named_modules()]
        self._held: list[dict[str, Any]] = []
        vars(root)["register_buffer"] = _registered(root)
        root.register_forward_pre_hook(self._before, prepend=True)
        root.register_forward_hook(self._after)

    def _before(self, *_: Any) -> None:
        self._held = [dict(table) for _, table in self._tables]

    def _after(self, _module: Any, _given: Any, result: Any) -> Any:
        self.names, values = [], []
        for (path, table), held in zip(self._tables, self._held):
            for name in {**held, **table}:
                full = f"{path}.{name}" if path else name
                before, value = held.get(name), table.get(name)
                if value is before:
                    continue
                if value is None or before is None:
                    raise CanvasError(
                        f"the buffer '{full}' is a tensor only before a call of the model or only "
                        "after it, which a graph cannot say: let it be one always"
                    )
                self.names.append(full)
                values.append(value)
            table.clear()
            table.update(held)
        return (result, values) if values else None


@contextmanager
def none_rebound(model: nn.Module) -> Iterator[None]:
    """Raises CanvasError where code within gives a buffer of the model another tensor."""
    thread, seen = threading.get_ident(), []
    paths = {id(module._buffers): path for path, module in model.named_modules()}

    def registered(module: nn.Module, name: str, _: Any) -> None:
        path = paths.get(id(module._buffers))
        if path is not None and threading.get_ident() == thread:
            seen.append(f"{path}.{name}" if path else name)

    hook = register_module_buffer_registration_hook(registered)
    try:
        yield
    finally:
        hook.remove()
        if seen:
            raise CanvasError(
                f"the buffer '{seen[0]}' gets another tensor by a function that holds the model "
                "itself: let a method of the module do that"
            )


def _registered(root: nn.Module) -> Callable[..., None]:
    """`register_buffer` for what is set in the outermost module, unseen by PyTorch's export."""

    def register_buffer(name: str, tensor: Any, persistent: bool = True) -> None:
        root._buffers[name] = tensor
        if not persistent:
            root._non_persistent_buffers_set.add(name)

    return register_buffer
