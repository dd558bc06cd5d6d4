"""One lock for what changes what calls share: exports, compilations, packing.  Calls of what is
ready take none.  A child of a fork gets a fresh one: a thread that held it is not there.
"""

from __future__ import annotations

import os
import threading


class _Lock:
    def __init__(self) -> None:
        self.renew()
        os.register_at_fork(after_in_child=self.renew)

    def renew(self) -> None:
        self._lock = threading.RLock()

    def __enter__(self) -> None:
        self._lock.acquire()

    def __exit__(self, *_: object) -> None:
        self._lock.release()


AT_WORK = _Lock()
