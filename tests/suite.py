#!/usr/bin/env python3
"""Every check of the house, counted; `./dev test` prepares for it and calls it.

    tests/suite.py [--ci | --all] [--update]

main() is the list of what is checked. A stage prints one line with its seconds and counts, and its
output only where something failed. What does not build, crashes or hangs counts as failed, never
as no tests at all: a C program that ends early fails every test it did not reach. The last line
is `N passed, N failed`; exit status 1 if any failed.
"""

import argparse
import concurrent.futures
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree
from collections.abc import Callable
from typing import NamedTuple

ROOT = pathlib.Path(__file__).resolve().parent.parent
BUILD = ROOT / "build"
JOBS = 2
C_TESTS = sorted(path.stem for path in (ROOT / "tests/c").glob("test_*.c"))
SPLIT = ["test_emit"]  # programs whose tests run each by itself
# Programs and tests of more than a few seconds, the longest first: nobody waits for the last one.
SLOW = [
    "test_tune",
    "test_default_values",
    "test_sketch",
    "sampled_kernels",
    "test_candidates",
    "test_passes",
    "ragged_tiles",
    "phases",
    "weights_not_finite",
    "schedules_of_examples",
    "test_schedule_edit",
    "borders",
    "test_rules",
]
# What compiles with the compiler that it was compiled with: --ci runs it in clang's plain build,
# too. Everything else runs as gcc's and, with --ci, as clang's with sanitizers; --all runs it in
# clang's plain build, too.
COMPILING = ["test_emit"]
CORPORA = sorted(path for path in (ROOT / "tests/fuzz/corpus").glob("*") if path.is_dir())

# Each build in a folder of build/: the compiler, and the sanitizers if any.
SANITIZED = "sanitized"
BUILDS = {"gcc": ("gcc", ""), "clang": ("clang", ""), SANITIZED: ("clang", "address,undefined")}
SANITIZER_OPTIONS = {
    "ASAN_OPTIONS": "halt_on_error=1:detect_leaks=1:detect_stack_use_after_return=1"
    ":allocator_may_return_null=1",
    "UBSAN_OPTIONS": "halt_on_error=1:print_stacktrace=1",
}


class Result(NamedTuple):
    """The answer of a stage: counts, and what to show if something failed."""

    passed: int
    failed: int
    output: str = ""


def heed_signals() -> None:
    """Started in the background or under nohup, we and all our children would ignore these, and
    no test of Ctrl-C could pass.
    """
    for number in (signal.SIGINT, signal.SIGHUP):
        if signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, signal.SIG_DFL)


def main() -> int:
    parser = argparse.ArgumentParser(prog="./dev test", description="every check of the house")
    parser.add_argument(
        "--ci", action="store_true", help="clang, sanitizers, slow Python tests, too"
    )
    parser.add_argument("--all", action="store_true", help="these and the long versions, too")
    parser.add_argument("--update", action="store_true", help="rewrite goldens and documents")
    options = parser.parse_args()
    heed_signals()
    minutes = 240 if options.all else 30  # of a stage that hangs
    slow = options.ci or options.all
    for name, given in (("CANVAS_TEST_ALL", options.all), ("CANVAS_TEST_SLOW", slow)):
        os.environ.pop(name, None)
        if given:
            os.environ[name] = "1"
    if options.update:
        os.environ["CANVAS_UPDATE"] = "1"  # the examples of the documents, too
    what = "the core tests; --ci adds clang, sanitizers and slow Python tests, --all long versions"
    if slow:
        what = "the core tests, clang, sanitizers and slow Python tests; --all adds long versions"
    print("all tests, the long ones too" if options.all else what, flush=True)
    temporary = tempfile.mkdtemp(prefix="canvas-test-")
    os.environ["TMPDIR"] = temporary

    results = [stage("layers", script, "tests/layers.py")]
    results.append(stage("prose", script, "tests/prose.py"))
    results.append(stage("policy", script, "tests/policy.py"))
    results.append(stage("messages", script, "tests/messages.py"))
    results.append(stage("mutants' texts", script, "tests/mutants.py", "--texts"))
    built = {}
    builds = [name for name in BUILDS if slow or name == "gcc"]
    for name in builds:
        results.append(stage(f"build, {name}", build, name))
        built[name] = not results[-1].failed
    for name in builds:
        results.append(stage(f"C tests, {name}", c_tests, name, built[name], minutes))
    results.append(stage("fuzz corpora", corpora, "gcc", built["gcc"]))
    results.append(stage("goldens", goldens, "gcc", built["gcc"], options.update))
    if slow:
        sound = built[SANITIZED]
        results.append(stage("fuzz corpora, sanitized", corpora, SANITIZED, sound))
        results.append(stage("goldens, sanitized", goldens, SANITIZED, sound))
    results.append(stage("Python tests", python_tests, minutes))
    if options.all:
        results.append(stage("mutants", mutants, built["gcc"]))
    results.append(stage("temporary folder", nothing_left, temporary))
    shutil.rmtree(temporary, ignore_errors=True)

    counts = total(results)
    print(f"{counts.passed} passed, {counts.failed} failed")
    return 1 if counts.failed else 0


