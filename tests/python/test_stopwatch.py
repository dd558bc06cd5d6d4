"""What counts as the time of a job: its own processor time, and very long by the clock."""

import math
import subprocess
import sys

import pytest

from canvas.workers import stopwatch
from canvas.workers.stopwatch import Stopwatch, processor_seconds


@pytest.fixture
def machine(monkeypatch):
    """A clock and a child's processor time that the test sets."""
    now = {"clock": 100.0, "used": 7.0}
    monkeypatch.setattr(stopwatch.time, "monotonic", lambda: now["clock"])
    monkeypatch.setattr(stopwatch, "processor_seconds", lambda process: now["used"])
    return now


def test_on_a_loaded_machine_a_job_has_its_processor_time(machine):
    watch = Stopwatch(1, limit=10.0)
    machine.update(clock=195.0, used=16.9)
    assert watch.overdue() == "" and 0 < watch.left() < 0.2
    machine["used"] = 17.1
    assert watch.overdue() == "it took longer than its limit of 10 s processor time"


def test_a_job_that_hangs_ends_by_the_clock(machine):
    watch = Stopwatch(1, limit=10.0, extra=60.0)
    machine.update(clock=259.0, used=7.5)
    assert watch.overdue() == ""
    machine["clock"] = 261.0
    assert watch.overdue() == "it hung: 161 s went by while it used 0.5 of its 10 s processor time"


def test_while_it_stands_still_nothing_counts(machine):
    watch = Stopwatch(1, limit=10.0)
    machine.update(clock=150.0, used=11.0)
    watch.stop()
    machine.update(clock=900.0, used=90.0)
    assert watch.overdue() == "" and watch.left() == math.inf
    watch.go_on()
    machine.update(clock=949.0, used=95.5)
    assert watch.overdue() == ""
    machine["used"] = 96.5
    assert "processor" in watch.overdue()


def test_a_new_child_has_time_to_start(machine):
    watch = Stopwatch(1, limit=1.0, extra=60.0)
    machine["used"] = 67.0
    assert watch.overdue() == ""
    machine["used"] = 68.5
    assert "its limit of 1 s" in watch.overdue()


def test_without_proc_the_limit_counts_by_the_clock(machine):
    machine["used"] = None
    watch = Stopwatch(1, limit=10.0)
    machine["clock"] = 109.0
    assert watch.overdue() == ""
    machine["clock"] = 111.0
    assert watch.overdue() == "it took longer than its limit of 10 s"


@pytest.mark.skipif(sys.platform != "linux", reason="needs /proc")
def test_the_time_of_a_process_and_of_what_it_waited_for():
    burn = "import time\nwhile time.process_time() < 0.3: pass\n"
    outer = f"import subprocess, sys\nsubprocess.run([sys.executable, '-c', {burn!r}])\n"
    ask = "print(flush=True)\ninput()\n"
    with subprocess.Popen(
        [sys.executable, "-c", outer + ask], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        process.stdout.readline()
        assert 0.28 <= processor_seconds(process.pid) < 2  # /proc cuts off hundredths
        process.stdin.close()
    assert processor_seconds(process.pid) is None
