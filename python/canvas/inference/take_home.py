"""A compiled network as a folder that is built without Python: docs/networks.md."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

from .specialised import Specialised


def save_network(
    size: Specialised, weights: Sequence[Any], folder: str | os.PathLike[str]
) -> None:
    raise NotImplementedError