def stage(name: str, work: Callable[..., Result], *arguments: object) -> Result:
    start = time.monotonic()
    result = work(*arguments)
    if result.failed:
        print(result.output.rstrip())
    seconds = time.monotonic() - start
    print(
        f"{name:23} {seconds:6.1f} s  {result.passed:5d} passed  {result.failed:5d} failed",
        flush=True,
    )
    return result


# ---- the stages ---------------------------------------------------------------------------------


def script(*words: str) -> Result:
    return from_lines(*run([sys.executable, *words], 60))


def build(name: str) -> Result:
    """One check: the tree builds without a warning, with the tests that run."""
    compiler, sanitizers = BUILDS[name]
    folder = BUILD / name
    configure = [
        "cmake",
        f"-S{ROOT}",
        f"-B{folder}",
        "-DCMAKE_BUILD_TYPE=RelWithDebInfo",
        f"-DCMAKE_C_FLAGS_RELWITHDEBINFO={'-O1' if sanitizers else '-O2'} -g1",
        f"-DCMAKE_C_COMPILER={compiler}",
        f"-DCANVAS_SANITIZE={sanitizers}",
        f"-DCANVAS_PYTHON={'OFF' if sanitizers else 'ON'}",
        f"-DPython_EXECUTABLE={sys.executable}",
        "-DCANVAS_TESTS=ON",
        "-DCANVAS_WERROR=ON",
    ]
    status, output = run(configure, 120)
    if status == 0:
        words = ["cmake", "--build", str(folder), "--parallel", str(JOBS)]
        if programs_of(name) != C_TESTS:
            words += ["--target", "canvas_command", "canvas_shared", "_core", *programs_of(name)]
        status, output = run(words, 600)
    # What a build says while all goes well: [3/40] Building C object ...
    output = re.sub(r"^\[[ \d/%]+\] .*\n", "", output, flags=re.MULTILINE)
    return Result(0, 1, output) if status else Result(1, 0)


def programs_of(name: str) -> list[str]:
    """The cmocka programs that run as this build made them."""
    return COMPILING if name == "clang" and not os.environ.get("CANVAS_TEST_ALL") else C_TESTS


def c_tests(name: str, built: bool, minutes: int) -> Result:
    """The cmocka programs of a build, the slow ones first, one more than cores: there is always
    one that waits for what hangs.
    """
    if not built or not C_TESTS:
        return Result(
            0, max(1, len(C_TESTS)), f"{name} did not build" if C_TESTS else "no C tests"
        )

    def one(job: tuple[str, str]) -> Result:
        test, only = job
        command = [*without_aslr(name), str(BUILD / name / "tests" / test)]
        result = from_lines(*run(command, 60 * minutes, {"CANVAS_TEST": only} if only else {}))
        return result._replace(
            output=f"---- {test}, {name}\n{result.output}" if result.failed else ""
        )

    jobs = [(test, "") for test in programs_of(name) if test not in SPLIT]
    jobs += [(test, only) for test in SPLIT for only in tests_of(test)]
    jobs.sort(key=lambda job: SLOW.index(job[1] or job[0]) if (job[1] or job[0]) in SLOW else 99)
    with concurrent.futures.ThreadPoolExecutor(JOBS + 1) as pool:
        return total(list(pool.map(one, jobs)))


def tests_of(program: str) -> list[str]:
    text = (ROOT / f"tests/c/{program}.c").read_text()
    return re.findall(r"\bcmocka_unit_test\((\w+)\)", text)


def corpora(name: str, built: bool) -> Result:
    """Every stored input of every fuzz target, without a fuzzer."""
    if not built or not CORPORA:
        return Result(
            0, max(1, len(CORPORA)), f"{name} did not build" if CORPORA else "no corpora"
        )
    results = []
    for corpus in CORPORA:
        program = BUILD / name / "tests" / "fuzz" / f"fuzz_{corpus.name}"
        results.append(from_lines(*run([*without_aslr(name), str(program), str(corpus)], 600)))
    return total([r._replace(output=r.output if r.failed else "") for r in results])


