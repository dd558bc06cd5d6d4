"""What the driver writes into a study beside its trainings, each in one transaction: the question,
sessions, latencies, finals.
"""

from __future__ import annotations

import json
import math
import sqlite3
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO, Any

from .. import _core
from ..environment import machine, versions
from ..errors import CanvasError
from ..options import OPTIONS
from ..stored_options import other_question
from .fitted import Fitted
from .model_record import other_network
from .outputs import write_long_options
from .queries import SAMPLER
from .rows import Audited, Timing
from .schema import BEFORE_4, VERSION


class Study(Fitted):
    """An open study; `Study.open` for the driver, `Study.read` for everybody else."""

    def __init__(self, folder: Path, database: sqlite3.Connection, lock: IO[bytes] | None) -> None:
        super().__init__(folder, database, lock)
        self.stopped = False

    def stop(self) -> None:
        """End the search after the trainings that are under way; for callbacks."""
        self.stopped = True

    def adopt(self, options: dict[str, Any], given: Mapping[str, Any]) -> None:
        """Put into `options` what a study did and the same command would not do now, where nothing
        is given: of an older format what it did before there was a choice, and the lag, whose
        default depends on the number of workers.
        """
        if given.get("lag") is None and "lag" in options:
            options["lag"] = self.options().get("lag", options["lag"])
        if (self.fact("format") or VERSION) < 4:
            stored = self.options()
            for name in (*BEFORE_4, "lag", "prune"):
                if given.get(name) is None and name in options:
                    options[name] = stored[name]

    def begin(
        self,
        options: Mapping[str, Any],
        data: str,
        checksum: str,
        images: tuple[int, int],
        targets: str,
        test_groups: Sequence[int] = (),
        model_record: str = "",
        task: Mapping[str, Any] | None = None,
    ) -> bool:
        """Record the question, or see that it is the one recorded, and begin a session; True if
        the study was there already.

        `images` are those of the validation and of the test split, `test_groups` says which of the
        latter show the same thing (a number for each; () = each its own), `model_record` is what
        the unchanged network does, `task` its name and metric (None: classification).  Raises
        CanvasError that names the difference when options of the question, the images, the layers
        or the network differ.
        """
        groups = json.dumps(list(test_groups)) if test_groups else ""
        asked = "" if task is None else json.dumps(task, sort_keys=True)
        row = self.database.execute("SELECT * FROM study").fetchone()
        if row is None:
            with self._transaction():
                self.database.execute(
                    "INSERT INTO study VALUES (1, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                    (
                        json.dumps(options),
                        options["seed"],
                        data,
                        checksum,
                        *images,
                        targets,
                        time.time(),
                        model_record,
                        groups,
                        VERSION,
                        asked,
                    ),
                )
                self._begin_session(options)
            return False
        difference = other_question(self.options(), options)
        if not difference and row["data_checksum"] != checksum:
            difference = "other images"
        if not difference and row["task"] != asked:
            difference = "another task or metric"
        if not difference and row["targets"] != targets:
            difference = "other layers to replace"
        if not difference and (how := other_network(row["model_record"], model_record)):
            difference = f"the code of the model has changed, {how}"
        if difference:
            kept = [row for row in OPTIONS if row.file and difference.startswith(f"{row.flag} ")]
            own = "".join(f"give {row.flag} '{self.folder / row.file}', " for row in kept)
            raise CanvasError(
                f"this is another search than the study in '{self.folder}' (now {difference}): "
                f"{own}choose another folder (out), or start over (fresh)"
            )
        with self._transaction():
            self.database.execute(
                "UPDATE study SET options = ?, validation_images = ?, test_images = ?, "
                "test_groups = ?, model_record = CASE model_record WHEN '' THEN ? "
                "ELSE model_record END",
                (json.dumps(options), *images, groups, model_record),
            )
            if self.machine() != machine() or self.timed_otherwise(options):
                self._forget_timings()
            self._begin_session(options)
        return True

    def _begin_session(self, options: Mapping[str, Any]) -> None:
        write_long_options(self.folder, options)
        made = {**versions(), SAMPLER: _core.SAMPLER_VERSION}
        row = self.database.execute(
            "INSERT INTO session (options, versions, machine, begun) VALUES (?, ?, ?, ?)",
            (json.dumps(options), json.dumps(made), json.dumps(machine()), time.time()),
        )
        self.session, self.session_since = row.lastrowid, time.monotonic()

    def session_ended(self, seconds: float) -> None:
        """The run of the driver has come to its report."""
        with self._transaction():
            self.database.execute(
                "UPDATE session SET seconds = ? WHERE id = ?", (seconds, self.session)
            )

    def _forget_timings(self) -> None:
        """Latencies of another machine do not compare with those to come: take them again."""
        self.database.execute("DELETE FROM timing")
        self.database.execute("UPDATE task SET state = 'queued' WHERE kind = 'latency'")
        self.database.execute(
            "UPDATE network SET latency_ms = NULL, latency_spread_ms = NULL, speedup = NULL, "
            "speedup_spread = NULL, engine = ''"
        )

    # ---- latency and finals --------------------------------------------------------------------

    def timing_started(self, id: int) -> None:
        """A latency is taken: for the first time, or for an engine that was not asked for then."""
        with self._transaction():
            self._add_task(id, "latency")
            self._set_task(id, "latency", "running")

    def timing_stopped(self, id: int) -> None:
        """It was interrupted by us: it is to be taken again."""
        with self._transaction():
            self._set_task(id, "latency", "queued")

    def latency(self, id: int, rows: Sequence[Timing]) -> None:
        """The engines of a candidate; the one of the least latency is what tables quote."""
        best = min(rows, key=lambda row: math.inf if row.latency_ms is None else row.latency_ms)
        with self._transaction():
            self._record_timings(id, rows)
            self.database.execute(
                "UPDATE network SET latency_ms = ?, latency_spread_ms = ?, speedup = ?, "
                "speedup_spread = ?, engine = ? WHERE id = ?",
                (
                    best.latency_ms,
                    best.spread_ms,
                    best.speedup,
                    best.speedup_spread,
                    best.engine,
                    id,
                ),
            )
            self._set_task(id, "latency", "done")

    def latency_failed(self, id: int, rows: Sequence[Timing], reason: str) -> None:
        """The candidate has no figures: its timings carry the reason."""
        with self._transaction():
            self._record_timings(id, rows)
            self._set_task(id, "latency", "failed", reason)

    def final_started(self, id: int, seed: int, epochs: int) -> None:
        """A finalist is trained from `seed`."""
        with self._transaction():
            self._add_task(id, "final", seed, epochs)
            self._set_task(id, "final", "running", seed=seed, epochs=epochs)

    def final_stopped(self, id: int, seed: int, epochs: int) -> None:
        """It was interrupted by us: it is to be trained again."""
        with self._transaction():
            self._set_task(id, "final", "queued", seed=seed, epochs=epochs)

    def final(
        self,
        id: int,
        seed: int,
        epochs: int,
        scores: tuple[float, bytes],
        seconds: float,
        test: float | None = None,
    ) -> float:
        """A finalist trained from `seed`: its metric on validation, a bit per test image, or none
        and the metric on the test split.  Returns that; raises ValueError where the bits are those
        of another number of images.
        """
        if test is None:
            test = share_of_hits(scores[1], int(self.fact("test_images") or 0))
        with self._transaction():
            self._set_task(id, "final", "done", seed=seed, epochs=epochs)
            self.database.execute(
                "INSERT OR REPLACE INTO final VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
                (id, seed, epochs, scores[0], test, scores[1], seconds, self.session),
            )
        return test

    def final_failed(self, id: int, seed: int, epochs: int, reason: str) -> None:
        """It has no scores and is not trained again."""
        with self._transaction():
            self._set_task(id, "final", "failed", reason, seed=seed, epochs=epochs)

    def record_audit(self, id: int, epochs: int, audited: Audited) -> None:
        """A rejected find was trained to the end."""
        with self._transaction():
            self.database.execute(
                "INSERT OR REPLACE INTO audit VALUES (?, ?, ?, ?, ?)",
                (id, epochs, audited.accuracy, audited.seconds, audited.reason),
            )

    def _record_timings(self, id: int, rows: Sequence[Timing]) -> None:
        for row in rows:
            self.database.execute(
                "INSERT OR REPLACE INTO timing (candidate, engine, latency_ms, spread_ms, "
                "speedup, speedup_spread, against, batch, reason, session, seconds, processor) "
                "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                (
                    id,
                    row.engine,
                    row.latency_ms,
                    row.spread_ms,
                    row.speedup,
                    row.speedup_spread,
                    row.against,
                    row.batch,
                    row.reason,
                    self.session,
                    row.seconds,
                    row.processor,
                ),
            )


def share_of_hits(hits: bytes, images: int) -> float:
    """The share of `images` that are right, of a bit for each; raises ValueError where the bits
    are those of another number of images.
    """
    spare = 8 * len(hits) - images
    if not images or not 0 <= spare < 8 or hits[-1] & ((1 << spare) - 1):
        raise ValueError(f"{len(hits)} bytes of hits for {images} images")
    return int.from_bytes(hits, "big").bit_count() / images
