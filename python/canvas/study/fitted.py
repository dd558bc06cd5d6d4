"""What a fit writes into a study and reads again: screened kernels, fitted items, its networks.

Each is written in one transaction once it is there, so that a fit that is killed goes on after the
last of them.  Weights lie beside the study, in files named by their sha256 (outputs.py).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import astuple
from typing import Any

from .rows import FittedItem, ScreenedKernel
from .trainings import Trainings


class Fitted(Trainings):
    """A study that holds a fit."""

    def screened(self) -> list[ScreenedKernel]:
        """The screened kernels in the order tried."""
        rows = self.database.execute(
            "SELECT number, kernel, groups, hash, error, seconds FROM screened ORDER BY number"
        )
        return [ScreenedKernel(**row) for row in rows]

    def record_screened(self, row: ScreenedKernel) -> None:
        with self._transaction():
            self.database.execute(
                "INSERT OR REPLACE INTO screened VALUES (?, ?, ?, ?, ?, ?, ?)",
                (*astuple(row), self.session),
            )

    def fitted_items(self) -> list[FittedItem]:
        """The fitted items, in the order in which they were recorded."""
        rows = self.database.execute(
            "SELECT layer, operator, steps, seed, pack, error, divergence, native_seconds, macs, "
            "params, weights, reason, seconds FROM fit ORDER BY rowid"
        )
        return [FittedItem(**row) for row in rows]

    def record_fitted(self, row: FittedItem) -> None:
        with self._transaction():
            self.database.execute(
                "INSERT OR REPLACE INTO fit VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                (*astuple(row), self.session),
            )

    def add_networks(self, networks: Sequence[Mapping[str, Any]]) -> list[int]:
        """New networks of a fit with their accuracy tasks, all or none: their ids.  Each has name,
        kind and role, and may have budget, pack, hash, layer_macs and choice (layer -> operator).
        """
        ids = []
        with self._transaction():
            for network in networks:
                find = network["kind"] == "find"
                pack = network.get("pack", "")
                row = self.database.execute(
                    "INSERT INTO network (name, kind, number, role, budget, kernel, pack, hash, "
                    "layer_macs) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
                    (
                        network["name"],
                        network["kind"],
                        self.finds() if find else None,
                        network["role"],
                        network.get("budget", ""),
                        pack,
                        pack,
                        network.get("hash"),
                        network.get("layer_macs"),
                    ),
                )
                assert row.lastrowid is not None
                for layer, operator in network.get("choice", {}).items():
                    self.database.execute(
                        "INSERT INTO choice VALUES (?, ?, ?)", (row.lastrowid, layer, operator)
                    )
                self._add_task(row.lastrowid, "accuracy")
                ids.append(row.lastrowid)
        return ids

    def choice_of(self, id: int) -> dict[str, str]:
        """Layer -> the operator that it has in a network; {} for the teacher."""
        rows = self.database.execute(
            "SELECT layer, operator FROM choice WHERE candidate = ? ORDER BY rowid", (id,)
        )
        return {row["layer"]: row["operator"] for row in rows}

    def tuned(
        self,
        id: int,
        epochs: int,
        accuracy: float | None,
        divergences: tuple[float, float],
        weights: str,
        seconds: float,
        costs: tuple[int, int],
    ) -> None:
        """A network was tuned for so many epochs: its metric on validation, its divergences from
        the teacher before and after that, the sha256 of its weights, (MACs, parameters).  It is
        done.
        """
        with self._transaction():
            self.database.execute(
                "UPDATE network SET val_accuracy = ?, divergence = ?, tuned_divergence = ?, "
                "weights = ?, seconds = ?, "
                "macs = ?, params = ?, session = ? WHERE id = ?",
                (accuracy, *divergences, weights, seconds, *costs, self.session, id),
            )
            self.database.execute(
                "INSERT OR REPLACE INTO rung SELECT network.id, 2, seed, ?, "
                "coalesce(val_accuracy, 0), seconds, session FROM network JOIN study "
                "WHERE network.id = ?",
                (epochs, id),
            )
            self._set_task(id, "accuracy", "done")
            self._add_task(id, "latency")

    def tuned_epochs(self, id: int) -> int:
        """For how many epochs a network is tuned; 0 before the first."""
        return int(
            self._one(f"SELECT coalesce(max(epochs), 0) FROM rung WHERE candidate = {int(id)}")
        )
