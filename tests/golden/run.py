#!/usr/bin/env python3
"""Golden tests: what the canvas command prints, beside what made it print that.

    tests/golden/run.py --canvas build/canvas [--update] [FILE...]

A file tests/golden/*.txt holds many cases. Every line says by its first character what it is:

    # a comment; blank lines are free, too
    == a cycle is rejected               a case, up to the next one
    @ bad.kernel                        a file in the case's folder ...
    | canvas 1                          ... and its lines
    | kernel k
    $ canvas check bad.kernel           a command for sh
    > what it prints
    ! what it says on standard error
    ? 2                                 its exit code, if it is not 0

A case has its own empty folder; its files and commands come in the order written, so a command
can use what an earlier one left. Commands run without standard input (write `printf ... | canvas
check -`), with `canvas` first in PATH, LC_ALL=C, a cache of compiled code for each case and the
machines of examples/machines beside its folder: `--machine ../avx512.txt`. A last
line without its newline is followed by a line `\\`. Nothing is normalised but the version:
`canvas 1.2.3` is written `canvas VERSION`.

A crash or a hang (an exit code over 125) is never what was expected.

--update rewrites all lines > ! ? \\ with what happened and leaves the rest as it is. The
answer is one line `ok NAME` or `not ok NAME` for each case, for the failed ones after a diff; exit
status 1 if any failed.
"""

import argparse
import concurrent.futures
import difflib
import os
import pathlib
import re
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
SECONDS = 60  # for one command; the sanitizers' slowness included
GIVEN = "#=@|$"
EXPECTED = ">!?\\"


def main() -> int:
    parser = argparse.ArgumentParser(description="run the golden tests")
    parser.add_argument("--canvas", required=True, type=pathlib.Path, help="the command to test")
    parser.add_argument("--update", action="store_true", help="rewrite the expectations")
    parser.add_argument("files", nargs="*", type=pathlib.Path, help="default: all of them")
    options = parser.parse_args()

    failed = 0
    for path in options.files or sorted(HERE.glob("*.txt")):
        cases = split_cases(path.read_text().splitlines())
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            actual = list(pool.map(lambda case: run_case(case, options.canvas.resolve()), cases))
        if options.update:
            write_if_changed(path, "".join(line + "\n" for case in actual for line in case))
            cases = actual
        for case, lines in zip(cases, actual):
            failed += not report(path, case, lines)
    return 1 if failed else 0


def split_cases(lines: list[str]) -> list[list[str]]:
    """The lines before the first case, then the lines of each case."""
    cases: list[list[str]] = [[]]
    for line in lines:
        if line.startswith("== "):
            cases.append([])
        cases[-1].append(line)
    return cases


def run_case(case: list[str], canvas: pathlib.Path) -> list[str]:
    """The lines of a case with the expectations as they are now."""
    with tempfile.TemporaryDirectory(prefix="canvas-golden-") as temporary:
        folder = pathlib.Path(temporary, "case")
        tools = pathlib.Path(temporary, "bin")
        folder.mkdir()
        tools.mkdir()
        (tools / "canvas").symlink_to(canvas)
        for machine in (HERE.parents[1] / "examples/machines").glob("*.txt"):
            (folder.parent / machine.name).symlink_to(machine)
        lines = []
        file = None
        for line in case:
            kind, rest = line[:1], line[2:]
            if not kind or kind not in EXPECTED:
                lines.append(line)
            if kind == "@":
                file = folder / rest
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_text("")
            elif kind == "|" and file:
                with file.open("a") as stream:
                    stream.write(rest + "\n")
            elif kind == "$":
                lines += run_command(rest, folder, tools)
        return lines


def run_command(command: str, folder: pathlib.Path, tools: pathlib.Path) -> list[str]:
    """What a command prints and answers, as lines of a golden file."""
    path = f"{tools}{os.pathsep}{os.environ['PATH']}"
    try:
        done = subprocess.run(
            ["sh", "-c", command],
            cwd=folder,
            env={**os.environ, "PATH": path, "LC_ALL": "C", "CANVAS_CACHE": f"{tools}/cache"},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=SECONDS,
        )
    except subprocess.TimeoutExpired:
        return [f"? 126, no answer after {SECONDS} s"]
    code = [f"? {done.returncode}"] if done.returncode else []
    return prefixed(">", done.stdout) + prefixed("!", done.stderr) + code


def prefixed(mark: str, output: bytes) -> list[str]:
    if not output:
        return []
    text = output.decode(errors="backslashreplace")
    text = re.sub(r"\bcanvas \d+\.\d+\.\d+", "canvas VERSION", text)
    *lines, rest = text.split("\n")
    if rest:
        lines += [rest]
    return [f"{mark} {line}" if line else mark for line in lines] + (["\\"] if rest else [])


def report(path: pathlib.Path, expected: list[str], actual: list[str]) -> bool:
    if not expected or not expected[0].startswith("== "):
        return True  # the comment that opens the file
    name = f"{path.stem}: {expected[0][3:]}"
    strange = [line for line in expected if line and line[0] not in GIVEN + EXPECTED]
    if strange:
        print(f"# {path}: no line of a golden file begins like {strange[0]!r}")
    elif expected != actual:
        diff = difflib.unified_diff(expected, actual, "expected", "actual", lineterm="", n=10)
        print(*diff, sep="\n")
    crashes = [line for line in actual if re.match(r"\? (-|1[3-9]\d|12[6-9]|2\d\d)", line)]
    if crashes:
        print(f"# a crash or a hang: {crashes[0]}")
    passed = not strange and not crashes and expected == actual
    print(f"ok {name}" if passed else f"not ok {name}")
    return passed


def write_if_changed(path: pathlib.Path, text: str) -> None:
    if path.read_text() != text:
        path.write_text(text)
        print(f"rewrote {path}", file=sys.stderr)


if __name__ == "__main__":
    sys.exit(main())
