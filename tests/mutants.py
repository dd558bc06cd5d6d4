#!/usr/bin/env python3
"""Mutation tests: a mutant is one small mistake in the code, and some test must notice it.

    tests/mutants.py [--build FOLDER] [--sample] [--jobs N] [WORD...]
    tests/mutants.py --texts

The rows are in tests/mutants/*.txt. The first character of a line says what it holds:

    # a comment; blank lines are free, too
    == copies cost nothing       a mutant, up to the next one
    @ cost_add                   its function ...
    - b->copies                  ... the pattern that is there exactly once ...
    + 1                          ... and its replacement, which may be empty
    ? test_pool test_worker      tests in tests/python that should notice it
    = reason                     no test can notice it, and why

A pattern is matched token by token: white space, line breaks and comments do not matter. The file
is found by the name of the function, which may also be a macro, a table, a struct or a class
(source_functions.py). A name that is not unique is written FILE:NAME or CLASS.NAME. Several lines
- or + are one text. Further lines of a replacement in Python are indented relative to the first.

The tree is not touched: the changed file is compiled beside the objects of a finished build
(build/gcc). Then each C test is linked with it and run, quick ones first. Then follow the goldens,
and for code that is compared with PyTorch the Python test that does so. A mistake in python/ meets
the tests of its row (?), in a package of links to everything but the changed file.

The result is one line `ok` or `not ok` for each mutant. A survivor is not ok. Neither is a row
whose pattern is gone, one that does not compile, one with a reason that a test refutes, and one
noticed by a test that fails without the mistake. WORDs choose mutants by their names and files.
--sample runs the first row of each list. `./dev test --all` runs all rows. --texts is part of
every `./dev test`: it checks that each pattern is found once and that the named tests exist.
"""

import argparse
import concurrent.futures
import json
import os
import pathlib
import resource
import shlex
import shutil
import subprocess
import sys
import tempfile
import threading
from dataclasses import dataclass, field

import source_functions as functions

ROOT = pathlib.Path(__file__).resolve().parent.parent
ROWS = ROOT / "tests" / "mutants"
GOLDENS = "tests/golden/run.py"
# Folders of src/ that are compared with PyTorch: the test that does it.
PYTHON_TESTS = {
    "spell": "tests/python/test_torch_equals_interpreter.py",
    "primitive": "tests/python/test_torch_equals_interpreter.py",
    "operator": "tests/python/test_operators.py",
}
SECONDS = 180  # of the processor for one test; a mutant that hangs is noticed, too
MEMORY = 8 << 30  # bytes of address space of one test
# From quick to slow; tests that are not named here come last.
ORDER = [
    "kernel",
    "stride",
    "default_times",
    "schedule",
    "spell",
    "lower",
    "operator",
    "dim",
    "pack",
    "api",
    "target",
    "sentences",
    "draws",
    "program",
    "program_edit",
    "program_cost",
    "lower_moves",
    "budget",
    "hash",
    "sampler",
]

# Tests that come first for the folders of src/, after those that have a word of the file's name.
NEAREST = {
    "evolve": ["mutate"],
    "schedule": ["loop_tree", "schedule_edit"],
    "edit": ["schedule_follow", "schedule_edit"],
    "prepare": ["prepare"],
    "autoschedule": ["default_times", "default"],
    "rewrite": ["program_edit"],
    "code": ["code", "emit"],
    "emit": ["emit"],
    "run": ["rounding", "expected", "child", "candidates", "compiler"],
}


@dataclass
class Mutant:
    """A row."""

    name: str
    function: str = ""
    old: list[str] = field(default_factory=list)
    new: list[str] = field(default_factory=list)
    equivalent: str = ""
    tests: list[str] = field(default_factory=list)


@dataclass
class Change:
    """The file of a mutant, from the root of the tree, and its changed text."""

    file: str
    text: str


class RowError(Exception):
    """A row does not fit the code."""


@dataclass
class Build:
    """The commands of a finished build, by the source they compile."""

    library: dict[str, str]  # source -> object
    commands: dict[str, list[str]]
    tests: dict[str, str]  # name -> object
    command: str  # the object of cli/main.c
    extension: dict[str, str]


