"""A study may come from anybody: it is examined before anything that it holds is used.

    defend         what its file may make SQLite do
    check_files    that what stands beside it is made of files, and names none elsewhere
    check_schema   tables, views, indices: the very ones that a search makes, and no others
    check_pages    that the file is sound; a damaged one could take years to read
    check_values   that its figures are such that a search can have found them

Each raises CanvasError with one message.
"""

from __future__ import annotations

import os
import re
import sqlite3
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import Any

from ..errors import CanvasError
from ..metric import Metric
from ..options import json_object
from ..text import printable
from .old_formats import SCHEMAS
from .schema import SCHEMA, UPGRADES, VERSION

LIMITS = {  # for SQLite; what a search stores is far below
    "SQLITE_LIMIT_LENGTH": 256 << 20,  # bytes of a row
    "SQLITE_LIMIT_SQL_LENGTH": 200_000,
    "SQLITE_LIMIT_EXPR_DEPTH": 100,
    "SQLITE_LIMIT_COMPOUND_SELECT": 20,
    "SQLITE_LIMIT_ATTACHED": 0,
    "SQLITE_LIMIT_TRIGGER_DEPTH": 1,
    "SQLITE_LIMIT_WORKER_THREADS": 0,
}
SWITCHES = {
    "SQLITE_DBCONFIG_DEFENSIVE": True,
    "SQLITE_DBCONFIG_TRUSTED_SCHEMA": False,
    "SQLITE_DBCONFIG_ENABLE_TRIGGER": False,
}
STEP = 100_000  # instructions of SQLite between two looks at how many there were
LEAST_STEPS = 50  # of an examination; more for a long file, by ...
BYTES_OF_STEP = 20_000  # bytes per allowed step; a sound study takes one step a million

SUPER_JOURNAL = b"\xd9\xd5\x05\xf9\x20\xa1\x63\xd7"  # at the end of a journal that names another
LONGEST = 400  # characters of what is wrong in a message
SHOWN = 60  # characters of a foreign name in a message

Shape = tuple[str, str, str, tuple[str, ...]]  # type, name, table, and the tokens of its SQL


class Damaged(CanvasError):
    """A study that cannot be read any more: `how` says why."""

    def __init__(self, path: Path, how: str) -> None:
        super().__init__(
            f"the study '{path}' is damaged ({printable(how[:LONGEST])}): restore a copy, or "
            "start a new study in another folder"
        )


# ---- what SQLite may do -------------------------------------------------------------------------


def defend(database: sqlite3.Connection) -> None:
    """Take from a database what no study needs, as far as this Python has a switch for it."""
    switched: Any = database
    for name, most in LIMITS.items():
        if hasattr(sqlite3, name):  # from Python 3.11 on
            switched.setlimit(getattr(sqlite3, name), most)
    for name, value in SWITCHES.items():
        if hasattr(sqlite3, name):  # from Python 3.12 on
            switched.setconfig(getattr(sqlite3, name), value)
    database.execute("PRAGMA trusted_schema = OFF")
    database.execute("PRAGMA cell_size_check = ON")
    database.text_factory = _text


def _text(text: bytes) -> str:
    try:
        return text.decode()
    except UnicodeDecodeError:
        raise sqlite3.DatabaseError("a text that is not UTF-8") from None


