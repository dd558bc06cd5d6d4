"""The driver's side of its children: start, feed, listen, time out, reap.

One loop in one thread listens to all children, so that Ctrl-C is simple and nothing can
deadlock.  A child keeps its imported torch from job to job (importing costs about two seconds)
but serves one job at a time, and is replaced after any failure: blame is exact.  Each child
leads its own process group and carries a mark in its environment (orphans.py); what it started
dies with it.

What a child sends is not trusted: a line that is no JSON object, or one too long, is a failure
of that job.
"""

from __future__ import annotations

import json
import os
import selectors
import signal
import subprocess
import sys
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from ..errors import CanvasError
from .orphans import MARK, kill_marked
from .scratch import Scratch, clear_left, environment_of, new_scratch
from .stopwatch import Stopwatch

STARTING = 60.0  # seconds that a new child may take on top of its first job, for importing torch
LONGEST_LINE = 1 << 20
LOG_TAIL = 8192
READ = 1 << 16
WAITING = ("signals", "epoch")  # after these a child waits for a verdict
LOST_DATA = "lost_data"  # the images are gone: no fault of the candidate, the search must end

Message = dict[str, Any]


class Executor(Protocol):
    """What runs the jobs of a search: a Pool of children, the calling process alone, or the
    machines of a cluster.
    """

    @property
    def size(self) -> int:
        """Trainings at a time."""

    @property
    def compilers(self) -> int:
        """Networks that are compiled at a time before they are timed."""

    def __enter__(self) -> Executor: ...

    def __exit__(self, *error: object) -> None: ...

    def busy(self) -> list[int]: ...

    def has_room(self) -> bool: ...

    def start(self, job: int, words: Message, limit: float, preferred: Any = None) -> Any: ...

    def answer(self, job: int, go: bool) -> None: ...

    def stop(self, job: int) -> float: ...

    def wait(self, seconds: float) -> list[tuple[int, Message]]: ...

    def close(self) -> None: ...


@dataclass(eq=False)
class Child:
    """A process and, while `job` is not None, what it is doing."""

    process: subprocess.Popen[bytes]
    mark: str  # in its environment and of all that it starts
    job: int | None = None
    images: Message | None = None  # that the job reads: their folder and seal
    watch: Stopwatch | None = None  # of the job; it stands still while the job waits for a verdict
    heard: bytearray = field(default_factory=bytearray)
    unsent: bytearray = field(default_factory=bytearray)
    log: deque[bytes] = field(default_factory=deque)

    def note(self, text: bytes) -> None:
        self.log.append(text)
        while sum(map(len, self.log)) - len(self.log[0]) > LOG_TAIL:
            self.log.popleft()

    def log_tail(self) -> str:
        return b"".join(self.log)[-LOG_TAIL:].decode("utf-8", "replace")


