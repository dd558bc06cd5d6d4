"""What happens to long jobs: candidates that misbehave, drivers that are killed or stopped, files
that are damaged, disks that are full.  What must hold: nothing lost, nothing counted twice,
nothing left behind, one message.

Most searches here train nothing (faults_worker.py): what is tried is the driver's side, so that
it can be tried often.  The nightly ones are real from end to end.
docs/reports/reliability.md counts.
"""

import errno
import itertools
import json
import os
import pty
import random
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest
from conftest import ALL
from faults import (
    ENVIRONMENT,
    HERE,
    TIMEOUT,
    Drivers,
    asked,
    connection,
    ended,
    family,
    files,
    half_written,
    none_left,
    remount,
    rows,
    search,
    small_disk,
    soon,
)

from canvas.errors import CanvasError
from canvas.study import VERSION, Study

QUICK = {"children": "faults_worker.py"}
BRIEF = {"children": "faults_brief_worker.py"}
NOBODY = 65534


@pytest.fixture(scope="module")
def drivers(tmp_path_factory):
    drivers = Drivers(tmp_path_factory.mktemp("said"))
    yield drivers
    drivers.close()


@pytest.fixture(scope="module")
def undisturbed(drivers, tmp_path_factory):
    """(folder, rows, finds, number of steps) of a quick search that nothing disturbs."""
    folder, steps = tmp_path_factory.mktemp("undisturbed") / "s", drivers.folder / "steps"
    done = drivers.run(search(folder), steps=str(steps), **QUICK)
    assert done.code == 0, done
    return folder, rows(folder), files(folder), int(steps.read_text())


def goes_on_to_the_same_end(drivers, folder, undisturbed, **order):
    """The same command once more ends as the undisturbed search did, does nothing again and
    leaves nothing.
    """
    kept = ended(folder)
    done = drivers.run(search(folder), **{**QUICK, **order})
    assert done.code == 0, done
    assert kept <= ended(folder)
    assert rows(folder) == undisturbed[1]
    assert files(folder) == undisturbed[2]
    assert half_written(folder) == []
    return done


# ---- 1. candidates that misbehave -------------------------------------------------------------

# misdeed, how its candidate is recorded
MISDEEDS = {
    "kill": "failed crashed(SIGKILL): the child was ended by SIGKILL (out of memory?)",
    "segfault": "failed crashed(SIGSEGV): the child was ended by SIGSEGV",
    "abort": "failed crashed(SIGABRT): the child was ended by SIGABRT",
    "exit": "failed error: the child ended with exit code 0",
    "leave": "failed error: the child ended with exit code 1",
    "raise": "failed error: I will not",
    "garbage": "done ",
    "close": "failed error: the child ended with exit code",
    "grandchild": "failed crashed(SIGABRT): the child was ended by SIGABRT",
    "daemon": "failed crashed(SIGABRT): the child was ended by SIGABRT",
    "sleep": "failed timeout: it hung: ",
    "stop": "failed timeout: it hung: ",
    "loop": "failed timeout: it took longer than its limit of ",
    "nan": "failed nan: the loss is nan in epoch 0",
    "memory": "failed out_of_memory: ",
}
HANGING = ("sleep", "stop", "loop")
NEED_TORCH = ("nan", "memory")


def misbehave(drivers, tmp_path, misdeeds, *flags, **order):
    """A search whose finds do these misdeeds and one more that does nothing wrong; its rows."""
    folder = tmp_path / "s"
    environment = {"CANVAS_FAULTS": " ".join(misdeeds), "CANVAS_COUNTER": str(tmp_path / "count")}
    words = search(folder, "--trials", str(len(misdeeds) + 1), *flags)
    driver = drivers.start(words, environment=environment, starting=10.0, hanging=1.0, **order)
    done = driver.wait(1800.0)
    assert done.code == 0, done
    assert "Traceback" not in done.err
    assert none_left(driver.pid, 0) and still_alive(tmp_path) == []
    return asked(
        folder, "SELECT status, reason, log FROM candidate WHERE kind = 'find' ORDER BY id"
    )


def still_alive(tmp_path):
    """Processes whose command line names the counter: the grandchildren, marked or not."""
    return [
        entry.name
        for entry in Path("/proc").glob("[0-9]*")
        if str(tmp_path / "count").encode() in read_bytes(entry / "cmdline")
    ]


def read_bytes(path):
    try:
        return path.read_bytes()
    except OSError:
        return b""


def check_recorded(found, misdeeds):
    for misdeed, (status, reason, log) in zip(misdeeds, found):
        assert f"{status} {reason}".startswith(MISDEEDS[misdeed]), (misdeed, status, reason)
        if status == "failed":
            assert f"about to {misdeed}" in log and "\n" not in reason
    assert found[-1][0] == "done"


def test_candidates_that_end_their_child_are_recorded_and_the_search_goes_on(drivers, tmp_path):
    misdeeds = [name for name in MISDEEDS if name not in (*HANGING, *NEED_TORCH)]
    found = misbehave(drivers, tmp_path, misdeeds, **QUICK)
    check_recorded(found, misdeeds)
    log = found[misdeeds.index("segfault")][2]
    assert "Segmentation fault" in log and "in do_segfault" in log  # and where it was