def main() -> int:
    parser = argparse.ArgumentParser(description="break the core, see a test notice")
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build" / "gcc")
    parser.add_argument("--sample", action="store_true", help="the first row of each file")
    parser.add_argument("--jobs", type=int, default=1, help="mutants at once")
    parser.add_argument("--texts", action="store_true", help="only whether rows fit their files")
    parser.add_argument("words", nargs="*", metavar="WORD", help="only rows that hold these words")
    options = parser.parse_args()
    os.environ.pop("CANVAS_TEST_ALL", None)
    if options.texts:
        return check_texts()

    with tempfile.TemporaryDirectory(prefix="canvas-mutants-") as stripped:
        return judge_all(read_build(options.build.resolve(), pathlib.Path(stripped)), options)


def check_texts() -> int:
    failed = False
    for path in sorted(ROWS.glob("*.txt")):
        stale = [(row.name, why) for row in read_rows(path) if (why := misfit(row))]
        print(("not ok" if stale else "ok") + f" mutants: {path.stem}")
        for name, why in stale:
            print(f"  {name}: {why}")
        failed |= bool(stale)
    return 1 if failed else 0


def judge_all(build: Build, options: argparse.Namespace) -> int:
    lists = [read_rows(path) for path in sorted(ROWS.glob("*.txt"))]
    rows = [row for rows in lists for row in (rows[:1] if options.sample else rows)]
    rows = [row for row in rows if all(word in described(row) for word in options.words)]
    print(f"1..{max(1, len(rows))}", flush=True)
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        verdicts = pool.map(lambda row: judge(build, row), rows)
        failed = [not report(row.name, *verdict) for row, verdict in zip(rows, verdicts)]
    return 1 if any(failed) or not rows else 0


def report(name: str, good: bool, why: str) -> bool:
    print(f"{'ok' if good else 'not ok'} mutant: {name}: {why}", flush=True)
    return good


# ---- rows ---------------------------------------------------------------------------------------


def read_rows(path: pathlib.Path) -> list[Mutant]:
    rows: list[Mutant] = []
    for number, line in enumerate(path.read_text().splitlines(), 1):
        kind, text = line[:1], line[2:]
        if kind in ("", "#"):
            continue
        if line.startswith("== "):
            rows.append(Mutant(line[3:]))
        elif kind == "@" and rows:
            rows[-1].function = text
        elif kind == "?" and rows:
            rows[-1].tests += text.split()
        elif kind == "-" and rows:
            rows[-1].old.append(text)
        elif kind == "+" and rows:
            rows[-1].new.append(text)
        elif kind == "=" and rows:
            rows[-1].equivalent += text
        else:
            raise SystemExit(f"{path}:{number}: no line of a list begins like {line!r}")
    return rows


def described(row: Mutant) -> str:
    files = {function.path.name for function in functions.functions_named(row.function)}
    return " ".join([row.name, row.function, *files])


def mutated(row: Mutant) -> Change:
    """The changed text of its file; raises RowError."""
    found = functions.functions_named(row.function)
    if len(found) != 1:
        where = " and ".join(sorted(str(f.path.relative_to(ROOT)) for f in found)) or "no file"
        raise RowError(f"'{row.function}' is in {where}; write a name that is there once")
    path, text = found[0].path, functions.text_of(found[0].path)
    old, new = "\n".join(row.old), "\n".join(row.new)
    places = functions.find(found[0], old)
    where = f"{row.function} in {path.relative_to(ROOT)}"
    if len(places) != 1:
        raise RowError(f"'{old}' is {len(places)} times in {where}, not once; correct the pattern")
    begin, end = places[0]
    if path.suffix == ".py":
        line = text[text.rfind("\n", 0, begin) + 1 : begin]
        new = new.replace("\n", "\n" + line[: len(line) - len(line.lstrip())])
    changed = text[:begin] + new + text[end:]
    if path.suffix == ".py":
        try:
            compile(changed, path.name, "exec")
        except SyntaxError as error:
            raise RowError(f"{where} does not compile: {error.msg}") from None
    return Change(str(path.relative_to(ROOT)), changed)


