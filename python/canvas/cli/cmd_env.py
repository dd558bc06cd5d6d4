"""canvas env: print versions and machine for a bug report.

It prints no names of people, hosts or folders; of the environment only the variables in THREADS.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import os
import platform
import shutil
import sqlite3
import subprocess
import sys

from .. import _core
from ..environment import machine
from .command import Parser

THREADS = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")
PACKAGES = ("numpy", "safetensors", "scikit-learn", "rich", "pillow", "matplotlib")


def run(words: list[str]) -> int:
    parser().parse_args(words)
    for name, value in facts().items():
        print(f"{name:12}  {value}")
    return 0


def parser() -> argparse.ArgumentParser:
    return Parser(
        prog="canvas env",
        example="canvas env",
        description="Print versions and machine for a bug report.",
    )


def facts() -> dict[str, str]:
    """{name: value}, each in one line; a missing part is named as missing."""
    here = machine()
    return {
        "canvas": _core.version(),
        "python": f"{platform.python_version()}, {platform.python_implementation()}",
        "torch": _torch(),
        "packages": ", ".join(f"{name} {_version(name)}" for name in PACKAGES),
        "sqlite": sqlite3.sqlite_version,
        "compiler": _compiler(),
        "processor": here["processor"],
        "cores": f"{here['cores']}, of them {_usable()} for this process",
        "memory": f"{os.sysconf('SC_PAGE_SIZE') * os.sysconf('SC_PHYS_PAGES') / 1e9:.1f} GB",
        "threads": ", ".join(f"{name}={os.environ.get(name, '')}" for name in THREADS),
        "system": here["system"],
    }


def _torch() -> str:
    try:
        import torch
    except ModuleNotFoundError:
        return "not installed"
    except (ImportError, OSError) as error:
        return f"cannot be imported: {' '.join(str(error).split())}"
    if not torch.cuda.is_available():
        return f"{torch.__version__}, no GPU"
    names = [torch.cuda.get_device_name(i) for i in range(torch.cuda.device_count())]
    return f"{torch.__version__}, CUDA {torch.version.cuda}, {', '.join(names)}"


def _version(package: str) -> str:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return "not installed"


def _compiler() -> str:
    name = shutil.which((os.environ.get("CC", "").split() or ["cc"])[0])
    if name is None:
        return "none"
    try:
        done = subprocess.run([name, "--version"], capture_output=True, text=True, timeout=10)
    except (OSError, subprocess.TimeoutExpired):
        return "cannot be run"
    return done.stdout.partition("\n")[0] or "says no version"


def _usable() -> int:
    if sys.platform == "linux":
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
