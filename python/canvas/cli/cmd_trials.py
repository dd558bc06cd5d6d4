"""canvas trials: every candidate of a study, whatever became of it."""

from __future__ import annotations

import argparse
import csv
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ..text import printable
from .command import Parser

TRIAL_COLUMNS = (
    "candidate",
    "kernel",
    "status",
    "val_accuracy",
    "kind",
    "primitives",
    "macs",
    "params",
    "latency_ms",
    "speedup",
    "seconds",
    "reason",
)


def run(words: list[str]) -> int:
    given = parser().parse_args(words)
    rows = trial_rows(Path(given.folder))
    if given.format == "json":
        print(json.dumps(rows, indent=1))
    elif given.format == "csv":
        writer = csv.DictWriter(
            sys.stdout, TRIAL_COLUMNS, extrasaction="ignore", lineterminator="\n"
        )
        writer.writeheader()
        writer.writerows({key: _on_one_line(x) for key, x in row.items()} for row in rows)
    else:
        print(trial_table(rows))
    return 0


def _on_one_line(value: Any) -> Any:
    return printable(value) if isinstance(value, str) else value


def parser() -> argparse.ArgumentParser:
    parser = Parser(
        prog="canvas trials",
        example="canvas trials canvas-runs/resnet8-digits-scattered --format csv >trials.csv",
        description="List every candidate of a study: the baseline (the unchanged network), the\n"
        "controls (well-known operators) and all finds (kernels drawn at random that fit\n"
        "the budget), pruned and failed ones too.",
    )
    parser.add_argument("folder", metavar="DIR", help="the --out folder of a search")
    parser.add_argument(
        "-f", "--format", default="table", choices=("table", "json", "csv"), help="default: table"
    )
    return parser


def trial_rows(folder: Path) -> list[dict[str, Any]]:
    """One dict per candidate: TRIAL_COLUMNS, and the whole `pack` and `log`; figures not taken
    are None.
    """
    from ..reporting.report import kernel_summary
    from ..study import Study

    with Study.read(folder) as study:
        return [
            {
                "candidate": row.name,
                "kernel": f"Kernel_{row.hash[:16]}" if row.hash else "",
                "status": row.status,
                "val_accuracy": row.val_accuracy,
                "kind": row.kind,
                "primitives": kernel_summary(row),
                "macs": row.macs,
                "params": row.params,
                "latency_ms": row.latency_ms,
                "speedup": row.speedup,
                "seconds": row.seconds,
                "reason": row.reason,
                "curve": study.curve(row.id),
                "pack": row.pack,
                "log": row.log,
            }
            for row in study.candidates()
        ]


def trial_table(rows: Sequence[dict[str, Any]]) -> str:
    from ..reporting.report import align, short

    def figure(value: float | None, form: str) -> str:
        return "-" if value is None else form.format(value)

    head = [
        "candidate",
        "kernel",
        "status",
        "val_accuracy",
        "macs",
        "params",
        "latency",
        "primitives",
    ]
    body = [
        [
            row["candidate"],
            row["kernel"],
            row["status"],
            figure(row["val_accuracy"], "{:.4f}"),
            short(row["macs"]),
            short(row["params"]),
            figure(row["latency_ms"], "{:.2f} ms"),
            row["primitives"] + (f"  ({row['reason']})" if row["reason"] else ""),
        ]
        for row in rows
    ]
    return align([head, *body], right={3, 4, 5, 6})
