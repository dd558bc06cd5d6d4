"""A file or folder that is written at once: whole or not at all, whenever its writer dies."""

import errno
import fcntl
import os
import resource
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest
from faults import small_disk

from canvas.files import (
    add_lines,
    at_once,
    folder_at_once,
    open_file,
    remove_files,
    temporary_name,
)

# Writes half, says so and waits to be killed.
HALF = """
import sys, time
from pathlib import Path
from canvas.files import at_once, folder_at_once
path = Path(sys.argv[2])
if sys.argv[1] == "file":
    with at_once(path) as file:
        file.write(b"hal")
        file.flush()
        print("half", flush=True)
        time.sleep(60)
with folder_at_once(path) as folder:
    (folder / "a").write_text("hal")
    print("half", flush=True)
    time.sleep(60)
"""


def killed_half_way(kind, path):
    command = [sys.executable, "-c", HALF, kind, str(path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as writer:
        assert writer.stdout.read(4) == b"half"
        writer.send_signal(signal.SIGKILL)


def test_a_file_whose_writer_is_killed_is_as_it_was(tmp_path):
    path = tmp_path / "f"
    path.write_bytes(b"before")
    killed_half_way("file", path)
    assert path.read_bytes() == b"before"
    with at_once(path) as file:
        file.write(b"after")
    assert path.read_bytes() == b"after" and os.listdir(tmp_path) == ["f"]


def test_a_folder_whose_writer_is_killed_is_not_there(tmp_path):
    path = tmp_path / "d"
    killed_half_way("folder", path)
    assert not path.exists()
    with folder_at_once(path) as folder:
        (folder / "b").write_text("after")
    assert os.listdir(path) == ["b"] and os.listdir(tmp_path) == ["d"]


@pytest.mark.parametrize("fault", [OSError, KeyboardInterrupt])
def test_a_writer_that_fails_leaves_what_was_there(tmp_path, fault):
    path = tmp_path / "f"
    path.write_bytes(b"before")
    with pytest.raises(fault), at_once(path) as file:
        file.write(b"hal")
        raise fault
    with pytest.raises(fault), folder_at_once(tmp_path / "d"):
        raise fault
    assert path.read_bytes() == b"before" and os.listdir(tmp_path) == ["f"]


def test_lines_are_added_whole(tmp_path: Path) -> None:
    path = tmp_path / "lines"
    add_lines(path, "one\n")
    path.write_text(path.read_text() + "to")  # torn
    add_lines(str(path), "two\nthree\n")
    assert path.read_text() == "one\nto\ntwo\nthree\n"


FULL = """
import resource, signal, sys
from canvas.files import add_lines
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100))
add_lines(sys.argv[1], "a" * 60 + chr(10))
for size in (39, 200):
    try:
        add_lines(sys.argv[1], "b" * size + chr(10))
    except OSError as error:
        print(error.strerror)
"""


def test_without_room_no_line_is_added(tmp_path: Path) -> None:
    path = tmp_path / "lines"
    done = subprocess.run(
        [sys.executable, "-c", FULL, path], capture_output=True, text=True, check=True
    )
    assert len(done.stdout.splitlines()) == 2
    assert path.read_text() == "a" * 60 + "\n"


# ---- several writers, and what is not ours ------------------------------------------------------

WRITERS = """
import sys
from pathlib import Path
from canvas.files import at_once
path, letter, end = Path(sys.argv[1]), sys.argv[2].encode(), Path(sys.argv[3])
while not end.exists():
    with at_once(path) as file:
        for _ in range(8):
            file.write(letter * 5000)
            file.flush()
"""


def test_of_two_writers_a_reader_sees_whole_files(tmp_path: Path) -> None:
    path, end = tmp_path / "f", tmp_path / "end"
    path.write_bytes(b"a" * 40000)
    command = [sys.executable, "-c", WRITERS, str(path)]
    writers = [subprocess.Popen([*command, letter, str(end)]) for letter in "ab"]
    seen: Counter[bytes] = Counter()
    late = time.monotonic() + 60
    try:
        while min(seen[b"a"], seen[b"b"]) < 100 and time.monotonic() < late:
            content = path.read_bytes()
            assert len(content) == 40000 and len(set(content)) == 1, "torn"
            seen[content[:1]] += 1
    finally:
        end.touch()
        codes = [writer.wait(60) for writer in writers]
    assert codes == [0, 0] and len(seen) == 2
    assert sorted(os.listdir(tmp_path)) == ["end", "f"]


@pytest.mark.parametrize("kind", ["file", "folder"])
def test_what_has_the_temporary_name_of_old_is_the_users(kind: str, tmp_path: Path) -> None:
    """`.NAME.new` and `NAME.part` were removed unseen, and written over."""
    for name in (".x.new", "x.part", f".x.{os.getpid()}", ".x.abc.new", "x.new"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "mine").write_text("mine")
    (tmp_path / ".x.0123456789abcdef.new").symlink_to(tmp_path / ".x.new")
    (tmp_path / ".y.0123456789abcdef.new").write_text("of another")
    before = sorted(path.name for path in tmp_path.rglob("*"))
    if kind == "file":
        with at_once(tmp_path / "x") as file:
            file.write(b"new")
    else:
        with folder_at_once(tmp_path / "x"):
            pass
    assert sorted(path.name for path in tmp_path.rglob("*")) == sorted([*before, "x"])


def test_what_a_writer_still_holds_is_not_removed(tmp_path: Path) -> None:
    path = tmp_path / "x"
    for write in (at_once, folder_at_once):
        path.unlink(missing_ok=True)
        with write(path):
            assert len(os.listdir(tmp_path)) == 1
            with at_once(path) as file:
                file.write(b"second")
            assert len(os.listdir(tmp_path)) == 2 and path.read_bytes() == b"second"
            path.unlink()


def test_what_is_left_goes_once_its_lock_is_free(tmp_path: Path) -> None:
    path = tmp_path / "x"
    left, folder = (tmp_path / temporary_name("x") for _ in range(2))
    left.write_text("half")
    folder.mkdir()
    (folder / "deep").mkdir()
    pipe = tmp_path / temporary_name("x")
    os.mkfifo(pipe)
    with left.open() as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        with at_once(path):
            pass
        assert left.exists() and not folder.exists() and pipe.exists()
    with at_once(path):
        pass
    assert not left.exists() and pipe.exists()


def test_a_long_name_has_a_temporary_one(tmp_path: Path) -> None:
    for name in ("n" * 255, "\u00e9" * 127, os.fsdecode(b"\xff" * 255)):
        for _ in range(2):
            with at_once(tmp_path / name) as file:
                file.write(b"new")
    assert len(os.listdir(tmp_path)) == 3


@pytest.mark.parametrize("kind", ["folder", "pipe", "device"])
def test_what_is_no_file_is_not_replaced(kind: str, tmp_path: Path) -> None:
    path = tmp_path / "x"
    if kind == "folder":
        path.mkdir()
    elif kind == "pipe":
        os.mkfifo(path)
    else:
        path.symlink_to("/dev/null")
    with pytest.raises(OSError, match=r"regular file|Is a directory"), at_once(path):
        pass
    assert os.listdir(tmp_path) == ["x"] and not path.is_file()
    with pytest.raises(OSError, match=r"regular file|Is a directory"):
        open_file(path)


def test_a_link_is_not_followed_where_it_must_not_be(tmp_path: Path) -> None:
    (tmp_path / "theirs").mkdir()
    (tmp_path / "theirs/a").write_text("mine")
    link = tmp_path / "link"
    link.symlink_to("theirs")
    with pytest.raises(OSError, match="is a symbolic link"), at_once(link / "a", False):
        pass
    remove_files(link, ["a"])
    assert (tmp_path / "theirs/a").read_text() == "mine"
    remove_files(tmp_path / "theirs", ["a", "b"])
    assert os.listdir(tmp_path / "theirs") == []


def fill(write: Callable[[Path], None], path: Path) -> None:
    with pytest.raises(OSError, match=r"No space left|File too large"):
        write(path)


def write_file(path: Path) -> None:
    with at_once(path) as file:
        file.write(b"x" * 300_000)


def write_folder(path: Path) -> None:
    with folder_at_once(path) as folder:
        (folder / "a").write_bytes(b"x" * 300_000)


def test_a_full_disk_leaves_the_old_file(tmp_path: Path) -> None:
    with small_disk(tmp_path / "disk", 100):
        path = tmp_path / "disk/x"
        path.write_text("old")
        fill(write_file, path)
        fill(write_folder, tmp_path / "disk/d")
        assert path.read_text() == "old" and os.listdir(tmp_path / "disk") == ["x"]


def test_a_limit_of_size_leaves_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "x"
    path.write_text("old")
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    old = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, before[1]))
    try:
        fill(write_file, path)
        fill(write_folder, tmp_path / "d")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, old)
    assert path.read_text() == "old" and os.listdir(tmp_path) == ["x"]


