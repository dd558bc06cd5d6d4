"""A training that was left off after a part of its epochs, to go on later as if it never had been.

What is kept is all that the next epoch depends on, with what it belongs to and a checksum.  A file
that is missing, damaged or of another training is no error: the training then begins at its start
and comes to the same, only later.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from ..environment import versions
from ..errors import CanvasError
from . import checkpoint

if TYPE_CHECKING:
    from torch import Tensor


class Resumable(Protocol):
    """The part of Training (train.py) that is stored and restored: train.py imports this file."""

    done: int  # epochs

    def state(self) -> dict[str, Tensor]: ...

    def restore(self, state: Mapping[str, Tensor], done: int) -> None: ...


@dataclass(frozen=True)
class Kept:
    """The file of a training; `facts` are what the training follows from, as JSON has it."""

    path: Path
    facts: Mapping[str, Any]

    def store(self, training: Resumable) -> None:
        """Keep where `training` is; what cannot be written is trained again one day."""
        tensors = training.state()
        facts = {**self._facts(), "done": training.done, "checksum": _checksum(tensors)}
        try:
            checkpoint.write(self.path, tensors, facts, through_link=False)
        except (OSError, CanvasError):
            pass

    def restore(self, training: Resumable, until: int) -> None:
        """Bring `training`, which has not begun, to where it was left off, if that is known and
        before epoch `until`.
        """
        try:
            tensors, facts = checkpoint.read(self.path)
            done, checksum = int(facts.pop("done")), facts.pop("checksum")
        except (CanvasError, KeyError, TypeError, ValueError):
            return
        if 0 < done < until and facts == self._facts() and checksum == _checksum(tensors):
            training.restore(tensors, done)

    def _facts(self) -> dict[str, Any]:
        return {**self.facts, "versions": versions()}


def _checksum(tensors: Mapping[str, Tensor]) -> str:
    """sha256 of names and contents."""
    digest = hashlib.sha256()
    for name in sorted(tensors):
        value = tensors[name].detach().cpu().contiguous()
        digest.update(f"{name} {value.dtype} {list(value.shape)}\n".encode())
        digest.update(value.numpy().tobytes())
    return digest.hexdigest()
