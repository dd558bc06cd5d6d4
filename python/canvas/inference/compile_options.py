"""The options of canvas.compile, which torch.compile takes for the backend "canvas", too."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ..arguments import PATH, SWITCH, TILES, WHOLE, checked, did_you_mean, shown
from ..errors import CanvasError

THREADS = 256
NAMES = ("threads", "log", "check", "winograd")


@dataclass(frozen=True)
class Options:
    threads: int = 1
    log: str | os.PathLike[str] | None = None
    check: bool = True
    winograd: bool | int = False


@checked(threads=WHOLE, log=PATH, check=SWITCH, winograd=TILES)
def options_of(
    threads: int = 1,
    log: str | os.PathLike[str] | None = None,
    check: bool = True,
    winograd: bool | int = False,
) -> Options:
    """Raises CanvasError with one message where a value is none of its option."""
    if not 1 <= threads <= THREADS:
        raise CanvasError(f"threads is from 1 to {THREADS}, not {threads}")
    return Options(threads, log, check, winograd)


def backend_options(given: Any, mode: Any) -> Options:
    """What torch.compile was given as `options` and `mode`."""
    if mode not in (None, "default"):
        raise CanvasError(f"the backend 'canvas' has no mode {shown(mode)}: leave it out")
    if given is not None and not isinstance(given, Mapping):
        raise CanvasError(f"options is a dict of {', '.join(NAMES)}, not {shown(given)}")
    for name in given or {}:
        if name not in NAMES:
            hint = did_you_mean(str(name), NAMES)
            raise CanvasError(f"the backend 'canvas' has no option {shown(name)}{hint}")
    return options_of(**(given or {}))
