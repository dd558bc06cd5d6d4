"""Machines that code of a benchmark is bound for: the vectors and registers of an instruction set
of examples/machines, the caches of the machine that runs it.
"""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
CACHES = r"^(?:l1|l2|l3|cores|memory) .*\n"


def example(isa: str) -> str:
    """Of examples/machines. Code for 32-byte vectors is for x86-64-v3."""
    text = (ROOT / f"examples/machines/{isa}.txt").read_text()
    text = re.sub(r"^target .*\n", "", text, flags=re.M)
    return text + f"target {'x86-64-v3' if isa == 'avx2' else 'native'}\n"


def this() -> str:
    command = [str(ROOT / "build" / "canvas"), "machine"]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def narrowed(isa: str, machine: str) -> str:
    """The machine with the vectors and registers of an instruction set."""
    caches = "".join(re.findall(CACHES, machine, re.M))
    return re.sub(CACHES, "", example(isa), flags=re.M) + caches