def misfit(row: Mutant) -> str:
    """Why the row does not fit the code; "": it does."""
    try:
        change = mutated(row)
    except RowError as error:
        return str(error)
    missing = [test for test in row.tests if not (ROOT / f"tests/python/{test}.py").is_file()]
    if missing:
        return f"there is no tests/python/{missing[0]}.py"
    if change.file.startswith("python/") != bool(row.tests):
        return "a row of python/, and no other, names the tests that should notice it (?)"
    if change.file.endswith(".h"):
        return f"{change.file} is a header: a mutant is compiled as one .c file"
    return ""


# ---- the build ----------------------------------------------------------------------------------


def read_build(folder: pathlib.Path, stripped: pathlib.Path) -> Build:
    """Brings the build up to date and sorts its objects, of which it copies `stripped` ones."""
    done = subprocess.run(["cmake", "--build", str(folder)], capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"{done.stdout}\n{folder} does not build")
    build = Build({}, {}, {}, "", {})
    for entry in json.loads((folder / "compile_commands.json").read_text()):
        source = os.path.relpath(entry["file"], ROOT)
        if source.startswith("bench/"):  # built on request only
            continue
        words = shlex.split(entry["command"])
        whole = os.path.join(entry["directory"], words[words.index("-o") + 1])
        if not os.path.exists(whole):  # of bench/: built when asked for
            continue
        if "/tests/CMakeFiles/" in whole and not source.startswith("tests/"):
            continue  # a test that compiles a file of src/ in a way of its own
        object_file = str(stripped / pathlib.Path(whole).name)
        shutil.copy(whole, object_file)
        build.commands[source] = words
        if source == "cli/main.c":
            build.command = object_file
        elif source.startswith(("src/", "cli/")):
            build.library[source] = object_file
        elif source.startswith("tests/c/"):
            build.tests[pathlib.Path(source).stem.removeprefix("test_")] = object_file
        elif source.startswith("python/ext/"):
            build.extension[source] = object_file
    objects = map(str, stripped.iterdir())
    subprocess.run(
        ["strip", "--strip-debug", *objects], check=True
    )  # links in a fifth of the time
    return build


def compile_file(build: Build, source: str, text: str, folder: pathlib.Path) -> str | None:
    """The object of the changed source; None if it does not compile."""
    changed = folder / pathlib.Path(source).name
    changed.write_text(text)
    words = [word for word in build.commands[source] if word != "-Werror"]
    words[words.index("-c") + 1] = str(changed)
    object_file = words[words.index("-o") + 1] = str(folder / "changed.o")
    beside = ["-iquote", str((ROOT / source).parent)]  # the headers that stand beside it
    done = subprocess.run([*words, *beside, "-w", "-O1", "-g0"], capture_output=True, text=True)
    return object_file if done.returncode == 0 else None


def link(build: Build, objects: list[str], own: list[str], to: pathlib.Path, *flags: str) -> None:
    compiler = next(iter(build.commands.values()))[0]
    command = [compiler, *flags, "-o", str(to), *own, *objects, "-lcmocka", "-lm", "-lpthread"]
    subprocess.run(command, check=True, capture_output=True)


# ---- judging ------------------------------------------------------------------------------------


def judge(build: Build, row: Mutant) -> tuple[bool, str]:
    """Whether all is well with the row, and what was seen."""
    why = misfit(row)
    if why:
        return False, why
    change = mutated(row)
    if row.tests:
        return judge_python(build, row.tests, change)
    if change.file not in build.library:
        return False, f"{change.file} is not compiled into the library"
    with tempfile.TemporaryDirectory(prefix="canvas-mutant-") as temporary:
        folder = pathlib.Path(temporary)
        changed = compile_file(build, change.file, change.text, folder)
        if changed is None:
            return False, "does not compile"
        objects = [changed if s == change.file else o for s, o in build.library.items()]
        tests = (
            test
            for test in tests_of(build, change.file)
            if not run_test(build, test, objects, folder)
        )
        noticed = next(tests, "")
    if noticed and not original_passes(build, noticed):
        return False, f"{noticed} fails without the mistake, too"
    if row.equivalent:
        return not noticed, f"noticed by {noticed}, not equivalent" if noticed else row.equivalent
    return bool(noticed), noticed or "SURVIVED: no test notices it"


