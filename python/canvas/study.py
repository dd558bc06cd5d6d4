"""A study: everything that a search did, in one SQLite file that any SQLite tool can open.

    study       one row: the question as asked, checksum of the images, layers to replace
    session     one row per run of the driver: versions, machine, all options of that run
    draw        one row per index of the sampler: trial, skipped, duplicate or unsolved
    candidate   one row per network (baseline, controls, finds): texts, results, failure
    epoch       the accuracy curve of each candidate
    timing      latency per candidate and engine (eager, compiled)
    final       a finalist trained once more from another seed, scored on the test split
    task        what is to be done, and what a worker must offer to do it

The driver is the only writer; readers may look at any time (WAL).  What is recorded is the truth:
rows that a killed driver left `running` are `new` again when the next one opens the study, and
draws are a pure function of (seed, index), so the same command goes on where the last one ended.
A lock beside the file keeps a second driver out.

Only text and numbers are stored: code is always made again from a pack that the core has parsed
and checked.  A study of an older format is brought up to date when a search opens it.
"""

from __future__ import annotations

import fcntl
import json
import os
import platform
import re
import shutil
import sqlite3
import statistics
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from . import _core
from .errors import CanvasError
from .files import temporary_name
from .options import changed, json_object, stored_options

FILE = "study.db"
LOCK = "study.lock"
APPLICATION = 0x436E7653  # "CnvS", so that `file` and we recognise a study
VERSION = 2

CANDIDATE = """
CREATE TABLE candidate (
  id         INTEGER PRIMARY KEY,       -- in the order of training
  name       TEXT NOT NULL UNIQUE,      -- baseline, the control's name, or the index of the draw
  kind       TEXT NOT NULL CHECK (kind IN ('baseline', 'control', 'find')),
  number     INTEGER UNIQUE,            -- finds: 0, 1, 2, ... without the draws that gave none
  budget     TEXT NOT NULL DEFAULT '',  -- what it was solved for; '' where no budget counts
  kernel     TEXT NOT NULL DEFAULT '',  -- kernel text; '' for the baseline
  pack       TEXT NOT NULL DEFAULT '',  -- kernel text with one line of sizes per target
  hash       TEXT,                      -- of the kernel, equal for isomorphic ones
  layer_macs INTEGER,                   -- of the layers replaced: what the budget counts
  status     TEXT NOT NULL CHECK (status IN ('new', 'running', 'done', 'pruned', 'failed')),
  reason     TEXT NOT NULL DEFAULT '',  -- why failed or pruned: kind and sentence
  log        TEXT NOT NULL DEFAULT '',  -- last lines of output of a failed one
  macs       INTEGER,                   -- of the whole network, one image
  params     INTEGER,                   -- of the whole network
  val_accuracy REAL,                    -- after the last epoch trained, 0..1
  latency_ms REAL,                      -- one forward of the whole network, its fastest engine
  latency_spread_ms REAL,               -- interquartile range
  speedup    REAL,                      -- against the fastest engine of the unchanged network
  engine     TEXT NOT NULL DEFAULT '',  -- of these figures: eager or compiled
  seconds    REAL,                      -- of training
  session    INTEGER,                   -- the run of the driver that trained it
  UNIQUE (hash, budget)
) STRICT;
"""

SESSION = """
CREATE TABLE session (
  id       INTEGER PRIMARY KEY,
  options  TEXT NOT NULL,               -- JSON, every option with its value
  versions TEXT NOT NULL,               -- JSON: canvas, torch, python, sqlite
  machine  TEXT NOT NULL,               -- JSON: processor, cores, system
  begun    REAL NOT NULL                -- seconds since 1970
) STRICT;
"""

FINAL = """
CREATE TABLE final (
  candidate INTEGER NOT NULL REFERENCES candidate (id),
  seed      INTEGER NOT NULL,
  epochs    INTEGER NOT NULL,
  status    TEXT NOT NULL CHECK (status IN ('done', 'failed')),
  reason    TEXT NOT NULL DEFAULT '',
  val_accuracy  REAL,                   -- 0..1
  test_accuracy REAL,                   -- 0..1
  seconds   REAL,
  session   INTEGER,
  PRIMARY KEY (candidate, seed, epochs)
) STRICT;
"""

