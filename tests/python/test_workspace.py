"""Buffers too large for the stack: when a program that calls what was emitted asks for memory."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from canvas import _core

HERE = Path(__file__).resolve().parent
WIDE = """canvas 1
program wide
in X f32 [h:64, w:512]
P[h:64, w:512] = X[63-h, w] * 2
Q[h:64, w:512] = P[63-h, 511-w] + X[h, w]
Y[h:64, w:512] = P[h, w] - Q[63-h, w]
out Y
"""
SCHEDULE = """canvas 1
schedule wide
h, w =>
    @P = h, w
h, w =>
    @Q = h, w
h, w =>
    @Y = h, w
"""
# How many KiB more are resident after all calls than after a few.
LOADED = """
import ctypes, resource
x, y = (ctypes.c_float * 32768)(), (ctypes.c_float * 32768)()
close = ctypes.CDLL(None).dlclose
close.argtypes = [ctypes.c_void_p]
for i in range(1000):
    library = ctypes.CDLL("{path}")
    assert library.{name}(x, y) == 0
    close(library._handle)
    if i == 10:
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
"""
CALLS = ["with a workspace 0", "40 calls 1", "given back 2", "right"]


@pytest.fixture(name="folder", scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("workspace")
    (folder / "wide.program").write_text(WIDE)
    (folder / "wide.schedule").write_text(SCHEDULE)
    for name in ("wide.c", "wide.h"):
        canvas = Path(sys.executable).parent / "canvas"
        words = [str(canvas), "compile", "wide.program", "--schedule", "wide.schedule", "-o", name]
        subprocess.run(words, cwd=folder, check=True)
    shutil.copy(HERE / "workspace.c", folder)
    return folder


@pytest.mark.parametrize("compiler", ["gcc", "clang"])
@pytest.mark.parametrize("sanitizer", ["", "address", "thread"])
def test_it_is_kept(compiler: str, sanitizer: str, folder: Path) -> None:
    """One thread asks for memory once; no other thread's call uses it meanwhile; none is lost."""
    if not shutil.which(compiler):
        pytest.skip(f"no {compiler}")
    flags = ["-O1", "-Wall", "-Wextra", "-Werror", "-Wl,--wrap=aligned_alloc", "-pthread"]
    flags += [f"-fsanitize={sanitizer}"] if sanitizer else []
    made = subprocess.run(
        [compiler, *flags, "workspace.c", "wide.c", "-o", "wide"], cwd=folder, capture_output=True
    )
    if made.returncode and sanitizer and b"cannot find" in made.stderr:
        pytest.skip(f"no {sanitizer} sanitizer")
    assert not made.returncode, made.stderr.decode()
    ran = subprocess.run(["./wide"], cwd=folder, capture_output=True, text=True)
    assert (ran.returncode, ran.stdout.splitlines()) == (0, CALLS), ran.stderr


def test_it_is_freed_with_its_library() -> None:
    """A shared object that is loaded, called and closed a thousand times takes no more memory."""
    path, name, *_ = _core.compile(WIDE, SCHEDULE)
    code = LOADED.format(path=path, name=name)
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert int(ran.stdout) < 20000, "KiB after 1000 times 256 KiB"
