#!/usr/bin/env python3
"""How the text of the house looks: `./dev lint` checks it, `./dev format` puts it right.

tests/lint.py check|apply

The checks run two at a time, the longest first; a check that needs a tool which is no package of
Python (shellcheck) is left out where that is missing, and says so.
"""

import concurrent.futures
import pathlib
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
C_FILES = sorted(
    str(path.relative_to(ROOT))
    for folder in ("include", "src", "cli", "python/ext", "tests")
    for path in (ROOT / folder).rglob("*.*")
    if path.suffix in (".c", ".h", ".cpp")
)
C_SOURCES = [path for path in C_FILES if path.endswith(".c") and not path.startswith("tests/")]
SCRIPTS = ["dev", ".ci/run"]

APPLY = [
    ["clang-format", "-i", *C_FILES],
    ["ruff", "check", "--fix", "--quiet", "."],
    ["ruff", "format", "--quiet", "."],
]
CHECK = [
    ["mypy"],
    [sys.executable, "-m", "mypy.stubtest", "canvas._core", "--mypy-config-file=pyproject.toml"],
    ["clang-format", "--dry-run", "-Werror", *C_FILES],
    ["ruff", "check", "--quiet", "."],
    ["ruff", "format", "--check", "--quiet", "--diff", "."],
    ["shellcheck", *SCRIPTS],
    *(["clang-tidy", "--quiet", "-p", "build", path] for path in C_SOURCES),
]


def run(command: list[str]) -> bool:
    done = subprocess.run(
        command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    if done.returncode:
        shown = command if len(command) < 8 else [*command[:3], "..."]
        print(done.stdout.rstrip(), f"{' '.join(shown)} failed", sep="\n", flush=True)
    return done.returncode == 0


def main() -> int:
    apply = sys.argv[1:] == ["apply"]
    commands = [command for command in (APPLY if apply else CHECK) if is_here(command[0])]
    with concurrent.futures.ThreadPoolExecutor(1 if apply else 2) as pool:
        failed = list(pool.map(run, commands)).count(False)
    if not apply:
        print("lint: all in order" if not failed else f"lint: {failed} of {len(commands)} failed")
    return 1 if failed else 0


def is_here(tool: str) -> bool:
    """Whether there is the tool; only shellcheck may be missing."""
    if tool != "shellcheck" or shutil.which(tool):
        return True
    print("lint: shellcheck is not installed, the shell scripts are not checked", flush=True)
    return False


if __name__ == "__main__":
    sys.exit(main())
