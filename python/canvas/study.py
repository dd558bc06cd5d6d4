"""A study: everything that a search did, in one SQLite file that any SQLite tool can open.

    study       one row: the options as asked, seed, versions, machine, checksum of the data draw
    one row per index of the sampler: what became of it (trial, skipped, duplicate, unsolved)
    candidate   one row per network: the baseline, the controls, the finds; kernel and pack as
    text, results, failure epoch       the accuracy curve of each candidate task        what is
    to be done for a candidate and what a worker must offer to do it (accuracy, latency)

The driver is the only writer; readers may look at any time (WAL).  What is recorded is the
truth: rows that a killed driver left `running` are `new` again when the next one opens the
study, and draws are a pure function of (seed, index), so the same command goes on where the last
one ended.  A lock beside the file keeps a second driver out.

Only text and numbers are stored: code is always made again from a pack that the core has parsed
and checked.
"""

from __future__ import annotations

import fcntl
import json
import os
import platform
import shutil
import sqlite3
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from . import _core
from .errors import CanvasError
from .options import changed

FILE = "study.db"
LOCK = "study.lock"
APPLICATION = 0x436E7653  # "CnvS", so that `file` and we recognise a study
VERSION = 1

SCHEMA = """
CREATE TABLE study (
  id            INTEGER PRIMARY KEY CHECK (id = 1),
  options       TEXT NOT NULL,          -- JSON, every option with its value
  seed          INTEGER NOT NULL,
  data          TEXT NOT NULL,          -- what the images are, in words
  data_checksum TEXT NOT NULL,          -- sha256
  validation_images INTEGER NOT NULL,   -- in the split that scores are taken on
  targets       TEXT NOT NULL,          -- the layers that are replaced, one line each
  versions      TEXT NOT NULL,          -- JSON: canvas, torch, python
  machine       TEXT NOT NULL,          -- JSON: processor, cores, system
  created       REAL NOT NULL           -- seconds since 1970
) STRICT;
CREATE TABLE draw (
  idx     INTEGER PRIMARY KEY,
  outcome TEXT NOT NULL CHECK (outcome IN ('trial', 'skipped', 'duplicate', 'unsolved')),
  reason  TEXT NOT NULL DEFAULT ''
) STRICT;
CREATE TABLE candidate (
  id         INTEGER PRIMARY KEY,       -- in the order of training
  name       TEXT NOT NULL UNIQUE,      -- baseline, the control's name, or the index of the draw
  kind       TEXT NOT NULL CHECK (kind IN ('baseline', 'control', 'find')),
  number     INTEGER UNIQUE,            -- finds: 0, 1, 2, ... without the draws that gave none
  kernel     TEXT NOT NULL DEFAULT '',  -- kernel text; '' for the baseline
  pack       TEXT NOT NULL DEFAULT '',  -- kernel text with one line of sizes per target
  hash       TEXT UNIQUE,               -- of the kernel, equal for isomorphic ones
  layer_macs INTEGER,                   -- of the layers replaced: what the budget counts
  status     TEXT NOT NULL CHECK (status IN ('new', 'running', 'done', 'pruned', 'failed')),
  reason     TEXT NOT NULL DEFAULT '',  -- why failed or pruned: kind and sentence
  log        TEXT NOT NULL DEFAULT '',  -- last lines of output of a failed one
  macs       INTEGER,                   -- of the whole network, one image
  params     INTEGER,                   -- of the whole network
  val_accuracy REAL,                    -- after the last epoch trained, 0..1
  latency_ms REAL,                      -- one forward of the whole network, median
  latency_spread_ms REAL,               -- interquartile range
  speedup    REAL,                      -- median of unchanged/candidate over pairs
  seconds    REAL                       -- of training
) STRICT;
CREATE TABLE epoch (
  candidate INTEGER NOT NULL REFERENCES candidate (id),
  number    INTEGER NOT NULL,
  accuracy  REAL NOT NULL,
  loss      REAL NOT NULL,
  seconds   REAL NOT NULL,
  PRIMARY KEY (candidate, number)
) STRICT;
CREATE TABLE task (
  id        INTEGER PRIMARY KEY,
  candidate INTEGER NOT NULL REFERENCES candidate (id),
  kind      TEXT NOT NULL CHECK (kind IN ('accuracy', 'latency')),
  requires  TEXT NOT NULL,              -- JSON: what a worker must offer
  state     TEXT NOT NULL CHECK (state IN ('queued', 'running', 'done', 'failed')),
  attempt   INTEGER NOT NULL DEFAULT 0,
  reason    TEXT NOT NULL DEFAULT '',
  UNIQUE (candidate, kind)
) STRICT;
"""