class Pool:
    """At most `size` children with `memory` bytes each (0: no limit).

    A job is a number and a JSON object; `program` is what a child runs, as arguments of Python.
    """

    def __init__(
        self, size: int, memory: int = 0, program: Sequence[str] = ("-m", "canvas.workers.worker")
    ) -> None:
        self.size = size
        self.memory = memory
        self.program = program
        self.children: list[Child] = []
        self.selector = selectors.DefaultSelector()
        self.scratch: Scratch | None = None  # of all children, once there is one
        clear_left()

    def __enter__(self) -> Pool:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    @property
    def compilers(self) -> int:
        return self.size

    def busy(self) -> list[int]:
        """The jobs that are under way."""
        return [child.job for child in self.children if child.job is not None]

    def has_room(self) -> bool:
        return len(self.busy()) < self.size

    def start(
        self, job: int, words: Message, limit: float, preferred: Child | None = None
    ) -> Child:
        """Give `job` to an idle child, the preferred one if it is, or to a new one; it fails as
        `timeout` after `limit` seconds of processor time, or when it hangs (stopwatch.py).
        """
        for dead in [c for c in self.children if c.job is None and c.process.poll() is not None]:
            self._reap(dead)  # what killed it while it had nothing to do is not this job's fault
        idle = [child for child in self.children if child.job is None]
        child = preferred if preferred in idle else next(iter(idle), None)
        extra = 0.0
        if child is None:
            child, extra = self._spawn(), STARTING
        child.job, child.watch = job, Stopwatch(child.process.pid, limit, extra)
        child.images = words.get("images")
        child.log.clear()
        self._send(child, words)
        return child

    def answer(self, job: int, go: bool) -> None:
        """Tell a job that waits for a verdict whether to go on."""
        for child in self.children:
            if child.job == job and child.watch is not None:
                child.watch.go_on()
                self._send(child, {"go": go})

    def stop(self, job: int) -> float:
        """End a job at once, without a message; its child is replaced.  Answers the seconds of
        processors that it took.
        """
        used = 0.0
        for child in [child for child in self.children if child.job == job]:
            used += child.watch.processor() if child.watch else 0.0
            self._reap(child)
        return used

    def wait(self, seconds: float) -> list[tuple[int, Message]]:
        """What the children said within `seconds`, or as soon as one says anything; failures are
        messages too.
        """
        messages: list[tuple[int, Message]] = []
        for key, events in self.selector.select(self._timeout(seconds)):
            child, stream = key.data
            if child not in self.children:
                continue
            if events & selectors.EVENT_WRITE:
                self._write(child)
            elif stream == "log":
                self._read_log(child)
            else:
                messages += self._listen(child)
        for child in [child for child in self.children if child.process.poll() is not None]:
            messages += self._last_words(child)
        for child in list(self.children):
            if child.watch is not None and (reason := child.watch.overdue()):
                messages += self._fail(child, "timeout", reason)
        return messages

    def shrink(self, size: int) -> None:
        """Keep at most `size` children; called while none is busy."""
        self.size = size
        for child in self.children[size:]:
            self._reap(child)

    def close(self) -> None:
        """Kill every child and what it started; all of them before waiting for any."""
        for child in self.children:
            _kill_group(child)
        for child in list(self.children):
            self._reap(child)
        if self.scratch is not None:
            scratch, self.scratch = self.scratch, None
            scratch.remove()

    def _timeout(self, seconds: float) -> float:
        watches = [child.watch for child in self.children if child.watch is not None]
        return max(0.0, min([seconds, *(watch.left() for watch in watches)]))

    def _spawn(self) -> Child:
        package = str(Path(__file__).absolute().parents[2])
        environment = dict(os.environ)
        known = environment.get("PYTHONPATH")
        environment["PYTHONPATH"] = package + (os.pathsep + known if known else "")
        environment.update(OMP_NUM_THREADS="1", MKL_NUM_THREADS="1", PYTHONUNBUFFERED="1")
        environment.update(TORCHINDUCTOR_COMPILE_THREADS="1")  # no compilers beside our children
        if self.scratch is None:
            self.scratch = new_scratch()
        environment.update(environment_of(self.scratch.path))
        mark = environment[MARK] = self.scratch.new_mark()
        safe = ["-P"] if sys.version_info >= (3, 11) else []
        try:
            process = subprocess.Popen(
                [sys.executable, *safe, *self.program, str(os.getpid()), str(self.memory)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                bufsize=0,
                env=environment,
                start_new_session=True,
            )
        except OSError as error:
            raise CanvasError(f"no child process can be started: {error.strerror}") from error
        except BaseException:  # Ctrl-C while it starts: it is not among the children yet
            kill_marked(mark)
            raise
        child = Child(process, mark)
        assert process.stdin and process.stdout and process.stderr
        for stream in (process.stdin, process.stdout, process.stderr):
            os.set_blocking(stream.fileno(), False)
        self.selector.register(process.stdout, selectors.EVENT_READ, (child, "answers"))
        self.selector.register(process.stderr, selectors.EVENT_READ, (child, "log"))
        self.children.append(child)
        return child

    def _send(self, child: Child, words: Message) -> None:
        child.unsent += json.dumps(words).encode() + b"\n"
        self._write(child)

    def _write(self, child: Child) -> None:
        """Send what the pipe takes; the rest follows when it has room again."""
        stdin = child.process.stdin
        assert stdin is not None
        try:
            del child.unsent[: os.write(stdin.fileno(), child.unsent)]
        except BlockingIOError:
            pass
        except BrokenPipeError:
            child.unsent.clear()  # it is dead: its closed output says so in a moment
        registered = stdin in self.selector.get_map()
        if child.unsent and not registered:
            self.selector.register(stdin, selectors.EVENT_WRITE, (child, "jobs"))
        elif not child.unsent and registered:
            self.selector.unregister(stdin)

    def _read_log(self, child: Child) -> None:
        stderr = child.process.stderr
        assert stderr is not None
        if stderr not in self.selector.get_map():
            return
        text = _read(stderr.fileno())
        if text:
            child.note(text)
        elif text is not None:
            self.selector.unregister(stderr)

    def _listen(self, child: Child) -> list[tuple[int, Message]]:
        stdout = child.process.stdout
        assert stdout is not None
        text = _read(stdout.fileno())
        if text is None:
            return []
        return self._take(child, text) if text else self._died(child)

    def _last_words(self, child: Child) -> list[tuple[int, Message]]:
        """What a dead child had said.  Its pipe need not end with it: a process that it forked
        may hold it open.
        """
        stdout = child.process.stdout
        assert stdout is not None
        messages: list[tuple[int, Message]] = []
        while child in self.children:
            text = _read(stdout.fileno())
            messages += self._take(child, text) if text else self._died(child)
        return messages

    def _take(self, child: Child, text: bytes) -> list[tuple[int, Message]]:
        """The lines that `text` completes."""
        child.heard += text
        messages: list[tuple[int, Message]] = []
        while b"\n" in child.heard and child in self.children:
            line, _, rest = bytes(child.heard).partition(b"\n")
            child.heard = bytearray(rest)
            messages += self._hear(child, line)
        if len(child.heard) > LONGEST_LINE:
            messages += self._fail(child, "error", "the child sent a line without end")
        return messages

    def _hear(self, child: Child, line: bytes) -> list[tuple[int, Message]]:
        """One line of a child: pass it on; after the last word about a job the child is idle or
        replaced.
        """
        try:
            message = json.loads(line)
            event = message["event"]
        except (ValueError, TypeError, KeyError):
            return self._fail(child, "error", "the child sent something that is no message")
        if child.job is None:
            self._reap(child)
            return []
        job = child.job
        if event in WAITING and child.watch is not None:
            child.watch.stop()
        elif event in ("done", "stopped"):
            child.job, child.watch = None, None
        elif event == "failed":
            self._read_log(child)
            message["log"] = (child.log_tail() + str(message.get("log", "")))[-LOG_TAIL:]
            self._reap(child)
            if message.get("kind") == LOST_DATA:
                raise CanvasError(str(message.get("reason")))
        return [(job, message)]

    def _died(self, child: Child) -> list[tuple[int, Message]]:
        """The child closed its output without a last word."""
        try:
            code = child.process.wait(timeout=5)
        except subprocess.TimeoutExpired:
            return self._fail(child, "error", "the child closed its output and went on")
        if code >= 0:
            return self._fail(child, "error", f"the child ended with exit code {code}")
        if -code == signal.SIGBUS and child.images and "folder" in child.images:
            self._check_images(child)
        name = signal.Signals(-code).name if -code in set(signal.Signals) else f"signal {-code}"
        hint = " (out of memory?)" if -code == signal.SIGKILL else ""
        return self._fail(child, f"crashed({name})", f"the child was ended by {name}{hint}")

    def _check_images(self, child: Child) -> None:
        """Raise CanvasError where the images that a child read have been cut off or changed: that
        has ended it, and no fault of its own.
        """
        from ..data import stored

        assert child.images is not None
        try:
            stored.check(Path(child.images["folder"]), child.images["seal"])
        except CanvasError:
            self._reap(child)
            raise

    def _fail(self, child: Child, kind: str, reason: str) -> list[tuple[int, Message]]:
        self._read_log(child)
        job, log = child.job, child.log_tail()
        self._reap(child)
        if job is None:
            return []
        return [(job, {"event": "failed", "kind": kind, "reason": reason, "log": log})]

    def _reap(self, child: Child) -> None:
        process = child.process
        _kill_group(child)
        kill_marked(child.mark)
        for stream in (process.stdin, process.stdout, process.stderr):
            assert stream is not None
            if not stream.closed and stream in self.selector.get_map():
                self.selector.unregister(stream)
            stream.close()
        process.wait()
        self.children.remove(child)


def _kill_group(child: Child) -> None:
    """Kill a child and what it started in its process group."""
    try:
        os.killpg(child.process.pid, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):
        pass


def _read(descriptor: int) -> bytes | None:
    """What is there to read; b"" at the end, None when nothing is there yet."""
    try:
        return os.read(descriptor, READ)
    except BlockingIOError:
        return None
