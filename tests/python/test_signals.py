"""Ctrl-C and its like: once, and not again on the way out."""

import os
import signal
import subprocess
import sys

import pytest

# Is told to end, and told again while it tidies up.
TIDY = """
import os, signal, sys
from canvas.workers.signals import ignore_all, interrupt_at_any
number = int(sys.argv[1])
for each in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
    signal.signal(each, signal.SIG_IGN if sys.argv[2] == "ignored" else signal.SIG_DFL)
interrupt_at_any()
try:
    os.kill(os.getpid(), number)
    print("went on")
except KeyboardInterrupt:
    os.kill(os.getpid(), number)
    print("tidied up")
ignore_all()
os.kill(os.getpid(), number)
print("ended")
"""

ENDING = [signal.SIGINT, signal.SIGTERM, signal.SIGHUP]


@pytest.mark.parametrize("number", ENDING)
@pytest.mark.parametrize(
    "before, first", [("heeded", "tidied up"), ("ignored", "went on")]
)  # as under nohup
def test_a_second_one_disturbs_nothing(number, before, first):
    done = subprocess.run(
        [sys.executable, "-c", TIDY, str(int(number)), before],
        capture_output=True,
        text=True,
        env=os.environ,
        timeout=60,
    )
    assert (done.stdout.split("\n"), done.returncode) == ([first, "ended", ""], 0), done.stderr


# A subcommand has ended with this code; each signal comes before signals are ignored.
AT_THE_END = """
import os, signal, sys
from canvas import __main__ as command
from canvas.workers import signals
number, code = int(sys.argv[1]), int(sys.argv[2])
for each in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
    signal.signal(each, signal.SIG_DFL)

def subcommand():
    signals.interrupt_at_any()
    return code

def ignore_all(real=signals.ignore_all):
    os.kill(os.getpid(), number)
    real()

command.cli.main, signals.ignore_all = subcommand, ignore_all
sys.exit(command.main())
"""


@pytest.mark.parametrize("number", ENDING)
@pytest.mark.parametrize("code", [0, 130])
def test_one_between_a_subcommand_and_the_end_disturbs_nothing(number, code):
    done = subprocess.run(
        [sys.executable, "-c", AT_THE_END, str(int(number)), str(code)],
        capture_output=True,
        text=True,
        env=os.environ,
        timeout=60,
    )
    assert (done.stderr, done.returncode) == ("", code)
