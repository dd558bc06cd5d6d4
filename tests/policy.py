#!/usr/bin/env python3
"""Numbers that decide stand in one table: src/cost/policy.h.

    tests/policy.py

src/cost and src/autoschedule may write -1, 0, 1, 2, and the size of an array where an enum names
it. Every other numeric constant is a row of the table. A row has a unit, a reason and an origin,
and is used in the room that its name begins with. UNCONVERTED lists files that are not converted
yet. Each rule is tried on planted violations first. One line `ok NAME` or `not ok NAME` per rule.
"""

import re
import sys
from collections.abc import Callable, Iterator

import layers

Tree = layers.Tree

POLICY = "src/cost/policy.h"
# room: what its rows begin with
ROOMS = {"src/cost/": "COST_", "src/autoschedule/": "DEFAULT_"}

# Files whose numbers are not rows yet. A file that has none left is taken off the list.
UNCONVERTED = {
    "src/autoschedule/default.h",
    "src/autoschedule/default_borders.c",
    "src/autoschedule/default_buffers.c",
    "src/autoschedule/default_chooser.h",
    "src/autoschedule/default_cycles.c",
    "src/autoschedule/default_facts.c",
    "src/autoschedule/default_horizontal.c",
    "src/autoschedule/default_inside.c",
    "src/autoschedule/default_k_blocks.c",
    "src/autoschedule/default_loads.c",
    "src/autoschedule/default_materialize.c",
    "src/autoschedule/default_nest.c",
    "src/autoschedule/default_odd.c",
    "src/autoschedule/default_order.c",
    "src/autoschedule/default_panels.c",
    "src/autoschedule/default_phases.c",
    "src/autoschedule/default_plan.c",
    "src/autoschedule/default_prefetch.c",
    "src/autoschedule/default_program.c",
    "src/autoschedule/default_reciprocals.c",
    "src/autoschedule/default_rows.c",
    "src/autoschedule/default_tile.c",
    "src/autoschedule/default_tile_cache.c",
    "src/autoschedule/default_windows.c",
    "src/autoschedule/default_winograd.c",
    "src/autoschedule/winograd_nest.c",
    "src/autoschedule/winograd_nest.h",
}

ALLOWED = {"0", "1", "2", "0.0", "1.0", "2.0"}

NUMBER = re.compile(r"(?<![\w.])(?:0[xX][\da-fA-F]+|(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)\w*")
ENUM = re.compile(r"\benum\b[^;{}()]*\{([^{}]*)\}", re.S)
MEMBER = re.compile(r"(\w+)\s*=\s*([^,]*)")
ROW = re.compile(r"^POLICY_(?:INT|REAL)\((.*?)\);$", re.M | re.S)
FIELDS = "name, value, unit, reason, origin"
ORIGINS = "'measured: WHERE', 'derived: HOW' or 'chosen by hand'"
ORIGIN = re.compile(r"chosen by hand|(?:measured|derived): \S.*")
PAGE = re.compile(r"\bdocs/[\w/.-]+\.md\b")


def check_constants(tree: Tree, unconverted: set[str] | None = None) -> Iterator[str]:
    """No number outside the table."""
    listed = UNCONVERTED if unconverted is None else unconverted
    code = {path: without_text(text) for path, text in tree.items() if in_rooms(path)}
    everything = "\n".join(code.values())
    for path, text in code.items():
        if path == POLICY:
            continue
        numbers = list(constants(text, everything))
        if path in listed and not numbers:
            yield f"{path}: its numbers are rows of the table, take it off UNCONVERTED"
        for line, number in numbers if path not in listed else ():
            yield f"{path}:{line}: {number} is not a row of {POLICY}"
    for path in sorted(listed - set(code)):
        yield f"{path}: UNCONVERTED names a file that does not exist"


def in_rooms(path: str) -> bool:
    return path.startswith(tuple(ROOMS)) and path.endswith((".c", ".h"))


