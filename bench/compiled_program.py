"""Programs compiled for a machine: calls of them, their compile time, the time of each loop nest.

A nest is a loop at the root of the function: usually one stage, or a reduction with the stages
that are fused into its tile.
"""

from __future__ import annotations

import ctypes
import os
import re
import resource
import shlex
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import contenders
import numpy as np

from canvas import _core

Call = Callable[[], Any]
Arrays = list[np.ndarray]

ROOT = Path(__file__).resolve().parent.parent
BUILD = ROOT / "build" / "defaults"
ALIGNMENT = 64
PROBES = 64
CACHES = r"^(?:l1|l2|l3|cores|memory) .*\n"  # lines of a machine's text
TYPES = {"f32": "f4", "f64": "f8", "i32": "i4", "bf16": "u2"}


# ---- machines ----------------------------------------------------------------------------------


def example_machine(isa: str) -> str:
    """A text of examples/machines. Code for 32-byte vectors is for x86-64-v3."""
    text = (ROOT / f"examples/machines/{isa}.txt").read_text()
    text = re.sub(r"^target .*\n", "", text, flags=re.M)
    return text + f"target {'x86-64-v3' if isa == 'avx2' else 'native'}\n"


def this_machine() -> str:
    """The text of this machine."""
    command = [str(ROOT / "build" / "canvas"), "machine"]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def narrowed(isa: str, machine: str) -> str:
    """The machine with the vectors and registers of an instruction set."""
    caches = "".join(re.findall(CACHES, machine, re.M))
    return re.sub(CACHES, "", example_machine(isa), flags=re.M) + caches


def machine_text(name: str) -> str | None:
    """Of examples/machines; None, which means this one, for "here"."""
    return None if name == "here" else example_machine(name)


# ---- calls -------------------------------------------------------------------------------------


