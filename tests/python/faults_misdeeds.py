"""What candidates do to those who train them, without torch.

CANVAS_FAULTS names the misdeeds of the trainings of finds, in their order; the file CANVAS_COUNTER
counts trainings over all processes.
"""

import ctypes
import fcntl
import os
import signal
import subprocess
import sys
import time


def next_one(good=0):
    """The misdeed of the training that begins, "" for none; the first `good` trainings that ask
    behave.
    """
    misdeeds = os.environ.get("CANVAS_FAULTS", "").split()
    number = count() - good if misdeeds else -1
    return misdeeds[number] if 0 <= number < len(misdeeds) else ""


def do(misdeed):
    print("about to", misdeed, flush=True)
    globals()["do_" + misdeed]()


def count():
    """How often this was called before, by any process."""
    with open(os.environ["CANVAS_COUNTER"], "a+") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        file.write(".")
        return file.tell() - 1


def do_kill():
    os.kill(os.getpid(), signal.SIGKILL)


def do_segfault():
    ctypes.string_at(0)


def do_abort():
    os.abort()


def do_exit():
    os._exit(0)


def do_leave():
    sys.exit("I leave")


def do_raise():
    raise ValueError("I will not\nsecond line")


def do_garbage():
    """What a worker must survive: noise where its answers go, then it is as good as any."""
    os.write(1, b'{"event": "done"}\n\xff\x00' + b"garbage\n" * 1000)
    sys.stdout.write('{"event": "failed"}\n')


def do_close():
    """No descriptor left: it cannot even say what is wrong."""
    os.closerange(0, 1000)


def do_stop():
    os.kill(os.getpid(), signal.SIGSTOP)


def do_loop():
    while True:
        pass


def do_sleep():
    while True:
        time.sleep(600)


SLEEP = "import time; time.sleep(3600)"


def do_grandchild():
    """A forked process that outlives this one and holds all its pipes."""
    if os.fork() == 0:
        os.execv(sys.executable, [sys.executable, "-c", SLEEP, os.environ["CANVAS_COUNTER"]])
    if os.fork() == 0:
        while True:
            time.sleep(3600)
    os.abort()


def do_daemon():
    """One that leaves the process group, too."""
    subprocess.Popen(
        [sys.executable, "-c", SLEEP, os.environ["CANVAS_COUNTER"]], start_new_session=True
    )
    os.abort()


def do_haunt():
    """A daemon, and no end."""
    subprocess.Popen(
        [sys.executable, "-c", SLEEP, os.environ["CANVAS_COUNTER"]], start_new_session=True
    )
    do_sleep()