def without_text(text: str) -> str:
    """The code with blanks for comments, strings, characters and what is included."""
    noise = r'/\*.*?\*/|//[^\n]*|"(?:[^"\\\n]|\\.)*"|\'(?:[^\'\\\n]|\\.)*\'|^#include[^\n]*'
    return re.sub(noise, lambda found: re.sub(r"[^\n]", " ", found[0]), text, flags=re.S | re.M)


def constants(text: str, everything: str) -> Iterator[tuple[int, str]]:
    """(line, number) of what has to be a row."""
    sizes = [span for found in ENUM.finditer(text) for span in array_sizes(found, everything)]
    for found in NUMBER.finditer(text):
        if re.sub(r"[uUlL]+$", "", found[0]) in ALLOWED:
            continue
        if not any(start <= found.start() < end for start, end in sizes):
            yield text.count("\n", 0, found.start()) + 1, found[0]


def array_sizes(enum: re.Match[str], everything: str) -> Iterator[tuple[int, int]]:
    """Where the values of members stand that are sizes of arrays."""
    for member in MEMBER.finditer(enum[1]):
        if re.search(rf"\w\[[^\]\n]*\b{member[1]}\b[^\]\n]*\]", everything):
            yield enum.start(1) + member.start(2), enum.start(1) + member.end(2)


def check_rows(tree: Tree) -> Iterator[str]:
    """A row has five fields, and is used in its room."""
    table = re.sub(r"/\*.*?\*/", "", tree.get(POLICY, ""), flags=re.S)
    for row in ROW.findall(table):
        fields = split(row)
        name = fields[0]
        if len(fields) != 5:
            yield f"{POLICY}: {name} has {len(fields)} fields, not {FIELDS}"
            continue
        _, _, unit, reason, origin = (re.sub(r'^"|"\s*"|"$', "", field) for field in fields)
        if not unit.strip() or not reason.strip():
            yield f"{POLICY}: {name} has no unit or no reason"
        if not ORIGIN.fullmatch(origin):
            yield f"{POLICY}: {name} has the origin '{origin}', not {ORIGINS}"
        for page in PAGE.findall(origin):
            if page not in tree:
                yield f"{POLICY}: {name} was measured in {page}, which does not exist"
        yield from misplaced(tree, name)


def split(row: str) -> list[str]:
    """The fields of a row: commas in strings and parentheses separate none."""
    string, group = r'"(?:[^"\\]|\\.)*"', r"\((?:[^()]|\([^()]*\))*\)"
    fields = re.findall(rf'\s*((?:{string}|{group}|[^,"(])+)(?:,|$)', row)
    return [field.strip() for field in fields]


def misplaced(tree: Tree, name: str) -> Iterator[str]:
    users = [p for p in tree if in_rooms(p) and p != POLICY and re.search(rf"\b{name}\b", tree[p])]
    inner = re.search(rf"\b{name}\b.*\b{name}\b", tree[POLICY], re.S)  # by another row
    room = next((room for room, prefix in ROOMS.items() if name.startswith(prefix)), None)
    if room is None:
        yield f"{POLICY}: {name} does not begin with {' or '.join(ROOMS.values())}"
    elif not inner and not any(path.startswith(room) for path in users):
        yield f"{POLICY}: {name} is used nowhere in {room}"
    for path in users:
        if room and not path.startswith(room):
            yield f"{path}: {name} is a number of {room}"


CHECKS = (check_constants, check_rows)

