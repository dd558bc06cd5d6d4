#!/usr/bin/env python3
"""Fuzzing: builds a target with libFuzzer and sanitizers, runs it, says what was found.

    tests/fuzz.py [TARGET] [--runs N] [--seconds N] [--keep]

Without TARGET all of them, one after the other. It starts from the stored corpus
(tests/fuzz/corpus/TARGET) and from seeds that are collected afresh: examples, kernels sampled
now, and every text that the goldens give to the command. The last line of a target says inputs,
seconds and edges. An input that breaks a promise is written to build/fuzz/found/ and shown: give
it a name that says what it was and put it into the stored corpus once the cause is mended.

The target `study` is none of libFuzzer's: tests/python/foreign_studies.py makes studies as a
stranger might, `--runs` of them (default: 1000), and looks what every command says.

--keep replaces the stored corpus by some of the inputs that reach something of their own (files
named `was-...` stay). Exit status 1 if anything was found, 2 where there is no libFuzzer.
"""

import argparse
import hashlib
import itertools
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time

from messages import strings

ROOT = pathlib.Path(__file__).resolve().parent.parent
BUILD = ROOT / "build" / "fuzz"
CORPUS = ROOT / "tests" / "fuzz" / "corpus"
TARGETS = sorted(path.stem.removeprefix("fuzz_") for path in CORPUS.parent.glob("fuzz_*.c"))
STUDY = "study"  # the target that is Python
STUDIES = 1000  # of a run without --runs: each is opened by a dozen commands
LONGEST = 4000  # bytes of an input
SECONDS_EACH = 300  # an input that takes longer hangs; properties.c counts the processor's seconds
KEPT, KEPT_BYTES = 50, 50_000  # inputs of one stored corpus, and their bytes at most


def main() -> int:
    parser = argparse.ArgumentParser(prog="./dev fuzz", description="look for inputs that break")
    parser.add_argument(
        "target",
        nargs="?",
        choices=[*TARGETS, STUDY],
        metavar="TARGET",
        help=str([*TARGETS, STUDY]),
    )
    parser.add_argument("--runs", type=int, help="inputs (default: 1000000)")
    parser.add_argument("--seconds", type=int, default=0, help="at most so long (default: no end)")
    parser.add_argument("--keep", action="store_true", help="renew the stored corpus afterwards")
    options = parser.parse_args()
    broken = 0
    if options.target in (None, STUDY):
        broken += not search_studies(options.runs or STUDIES, options.seconds)
    if options.target == STUDY:
        return 1 if broken else 0
    if not build():
        return 2
    for target in [options.target] if options.target else TARGETS:
        collect_seeds(target)
        broken += not search(target, options.runs or 1_000_000, options.seconds)
        if options.keep:
            keep(target)
    return 1 if broken else 0


# ---- the build ---------------------------------------------------------------------------------


def build() -> bool:
    """The targets and the command, under sanitizers and with coverage."""
    compiler = shutil.which("clang")
    if compiler is None:
        print("fuzz: clang with libFuzzer is needed", file=sys.stderr)
        return False
    configure = [
        "cmake",
        f"-S{ROOT}",
        f"-B{BUILD}",
        "-DCMAKE_BUILD_TYPE=RelWithDebInfo",
        "-DCMAKE_C_FLAGS_RELWITHDEBINFO=-O1 -g",
        f"-DCMAKE_C_COMPILER={compiler}",
        "-DCANVAS_SANITIZE=address,undefined",
        "-DCANVAS_TESTS=ON",
        "-DCANVAS_FUZZ=ON",
        "-DCANVAS_WERROR=ON",
    ]
    names = [f"fuzz_{target}" for target in TARGETS]
    make = ["cmake", "--build", str(BUILD), "--parallel", "2", "--target", *names]
    for command in (configure, make):
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode:
            print(done.stdout, done.stderr, "fuzz: the targets do not build", sep="\n")
            return False
    return True


# ---- seeds -------------------------------------------------------------------------------------


