"""A tuning log that holds a record of here: run, compile and replay take its schedule; one of
elsewhere is not believed.
"""

import json
import subprocess
import sys
from pathlib import Path

import pytest

CANVAS = Path(sys.executable).parent / "canvas"
PROGRAM = """canvas 1
program smooth
in X f32 [h:12, w:12]
in W f32 [k:3]
Y[h:12, w:10] = X[h, w+k] * W[k] // sum k:3
out Y
"""
EDITS = "cache X in Y as P\n"
EDITED = PROGRAM.replace("Y[", "P[h:12, w:12] = X[h, w]\nY[").replace(
    "] = X[h, w+k]", "] = P[h, w+k]"
)
SCHEDULE = "canvas 1\nschedule mine\nh, p =>\n    @P = h, p/w\nh, w, k =>\n    @Y = h, w // k\n"


def canvas(*words):
    return subprocess.run([CANVAS, *map(str, words)], capture_output=True, text=True, timeout=120)


def task_of(program):
    """As src/tune/record.c has it: logs are read by others, too."""
    h = 0xCBF29CE484222325
    for byte in program.encode():
        h = (h ^ byte) * 0x100000001B3 % 2**64
        h ^= h >> 29
    return f"{h:016x}"


def processor():
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    for key in ("model name", "CPU part", "uarch"):
        for line in lines:
            if line.startswith(key):
                return line.partition(":")[2].strip()
    return ""


@pytest.fixture(scope="module")
def here(tmp_path_factory):
    """A folder with the program, and what a record of here says of it."""
    folder = tmp_path_factory.mktemp("log")
    (folder / "smooth.program").write_text(PROGRAM)
    measured = json.loads(canvas("run", folder / "smooth.program", "--json").stdout)
    record = {
        "canvas_log": 2,
        "task": task_of(PROGRAM),
        "version": canvas("--version").stdout.split()[1],
        "program": PROGRAM,
        "edits": EDITS,
        "schedule": SCHEDULE,
        "rule": "user",
        "method": "quick",
        "seed": 1,
        "trial": 0,
        "failure": "ok",
        "message": "",
        "median": 2e-6,
        "lower": 1e-6,
        "upper": 3e-6,
        "cold": None,
        "network": None,
        "repeats": 30,
        "threads": 1,
        "screened": False,
        "machine": canvas("machine").stdout,
        "processor": processor(),
        "compiler": measured["compiler"],
        "time": 1763827200,
    }
    return folder, record


def write(folder, *records):
    path = folder / "tuned.log"
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    return path


def test_the_tuned_schedule_is_run_compiled_and_replayed(here):
    folder, record = here
    log = write(folder, record)
    program = folder / "smooth.program"
    run = canvas("run", program, "--log", log, "--json")
    assert run.stderr == "" and json.loads(run.stdout)["verdict"] == "ok"
    compiled = canvas("compile", program, "--log", log, "--emit", "c", "-o", "-")
    assert compiled.stderr == "" and " * schedule mine\n" in compiled.stdout
    assert canvas("log", "replay", log).stdout == compiled.stdout
    (folder / "edited.program").write_text(EDITED)
    (folder / "mine.schedule").write_text(SCHEDULE)
    words = ("--schedule", folder / "mine.schedule", "--emit", "c", "-o", "-")
    assert canvas("compile", folder / "edited.program", *words).stdout == compiled.stdout
    assert json.loads(canvas("log", "best", log, program, "--json").stdout) == record


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"compiler": "cc 0"}, "is of another compiler, 'cc 0'"),
        ({"processor": "Z80"}, "is of another processor, 'Z80'"),
        ({"version": "0.0.1"}, "is of another version of canvas, '0.0.1'"),
        ({"threads": 2}, "is of 2 threads, not of 1"),
        ({"machine": "canvas 1\nmachine m\nline 128\n"}, "is of another machine"),
        (
            {"edits": "winograd Y 4\n"},
            "is of Winograd's convolution in tiles of 4, which rounds more",
        ),
        ({"schedule": "h =>\n    @Z = h\n"}, "the schedule of the record: line 2, column 5: "),
        ({"edits": "type X bf16\n"}, "'type X bf16' changes a data type"),
    ],
)
def test_what_is_not_of_here_is_not_believed(here, change, why):
    folder, record = here
    log = write(folder, record | change)
    words = ("compile", folder / "smooth.program", "--emit", "c", "-o", "-")
    compiled = canvas(*words, "--log", log)
    assert compiled.stdout == canvas(*words).stdout and compiled.returncode == 0
    assert compiled.stderr.startswith(f"note: {log}: ") and compiled.stderr.count("\n") == 1
    assert why in compiled.stderr
    assert compiled.stderr.endswith("; the default schedule is used\n")


def test_the_best_trial_is_taken_where_no_search_came_to_its_end(here):
    """Whatever compiled it. After finals, even of a candidate that failed, trials do not count."""
    folder, record = here
    trial = record | {"screened": True, "compiler": "cc 0"}
    words = ("compile", folder / "smooth.program", "--emit", "c", "-o", "-", "--log")
    taken = canvas(*words, write(folder, trial))
    assert " * schedule mine\n" in taken.stdout
    assert taken.stderr.count("\n") == 1 and taken.stderr.endswith("; its best trial is used\n")
    failed = record | {"failure": "crash", "message": "it crashed", "median": None}
    refused = canvas(*words, write(folder, trial, failed | {"lower": None, "upper": None}))
    assert " * schedule mine\n" not in refused.stdout
    assert "of 2 records of 'smooth' 1 failed, and the others were screened" in refused.stderr


def test_names_cores_and_memory_do_not_tell_machines_apart(here):
    folder, record = here
    lines = [
        {"machine": "machine other", "cores": "cores 77", "memory": "memory 1 GiB"}.get(
            line.split()[0], line
        )
        for line in record["machine"].splitlines()
    ]
    log = write(folder, record | {"machine": "\n".join(lines) + "\n"})
    words = ("compile", folder / "smooth.program", "--log", log, "--emit", "c", "-o", "-")
    assert canvas(*words).stderr == ""