REQUIRES = {"accuracy": '{"cores": 1}', "latency": '{"cores": 1, "exclusive": true}'}


@dataclass
class Candidate:
    """A row of the table `candidate`; the schema says what the columns mean."""

    id: int
    name: str
    kind: str
    number: int | None
    kernel: str
    pack: str
    hash: str | None
    layer_macs: int | None
    status: str
    reason: str
    log: str
    macs: int | None
    params: int | None
    val_accuracy: float | None
    latency_ms: float | None
    latency_spread_ms: float | None
    speedup: float | None
    seconds: float | None


class Study:
    """An open study; `Study.open` for the driver, `Study.read` for everybody else."""

    def __init__(self, folder: Path, database: sqlite3.Connection, lock: IO[str] | None) -> None:
        self.folder = folder
        self.database = database
        self.lock = lock

    @classmethod
    def open(cls, folder: Path, fresh: bool = False) -> Study:
        """Open the study in `folder` for writing, made if missing, emptied first if `fresh`.

        Raises CanvasError when another search runs there, or when the file there is not ours.
        """
        try:
            folder.mkdir(parents=True, exist_ok=True)
            lock = open(folder / LOCK, "a", encoding="utf-8")  # noqa: SIM115 (held while open)
        except OSError as error:
            raise CanvasError(f"'{folder}' cannot hold a study: {error.strerror}") from error
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            lock.close()
            raise CanvasError(
                f"another search is running in '{folder}': wait for it or choose another --out"
            ) from None
        try:
            path = folder / FILE
            if path.exists() and path.stat().st_size > 0:
                _check_header(path)
                _connect(path, "rw").close()
            if fresh:
                _remove_outputs(folder)
            database = _connect(path, "rwc")
            study = cls(folder, database, lock)
            if study.is_empty():
                study._create()
            study._requeue()
        except BaseException:
            lock.close()
            raise
        return study

    @classmethod
    def read(cls, folder: Path) -> Study:
        """Open the study in `folder` for reading only."""
        path = folder / FILE
        if not path.is_file():
            raise CanvasError(
                f"there is no study in '{folder}': name the --out folder of a search"
            )
        study = cls(folder, _connect(path, "ro"), None)
        if study.is_empty():
            study.close()
            raise CanvasError(f"the study in '{folder}' is empty: its search is only starting")
        return study

    def close(self) -> None:
        self.database.close()
        if self.lock is not None:
            self.lock.close()

    def __enter__(self) -> Study:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    # ---- the question -------------------------------------------------------------------------

    def is_empty(self) -> bool:
        return self._one("SELECT count(*) FROM sqlite_master") == 0

    def begin(
        self, options: Mapping[str, Any], data: str, checksum: str, images: int, targets: str
    ) -> bool:
        """Record the question, or see that it is the one recorded; True if the study was there
        already.

        Raises CanvasError that names the difference when options of the question, the images or
        the layers differ.
        """
        row = self.database.execute("SELECT options, data_checksum, targets FROM study").fetchone()
        if row is None:
            with self._transaction():
                self.database.execute(
                    "INSERT INTO study VALUES (1, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                    (
                        json.dumps(options),
                        options["seed"],
                        data,
                        checksum,
                        images,
                        targets,
                        json.dumps(versions()),
                        json.dumps(machine()),
                        time.time(),
                    ),
                )
            return False
        difference = changed(json.loads(row["options"]), options)
        if not difference and row["data_checksum"] != checksum:
            difference = "other images"
        if not difference and row["targets"] != targets:
            difference = "other layers to replace"
        if difference:
            raise CanvasError(
                f"the study in '{self.folder}' asks something else ({difference} now): "
                "choose another --out, or --fresh to start over"
            )
        return True

    def options(self) -> dict[str, Any]:
        row = self.database.execute("SELECT options FROM study").fetchone()
        return dict(json.loads(row["options"])) if row else {}

    def validation_images(self) -> int:
        """How many images accuracies are measured on."""
        row = self.database.execute("SELECT validation_images FROM study").fetchone()
        return 0 if row is None else int(row["validation_images"])

    # ---- draws and candidates -----------------------------------------------------------------

    def next_draw(self) -> int:
        """The first index that was never drawn."""
        return int(self._one("SELECT coalesce(max(idx) + 1, 0) FROM draw"))

    def draw_counts(self) -> dict[str, int]:
        rows = self.database.execute("SELECT outcome, count(*) AS n FROM draw GROUP BY outcome")
        return {row["outcome"]: row["n"] for row in rows}

    def record_draw(self, index: int, outcome: str, reason: str = "") -> None:
        """A draw that gave no candidate."""
        with self._transaction():
            self.database.execute("INSERT INTO draw VALUES (?, ?, ?)", (index, outcome, reason))

    def add(
        self,
        name: str,
        kind: str,
        kernel: str = "",
        pack: str = "",
        hash: str | None = None,
        layer_macs: int | None = None,
    ) -> None:
        """A new candidate with its accuracy task; a find is recorded as a draw in the same
        transaction.
        """
        with self._transaction():
            number = None
            if kind == "find":
                number = self._one("SELECT count(*) FROM candidate WHERE kind = 'find'")
                self.database.execute(
                    "INSERT INTO draw (idx, outcome) VALUES (?, 'trial')", (int(name),)
                )
            row = self.database.execute(
                "INSERT INTO candidate (name, kind, number, kernel, pack, hash, layer_macs, "
                "status) VALUES (?, ?, ?, ?, ?, ?, ?, 'new')",
                (name, kind, number, kernel, pack, hash, layer_macs),
            )
            self._add_task(row.lastrowid, "accuracy")

    def add_failed(self, name: str, kind: str, reason: str) -> None:
        """A control that cannot even be built: it is shown with its reason."""
        with self._transaction():
            self.database.execute(
                "INSERT INTO candidate (name, kind, status, reason) VALUES (?, ?, 'failed', ?)",
                (name, kind, reason),
            )

    def named_by_hash(self, hash: str) -> str | None:
        """The candidate that has this kernel already."""
        row = self.database.execute(
            "SELECT name FROM candidate WHERE hash = ?", (hash,)
        ).fetchone()
        return None if row is None else str(row["name"])

    def candidates(self, where: str = "1", *values: Any) -> list[Candidate]:
        rows = self.database.execute(f"SELECT * FROM candidate WHERE {where} ORDER BY id", values)
        return [Candidate(**row) for row in rows]

    def candidate(self, id: int) -> Candidate:
        return self.candidates("id = ?", id)[0]

    def curve(self, id: int) -> list[float]:
        """Validation accuracy by epoch, 0..1."""
        rows = self.database.execute(
            "SELECT accuracy FROM epoch WHERE candidate = ? ORDER BY number", (id,)
        )
        return [row["accuracy"] for row in rows]

    # ---- the course of a training -------------------------------------------------------------

    def started(self, id: int) -> None:
        """A training begins: from its first epoch, whatever an earlier attempt recorded."""
        with self._transaction():
            self.database.execute("DELETE FROM epoch WHERE candidate = ?", (id,))
            self.database.execute("UPDATE candidate SET status = 'running' WHERE id = ?", (id,))
            self._set_task(id, "accuracy", "running")

    def built(self, id: int, macs: int, params: int) -> None:
        with self._transaction():
            self.database.execute(
                "UPDATE candidate SET macs = ?, params = ? WHERE id = ?", (macs, params, id)
            )

    def epoch(self, id: int, number: int, accuracy: float, loss: float, seconds: float) -> None:
        with self._transaction():
            self.database.execute(
                "INSERT INTO epoch VALUES (?, ?, ?, ?, ?)", (id, number, accuracy, loss, seconds)
            )
            self.database.execute(
                "UPDATE candidate SET val_accuracy = ?, seconds = ? WHERE id = ?",
                (accuracy, seconds, id),
            )

    def finished(self, id: int, status: str, reason: str = "", log: str = "") -> None:
        """A training ended: done, pruned or failed."""
        with self._transaction():
            self.database.execute(
                "UPDATE candidate SET status = ?, reason = ?, log = ? WHERE id = ?",
                (status, reason, log, id),
            )
            if status == "failed":
                self.database.execute(
                    "UPDATE candidate SET val_accuracy = NULL WHERE id = ?", (id,)
                )
            self._set_task(id, "accuracy", "failed" if status == "failed" else "done", reason)
            if status == "done":
                self._add_task(id, "latency")

    def put_back(self, id: int) -> None:
        """A training was interrupted by us: it is new again and keeps nothing."""
        with self._transaction():
            self._put_back(id)

    def latency(self, id: int, ms: float, spread_ms: float, speedup: float) -> None:
        with self._transaction():
            self.database.execute(
                "UPDATE candidate SET latency_ms = ?, latency_spread_ms = ?, speedup = ? "
                "WHERE id = ?",
                (ms, spread_ms, speedup, id),
            )
            self._set_task(id, "latency", "done")

    def latency_failed(self, id: int, reason: str) -> None:
        with self._transaction():
            self._set_task(id, "latency", "failed", reason)

    # ---- inside -------------------------------------------------------------------------------

    def _create(self) -> None:
        self.database.executescript(
            f"BEGIN IMMEDIATE; PRAGMA application_id = {APPLICATION}; "
            f"PRAGMA user_version = {VERSION}; {SCHEMA} COMMIT;"
        )

    def _requeue(self) -> None:
        """A driver that was killed left rows running: they are to be done again."""
        with self._transaction():
            for row in self.database.execute(
                "SELECT id FROM candidate WHERE status = 'running'"
            ).fetchall():
                self._put_back(row["id"])
            self.database.execute("UPDATE task SET state = 'queued' WHERE state = 'running'")

    def _put_back(self, id: int) -> None:
        self.database.execute("DELETE FROM epoch WHERE candidate = ?", (id,))
        self.database.execute(
            "UPDATE candidate SET status = 'new', val_accuracy = NULL, seconds = NULL "
            "WHERE id = ?",
            (id,),
        )
        self.database.execute(
            "UPDATE task SET state = 'queued' WHERE candidate = ? AND kind = 'accuracy'", (id,)
        )

    def _add_task(self, id: int | None, kind: str) -> None:
        self.database.execute(
            "INSERT OR IGNORE INTO task (candidate, kind, requires, state) "
            "VALUES (?, ?, ?, 'queued')",
            (id, kind, REQUIRES[kind]),
        )

    def _set_task(self, id: int, kind: str, state: str, reason: str = "") -> None:
        self.database.execute(
            "UPDATE task SET state = ?, reason = ?, attempt = attempt + (? = 'running') "
            "WHERE candidate = ? AND kind = ?",
            (state, reason, state, id, kind),
        )

    def _one(self, query: str) -> Any:
        return self.database.execute(query).fetchone()[0]

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        if self.database.in_transaction:  # Ctrl-C came between two lines of this function
            self.database.execute("ROLLBACK")
        self.database.execute("BEGIN IMMEDIATE")
        try:
            yield
        except BaseException:
            self.database.execute("ROLLBACK")
            raise
        self.database.execute("COMMIT")