TIMING = """
CREATE TABLE timing (
  candidate  INTEGER NOT NULL REFERENCES candidate (id),
  engine     TEXT NOT NULL CHECK (engine IN ('eager', 'compiled')),
  latency_ms REAL,                      -- one forward of the whole network, median
  spread_ms  REAL,                      -- interquartile range
  speedup    REAL,                      -- median over rounds of unchanged / this
  against    TEXT NOT NULL DEFAULT '',  -- the unchanged network's faster engine
  batch      INTEGER NOT NULL,
  reason     TEXT NOT NULL DEFAULT '',  -- why there are no figures
  session    INTEGER,
  PRIMARY KEY (candidate, engine)
) STRICT;
"""

SCHEMA = f"""
CREATE TABLE study (
  id            INTEGER PRIMARY KEY CHECK (id = 1),
  options       TEXT NOT NULL,          -- JSON, every option with its value
  seed          INTEGER NOT NULL,
  data          TEXT NOT NULL,          -- what the images are, in words
  data_checksum TEXT NOT NULL,          -- sha256
  validation_images INTEGER NOT NULL,   -- in the split that scores are taken on
  test_images   INTEGER NOT NULL,       -- in the split for finalists and controls
  targets       TEXT NOT NULL,          -- the layers that are replaced, one line each
  created       REAL NOT NULL           -- seconds since 1970
) STRICT;
{SESSION}
CREATE TABLE draw (
  idx     INTEGER PRIMARY KEY,
  outcome TEXT NOT NULL CHECK (outcome IN ('trial', 'skipped', 'duplicate', 'unsolved')),
  reason  TEXT NOT NULL DEFAULT ''
) STRICT;
{CANDIDATE}
CREATE TABLE epoch (
  candidate INTEGER NOT NULL REFERENCES candidate (id),
  number    INTEGER NOT NULL,
  accuracy  REAL NOT NULL,
  loss      REAL NOT NULL,
  seconds   REAL NOT NULL,
  PRIMARY KEY (candidate, number)
) STRICT;
{TIMING}
{FINAL}
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

# How a study of format N becomes one of format N + 1.  Latencies of format 1 were compared with
# the eager network alone: they are taken again.
UPGRADES = {
    1: f"""
ALTER TABLE candidate RENAME TO old_candidate;
{CANDIDATE}
INSERT INTO candidate (id, name, kind, number, budget, kernel, pack, hash, layer_macs, status,
                       reason, log, macs, params, val_accuracy, seconds, session)
  SELECT id, name, kind, number,
         CASE WHEN kind = 'find' OR name = 'grouped'
              THEN (SELECT json_extract(options, '$.budget') FROM study) ELSE '' END,
         kernel, pack, hash, layer_macs, status, reason, log, macs, params, val_accuracy, seconds,
         CASE WHEN status IN ('done', 'pruned', 'failed') THEN 1 END
  FROM old_candidate;
DROP TABLE old_candidate;
{SESSION}
INSERT INTO session SELECT 1, options, versions, machine, created FROM study;
{TIMING}
{FINAL}
ALTER TABLE study ADD COLUMN test_images INTEGER NOT NULL DEFAULT 0;
ALTER TABLE study DROP COLUMN versions;
ALTER TABLE study DROP COLUMN machine;
DELETE FROM task WHERE kind = 'latency';
INSERT INTO task (candidate, kind, requires, state)
  SELECT id, 'latency', '{{"cores": 1, "exclusive": true}}', 'queued'
  FROM candidate WHERE status = 'done';