def mutants(built: bool) -> Result:
    """Whether tests notice small mistakes."""
    if not built:
        return Result(0, 1, "gcc did not build")
    return from_lines(*run([sys.executable, "tests/mutants.py", "--jobs", str(JOBS)], 3 * 3600))


def nothing_left(temporary: str) -> Result:
    """One check: every stage removed what it put into the temporary folder."""
    left = sorted(path.name for path in pathlib.Path(temporary).iterdir())
    found = f"left in the temporary folder: {' '.join(left)}"
    return Result(0, 1, found) if left else Result(1, 0)


def goldens(name: str, built: bool, update: bool = False) -> Result:
    canvas = BUILD / name / "canvas"
    if not built or not canvas.exists():
        return Result(0, 1, f"{name} has no canvas command")
    flags = ["--update"] if update else []
    command = [sys.executable, "tests/golden/run.py", "--canvas", str(canvas), *flags]
    return from_lines(*run([*without_aslr(name), *command], 900))


def python_tests(minutes: int) -> Result:
    report = BUILD / "pytest.xml"
    report.unlink(missing_ok=True)
    own = pathlib.Path(os.environ["TMPDIR"]) / "pytest"
    command = [sys.executable, "-m", "pytest", "tests/python", "-q", f"--junitxml={report}"]
    command += [f"-n{JOBS + 1}", "--dist=loadgroup", f"--basetemp={own}"]  # some wait for a while
    status, output = run(command, 60 * minutes)
    shutil.rmtree(own, ignore_errors=True)  # pytest keeps it for people who look into it
    try:
        counts = xml.etree.ElementTree.parse(report).getroot().find("testsuite").attrib
    except (OSError, AttributeError, xml.etree.ElementTree.ParseError):
        return Result(0, 1, output)
    tests, bad, skipped = (
        sum(int(counts[key]) for key in keys)
        for keys in (["tests"], ["failures", "errors"], ["skipped"])
    )
    if (status or not tests) and not bad:
        bad = tests = 1  # pytest itself broke down, or found nothing
    return Result(max(0, tests - bad - skipped), bad, output)


# ---- running and counting -----------------------------------------------------------------------


def run(command: list[str], seconds: int, more: dict[str, str] | None = None) -> tuple[int, str]:
    """Exit status (negative: a signal, 124: out of time) and all output."""
    environment = {**os.environ, **SANITIZER_OPTIONS, "CMOCKA_MESSAGE_OUTPUT": "TAP"}
    environment |= more or {}
    try:
        done = subprocess.run(
            command,
            cwd=ROOT,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=seconds,
        )
    except subprocess.TimeoutExpired as late:
        said = (late.stdout or b"").decode(errors="replace")
        return 124, f"{said}\n{command[0]} ran longer than {seconds} s\n"
    except OSError as error:
        return 127, f"{command[0]}: {error.strerror}\n"
    return done.returncode, done.stdout.decode(errors="replace")


def from_lines(status: int, output: str) -> Result:
    """Counts the lines `ok` and `not ok`, as cmocka (in TAP) and our own scripts print them."""
    skipped = len(re.findall(r"^(?:not )?ok\b.*# SKIP", output, re.MULTILINE))
    passed = len(re.findall(r"^ok\b(?!.*# SKIP)", output, re.MULTILINE))
    failed = len(re.findall(r"^not ok\b(?!.*# SKIP)", output, re.MULTILINE))
    planned = sum(int(plan) for plan in re.findall(r"^1\.\.(\d+)$", output, re.MULTILINE))
    failed += max(0, planned - passed - failed - skipped)
    if failed == 0 and (status or passed == 0):
        failed = 1
    if status not in (0, 1):
        output += f"exit status {status}\n"
    return Result(passed, failed, output)


def total(results: list[Result]) -> Result:
    output = "\n".join(result.output for result in results if result.output)
    return Result(sum(r.passed for r in results), sum(r.failed for r in results), output)


def without_aslr(name: str) -> list[str]:
    """Older sanitizers find no room for their shadow where addresses are very random."""
    prefix = ["setarch", os.uname().machine, "-R"]
    return prefix if BUILDS[name][1] and run([*prefix, "true"], 10)[0] == 0 else []


if __name__ == "__main__":
    sys.exit(main())
