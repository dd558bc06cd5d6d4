"""Canvas finds new neural operators for a network you already have.

    model, image = MyNet(), torch.randn(1, 3, 224, 224)
    conversion = canvas.convert(model, image)          # placeholders for its convolutions
    pack = canvas.sample(conversion.model, image, budget="macs=0.5x")
    canvas.replace(conversion.model, pack)             # train it as any other network

Functions that only need the C core (texts, costs, drawing kernels) work without torch, which is
imported on first use.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

try:
    from . import _core
except ImportError as error:
    import pathlib

    if list(pathlib.Path(__file__).parent.glob("_core.*.so")):
        raise
    raise ImportError(
        f"canvas._core, its part in C, is not built in '{pathlib.Path(__file__).parent}': "
        "run ./dev build there, or pip install ."
    ) from error

from .errors import CanvasError, NoSolution, missing
from .inference.registration import register
from .nn.pack import KernelPack, load, save
from .operators import operator_program

if TYPE_CHECKING:
    from .data import data_from, load_data, stream
    from .deploy.export import export
    from .deploy.trainer import train_network
    from .fitting.fit import Fit, fit
    from .inference.compiled_network import CompiledNetwork, compile
    from .nn.compiled import Compiled, compile_program
    from .nn.convert import Conversion, convert
    from .nn.finalize import finalize
    from .nn.fold import fold
    from .nn.placeholder import Placeholder, get_placeholders, replace, sample, seed
    from .nn.published import (
        Conv2D,
        Identity,
        debug_sample,
        empty_sample,
        get_state_dict,
        init_weights,
        remove_cache,
        restore_from_state_dict,
    )
    from .nn.tuned import Tuned, tune
    from .reporting.callbacks import EpochEvent
    from .reporting.page import report
    from .reporting.plot import plot_pareto
    from .runner.ask_tell import AskedStudy, create_study
    from .runner.driver import search
    from .runner.replay import replay
    from .tasks import Task
    from .training.weights_file import load_weights

__version__ = _core.version()
register()  # torch.compile(backend="canvas")

__all__ = [
    "AskedStudy",
    "CanvasError",
    "Compiled",
    "CompiledNetwork",
    "Conv2D",
    "Conversion",
    "EpochEvent",
    "Fit",
    "Identity",
    "KernelPack",
    "NoSolution",
    "Placeholder",
    "Task",
    "Tuned",
    "compile",
    "compile_program",
    "convert",
    "create_study",
    "data_from",
    "debug_sample",
    "empty_sample",
    "export",
    "finalize",
    "fit",
    "fold",
    "get_placeholders",
    "get_state_dict",
    "init_weights",
    "load",
    "load_data",
    "load_weights",
    "operator_program",
    "plot_pareto",
    "remove_cache",
    "replace",
    "replay",
    "report",
    "restore_from_state_dict",
    "restore_kept",
    "sample",
    "save",
    "search",
    "seed",
    "stream",
    "train_network",
    "tune",
]

# Names that are imported on first use, mostly because they need torch, and their modules.
_LAZY = {
    "Compiled": "nn.compiled",
    "CompiledNetwork": "inference.compiled_network",
    "compile": "inference.compiled_network",
    "compile_program": "nn.compiled",
    "Conversion": "nn.convert",
    "convert": "nn.convert",
    "data_from": "data",
    "export": "deploy.export",
    "finalize": "nn.finalize",
    "EpochEvent": "reporting.callbacks",
    "Fit": "fitting.fit",
    "fit": "fitting.fit",
    "fold": "nn.fold",
    "load_data": "data",
    "stream": "data",
    "load_weights": "training.weights_file",
    "Placeholder": "nn.placeholder",
    "restore_from_state_dict": "nn.published",
    "remove_cache": "nn.published",
    "init_weights": "nn.published",
    "get_state_dict": "nn.published",
    "empty_sample": "nn.published",
    "debug_sample": "nn.published",
    "Identity": "nn.published",
    "Conv2D": "nn.published",
    "get_placeholders": "nn.placeholder",
    "replace": "nn.placeholder",
    "restore_kept": "nn.convert",
    "sample": "nn.placeholder",
    "seed": "nn.placeholder",
    "search": "runner.driver",
    "AskedStudy": "runner.ask_tell",
    "create_study": "runner.ask_tell",
    "plot_pareto": "reporting.plot",
    "replay": "runner.replay",
    "report": "reporting.page",
    "train_network": "deploy.trainer",
    "Task": "tasks",
    "Tuned": "nn.tuned",
    "tune": "nn.tuned",
}


def __getattr__(name: str) -> Any:
    if name not in _LAZY:
        raise AttributeError(f"module 'canvas' has no attribute '{name}'")
    try:
        value = getattr(importlib.import_module(f".{_LAZY[name]}", __name__), name)
    except ModuleNotFoundError as error:
        if not (message := missing(f"canvas.{name}", error)):
            raise
        raise ImportError(message) from None
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
