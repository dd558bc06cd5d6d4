#!/usr/bin/env python3
"""How the text of the house looks: `./dev lint` checks it, `./dev format` puts it right.

tests/lint.py check|apply
"""

import concurrent.futures
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
C_FILES = sorted(
    str(path.relative_to(ROOT))
    for folder in ("include", "src", "cli", "python/ext", "tests/c")
    for path in (ROOT / folder).rglob("*.[ch]")
)
C_SOURCES = [path for path in C_FILES if path.endswith(".c") and not path.startswith("tests/")]

APPLY = [
    ["clang-format", "-i", *C_FILES],
    ["ruff", "check", "--fix", "--quiet", "."],
    ["ruff", "format", "--quiet", "."],
]
CHECK = [
    ["clang-format", "--dry-run", "-Werror", *C_FILES],
    ["ruff", "check", "--quiet", "."],
    ["ruff", "format", "--check", "--quiet", "--diff", "."],
    ["mypy"],
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
    commands = APPLY if sys.argv[1:] == ["apply"] else CHECK
    with concurrent.futures.ThreadPoolExecutor(1 if commands is APPLY else 2) as pool:
        failed = list(pool.map(run, commands)).count(False)
    if commands is CHECK:
        print("lint: all in order" if not failed else f"lint: {failed} of {len(commands)} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
