"""The files that `canvas compile -o` writes: whole or not at all, beside whatever stands there."""

import fcntl
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from faults import small_disk

from canvas.files import at_once, named_file, temporary_name

CANVAS = str(Path(sys.executable).parent / "canvas")
PROGRAM = """canvas 1
program {name}
in X f32 [h:{size}]
Y[h:{size}] = X[h] * 2
out Y
"""


def compile(folder: Path, name: str = "x.c", size: int = 16) -> subprocess.CompletedProcess[str]:
    words = [CANVAS, "compile", "-", "--emit", "c", "-o", f"{folder}/{name}"]
    text = PROGRAM.format(name="p", size=size)
    return subprocess.run(words, input=text, capture_output=True, text=True)


def test_what_is_left_goes_once_its_lock_is_free_and_nothing_else(tmp_path: Path) -> None:
    left, held, pipe, link, folder = (tmp_path / temporary_name("x.c") for _ in range(5))
    left.touch()
    held.touch()
    os.mkfifo(pipe)
    folder.mkdir()
    mine = [".x.c.new", "x.c.aBcDeF", ".x.c.0123456789abcde.new", temporary_name("y.c")]
    for name in mine:
        (tmp_path / name).write_text("mine")
    link.symlink_to(mine[0])
    with held.open() as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        assert compile(tmp_path).returncode == 0
        assert not left.exists() and held.exists()
    assert compile(tmp_path).returncode == 0
    names = {pipe.name, link.name, folder.name, "x.c", *mine}
    assert set(os.listdir(tmp_path)) == names
    with at_once(tmp_path / "x.c"):  # Python's writer knows the same names
        pass
    assert set(os.listdir(tmp_path)) == names - {folder.name}


def test_of_two_writers_a_reader_sees_whole_files(tmp_path: Path) -> None:
    texts = []
    for size in (16, 32):
        assert compile(tmp_path, size=size).returncode == 0
        texts.append((tmp_path / "x.c").read_text())
    loops = [
        f"for i in $(seq 8); do printf '{PROGRAM.format(name='p', size=size)}' | "
        f"{CANVAS} compile - --emit c -o {tmp_path}/x.c || exit 1; done"
        for size in (16, 32)
    ]
    writers = [subprocess.Popen(["sh", "-c", loop]) for loop in loops]
    seen = set()
    while any(writer.poll() is None for writer in writers):
        seen.add((tmp_path / "x.c").read_text())
        time.sleep(0.0005)
    assert [writer.returncode for writer in writers] == [0, 0]
    assert seen == set(texts) and os.listdir(tmp_path) == ["x.c"]


def test_a_full_disk_leaves_the_old_file(tmp_path: Path) -> None:
    with small_disk(tmp_path / "disk", 8):
        (tmp_path / "disk/x.c").write_text("old")
        (tmp_path / "disk/filler").write_bytes(b"x" * 4000)
        done = compile(tmp_path / "disk")
        assert done.returncode == 2 and "cannot write" in done.stderr
        assert done.stderr.endswith("No space left on device\n")
        assert (tmp_path / "disk/x.c").read_text() == "old"
        assert sorted(os.listdir(tmp_path / "disk")) == ["filler", "x.c"]


@pytest.mark.parametrize(
    "name", ["n" * 253 + ".c", "\u00e9" * 126 + ".c", "none/x.c", "x/"], ids=range(4)
)
def test_a_name_that_is_long_or_cannot_be(name: str, tmp_path: Path) -> None:
    done = compile(tmp_path, name)
    if "/" in name:
        assert done.returncode == 2 and done.stderr.startswith("canvas: cannot write '")
    else:
        assert done.returncode == 0 and os.listdir(tmp_path) == [name]


def test_it_keeps_to_the_mask_of_the_user(tmp_path: Path) -> None:
    before = os.umask(0o027)
    try:
        assert compile(tmp_path).returncode == 0
    finally:
        os.umask(before)
    assert (tmp_path / "x.c").stat().st_mode & 0o777 == 0o640


# ---- links, pipes and devices: of `canvas compile -o` and of the files that Python is told ------


def by_command(path: Path) -> None:
    done = compile(path.parent, path.name)
    if done.returncode:
        raise OSError(done.stderr)


def by_python(path: Path) -> None:
    with named_file(path) as file:
        file.write(b"new\n")


both_writers = pytest.mark.parametrize("write", [by_command, by_python])


def names(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*"))


@both_writers
@pytest.mark.parametrize("there", [True, False], ids=["there", "new"])
def test_links_stay_and_what_they_lead_to_is_replaced(
    write: Callable[[Path], None], there: bool, tmp_path: Path
) -> None:
    link, second, target = (tmp_path / name for name in ("x.c", "to/second.c", "to/x.c"))
    target.parent.mkdir()
    link.symlink_to("to/second.c")
    second.symlink_to(target)
    before = None
    if there:
        target.write_text("old")
        before = target.open()
    write(link)
    assert link.is_symlink() and second.is_symlink() and not target.is_symlink()
    assert target.read_text() not in ("", "old")
    assert names(tmp_path) == ["to", "to/second.c", "to/x.c", "x.c"]
    if before is not None:  # who had it open has the old one: it was replaced at once
        assert before.read() == "old"
        before.close()


@both_writers
def test_links_in_a_circle(write: Callable[[Path], None], tmp_path: Path) -> None:
    (tmp_path / "x.c").symlink_to("y.c")
    (tmp_path / "y.c").symlink_to("x.c")
    with pytest.raises(OSError, match="Too many levels of symbolic links"):
        write(tmp_path / "x.c")
    assert names(tmp_path) == ["x.c", "y.c"]


@both_writers
@pytest.mark.parametrize("linked", [False, True], ids=["itself", "link"])
def test_a_pipe_is_written(write: Callable[[Path], None], linked: bool, tmp_path: Path) -> None:
    pipe = path = tmp_path / "pipe.c"
    os.mkfifo(pipe)
    if linked:
        path = tmp_path / "x.c"
        path.symlink_to("pipe.c")
    with subprocess.Popen(["cat", pipe], stdout=subprocess.PIPE) as reader:
        write(path)
        assert reader.communicate(timeout=60)[0] and pipe.is_fifo()
    assert names(tmp_path) == sorted({"pipe.c", path.name}) and path.is_symlink() == linked


@both_writers
def test_a_device_without_room(write: Callable[[Path], None], tmp_path: Path) -> None:
    (tmp_path / "x.c").symlink_to("/dev/full")
    with pytest.raises(OSError, match="No space left on device"):
        write(tmp_path / "x.c")
    assert names(tmp_path) == ["x.c"] and (tmp_path / "x.c").is_char_device()


@both_writers
@pytest.mark.parametrize("named", [True, False], ids=["named", "removed"])
def test_an_open_file_of_proc(write: Callable[[Path], None], named: bool, tmp_path: Path) -> None:
    """As /dev/stdout is: its link leads to /proc/self/fd/1."""
    with (tmp_path / "out").open("w+") as out:
        (tmp_path / "x.c").symlink_to(f"/proc/{os.getpid()}/fd/{out.fileno()}")
        if not named:
            (tmp_path / "out").unlink()
        write(tmp_path / "x.c")
        assert out.read()
    assert names(tmp_path) == ["out"] * named + ["x.c"] and (tmp_path / "x.c").is_symlink()
