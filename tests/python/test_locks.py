"""The locks of requirements*.txt: complete, pinned, hashed, of the versions asked for."""

import hashlib
import re
import subprocess
import sys
import zipfile
from importlib import metadata
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
LOCKS = sorted((ROOT / "locks").glob("*.lock"))
SOURCES = sorted(ROOT.glob("requirements*.txt"))


def entries(text):
    """(name, version, marker, hashes) of every package of a lock or a file of requirements."""
    text = re.sub(r"#.*", "", text).replace("\\\n", " ")
    for line in filter(None, map(str.strip, text.splitlines())):
        hashes = re.findall(r"--hash=sha256:([0-9a-f]{64})(?:\s|$)", line)
        requirement, _, marker = re.sub(r"\s*--hash=\S+", "", line).partition(";")
        name, equal, version = requirement.strip().partition("==")
        assert equal and re.fullmatch(r"[0-9][\w.]*", version), line
        yield re.sub(r"[-_.]+", "-", name.lower()), version, marker.strip(), hashes


def lock_of(source):
    return ROOT / "locks" / f"{source.stem}.lock"


@pytest.mark.parametrize("lock", LOCKS, ids=lambda lock: lock.stem)
def test_every_line_is_pinned_and_hashed(lock):
    found = list(entries(lock.read_text()))
    assert found and all(hashes for *_, hashes in found)
    assert "://" not in lock.read_text()


@pytest.mark.parametrize("source", SOURCES, ids=lambda source: source.stem)
def test_a_lock_has_the_versions_asked_for(source):
    locked = {(name, version) for name, version, *_ in entries(lock_of(source).read_text())}
    asked = {(name, version) for name, version, *_ in entries(source.read_text())}
    assert asked <= locked


def test_no_lock_is_without_its_source():
    names = {source.stem for source in SOURCES} | {"requirements-cuda"}
    assert {lock.stem for lock in LOCKS} == names


def test_one_version_in_all_locks():
    versions = {}
    for lock in LOCKS:
        for name, version, marker, _ in entries(lock.read_text()):
            versions.setdefault((name, marker), set()).add(version)
    assert all(len(found) == 1 for found in versions.values())


def test_the_locks_hold_what_this_torch_needs():
    """Of whatever build it is: with or without CUDA."""
    locked = {name for lock in LOCKS for name, *_ in entries(lock.read_text())}
    needs = [need for need in metadata.requires("torch") or [] if "extra ==" not in need]
    names = {re.sub(r"[-_.]+", "-", re.match(r"[\w.-]+", need)[0].lower()) for need in needs}
    assert names and names <= locked


def test_the_build_of_a_wheel_is_pinned():
    wanted = re.search(r'requires = \["(.*?)"\]', (ROOT / "pyproject.toml").read_text())[1]
    assert wanted in (ROOT / "requirements-test.txt").read_text().splitlines()


@pytest.mark.nightly
@pytest.mark.parametrize("source", SOURCES, ids=lambda source: source.stem)
def test_pip_finds_a_lock_complete(source, tmp_path):
    """In a new environment, without installing anything."""
    subprocess.run([sys.executable, "-m", "venv", tmp_path], check=True)
    words = [tmp_path / "bin/python", "-m", "pip", "install", "--dry-run", "--require-hashes"]
    done = subprocess.run([*words, "-r", lock_of(source)], capture_output=True, text=True)
    if "No matching distribution" in done.stderr or "Retrying" in done.stderr:
        pytest.skip("no index")
    assert done.returncode == 0, done.stderr


def wheel(folder):
    """A package of nothing, tiny 1.0."""
    info = "tiny-1.0.dist-info"
    path = folder / "tiny-1.0-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as file:
        file.writestr(f"{info}/METADATA", "Metadata-Version: 2.1\nName: tiny\nVersion: 1.0\n")
        file.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nTag: py3-none-any\n")
        file.writestr(f"{info}/RECORD", "")
    return path


def dev_install(folder, lock):
    """What ./dev does to install a lock, by the pip of this environment, and changes nothing."""
    script = (ROOT / "dev").read_text()
    assert script.endswith('\nmain "$@"\n')
    functions = script[: script.rindex("main")].replace('"$0"', f'"{ROOT}/dev"')
    call = (
        f"venv={sys.prefix}\ninstall tiny --dry-run --no-index --find-links {folder} -r {lock}\n"
    )
    return subprocess.run(["sh", "-c", functions + call], capture_output=True, text=True)


def test_a_file_that_the_lock_does_not_know_is_refused(tmp_path):
    right = hashlib.sha256(wheel(tmp_path).read_bytes()).hexdigest()
    lock = tmp_path / "tiny.lock"
    lock.write_text(f"tiny==1.0 --hash=sha256:{right}\n")
    done = dev_install(tmp_path, lock)
    assert done.returncode == 0, done.stderr
    lock.write_text(f"tiny==1.0 --hash=sha256:{'0' * 64}\n")
    done = dev_install(tmp_path, lock)
    assert done.returncode == 2
    assert right in done.stderr
    assert "dev: installing tiny: the index gave a file that the lock does not know" in done.stderr
    lock.write_text("tiny==1.0\n")
    done = dev_install(tmp_path, lock)
    assert done.returncode == 2
    assert "dev: installing tiny failed, see above" in done.stderr
