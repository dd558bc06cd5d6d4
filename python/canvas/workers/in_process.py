"""Jobs in the calling process, for what no child can import: a network, task or loader that the
caller gave as an object.

One job at a time runs in a thread, and speaks as a child does (worker.py).  What a child is
protected from is not here: a crash ends the caller, a training that hangs is not ended, and memory
has no limit.
"""

from __future__ import annotations

import ctypes
import json
import queue
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from ..errors import CanvasError
from .pool import LOST_DATA
from .worker import forget_engines, serve

Message = dict[str, Any]
CLOSING = 30.0  # seconds that a stopped job gets to end its step


class Stopped(BaseException):
    """Raised in the thread of a job that shall end."""


class _Answers:
    """The verdicts for a job, read as a child reads its standard input."""

    def __init__(self) -> None:
        self.queue: queue.SimpleQueue[str] = queue.SimpleQueue()

    def readline(self) -> str:
        return self.queue.get()


class InProcess:
    """A pool (pool.py) without children; `size` is 1."""

    size = compilers = 1

    def __init__(self) -> None:
        self.job: int | None = None
        self.thread: threading.Thread | None = None
        self.answers = _Answers()
        self.told: queue.SimpleQueue[tuple[int, Message]] = queue.SimpleQueue()

    def __enter__(self) -> InProcess:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def busy(self) -> list[int]:
        """The job that is under way."""
        return [] if self.job is None else [self.job]

    def has_room(self) -> bool:
        return self.job is None

    def start(self, job: int, words: Message, limit: float, preferred: object = None) -> None:
        """Begin a job; `limit` and `preferred` do not hold here."""
        assert self.job is None
        self.job, self.answers = job, _Answers()
        told = json.loads(json.dumps(words))  # as a child hears it
        arguments = (job, told, self.answers)
        self.thread = threading.Thread(target=self._run, args=arguments, daemon=True)
        self.thread.start()

    def _run(self, job: int, words: Message, answers: _Answers) -> None:
        def tell(event: str, **facts: Any) -> None:
            self.told.put((job, {"event": event, **facts}))

        try:
            with settings_of_torch():
                serve(words, tell, answers)
        except Stopped:
            pass
        except BaseException as error:  # sys.exit in the caller's code ends a job, no more
            reason = f"its code raised {type(error).__name__}"
            tell("failed", kind="error", reason=reason, log="")

    def answer(self, job: int, go: bool) -> None:
        """Tell a job that waits for a verdict whether to go on."""
        if job == self.job:
            self.answers.queue.put('{"go": true}\n' if go else '{"go": false}\n')

    def stop(self, job: int) -> float:
        """End a job within a step, without a message."""
        thread = self.thread
        if job != self.job or thread is None:
            return 0.0
        self.answers.queue.put("")
        if thread.is_alive() and thread.ident is not None:
            stopped = ctypes.py_object(Stopped)
            ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread.ident), stopped)
        thread.join(CLOSING)
        self._over()
        return 0.0

    def wait(self, seconds: float) -> list[tuple[int, Message]]:
        """What the job said within `seconds`, or as soon as it says anything."""
        messages: list[tuple[int, Message]] = []
        try:
            messages.append(self.told.get(timeout=max(seconds, 0.0)))
            while True:
                messages.append(self.told.get_nowait())
        except queue.Empty:
            pass
        messages = [(job, message) for job, message in messages if job == self.job]
        for _, message in messages:
            if message["event"] == "failed" and message.get("kind") == LOST_DATA:
                self.close()
                raise CanvasError(str(message.get("reason")))
        if any(message["event"] in ("done", "stopped", "failed") for _, message in messages):
            assert self.thread is not None
            self.thread.join()
            self.job = self.thread = None
        return messages

    def shrink(self, size: int) -> None:
        """There is nothing to shrink."""

    def close(self) -> None:
        """End what is under way."""
        if self.job is not None:
            self.stop(self.job)
        forget_engines()

    def _over(self) -> None:
        self.job = self.thread = None
        while not self.told.empty():
            self.told.get_nowait()


@contextmanager
def settings_of_torch() -> Iterator[None]:
    """Around a job: what it sets in torch for itself is as before afterwards."""
    import torch

    threads = torch.get_num_threads()
    deterministic = torch.are_deterministic_algorithms_enabled()
    warn = torch.is_deterministic_algorithms_warn_only_enabled()
    fill = torch.utils.deterministic.fill_uninitialized_memory
    state = torch.get_rng_state()
    try:
        yield
    finally:
        torch.set_num_threads(threads)
        torch.set_flush_denormal(False)
        torch.use_deterministic_algorithms(deterministic, warn_only=warn)
        torch.utils.deterministic.fill_uninitialized_memory = fill
        torch.set_rng_state(state)