def test_a_file_comes_to_disk_before_its_name_and_the_name_after(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else a power failure leaves an empty file in the place of the old one."""
    done = []
    sync, replace = os.fsync, os.replace

    def note_sync(handle: int) -> None:
        done.append("folder" if os.path.isdir(f"/proc/self/fd/{handle}") else "file")
        sync(handle)

    def note_replace(*words: object) -> None:
        done.append("renamed")
        replace(*words)  # type: ignore[arg-type]

    monkeypatch.setattr(os, "fsync", note_sync)
    monkeypatch.setattr(os, "replace", note_replace)
    with at_once(tmp_path / "x") as file:
        file.write(b"x")
    assert done == ["file", "renamed", "folder"]
    done.clear()
    with folder_at_once(tmp_path / "d") as folder:
        (folder / "a").touch()
        (folder / "b").touch()
    assert done == ["file", "file", "folder", "renamed", "folder"]


def test_without_locks_it_is_written_and_nothing_is_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    (tmp_path / temporary_name("x")).touch()
    monkeypatch.setattr(fcntl, "flock", refuse)
    with at_once(tmp_path / "x") as file:
        file.write(b"x")
    assert len(os.listdir(tmp_path)) == 2


def test_threads_may_write_one_file(tmp_path: Path) -> None:
    path = tmp_path / "x"

    def write(letter: bytes) -> None:
        for _ in range(20):
            with at_once(path) as file:
                file.write(letter * 1000)

    threads = [threading.Thread(target=write, args=(letter,)) for letter in (b"a", b"b", b"c")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(path.read_bytes())) == 1 and os.listdir(tmp_path) == ["x"]