def test_candidates_that_hang_are_ended_at_their_limit(drivers, tmp_path):
    flags = ("--train-limit", "3", "--workers", "4")
    found = misbehave(drivers, tmp_path, ["sleep", "stop"], *flags, **QUICK)
    timeouts = [row for row in found if row[0] == "failed"]
    check_recorded([*sorted(timeouts, key=lambda row: "stop" in row[2]), ("done", "", "")],
                   ["sleep", "stop"])  # fmt: skip


@pytest.mark.parametrize("workers", [pytest.param("1", marks=pytest.mark.nightly), "4"])
def test_twenty_failures_in_a_row_do_not_stop_a_search(drivers, tmp_path, workers):
    found = misbehave(drivers, tmp_path, ["exit"] * 20, "--workers", workers, **QUICK)
    assert sorted(row[0] for row in found) == ["done"] + 20 * ["failed"]


@pytest.mark.nightly
@pytest.mark.timeout(3600)
def test_real_candidates_that_misbehave(drivers, tmp_path):
    flags = ("--train-limit", "30", "--model", "faults_models:unruly", "--pretests", "no")
    misdeeds = list(MISDEEDS)
    found = misbehave(drivers, tmp_path, misdeeds, *flags, memory=4 << 30, **BRIEF)
    check_recorded(found, misdeeds)


def test_lost_images_end_the_search_and_blame_no_candidate(drivers, tmp_path, undisturbed):
    """The file that children read the images from is broken while the search runs."""
    folder = tmp_path / "s"
    driver = drivers.start(search(folder, "--epochs", "1"), **BRIEF)
    driver.until("convolutions replaced")  # the images are stored, no child has read them yet
    (folder / "images/train_images.npy").write_bytes(b"PK\3\4")
    message = driver.wait().message()
    assert "the images in" in message and "are damaged" in message
    assert {row[0] for row in asked(folder, "SELECT status FROM candidate")} <= {"new", "running"}
    goes_on_to_the_same_end(drivers, folder, undisturbed)


def test_a_search_follows_no_link_of_its_folder(drivers, tmp_path):
    """A user's files behind `rungs` were removed where they ended as those of a search do."""
    folder, theirs = tmp_path / "s", tmp_path / "theirs"
    for place in (folder, theirs):
        place.mkdir()
    for name in ("mine.safetensors", "0.safetensors", ".0.safetensors.new"):
        (theirs / name).write_text("mine")
    (folder / "rungs").symlink_to(theirs)
    done = drivers.run(search(folder, "--epochs", "6", "--strategy", "random"), **QUICK)
    assert done.code == 1, done  # no find came to its end: this worker has no rungs
    assert "rungs' is no folder of the study" in done.err, done
    assert (folder / "rungs").is_symlink() and len(os.listdir(theirs)) == 3
    assert all(path.read_text() == "mine" for path in theirs.iterdir())


# ---- 2. kill -9 of the driver -----------------------------------------------------------------


def phase(folder):
    """How far a killed search was."""
    if not (folder / "study.db").exists():
        return "before"
    if (folder / "pareto.csv").exists() or any(folder.glob("*find-*")):
        return "report"
    try:
        for stage, table in (("timing", "timing"), ("finals", "final"), ("training", "epoch")):
            if asked(folder, f"SELECT count(*) FROM {table}") != [(0,)]:
                return stage
    except sqlite3.OperationalError:  # no such table
        pass
    return "begin"


def moments(count, total, seed=4):
    """`count` steps of `total`, one in each of as many equal parts."""
    dice = random.Random(seed)
    return [int(total * (part + dice.random()) / count) + 1 for part in range(count)]


def kill_and_go_on(drivers, folder, moment, undisturbed):
    driver = drivers.start(search(folder), at={moment: "SIGKILL"}, **QUICK)
    done = driver.wait()
    assert done.code in (-signal.SIGKILL, 0), done  # the last steps may not come every time
    assert none_left(driver.pid)
    reached = phase(folder)
    goes_on_to_the_same_end(drivers, folder, undisturbed)
    return reached


def test_kill_9_at_any_step_loses_nothing(drivers, tmp_path, undisturbed):
    reached = {
        kill_and_go_on(drivers, tmp_path / f"s{moment}", moment, undisturbed)
        for moment in moments(8, undisturbed[3])
    }
    assert {"training", "timing", "report"} <= reached


@pytest.mark.nightly
@pytest.mark.timeout(7200)
def test_kill_9_at_two_hundred_steps_loses_nothing(drivers, tmp_path, undisturbed):
    counts = {}
    for moment in moments(200, undisturbed[3], seed=5):
        folder = tmp_path / f"s{moment}"
        stage = kill_and_go_on(drivers, folder, moment, undisturbed)
        counts[stage] = counts.get(stage, 0) + 1
        shutil.rmtree(folder)
    print(counts)
    assert {"begin", "training", "finals", "timing", "report"} <= set(counts)


@pytest.fixture(scope="module")
def really_undisturbed(drivers, tmp_path_factory):
    """(folder, rows, finds, what it told) of a search with real trainings."""
    folder = tmp_path_factory.mktemp("real") / "s"
    done = drivers.run(search(folder, "--images", "300"), **BRIEF)
    assert done.code == 0, done
    return folder, rows(folder), files(folder), done.err


