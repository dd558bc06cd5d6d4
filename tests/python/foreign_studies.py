#!/usr/bin/env python3
"""Studies that a stranger has made or damaged, and what every command must do with them: end soon,
with its table or with one message.

    foreign_studies.py FOLDER [--first N] [--runs N] [--seconds N]

Study number N is the same on every machine.  Prints `N` before each, so that one that hangs or
crashes is known, and at the end how many were read and how many rejected; exit status 1 where a
promise was broken.  `./dev fuzz study` runs it.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import os
import random
import re
import shutil
import sqlite3
import sys
import time
import traceback
from collections.abc import Callable
from pathlib import Path

sys.path.append(str(Path(__file__).parent))

from made_study import CONTROLS, FINDS, add_finals, make_study

from canvas import cli
from canvas.errors import CanvasError
from canvas.study import Study

SLOW = 20.0  # seconds of processor time that no command may take
ENDLESS = "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT"
TABLES = ("study", "session", "draw", "network", "item", "rung", "epoch", "timing", "final",
          "audit", "task")  # fmt: skip


def connect(folder: Path) -> sqlite3.Connection:
    database = sqlite3.connect(folder / "study.db", isolation_level=None)
    database.execute("PRAGMA foreign_keys = OFF")
    return database


def columns(database: sqlite3.Connection, table: str) -> list[str]:
    return [row[1] for row in database.execute(f"PRAGMA table_info({table})")]


def rewrite(database: sqlite3.Connection, name: str, old: str, new: str) -> None:
    """Exchange a part of the SQL of a table or view."""
    version = database.execute("PRAGMA schema_version").fetchone()[0]
    database.execute("PRAGMA writable_schema = ON")
    database.execute(
        "UPDATE sqlite_master SET sql = replace(sql, ?, ?) WHERE name = ?", (old, new, name)
    )
    database.execute(f"PRAGMA schema_version = {version + 1}")
    database.execute("PRAGMA writable_schema = OFF")


# ---- what a stranger adds or changes ------------------------------------------------------------


def recursive_view(folder: Path, draw: random.Random) -> None:
    """A table or the view is one that has no end."""
    database = connect(folder)
    name = draw.choice((*TABLES, "candidate"))
    names = columns(database, name)
    if name == "candidate":
        database.execute("DROP VIEW candidate")
    else:
        database.execute("PRAGMA legacy_alter_table = ON")
        database.execute(f"ALTER TABLE {name} RENAME TO old_{name}")
    cells = ", ".join(f"x AS {column}" for column in names)
    database.execute(f"CREATE VIEW {name} AS {ENDLESS} {cells} FROM c")
    database.close()


EXTRAS = (
    f"CREATE VIEW extra AS {ENDLESS} x FROM c",
    "CREATE TABLE extra (a, b AS (randomblob(100000000)))",
    "CREATE TABLE extra (a)",
    "CREATE INDEX extra ON network (macs)",
    "CREATE INDEX extra ON network (length(printf('%.*c', macs, 'x')))",
    "CREATE INDEX extra ON task (state) WHERE kind = 'final'",
    "CREATE TRIGGER extra AFTER INSERT ON session BEGIN DELETE FROM network; END",
    "CREATE TRIGGER extra AFTER UPDATE ON task BEGIN UPDATE task SET attempt = attempt + 1; END",
    "CREATE TRIGGER extra INSTEAD OF INSERT ON candidate BEGIN SELECT 1; END",
    "ALTER TABLE network ADD COLUMN extra AS (randomblob(100000000))",
    "ALTER TABLE draw ADD COLUMN extra TEXT",
    "ALTER TABLE task RENAME COLUMN log TO logs",
    "DROP TABLE audit",
    "DROP VIEW candidate",
    "CREATE VIRTUAL TABLE extra USING fts5(a)",
    "CREATE VIRTUAL TABLE extra USING rtree(id, a, b)",
    "CREATE TABLE sqlite_stat1 (tbl, idx, stat)",
    "ANALYZE",
    'CREATE TABLE "a\x1b[2J\n\'" (a)',
    "CREATE TABLE extra_" + "x" * 3000 + " (a)",
)


def extra(folder: Path, draw: random.Random) -> None:
    database = connect(folder)
    with contextlib.suppress(sqlite3.Error):  # without fts5 or rtree
        database.execute(draw.choice(EXTRAS))
    database.close()


REWRITES = (
    ("candidate", "SELECT", "select"),
    ("candidate", "max(rung.number)", "max(abs(rung.number))"),
    ("network", "STRICT", ""),
    ("network", "UNIQUE (hash, budget)", "UNIQUE (budget, hash)"),
    ("epoch", "accuracy  REAL NOT NULL", "accuracy  ANY NOT NULL"),
    ("task", "'queued'", "'queued', 'odd'"),
    ("draw", "TEXT NOT NULL DEFAULT ''", "TEXT NOT NULL DEFAULT (randomblob(100000000))"),
    ("study", "CHECK (id = 1)", "CHECK (id = 1 OR length(randomblob(100000000)) > 0)"),
    ("draw", "CREATE TABLE draw", "CREATE TABLE draw ("),
    ("final", "(id)", "(" * 5000 + "id" + ")" * 5000),
    ("rung", "CREATE", "/* unfinished CREATE"),
    ("rung", "INTEGER", "INTEGER\u00a0"),
)


def rewritten(folder: Path, draw: random.Random) -> None:
    database = connect(folder)
    with contextlib.suppress(sqlite3.Error):
        rewrite(database, *draw.choice(REWRITES))
    database.close()


HOSTILE: tuple[object, ...] = (
    -1, 0, 1, 2**62, 2**63 - 1, -(2**63), 0.5, -0.5, 1.5, 1e308, -1e308, float("inf"),
    float("-inf"), None, "", "x", "-1", "nan", b"", b"\xff" * 9, b"\0", "[" * 5000, "{}", "[]",
    "[[1]]", '{"a": ' * 900 + "1" + "}" * 900, "x" * 100000, b"x" * 100000, "a\0b",
    "\x1b[2J\r\n", "=1+1", "\u202e", "canvas 1\n" * 50, "1e999", "9" * 5000, '{"model": 1}',
)  # fmt: skip


def values(folder: Path, draw: random.Random) -> None:
    """Figures and texts that no search writes, some of another type than their column's."""
    database = connect(folder)
    for _ in range(draw.choice((1, 1, 2, 5))):
        table = draw.choice(TABLES)
        column = draw.choice(columns(database, table))
        loose = draw.random() < 0.5
        if loose:
            database.execute("PRAGMA ignore_check_constraints = ON")
            rewrite(database, table, "STRICT", "")
        with contextlib.suppress(sqlite3.Error, OverflowError):
            database.execute(f"UPDATE {table} SET {column} = ?", (draw.choice(HOSTILE),))
        if loose:
            database.close()  # as it was when the schema was read
            database = connect(folder)
            rewrite(database, table, "\n) ", "\n) STRICT")
    database.close()