def collect_seeds(target: str) -> None:
    """Fill build/fuzz/seeds/TARGET anew; the name of a seed is the hash of its bytes."""
    folder = BUILD / "seeds" / target
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    texts = golden_texts() + c_strings()
    examples = [path.read_text() for path in (ROOT / "examples/kernels").glob("*")]
    kernels = examples + re.split(r"\n(?=canvas 1)", canvas("sample", "--seed", "7", "-n", "60"))
    if target == "kernel":
        texts += kernels + [without_shapes(text) for text in kernels]
    elif target == "pack":
        texts += solved(kernels)
    elif target == "targets":
        texts += [(ROOT / "examples/targets/resnet18.txt").read_text()]
    elif target == "machine":
        texts += [path.read_text() for path in (ROOT / "examples/machines").glob("*.txt")]
    elif target == "program":
        texts += [canvas("lower", "-", "--target", "t1", given=pack) for pack in solved(kernels)]
    elif target == "edit":
        texts += edited()
    elif target == "log":
        texts += logged()
    elif target == "schedule":
        texts += scheduled()
    for text in texts:
        if 0 < len(text) <= LONGEST:
            (folder / hashlib.sha256(text.encode()).hexdigest()[:12]).write_text(text)


def canvas(*words: str, given: str = "") -> str:
    """What the command of the ordinary build prints; "" where it rejects."""
    command = [str(ROOT / "build" / "canvas"), *words]
    return subprocess.run(command, input=given, capture_output=True, text=True).stdout


def solved(kernels: list[str]) -> list[str]:
    """Their packs for two small layers, with G and, where they know none, without."""
    flags = ("solve", "-", "--targets", "16,8,8;32,4,4", "--budget", "macs=2x,params=2x")
    return [canvas(*flags, *g, given=text) for text in kernels for g in ((), ("--at", "G=4"))]


def scheduled() -> list[str]:
    """Each example of a schedule behind its program, and with every other program, too."""
    programs = [path.read_text() for path in (ROOT / "examples/programs").glob("*")]
    schedules = [path.read_text() for path in (ROOT / "examples/schedules").glob("*")]
    return [f"{program}----\n{schedule}" for program in programs for schedule in schedules]


def edited() -> list[str]:
    """Each example of a program, with every kind of edit for each of its tensors."""
    seeds = []
    for path in (ROOT / "examples/programs").glob("*"):
        program = path.read_text()
        for name, axes in re.findall(r"^(?:in +)?(\w+)[ \w]*\[(.*?)\]", program, re.M):
            layout = ", ".join(reversed(re.findall(r"(\w+):", axes)))
            edits = [f"cache {name} as E", f"inline {name}", f"pack {name} as P [{layout}]"]
            edits += [f"turn {name} {axis} as T" for axis in re.findall(r"(\w+):", axes)]
            seeds += [f"{program}----\n{edit}\n" for edit in edits]
        for name, value in re.findall(r"^(\w+)\[.*?\] = (.*?)(?: //.*)?$", program, re.M):
            kinds = ("outline", "columns", "reciprocal")
            words = [f"{kind} {name} {value} as E" for kind in kinds]
            seeds += [f"{program}----\n{edit}\n" for edit in (*words, "merge axes")]
    return seeds


def logged() -> list[str]:
    """Edits as records have them, of the programs of fuzz_log.c and others."""
    edits = [seed.partition("----\n")[2] for seed in edited()]
    return edits + ["".join(pair) for pair in itertools.pairwise(edits)]


def without_shapes(text: str) -> str:
    """A changed line is legal more often where it promises no shape."""
    return re.sub(r" *:.*", "", text)


def c_strings() -> list[str]:
    """Every string of the C tests: lines, options, sizes, texts."""
    return [s for path in (ROOT / "tests/c").glob("test_*.c") for s in strings(path.read_text())]


def golden_texts() -> list[str]:
    """What the goldens' commands give to `canvas`: its standard input, its files, its words."""
    with tempfile.TemporaryDirectory() as temporary:
        spy = pathlib.Path(temporary, "canvas")
        spy.write_text(SPY)
        spy.chmod(0o755)
        environment = {**os.environ, "SPY": temporary}
        command = [sys.executable, str(ROOT / "tests/golden/run.py"), "--canvas", str(spy)]
        subprocess.run(command, env=environment, capture_output=True)
        paths = pathlib.Path(temporary).glob("seen-*")
        return [path.read_bytes().decode(errors="replace") for path in paths]