def goes_on_to_the_real_end(drivers, folder, really_undisturbed):
    kept = ended(folder)
    done = drivers.run(search(folder, "--images", "300"), **BRIEF)
    assert done.code == 0, done
    assert kept <= ended(folder)
    assert rows(folder) == really_undisturbed[1]
    assert files(folder) == really_undisturbed[2] and half_written(folder) == []


FIVE = (("\n[", 1), ("\n[", 4), ("\n[", 5), ("final 1x1", 1), ("timing", 1))


@pytest.mark.nightly  # test_search.py kills real trainings in the core
@pytest.mark.timeout(1800)
def test_kill_9_several_times_in_real_trainings(drivers, tmp_path, really_undisturbed):
    """Kills of one search from outside, each when it has come a little further."""
    folder, dice = tmp_path / "s", random.Random(1)
    words, kept = search(folder, "--images", "300"), set()
    for word, times in FIVE:
        driver = drivers.start(words, **BRIEF)
        driver.until(word, times)
        time.sleep(dice.random() / 4)
        os.kill(driver.pid, signal.SIGKILL)
        assert driver.wait().code in (-signal.SIGKILL, 0)
        assert none_left(driver.pid)
        assert kept <= ended(folder)
        kept = ended(folder)
    goes_on_to_the_real_end(drivers, folder, really_undisturbed)


@pytest.mark.nightly
@pytest.mark.timeout(7200)
def test_kill_9_at_twenty_moments_in_real_trainings(tmp_path, drivers, really_undisturbed):
    """A search of its own for each; the moments are spread over the lines that a search tells,
    and come up to a second after theirs.
    """
    dice, counts, words = random.Random(2), {}, really_undisturbed[3]
    for moment in moments(20, words.count("\n"), seed=2):
        folder = tmp_path / f"s{moment}"
        driver = drivers.start(search(folder, "--images", "300"), **BRIEF)
        driver.until("\n", moment - 1)
        time.sleep(dice.random())
        os.kill(driver.pid, signal.SIGKILL)
        assert driver.wait().code in (-signal.SIGKILL, 0)
        assert none_left(driver.pid)
        stage = phase(folder)
        counts[stage] = counts.get(stage, 0) + 1
        goes_on_to_the_real_end(drivers, folder, really_undisturbed)
    print(counts)


def test_a_worker_whose_driver_died_before_it_could_ask_ends_by_itself():
    """Between fork and prctl: the parent is not the driver any more."""
    worker = subprocess.Popen(
        [sys.executable, "-m", "canvas.workers.worker", "1", "0"],
        env=ENVIRONMENT,
        stdin=subprocess.PIPE,  # held open: the end of its jobs is not what ends it
    )
    try:
        assert worker.wait(TIMEOUT) == 1
    finally:
        worker.kill()
        worker.communicate()


def test_what_a_killed_driver_left_is_ended_by_the_next_search(drivers, tmp_path, undisturbed):
    """The children die with it; a daemon that a candidate started waits for the next search."""
    folder = tmp_path / "s"
    environment = {"CANVAS_FAULTS": "haunt", "CANVAS_COUNTER": str(tmp_path / "count")}
    driver = drivers.start(search(folder), environment=environment, **QUICK)
    end = time.monotonic() + TIMEOUT
    while not still_alive(tmp_path) and time.monotonic() < end:
        time.sleep(0.05)
    assert len(family(driver.pid)) == 2
    os.kill(driver.pid, signal.SIGKILL)
    driver.wait()
    end = time.monotonic() + TIMEOUT
    while len(family(driver.pid)) > 1 and time.monotonic() < end:
        time.sleep(0.05)
    assert [str(process) for process in family(driver.pid)] == still_alive(tmp_path)
    goes_on_to_the_same_end(drivers, folder, undisturbed)
    assert still_alive(tmp_path) == []


# ---- 3. files, disks, clocks ------------------------------------------------------------------


def test_a_second_search_is_rejected_whatever_it_wants(drivers, tmp_path, undisturbed):
    folder = tmp_path / "s"
    environment = {"CANVAS_FAULTS": "sleep", "CANVAS_COUNTER": str(tmp_path / "count")}
    first = drivers.start(search(folder), environment=environment, **QUICK)
    first.until("grouped")
    ended = "SELECT name, status FROM candidate WHERE status NOT IN ('new', 'running')"
    before = asked(folder, ended)
    for more in ([], ["--fresh"], ["--workers=4"]):
        said = drivers.run([*search(folder), *more], **QUICK).message()
        assert "another search is running in" in said
    assert before and asked(folder, ended) == before
    os.kill(first.pid, signal.SIGKILL)
    first.wait()
    goes_on_to_the_same_end(drivers, folder, undisturbed)