USED = {"src/cost/a.c": "int a = COST_A;\n"}
PLANTED: dict[str, tuple[list[Tree], Tree]] = {
    "check_constants": (
        [
            {"src/cost/a.c": "static const double SHARE = 0.25;\n"},
            {"src/cost/a.c": "int a(int b) {\n  return b * 3;\n}\n"},
            {"src/cost/a.h": "enum { MOST = 24 };\nint a(int b) { return b < MOST; }\n"},
            {"src/cost/a.c": "#define MOST 24\n"},
            {"src/autoschedule/a.c": "double a = 1e-9;\n"},
            {"src/autoschedule/a.c": "double a = .5;\n"},
            {"src/autoschedule/a.c": "long a = 64L, b = 0x40u;\n"},
            {"src/autoschedule/a.c": "int a = '1', b = -2, c = 1 << 20;\n"},
        ],
        {
            "src/cost/a.c": "/* 0.25 */ int a[SIZE + 1], b = -1; // 32\n"
            "enum { SIZE = 128, TWO = 2 };\n",
            "src/autoschedule/a.c": '#include "dim/f32.h"\n'
            "char a1 = '7', *b = \"3 %9d\";\nlong c = 2L;\n",
            "src/code/a.c": "int a = 32;\n",
            POLICY: "enum { COST_A = 32 };\n",
        },
    ),
    "check_rows": (
        [
            USED | {POLICY: 'POLICY_INT(COST_A, 3, "cycles", "a reason");\n'},
            USED | {POLICY: 'POLICY_INT(COST_A, 3, "", "a reason", "chosen by hand");\n'},
            USED | {POLICY: 'POLICY_INT(COST_A, 3, "cycles", "", "chosen by hand");\n'},
            USED | {POLICY: 'POLICY_INT(COST_A, 3, "cycles", "a reason", "measured: ");\n'},
            USED | {POLICY: 'POLICY_INT(COST_A, 3, "cycles", "a reason", "guessed");\n'},
            USED | {POLICY: 'POLICY_INT(COST_A, 3, "s", "why", "measured: docs/reports/a.md");\n'},
            {POLICY: 'POLICY_INT(COST_A, 3, "cycles", "a reason", "chosen by hand");\n'},
            {
                "src/cost/a.c": "int a = DEFAULT_A;\n",
                "src/autoschedule/a.c": "int a = DEFAULT_A;\n",
                POLICY: 'POLICY_INT(DEFAULT_A, 3, "cycles", "a reason", "chosen by hand");\n',
            },
            {
                "src/cost/a.c": "int a = A;\n",
                POLICY: 'POLICY_INT(A, 3, "cycles", "a reason", "chosen by hand");\n',
            },
        ],
        USED
        | {
            POLICY: "/* POLICY_INT(NAME, value); */\n"
            'POLICY_REAL(COST_A, (1 + COST_B) / 2, "cycles, (or so)",\n'
            '            "a reason, "\n            "of two lines",\n'
            '            "measured: docs/reports/a.md, last row");\n'
            'POLICY_INT(COST_B, 3, "cycles", "half of it", "derived: sum");\n',
            "docs/reports/a.md": "",
        },
    ),
}


def self_test_of_list() -> Iterator[str]:
    clean, dirty = {"src/cost/a.c": "int a;\n"}, {"src/cost/a.c": "int a = 7;\n"}
    if list(check_constants(dirty, {"src/cost/a.c"})):
        yield "check_constants rejects a file that is listed"
    if not list(check_constants(clean, {"src/cost/a.c"})):
        yield "check_constants keeps a file on the list that has no number"
    if not list(check_constants(clean, {"src/cost/b.c"})):
        yield "check_constants keeps a file on the list that does not exist"


def self_test(check: Callable[..., Iterator[str]]) -> Iterator[str]:
    name = check.__name__
    rejected, passed = PLANTED[name]
    listed: tuple[set[str], ...] = (set(),) if check is check_constants else ()
    for tree in rejected:
        if not list(check(tree, *listed)):
            yield f"{name} lets pass the planted {tree}"
    for violation in check(passed, *listed):
        yield f"{name} rejects what is right: {violation}"
    if check is check_constants:
        yield from self_test_of_list()


def main() -> int:
    tree = layers.read_tree()
    failed = False
    for check in CHECKS:
        violations = list(self_test(check)) or list(check(tree))
        for violation in violations:
            print(violation)
        failed |= bool(violations)
        print(("not ok" if violations else "ok") + f" policy: {check.__name__.split('_')[1]}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
