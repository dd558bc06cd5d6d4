"""A file or folder that is written at once: whole or not at all, whenever its writer dies."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from canvas.files import add_lines, at_once, folder_at_once

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
