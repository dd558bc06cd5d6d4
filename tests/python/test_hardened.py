"""Optimised builds are hardened, and no others; what a distribution's flags say stays."""

import json
import os
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest

from canvas import _core

ROOT = Path(__file__).resolve().parents[2]
# Where the suite builds, else where ./dev build does.
BUILD = next((b for b in (ROOT / "build/gcc", ROOT / "build") if (b / "canvas").exists()), None)
needs_elf = pytest.mark.skipif(
    BUILD is None or not shutil.which("readelf") or os.uname().sysname != "Linux",
    reason="no build of ELF files to read",
)


def read(path, *flags):
    words = ["readelf", *flags, str(path)]
    return subprocess.run(words, capture_output=True, text=True, check=True).stdout


@needs_elf
@pytest.mark.parametrize("name", ["canvas", "libcanvas.so", "extension"])
def test_what_is_built_is_hardened(name):
    path = Path(_core.__file__) if name == "extension" else BUILD / name
    dynamic, symbols = read(path, "-dW"), read(path, "-sW", "--dyn-syms")
    assert "BIND_NOW" in dynamic
    assert "GNU_RELRO" in read(path, "-lW")
    assert "__stack_chk_fail" in symbols
    assert "__snprintf_chk" in symbols or "__vsnprintf_chk" in symbols
    assert name != "canvas" or "PIE" in dynamic


def configured(folder, *words, **environment):
    """The words of the command that compiles a file, and those that link the command."""
    words = ["cmake", "-S", ROOT, "-B", folder, "-G", "Unix Makefiles", *words]
    done = subprocess.run(
        [*map(str, words), "-DCANVAS_WERROR=ON"],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    rows = json.loads((folder / "compile_commands.json").read_text())
    command = next(row["command"] for row in rows if row["file"].endswith("base/buf.c"))
    link = (folder / "CMakeFiles/canvas_command.dir/link.txt").read_text()
    return shlex.split(command), link


HARD = ("-D_FORTIFY_SOURCE=2", "-fstack-protector-strong", "-Wl,-z,relro,-z,now")


@pytest.mark.parametrize(
    ("words", "flags", "hard"),
    [
        (["-DCMAKE_BUILD_TYPE=Release"], "", True),
        pytest.param(["-DCMAKE_BUILD_TYPE=MinSizeRel"], "", True, marks=pytest.mark.nightly),
        (["-DCMAKE_BUILD_TYPE=Debug"], "", False),
        pytest.param(
            ["-DCMAKE_BUILD_TYPE=RelWithDebInfo", "-DCMAKE_C_FLAGS_RELWITHDEBINFO=-O0"],
            "",
            False,
            marks=pytest.mark.nightly,
        ),
        (["-DCMAKE_BUILD_TYPE=Release", "-DCANVAS_SANITIZE=address"], "", False),
        pytest.param(
            ["-DCMAKE_BUILD_TYPE=Release", "-DCANVAS_HARDEN=OFF"],
            "",
            False,
            marks=pytest.mark.nightly,
        ),
        (["-DCMAKE_BUILD_TYPE=None"], "-O2", True),  # Debian's packages
        pytest.param(["-DCMAKE_BUILD_TYPE=None"], "-g", False, marks=pytest.mark.nightly),
    ],
)
def test_which_builds_are_hardened(tmp_path, words, flags, hard):
    compiled, linked = configured(tmp_path, *words, CFLAGS=flags)
    found = [flag in compiled or flag in linked for flag in HARD]
    assert found == [hard] * 3


def test_a_distributions_own_flags_stay(tmp_path):
    own = "-O2 -D_FORTIFY_SOURCE=3 -fstack-protector-all"
    compiled, _ = configured(tmp_path, "-DCMAKE_BUILD_TYPE=None", CFLAGS=own)
    assert not {"-D_FORTIFY_SOURCE=2", "-fstack-protector-strong"} & set(compiled)
    subprocess.run(compiled, cwd=tmp_path, check=True)  # a redefinition would be an error
