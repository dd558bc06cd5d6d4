"""What made a result, and where: versions and machine, as they stand beside every figure."""

from __future__ import annotations

import os
import platform
import sqlite3
import sys
from pathlib import Path
from typing import Any

from . import _core


def versions() -> dict[str, str]:
    """What made the results: canvas, torch, python, sqlite."""
    import torch

    return {
        "canvas": _core.version(),
        "torch": str(torch.__version__),
        "python": platform.python_version(),
        "sqlite": sqlite3.sqlite_version,
    }


def machine() -> dict[str, Any]:
    """Where the results were made."""
    processor = platform.processor() or platform.machine()
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                processor = line.partition(":")[2].strip()
                break
    except OSError:
        pass
    return {
        "processor": processor,
        "cores": os.cpu_count(),
        "system": platform.platform(),
        "os": sys.platform,
    }