SPY = """#!/bin/sh
for word; do
  seen=$(mktemp "$SPY/seen-XXXXXXXX")
  case $word in
    -) timeout 5 head -c 4000 >"$seen" ;;
    *) if [ -f "$word" ]; then cp "$word" "$seen"; else printf '%s' "$word" >"$seen"; fi ;;
  esac
done
"""


# ---- the search --------------------------------------------------------------------------------


def folders(target: str) -> list[str]:
    """The inputs found in this build folder so far, the seeds, the stored corpus."""
    grown = BUILD / "grown" / target
    grown.mkdir(parents=True, exist_ok=True)
    stored = CORPUS / target
    stored.mkdir(parents=True, exist_ok=True)
    return [str(grown), str(BUILD / "seeds" / target), str(stored)]


def fuzzer(target: str, *flags: str) -> subprocess.CompletedProcess[str]:
    found = BUILD / "found"
    found.mkdir(exist_ok=True)
    command = [
        *(["setarch", os.uname().machine, "-R"] if shutil.which("setarch") else []),
        str(BUILD / "tests" / "fuzz" / f"fuzz_{target}"),
        f"-max_len={LONGEST}",
        f"-timeout={SECONDS_EACH}",
        "-reload=0",
        f"-artifact_prefix={found}/{target}-",
        *flags,
    ]
    environment = {**os.environ, "ASAN_OPTIONS": "allocator_may_return_null=1:detect_leaks=1"}
    return subprocess.run(
        command, env=environment, capture_output=True, text=True, errors="replace"
    )


def search(target: str, runs: int, seconds: int) -> bool:
    """Says what was reached; what was found is shown whole."""
    limits = [f"-runs={runs}", f"-max_total_time={seconds}", "-print_final_stats=1", "-seed=1"]
    done = fuzzer(target, *limits, *folders(target))
    edges = re.findall(r"cov: (\d+)", done.stderr)
    inputs = re.findall(r"stat::number_of_executed_units: (\d+)", done.stderr)
    seconds_used = re.findall(r"Done \d+ runs in (\d+) second", done.stderr)
    if done.returncode:
        said = [line for line in done.stderr.splitlines() if not line.startswith("#")]
        print(*said[-80:], sep="\n")
    print(
        f"{target:8} {inputs[-1] if inputs else '?':>9} inputs  "
        f"{seconds_used[-1] if seconds_used else '?':>5} s  {edges[-1] if edges else '?':>6} edges"
        f"  {'nothing found' if done.returncode == 0 else 'FOUND SOMETHING, see above'}",
        flush=True,
    )
    return done.returncode == 0


def search_studies(runs: int, seconds: int) -> bool:
    """As `search`, of studies; one that hangs is the last number that was printed."""
    found = BUILD / "found" / STUDY
    shutil.rmtree(found, ignore_errors=True)
    found.mkdir(parents=True)
    script = ROOT / "tests/python/foreign_studies.py"
    command = [sys.executable, str(script), str(found), f"--runs={runs}", f"--seconds={seconds}"]
    began = time.monotonic()
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True)
    lines = done.stdout.splitlines()
    print(f"{STUDY:8} {lines[-1] if lines else '?'}, {time.monotonic() - began:.0f} s", flush=True)
    return done.returncode == 0


def keep(target: str) -> None:
    """Of the inputs that reach something of their own some of every length, up to a limit; what
    was once found stays.
    """
    with tempfile.TemporaryDirectory() as temporary:
        done = fuzzer(target, "-merge=1", temporary, *folders(target))
        if done.returncode:
            raise SystemExit(f"{done.stderr}\nthe corpus of {target} cannot be renewed")
        found = sorted(pathlib.Path(temporary).iterdir(), key=lambda path: path.stat().st_size)
        short = [path for path in found if path.stat().st_size <= KEPT_BYTES // KEPT * 2]
        for path in (CORPUS / target).iterdir():
            if not path.name.startswith("was-"):
                path.unlink()
        for path in short[:: -(-len(short) // KEPT)]:
            shutil.copy(path, CORPUS / target / f"{target}-{path.name[:12]}")
    done = fuzzer(target, "-runs=0", str(CORPUS / target))
    edges = re.findall(r"cov: (\d+)", done.stderr)
    kept = len(list((CORPUS / target).iterdir()))
    print(f"{target:8} kept {kept} of {len(found)} inputs, {edges[-1]} edges", flush=True)


if __name__ == "__main__":
    sys.exit(main())
