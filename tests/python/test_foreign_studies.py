"""A study that a stranger made: every command that opens it ends soon, with one message."""

import os
import random
import shutil
import sqlite3
import subprocess
import sys
from pathlib import Path

import foreign_studies
import pytest
from foreign_studies import ENDLESS, EXTRAS, HOSTILE, REWRITES, connect, make, rewrite

from canvas import cli
from canvas.errors import CanvasError
from canvas.study import Study, examine
from canvas.study.old_formats import SCHEMAS
from canvas.study.schema import UPGRADES, VERSION

HERE = Path(__file__).parent
LONG = bool(os.environ.get("CANVAS_TEST_ALL"))


@pytest.fixture(scope="module")
def pristine(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make(tmp_path_factory.mktemp("foreign") / "s", random.Random(0))


@pytest.fixture
def study(pristine: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(pristine, tmp_path / "s"))


def rejection(folder: Path, capsys: pytest.CaptureFixture[str], *words: str) -> str:
    """The one message of every command."""
    messages = set()
    for command in [*foreign_studies.commands(folder), ["train", f"{folder}/1x1"],
                    ["trials", str(folder), "--audit", "1"],
                    ["search", "--model", "resnet8", "--data", "digits", "--images", "200",
                     "--out", str(folder)]]:  # fmt: skip
        assert cli.main(command) == 2, command
        said = capsys.readouterr()
        assert said.out == "" and len(said.err.splitlines()) == 1 and said.err[:-1].isprintable()
        messages.add(said.err)
    message = messages.pop()
    assert not messages, messages
    return message


# Reads in a process of its own, so that one that hangs can be ended.
READ = """
import sys
from canvas import cli
sys.exit(cli.main(sys.argv[1:]))
"""


@pytest.mark.parametrize("name", ["candidate", "network", "study"])
def test_a_view_without_end_in_the_place_of_a_table_is_rejected(name, study, capsys) -> None:
    with sqlite3.connect(study / "study.db") as database:
        names = foreign_studies.columns(database, name)
        if name == "candidate":
            database.execute("DROP VIEW candidate")
        else:
            database.execute("PRAGMA legacy_alter_table = ON")
            database.execute(f"ALTER TABLE {name} RENAME TO old")
        cells = ", ".join(f"x AS {column}" for column in names)
        database.execute(f"CREATE VIEW {name} AS {ENDLESS} {cells} FROM c")
    database.close()
    if name == "candidate":
        command = [sys.executable, "-c", READ, "trials", str(study)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60)
        assert done.returncode == 2 and "no search makes its view" in done.stderr
        assert f"no search makes its view '{name}'" in rejection(study, capsys)
    with pytest.raises(CanvasError, match=f"no search makes its view '{name}'"):
        Study.read(study)


@pytest.mark.parametrize("statement", EXTRAS, ids=range(len(EXTRAS)))
def test_what_no_search_makes_is_rejected(statement: str, study: Path) -> None:
    database = connect(study)
    try:
        database.execute(statement)
    except sqlite3.OperationalError as error:
        pytest.skip(f"this SQLite: {error}")
    finally:
        database.close()
    for open_study in (Study.read, Study.open):
        with pytest.raises(CanvasError, match=r"no search makes its|is missing"):
            open_study(study)


@pytest.mark.parametrize("change", REWRITES, ids=range(len(REWRITES)))
def test_a_changed_definition_is_rejected(change: tuple[str, str, str], study: Path) -> None:
    database = connect(study)
    rewrite(database, *change)
    database.close()
    for open_study in (Study.read, Study.open):
        with pytest.raises(CanvasError, match=r"no search makes its|malformed database schema"):
            open_study(study)


def test_blanks_and_comments_of_a_definition_do_not_count(study: Path) -> None:
    """An older canvas had other comments."""
    database = connect(study)
    rewrite(database, "draw", "  idx", "\n\t/* of the sampler */ idx -- 0, 1\n")
    database.close()
    with Study.read(study) as found:
        assert found.candidates()


def test_its_code_is_never_run(study: Path) -> None:
    """A trigger of a foreign study would change what is recorded."""
    database = connect(study)
    database.execute(
        "CREATE TRIGGER t AFTER INSERT ON session BEGIN UPDATE network SET val_accuracy = 1; END"
    )
    before = database.execute("SELECT * FROM network").fetchall()
    database.close()
    with pytest.raises(CanvasError, match="no search makes its trigger 't'"):
        Study.open(study)
    assert connect(study).execute("SELECT * FROM network").fetchall() == before


def test_fresh_starts_over(study: Path) -> None:
    database = connect(study)
    database.execute(EXTRAS[0])
    database.close()
    with Study.open(study, fresh=True) as fresh:
        assert fresh.candidates() == []


@pytest.mark.parametrize("start", SCHEMAS)
def test_a_study_of_an_older_format_is_known_however_it_was_brought_up_to_date(
    start: int, tmp_path: Path
) -> None:
    text = (HERE / f"study_format_{start}.sql").read_text()
    for until in range(start, VERSION) if LONG else sorted({start, VERSION - 1}):
        folder = tmp_path / str(until)
        folder.mkdir()
        database = connect(folder)
        database.executescript(text)
        database.execute("PRAGMA legacy_alter_table = ON")
        for number in range(start, until):
            database.executescript(f"{UPGRADES[number]} PRAGMA user_version = {number + 1};")
        database.close()
        with Study.open(folder) as study:
            rows = study.candidates()
        with Study.read(folder) as study:
            assert study.candidates() == rows and rows
        database = connect(folder)
        database.execute("CREATE VIEW extra AS SELECT 1")
        database.close()
        with pytest.raises(CanvasError, match="no search makes its view 'extra'"):
            Study.open(folder)


def test_an_older_format_with_a_foreign_part_is_rejected_and_left_alone(tmp_path: Path) -> None:
    for start in SCHEMAS:
        folder = tmp_path / str(start)
        folder.mkdir()
        database = connect(folder)
        database.executescript((HERE / f"study_format_{start}.sql").read_text())
        database.execute("CREATE TRIGGER t AFTER INSERT ON task BEGIN DELETE FROM task; END")
        database.close()
        before = (folder / "study.db").read_bytes()
        with pytest.raises(CanvasError, match="no search makes its trigger 't'"):
            Study.open(folder)
        assert (folder / "study.db").read_bytes() == before


# ---- files --------------------------------------------------------------------------------------


@pytest.mark.parametrize("end", ["", "-wal", "-shm", "-journal"])
@pytest.mark.parametrize("kind", ["pipe", "folder", "link"])
def test_a_part_that_is_no_file_is_rejected(end: str, kind: str, study: Path, capsys) -> None:
    place = study / f"study.db{end}"
    if not end:
        place.unlink()
    if kind == "pipe":
        os.mkfifo(place)
    elif kind == "folder":
        place.mkdir()
    elif not end:
        place.symlink_to("/dev/null")
    else:
        (study / "mine").write_text("mine")
        place.symlink_to("mine")
    for command in (["trials", str(study)], ["pareto", str(study)]):
        assert cli.main(command) == 2
        assert len(capsys.readouterr().err.splitlines()) == 1
    with pytest.raises(CanvasError):
        Study.open(study)
    assert os.path.lexists(place) and (kind != "link" or not end or place.read_text() == "mine")


def test_a_journal_that_names_another_file_is_not_rolled_back(study: Path, tmp_path: Path) -> None:
    """SQLite removes the file that a hot journal names as its super-journal."""
    victim = tmp_path / "victim"
    victim.write_text("mine")
    database = connect(study)
    database.execute("PRAGMA journal_mode = DELETE")
    database.close()
    content = (study / "study.db").read_bytes()
    magic, size = b"\xd9\xd5\x05\xf9\x20\xa1\x63\xd7", len(content) // 4096
    name = os.fsencode(victim)
    head = magic + b"".join(n.to_bytes(4, "big") for n in (0, 7, size, 512, 4096))
    named = (
        (2**30 // 4096 + 1).to_bytes(4, "big")
        + name
        + len(name).to_bytes(4, "big")
        + sum(name).to_bytes(4, "big")
        + magic
    )
    (study / "study.db-journal").write_bytes(head.ljust(512, b"\0") + named)
    for open_study in (Study.open, Study.read):
        with pytest.raises(CanvasError, match="names another file"):
            open_study(study)
    assert victim.read_text() == "mine"


@pytest.mark.parametrize("place", ["lock", "pipe"])
def test_a_lock_that_is_no_file_is_one_message(place: str, study: Path) -> None:
    (study / "study.lock").unlink()
    if place == "pipe":
        os.mkfifo(study / "study.lock")
    else:
        (study / "study.lock").symlink_to("mine")
    with pytest.raises(CanvasError, match=r"cannot hold a study: 'study.lock' is"):
        Study.open(study)
    assert not (study / "mine").exists()


def test_a_tree_of_pages_that_has_no_end_is_rejected(study: Path) -> None:
    """Each page of a level names the next 400 times: to read it would take years."""
    database = connect(study)
    root = database.execute("SELECT rootpage FROM sqlite_master WHERE name = 'draw'").fetchone()[0]
    database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    database.close()
    content = bytearray((study / "study.db").read_bytes())
    first = len(content) // 4096 + 1
    levels = 15

    def inner(child: int) -> bytes:
        """An interior page of a table, of 500 cells that all lead to `child`."""
        cells = b"".join(child.to_bytes(4, "big") + b"\x01" for _ in range(500))
        start = 4096 - len(cells)
        pointers = b"".join((start + 5 * i).to_bytes(2, "big") for i in range(500))
        head = b"\x05\0\0" + (500).to_bytes(2, "big") + start.to_bytes(2, "big") + b"\0"
        return (head + child.to_bytes(4, "big") + pointers).ljust(start, b"\0") + cells

    leaf = b"\x0d\0\0\0\0" + (4096).to_bytes(2, "big") + b"\0"
    content[(root - 1) * 4096 : root * 4096] = inner(first)
    content += b"".join(inner(first + i + 1) for i in range(levels)) + leaf.ljust(4096, b"\0")
    content[28:32] = (len(content) // 4096).to_bytes(4, "big")
    (study / "study.db").write_bytes(content)
    command = [sys.executable, "-c", READ, "trials", str(study)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == 2 and "is damaged" in done.stderr and len(done.stderr) < 500


def test_an_index_that_holds_what_its_table_does_not_is_rejected(study: Path) -> None:
    """Some queries read the index alone."""
    database = connect(study)
    roots = [
        database.execute("SELECT rootpage FROM sqlite_master WHERE name = ?", (name,)).fetchone()[
            0
        ]
        for name in ("sqlite_autoindex_final_1", "sqlite_autoindex_timing_1")
    ]
    database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    database.close()
    content = bytearray((study / "study.db").read_bytes())
    source, target = ((root - 1) * 4096 for root in roots)
    content[target : target + 4096] = content[source : source + 4096]
    (study / "study.db").write_bytes(content)
    for open_study in (Study.read, Study.open):
        with pytest.raises(CanvasError, match="is damaged"):
            open_study(study)


# ---- values -------------------------------------------------------------------------------------

WRONG = [
    ("network", "val_accuracy", 1.5),
    ("network", "val_accuracy", float("inf")),
    ("network", "macs", -1),
    ("network", "params", 2**62),
    ("network", "latency_ms", -0.5),
    ("network", "speedup", float("inf")),
    ("epoch", "accuracy", -0.1),
    ("epoch", "seconds", -1.0),
    ("epoch", "loss", float("-inf")),
    ("rung", "accuracy", 2.0),
    ("timing", "latency_ms", -1.0),
    ("timing", "batch", 0),
    ("final", "test_accuracy", 1.01),
    ("final", "hits", b"\xff"),
    ("final", "hits", b"\xff" * 10**6),
    ("study", "test_images", -1),
    ("study", "test_images", 2**62),
    ("study", "validation_images", 2**40),
    ("session", "seconds", -1.0),
    ("task", "attempt", -1),
    ("audit", "accuracy", -1.0),
]


@pytest.mark.parametrize(("table", "column", "value"), WRONG, ids=range(len(WRONG)))
def test_a_figure_that_nothing_can_have_is_rejected(table, column, value, study) -> None:
    database = connect(study)
    database.execute(f"UPDATE {table} SET {column} = ?", (value,))
    database.close()
    for open_study in (Study.read, Study.open):
        with pytest.raises(CanvasError, match=r"is damaged \(.* of its table \w+ is") as error:
            open_study(study)
        assert len(str(error.value)) < 500


@pytest.mark.parametrize("value", HOSTILE, ids=range(len(HOSTILE)))
def test_a_value_of_another_type_is_rejected(value: object, study: Path) -> None:
    """Behind SQLite's back: a STRICT table takes none."""
    database = connect(study)
    rewrite(database, "epoch", "STRICT", "")
    rewrite(database, "epoch", "REAL NOT NULL", "REAL")
    database.close()
    database = connect(study)
    database.execute("UPDATE epoch SET loss = ?, accuracy = ?", (value, value))
    kind = database.execute("SELECT typeof(loss) FROM epoch").fetchone()[0]
    database.close()
    database = connect(study)
    rewrite(database, "epoch", "\n) ", "\n) STRICT")
    for column in ("accuracy  REAL", "loss      REAL", "seconds   REAL"):
        rewrite(database, "epoch", column, f"{column} NOT NULL")
    database.close()
    if (kind == "real" and 0 <= float(str(value)) <= 1) or value in (0, 1):
        assert Study.read(study).curve(1) is not None
        return
    with pytest.raises(CanvasError, match="is damaged"):
        Study.read(study)


@pytest.mark.parametrize("column", ["options", "test_groups", "model_record"])
def test_json_without_end_is_one_message(column: str, study: Path, capsys) -> None:
    database = connect(study)
    database.execute(f"UPDATE study SET {column} = ?", ("[" * 10**6,))
    database.close()
    assert foreign_studies.check(study) in (True, False)


# ---- what this SQLite and this Python can do ----------------------------------------------------


def test_a_study_is_opened_with_all_that_defends_it(study: Path) -> None:
    for opened in (Study.read(study), Study.open(study)):
        with opened as found:
            assert found.database.execute("PRAGMA trusted_schema").fetchone()[0] == 0
            for name, most in examine.LIMITS.items():
                if hasattr(sqlite3, name):
                    assert found.database.getlimit(getattr(sqlite3, name)) == most
            for name, value in examine.SWITCHES.items():
                if hasattr(sqlite3, name):
                    assert found.database.getconfig(getattr(sqlite3, name)) == value


def test_work_without_end_is_stopped(tmp_path: Path) -> None:
    database = sqlite3.connect(":memory:")
    endless = pytest.raises(CanvasError, match="reading it has no end")
    with endless, examine.bounded(database, tmp_path / "none"):
        database.execute(f"{ENDLESS} sum(x) FROM c").fetchone()
    assert database.execute("SELECT 1").fetchone() == (1,)


# ---- at random ----------------------------------------------------------------------------------


def test_studies_at_random(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Nightly for half an hour; `./dev fuzz study` for as long as one likes."""
    runs, seconds = (100000, 1800) if LONG else (6, 60)
    broken = foreign_studies.search(tmp_path, 0, runs, seconds)
    assert not broken, capsys.readouterr()
