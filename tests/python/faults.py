"""What test_faults.py needs to disturb searches: drivers that start quickly, what a study holds,
what is left running.
"""

from __future__ import annotations

import itertools
import json
import os
import re
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

HERE = Path(__file__).parent
ENVIRONMENT = {**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)}
ENVIRONMENT.pop("PYTHONUNBUFFERED", None)  # at its exit Python flushes what streams did not take
TIMEOUT = 240.0  # seconds for what takes one on a machine that has nothing else to do

QUESTION = {
    "--model": "faults_models:build",
    "--data": "digits",
    "--budget": "macs=0.5x",
    "--seed": "1",
    "--epochs": "1",
    "--trials": "10",
    "--workers": "1",
    "--finalists": "1",
    "--final-epochs": "1",
    "--final-seeds": "1",
    "--compile": "no",
}


def search(out: Path, *more: str) -> list[str]:
    """The words of a search: QUESTION, with the flags and values of `more` instead."""
    words = {**QUESTION, **dict(zip(more[::2], more[1::2]))}
    return ["search", "--deterministic", *itertools.chain(*words.items()), "--out", str(out)]


class Drivers:
    """The server of faults_server.py."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.process = subprocess.Popen(
            [sys.executable, str(HERE / "faults_server.py")],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**ENVIRONMENT, "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"},
            text=True,
        )
        self.count = 0

    def close(self) -> None:
        self.process.communicate()

    def ask(self, words: dict[str, Any]) -> Any:
        assert self.process.stdin and self.process.stdout
        self.process.stdin.write(json.dumps(words) + "\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())

    def start(self, words: list[str], **order: Any) -> Driver:
        """A driver of `canvas WORDS...`; `order` as faults_server.py says."""
        self.count += 1
        out, err = (str(self.folder / f"{self.count}.{name}") for name in ("out", "err"))
        order = {"out": out, "err": err, **order}
        return Driver(self, self.ask({"words": words, **order}), order["out"], order["err"])

    def run(self, words: list[str], **order: Any) -> Done:
        return self.start(words, **order).wait()


@dataclass
class Done:
    """How a command ended: exit code (negative: the signal) and what it wrote."""

    code: int
    out: str
    err: str

    def message(self) -> str:
        """The one message of a rejection."""
        assert self.code == 2, self
        lines = [line for line in self.err.splitlines() if line.startswith("canvas: ")]
        assert len(lines) == 1 and self.err.endswith(lines[0] + "\n"), self
        assert "Traceback" not in self.err + self.out, self
        return lines[0]


@dataclass
class Driver:
    """A command that runs."""

    drivers: Drivers
    pid: int
    out: str
    err: str

    def wait(self, seconds: float = TIMEOUT) -> Done:
        status = self.drivers.ask({"wait": self.pid, "seconds": seconds})
        if status is None:
            os.killpg(self.pid, signal.SIGKILL)
            self.drivers.ask({"wait": self.pid, "seconds": TIMEOUT})
            raise AssertionError(f"it hangs: {self.said()}")
        return Done(os.waitstatus_to_exitcode(status), text(self.out), self.said())

    def said(self) -> str:
        """What it wrote to standard error so far."""
        return text(self.err)

    def until(self, word: str, times: int = 1) -> None:
        """Until it has said `word` so often."""
        end = time.monotonic() + TIMEOUT
        while self.said().count(word) < times:
            assert time.monotonic() < end and self.runs(), self.said()
            time.sleep(0.01)

    def runs(self) -> bool:
        """Whether it has not come to its end."""
        return Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"


def text(place: str) -> str:
    path = Path(place)
    return path.read_text(errors="replace") if path.is_file() else ""


# ---- what a study holds -----------------------------------------------------------------------

# What two runs of one question share; times, latencies and sessions are not among it.
SHARED = {
    "study": "options, seed, data, data_checksum, validation_images, test_images, targets, format",
    "draw": "idx, outcome, reason",
    "candidate": "id, name, kind, number, budget, kernel, pack, hash, layer_macs, status, "
    "reason, log, macs, params, val_accuracy, origin, parents, rung",
    "item": "number, candidate, rung",
    "rung": "candidate, number, seed, epochs, accuracy",
    "epoch": "candidate, number, accuracy, loss",
    "final": "candidate, seed, epochs, val_accuracy, test_accuracy, hex(hits)",
    "timing": "candidate, engine, batch, reason, latency_ms IS NULL",
    "task": "candidate, kind, seed, epochs, requires, state, reason",
}


def rows(folder: Path) -> dict[str, list[tuple[Any, ...]]]:
    """All that a search found out, latency aside, by table."""
    with connection(folder) as database:
        return {
            table: database.execute(f"SELECT {columns} FROM {table} ORDER BY 1, 2").fetchall()
            for table, columns in SHARED.items()
        }


# What was trained, trained finally, timed, by which run of the search, with its own figures.
ENDED = """
  SELECT 'training', candidate.id, session, attempt, seconds FROM candidate
    JOIN task ON task.candidate = candidate.id AND task.kind = 'accuracy'
    WHERE status IN ('done', 'pruned', 'rejected', 'failed')
  UNION ALL SELECT 'final', candidate, session, seed, seconds FROM final
  UNION ALL SELECT 'timing', candidate, session, engine, latency_ms FROM timing
