"""Random edits of a schedule, and many of them measured through the library.

An edit draws the block that weights are packed in, a number, the order of two neighbouring loops,
or whether a loop of a reduction is unrolled. The fastest compiler compiles twenty candidates to a
file while a child runs those before; each is compared with the interpreter, and five samples are
enough of a slow one.
"""

from __future__ import annotations

import hashlib
import random
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace

from canvas import _core

BLOCKS = {"avx512": (16, 32, 48, 64), "avx2": (8, 16, 24, 32)}
NUMBERS = (1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 14, 16, 20, 24, 28, 32, 48, 64, 96, 128)
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


# ---- edits --------------------------------------------------------------------------------------


Edit = tuple[str, str] | None  # the new text, and what was done; None: nothing to edit


def edit_number(text: str, rng: random.Random) -> Edit:
    names = sorted(set(re.findall(r"\b(\w+):\d+", text)))
    if not names:
        return None
    name, number = rng.choice(names), rng.choice(NUMBERS)
    return re.sub(rf"\b{name}:\d+", f"{name}:{number}", text), f"{name}={number}"


def edit_order(text: str, rng: random.Random) -> Edit:
    """Two neighbours of a line change places."""
    lines = text.splitlines()
    rows = [i for i, line in enumerate(lines) if line.count(",") and line.rstrip().endswith("=>")]
    if not rows:
        return None
    row = rng.choice(rows)
    indent = lines[row][: len(lines[row]) - len(lines[row].lstrip())]
    loops = [loop.strip() for loop in lines[row].replace("=>", "").split(",")]
    at = rng.randrange(len(loops) - 1)
    loops[at], loops[at + 1] = loops[at + 1], loops[at]
    lines[row] = f"{indent}{', '.join(loops)} =>"
    what = f"{loops[at].split(':')[0]} before {loops[at + 1].split(':')[0]}"
    return "\n".join(lines) + "\n", what


def edit_unroll(text: str, rng: random.Random) -> Edit:
    reduced = re.findall(r"// *(.*)", text)
    names = [name.strip() for part in reduced for name in part.split(",") if "/" not in name]
    if not names:
        return None
    name = rng.choice(names)
    marked = re.search(rf"\b{name}:unroll", text)
    pattern, new = (rf"\b{name}:unroll", name) if marked else (rf"\b{name}\b(?=,| =>)", "")
    edited = re.sub(pattern, new or f"{name}:unroll", text, count=1)
    return edited, f"{name} {'not ' * bool(marked)}unrolled"


EDITS = (edit_number, edit_number, edit_order, edit_unroll)


def edit_once(trial: Candidate, kind: int, rng: random.Random, isa: str) -> Candidate | None:
    if kind < len(EDITS):
        made = EDITS[kind](trial.schedule, rng)
        return made and replace(trial, schedule=made[0], what=f"{trial.what}, {made[1]}")
    if not trial.block:
        return None
    block = rng.choice(BLOCKS[isa])
    return replace(trial, block=block, what=f"{trial.what}, block {block}")


def edits(first: Candidate, count: int, isa: str, seed: int) -> Iterator[Candidate]:
    """One to three edits each, no two alike."""
    rng, seen = random.Random(seed), {(first.block, first.schedule)}
    for _ in range(20 * count):
        trial: Candidate | None = first
        for _ in range(rng.choice((1, 1, 2, 2, 3))):
            kind = rng.randrange(len(EDITS) + 1)
            if trial is None:
                break
            trial = edit_once(trial, kind, rng, isa)
        if trial and (trial.block, trial.schedule) not in seen:
            seen.add((trial.block, trial.schedule))
            yield trial


# ---- trials -------------------------------------------------------------------------------------


@dataclass
class Tries:
    """The edits of one case: `program` of a block; `hopeless` is true of what cannot win."""

    program: Callable[[int], str]
    machine: str
    hopeless: Callable[[str, str], bool]
    first: Candidate
    legal: int = 0
    left_out: int = 0  # legal, but not compiled
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
        """Up to so many that are worth compiling; hopeless ones count as tried."""
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