@contextmanager
def bounded(database: sqlite3.Connection, path: Path) -> Iterator[None]:
    """Around what examines: no file makes it work longer than its length explains."""
    size = 0
    for part in (path, path.with_name(f"{path.name}-wal")):
        with suppress(OSError):
            size += part.stat().st_size
    left = [LEAST_STEPS + size // BYTES_OF_STEP]

    def step() -> bool:
        left[0] -= 1
        return left[0] < 0

    database.set_progress_handler(step, STEP)
    try:
        yield
    except sqlite3.OperationalError as error:
        if left[0] < 0:
            raise Damaged(path, "reading it has no end") from error
        raise
    except UnicodeDecodeError as error:  # of SQLite's message, which quotes the file
        raise Damaged(path, "a text that is not UTF-8") from error
    finally:
        database.set_progress_handler(None, 0)


# ---- the files ----------------------------------------------------------------------------------


def check_files(path: Path) -> None:
    """Reject a study beside which SQLite would find what makes it wait, or change other files."""
    real = path.resolve()
    for place in (
        real,
        *(real.with_name(real.name + end) for end in ("-wal", "-shm", "-journal")),
    ):
        try:
            mode = os.lstat(place).st_mode
        except OSError:
            continue
        if not stat.S_ISREG(mode):
            raise CanvasError(f"'{place}' is no regular file, as that of a study is: remove it")
    journal = real.with_name(f"{real.name}-journal")
    try:
        with journal.open("rb") as file:
            file.seek(0, os.SEEK_END)
            file.seek(max(0, file.tell() - len(SUPER_JOURNAL)))
            names_another = file.read() == SUPER_JOURNAL
    except FileNotFoundError:
        return
    except OSError as error:
        raise CanvasError(f"'{journal}' cannot be read: {error.strerror}") from error
    if names_another:  # which SQLite would remove
        raise CanvasError(f"'{journal}' names another file, as none of a study does: remove it")


# ---- the schema ---------------------------------------------------------------------------------

TOKEN = re.compile(
    r"""--[^\n]*|/\*.*?\*/|'(?:[^']|'')*'|"(?:[^"]|"")*"|[ \t\n\f\r]+|\w+|.""",
    re.DOTALL | re.ASCII,
)
BLANK = (" ", "\t", "\n", "\f", "\r", "--", "/*")


def check_schema(database: sqlite3.Connection, path: Path, version: int) -> None:
    """Reject a study of format `version` whose tables, views, indices or triggers are not those of
    its format.
    """
    expected = _fresh(version)
    found = set(_shapes(database, most=2 * len(expected)))
    if found == expected:
        return
    known = expected | _upgraded(version)
    for type, name, *_ in sorted(found - known, reverse=True):  # views, triggers, tables, indices
        raise Damaged(path, f"no search makes its {_shown(type)} '{_shown(name)}'")
    needed = {name for type, name, *_ in expected if type == "table"}
    if version > 3:  # before, there was none in a study that was brought up to date
        needed.add("candidate")
    for name in sorted(needed - {name for _, name, *_ in found}):
        raise Damaged(path, f"its '{name}' is missing")


def _shapes(database: sqlite3.Connection, most: int) -> Iterator[Shape]:
    """All that is in the schema, or more than `most`; comments and blanks do not count."""
    rows = database.execute("SELECT type, name, tbl_name, sql FROM sqlite_master")
    for type, name, table, sql in rows.fetchmany(most + 1):
        tokens = TOKEN.findall("" if sql is None else str(sql))
        said = tuple(token for token in tokens if not token.startswith(BLANK))
        yield str(type), str(name), str(table), said


type_of_none = type(None)


@cache
def _fresh(version: int) -> frozenset[Shape]:
    """What a search of this format makes."""
    database = sqlite3.connect(":memory:")
    database.executescript({**SCHEMAS, VERSION: SCHEMA}[version])
    shapes = frozenset(_shapes(database, 1000))
    database.close()
    return shapes


@cache
def _upgraded(version: int) -> frozenset[Shape]:
    """What a study of this format holds that was brought up to date from an older one, at once or
    format by format.
    """
    shapes: set[Shape] = set()
    for start in range(1, version):
        for at_once in (False, True):
            database = sqlite3.connect(":memory:", isolation_level=None)
            database.executescript(SCHEMAS[start])
            database.execute("PRAGMA legacy_alter_table = ON")
            for number in range(start, version):
                if not at_once:
                    database.execute("PRAGMA legacy_alter_table = ON")
                database.executescript(UPGRADES[number])
            shapes.update(_shapes(database, 1000))
            database.close()
    return frozenset(shapes)


def _shown(name: str) -> str:
    return name if len(name) <= SHOWN else name[:SHOWN] + "..."


# ---- pages and values ---------------------------------------------------------------------------


def check_pages(database: sqlite3.Connection, path: Path) -> None:
    """Reject a file that is damaged, before anything is added to it or printed from it."""
    try:
        found = str(database.execute("PRAGMA integrity_check(1)").fetchone()[0]).splitlines()[-1]
    except sqlite3.OperationalError:
        raise
    except sqlite3.DatabaseError as error:
        found = str(error)
    if found != "ok":
        raise Damaged(path, found)


MOST = 1 << 53  # of a whole number: more than there are of anything
FIGURE = "BETWEEN 0 AND 1e15"  # milliseconds, seconds, ratios
SHARE = "BETWEEN 0 AND 1"
SCORE = "a score"  # SHARE, or FINITE where the metric of the task is no share
COUNT = f"BETWEEN 0 AND {MOST}"
FINITE = "BETWEEN -1e300 AND 1e300"
VALUES = {
    "study": {
        "validation_images": "BETWEEN 0 AND 1000000000",
        "test_images": "BETWEEN 0 AND 1000000000",
        "created": FIGURE,
    },
    "session": {"begun": FIGURE, "seconds": FIGURE},
    "draw": {"idx": COUNT},
    "network": {
        **dict.fromkeys(("number", "layer_macs", "macs", "params"), COUNT),
        **dict.fromkeys(("latency_ms", "latency_spread_ms", "speedup", "speedup_spread"), FIGURE),
        **dict.fromkeys(("spread", "naswot"), FINITE),
        "val_accuracy": SCORE,
        "seconds": FIGURE,
        **dict.fromkeys(("divergence", "tuned_divergence"), FIGURE),
        "error": SHARE,
    },
    "screened": {"number": COUNT, "error": SHARE, "seconds": FIGURE},
    "fit": {
        **dict.fromkeys(("steps", "macs", "params"), COUNT),
        **dict.fromkeys(("divergence", "native_seconds", "seconds"), FIGURE),
        "error": SHARE,
    },
    "item": {"number": COUNT, "rung": "IN (1, 2, 3)"},
    "rung": {"epochs": COUNT, "accuracy": SCORE, "seconds": FIGURE},
    "epoch": {
        "number": COUNT,
        "accuracy": SCORE,
        "loss": FINITE,
        "seconds": FIGURE,
        "processor": FIGURE,
    },
    "timing": {
        **dict.fromkeys(("latency_ms", "spread_ms", "speedup", "speedup_spread"), FIGURE),
        "batch": f"BETWEEN 1 AND {MOST}",
        "seconds": FIGURE,
        "processor": FIGURE,
    },
    "final": {
        "epochs": COUNT,
        "val_accuracy": SCORE,
        "test_accuracy": SCORE,
        "seconds": FIGURE,
        "length(hits)": "IN (0, ((SELECT max(test_images) FROM study) + 7) / 8)",
    },
    "audit": {"epochs": COUNT, "accuracy": SCORE, "seconds": FIGURE},
    "task": {"epochs": COUNT, "attempt": COUNT},
}


def metric_of(database: sqlite3.Connection, path: Path) -> Metric:
    """What the networks of a study are judged by."""
    row = database.execute("SELECT task FROM study").fetchone()
    try:
        words = json_object(row[0]) if row is not None and row[0] else {}
        return Metric.from_json(words.get("metric", {}))
    except (CanvasError, AttributeError):
        raise Damaged(path, "its task is no task") from None


def check_values(database: sqlite3.Connection, path: Path) -> None:
    """Reject figures that nothing can have: a share above 1, a negative time, no number."""
    score = SHARE if metric_of(database, path).is_share else FINITE
    for table, columns in VALUES.items():
        for column, holds in columns.items():
            holds = score if holds == SCORE else holds
            wrong = database.execute(
                f"SELECT {column} FROM {table} WHERE NOT {column} {holds} LIMIT 1"
            ).fetchone()
            if wrong is not None:
                raise Damaged(path, f"{column} of its table {table} is {wrong[0]}")
