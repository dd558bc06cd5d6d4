"""What a killed driver left is killed and removed; a living one keeps its own, anywhere."""

import os
import secrets
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from canvas.workers.orphans import MARK, place
from canvas.workers.scratch import LOCK, PREFIX, Scratch, clear_left, new_scratch

# Has a folder and a child that leaves the process group, says where, waits to be killed.
DRIVER = f"""
import os, subprocess, sys, time
from canvas.workers.scratch import clear_left, new_scratch
clear_left()
scratch = new_scratch()
environment = {{**os.environ, "{MARK}": scratch.new_mark()}}
child = subprocess.Popen(["sleep", "600"], env=environment, start_new_session=True)
print(scratch.path, flush=True)
sys.stdin.read()
clear_left()
print("tidied", flush=True)
time.sleep(600)
"""
UNSHARE = ["unshare", "--pid", "--fork", "--mount-proc", "--kill-child"]


@contextmanager
def driver(*before: str) -> Iterator[tuple[subprocess.Popen[str], Path]]:
    """A driver, behind the words of `before`, and its folder; it is killed at the end."""
    command = [*before, sys.executable, "-c", DRIVER]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdin and process.stdout
        try:
            folder = Path(process.stdout.readline().strip())
            wait_for_child(folder)
            yield process, folder
        finally:
            process.kill()


def wait_for_child(folder: Path) -> None:
    """Until /proc shows the mark of a child that was just started: while the system puts a new
    program in place, the process has no environment.
    """
    end = time.monotonic() + 30
    while not marked(folder) and time.monotonic() < end:
        time.sleep(0.01)


