"""Starts drivers quickly: torch is imported once, and every driver is a fork of this process.

    stdin   {"words": [...], "out": FILE, "err": FILE, ...}
    stdout  PROCESS
    stdin   {"wait": PROCESS, "seconds": 60}
    stdout  its wait status, or null if it still runs

A driver is what `canvas WORDS...` is after its imports.  It leads a process group.  More keys arm
it:

    whole        true: Python comes to its end, too, which costs more than many a test
    folder       the current folder
    environment  more of it
    terminal     it leads a session that has this one, its standard streams
    children     the program that children run, a file beside this one
    starting     seconds for STARTING of pool.py
    hanging      for HANGING of stopwatch.py
    memory       bytes that a child may take
    user         id of the user who runs it
    largest      bytes that a file may have
    ignore       signals by name that are ignored from outside, as nohup does
    clock        true: time.time jumps back and forth by hours
    steps        FILE that gets the number of its steps at the end
    at           {STEP: what}: a signal by name for itself, or ["move", FOLDER, TO]
    again        {STEP: what}: the same, counted from when the first signal was handled

A step is a statement but SELECT that SQLite executes for it, or a file that it opens to write,
renames or removes, a folder that it makes, a process that it starts.
"""

import gc
import json
import os
import queue
import resource
import signal
import sqlite3
import sys
import threading
import time
import traceback
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any

from canvas.data import as_data
from canvas.nn.network import Recipe, plan_network
from canvas.runner import driver, subject
from canvas.workers import pool, stopwatch

HERE = Path(__file__).parent
EVENTS = ("os.rename", "os.remove", "os.mkdir", "os.rmdir", "subprocess.Popen")
HOURS = 3600.0
USUAL = Recipe("faults_models:build", None, (1, 8, 8), 10, "paper", 1)

USUAL_SIGNALS = {
    signal.SIGINT: signal.default_int_handler,
    signal.SIGTERM: signal.SIG_DFL,
    signal.SIGHUP: signal.SIG_DFL,
}

steps = 0
signals: queue.SimpleQueue[signal.Signals] = queue.SimpleQueue()


def main() -> None:
    sys.path.append(str(HERE))
    prepare()
    for line in sys.stdin:
        order = json.loads(line)
        if "wait" in order:
            print(json.dumps(wait(order["wait"], order["seconds"])), flush=True)
            continue
        process = os.fork()
        if process == 0:
            code = drive(order)
            sys.exit(code) if "whole" in order else leave(code)
        print(process, flush=True)


def prepare() -> None:
    """The data and the plan of the usual question are found once."""
    images, plan = as_data("digits"), plan_network(USUAL)
    subject.as_data = lambda name, beside=None, **requested: (
        as_data(name, **requested) if any(requested.values()) else images
    )
    driver.plan_network = lambda recipe, *batch: (
        plan if recipe == USUAL else plan_network(recipe, *batch)
    )
    gc.freeze()


def leave(code: int) -> None:
    sys.stdout.flush()
    os._exit(code)


def wait(process: int, seconds: float) -> int | None:
    end = time.monotonic() + seconds
    while True:
        found, status = os.waitpid(process, os.WNOHANG)
        if found:
            return status
        if time.monotonic() > end:
            return None
        time.sleep(0.01)


def drive(order: dict[str, Any]) -> int:
    os.setsid() if "terminal" in order else os.setpgid(0, 0)
    redirect(order)
    os.chdir(order.get("folder", "."))
    os.environ.update(order.get("environment", {}))
    arm(order)
    try:
        from canvas import __main__ as command

        return command.main()
    finally:
        if "steps" in order:
            Path(order["steps"]).write_text(str(steps))


def redirect(order: dict[str, Any]) -> None:
    """The standard streams; "closed" for standard error closes it."""
    for descriptor, name in enumerate(("in", "out", "err")):
        place = order.get("terminal") or order.get(name, os.devnull)
        os.close(descriptor)
        if place != "closed":
            opened = os.open(place, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o644)
            assert opened == descriptor
    sys.stdin = None  # what is buffered there is for the server
    if order.get("err") == "closed":
        sys.stderr = None


def arm(order: dict[str, Any]) -> None:
    sys.argv = ["canvas", *order["words"]]
    if "children" in order:
        pool.Pool.__init__.__defaults__ = (0, (str(HERE / order["children"]),))
    if "starting" in order:
        pool.STARTING = order["starting"]
    if "hanging" in order:
        stopwatch.HANGING = order["hanging"]
    if "memory" in order:
        driver.memory_per_child = lambda workers: order["memory"]
    if "largest" in order:
        resource.setrlimit(resource.RLIMIT_FSIZE, (order["largest"],) * 2)
    if "user" in order:
        os.setgroups([])
        os.setgid(order["user"])
        os.setuid(order["user"])
    for number, usual in USUAL_SIGNALS.items():  # a background job of a plain shell ignores SIGINT
        signal.signal(number, signal.SIG_IGN if number.name in order.get("ignore", []) else usual)
    if "clock" in order:
        jump()
    if "at" in order or "steps" in order:
        count_steps(
            *(
                {int(step): what for step, what in order.get(name, {}).items()}
                for name in ("at", "again")
            )
        )


def jump() -> None:
    real, calls = time.time, iter(range(1 << 62))
    time.time = lambda: real() + (5 * HOURS if next(calls) % 2 else -3 * HOURS)


def count_steps(at: dict[int, Any], again: dict[int, Any]) -> None:
    def step() -> None:
        global steps
        steps += 1
        if steps in at:
            do(at[steps])

    def audit(event: str, words: tuple[Any, ...]) -> None:
        if event in EVENTS or (event == "open" and isinstance(words[1], str) and "w" in words[1]):
            step()

    def executed(statement: str) -> None:
        if not statement.startswith("SELECT"):
            step()

    def connect(*words: Any, **more: Any) -> sqlite3.Connection:
        database = real(*words, **more)
        database.set_trace_callback(executed)
        return database

    def handled() -> None:
        at.update({steps + later: what for later, what in again.items()})
        again.clear()

    keep_signals_out_of(executed.__code__, handled)
    threading.Thread(target=send_signals, daemon=True).start()
    real = sqlite3.connect
    sqlite3.connect = connect
    sys.addaudithook(audit)


def do(what: Any) -> None:
    if what == "SIGKILL":
        os.kill(os.getpid(), signal.SIGKILL)
    elif isinstance(what, str):
        signals.put(signal.Signals[what])
    else:
        _, folder, to = what
        Path(folder).rename(to)


def send_signals() -> None:
    """Signals come from another thread, at about the time of the step."""
    while True:
        os.kill(os.getpid(), signals.get())


def keep_signals_out_of(code: types.CodeType, handled: Callable[[], None]) -> None:
    """Put off what comes while a function called by SQLite runs: SQLite swallows what is raised
    there, and no driver has such functions but ours.  `handled` is called before a handler is.
    """

    def handle(number: int, handler: Any) -> Any:
        def outside(number: int, frame: types.FrameType | None) -> None:
            if any(found.f_code is code for found, _ in traceback.walk_stack(frame)):
                signals.put(signal.Signals(number))
            else:
                handled()
                handler(number, frame)

        return real(number, outside if callable(handler) else handler)

    real = signal.signal
    signal.signal = handle


main()
