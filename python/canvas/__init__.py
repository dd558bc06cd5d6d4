"""Canvas finds new neural operators for a network you already have.

    model, image = MyNet(), torch.randn(1, 3, 224, 224)
    conversion = canvas.convert(model, image)          # placeholders for its convolutions
    pack = canvas.sample(conversion.model, image, budget="macs=0.5x")
    canvas.replace(conversion.model, pack)             # train it as any other network

What is pure C (texts, costs, drawing kernels) works without torch, which is imported on first
need.
"""

from __future__ import annotations

import importlib
import sys
import types
from typing import TYPE_CHECKING, Any

from . import _core
from .errors import CanvasError, NoSolution
from .operators import operator_program
from .pack import KernelPack, load, save

if TYPE_CHECKING:
    from .compiled import Compiled, compile_program
    from .convert import Conversion, convert
    from .data import data_from, load_data
    from .driver import search
    from .export import export
    from .placeholder import Placeholder, get_placeholders, replace, sample, seed
    from .plot import plot_pareto
    from .replay import replay
    from .trainer import train_network

__version__ = _core.version()

__all__ = [
    "CanvasError",
    "Compiled",
    "Conversion",
    "KernelPack",
    "NoSolution",
    "Placeholder",
    "compile_program",
    "convert",
    "data_from",
    "export",
    "get_placeholders",
    "load",
    "load_data",
    "operator_program",
    "plot_pareto",
    "replace",
    "replay",
    "sample",
    "save",
    "search",
    "seed",
    "train_network",
]

# What is loaded on first need, most of it because it needs torch, by the module that holds it.
_LAZY = {
    "Compiled": "compiled",
    "compile_program": "compiled",
    "Conversion": "convert",
    "convert": "convert",
    "data_from": "data",
    "export": "export",
    "load_data": "data",
    "Placeholder": "placeholder",
    "get_placeholders": "placeholder",
    "replace": "placeholder",
    "sample": "placeholder",
    "seed": "placeholder",
    "search": "driver",
    "plot_pareto": "plot",
    "replay": "replay",
    "train_network": "trainer",
}


def __getattr__(name: str) -> Any:
    if name not in _LAZY:
        raise AttributeError(f"module 'canvas' has no attribute '{name}'")
    try:
        value = getattr(importlib.import_module(f".{_LAZY[name]}", __name__), name)
    except ModuleNotFoundError as error:
        if error.name != "torch":
            raise
        raise ImportError(
            f'canvas.{name} needs PyTorch, not installed here: pip install "torch>=2.6"'
        ) from None
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


class _Package(types.ModuleType):
    """Keeps `canvas.convert` the function: importing the submodule of that name would set it to
    the module.
    """

    def __setattr__(self, name: str, value: Any) -> None:
        if not (name in _LAZY and isinstance(value, types.ModuleType)):
            super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Package
