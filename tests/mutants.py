#!/usr/bin/env python3
"""Break-it tests: a mutant is one small mistake, in the core or in what a claim of the package
rests on, and some test must notice it.

    tests/mutants.py [--build FOLDER] [--sample] [--jobs N] [WORD...]
    tests/mutants.py --texts

The rows stand in tests/mutants/*.txt. Every line says by its first character what it is:

    # a comment; blank lines are free, too
    == copies cost nothing                       a mutant, up to the next one
    @ src/kernel/binding.c                       the file ...
    - cost_add(out, &kernel, b->copies)          ... the text that must stand in it exactly once
    + cost_add(out, &kernel, 1)                  and what stands there instead
    = reason                                     no test can notice it, and why

Several lines - or + are one text with line breaks. The tree is not touched: the changed file is
compiled beside the objects of a finished build (build/gcc), then each C test is linked with it
and run, quick ones first; what survives them meets the goldens, and what is compared with PyTorch
at last the Python test that does so. A mistake in a Python file meets the tests of the table
PYTHON_OWN, in a package of links to everything but that file.

The answer is one line `ok` or `not ok` for each mutant. A survivor is not ok; nor is a row whose
text has gone, one that does not compile, one with a reason that a test refutes, and one noticed
by a test that fails without any mistake. WORDs choose mutants by their names and files, --sample
the rows that open their lists, which are quick. `./dev test --all` runs all of them; --texts, of
every `./dev test`, sees that what each row replaces still stands in its file, once.
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

ROOT = pathlib.Path(__file__).resolve().parent.parent
ROWS = ROOT / "tests" / "mutants"
GOLDENS = "tests/golden/run.py"
# Where PyTorch has the last word: folder of the mutant, test.
PYTHON_TESTS = {
    "src/spell/": "tests/python/test_torch_equals_interpreter.py",
    "src/primitive/": "tests/python/test_torch_equals_interpreter.py",
    "src/operator/": "tests/python/test_operators.py",
}
# Mistakes in the package itself: file of the mutant, tests.
PYTHON_OWN = {
    "python/ext/call.c": "test_native_calls",
    "python/ext/watch.c": "test_native_calls test_compile_network",
    "python/ext/watch_sums.c": "test_native_calls test_compile_network",
    "python/canvas/files.py": "test_files test_study_files",
    "python/canvas/text.py": "test_csv_cells",
    "python/canvas/data/stored.py": "test_stored test_lost_images",
    "python/canvas/study/examine.py": "test_foreign_studies",
    "python/canvas/workers/pool.py": "test_pool test_lost_images",
    "python/canvas/workers/scratch.py": "test_orphans",
    "python/canvas/workers/worker.py": "test_worker",
    "python/canvas/training/train.py": "test_train",
    "python/canvas/runner/search_run.py": "test_finals",
    "python/canvas/runner/finals.py": "test_finals test_precompile",
    "python/canvas/runner/evolve.py": "test_strategy",
    "python/canvas/runner/next_item.py": "test_strategy",
    "python/canvas/runner/strategy.py": "test_strategy",
    "python/canvas/runner/timing.py": "test_timing",
    "python/canvas/runner/precompile.py": "test_precompile",
    "python/canvas/reporting/front.py": "test_report",
    "python/canvas/reporting/claims.py": "test_null_worlds",
    "python/canvas/reporting/verdict.py": "test_verdict test_null_worlds",
    "python/canvas/te/schedule_loops.py": "test_schedule_facade",
    "python/canvas/te/schedule_place.py": "test_schedule_facade",
    "python/canvas/te/schedule_text.py": "test_schedule_facade",
    "python/canvas/autotvm/task/space.py": "test_autotvm",
    "python/canvas/autotvm/record.py": "test_autotvm",
    "python/canvas/autotvm/measure.py": "test_autotvm",
    "python/canvas/autotvm/tuner/ga_tuner.py": "test_autotvm",
    "python/canvas/aten/convolutions.py": "test_aten_networks",
    "python/canvas/aten/in_place.py": "test_aten_in_place",
    "python/canvas/aten/pooling.py": "test_aten_operators",
    "python/canvas/aten/gathers.py": "test_aten_operators",
    "python/canvas/aten/products.py": "test_aten_operators",
    "python/canvas/aten/memory_order.py": "test_compile_layouts",
    "python/canvas/aten/reductions.py": "test_aten_operators",
    "python/canvas/aten/writer.py": "test_aten_networks",
    "python/canvas/aten/graph.py": "test_aten_networks test_compile_models",
    "python/canvas/aten/autocast.py": "test_aten_networks",
    "python/canvas/aten/writes.py": "test_aten_operators test_aten_networks",
    "python/canvas/nn/kernel_node.py": "test_aten_networks",
    "python/canvas/aten/exporting.py": "test_torch_backend test_compile_network "
    "test_compile_models",
    "python/canvas/aten/norms.py": "test_accuracy",
    "python/canvas/aten/pointwise.py": "test_accuracy",
    "python/canvas/inference/watched_weights.py": "test_compile_network",
    "python/canvas/inference/tensor_access.py": "test_compile_network",
    "python/canvas/inference/model_state.py": "test_native_calls test_compile_network",
    "python/canvas/inference/native_part.py": "test_native_calls test_compile_network",
    "python/canvas/inference/verify_first_call.py": "test_compile_network",
    "python/canvas/inference/export_c.py": "test_compile_models",
    "python/canvas/inference/input_views.py": "test_compile_layouts",
    "python/canvas/inference/specialization.py": "test_compile_network test_compile_layouts",
    "python/canvas/inference/compiled_network.py": "test_native_calls test_compile_network",
    "python/canvas/inference/new_tensors.py": "test_native_calls",
    "python/canvas/inference/locks.py": "test_torch_backend",
    "python/canvas/inference/torch_backend.py": "test_native_calls test_torch_backend",
    "python/canvas/inference/compile_options.py": "test_torch_backend",
    "python/canvas/inference/native_network.py": "test_native_network test_compile_models",
}
SECONDS = 180  # of the processor for one test; a mutant that hangs is noticed, too
MEMORY = 8 << 30  # bytes of address space of one test
# From quick to slow; tests that are not named here come last.
ORDER = [
    "kernel",
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

# Tests that come first for the files of a folder.
NEAREST = {
    "src/evolve": ["mutate"],
    "src/kernel/kernel_simplify": ["simplify"],
    "src/schedule": ["loop_tree", "schedule_edit"],
    "src/transform": ["schedule_follow", "schedule_edit", "prepare", "default"],
    "src/code": ["code", "emit"],
    "src/emit": ["emit"],
    "src/run": ["rounding", "expected", "child", "candidates", "compiler"],
}


@dataclass
class Mutant:
    """A row: where it stands, what it changes."""

    name: str
    file: str = ""
    old: list[str] = field(default_factory=list)
    new: list[str] = field(default_factory=list)
    equivalent: str = ""


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
        stale = [(row.name, why) for row in read_rows(path) if (why := mutated(row)[1])]
        print(("not ok" if stale else "ok") + f" mutants: {path.stem}")
        for name, why in stale:
            print(f"  {name}: {why}")
        failed |= bool(stale)
    return 1 if failed else 0


def judge_all(build: Build, options: argparse.Namespace) -> int:
    lists = [read_rows(path) for path in sorted(ROWS.glob("*.txt"))]
    rows = [row for rows in lists for row in (rows[:1] if options.sample else rows)]
    rows = [r for r in rows if all(word in f"{r.name} {r.file}" for word in options.words)]
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
            rows[-1].file = text
        elif kind == "-" and rows:
            rows[-1].old.append(text)
        elif kind == "+" and rows:
            rows[-1].new.append(text)
        elif kind == "=" and rows:
            rows[-1].equivalent += text
        else:
            raise SystemExit(f"{path}:{number}: no line of a list begins like {line!r}")
    return rows


def mutated(row: Mutant) -> tuple[str | None, str]:
    """The changed text of the file, or why there is none."""
    path = ROOT / row.file
    text = path.read_text() if path.is_file() else ""
    old, new = "\n".join(row.old), "\n".join(row.new)
    found = text.count(old) if old else 0
    if found == 1 and old != new:
        return text.replace(old, new), ""
    return None, f"its text stands {found} times in {row.file}, not once: bring the row up to date"


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
    text, why = mutated(row)
    if text is None:
        return False, why
    if row.file in PYTHON_OWN:
        return judge_python(build, row, text)
    if row.file not in build.library:
        return False, f"{row.file} is not compiled into the library"
    with tempfile.TemporaryDirectory(prefix="canvas-mutant-") as temporary:
        folder = pathlib.Path(temporary)
        changed = compile_file(build, row.file, text, folder)
        if changed is None:
            return False, "does not compile"
        objects = [changed if s == row.file else o for s, o in build.library.items()]
        tests = (
            test for test in tests_of(build, row) if not run_test(build, test, objects, folder)
        )
        noticed = next(tests, "")
    if noticed and not original_passes(build, noticed):
        return False, f"{noticed} fails without the mistake, too"
    if row.equivalent:
        return not noticed, f"noticed by {noticed}, not equivalent" if noticed else row.equivalent
    return bool(noticed), noticed or "SURVIVED: no test notices it"


def judge_python(build: Build, row: Mutant, text: str) -> tuple[bool, str]:
    """The same for a mistake in a Python file."""
    tests = [f"tests/python/{name}.py" for name in PYTHON_OWN[row.file].split()]
    noticed = next((test for test in tests if not run_python(build, test, row.file, text)), "")
    if noticed and not run_python(build, noticed, row.file, (ROOT / row.file).read_text()):
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


def tests_of(build: Build, row: Mutant) -> list[str]:
    """Their names, in the order they are run."""
    nearest = [
        t for folder, tests in NEAREST.items() if row.file.startswith(folder) for t in tests
    ]
    known = [name for name in dict.fromkeys(nearest + ORDER) if name in build.tests]
    python = [test for folder, test in PYTHON_TESTS.items() if row.file.startswith(folder)]
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
