"""A job that may be begun again, so that its driver does not notice: what it had said before is
not passed on twice, and it gets the verdicts that it got before.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field

from .pool import WAITING, Message

ENDS = ("done", "stopped", "failed")  # the last words about a job


@dataclass
class Begun:
    """A job, where it runs, and what it has said so far."""

    words: Message
    limit: float  # seconds of processor time
    place: str = ""
    told: int = 0  # messages that were passed on
    heard: int = 0  # messages since it was begun for the last time
    verdicts: list[bool] = field(default_factory=list)  # that it got
    again: deque[bool] = field(default_factory=deque)  # that it gets once more

    def begin(self, place: str) -> None:
        """It begins, or begins again, at `place`."""
        self.place, self.heard, self.again = place, 0, deque(self.verdicts)

    def answered(self, go: bool) -> bool:
        """Whether the verdict is to be sent now, not when it comes to that place again."""
        self.verdicts.append(go)
        if self.heard < self.told:
            self.again.append(go)
        return self.heard >= self.told

    def is_new(self, message: Message, answer: Callable[[bool], None]) -> bool:
        """Whether the driver does not know this message; of one that it knows, `answer` gets the
        verdict that followed.
        """
        self.heard += 1
        if self.heard > self.told:
            self.told += 1
            return True
        if message["event"] in WAITING and self.again:
            answer(self.again.popleft())
        return False