def marked(folder: Path) -> list[int]:
    """The living processes that carry a mark of `folder`."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            words = (entry / "environ").read_bytes().split(b"\0")
        except OSError:
            continue
        if any(word.startswith(f"{MARK}={folder}:".encode()) for word in words):
            found.append(int(entry.name))
    return found


@contextmanager
def carrier(mark: str) -> Iterator[subprocess.Popen[bytes]]:
    """A process that carries `mark`."""
    with subprocess.Popen(["sleep", "600"], env={**os.environ, MARK: mark}) as process:
        try:
            yield process
        finally:
            process.kill()


def lives(process: subprocess.Popen[bytes]) -> bool:
    time.sleep(0.02)
    return process.poll() is None


def name_of(process: int, where: str | None = None) -> str:
    """A folder's name that no other test has: whoever tidies kills the children of that name, the
    tests that run beside this one too.
    """
    return f"{PREFIX}-{where or place()}-{process}-{secrets.token_hex(4)}"


def goes(folder: Path) -> bool:
    """Whether tidying removes a folder.  A test that runs beside this one may be tidying it, too:
    then we leave it alone meanwhile.
    """
    end = time.monotonic() + 30
    while folder.exists() and time.monotonic() < end:
        clear_left()
        time.sleep(0.02)
    return not folder.exists()


def made(name: str, lock: bool = True) -> Path:
    """A folder as a killed driver leaves it, where those of drivers are made."""
    folder = Path(os.environ["TMPDIR"], name)
    folder.mkdir()
    (folder / "file").touch()
    if lock:
        (folder / LOCK).touch()
    return folder


@pytest.fixture
def left() -> Iterator[list[Path]]:
    """Paths that a test leaves."""
    paths: list[Path] = []
    yield paths
    for path in paths:
        subprocess.run(["rm", "-rf", str(path)], check=True)


@pytest.fixture
def own() -> Iterator[Scratch]:
    scratch = new_scratch()
    yield scratch
    scratch.remove()


def test_what_a_killed_driver_left_goes(own: Scratch) -> None:
    with driver() as (process, folder):
        clear_left()
        assert folder.is_dir() and marked(folder)
        process.kill()
        process.wait()
        assert goes(folder) and not marked(folder) and own.path.is_dir()


def test_a_driver_in_another_pid_namespace_is_left_alone(own: Scratch, left: list[Path]) -> None:
    """Neither side takes the other for dead: process ids mean something else there."""
    if subprocess.run([*UNSHARE, "true"], capture_output=True).returncode:
        pytest.skip("unshare --pid is not permitted")
    with carrier(own.new_mark()) as child, driver(*UNSHARE) as (process, folder):
        left.append(folder)
        assert folder.name.split("-")[2] != place()
        clear_left()
        assert folder.is_dir() and marked(folder)
        assert process.stdin and process.stdout
        process.stdin.close()
        assert process.stdout.readline() == "tidied\n"
        assert own.path.is_dir() and lives(child)


def test_a_folder_of_another_place_is_left_alone_though_its_lock_is_free(left: list[Path]) -> None:
    """Locks of another host may not be seen here."""
    folder = made(name_of(999999999, "0" * 16))
    left.append(folder)
    with carrier(f"{folder}:0") as child:
        clear_left()
        assert folder.is_dir() and lives(child)


@pytest.mark.parametrize(
    "process", [1, os.getpid(), 0, 99999999999999999999], ids=["1", "own", "0", "huge"]
)
def test_the_lock_decides_and_no_process_id(process: int, own: Scratch) -> None:
    """An id comes back, or is that of another process by now."""
    folder = made(name_of(process))
    with carrier(f"{folder}:0") as child:
        assert goes(folder) and not lives(child)
    free = own.path.rename(own.path.with_name(name_of(process)))
    with carrier(f"{free}:0") as child:
        clear_left()
        assert free.is_dir() and lives(child)
    free.rename(own.path)


def test_a_folder_without_a_lock_is_left_alone(left: list[Path]) -> None:
    folder = made(name_of(1), lock=False)
    left.append(folder)
    with carrier(f"{folder}:0") as child:
        clear_left()
        assert folder.is_dir() and lives(child) and not (folder / LOCK).exists()


@pytest.mark.parametrize("kind", ["link to a lock", "pipe", "folder", "folder is a link"])
def test_a_lock_is_a_file_of_its_folder(kind: str, left: list[Path], tmp_path: Path) -> None:
    name = name_of(1)
    (tmp_path / LOCK).touch()
    if kind == "folder is a link":
        folder = Path(os.environ["TMPDIR"], name)
        folder.symlink_to(tmp_path)
    else:
        folder = made(name, lock=False)
    left.append(folder)
    if kind == "link to a lock":
        (folder / LOCK).symlink_to(tmp_path / LOCK)
    elif kind == "pipe":
        os.mkfifo(folder / LOCK)
    elif kind == "folder":
        (folder / LOCK).mkdir()
    with carrier(f"{folder}:0") as child:
        clear_left()
        assert os.path.lexists(folder / LOCK) and lives(child)
    assert (tmp_path / LOCK).exists()


HOSTILE = [
    "",
    ":",
    "x",
    "1:1:1",
    "0:0:0",
    "-1:-1:-1",
    f"{'9' * 9000}:1:0",
    "/:0",
    "/proc/1:0",
    "..:0",
    f"{PREFIX}-{'0' * 16}-1-abcdefgh:0",
    f"/{'x' * 5000}/{PREFIX}-HERE-1-abcdefgh:0",
    f"/nowhere/{PREFIX}-HERE-1-abcdefgh:0",
    f"/nowhere/{PREFIX}-HERE-1-abcdefgh:-1",
    f"/nowhere/{PREFIX}-HERE-1-abcdefgh:\u0661",
    f"/nowhere/../{PREFIX}-HERE-1-abcdefgh/..:0",
    "\udcff\udcfe/:0",
]


@pytest.mark.parametrize("mark", HOSTILE)
def test_a_mark_that_is_none_hurts_nobody(mark: str) -> None:
    with carrier(mark.replace("HERE", place())) as child:
        clear_left()
        assert lives(child)


def test_a_folder_of_another_user_is_left_alone(left: list[Path]) -> None:
    if os.geteuid():
        pytest.skip("only root gives files away")
    folder = made(name_of(1))
    left.append(folder)
    os.chown(folder, 12345, 12345)
    with carrier(f"{folder}:0") as child:
        clear_left()
        assert folder.is_dir() and lives(child)
