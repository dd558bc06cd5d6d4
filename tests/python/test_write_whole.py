"""The files that `canvas compile -o` writes: whole or not at all, beside whatever stands there."""

import fcntl
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from faults import small_disk

from canvas.files import at_once, temporary_name

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
