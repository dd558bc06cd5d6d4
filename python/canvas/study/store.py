"""The file of a study: opened, locked, checked, brought up to date, written in transactions.

The driver is the only writer: a lock beside the file keeps a second one out.  Readers may look at
any time (WAL).  A file that is damaged, too new or not ours is rejected before anything is added.
"""

from __future__ import annotations

import os
import re
import sqlite3
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from ..errors import CanvasError
from ..files import is_locked, open_file, open_lock, try_lock
from .examine import (
    Damaged,
    bounded,
    check_files,
    check_pages,
    check_schema,
    check_values,
    defend,
)
from .outputs import FILE, remove_outputs
from .schema import APPLICATION, SCHEMA, UPGRADES, VERSION

if TYPE_CHECKING:
    from typing_extensions import Self

LOCK = "study.lock"
FIND = "[0-9]{1,18}"  # the name of a find
DISK = sqlite3.OperationalError  # full, locked, gone: not the file's own fault


class Store:
    """An open study's file: one writer at a time, readers whenever they like."""

    def __init__(self, folder: Path, database: sqlite3.Connection, lock: IO[bytes] | None) -> None:
        self.folder = folder
        self.database = database
        self.lock = lock
        self.place = _place(folder / FILE)
        self.session: int | None = None  # the run of the driver, once `begin` was called
        self.session_since = 0.0  # a moment of time.monotonic()

    @classmethod
    def open(cls, folder: Path, fresh: bool = False) -> Self:
        """Open the study in `folder` for writing, made if missing, emptied first if `fresh`.

        Raises CanvasError when another search runs there, or when the file there is not ours.
        """
        try:
            folder.mkdir(parents=True, exist_ok=True)
            lock = open_lock(folder / LOCK)
        except FileExistsError:
            raise CanvasError(
                f"'{folder}' cannot hold a study: it is a file, give a folder"
            ) from None
        except OSError as error:
            raise CanvasError(f"'{folder}' cannot hold a study: {error.strerror}") from error
        try:
            free = try_lock(lock) or _free_now(lock)
        except OSError as error:
            lock.close()
            raise CanvasError(
                f"'{folder / LOCK}' cannot be locked ({error.strerror}): choose an --out on a "
                "file system with locks"
            ) from error
        if not free:
            lock.close()
            raise CanvasError(
                f"another search is running in '{folder}': wait for it or choose another --out"
            )
        try:
            _check_files(folder, fresh)
            if fresh:
                remove_outputs(folder, _finds(folder / FILE))
            study = cls(folder, _connect(folder / FILE, "rwc"), lock)
        except BaseException:
            lock.close()
            raise
        try:
            with bounded(study.database, folder / FILE):
                check_pages(study.database, folder / FILE)
            if study.is_empty():
                study._create()
            study._upgrade()
            study._examine()
            study.recover()
        except BaseException:
            study.close()
            raise
        return study

    @classmethod
    def read(cls, folder: Path) -> Self:
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
                f"the study '{path}' has the older format {version}: give its command, canvas "
                "search or canvas fit, once more and it is brought up to date"
            )
        try:
            study._examine()
        except BaseException:
            study.close()
            raise
        return study

    def close(self) -> None:
        self.database.close()
        if self.lock is not None:
            self.lock.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        """A page that turns out to be damaged only when it is read is told like any other."""
        self.close()
        if isinstance(error, sqlite3.DatabaseError) and not isinstance(error, DISK):
            raise Damaged(self.folder / FILE, str(error)) from error

    def recover(self) -> None:
        """Put right what a driver that was killed has left; called once the file is open."""

    def is_empty(self) -> bool:
        return self._one("SELECT count(*) FROM sqlite_master") == 0

    @contextmanager
    def _intact(self) -> Iterator[None]:
        """Around what reads stored text: what is wrong with it is wrong with the study."""
        try:
            yield
        except Damaged:
            raise
        except CanvasError as error:
            raise Damaged(self.folder / FILE, str(error)) from None

    def _examine(self) -> None:
        """Reject what the tables of a study of this format hold and no search can have written."""
        path = self.folder / FILE
        try:
            with bounded(self.database, path):
                check_pages(self.database, path)
                check_values(self.database, path)
        except DISK as error:
            raise CanvasError(f"the study '{path}' cannot be read: {error}") from error
        except sqlite3.DatabaseError as error:
            raise Damaged(path, str(error)) from error

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
            if self.session is not None:
                self._session_goes_on()
            self.database.execute("COMMIT")
        except BaseException:
            if self.database.in_transaction:  # a full disk may have ended it already
                self.database.execute("ROLLBACK")
            raise

    def _session_goes_on(self) -> None:
        """A driver that is killed has taken as long as what it recorded last says."""
        self.database.execute(
            "UPDATE session SET seconds = max(coalesce(seconds, 0), ?) WHERE id = ?",
            (time.monotonic() - self.session_since, self.session),
        )


def _free_now(lock: IO[bytes]) -> bool:
    """Try a lock for half a second more: `is_running` holds it for moments."""
    for _ in range(50):
        time.sleep(0.01)
        if try_lock(lock):
            return True
    return False


def is_running(folder: Path) -> bool:
    """Whether a search or a fit runs in `folder` now."""
    return is_locked(folder / LOCK)


@contextmanager
def writing(folder: Path) -> Iterator[None]:
    """Around what writes a study or beside it: one message where that cannot be done."""
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
        with open_file(path) as file:
            header = file.read(72)
    except OSError as error:
        raise CanvasError(f"'{path}' cannot be read: {error.strerror}") from error
    if header[:16] != b"SQLite format 3\0":
        raise CanvasError(f"'{path}' is not a study: another program made it")
    return header[68:] == APPLICATION.to_bytes(4, "big")


def _connect(path: Path, mode: str) -> sqlite3.Connection:
    """Open `path` if it is a study of ours, or empty; mode is ro, rw or rwc."""
    check_files(path)
    database = _database(path, mode)
    try:
        defend(database)
        with bounded(database, path):
            _check_ours(database, path)
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


def _check_ours(database: sqlite3.Connection, path: Path) -> None:
    """Reject what is neither empty nor a study of a format that we know."""
    application = database.execute("PRAGMA application_id").fetchone()[0]
    version = database.execute("PRAGMA user_version").fetchone()[0]
    if not database.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]:
        return
    if application != APPLICATION:
        raise CanvasError(f"'{path}' is not a study: another program made it")
    if not 1 <= version <= VERSION:
        raise CanvasError(
            f"the study '{path}' has format {version}, this canvas knows 1 to {VERSION}: "
            "use a newer canvas or choose another --out"
        )
    check_schema(database, path, version)


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


def _finds(path: Path) -> list[str]:
    """The finds of a study that is to be removed; none where it cannot be read."""
    try:
        database = _connect(path, "ro")
    except CanvasError:
        return []
    try:
        rows = database.execute("SELECT name FROM network WHERE kind = 'find'").fetchall()
    except sqlite3.Error:
        return []
    finally:
        database.close()
    return [row["name"] for row in rows if re.fullmatch(FIND, row["name"])]
