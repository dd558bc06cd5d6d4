"""A lock that cannot be taken: only one that another holds is told as such."""

import errno
import fcntl
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from canvas.deploy import trainer
from canvas.errors import CanvasError
from canvas.study import Study

CANVAS = str(Path(sys.executable).parent / "canvas")
OTHERS = [errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP, errno.EIO]


def refuse(number: int, monkeypatch: pytest.MonkeyPatch) -> None:
    def flock(*_: object) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(fcntl, "flock", flock)


@pytest.mark.parametrize("number", OTHERS)
def test_an_error_is_told_as_what_it_is(
    number: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    refuse(number, monkeypatch)
    for take in (lambda: Study.open(tmp_path), lambda: trainer._locked(tmp_path).__enter__()):
        with pytest.raises(CanvasError) as error:
            take()
        said = str(error.value)
        assert f"cannot be locked ({os.strerror(number)})" in said and "running" not in said


@pytest.mark.parametrize("number", [errno.EWOULDBLOCK, errno.EAGAIN])
def test_a_lock_that_is_held_is_another_run(
    number: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    refuse(number, monkeypatch)
    with pytest.raises(CanvasError, match="another search is running"):
        Study.open(tmp_path)
    with pytest.raises(CanvasError, match="another training is running"):
        trainer._locked(tmp_path).__enter__()


# The flock of a process that has this preloaded fails so often, with this error.
SHIM = """
#include <errno.h>
#include <stdlib.h>
int flock(int file, int what);
int flock(int file, int what) {
  static int calls;
  (void)file;
  (void)what;
  if (calls++ >= atoi(getenv("FLOCK_TIMES"))) return 0;
  errno = atoi(getenv("FLOCK_ERRNO"));
  return -1;
}
"""
PROGRAM = "canvas 1\nprogram p\nin X f32 [h:16]\nY[h:16] = X[h] * 2\nout Y\n"


@pytest.fixture(scope="module")
def shim(tmp_path_factory: pytest.TempPathFactory) -> Path:
    compiler = shutil.which("gcc") or shutil.which("clang")
    if compiler is None:
        pytest.skip("no compiler")
    folder = tmp_path_factory.mktemp("shim")
    (folder / "shim.c").write_text(SHIM)
    words = [compiler, "-shared", "-fPIC", "-o", str(folder / "shim.so"), str(folder / "shim.c")]
    subprocess.run(words, check=True)
    return folder / "shim.so"


@pytest.mark.parametrize(
    ("number", "times", "said"),
    [
        (errno.EINTR, 3, ""),
        (errno.ENOSYS, 99, ""),
        (errno.EOPNOTSUPP, 99, ""),
        (errno.ENOLCK, 99, os.strerror(errno.ENOLCK)),
        (errno.EIO, 99, os.strerror(errno.EIO)),
    ],
)
def test_a_log_is_read_where_there_are_no_locks_and_no_other_error_is_passed_over(
    number: int, times: int, said: str, shim: Path, tmp_path: Path
) -> None:
    (tmp_path / "log").touch()
    words = [CANVAS, "compile", "-", "--emit", "c", "-o", "-", "--log", str(tmp_path / "log")]
    done = subprocess.run(
        words,
        input=PROGRAM,
        capture_output=True,
        text=True,
        env={**os.environ, "LD_PRELOAD": str(shim), "FLOCK_ERRNO": str(number),
             "FLOCK_TIMES": str(times)},
    )  # fmt: skip
    assert (done.returncode, said in done.stderr) == (2 if said else 0, True), done.stderr
    if said:
        assert done.stderr == f"canvas: cannot read '{tmp_path / 'log'}': {said}\n"