def cut(length):
    def damage(path):
        size = path.stat().st_size
        os.truncate(path, length if isinstance(length, int) else int(size * length) // 4096 * 4096)

    return damage


def scribble(page):
    """Bytes of nobody over a page."""

    def damage(path):
        with path.open("r+b") as file:
            file.seek(page * 4096)
            file.write(b"\xa5" * 4096)

    return damage


def others(path):
    path.write_bytes(b"%PDF-1.7\n" + bytes(range(256)) * 40)


def other_database(path):
    path.unlink()
    with sqlite3.connect(path) as database:
        database.execute("CREATE TABLE theirs (x)")


def newer(path):
    with connection(path.parent) as database:
        database.execute("PRAGMA user_version = 99")


# what happens to study.db, what the rejection says, whether --fresh starts over
DAMAGES = [
    (cut(1), "is not a study", False),
    (cut(15), "is not a study", False),
    (cut(16), "is not a study|is damaged", False),
    (cut(100), "is damaged", True),
    (cut(4095), "is damaged", True),
    (cut(4096), "is damaged", True),
    (cut(0.5), "is damaged", True),
    (cut(0.9), "is damaged", True),
    (scribble(0), "is not a study", False),
    (scribble(3), "is damaged", True),
    (scribble(12), "is damaged", True),
    (others, "is not a study", False),
    (other_database, "is not a study", False),
    (newer, "has format 99", False),
]


def test_a_reader_names_the_study_whose_pages_are_damaged(tmp_path, undisturbed):
    folder = tmp_path / "s"
    shutil.copytree(undisturbed[0], folder)
    whole = (folder / "study.db").read_bytes()
    (folder / "study.db").write_bytes(whole[:4096] + b"A" * (len(whole) - 4096))
    told = pytest.raises(CanvasError, match=f"'{folder}/study.db' is damaged")
    with told, Study.read(folder) as study:
        study.candidates()


@pytest.mark.parametrize("row", range(len(DAMAGES)))
def test_a_damaged_study_is_rejected_and_left_alone(tmp_path, undisturbed, row):
    damage, words, starts_over = DAMAGES[row]
    folder = tmp_path / "s"
    shutil.copytree(undisturbed[0], folder)
    damage(folder / "study.db")
    before = (folder / "study.db").read_bytes()
    for fresh in (False, *([] if starts_over else [True])):
        with pytest.raises(CanvasError, match=words) as rejection:
            Study.open(folder, fresh)
        assert "\n" not in str(rejection.value)
    assert (folder / "study.db").read_bytes() == before
    if starts_over:
        with Study.open(folder, fresh=True) as study:
            assert study.candidates() == []
        assert not list(folder.glob("find-*"))


@pytest.mark.parametrize("damage", [cut(0.5), scribble(3)])
def test_a_damaged_study_is_one_message_and_fresh_starts_over(
    drivers, tmp_path, undisturbed, damage
):
    folder = tmp_path / "s"
    shutil.copytree(undisturbed[0], folder)
    damage(folder / "study.db")
    said = drivers.run(search(folder), **QUICK).message()
    assert "is damaged" in said and "start a new study in another folder" in said
    listed = drivers.run(["trials", str(folder)])
    assert listed.code == 0 or listed.message()
    done = drivers.run([*search(folder), "--fresh"], **QUICK)
    assert done.code == 0 and rows(folder) == undisturbed[1]


def nothing(folder):
    (folder / "study.db").write_bytes(b"")


def without_log(folder):
    (folder / "study.db-wal").unlink()


def cut_log(share):
    def damage(folder):
        log = folder / "study.db-wal"
        os.truncate(log, int(log.stat().st_size * share))

    return damage


def scribble_log(folder):
    with (folder / "study.db-wal").open("r+b") as file:
        file.seek((folder / "study.db-wal").stat().st_size // 2)
        file.write(b"\xa5" * 100)


def without_memory(folder):
    (folder / "study.db-shm").unlink()


def only_the_log(folder):
    (folder / "study.db").unlink()


LOGS = [without_log, cut_log(0), cut_log(0.3), cut_log(0.7), scribble_log, without_memory,
        only_the_log]  # fmt: skip


def test_a_search_goes_on_with_what_a_damaged_log_still_holds(drivers, tmp_path, undisturbed):
    """What the -wal file held is done again; what it still holds is not."""
    killed = tmp_path / "killed"
    done = drivers.run(search(killed), at={undisturbed[3] // 2: "SIGKILL"}, **QUICK)
    assert done.code == -signal.SIGKILL
    assert (killed / "study.db-wal").stat().st_size > 100_000
    for number, damage in enumerate(LOGS):
        folder = tmp_path / f"s{number}"
        shutil.copytree(killed, folder)
        damage(folder)
        goes_on_to_the_same_end(drivers, folder, undisturbed)
    nothing(killed)
    assert "what is in its -wal would be lost" in drivers.run(search(killed)).message()


def test_an_empty_study_file_is_a_study_that_has_not_begun(drivers, tmp_path, undisturbed):
    folder = tmp_path / "s"
    folder.mkdir()
    nothing(folder)
    goes_on_to_the_same_end(drivers, folder, undisturbed)


def check_read_only(drivers, study, **order):
    """A folder that takes no writes: a search is rejected, reading works."""
    before = sorted(path.name for path in study.iterdir())
    said = drivers.run(search(study), **QUICK, **order).message()
    assert "cannot hold a study" in said and ("Read-only" in said or "Permission" in said)
    listed = drivers.run(["trials", str(study)], **order)
    assert listed.code == 0 and "depthwise-separable" in listed.out, listed
    assert sorted(path.name for path in study.iterdir()) == before


def test_a_read_only_disk(drivers, tmp_path, undisturbed):
    folder = tmp_path / "disk"
    with small_disk(folder, 4096):
        shutil.copytree(undisturbed[0], folder / "s")
        remount(folder, "ro")
        check_read_only(drivers, folder / "s")
        remount(folder, "rw")
        goes_on_to_the_same_end(drivers, folder / "s", undisturbed)


def test_a_folder_that_belongs_to_somebody_else(drivers, undisturbed):
    """As another user where the tests run as root, for whom no folder is read-only."""
    order = {"user": NOBODY, "folder": "/"} if os.getuid() == 0 else {}
    place = Path(tempfile.mkdtemp(dir="/tmp"))  # tmp_path is ours alone
    try:
        place.chmod(0o755)
        shutil.copytree(undisturbed[0], place / "s")
        (place / "s").chmod(0o555)
        check_read_only(drivers, place / "s", **order)
    finally:
        (place / "s").chmod(0o755)
        shutil.rmtree(place)


# How many kilobytes are free on the disk: at the first nothing fits, at the last all; between them
# it is full when the study is made, the images stored, trainings, finals, timings recorded.
DISK = 8192  # kilobytes
FREE = [0, 300, 640, 1000, 1600, 2400, 6500]


def fill(folder, free):
    """Fill the disk at `folder` but for so many kilobytes."""
    with (folder / "fill").open("wb", buffering=0) as file:
        try:
            while True:
                file.write(bytes(4096))
        except OSError as error:
            assert error.errno == errno.ENOSPC
        file.truncate(max(0, file.tell() - free * 1024))


def full_disk(drivers, disk, number, free, undisturbed):
    """A search on a disk that fills up; its exit code."""
    folder = disk / f"s{number}"
    fill(disk, free)
    done = drivers.run(search(folder), **QUICK)
    assert "Traceback" not in done.err
    if done.code:
        assert "full" in done.message() or "No space" in done.message(), done
    assert half_written(folder) == []
    (disk / "fill").unlink()
    goes_on_to_the_same_end(drivers, folder, undisturbed)
    shutil.rmtree(folder)
    return done.code


def test_a_full_disk_under_the_study(drivers, tmp_path, undisturbed):
    disk = tmp_path / "disk"
    with small_disk(disk, DISK):
        codes = [full_disk(drivers, disk, n, free, undisturbed) for n, free in enumerate(FREE)]
    assert codes[0] == 2 and codes.count(2) >= 5 and codes[-1] == 0


@pytest.mark.nightly
@pytest.mark.timeout(3600)
def test_a_full_disk_at_sixty_levels(drivers, tmp_path, undisturbed):
    disk = tmp_path / "disk"
    with small_disk(disk, DISK):
        codes = [full_disk(drivers, disk, n, 44 * n, undisturbed) for n in range(60)]
    print(f"full at {codes.count(2)} of {len(codes)} levels")
    assert codes[0] == 2 and codes[-1] == 0


@pytest.mark.parametrize("kilobytes", [0, 16, 100, 480])
def test_files_that_may_not_grow(drivers, tmp_path, undisturbed, kilobytes):
    """ulimit -f: as a full disk, and no mount is needed to try it."""
    folder = tmp_path / "s"
    out = {"out": "/dev/null", "err": str(tmp_path / "err")}
    driver = drivers.start(search(folder), largest=kilobytes * 1024, **{**QUICK, **out})
    done = driver.wait()
    assert done.code in (2, 0) and "Traceback" not in done.err, done
    assert done.code == 2 or kilobytes > 400
    assert half_written(folder) == []
    goes_on_to_the_same_end(drivers, folder, undisturbed)


def test_a_full_disk_under_standard_output(drivers, tmp_path, undisturbed):
    folder = tmp_path / "s"
    said = drivers.run(search(folder), out="/dev/full", whole=True, **QUICK).message()
    assert said == "canvas: No space left on device: 'standard output'"
    assert rows(folder) == undisturbed[1] and (folder / "pareto.csv").exists()
    for words in (["trials"], ["trials", "-f", "json"], ["trials", "-f", "csv"], ["pareto"]):
        told = drivers.run([*words, str(folder)], out="/dev/full", whole=True)
        assert told.message() == said, words


@pytest.mark.parametrize("place", ["closed", "/dev/full"])
def test_standard_error_that_takes_nothing_stops_no_search(drivers, tmp_path, undisturbed, place):
    folder = tmp_path / "s"
    done = drivers.run(search(folder), err=place, whole=True, **QUICK)
    assert done.code == 0 and "depthwise-separable" in done.out
    assert "s]" not in done.out  # no progress among the table
    assert (folder / "study.lock").read_bytes() == b""
    assert rows(folder) == undisturbed[1]
    assert drivers.run(["trials", str(tmp_path / "no")], err=place).code == 2


CLOCK = """
import itertools, time
_real, _calls = time.time, itertools.count()
time.time = lambda: _real() + (5 * 3600 if next(_calls) % 2 else -3 * 3600)
"""


@pytest.mark.parametrize(
    "children", [QUICK, pytest.param(BRIEF, marks=[pytest.mark.nightly])], ids=["quick", "real"]
)
def test_a_clock_that_jumps(drivers, tmp_path, request, children):
    """By eight hours at each look, in the driver and in its children."""
    (tmp_path / "sitecustomize.py").write_text(CLOCK)
    expected = request.getfixturevalue(
        "undisturbed" if children is QUICK else "really_undisturbed"
    )
    folder = tmp_path / "s"
    images = [] if children is QUICK else ["--images", "300"]
    environment = {"PYTHONPATH": f"{tmp_path}{os.pathsep}{ENVIRONMENT['PYTHONPATH']}"}
    words = search(folder, "--time-limit", "2h", *images)
    done = drivers.run(words, clock=True, environment=environment, **children)
    assert done.code == 0, done
    assert "time limit" not in done.out
    after = rows(folder)
    assert {**after, "study": None} == {**expected[1], "study": None}


@pytest.mark.parametrize("what", ["moved", "replaced"])
def test_a_folder_that_is_moved_while_its_search_runs(drivers, tmp_path, undisturbed, what):
    folder, away = tmp_path / "s", tmp_path / "away"
    at = {undisturbed[3] // 2: ["move", str(folder), str(away)]}
    if what == "replaced":
        at = {undisturbed[3] // 2: ["move", str(folder / "study.db"), str(folder / "other.db")]}
    driver = drivers.start(search(folder), at=at, **QUICK)
    assert "was removed while the search ran" in driver.wait().message()
    assert none_left(driver.pid, 0)
    if what == "moved":
        assert not folder.exists()
        goes_on_to_the_same_end(drivers, away, undisturbed)


ODD = ["sp ace", "quo'te\"s", "what?mode=ro&x", "per%20cent%", "ha#sh", "back\\slash", "ümläut",
       "-dash", "new\nline", b"\xff bytes".decode("utf-8", "surrogateescape")]  # fmt: skip


def test_folders_with_odd_names(drivers, tmp_path, undisturbed):
    """One in another: one search has them all in its path."""
    folder = tmp_path.joinpath(*ODD)
    folder.parent.mkdir(parents=True)
    environment = {"PYTHONUTF8": "1"}
    done = goes_on_to_the_same_end(drivers, folder, undisturbed, environment=environment)
    assert "Traceback" not in done.err
    listed = drivers.run(["trials", str(folder), "-f", "json"], environment=environment)
    finds = [row for row in json.loads(listed.out) if row["kind"] != "draw"]
    assert len(finds) == len(undisturbed[1]["candidate"])
    said = drivers.run(["trials", str(folder / "no")], environment=environment).message()
    assert "there is no study in" in said


# ---- 4. older formats -------------------------------------------------------------------------

FORMAT_1 = (HERE / "study_format_1.sql").read_text()  # its driver was killed in find 2 of 4
OLD_MODEL = "from faults_models import build\n"
OLD_FLAGS = ("--model", "small_network:build", "--trials", "4", "--finalists", "0")


def make_old(folder):
    folder.mkdir()
    with sqlite3.connect(folder / "study.db", isolation_level=None) as database:
        database.executescript(FORMAT_1)
        database.execute("PRAGMA journal_mode = WAL")
    database.close()
    return folder


def dump(folder):
    with connection(folder) as database:
        version = database.execute("PRAGMA user_version").fetchone()[0]
        return version, list(database.iterdump())


def test_a_study_of_format_1_goes_on(drivers, tmp_path):
    folder = make_old(tmp_path / "s")
    (tmp_path / "small_network.py").write_text(OLD_MODEL)
    before = dump(folder)
    said = drivers.run(["trials", str(folder)]).message()
    assert "has the older format 1: give its command, canvas search" in said
    assert dump(folder) == before
    query = "SELECT name, pack, val_accuracy, seconds FROM candidate WHERE status = 'done'"
    known = asked(folder, query)
    assert len(known) == 7
    words = [word for word in search(folder, *OLD_FLAGS) if word != "--deterministic"]
    said = drivers.run(words, folder=str(tmp_path), **QUICK).message()
    assert "version 1 of the sampler" in said and "give --trials 3 to go on with those" in said
    words[words.index("--trials") + 1] = "3"
    done = drivers.run(words, folder=str(tmp_path), **QUICK)
    assert done.code == 0 and "2 of 3 trials are there" in done.err, done
    after = asked(folder, query)
    names = [row[0] for row in after[7:]]
    assert after[:7] == known and "2" in names and len(names) == 3
    assert {"spatially-separable", "bottleneck"} < set(names)  # controls that it did not have
    for engine in ("eager", "native"):
        query = f"SELECT count(*) FROM timing WHERE engine = '{engine}' AND latency_ms > 0"
        assert asked(folder, query) == [(10,)]
    assert drivers.run(["trials", str(folder)]).code == 0


# Opens the study; kill -9 at statement argv[2], or files of at most argv[3] bytes.
UPGRADE = """
import os, resource, signal, sqlite3, sys
from pathlib import Path
from canvas.errors import CanvasError
from canvas.study import Study, writing

def upgrade(folder, kill, largest):
    count = 0
    def step(statement):
        nonlocal count
        count += 1
        if count == kill:
            os.kill(os.getpid(), signal.SIGKILL)
    def connect(*words, **more):
        database = real(*words, **more)
        database.set_trace_callback(step)
        return database
    real, sqlite3.connect = sqlite3.connect, connect
    if largest:
        resource.setrlimit(resource.RLIMIT_FSIZE, (largest, largest))
    try:
        with writing(folder):
            Study.open(folder).close()
    except CanvasError as error:
        print(error, flush=True)
        os._exit(2)
    os._exit(0)

for line in sys.stdin:
    folder, kill, largest = eval(line)
    child = os.fork()
    if child == 0:
        upgrade(Path(folder), kill, largest)
    print("ended", os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
"""


@pytest.fixture
def upgrade():
    """upgrade(folder, kill, largest) opens the study in a process of its own: (code, words)."""
    process = subprocess.Popen(
        [sys.executable, "-c", UPGRADE],
        env=ENVIRONMENT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )

    def ask(folder, kill=0, largest=0):
        process.stdin.write(f"{(str(folder), kill, largest)!r}\n")
        process.stdin.flush()
        said = ""
        while not (line := process.stdout.readline()).startswith("ended "):
            said += line
        return int(line.split()[1]), said

    yield ask
    process.communicate()


@pytest.fixture
def formats(tmp_path, upgrade):
    """What a study of format 1 holds, and what it holds when it is upgraded."""
    before = dump(make_old(tmp_path / "before"))
    folder = make_old(tmp_path / "after")
    assert upgrade(folder) == (0, "")
    return before, dump(folder)


def check_upgraded_or_whole(folder, upgrade, formats):
    """After a fault in the upgrade: the format that is there, and all of it; then it goes on."""
    found = dump(folder)
    assert found[0] == VERSION or found == formats[0]
    assert upgrade(folder)[0] == 0
    assert dump(folder) == formats[1]
    shutil.rmtree(folder)
    return found[0]


def test_an_upgrade_that_is_killed_leaves_a_whole_study(tmp_path, upgrade, formats):
    """At each of its statements; in short runs at every third one."""
    versions, step = [], 1 if ALL else 3
    for statement in itertools.count(1, step):
        folder = make_old(tmp_path / "s")
        code, _ = upgrade(folder, kill=statement)
        versions.append(check_upgraded_or_whole(folder, upgrade, formats))
        if code == 0:
            break
    assert versions.count(1) > 30 // step and versions == sorted(versions)


def test_an_upgrade_on_a_full_disk_leaves_a_whole_study(tmp_path, upgrade, formats):
    versions = []
    for largest in range(4096, 160_000, 8_000):
        folder = make_old(tmp_path / "s")
        code, said = upgrade(folder, largest=largest)
        assert code in (0, 2) and "\n" not in said[:-1], said
        versions.append((code, check_upgraded_or_whole(folder, upgrade, formats)))
    assert versions.count((2, 1)) > 3 and versions[-1] == (0, VERSION)


# ---- 5. Ctrl-C, SIGTERM, a terminal that closes ------------------------------------------------


ENDING = ("SIGINT", "SIGTERM", "SIGHUP")


def stop_and_go_on(drivers, folder, undisturbed, at, **order):
    """A search that gets these signals at these of its steps; its exit code."""
    driver = drivers.start(search(folder), at=at, whole=True, **order, **QUICK)
    done = driver.wait()
    assert none_left(driver.pid, 0)
    assert "Traceback" not in done.err and "Exception ignored" not in done.err, done
    if done.code != 0 or min(at) < 0.8 * undisturbed[3]:  # else it came after the last step
        assert done.code == 130, done
        told = done.err.count("the same command")
        assert told == 1 or (told == 0 and (folder / "pareto.csv").exists()), done  # all is done
        assert asked_or_none(folder) == []
    assert half_written(folder) == []
    goes_on_to_the_same_end(drivers, folder, undisturbed)
    return done.code


def asked_or_none(folder):
    """What a stopped search left running; nothing where it had not begun."""
    try:
        return asked(folder, "SELECT name FROM candidate WHERE status = 'running'")
    except sqlite3.OperationalError:
        return []


def test_a_signal_at_any_step_ends_a_search_that_can_go_on(drivers, tmp_path, undisturbed):
    for number, moment in enumerate(moments(3, undisturbed[3], seed=6)):
        at = {moment: ENDING[number % 3]}
        stop_and_go_on(drivers, tmp_path / f"s{moment}", undisturbed, at)


def test_a_second_ctrl_c_changes_nothing(drivers, tmp_path, undisturbed):
    """While the first one is obeyed, which takes a few steps: rows are put back."""
    at = {undisturbed[3] // 3: "SIGINT"}
    for again in ({1: "SIGINT"}, {2: "SIGINT", 4: "SIGTERM"}):
        folder = tmp_path / f"s{len(again)}"
        assert stop_and_go_on(drivers, folder, undisturbed, at, again=again) == 130


@pytest.mark.nightly
@pytest.mark.timeout(7200)
def test_a_signal_at_a_hundred_steps(drivers, tmp_path, undisturbed):
    codes = {}
    for number, moment in enumerate(moments(100, undisturbed[3], seed=7)):
        at = {moment: ENDING[number % 3]}
        if number % 4 == 0:
            at[moment + number % 7 + 1] = "SIGINT"
        code = stop_and_go_on(drivers, tmp_path / f"s{moment}", undisturbed, at)
        codes[code] = codes.get(code, 0) + 1
        shutil.rmtree(tmp_path / f"s{moment}")
    print(f"exit codes: {codes}")


@pytest.mark.parametrize("name", ENDING)
def test_a_search_whose_child_hangs_ends_soon(drivers, tmp_path, name):
    """The whole process group gets it, as from a terminal; the child is in an endless loop."""
    environment = {"CANVAS_FAULTS": "loop", "CANVAS_COUNTER": str(tmp_path / "count")}
    driver = drivers.start(search(tmp_path / "s"), environment=environment, **QUICK)
    driver.until("grouped")
    begin = time.monotonic()
    os.killpg(driver.pid, signal.Signals[name])
    done = driver.wait()
    assert time.monotonic() - begin < soon()
    assert done.code == 130 and "0 of 10 trials are kept" in done.err, done
    assert none_left(driver.pid, 0)


def test_a_terminal_that_closes(drivers, tmp_path, undisturbed):
    ours, theirs = pty.openpty()
    folder, environment = tmp_path / "s", {"TERM": "xterm"}
    environment |= {"CANVAS_FAULTS": "sleep", "CANVAS_COUNTER": str(tmp_path / "count")}
    driver = drivers.start(
        search(folder), terminal=os.ttyname(theirs), environment=environment, **QUICK
    )
    seen = b""
    while b"grouped" not in seen:
        seen += os.read(ours, 4096)
    os.close(theirs)  # not before: without anybody at the other end there is nothing to read
    begin = time.monotonic()
    os.close(ours)
    done = driver.wait()
    assert time.monotonic() - begin < soon()
    assert done.code == 130 and none_left(driver.pid, 0)
    assert asked(folder, "SELECT name FROM candidate WHERE status = 'running'") == []
    goes_on_to_the_same_end(drivers, folder, undisturbed)


def start_command(folder, *more):
    """The command itself; it tells into a file beside its folder."""
    with open(f"{folder}.err", "w") as told:
        return subprocess.Popen(
            [sys.executable, "-m", "canvas", *search(folder, *more)],
            env=ENVIRONMENT,
            cwd=HERE,
            stdout=subprocess.DEVNULL,
            stderr=told,
            start_new_session=True,
            preexec_fn=heed_ctrl_c,
        )


def heed_ctrl_c():
    """A background job of a plain shell ignores SIGINT, and so do all that it starts."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def told(folder):
    return Path(f"{folder}.err").read_text()


@pytest.mark.parametrize("name", ["SIGINT", *(pytest.param(n, marks=pytest.mark.nightly)
                                              for n in ("SIGTERM", "SIGHUP"))])  # fmt: skip
def test_a_signal_while_torch_is_imported(tmp_path, name):
    """The command itself, as soon as it has mapped torch's library."""
    process = start_command(tmp_path / "s")
    maps = Path(f"/proc/{process.pid}/maps")
    while process.poll() is None and b"libtorch" not in read_bytes(maps):
        time.sleep(0.005)
    begin = time.monotonic()
    os.killpg(process.pid, signal.Signals[name])
    os.killpg(process.pid, signal.Signals[name])
    process.wait(TIMEOUT)
    assert time.monotonic() - begin < soon()
    assert process.returncode == 130
    assert told(tmp_path / "s") == (
        "canvas: stopped while PyTorch was loading, nothing had begun: "
        "the same command starts it\n"
    )
    assert not (tmp_path / "s").exists()


def compiles(pid):
    """Whether a child of this driver has started a compiler."""
    return any(b"cc1plus" in read_bytes(Path(f"/proc/{p}/cmdline")) for p in family(pid))


@pytest.mark.nightly
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("name", ENDING)
@pytest.mark.parametrize("stage", ["training", "finals", "compiling", "timing"])
def test_a_signal_in_every_stage_of_a_real_search(tmp_path, stage, name):
    folder = tmp_path / "s"
    flags = ("--images", "300", "--trials", "2", "--compile", "yes")
    process = start_command(folder, *flags)
    word = {"training": "baseline", "finals": "final identity"}.get(stage, "timing")
    while word not in told(folder):
        assert process.poll() is None, told(folder)
        time.sleep(0.05)
    while stage == "compiling" and not compiles(process.pid):
        assert process.poll() is None
        time.sleep(0.01)
    while stage == "timing" and asked(folder, "SELECT count(*) FROM timing") == [(0,)]:
        time.sleep(0.05)
    begin = time.monotonic()
    os.killpg(process.pid, signal.Signals[name])
    process.wait(TIMEOUT)
    seconds = time.monotonic() - begin
    print(f"{stage} {name}: {seconds:.2f} s")
    assert seconds < soon() and process.returncode == 130
    assert "the same command continues" in told(folder) and "Traceback" not in told(folder)
    assert none_left(process.pid, 0)


def test_nohup_is_obeyed(drivers, tmp_path, undisturbed):
    """A signal that was ignored from outside ends nothing."""
    folder = tmp_path / "s"
    at = {undisturbed[3] // 2: "SIGHUP"}
    done = drivers.run(search(folder), at=at, ignore=["SIGHUP"], **QUICK)
    assert done.code == 0 and rows(folder) == undisturbed[1]
