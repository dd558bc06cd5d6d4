#!/usr/bin/env python3
"""Every sentence that the core can reject with is shown by a golden or a C test.

    tests/sentences.py [--all]

Sentences are found in src/ as the words given to the functions of FAILING, and as the clauses that
shape rules return; what stands for a %-conversion may be anything. A sentence that no golden case
(tests/golden/*.txt) and no string of a C test holds fails the check, unless
tests/unreachable_sentences.txt lists it with the reason why no text can lead to it; a row there
that is shown after all, or has gone, fails too. --all prints every sentence.
"""

import ast
import pathlib
import re
import sys
from collections.abc import Iterator

ROOT = pathlib.Path(__file__).resolve().parent.parent
UNREACHABLE = ROOT / "tests" / "unreachable_sentences.txt"
FAILING = [
    "fail",
    "lexer_fail",
    "lexer_unexpected",
    "lexer_expect",
    "lexer_end_line",
    "reject",
    "program_poison",
]
CLAUSES = ("src/primitive", "src/kernel")  # their rules return a clause that becomes a sentence
LITERAL = r'"(?:[^"\\\n]|\\.)*"'
LITERALS = re.compile(rf"{LITERAL}(?:\s*{LITERAL})*")
CONVERSION = re.compile(r"%[-+ 0#]*(?:\*|\d+)?(?:\.(?:\*|\d+))?(?:ll|z|h)?[a-zA-Z]")


def main() -> int:
    shown = expectations()
    reasons = read_reasons()
    bad = []
    sentences = sorted(set(all_sentences()))
    for sentence, where in sentences:
        is_shown = re.search(pattern(sentence), shown) is not None
        if is_shown and sentence in reasons:
            bad.append(f"{UNREACHABLE.name} lists what a test shows: {sentence}")
        elif not is_shown and sentence not in reasons:
            bad.append(f"{where}: no golden and no C test shows: {sentence}")
        if "--all" in sys.argv[1:]:
            print("shown" if is_shown else "  -  ", where, sentence)
    for sentence in reasons.keys() - {sentence for sentence, _ in sentences}:
        bad.append(f"{UNREACHABLE.name} lists what src/ does not say: {sentence}")
    print(*bad, sep="\n")
    print(f"{'not ok' if bad else 'ok'} sentences: {len(sentences)}, {len(reasons)} unreachable")
    return 1 if bad else 0


# ---- what can be said ---------------------------------------------------------------------------


def all_sentences() -> Iterator[tuple[str, str]]:
    """(sentence as the source has it, file)."""
    for path in sorted((ROOT / "src").rglob("*.c")):
        name = path.relative_to(ROOT).as_posix()
        text = re.sub(r"/\*.*?\*/", "", path.read_text(), flags=re.DOTALL)
        spoken = list(arguments(text))
        if name.startswith(CLAUSES):
            spoken += re.findall(rf"\breturn ((?:{LITERAL}\s*)+);", text)
        for words in spoken:
            for sentence in strings(words):
                if len(re.sub(r"[^a-z]", "", CONVERSION.sub("", sentence))) > 6:
                    yield sentence, name


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


def pattern(sentence: str) -> str:
    """A regular expression for the sentence with its conversions filled in."""
    parts = CONVERSION.split(sentence.replace("%%", "\0"))
    return ".*?".join(re.escape(part.replace("\0", "%")) for part in parts)


def read_reasons() -> dict[str, str]:
    """The reviewed list: a sentence, and below it `= why no text leads to it`."""
    reasons: dict[str, str] = {}
    sentence = ""
    for line in UNREACHABLE.read_text().splitlines():
        if line.startswith("= "):
            reasons[sentence] += line[2:] + " "
        elif line and not line.startswith("#"):
            sentence = line
            reasons[sentence] = ""
    return reasons


if __name__ == "__main__":
    sys.exit(main())
