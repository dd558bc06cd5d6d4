"""Whether a model is what it was when it was exported: its modules, the tensors they hold, and
that none is in training mode.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from itertools import chain
from typing import Any

from torch import Tensor, nn

from .. import _core
from ..errors import CanvasError
from .buffer_updates import alike
from .notices import notify
from .transforms import check_plain
from .watched_weights import WatchedWeights, check_counted


class ModelState:
    def __init__(self, model: nn.Module) -> None:
        self._modules = list(model.modules())
        self._vars = [module.__dict__ for module in self._modules]
        self._paths = dict(model.named_modules(remove_duplicate=False))
        self._tables = [
            table
            for module in self._modules
            for table in (module._modules, module._parameters, module._buffers)
        ]
        plain = [
            (vars(module), name, value)
            for module in self._modules
            for name, value in vars(module).items()
            if isinstance(value, Tensor)
        ]
        self._watched = [value for _, _, value in plain]
        self._watched_as = WatchedWeights(self._watched, [name for _, name, _ in plain])
        self._held = [*chain.from_iterable(map(dict.values, self._tables))]
        self._places: dict[int, list[int]] = {}
        for at, value in enumerate(self._held):
            self._places.setdefault(id(value), []).append(at)
        self._plain_tables, self._plain_names, self._plain = (
            [row[column] for row in plain] for column in range(3)
        )

    def check_training(self) -> None:
        if not _core.watch_key(self._vars, "training", False):
            name = next((p for p, m in self._paths.items() if m.training), "")
            where = f"its module '{name}'" if name else "the model"
            raise CanvasError(
                f"{where} is in training mode, and what is compiled is for inference: call "
                "model.eval() first"
            )

    def same(self) -> bool:
        if not _core.watch_values(self._tables, self._held):
            return False
        if not self._watched:
            return True
        found = map(dict.get, self._plain_tables, self._plain_names)
        same = all(map(operator.is_, found, self._plain))
        return same and self._watched_as.same(self._watched)

    def follow(self, before: Sequence[Any], after: Sequence[Any]) -> None:
        """Calls of what was compiled have put these tensors into the places of those; of another
        form they are a change, for which it is compiled anew.
        """
        for old, new in zip(before, after):
            places = self._places.get(id(old), [])
            if old is new or not places:
                continue
            if not alike(old, new):
                notify("canvas: a buffer has other sizes after a call: the next one compiles anew")
                continue
            for at in places:
                self._held[at] = new
            self._places[id(new)] = self._places.pop(id(old))

    def watch(self, names: Sequence[str]) -> None:
        """These tensors may not change either."""
        found = [tensor for name in names if (tensor := self.tensor(name)) is not None]
        if found:
            self._watched = [*self._watched, *found]
            self._watched_as = WatchedWeights(self._watched, [""] * len(self._watched))

    def tensor(self, name: str) -> Any:
        """The parameter or buffer of this name; None where the module has none of it."""
        path, _, last = name.rpartition(".")
        module = self._paths.get(path)
        return None if module is None else getattr(module, last, None)


def check_weights(model: nn.Module) -> None:
    for name, tensor in chain(model.named_parameters(), model.named_buffers()):
        check_plain(f"'{name}'", tensor)
        check_counted(name, tensor)
        if tensor.device.type != "cpu":
            raise CanvasError(
                f"'{name}' is on the device '{tensor.device}': compiled networks run on the CPU, "
                "move the model there with model.cpu()"
            )
