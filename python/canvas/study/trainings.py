"""What the driver writes into a study about its trainings, each in one transaction.

What is recorded is the truth, and a task is the only state of a piece of work: one that a killed
driver left `running` is `queued` again when the next driver opens the study.

    add --> started --> epoch ... --> reached (a rung) --> promote --> started ...
                                      finished (pruned, rejected, failed)
    second_started --> second         the same from the second seed
"""

from __future__ import annotations

from collections.abc import Mapping

from .queries import Queries
from .rows import SECOND, WHOLE
from .schema import REQUIRES


class Trainings(Queries):
    """A study whose trainings are written down."""

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
        origin: str = "draw",
        parents: str = "",
        rung: int = WHOLE,
    ) -> int:
        """A new candidate with its accuracy task: its id.  A find is recorded as a draw and as the
        next item, to be trained to `rung`, in the same transaction.
        """
        with self._transaction():
            number = self.finds() if kind == "find" else None
            row = self.database.execute(
                "INSERT INTO network (name, kind, number, kernel, pack, hash, origin, parents, "
                "layer_macs, budget) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                (
                    name,
                    kind,
                    number,
                    kernel,
                    pack,
                    hash,
                    origin if kind == "find" else "",
                    parents,
                    layer_macs,
                    budget,
                ),
            )
            assert row.lastrowid is not None
            if kind == "find":
                self.database.execute(
                    "INSERT INTO draw (idx, outcome) VALUES (?, 'trial')", (int(name),)
                )
                self._add_item(row.lastrowid, rung)
            self._add_task(row.lastrowid, "accuracy")
            return row.lastrowid

    def promote(self, id: int, rung: int) -> None:
        """The next item: candidate `id` is to be trained to `rung`."""
        with self._transaction():
            self._add_item(id, rung)
            if rung == SECOND:
                self._add_task(id, "second")
            else:
                self._set_task(id, "accuracy", "queued")

    def add_second(self, id: int) -> None:
        """The baseline or a control is to be trained from the second seed, too."""
        with self._transaction():
            self._add_task(id, "second")

    def _add_item(self, id: int, rung: int) -> None:
        self.database.execute(
            "INSERT INTO item SELECT coalesce(max(number) + 1, 0), ?, ? FROM item", (id, rung)
        )

    def add_failed(self, name: str, kind: str, reason: str, budget: str = "") -> None:
        """A control that cannot even be built: it is shown with its reason."""
        with self._transaction():
            row = self.database.execute(
                "INSERT INTO network (name, kind, budget) VALUES (?, ?, ?)", (name, kind, budget)
            )
            self._add_task(row.lastrowid, "accuracy")
            self._set_task(row.lastrowid, "accuracy", "failed", reason)

    # ---- the course of a training -------------------------------------------------------------

    def started(self, id: int) -> None:
        """A training begins, or goes on after the last rung that it has reached: what an attempt
        has recorded beyond that is taken back.
        """
        with self._transaction():
            self._back_to_rung(id)
            self.database.execute(
                "UPDATE network SET session = ? WHERE id = ?", (self.session, id)
            )
            self._set_task(id, "accuracy", "running")

    def second_started(self, id: int) -> None:
        """A training from the second seed begins."""
        with self._transaction():
            self._set_task(id, "second", "running")

    def built(self, id: int, macs: int, params: int, memory_format: str = "") -> None:
        """The network stands; its trainings are all in this memory format ("": not said)."""
        with self._transaction():
            self.database.execute(
                "UPDATE network SET macs = ?, params = ?, memory_format = ? WHERE id = ?",
                (macs, params, memory_format, id),
            )

    def measured(self, id: int, error: float | None, fingerprint: str | None) -> None:
        """What the network told before its training."""
        with self._transaction():
            self.database.execute(
                "UPDATE network SET error = ?, fingerprint = ? WHERE id = ?",
                (error, fingerprint, id),
            )

    def settle(self, reasons: Mapping[int, str]) -> None:
        """No more promotions come: what waits at its first rung is pruned, with its reason."""
        with self._transaction():
            for id, reason in reasons.items():
                self._set_task(id, "accuracy", "pruned", reason)

    def epoch(
        self,
        id: int,
        number: int,
        accuracy: float,
        loss: float,
        seconds: float,
        processor: float | None = None,
    ) -> None:
        """An epoch ended, `seconds` by the clock and `processor` of its own time after the first
        began.
        """
        with self._transaction():
            self.database.execute(
                "INSERT OR REPLACE INTO epoch VALUES (?, ?, ?, ?, ?, ?)",
                (id, number, accuracy, loss, seconds, processor),
            )
            self.database.execute(
                "UPDATE network SET val_accuracy = ?, seconds = ? WHERE id = ?",
                (accuracy, seconds, id),
            )

    def reached(self, id: int, rung: int, epochs: int, seed: int, status: str) -> None:
        """A training from the search's seed has come to `rung`, after `epochs` epochs: it is
        waiting, or done.
        """
        with self._transaction():
            self.database.execute(
                "INSERT INTO rung SELECT id, ?, ?, ?, val_accuracy, seconds, session "
                "FROM network WHERE id = ?",
                (rung, seed, epochs, id),
            )
            self._set_task(id, "accuracy", status)
            if status == "done":
                self._add_task(id, "latency")

    def second(
        self, id: int, seed: int, epochs: int, accuracy: float | None, seconds: float, reason: str
    ) -> None:
        """A training from the second seed ended: its accuracy, or the reason why it has none."""
        with self._transaction():
            self._set_task(id, "second", "failed" if accuracy is None else "done", reason)
            if accuracy is not None:
                self.database.execute(
                    "INSERT INTO rung VALUES (?, ?, ?, ?, ?, ?, ?)",
                    (id, SECOND, seed, epochs, accuracy, seconds, self.session),
                )
                self.database.execute(
                    "UPDATE network SET val_accuracy = (SELECT avg(accuracy) FROM rung "
                    "WHERE candidate = id AND rung.number >= ?) WHERE id = ?",
                    (WHOLE, id),
                )

    def finished(self, id: int, status: str, reason: str = "", log: str = "") -> None:
        """A training ended: done, pruned, rejected or failed."""
        with self._transaction():
            if status == "failed":
                self.database.execute("UPDATE network SET val_accuracy = NULL WHERE id = ?", (id,))
            self._set_task(id, "accuracy", status, reason, log)
            if status == "done":
                self._add_task(id, "latency")

    def put_back(self, id: int, second: bool = False) -> None:
        """A training was interrupted by us: it is new again and keeps what its rungs gave."""
        with self._transaction():
            if second:
                self._set_task(id, "second", "queued")
            else:
                self._put_back(id)

    # ---- tasks ---------------------------------------------------------------------------------

    def recover(self) -> None:
        """A driver that was killed, or is about to end, left tasks running: they are to be done
        again.
        """
        running = "SELECT candidate FROM task WHERE kind = 'accuracy' AND state = 'running'"
        with self._transaction():
            for row in self.database.execute(running).fetchall():
                self._put_back(row["candidate"])
            self.database.execute("UPDATE task SET state = 'queued' WHERE state = 'running'")

    def _put_back(self, id: int) -> None:
        self._back_to_rung(id)
        self._set_task(id, "accuracy", "queued")

    def _back_to_rung(self, id: int) -> None:
        """Forget the epochs after the last rung that a training has reached, all before the
        first.
        """
        kept = self.database.execute(
            "SELECT epochs, accuracy, seconds, session FROM rung "
            "WHERE candidate = ? AND number <= ? ORDER BY number DESC",
            (id, WHOLE),
        ).fetchone()
        epochs, *figures = tuple(kept) if kept else (0, None, None, None)
        self.database.execute(
            "DELETE FROM epoch WHERE candidate = ? AND number >= ?", (id, epochs)
        )
        self.database.execute(
            "UPDATE network SET val_accuracy = ?, seconds = ?, session = ? WHERE id = ?",
            (*figures, id),
        )

    def _add_task(self, id: int | None, kind: str, seed: int = 0, epochs: int = 0) -> None:
        self.database.execute(
            "INSERT OR IGNORE INTO task (candidate, kind, seed, epochs, requires, state) "
            "VALUES (?, ?, ?, ?, ?, 'queued')",
            (id, kind, seed, epochs, REQUIRES[kind]),
        )

    def _set_task(
        self,
        id: int | None,
        kind: str,
        state: str,
        reason: str = "",
        log: str = "",
        seed: int = 0,
        epochs: int = 0,
    ) -> None:
        self.database.execute(
            "UPDATE task SET state = ?, reason = ?, log = ?, attempt = attempt + (? = 'running') "
            "WHERE candidate = ? AND kind = ? AND seed = ? AND epochs = ?",
            (state, reason, log, state, id, kind, seed, epochs),
        )
