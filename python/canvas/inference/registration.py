"""`torch.compile(model, backend="canvas")` finds the backend wherever canvas was imported, whether
its package is installed or not, and whatever of PyTorch is imported first.

PyTorch's list of backends is looked up when its module is imported: at once where it is, else by
a finder that waits for it.  Nothing of PyTorch is imported for that.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType
from typing import Any

NAME = "canvas"
REGISTRY = "torch._dynamo.backends.registry"


def register() -> None:
    registry = sys.modules.get(REGISTRY)
    if registry is not None:
        _enter(registry)
    elif not any(isinstance(finder, _Waiting) for finder in sys.meta_path):
        sys.meta_path.insert(0, _Waiting())


def canvas(graph: Any, example_inputs: Any, **more: Any) -> Any:
    """The backend, loaded at its first use."""
    from .torch_backend import canvas as backend

    return backend(graph, example_inputs, **more)


def _enter(registry: Any) -> None:
    if NAME not in registry._COMPILER_FNS:
        registry.register_backend(canvas, name=NAME)


class _Waiting(MetaPathFinder):
    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if name != REGISTRY:
            return None
        sys.meta_path.remove(self)
        spec = PathFinder.find_spec(name, path, target)
        if spec is not None and spec.loader is not None:
            spec.loader = _Entering(spec.loader)
        return spec


class _Entering(Loader):
    """The module's own loader, and then our row in it."""

    def __init__(self, loader: Any) -> None:
        self._loader = loader

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        return self._loader.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        self._loader.exec_module(module)
        _enter(module)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._loader, name)
