"""examples/deploy/: its C is what its README's commands write, and runs with a compiler alone."""

import pathlib
import re
import shutil
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
DEPLOY = ROOT / "examples" / "deploy"
README = (DEPLOY / "README.md").read_text()


@pytest.mark.parametrize("line", re.findall(r"^canvas compile .*$", README, re.MULTILINE))
def test_it_is_up_to_date(line, tmp_path):
    """The documented command, but for the folder it writes to, writes the file that is there."""
    _, *words, path = line.split()
    made = tmp_path / pathlib.Path(path).name
    canvas = pathlib.Path(sys.executable).parent / "canvas"
    subprocess.run([canvas, *words, made], cwd=ROOT, check=True)
    assert made.read_text() == (ROOT / path).read_text(), f"out of date: run {line}"


@pytest.mark.parametrize("compiler", ["gcc", "clang"])
def test_it_runs_without_canvas(compiler, tmp_path):
    if not shutil.which(compiler):
        pytest.skip(f"no {compiler}")
    folder = shutil.copytree(DEPLOY, tmp_path / "deploy")
    flags = "CFLAGS=-O2 -Wall -Wextra -Werror"
    ran = subprocess.run(
        ["make", "-s", f"CC={compiler}", flags, "run"],
        cwd=folder,
        check=True,
        capture_output=True,
        text=True,
    )
    assert f"$ make -s run\n{ran.stdout}```" in README
