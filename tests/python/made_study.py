"""Studies as a search would leave them, made without training: for tests of what reads them."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from canvas.options import read_options
from canvas.study import Candidate, Study, final_epochs

# name, kind, status, validation accuracy, speed-up, MACs, params
CONTROLS = [
    ("baseline", "baseline", "done", 0.97, 1.01, 1000, 500),
    ("identity", "control", "done", 0.66, 1.64, 20, 15),
    ("1x1", "control", "done", 0.87, 0.9, 140, 80),
    ("grouped", "control", "done", 0.963, 0.5, 500, 250),
]
FINDS = [
    ("0", "find", "done", 0.95, 0.4, 480, 240),
    ("3", "find", "done", 0.9, 0.8, 300, 160),
    ("4", "find", "done", 0.89, 0.7, 310, 150),  # beaten by 3 but in params
    ("5", "find", "pruned", 0.2, None, 300, 160),
    ("7", "find", "failed", None, None, 300, 160),
]


def make_study(folder: Path, rows: Iterable[tuple[Any, ...]], **asked: Any) -> Path:
    """A study of these rows in `folder`, with 1000 validation and 400 test images."""
    options = read_options({"model": "resnet8", "data": "digits", **asked})
    with Study.open(folder) as study:
        study.begin(options, "digits", "0" * 64, (1000, 400), "t0 8 8 8 8 3 1 1\n")
        for name, kind, status, accuracy, speedup, macs, params in rows:
            number = int(name) if kind == "find" else None
            row = study.database.execute(
                "INSERT INTO network (name, kind, number, val_accuracy, speedup, latency_ms, "
                "macs, params) VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
                (name, kind, number, accuracy, speedup, speedup and 1 / speedup, macs, params),
            )
            study.database.execute(
                "INSERT INTO task (candidate, kind, requires, state, reason) "
                "VALUES (?, 'accuracy', '{}', ?, ?)",
                (row.lastrowid, status, "nan: made up" if status == "failed" else ""),
            )
    return folder


def add_finals(folder: Path, tests: dict[str, list[float]]) -> None:
    """Accuracies on the test split by name, one per seed."""
    with Study.open(folder) as study:
        epochs = final_epochs(study.options())
        for name, shares in tests.items():
            id = study.candidates("name = ?", name)[0].id
            study.database.executemany(
                "INSERT INTO final (candidate, seed, epochs, val_accuracy, test_accuracy, hits) "
                "VALUES (?, ?, ?, ?, ?, ?)",
                [
                    (id, seed, epochs, share, share, bits(share, 400))
                    for seed, share in enumerate(shares)
                ],
            )


def bits(share: float, images: int) -> bytes:
    """A bit per image, the first `share` of them set."""
    ones = round(share * images)
    text = ("1" * ones).ljust(-(-images // 8) * 8, "0")
    return int(text, 2).to_bytes(len(text) // 8, "big")


def row(
    name: str,
    kind: str,
    accuracy: float | None,
    macs: int,
    speedup: float | None = 1.0,
    status: str = "done",
    kernel: str = "",
    reason: str = "",
) -> Candidate:
    """A row as `Study.candidates` gives it; all of its MACs are of the layers replaced."""
    return Candidate(
        id=int(name) if name.isdigit() else -sum(map(ord, name)),
        name=name,
        kind=kind,
        number=None,
        kernel=kernel,
        pack="",
        hash=None,
        layer_macs=None if kind == "baseline" else macs,
        status=status,
        reason=reason,
        log="",
        macs=macs,
        params=macs // 10,
        val_accuracy=accuracy,
        latency_ms=None if speedup is None else 2 / speedup,
        latency_spread_ms=0.1,
        speedup=speedup,
        seconds=1.0,
    )