# ---- what damages a file ------------------------------------------------------------------------


def flipped(folder: Path, draw: random.Random) -> None:
    content = bytearray((folder / "study.db").read_bytes())
    for _ in range(draw.choice((1, 3, 30, 300))):
        most = 200 if draw.random() < 0.3 else len(content)
        content[draw.randrange(most)] = draw.choice((0, 255, draw.randrange(256)))
    (folder / "study.db").write_bytes(content)


def pages(folder: Path, draw: random.Random) -> None:
    """Pages in the place of others: a tree that is none."""
    content = bytearray((folder / "study.db").read_bytes())
    size, count = 4096, len(content) // 4096
    for _ in range(draw.choice((1, 2, 8))):
        source, target = draw.randrange(count), draw.randrange(1, count)
        page = content[source * size : (source + 1) * size]
        content[target * size : (target + 1) * size] = page
    (folder / "study.db").write_bytes(content)


def cut(folder: Path, draw: random.Random) -> None:
    size = (folder / "study.db").stat().st_size
    os.truncate(
        folder / "study.db", draw.choice((0, 1, 16, 99, 100, size // 2, size - 1, size * 9))
    )


def beside(folder: Path, draw: random.Random) -> None:
    """Logs and journals of another file, or of none."""
    place = folder / draw.choice(("study.db-wal", "study.db-shm", "study.db-journal"))
    kind = draw.randrange(5)
    if kind == 0:
        place.write_bytes(draw.randbytes(draw.choice((0, 10, 5000))))
    elif kind == 1:
        os.mkfifo(place)
    elif kind == 2:
        place.symlink_to("elsewhere")
    elif kind == 3:
        place.mkdir()
    else:
        other = make(folder / "other", random.Random(1))
        database = connect(other)
        database.execute("PRAGMA wal_autocheckpoint = 0")
        database.execute("DELETE FROM network")
        shutil.copy(other / "study.db-wal", folder / "study.db-wal")
        database.close()
        shutil.rmtree(other)


CHANGES: tuple[Callable[[Path, random.Random], None], ...] = (
    recursive_view, extra, rewritten, values, values, values, flipped, pages, cut, beside,
)  # fmt: skip


def make(folder: Path, draw: random.Random) -> Path:
    """A study as a search leaves it."""
    make_study(folder, CONTROLS + FINDS)
    add_finals(folder, {"3": [0.5, 0.6], "baseline": [0.8, 0.9]})
    with Study.open(folder) as study:
        for row in study.candidates():
            if row.kind == "find":
                study.database.execute(
                    "INSERT OR IGNORE INTO item VALUES (?, ?, 2)", (row.number, row.id)
                )
                study.database.execute("INSERT INTO epoch VALUES (?, 0, 0.5, 1, 1, 1)", (row.id,))
                study.database.execute(
                    "INSERT INTO rung VALUES (?, 2, 1, 6, ?, 1, 1)", (row.id, draw.random())
                )
                study.database.execute(
                    "INSERT INTO timing VALUES (?, 'eager', 1, 0.1, 1, 0.1, 'eager', 1, '', 1, 1, "
                    "1)", (row.id,)
                )  # fmt: skip
        study.database.execute("INSERT INTO draw VALUES (900, 'duplicate', 'as 3')")
        study.database.execute("INSERT INTO audit VALUES (1, 6, 0.5, 1, '')")
    return folder


# ---- what must hold -----------------------------------------------------------------------------


def commands(folder: Path) -> list[list[str]]:
    place = str(folder)
    return [
        ["trials", place],
        ["trials", place, "-f", "csv"],
        ["trials", place, "-f", "json"],
        ["pareto", place],
        ["pareto", place, "-f", "csv"],
        ["pareto", place, "-f", "json"],
        ["pareto", place, "--plot", "-"],
        ["pareto", place, "--plot", "-", "--x", "macs"],
        ["report", place, "--html", "-"],
        ["study", "merge", place, place],
        ["replay", place, "nobody"],
        ["export", f"{place}/nobody", "--out", f"{place}/e"],
    ]


def check(folder: Path) -> bool:
    """Whether the study can be read; raises AssertionError where a promise is broken."""
    read = False
    for words in commands(folder):
        out, err = io.StringIO(), io.StringIO()
        began = time.process_time()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            code = cli.main(words)
        assert time.process_time() - began < SLOW, f"{words} takes too long"
        said = err.getvalue()
        if code == 2:
            assert re.fullmatch(r"canvas: [^\n]+\n", said) and said[:-1].isprintable(), said
            assert len(said) < 1000, said
        else:
            assert code in (0, 1) and "Traceback" not in said, (words, code, said)
            read = read or code == 0
    drive(folder)
    return read


def drive(folder: Path) -> None:
    """As a search opens it and looks around."""
    began = time.process_time()
    try:
        with Study.open(folder) as study:
            options = study.options()
            study.items(), study.measurements(), study.paces(), study.sessions()
            study.next_draw(), study.finds(), study.draw_counts(), study.test_groups()
            study.share_of_timing(), study.second_seeds("queued")
            study.finals(), study.failed_finals(), study.audited(6)
            for row in study.candidates():
                study.curve(row.id), study.timings(row.id), study.rungs(row.id)
            if options:
                study.adopt(options, {})
    except (CanvasError, sqlite3.Error) as error:
        assert "\n" not in str(error), error
    assert time.process_time() - began < SLOW, "a search takes too long to open it"


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--runs", type=int, default=100)
    parser.add_argument("--seconds", type=float, default=0)
    given = parser.parse_args()
    return search(given.folder, given.first, given.runs, given.seconds)


def search(place: Path, first: int, runs: int, seconds: float = 0) -> int:
    """Make and check studies in the folder `place`; 1 where a promise was broken."""
    pristine = make(place / "pristine", random.Random(0))
    assert check(pristine)
    began, counts = time.monotonic(), {True: 0, False: 0}
    for number in range(first, first + runs):
        if seconds and time.monotonic() - began > seconds:
            break
        print(number, flush=True)
        draw, folder = random.Random(number), place / "study"
        shutil.copytree(pristine, folder)
        for _ in range(draw.choice((1, 1, 1, 2))):
            with contextlib.suppress(Exception):  # of one that is damaged already
                draw.choice(CHANGES)(folder, draw)
        try:
            counts[check(folder)] += 1
        except BaseException:
            traceback.print_exc()
            print(f"study {number} breaks a promise, it is kept in '{folder}'", flush=True)
            return 1
        shutil.rmtree(folder)
    print(f"{counts[True]} studies read, {counts[False]} rejected", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
