"""Many schedules of one program, measured through the library: twenty are compiled to a file by
what compiles fastest while those before are run in a child, each is compared with what the
interpreter says, and a slow one is not timed on once five samples say so.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from canvas import _core

BATCH = 60  # candidates that are drawn before the next are compiled
SECONDS = 2.0  # of one
LONGER = 3  # times the code that edits begin with: so long that the compiler takes minutes
SHORT = 20_000  # bytes of code that are never too long


@dataclass(frozen=True)
class Candidate:
    """An edit of `schedule`, for the program of `Tries.program(block)`."""

    block: int
    schedule: str
    what: str


@dataclass
class Tries:
    """The edits of one case. `program` of a block; `hopeless` says what cannot win."""

    program: Callable[[int], str]
    machine: str
    hopeless: Callable[[str, str], bool]
    first: Candidate
    legal: int = 0
    left_out: int = 0  # legal, but hopeless
    wrong: list[str] = field(default_factory=list)
    times: list[tuple[float, Candidate]] = field(default_factory=list)
    measurers: dict[int, object] = field(default_factory=dict)
    seen: set[bytes] = field(default_factory=set)

    def measurer(self, block: int) -> object:
        if block not in self.measurers:
            self.measurers[block] = _core.measurer(
                self.program(block), repeats=9, seconds=SECONDS, screen=True
            )
        return self.measurers[block]

    def code(self, one: Candidate) -> str:
        """Its C without comments; "": it is illegal."""
        try:
            text = _core.emit(self.program(one.block), one.schedule, self.machine)
        except (ValueError, ZeroDivisionError):
            return ""
        return "".join(row for row in text.splitlines(True) if not row.startswith(("/*", " *")))

    def drawn(self, candidates: Iterator[Candidate], count: int) -> list[Candidate]:
        """Up to so many that are worth compiling; those that are hopeless count as tried."""
        found: list[Candidate] = []
        longest = max(SHORT, LONGER * len(self.code(self.first)))
        for one in candidates:
            code = self.code(one)
            key = hashlib.sha256(code.encode()).digest()
            if not code or key in self.seen:
                continue
            self.seen.add(key)
            self.legal += 1
            if len(code) > longest or self.hopeless(self.program(one.block), one.schedule):
                self.left_out += 1
            else:
                found.append(one)
            if self.legal >= count or len(found) >= BATCH:
                break
        return found

    def measure(self, candidates: list[Candidate]) -> None:
        for block in sorted({one.block for one in candidates}):
            here = [one for one in candidates if one.block == block]
            given = [(self.program(block), one.schedule) for one in here]
            for one, verdict in zip(here, _core.measure(self.measurer(block), given)):
                if verdict["failure"] == "ok":
                    self.times.append((verdict["median"], one))
                elif verdict["failure"] != "timeout":
                    self.wrong.append(f"{one.what}: {verdict['message']}")

    def run(self, candidates: Iterator[Candidate], count: int) -> None:
        while self.legal < count:
            drawn = self.drawn(candidates, count)
            if not drawn and self.legal < count:
                return  # there are no more
            self.measure(drawn)

    def best(self, count: int) -> list[Candidate]:
        return [one for _, one in sorted(self.times, key=lambda pair: pair[0])[:count]]
