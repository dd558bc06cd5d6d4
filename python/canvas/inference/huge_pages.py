"""Memory for weights and values, in large pages where there is much of it: code that streams
through ten megabytes of weights has to look up thousands of small ones.
"""

from __future__ import annotations

import contextlib
import ctypes
import mmap

ALIGNMENT = 64
PAGE = 2 << 20  # of a large page; less memory than that lies in small ones


class Memory:
    """`size` bytes from `address` on, a multiple of 64, not yet written to."""

    def __init__(self, size: int) -> None:
        alignment = PAGE if size >= PAGE else ALIGNMENT
        flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS
        self._mapped = mmap.mmap(-1, size + alignment, flags=flags)
        if size >= PAGE and hasattr(mmap, "MADV_HUGEPAGE"):
            with contextlib.suppress(OSError):  # a kernel without them
                self._mapped.madvise(mmap.MADV_HUGEPAGE)
        at = ctypes.addressof(ctypes.c_char.from_buffer(self._mapped))
        self.address = at + -at % alignment
