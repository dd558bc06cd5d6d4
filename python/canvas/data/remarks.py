"""What a search or a fit reports of its data while networks are trained, each thing once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .images_folder import unreadable

MUCH_WAITING = 0.2  # a share of the time that is worth a line


class Remarks:
    """`say` gets the lines about `source`."""

    def __init__(self, source: Any, say: Callable[[str], None]) -> None:
        self._source, self._say = source, say
        self._waited = False
        self._unreadable = ""

    def waited(self, share: float) -> None:
        """Name the data as the bottleneck where trainings wait for them for `share` of the time;
        and the files that could not be read.
        """
        if share >= MUCH_WAITING and not self._waited:
            self._waited = True
            self._say(
                f"{100 * share:.0f} % of the time of a training is waiting for data: more workers "
                "in the loader, or smaller files, make it faster"
            )
        found = unreadable(self._source)
        if found != self._unreadable:
            self._unreadable = found
            self._say(found)