def judge_python(build: Build, names: list[str], change: Change) -> tuple[bool, str]:
    """The same for a mistake in python/."""
    if not build.extension:
        return False, "the build has no extension; configure it with -DCANVAS_PYTHON=ON"
    tests = [f"tests/python/{name}.py" for name in names]
    file = change.file
    noticed = next((test for test in tests if not run_python(build, test, file, change.text)), "")
    if noticed and not run_python(build, noticed, file, (ROOT / file).read_text()):
        return False, f"{noticed} fails without the mistake, too"
    return bool(noticed), noticed or "SURVIVED: no test notices it"


def run_python(build: Build, test: str, file: str, text: str) -> bool:
    """Whether a test of the package passes with this text in place of a file."""
    with tempfile.TemporaryDirectory(prefix="canvas-mutant-") as temporary:
        own = (pathlib.Path(temporary) / file).parent
        own.mkdir(parents=True)
        package = pathlib.Path(temporary) / "python" / "canvas"
        package.mkdir(exist_ok=True)
        for folder in {package, own}:
            for path in (ROOT / folder.relative_to(temporary)).iterdir():
                if (
                    not path.name.startswith(("_core.abi3", "__pycache__"))
                    and not (folder / path.name).exists()
                ):
                    (folder / path.name).symlink_to(path)
        objects = list(build.library.values())
        extension = dict(build.extension)
        if file in extension:
            extension[file] = compile_file(build, file, text, pathlib.Path(temporary)) or ""
            if not extension[file]:
                return True  # what does not compile is noticed by no test
        else:
            (package.parent.parent / file).unlink()
            (package.parent.parent / file).write_text(text)
        link(build, objects, list(extension.values()), package / "_core.abi3.so", "-shared")
        command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", test]
        return passes(command, PYTHONPATH=str(package.parent))


def tests_of(build: Build, file: str) -> list[str]:
    """Their names, in the order they are run."""
    path = pathlib.Path(file)
    words = path.stem.split("_")
    nearest = [test for test in build.tests if test == path.stem or test in words]
    nearest += NEAREST.get(path.parent.name, [])
    known = [name for name in dict.fromkeys(nearest + ORDER) if name in build.tests]
    python = [PYTHON_TESTS[path.parent.name]] if path.parent.name in PYTHON_TESTS else []
    return [*known, *sorted(set(build.tests) - set(known)), GOLDENS, *python]


def original_passes(build: Build, test: str) -> bool:
    """A test that fails without any mistake notices nothing; each is asked once."""
    with ASKED:
        if test not in PASSES:
            with tempfile.TemporaryDirectory(prefix="canvas-mutant-") as temporary:
                objects = list(build.library.values())
                PASSES[test] = run_test(build, test, objects, pathlib.Path(temporary))
        return PASSES[test]


ASKED = threading.Lock()
PASSES: dict[str, bool] = {}


def run_test(build: Build, test: str, objects: list[str], folder: pathlib.Path) -> bool:
    """Whether a test passes with these objects as the library."""
    if test == GOLDENS:
        link(build, objects, [build.command], folder / "canvas")
        return passes([sys.executable, GOLDENS, "--canvas", str(folder / "canvas")])
    if test in PYTHON_TESTS.values():
        package = folder / "python" / "canvas"
        package.mkdir(parents=True)
        for path in (ROOT / "python" / "canvas").iterdir():
            if not path.name.startswith("_core.abi3"):
                (package / path.name).symlink_to(path)
        extension = list(build.extension.values())
        link(build, objects, extension, package / "_core.abi3.so", "-shared")
        command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", test]
        return passes(command, PYTHONPATH=str(package.parent))
    program = folder / f"test_{test}"
    link(build, objects, [build.tests[test]], program)
    return passes([str(program)])


def passes(command: list[str], **environment: str) -> bool:
    try:
        done = subprocess.run(
            command,
            cwd=ROOT,
            env={**os.environ, **environment},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            timeout=20 * SECONDS,
            preexec_fn=limit_work,
        )
    except subprocess.TimeoutExpired:
        return False
    return done.returncode == 0


def limit_work() -> None:
    resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS))
    hard = resource.getrlimit(resource.RLIMIT_AS)[1]  # an address sanitizer asks for more
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, hard))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


if __name__ == "__main__":
    sys.exit(main())
