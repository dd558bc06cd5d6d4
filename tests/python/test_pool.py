"""Children that die, hang, shout or lie: each failure is typed and hits its own job only."""

import os
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest

from canvas.workers.pool import Pool

CHILD = """
import json, os, signal, subprocess, sys, time

def tell(**words):
    sys.stdout.write(json.dumps(words) + "\\n")
    sys.stdout.flush()

for line in sys.stdin:
    job = json.loads(line)
    do = job["do"]
    if do == "work":
        tell(event="built", pid=os.getpid(), size=len(line))
        tell(event="done")
    elif do == "ask":
        tell(event=job.get("after", "epoch"), number=0)
        verdict = json.loads(sys.stdin.readline())
        tell(event="done", go=verdict["go"])
    elif do == "abort":
        print("last words", file=sys.stderr, flush=True)
        os.abort()
    elif do == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
    elif do == "exit":
        os._exit(3)
    elif do == "hang":
        time.sleep(600)
    elif do == "burn":
        while True:
            pass
    elif do == "garbage":
        print("not json", flush=True)
        time.sleep(600)
    elif do == "list":
        print("[1, 2]", flush=True)
        time.sleep(600)
    elif do == "endless":
        while True:
            os.write(1, b"x" * 65536)
    elif do == "shout":
        for i in range(20000):
            print("noise", i, file=sys.stderr)
        sys.stderr.flush()
        tell(event="failed", kind="error", reason="noisy")
    elif do == "family":
        grandchild = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
        tell(event="built", pid=grandchild.pid)
        time.sleep(600)
"""


@pytest.fixture
def pool(monkeypatch):
    monkeypatch.setattr("canvas.workers.pool.STARTING", 0.0)
    monkeypatch.setattr("canvas.workers.stopwatch.HANGING", 3.0)
    with Pool(2, program=("-c", CHILD)) as pool:
        yield pool


def finish(pool, seconds=20.0):
    """All messages until nobody is busy."""
    messages = []
    deadline = time.monotonic() + seconds
    while pool.busy():
        assert time.monotonic() < deadline, messages
        messages += pool.wait(0.5)
    return messages


def alive(pid):
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"


@pytest.mark.parametrize(
    ("do", "kind"),
    [
        ("abort", "crashed(SIGABRT)"),
        ("kill", "crashed(SIGKILL)"),
        ("exit", "error"),
        ("hang", "timeout"),
        ("burn", "timeout"),
        ("garbage", "error"),
        ("list", "error"),
        ("endless", "error"),
    ],
)
def test_a_failure_is_typed_and_leaves_the_other_child_alone(pool, do, kind):
    pool.start(1, {"do": do}, 0.3)
    pool.start(2, {"do": "ask"}, 60.0)
    messages = []
    while not any(job == 2 for job, _ in messages) or 1 in pool.busy():
        messages += pool.wait(0.5)
    pool.answer(2, True)
    messages += finish(pool)
    assert [m["kind"] for job, m in messages if job == 1] == [kind]
    assert [m["event"] for job, m in messages if job == 2] == ["epoch", "done"]
    assert messages[-1][1]["go"] is True


@pytest.mark.parametrize(
    ("do", "hanging", "words"),
    [
        ("burn", 100.0, "it took longer than its limit of 0.2 s processor time"),
        ("hang", 3.0, r"it hung: \d+ s went by while it used 0\.\d of its 0.2 s processor time"),
    ],
)
def test_a_timeout_says_which_time_was_up(pool, monkeypatch, do, hanging, words):
    monkeypatch.setattr("canvas.workers.stopwatch.HANGING", hanging)
    pool.start(1, {"do": do}, 0.2)
    ((_, message),) = finish(pool)
    assert re.fullmatch(words, message["reason"])


def test_the_last_lines_of_output_are_kept(pool):
    pool.start(1, {"do": "abort"}, 20)
    ((_, message),) = finish(pool)
    assert "last words" in message["log"]


def test_much_output_neither_blocks_nor_piles_up(pool):
    pool.start(1, {"do": "shout"}, 20)
    child = pool.children[0]
    assert finish(pool)[-1][1]["reason"] == "noisy"
    assert len(child.log_tail()) <= 8192 and sum(map(len, child.log)) < 3 * 65536


def test_a_child_serves_job_after_job_and_is_replaced_after_a_failure(pool):
    pids = []
    for do in ("work", "work", "abort", "work"):
        pool.start(len(pids), {"do": do}, 20)
        pids += [m["pid"] for _, m in finish(pool) if m["event"] == "built"]
    assert pids[0] == pids[1] != pids[2]


@pytest.mark.parametrize("after", ["signals", "epoch"])
def test_waiting_for_a_verdict_does_not_count_as_time(pool, after):
    pool.start(1, {"do": "ask", "after": after}, 1.0)
    while not pool.wait(0.5):
        pass
    end = time.monotonic() + 1.3
    while time.monotonic() < end:
        assert pool.wait(0.2) == []
    pool.answer(1, False)
    assert finish(pool) == [(1, {"event": "done", "go": False})]


def test_a_job_larger_than_a_pipe_arrives(pool):
    pool.start(1, {"do": "work", "text": "x" * 1_000_000}, 20)
    assert finish(pool)[0][1]["size"] > 1_000_000


def test_closing_kills_what_the_children_started(pool):
    pool.start(1, {"do": "family"}, 60)
    ((_, message),) = pool.wait(20)
    assert alive(message["pid"])
    begin = time.monotonic()
    pool.close()
    end = begin + 5
    while alive(message["pid"]) and time.monotonic() < end:
        time.sleep(0.05)
    assert not alive(message["pid"])


def test_a_worker_does_not_outlive_its_driver(tmp_path):
    """kill -9 of the driver, which then cannot tidy up, ends the real worker too."""
    driver = (
        "import os, time\n"
        "from canvas.workers.pool import Pool\n"
        "pool = Pool(1)\n"
        "pool.start(1, {'kind': 'nothing'}, 60)\n"
        "print(pool.children[0].process.pid, flush=True)\n"
        "time.sleep(600)\n"
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)}
    process = subprocess.Popen(
        [sys.executable, "-c", driver], stdout=subprocess.PIPE, env=environment, text=True
    )
    worker = int(process.stdout.readline())
    time.sleep(0.5)
    assert alive(worker)
    process.kill()
    process.wait()
    end = time.monotonic() + 10
    while alive(worker) and time.monotonic() < end:
        time.sleep(0.05)
    assert not alive(worker)