def children() -> float:
    """Seconds of processor time of all processes that were waited for."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


@dataclass
class Code:
    """A program compiled; `arrays` are all of its inputs, constant ones prepared already."""

    call: Call
    outputs: Arrays
    seconds: float  # processor time of the compiler; 0 where the cache had it


def random_inputs(program: str, seed: int = 1) -> Arrays:
    rng = np.random.default_rng(seed)
    inputs, _ = _core.signature(program)
    return aligned([drawn(rng, row) for row in inputs])


def drawn(rng: np.random.Generator, row: Any) -> np.ndarray:
    """Of an input (name, type, shape, lowest and highest index)."""
    if row[1] == "i32":
        return rng.integers(row[3], row[4] + 1, row[2], dtype="i4")
    return rng.standard_normal(row[2]).astype("f4") / max(1, len(row[2]))


def aligned(arrays: Arrays) -> Arrays:
    """Copies that begin where a line does."""
    return [contenders.aligned(array) for array in arrays]


def addresses(arrays: Arrays) -> list[ctypes.c_void_p]:
    return [ctypes.c_void_p(array.ctypes.data) for array in arrays]


def outputs_of(program: str, places: Arrays | None = None) -> Arrays:
    """Arrays for its outputs: those of another contender, if given. The distance of an output from
    the inputs changes the time by up to a factor of two.
    """
    rows = _core.signature(program)[1]
    if places is None:
        return aligned([np.zeros(row[2], TYPES[row[1]]) for row in rows])
    return [place.reshape(row[2]) for place, row in zip(places, rows, strict=True)]


def compiled(program: str, arrays: Arrays, schedule: str | None = None,
             machine: str | None = None, places: Arrays | None = None) -> Code:  # fmt: skip
    before = children()
    path, name, size, packs, takes = _core.compile(program, schedule, machine)
    seconds = children() - before
    outputs = outputs_of(program, places)
    return loaded(path, name, (size, packs, takes), outputs, arrays, seconds)


def loaded(path: str, name: str, prepared: tuple[int, list[bool], list[bool]], outputs: Arrays,
           arrays: Arrays, seconds: float) -> Code:  # fmt: skip
    library = ctypes.CDLL(path)
    size, packs, takes = prepared
    given = addresses([array for array, taken in zip(arrays, takes) if taken])
    kept: list[Any] = [arrays]
    if size:
        buffer: np.ndarray = np.zeros(size + ALIGNMENT, np.uint8)
        at = ctypes.c_void_p(buffer.ctypes.data + -buffer.ctypes.data % ALIGNMENT)
        read = addresses([array for array, taken in zip(arrays, packs) if taken])
        if getattr(library, f"{name}_prepare")(*read, at):
            raise MemoryError("there is no memory for what is prepared")
        kept.append(buffer)
        given.append(at)
    given += addresses(outputs)
    pointers = (ctypes.c_void_p * len(given))(*given)
    function = getattr(library, f"canvas_call_{name}")
    return Code(lambda: function(pointers) and kept, outputs, seconds)


# ---- time --------------------------------------------------------------------------------------


def once(call: Call, calls: int = 1) -> float:
    begin = time.thread_time()
    for _ in range(calls):
        call()
    return (time.thread_time() - begin) / calls


def in_turns(functions: list[Call], samples: int, limit: float = 3) -> list[list[float]]:
    """Seconds of a call, by function and turn."""
    timers = {str(i): partial(once, function) for i, function in enumerate(functions)}
    for function in functions:
        function()
    taken = contenders.turns(timers, samples, slice_s=2e-3, warm=0, least_warm=1, limit=limit)
    return list(taken.values())


def ratio(first: list[float], second: list[float]) -> float:
    """How many times longer the first takes: the median over turns."""
    return statistics.median(a / b for a, b in zip(first, second))


# ---- the C text, and the time of its nests ------------------------------------------------------


def c_text(program: str, machine: str | None = None) -> str:
    with tempfile.TemporaryDirectory() as folder:
        source, out = Path(folder) / "p.program", Path(folder) / "p.c"
        source.write_text(program)
        words = ["canvas", "compile", str(source), "--emit", "c", "-o", str(out)]
        if machine:
            (Path(folder) / "m.txt").write_text(machine)
            words += ["--machine", str(Path(folder) / "m.txt")]
        if _core.main(words):
            raise ValueError("the program does not compile")
        return out.read_text()


def explained(program: str, schedule: str, machine: str) -> str:
    """What `canvas schedule explain` prints."""
    with tempfile.TemporaryDirectory() as folder:
        words = []
        for name, text in (("program", program), ("schedule", schedule), ("machine", machine)):
            path = Path(folder) / name
            path.write_text(text)
            words.append(str(path))
        with (Path(folder) / "out").open("w+") as out, open(os.devnull, "w") as nothing:
            before = [os.dup(1), os.dup(2)]
            try:
                os.dup2(out.fileno(), 1)
                os.dup2(nothing.fileno(), 2)
                _core.main(["canvas", "schedule", "explain", *words[:2], "--machine", words[2]])
            finally:
                for number, kept in enumerate(before, 1):
                    os.dup2(kept, number)
                    os.close(kept)
            out.seek(0)
            return out.read()


@dataclass
class Nest:
    stores: list[str]  # names that it writes
    text: str
    seconds: float = 0


def split_nests(body: list[str]) -> tuple[list[str], list[Nest]]:
    """The lines with a probe before each root loop, and after the last one."""
    lines, nests, at, ended = [], [], -1, False
    for number, line in enumerate(body):
        starts = re.match(r"  (for |PRAGMA|SCALAR_ALONE)", line) and not (
            number and re.match("  (PRAGMA|SCALAR_ALONE)", body[number - 1])
        )
        if starts:
            at += 1
            lines.append(f"  NEST_PROBE({at})")
            nests.append(Nest([], ""))
        elif at >= 0 and not ended and re.match(r"  (status|return|free)", line):
            lines.append(f"  NEST_PROBE({at + 1})")
            ended = True
        lines.append(line)
        if at >= 0 and line.startswith("  ") and not re.match(r"  (status|return|done)", line):
            nests[at].text += line + "\n"
    for nest in nests:
        written = re.findall(r"(\w+)\[[^=;]*\]\)? \+?= |STORE_V\d+\((\w+)\[", nest.text)
        nest.stores = sorted({a or b for a, b in written})
    return lines, nests


def with_probes(text: str, name: str) -> tuple[str, list[str], str, list[Nest]]:
    """The text before the function, its lines with probes, the text behind it, its nests. Loops of
    a program with a workspace are in NAME_body, which NAME calls."""
    start = re.search(rf"^(static )?int {name}(_body)?\(", text, re.M)
    assert start
    end = text.index("\n}\n", start.start()) + 3
    lines, found = split_nests(text[start.start() : end].splitlines())
    return text[: start.start()], lines, text[end:], found


PROBE = f"""#include <time.h>
static double nest_seconds[{PROBES}];
static double nest_last;
static void nest_probe(int n) {{
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  double now = t.tv_sec + 1e-9 * t.tv_nsec;
  if (n && n < {PROBES} && (!nest_seconds[n - 1] || now - nest_last < nest_seconds[n - 1]))
    nest_seconds[n - 1] = now - nest_last;
  clock_gettime(CLOCK_MONOTONIC, &t);
  nest_last = t.tv_sec + 1e-9 * t.tv_nsec;
}}
double *nest_times(void) {{ return nest_seconds; }}
#define NEST_PROBE(n) nest_probe(n);
"""


def nests(program: str, arrays: Arrays, machine: str | None = None, calls: int = 15) -> list[Nest]:
    """The nests of the default code with the least time of each, the slowest first."""
    _, name, size, packs, takes = _core.compile(program, None, machine)
    text = c_text(program, machine)
    head, lines, rest, found = with_probes(text, name)
    count = sum(takes) + len(_core.signature(program)[1]) + (1 if size else 0)
    call = f"int canvas_call_{name}(void **a) {{ return {name}("
    call += ", ".join(f"a[{i}]" for i in range(count)) + "); }\n"
    with tempfile.TemporaryDirectory() as folder:
        source, out = Path(folder) / "p.c", Path(folder) / "p.so"
        source.write_text("\n".join([PROBE, head, *lines, rest, call]))
        words = [
            *shlex.split(os.environ.get("CANVAS_CC", "cc")),
            "-O2",
            "-march=native",
            "-fopenmp",
            "-w",
        ]
        if machine and "x86-64-v3" in machine:
            words[words.index("-march=native")] = "-march=x86-64-v3"
        subprocess.run(
            [*words, "-shared", "-fPIC", str(source), "-o", str(out), "-lm"], check=True
        )
        code = loaded(str(out), name, (size, packs, takes), outputs_of(program), arrays, 0)
        for _ in range(calls):
            code.call()
        times = ctypes.CDLL(str(out)).nest_times
        times.restype = ctypes.POINTER(ctypes.c_double)
        for number, nest in enumerate(found[:PROBES]):
            nest.seconds = times()[number]
    return sorted(found, key=lambda nest: -nest.seconds)


FUNCTIONS = re.compile(
    r"\b(EXP|LOG|EXPM1|LOG1P|TANH|ERF|SIN|COS|SQRT)_V\d+\(|\b(exp|log|expm1|log1p|tanh|erf|sin|cos)f?\("
)


def kind_of(nest: Nest) -> str:
    """What its time goes into, judged by its text."""
    parts = []
    if not re.search(r"\bv\d+\b|\bV\d+\(|LOAD_V|STORE_V", nest.text):
        parts.append("no vectors")
    if re.search(r"for \(long lane|\.lane|lane\]", nest.text):
        parts.append("lanes one by one")
    if FUNCTIONS.search(nest.text):
        parts.append("functions")
    values = re.sub(r"\[[^]]*\]|^ *long .*$|^ *for .*$", "", nest.text, flags=re.M)
    if not re.search(r"\+=|\*|FMA", values):
        parts.append("moves")
    return ", ".join(parts) or "multiply-adds"
