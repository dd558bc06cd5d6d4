#!/usr/bin/env python3
"""Resolves requirements*.txt anew and writes a lock beside this file for each: `./dev lock`.

A lock holds every package that a requirement needs, with its version and the hashes of all its
files, for every Python and platform.  What torch's CUDA builds need (gigabytes) has a lock of its
own, requirements-cuda.lock; `./dev` installs it where the torch that it got asks for it.  Only the
index is read: no package is downloaded.
"""

import pathlib
import re
import subprocess
import sys
import tempfile

LOCKS = pathlib.Path(__file__).resolve().parent
ROOT = LOCKS.parent
OLDEST = "3.10"
CUDA = re.compile(r"(nvidia|cuda|triton)\b")
# Files that some indexes have in place of those of the public one.
MORE_HASHES = {
    # the CPU build for CPython 3.11 on Linux x86_64, torch-2.13.0+cpu
    "torch==2.13.0": ["6746dbcbeb526eb61330b76b41ff1b4eb848951103a892eeb080dfa2b264667b"],
}
HEAD = "# Written by ./dev lock from {}: edit that file, not this one.\n"


def compiled(source: pathlib.Path, constraints: pathlib.Path | None, hashes: bool) -> str:
    """The requirements of a file and whatever they need, one for each environment."""
    words = ["uv", "pip", "compile", "--quiet", "--universal", "--python-version", OLDEST]
    words += ["--no-config", "--no-header", "--no-annotate", str(source)]
    words += ["--constraint", str(constraints)] if constraints else []
    words += ["--generate-hashes"] if hashes else []
    done = subprocess.run(words, stdout=subprocess.PIPE, text=True)
    if done.returncode:
        sys.exit(2)
    return done.stdout


def entries(text: str) -> list[str]:
    """A text for each package: its line and those of its hashes."""
    return [part + "\n" for part in re.split(r"\n(?=[^ #])", text.strip())]


def with_more(entry: str) -> str:
    for name, hashes in MORE_HASHES.items():
        if entry.startswith(name + " "):
            lines = entry.rstrip().splitlines()
            more = [f"    --hash=sha256:{one} \\" for one in hashes]
            return "\n".join([lines[0], *more, *lines[1:]]) + "\n"
    return entry


def write(lock: str, source: str, found: list[str]) -> None:
    (LOCKS / lock).write_text(HEAD.format(source) + "".join(found))
    print(f"locks/{lock}: {len(found)} packages")


def main() -> None:
    sources = sorted(ROOT.glob("requirements*.txt"))
    with tempfile.TemporaryDirectory() as folder:
        union, versions = pathlib.Path(folder, "union.in"), pathlib.Path(folder, "versions.txt")
        union.write_text("".join(source.read_text() for source in sources))
        versions.write_text(compiled(union, None, hashes=False))
        for source in sources:
            found = [with_more(one) for one in entries(compiled(source, versions, hashes=True))]
            cuda = [one for one in found if CUDA.match(one)]
            write(f"{source.stem}.lock", source.name, [one for one in found if one not in cuda])
            if cuda:
                write("requirements-cuda.lock", source.name, cuda)


if __name__ == "__main__":
    main()