def _check_header(path: Path) -> None:
    """Refuse what SQLite would take for an empty database: a few bytes of something else."""
    try:
        with path.open("rb") as file:
            magic = file.read(16)
    except OSError as error:
        raise CanvasError(f"'{path}' cannot be read: {error.strerror}") from error
    if magic != b"SQLite format 3\0":
        raise CanvasError(f"'{path}' is not a study: another program made it")


def _connect(path: Path, mode: str) -> sqlite3.Connection:
    """Open `path` if it is a study of ours, or empty."""
    try:
        database = sqlite3.connect(
            f"{path.resolve().as_uri()}?mode={mode}", uri=True, timeout=30, isolation_level=None
        )
        database.row_factory = sqlite3.Row
        application = database.execute("PRAGMA application_id").fetchone()[0]
        version = database.execute("PRAGMA user_version").fetchone()[0]
        tables = database.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
    except sqlite3.Error as error:
        raise CanvasError(f"'{path}' is not a study: {error}") from error
    if tables and application != APPLICATION:
        database.close()
        raise CanvasError(f"'{path}' is not a study: another program made it")
    if tables and version != VERSION:
        database.close()
        raise CanvasError(
            f"the study '{path}' has format {version}, not {VERSION}: choose another --out"
        )
    if mode != "ro":
        database.execute("PRAGMA journal_mode = WAL")
        database.execute("PRAGMA synchronous = FULL")
        database.execute("PRAGMA busy_timeout = 30000")
        database.execute("PRAGMA foreign_keys = ON")
    return database


def _remove_outputs(folder: Path) -> None:
    """Remove what a search writes, and nothing else that may be in the folder."""
    for name in (FILE, FILE + "-wal", FILE + "-shm", "pareto.csv", "data.npz"):
        (folder / name).unlink(missing_ok=True)
    for find in folder.glob("find-[0-9]*"):
        if (find / "pack.txt").is_file():
            shutil.rmtree(find)


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
