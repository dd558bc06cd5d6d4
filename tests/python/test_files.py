"""A file or folder that is written at once: whole or not at all, whenever its writer dies."""

import os
import signal
import subprocess
import sys

import pytest

from canvas.files import at_once, folder_at_once

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
