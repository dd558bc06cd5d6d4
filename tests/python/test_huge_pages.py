"""Memory for weights and values: where it begins, that all of it is there, and whose it is."""

from __future__ import annotations

import ctypes
import os
from pathlib import Path

import pytest

from canvas.inference.huge_pages import ALIGNMENT, PAGE, Memory


@pytest.mark.parametrize("size", [0, 1, 64, 4096, PAGE - 1, PAGE, 3 * PAGE + 5])
def test_all_of_it_may_be_written(size: int) -> None:
    memory = Memory(size)
    assert memory.address % (PAGE if size >= PAGE else ALIGNMENT) == 0
    ctypes.memset(memory.address, 7, size)
    assert ctypes.string_at(memory.address, size) == b"\7" * size


def test_a_child_of_a_fork_has_its_own() -> None:
    memory = Memory(2 * PAGE)
    ctypes.memset(memory.address, 1, 64)
    child = os.fork()
    if child == 0:
        ctypes.memset(memory.address, 2, 64)
        os._exit(0)
    os.waitpid(child, 0)
    assert ctypes.string_at(memory.address, 64) == b"\1" * 64


def test_much_of_it_lies_in_large_pages() -> None:
    wanted = Path("/sys/kernel/mm/transparent_hugepage/enabled")
    if not wanted.exists() or "[never]" in wanted.read_text():
        pytest.skip("the system has no large pages")
    before = huge()
    memory = Memory(8 * PAGE)
    ctypes.memset(memory.address, 1, 8 * PAGE)
    assert huge() - before >= 6 * PAGE, "of 8 pages some may be missing where memory is short"


def huge() -> int:
    lines = Path("/proc/self/smaps_rollup").read_text().splitlines()
    return sum(int(line.split()[1]) << 10 for line in lines if line.startswith("AnonHugePages:"))
