"""What a study is asked: its question, its runs, its candidates and what became of them."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from .. import _core
from ..metric import Metric
from ..options import json_object
from ..stored_options import stored_options
from .examine import Damaged, metric_of
from .outputs import FILE
from .rows import Audited, Candidate, Final, Item, Timing
from .store import FIND, Store

SAMPLER = "sampler"  # among the versions of a session
CLASSIFICATION = "classification"  # the task of a study that names none


class Queries(Store):
    """A study that is read."""

    def timed_otherwise(self, options: Mapping[str, Any]) -> bool:
        """Whether there are latencies of another batch size, of a CPU instead of a GPU or the
        other way.
        """
        batch, on_gpu = int(options.get("latency_batch", 1)), options.get("latency") == "cuda"
        kind = "NOT LIKE" if on_gpu else "LIKE"
        return bool(
            self._one(
                f"SELECT count(*) FROM timing WHERE batch <> {batch} OR engine {kind} 'gpu%'"
            )
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

    @property
    def metric(self) -> Metric:
        """What the networks are judged by."""
        return metric_of(self.database, self.folder / FILE)

    def task(self) -> str:
        """The name of the task; "" before the first run."""
        stored = self.fact("task")
        if stored is None:
            return ""
        return str(json_object(stored).get("name", "")) if stored else CLASSIFICATION

    def validation_images(self) -> int:
        """How many images accuracies are measured on."""
        return self.fact("validation_images") or 0

    def sessions(self) -> list[dict[str, Any]]:
        """The runs of the driver in their order: options, versions, machine, begun, seconds."""
        rows = self.database.execute("SELECT * FROM session ORDER BY id").fetchall()
        stored = ("options", "versions", "machine")
        with self._intact():
            return [
                {
                    "id": row["id"],
                    "begun": row["begun"],
                    "seconds": row["seconds"],
                    **{name: json_object(row[name]) for name in stored},
                }
                for row in rows
            ]

    def machine(self) -> dict[str, Any]:
        """The machine of the last session; {} before the first."""
        sessions = self.sessions()
        return sessions[-1]["machine"] if sessions else {}

    def sampler(self) -> int:
        """The version of the sampler of the first session, whose draws the study goes on with;
        that of this canvas before it.  Older studies do not record it: 1.
        """
        sessions = self.sessions()
        version = sessions[0]["versions"].get(SAMPLER, 1) if sessions else _core.SAMPLER_VERSION
        return version if isinstance(version, int) else 1

    def other_draws(self) -> str:
        """Why this canvas cannot draw more kernels for the study, as the begin of a message; "" if
        it can.
        """
        version = self.sampler()
        if version == _core.SAMPLER_VERSION:
            return ""
        return (
            f"the study in '{self.folder}' was begun with version {version} of the sampler, and "
            f"this canvas has version {_core.SAMPLER_VERSION}, which draws other kernels"
        )

    def processor_of_timing(self) -> float | None:
        """Seconds of processors that compiling and timing took; None where that is not known."""
        return self._one("SELECT sum(processor) FROM timing")

    def share_of_timing(self) -> float | None:
        """What compiling and timing took of the search's time, 0..1; None before the first run of
        the driver, and where an older canvas was killed.
        """
        row = self.database.execute(
            "SELECT count(*) = count(seconds) AS ended, sum(seconds) AS whole FROM session"
        ).fetchone()
        timed = self._one("SELECT coalesce(sum(seconds), 0) FROM timing")
        return float(timed) / row["whole"] if row["ended"] and row["whole"] else None

    def next_draw(self) -> int:
        """The first index that was never drawn."""
        return int(self._one("SELECT coalesce(max(idx) + 1, 0) FROM draw"))

    def finds(self) -> int:
        """How many draws have given a candidate."""
        return int(self._one("SELECT count(*) FROM network WHERE kind = 'find'"))

    def items(self) -> list[Item]:
        """All that was asked for, in order, with what came of it."""
        rows = self.database.execute(
            "SELECT item.number, item.candidate, name, item.rung, budget, origin, kernel, "
            "CASE WHEN accuracy IS NOT NULL THEN 'done' "
            "     WHEN state IN ('failed', 'rejected') THEN state "
            "     WHEN state = 'pruned' THEN 'failed' ELSE 'open' END AS state, accuracy "
            "FROM item JOIN network ON network.id = item.candidate "
            "JOIN task ON task.candidate = item.candidate "
            "     AND task.kind = CASE item.rung WHEN 3 THEN 'second' ELSE 'accuracy' END "
            "LEFT JOIN rung ON rung.candidate = item.candidate AND rung.number = item.rung "
            "ORDER BY item.number"
        )
        metric = self.metric
        return [
            Item(
                **{**row, "accuracy": None if (a := row["accuracy"]) is None else metric.merit(a)}
            )
            for row in rows
        ]

    def rungs(self, id: int) -> dict[int, float]:
        """The accuracy of each rung that a candidate has reached."""
        rows = self.database.execute(
            "SELECT number, accuracy FROM rung WHERE candidate = ? ORDER BY number", (id,)
        )
        return {row["number"]: row["accuracy"] for row in rows}

    def measurements(self) -> list[dict[str, Any]]:
        """What networks told before their training, in the order of training: candidate, name,
        number, budget, error, fingerprint.
        """
        rows = self.database.execute(
            "SELECT id AS candidate, name, number, budget, error, fingerprint "
            "FROM network ORDER BY id"
        )
        return [dict(row) for row in rows]

    def paces(self) -> list[float]:
        """Seconds of an epoch of each find that has come to a rung."""
        rows = self.database.execute(
            "SELECT rung.seconds / rung.epochs AS pace FROM rung "
            "JOIN network ON network.id = candidate AND kind = 'find' "
            "WHERE rung.seconds IS NOT NULL AND rung.epochs > 0"
        )
        return [row["pace"] for row in rows]

    def second_seeds(self, *states: str) -> list[int]:
        """The candidates whose training from the second seed is in one of `states`."""
        marks = ", ".join("?" * len(states))
        rows = self.database.execute(
            f"SELECT candidate FROM task WHERE kind = 'second' AND state IN ({marks}) "
            "ORDER BY candidate",
            states,
        )
        return [row["candidate"] for row in rows]

    def draw_counts(self) -> dict[str, int]:
        rows = self.database.execute("SELECT outcome, count(*) AS n FROM draw GROUP BY outcome")
        return {row["outcome"]: row["n"] for row in rows}

    def fruitless_draws(self) -> list[dict[str, Any]]:
        """The draws that gave no candidate: idx, outcome, reason."""
        rows = self.database.execute("SELECT * FROM draw WHERE outcome <> 'trial' ORDER BY idx")
        return [dict(row) for row in rows]

    def named_by_hash(self, hash: str, budget: str) -> str | None:
        """The candidate that has this kernel already, a control or one of the same budget."""
        row = self.database.execute(
            "SELECT name FROM candidate WHERE hash = ? AND (budget = ? OR kind = 'control')",
            (hash, budget),
        ).fetchone()
        return None if row is None else str(row["name"])

    def candidates(self, where: str = "1", *values: Any) -> list[Candidate]:
        """The rows that satisfy `where`, a condition in SQL, in the order of training."""
        rows = self.database.execute(
            f"SELECT * FROM candidate WHERE {where} ORDER BY id", values
        ).fetchall()
        for row in rows:
            if row["kind"] == "find" and not re.fullmatch(FIND, row["name"]):
                raise Damaged(self.folder / FILE, f"a find is called '{row['name']}'")
        tests, metric = (self._tests() if rows else {}), self.metric
        return [Candidate(**row, tests=tests.get(row["id"], ()), metric=metric) for row in rows]

    def _tests(self) -> dict[int, tuple[float, ...]]:
        """Test accuracies by candidate, of the finals that the last run asked for."""
        tests: dict[int, tuple[float, ...]] = {}
        for row in self.database.execute(
            "SELECT candidate, test_accuracy FROM final WHERE epochs = ? ORDER BY candidate, seed",
            (final_epochs(self.options()),),
        ):
            tests[row["candidate"]] = (*tests.get(row["candidate"], ()), row["test_accuracy"])
        return tests

    def select(
        self, kind: str = "", status: str | Sequence[str] = (), name: str = ""
    ) -> list[Candidate]:
        """The candidates of this kind, status (or one of several) and name, in the order of
        training; what is not given may be anything.
        """
        wanted = [status] if isinstance(status, str) else list(status)
        where = ["1", *["kind = ?"] * bool(kind), *["name = ?"] * bool(name)]
        if wanted:
            where.append(f"status IN ({', '.join('?' * len(wanted))})")
        values = [value for value in (kind, name, *wanted) if value]
        return self.candidates(" AND ".join(where), *values)

    def candidate(self, id: int) -> Candidate:
        return self.candidates("id = ?", id)[0]

    def curve(self, id: int) -> list[float]:
        """Validation accuracy by epoch, 0..1."""
        rows = self.database.execute(
            "SELECT accuracy FROM epoch WHERE candidate = ? ORDER BY number", (id,)
        )
        return [row["accuracy"] for row in rows]

    def processor_seconds(self, id: int) -> float | None:
        """Processor time of a training, by the clock where it was not taken; None before the first
        epoch.
        """
        row = self.database.execute(
            "SELECT max(coalesce(processor, seconds)) AS most FROM epoch WHERE candidate = ?",
            (id,),
        ).fetchone()
        return None if row["most"] is None else float(row["most"])

    def timings(self, id: int) -> list[Timing]:
        rows = self.database.execute(
            "SELECT engine, latency_ms, spread_ms, speedup, against, batch, reason, "
            "speedup_spread, seconds, processor, session FROM timing WHERE candidate = ? "
            "ORDER BY engine = 'eager' DESC, engine",
            (id,),
        )
        return [Timing(**row) for row in rows]

    def finals(self) -> dict[int, list[Final]]:
        """The finals by candidate, of those that the last run asked for, by rising seeds."""
        finals: dict[int, list[Final]] = {}
        for row in self.database.execute(
            "SELECT candidate, seed, hits, test_accuracy FROM final WHERE epochs = ? "
            "ORDER BY candidate, seed",
            (final_epochs(self.options()),),
        ):
            final = Final(row["seed"], row["hits"], row["test_accuracy"])
            finals.setdefault(row["candidate"], []).append(final)
        return finals

    def failed_finals(self) -> dict[int, int]:
        """How many finals failed, by candidate, of those that the last run asked for."""
        rows = self.database.execute(
            "SELECT candidate, count(*) AS n FROM task "
            "WHERE kind = 'final' AND state = 'failed' AND epochs = ? GROUP BY candidate",
            (final_epochs(self.options()),),
        )
        return {row["candidate"]: row["n"] for row in rows}

    def test_groups(self) -> list[int]:
        """A number per test image, equal for those that show the same thing."""
        images, stored = int(self.fact("test_images") or 0), self.fact("test_groups")
        if not stored:
            return list(range(images))
        try:
            groups = [int(group) for group in json.loads(stored)]
        except (TypeError, ValueError, RecursionError):
            groups = []
        if len(groups) != images:
            raise Damaged(self.folder / FILE, f"its test_groups are not {images} numbers")
        return groups

    def audited(self, epochs: int) -> dict[int, Audited]:
        """What audits have trained for so many epochs, by candidate."""
        rows = self.database.execute(
            "SELECT candidate, accuracy, seconds, reason FROM audit WHERE epochs = ?", (epochs,)
        )
        return {
            row["candidate"]: Audited(row["accuracy"], row["seconds"], row["reason"])
            for row in rows
        }

    def final_seeds(self, id: int, epochs: int) -> set[int]:
        """The seeds that a finalist was trained from already, failed ones included."""
        rows = self.database.execute(
            "SELECT seed FROM task WHERE candidate = ? AND kind = 'final' AND epochs = ? "
            "AND state IN ('done', 'failed')",
            (id, epochs),
        )
        return {row["seed"] for row in rows}


def final_epochs(options: Mapping[str, Any]) -> int:
    """How long finalists are trained; those of a fit as long as its best networks."""
    names = ("final_epochs", "longer", "epochs")
    return int(next((options[name] for name in names if options.get(name)), 0))