"""
}

REQUIRES = {"accuracy": '{"cores": 1}', "latency": '{"cores": 1, "exclusive": true}'}


@dataclass
class Candidate:
    """A row of the table `candidate`; the schema says what the columns mean.

    `tests` are its accuracies on the test split as a finalist, 0..1, one per seed.
    """

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
    engine: str = ""
    budget: str = ""
    session: int | None = None
    tests: tuple[float, ...] = ()

    @property
    def test_mean(self) -> float | None:
        """Mean accuracy on the test split over the seeds, 0..1; None if it was no finalist."""
        return statistics.fmean(self.tests) if self.tests else None

    @property
    def test_spread(self) -> float | None:
        """Sample standard deviation over the seeds; None with fewer than two."""
        return statistics.stdev(self.tests) if len(self.tests) > 1 else None


@dataclass(frozen=True)
class Timing:
    """A row of the table `timing`: one engine of one candidate."""

    engine: str
    latency_ms: float | None
    spread_ms: float | None
    speedup: float | None
    against: str
    batch: int
    reason: str


class Study:
    """An open study; `Study.open` for the driver, `Study.read` for everybody else."""

    def __init__(self, folder: Path, database: sqlite3.Connection, lock: IO[str] | None) -> None:
        self.folder = folder
        self.database = database
        self.lock = lock
        self.session: int | None = None  # the run of the driver, once `begin` was called
        self.stopped = False
        self.place = _place(folder / FILE)

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
            _check_files(folder, fresh)
            if fresh:
                _remove_outputs(folder)
            study = cls(folder, _connect(folder / FILE, "rwc"), lock)
        except BaseException:
            lock.close()
            raise
        try:
            study._check_pages()
            if study.is_empty():
                study._create()
            study._upgrade()
            study._requeue()
        except BaseException:
            study.close()
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
        _check_header(path)
        study = cls(folder, _connect(path, "ro"), None)
        if study.is_empty():
            study.close()
            raise CanvasError(f"the study in '{folder}' is empty: its search is only starting")
        if (version := study._format()) != VERSION:
            study.close()
            raise CanvasError(
                f"the study '{path}' has the older format {version}: run its canvas search "
                "once more (--trials 1 will do) and it is brought up to date"
            )
        return study

    def close(self) -> None:
        self.database.close()
        if self.lock is not None:
            self.lock.close()

    def __enter__(self) -> Study:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def stop(self) -> None:
        """End the search after the trainings that are under way; for callbacks."""
        self.stopped = True

    # ---- the question -------------------------------------------------------------------------

    def is_empty(self) -> bool:
        return self._one("SELECT count(*) FROM sqlite_master") == 0

    def begin(
        self,
        options: Mapping[str, Any],
        data: str,
        checksum: str,
        images: tuple[int, int],
        targets: str,
    ) -> bool:
        """Record the question, or see that it is the one recorded, and begin a session; True if
        the study was there already.

        `images` are those of the validation and of the test split.  Raises CanvasError that names
        the difference when options of the question, the images or the layers differ.
        """
        row = self.database.execute("SELECT options, data_checksum, targets FROM study").fetchone()
        if row is None:
            with self._transaction():
                self.database.execute(
                    "INSERT INTO study VALUES (1, ?, ?, ?, ?, ?, ?, ?, ?)",
                    (
                        json.dumps(options),
                        options["seed"],
                        data,
                        checksum,
                        *images,
                        targets,
                        time.time(),
                    ),
                )
                self._begin_session(options)
            return False
        difference = changed(self.options(), options)
        if not difference and row["data_checksum"] != checksum:
            difference = "other images"
        if not difference and row["targets"] != targets:
            difference = "other layers to replace"
        if difference:
            raise CanvasError(
                f"the study in '{self.folder}' asks something else ({difference} now): "
                "choose another --out, or --fresh to start over"
            )
        with self._transaction():
            self.database.execute(
                "UPDATE study SET options = ?, validation_images = ?, test_images = ?",
                (json.dumps(options), *images),
            )
            if self.machine() != machine() or self.timed_otherwise(options):
                self._forget_timings()
            self._begin_session(options)
        return True

    def _begin_session(self, options: Mapping[str, Any]) -> None:
        row = self.database.execute(
            "INSERT INTO session (options, versions, machine, begun) VALUES (?, ?, ?, ?)",
            (json.dumps(options), json.dumps(versions()), json.dumps(machine()), time.time()),
        )
        self.session = row.lastrowid

    def timed_otherwise(self, options: Mapping[str, Any]) -> bool:
        """Whether there are latencies of another batch size."""
        batch = options["latency_batch"]
        return bool(self._one(f"SELECT count(*) FROM timing WHERE batch <> {int(batch)}"))

    def _forget_timings(self) -> None:
        """Latencies of another machine do not compare with those to come: take them again."""
        self.database.execute("DELETE FROM timing")
        self.database.execute(
            "UPDATE candidate SET latency_ms = NULL, latency_spread_ms = NULL, speedup = NULL, "
            "engine = ''"
        )

    def options(self) -> dict[str, Any]:
        """All options of the last run, with their values; {} before the first."""
        row = self.database.execute("SELECT options FROM study").fetchone()
        with self._intact():
            return stored_options(row["options"]) if row else {}

    def fact(self, name: str) -> Any:
        """A column of the table `study`; None before the first run."""
        row = self.database.execute("SELECT * FROM study").fetchone()
        return None if row is None else row[name]

    def validation_images(self) -> int:
        """How many images accuracies are measured on."""
        return self.fact("validation_images") or 0

    def sessions(self) -> list[dict[str, Any]]:
        """The runs of the driver in their order: options, versions, machine, begun."""
        rows = self.database.execute("SELECT * FROM session ORDER BY id").fetchall()
        stored = ("options", "versions", "machine")
        with self._intact():
            return [
                {
                    "id": row["id"],
                    "begun": row["begun"],
                    **{name: json_object(row[name]) for name in stored},
                }
                for row in rows
            ]

    def machine(self) -> dict[str, Any]:
        """The machine of the last session; {} before the first."""
        sessions = self.sessions()
        return sessions[-1]["machine"] if sessions else {}

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
        budget: str = "",
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
                "budget, status) VALUES (?, ?, ?, ?, ?, ?, ?, ?, 'new')",
                (name, kind, number, kernel, pack, hash, layer_macs, budget),
            )
            self._add_task(row.lastrowid, "accuracy")

    def add_failed(self, name: str, kind: str, reason: str, budget: str = "") -> None:
        """A control that cannot even be built: it is shown with its reason."""
        with self._transaction():
            self.database.execute(
                "INSERT INTO candidate (name, kind, budget, status, reason) "
                "VALUES (?, ?, ?, 'failed', ?)",
                (name, kind, budget, reason),
            )

    def named_by_hash(self, hash: str, budget: str) -> str | None:
        """The candidate that has this kernel already, a control or one of the same budget."""
        row = self.database.execute(
            "SELECT name FROM candidate WHERE hash = ? AND (budget = ? OR kind = 'control')",
            (hash, budget),
        ).fetchone()
        return None if row is None else str(row["name"])

    def candidates(self, where: str = "1", *values: Any) -> list[Candidate]:
        """The rows that satisfy `where`, in the order of training."""
        rows = self.database.execute(
            f"SELECT * FROM candidate WHERE {where} ORDER BY id", values
        ).fetchall()
        for row in rows:
            if row["kind"] == "find" and not re.fullmatch("[0-9]{1,18}", row["name"]):
                raise Damaged(self.folder / FILE, f"a find is called '{row['name']}'")
        tests = self._tests() if rows else {}
        return [Candidate(**row, tests=tests.get(row["id"], ())) for row in rows]

    def _tests(self) -> dict[int, tuple[float, ...]]:
        """Test accuracies by candidate, of the finals that the last run asked for."""
        tests: dict[int, tuple[float, ...]] = {}
        for row in self.database.execute(
            "SELECT candidate, test_accuracy FROM final WHERE status = 'done' AND epochs = ? "
            "ORDER BY candidate, seed",
            (final_epochs(self.options()),),
        ):
            tests[row["candidate"]] = (*tests.get(row["candidate"], ()), row["test_accuracy"])
        return tests

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
            self.database.execute(
                "UPDATE candidate SET status = 'running', session = ? WHERE id = ?",
                (self.session, id),
            )
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

    # ---- latency and finals --------------------------------------------------------------------

    def latency(self, id: int, rows: Sequence[Timing]) -> None:
        """The engines of a candidate; the fastest of them is what tables quote."""
        best = max(rows, key=lambda row: row.speedup or 0.0)
        with self._transaction():
            self._record_timings(id, rows)
            self.database.execute(
                "UPDATE candidate SET latency_ms = ?, latency_spread_ms = ?, speedup = ?, "
                "engine = ? WHERE id = ?",
                (best.latency_ms, best.spread_ms, best.speedup, best.engine, id),
            )
            self._set_task(id, "latency", "done")

    def latency_failed(self, id: int, rows: Sequence[Timing], reason: str) -> None:
        """The candidate has no figures: its timings carry the reason."""
        with self._transaction():
            self._record_timings(id, rows)
            self._set_task(id, "latency", "failed", reason)

    def timings(self, id: int) -> list[Timing]:
        rows = self.database.execute(
            "SELECT engine, latency_ms, spread_ms, speedup, against, batch, reason FROM timing "
            "WHERE candidate = ? ORDER BY engine DESC",
            (id,),
        )
        return [Timing(**row) for row in rows]

    def final(
        self,
        id: int,
        seed: int,
        epochs: int,
        scores: tuple[float, float] | None,
        seconds: float | None,
        reason: str = "",
    ) -> None:
        """A finalist trained from `seed`: (validation, test) accuracy, or why there are none."""
        validation, test = scores or (None, None)
        with self._transaction():
            self.database.execute(
                "INSERT OR REPLACE INTO final VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
                (
                    id,
                    seed,
                    epochs,
                    "done" if scores else "failed",
                    reason,
                    validation,
                    test,
                    seconds,
                    self.session,
                ),
            )

    def final_seeds(self, id: int, epochs: int) -> set[int]:
        """The seeds that a finalist was trained from already, failed ones included."""
        rows = self.database.execute(
            "SELECT seed FROM final WHERE candidate = ? AND epochs = ?", (id, epochs)
        )
        return {row["seed"] for row in rows}

    def _record_timings(self, id: int, rows: Sequence[Timing]) -> None:
        for row in rows:
            self.database.execute(
                "INSERT OR REPLACE INTO timing VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
                (
                    id,
                    row.engine,
                    row.latency_ms,
                    row.spread_ms,
                    row.speedup,
                    row.against,
                    row.batch,
                    row.reason,
                    self.session,
                ),
            )

    # ---- inside -------------------------------------------------------------------------------

    @contextmanager
    def _intact(self) -> Iterator[None]:
        """Around what reads stored text: what is wrong with it is wrong with the study."""
        try:
            yield
        except Damaged:
            raise
        except CanvasError as error:
            raise Damaged(self.folder / FILE, str(error)) from None

    def _check_pages(self) -> None:
        """Reject a file that is damaged, before anything is added to it."""
        try:
            found = str(self._one("PRAGMA quick_check(1)")).splitlines()[-1]
        except sqlite3.OperationalError:  # the disk, not the file
            raise
        except sqlite3.DatabaseError as error:
            found = str(error)
        if found != "ok":
            raise Damaged(self.folder / FILE, found)

    def _create(self) -> None:
        self.database.executescript(
            f"BEGIN IMMEDIATE; PRAGMA application_id = {APPLICATION}; "
            f"PRAGMA user_version = {VERSION}; {SCHEMA} COMMIT;"
        )

    def _format(self) -> int:
        return int(self._one("PRAGMA user_version"))

    def _upgrade(self) -> None:
        """Bring an older format up to date, all of it or nothing."""
        if self._format() == VERSION:
            return
        self.database.execute("PRAGMA foreign_keys = OFF")
        self.database.execute("PRAGMA legacy_alter_table = ON")  # references keep their name
        steps = "".join(UPGRADES[version] for version in range(self._format(), VERSION))
        try:
            self.database.executescript(
                f"BEGIN IMMEDIATE; {steps} PRAGMA user_version = {VERSION}; COMMIT;"
            )
        except sqlite3.Error as error:
            if self.database.in_transaction:
                self.database.execute("ROLLBACK")
            raise CanvasError(
                f"the study in '{self.folder}' cannot be brought up to format {VERSION}: {error}"
            ) from error
        self.database.execute("PRAGMA legacy_alter_table = OFF")
        self.database.execute("PRAGMA foreign_keys = ON")

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
            "UPDATE candidate SET status = 'new', val_accuracy = NULL, seconds = NULL, "
            "session = NULL WHERE id = ?",
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
        if _place(self.folder / FILE) != self.place:  # what is written now would be lost
            raise CanvasError(f"the study in '{self.folder}' was removed while the search ran")
        self.database.execute("BEGIN IMMEDIATE")
        try:
            yield
            self.database.execute("COMMIT")
        except BaseException:
            if self.database.in_transaction:  # a full disk may have ended it already
                self.database.execute("ROLLBACK")
            raise


class Damaged(CanvasError):
    """A study that cannot be read any more: `how` says why."""

    def __init__(self, path: Path, how: str) -> None:
        super().__init__(
            f"the study '{path}' is damaged ({how}): put back a copy, or choose another --out, "
            "or --fresh to start over"
        )


@contextmanager
def writing(folder: Path) -> Iterator[None]:
    """Around what writes a study or beside it: one sentence where that cannot be done."""
    try:
        yield
    except sqlite3.Error as error:
        raise CanvasError(f"the study in '{folder}' cannot be written: {error}") from error
    except OSError as error:
        raise CanvasError(
            f"the study in '{folder}' cannot be written: {error.strerror or error}"
        ) from error


def _place(path: Path) -> tuple[int, int] | None:
    """Which file stands at `path` now; None where none does."""
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_dev, status.st_ino


def _check_files(folder: Path, fresh: bool) -> None:
    """Reject what is no study of ours, and, unless it goes anyway, one that is damaged."""
    path, log = folder / FILE, folder / (FILE + "-wal")
    if not path.exists():
        log.unlink(missing_ok=True)  # of a study that was removed: SQLite would drop it, too
        return
    if path.stat().st_size == 0:
        if not fresh and log.exists() and log.stat().st_size > 0:
            raise Damaged(path, "it is empty, and what is in its -wal would be lost")
        return
    ours = _check_header(path)
    try:
        _connect(path, "rw").close()
    except Damaged:
        if not (ours and fresh):
            raise


def _check_header(path: Path) -> bool:
    """Reject what SQLite would take for an empty database: a few bytes of something else.  True
    if these bytes alone show that the study is ours.
    """
    try:
        with path.open("rb") as file:
            header = file.read(72)
    except OSError as error:
        raise CanvasError(f"'{path}' cannot be read: {error.strerror}") from error
    if header[:16] != b"SQLite format 3\0":
        raise CanvasError(f"'{path}' is not a study: another program made it")
    return header[68:] == APPLICATION.to_bytes(4, "big")


def _connect(path: Path, mode: str) -> sqlite3.Connection:
    """Open `path` if it is a study of ours, or empty; mode is ro, rw or rwc."""
    database = _database(path, mode)
    try:
        application = database.execute("PRAGMA application_id").fetchone()[0]
        version = database.execute("PRAGMA user_version").fetchone()[0]
        tables = database.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
        if tables and application != APPLICATION:
            raise CanvasError(f"'{path}' is not a study: another program made it")
        if tables and not 1 <= version <= VERSION:
            raise CanvasError(
                f"the study '{path}' has format {version}, this canvas knows 1 to {VERSION}: "
                "use a newer canvas or choose another --out"
            )
        if mode != "ro":
            database.execute("PRAGMA journal_mode = WAL")
            database.execute("PRAGMA synchronous = FULL")
            database.execute("PRAGMA busy_timeout = 30000")
            database.execute("PRAGMA foreign_keys = ON")
    except sqlite3.OperationalError as error:
        database.close()
        raise CanvasError(f"the study '{path}' cannot be opened: {error}") from error
    except sqlite3.DatabaseError as error:
        database.close()
        raise Damaged(path, str(error)) from error
    except BaseException:
        database.close()
        raise
    return database


def _database(path: Path, mode: str) -> sqlite3.Connection:
    """Connect to `path`.  Where nothing may be written, SQLite cannot make the -shm file that it
    wants beside a study; one without a -wal file is complete and is read as it stands.
    """
    address = f"{path.resolve().as_uri()}?mode={mode}"
    complete = not path.with_name(path.name + "-wal").exists()
    if mode == "ro" and complete and not os.access(path.parent, os.W_OK):
        address += "&immutable=1"
    try:
        database = sqlite3.connect(address, uri=True, timeout=30, isolation_level=None)
    except sqlite3.Error as error:
        raise CanvasError(f"the study '{path}' cannot be opened: {error}") from error
    database.row_factory = sqlite3.Row
    return database


def _remove_outputs(folder: Path) -> None:
    """Remove what a search writes, and nothing else that may be in the folder; the study last,
    so that a kill on the way leaves no find without its study.
    """
    for find in [*folder.glob("find-[0-9]*"), *folder.glob(".find-[0-9]*")]:
        if (find / "pack.txt").is_file() or find.name.startswith("."):
            shutil.rmtree(find)
    for name in ("pareto.csv", "data.npz", FILE, FILE + "-wal", FILE + "-shm"):
        (folder / name).unlink(missing_ok=True)
        (folder / temporary_name(name)).unlink(missing_ok=True)


def final_epochs(options: Mapping[str, Any]) -> int:
    """How long finalists are trained."""
    return int(options.get("final_epochs") or options.get("epochs") or 0)


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
