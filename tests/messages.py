#!/usr/bin/env python3
"""Every error message of the core is shown by a golden or a C test.

    tests/messages.py [--all]

Messages are found in src/ as the strings given to the functions of FAILING, and as the clauses
that shape rules return; what stands for a %-conversion may be anything. A message that no golden
case (tests/golden/*.txt) and no string of a C test holds fails the check; only `no memory ...`,
which a machine without memory would say, is let pass. --all prints every message.
"""

import ast
import pathlib
import re
import sys
from collections.abc import Iterator

ROOT = pathlib.Path(__file__).resolve().parent.parent
FAILING = [
    "fail",
    "lexer_fail",
    "lexer_unexpected",
    "lexer_expect",
    "lexer_end_line",
    "reject",
    "program_poison",
]
CLAUSES = ("src/primitive", "src/kernel")  # their rules return a clause that becomes a message
LITERAL = r'"(?:[^"\\\n]|\\.)*"'
LITERALS = re.compile(rf"{LITERAL}(?:\s*{LITERAL})*")
CONVERSION = re.compile(r"%[-+ 0#]*(?:\*|\d+)?(?:\.(?:\*|\d+))?(?:ll|z|h)?[a-zA-Z]")


def main() -> int:
    shown = expectations()
    bad = []
    messages = sorted(set(all_messages()))
    for message, where in messages:
        is_shown = re.search(pattern(message), shown) is not None
        if not is_shown and not message.startswith("no memory"):
            bad.append(f"{where}: no golden and no C test shows: {message}")
        if "--all" in sys.argv[1:]:
            print("shown" if is_shown else "  -  ", where, message)
    print(*bad, sep="\n")
    print(f"{'not ok' if bad else 'ok'} messages: {len(messages)}")
    return 1 if bad else 0


# ---- what can be said ---------------------------------------------------------------------------


def all_messages() -> Iterator[tuple[str, str]]:
    """(message as the source has it, file)."""
    for path in sorted((ROOT / "src").rglob("*.c")):
        name = path.relative_to(ROOT).as_posix()
        text = re.sub(r"/\*.*?\*/", "", path.read_text(), flags=re.DOTALL)
        spoken = list(arguments(text))
        if name.startswith(CLAUSES):
            spoken += re.findall(rf"\breturn ((?:{LITERAL}\s*)+);", text)
        for words in spoken:
            for message in strings(words):
                if len(re.sub(r"[^a-z]", "", CONVERSION.sub("", message))) > 6:
                    yield message, name


def arguments(text: str) -> Iterator[str]:
    """What stands between the parentheses of every call of FAILING."""
    for call in re.finditer(rf"\b(?:{'|'.join(FAILING)})\(", text):
        depth, end = 1, call.end()
        while depth and end < len(text):
            literal = re.compile(LITERAL).match(text, end)
            depth += {"(": 1, ")": -1}.get(text[end], 0)
            end = literal.end() if literal else end + 1
        yield text[call.end() : end]


def strings(text: str) -> list[str]:
    """The C strings of the text, neighbours joined as C joins them."""
    joined = (re.findall(LITERAL, literals) for literals in LITERALS.findall(text))
    return ["".join(ast.literal_eval(part) for part in parts) for parts in joined]


# ---- what is shown ------------------------------------------------------------------------------


def expectations() -> str:
    """What the goldens expect, and all strings of the C tests."""
    lines = []
    for path in (ROOT / "tests/golden").glob("*.txt"):
        lines += [line[2:] for line in path.read_text().splitlines() if line[:1] in ("!", ">")]
    for path in (ROOT / "tests/c").glob("test_*.c"):
        lines += strings(path.read_text())
    return "\n".join(lines)


def pattern(message: str) -> str:
    """A regular expression for the message with its conversions filled in."""
    parts = CONVERSION.split(message.replace("%%", "\0"))
    return ".*?".join(re.escape(part.replace("\0", "%")) for part in parts)


if __name__ == "__main__":
    sys.exit(main())