"""


def ended(folder: Path) -> set[tuple[Any, ...]]:
    """What a search need not do again; nothing where it has not begun."""
    try:
        return set(asked(folder, ENDED))
    except sqlite3.OperationalError:
        return set()


def asked(folder: Path, query: str) -> list[tuple[Any, ...]]:
    with connection(folder) as database:
        return database.execute(query).fetchall()


@contextmanager
def connection(folder: Path) -> Iterator[sqlite3.Connection]:
    database = sqlite3.connect(f"{(folder / 'study.db').as_uri()}?mode=rw", uri=True)
    try:
        yield database
    finally:
        database.close()


def files(folder: Path) -> dict[str, str]:
    """The finds beside a study: their files and what is in them."""
    found = folder.glob("find-*/*")
    return {str(path.relative_to(folder)): path.read_text() for path in found}


def half_written(folder: Path) -> list[str]:
    """Temporary files, and finds that are not whole."""
    wrong = [str(path) for path in folder.rglob(".*")]
    for find in folder.glob("find-*"):
        if {path.name for path in find.iterdir()} != {"kernel.txt", "kernel.py", "pack.txt"}:
            wrong.append(str(find))
    return wrong


# ---- what is left running ---------------------------------------------------------------------


def family(pid: int) -> list[int]:
    """The living processes that a driver started, directly or not, by the mark in their
    environment.
    """
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            words = (entry / "environ").read_bytes().split(b"\0")
        except OSError:
            continue
        if any(re.fullmatch(rb"CANVAS_CHILD=.*-%d-\w+:\d+" % pid, word) for word in words):
            found.append(int(entry.name))
    return found


def none_left(pid: int, seconds: float = 60.0) -> bool:
    """Whether all that a driver started is gone, soon."""
    end = time.monotonic() + seconds
    while family(pid) and time.monotonic() < end:
        time.sleep(0.02)
    return not family(pid)


def soon() -> float:
    """Five seconds on a machine that has nothing else to do."""
    return 5.0 * max(1.0, os.getloadavg()[0])


# ---- what can be broken -----------------------------------------------------------------------


@contextmanager
def small_disk(folder: Path, kilobytes: int) -> Iterator[None]:
    """A disk of its own at `folder`, which is made; skips the test where none may be mounted."""
    folder.mkdir()
    words = ["mount", "-t", "tmpfs", "-o", f"size={kilobytes}k", "canvas-faults", str(folder)]
    if subprocess.run(words, capture_output=True).returncode:
        pytest.skip("mounting a file system is not permitted")
    try:
        yield
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=True)


def remount(folder: Path, how: str) -> None:
    subprocess.run(["mount", "-o", f"remount,{how}", str(folder)], check=True)
