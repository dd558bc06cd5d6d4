"""Canvas as Python users get it: sdist -> wheel -> a Python without a compiler, all offline."""

import fcntl
import glob
import os
import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ALL = os.environ.get("CANVAS_TEST_ALL") == "1"
ROOT = Path(__file__).resolve().parents[2]
PIP = (sys.executable, "-m", "pip", "--disable-pip-version-check", "--no-input")
OFFLINE = ("--no-index", "--no-deps", "--quiet")
# What is looked at is the same without optimising, which takes most of the time.
QUICKLY = () if ALL else ("--config-settings=cmake.define.CMAKE_C_FLAGS_RELEASE=-O0 -DNDEBUG",)
BUILD_SDIST = "import sys, scikit_build_core.build as b; b.build_sdist(sys.argv[1])"


def run(*command, cwd=None, **environment):
    """What `command` prints on standard output; it must succeed."""
    done = subprocess.run(
        [str(word) for word in command],
        cwd=cwd,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=280,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="session")
def built(tmp_path_factory):
    """A folder with an sdist and the wheel made of it, with the build requirements of this
    environment.  Built once however many processes run tests.
    """
    once = os.environ.get("PYTEST_XDIST_TESTRUNUID", str(os.getpid()))
    folder = tmp_path_factory.getbasetemp().parent / f"built {once}"
    folder.mkdir(exist_ok=True)
    with open(folder / "lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not list(folder.glob("*.whl")):
            run(sys.executable, "-c", BUILD_SDIST, folder, cwd=ROOT)
            sdist = next(folder.glob("*.tar.gz"))
            run(*PIP, "wheel", *OFFLINE, "--no-build-isolation", *QUICKLY, "-w", folder, sdist)
    return folder


@pytest.fixture
def sdist(built):
    return next(built.glob("*.tar.gz"))


@pytest.fixture
def wheel(built):
    return next(built.glob("*.whl"))


def contents(wheel, name):
    with zipfile.ZipFile(wheel) as archive:
        return archive.read(name)


def test_wheel_holds_the_package_and_one_extension(wheel):
    with zipfile.ZipFile(wheel) as archive:
        names = {name for name in archive.namelist() if name.startswith("canvas/")}
    package = ROOT / "python/canvas"
    ours = {
        f"canvas/{path.relative_to(package).as_posix()}"
        for path in package.rglob("*.py*")
        if path.suffix in (".py", ".pyi")
    }
    assert names == ours | {"canvas/py.typed", "canvas/_core.abi3.so"}


def test_one_wheel_for_every_python_from_3_10_on(wheel):
    assert "-cp310-abi3-" in wheel.name
    metadata = contents(wheel, f"{'-'.join(wheel.name.split('-')[:2])}.dist-info/METADATA")
    assert b"\nRequires-Python: >=3.10\n" in metadata


def test_extension_needs_the_stable_abi_of_3_10_and_libc(wheel, tmp_path):
    """Nothing else: one symbol more and a later or older Python could not load it."""
    abi3info = pytest.importorskip("abi3info", reason="requirements-test.txt is not installed")
    extension = tmp_path / "_core.abi3.so"
    extension.write_bytes(contents(wheel, "canvas/_core.abi3.so"))
    undefined = re.findall(r" U (_?Py\w+)", run("nm", "-D", "--undefined-only", extension))
    stable = {**abi3info.FUNCTIONS, **abi3info.DATAS}.values()
    since = {item.symbol.name: (item.added.major, item.added.minor) for item in stable}
    late = {name: since.get(name) for name in undefined if since.get(name, (9, 9)) > (3, 10)}
    assert undefined and not late
    shown = run("nm", "-D", "--defined-only", extension).split()
    assert shown[2:] == ["PyInit__core"]
    needed = set(re.findall(r"NEEDED.*\[(.*)\]", run("readelf", "-d", extension)))
    # what glibc is made of: its loader has the function that finds thread-local variables
    assert {name for name in needed if "ld-linux" not in name} <= {"libc.so.6", "libm.so.6"}


def other_pythons():
    """Every other minor version of Python, from 3.10 on, that runs here: (3.12, its path)."""
    pyenv = os.environ.get("PYENV_ROOT", os.path.expanduser("~/.pyenv"))
    places = [shutil.which(f"python3.{minor}") for minor in range(10, 20)]
    places += glob.glob(f"{pyenv}/versions/3.*/bin/python3.[1-9][0-9]")
    found = {}
    for place in filter(None, places):
        minor = int(place.rpartition("python3.")[2])
        runs = subprocess.run([place, "-c", "import venv"], capture_output=True).returncode == 0
        if runs and minor >= 10 and minor != sys.version_info.minor:
            found.setdefault(minor, place)
    return sorted(found.items())


def install(python, wheel, folder):
    """A fresh environment with nothing but the wheel; its folder of commands."""
    run(python, "-m", "venv", "--without-pip", folder)
    run(*PIP, "--python", folder / "bin/python", "install", *OFFLINE, wheel)
    return folder / "bin"


USE = """
import canvas
from canvas import KernelPack, NoSolution, _core
kernel, groups = _core.draw("64,56,56", 1, 0, "")
pack = KernelPack(_core.solve(kernel, "64,56,56", "macs=0.5x", f"G={groups}"))
assert 0 < pack.macs <= 0.5 * 64 * 64 * 9 * 56 * 56, pack.macs
assert f"class {pack.name}" in pack.torch_code
try:
    canvas.convert
except ImportError as error:
    print(error)
"""


def check_installed(commands):
    """The command, the package without torch; every symbol bound at once, no compiler in sight."""
    bare = {"PATH": str(commands), "PYTHONPATH": "", "VIRTUAL_ENV": "", "LD_BIND_NOW": "1"}
    bare |= {"CC": "/nonexistent", "PYTHONHASHSEED": "0"}
    assert "usage: canvas NAME" in run(commands / "canvas", "help", **bare)
    assert "canvas 1\nkernel " in run(
        commands / "canvas", "sample", "--targets", "64,56,56", **bare
    )
    assert "needs PyTorch" in run(commands / "python", "-I", "-c", USE, **bare)


def test_wheel_works_without_a_compiler(wheel, tmp_path):
    check_installed(install(sys.executable, wheel, tmp_path / "en v"))


def test_wheel_works_on_another_python(wheel, tmp_path):
    others = other_pythons()
    if not others:
        pytest.skip("there is one Python here")
    minor, python = others[0]
    check_installed(install(python, wheel, tmp_path / f"3.{minor}"))


@pytest.mark.nightly
def test_wheel_works_on_every_python(wheel, tmp_path):
    for minor, python in other_pythons():
        check_installed(install(python, wheel, tmp_path / f"3.{minor}"))


@pytest.mark.nightly
def test_sdist_installs_offline_in_isolation(sdist, tmp_path):
    """`pip install SDIST` that sees a folder with the build requirements and no index."""
    wanted = re.search(r'requires = \["(.*?)"\]', (ROOT / "pyproject.toml").read_text())[1]
    hand = tmp_path / "at hand"
    fetched = subprocess.run([*PIP, "download", "-q", "-d", hand, wanted, "cmake", "ninja"])
    if fetched.returncode:
        pytest.skip("no index to fetch the build requirements from")
    run(sys.executable, "-m", "venv", tmp_path / "env")
    python = tmp_path / "env/bin/python"
    flags = ("--no-index", "--find-links", hand, "--quiet")
    run(python, "-m", "pip", "install", *flags, sdist, PYTHONPATH="")
    check_installed(tmp_path / "env/bin")
