#!/usr/bin/env python3
"""The language of comments and documents, checked.

    tests/prose.py [PATH ...]

Rules: no word of the table WORDS, no comment that begins with "..."; in documents no sentence over
35 words, no line over 100 characters, no heading that names nothing, no link within the tree that
leads nowhere. Comments are those of C (src, cli, include, python/ext) and Python (python/canvas),
docstrings included.

NOT_YET lists the paths that are not rewritten yet; their violations are counted, not shown. Before
the tree is read, each rule is tried on planted violations. One line `ok prose: RULE` or
`not ok prose: RULE` for each rule. With PATHs (files or folders) it shows every violation in them,
also those of NOT_YET.
"""

import ast
import collections
import functools
import io
import pathlib
import posixpath
import re
import sys
import tokenize
from collections.abc import Callable, Iterator
from typing import NamedTuple

import layers

# Path prefixes that are not rewritten yet: remove a line when its files have no violation. A line
# that excuses nothing is a violation itself.
NOT_YET = (
    "python/canvas/nn/initial_signals.py",
    "python/canvas/reporting/",
    "python/canvas/runner/",
    "python/canvas/study/",
    "python/canvas/workers/",
    "python/ext/",
)


class Word(NamedTuple):
    """A row of the table: what is not written, what to write, and a line that must be found."""

    pattern: str
    instead: str
    planted: str
    only: tuple[str, ...] = ()  # the paths where the word has its private meaning; (): all


COMPILER = (
    "src/program/",
    "src/rewrite/",
    "src/bind/",
    "src/edit/",
    "src/autoschedule/",
    "src/cost/",
    "src/explain/",
    "src/code/",
    "src/emit/",
    "docs/schedule.md",
    "docs/native.md",
    "docs/tune.md",
)

# A verb form between a noun and what follows: "is told", "are told", "was told".
BE = r"(?:is|are|was|were|be|been|being)"

WORDS = (
    Word(r"twisted", "non-affine, or transposed", "a twisted load"),
    Word(r"turned(?! (?:on|off|into|out|up|it|them))", "transposed", "a turned panel", COMPILER),
    Word(r"strewn|lies? apart", "gather, not contiguous", "loads that are strewn"),
    Word(r"asked", "guarded (by an index condition), requested, prefetched", "an asked axis"),
    Word(r"ask(?:s|ing)? for|ask(?:s|ing)? the cache", "prefetch, request", "we ask for a row"),
    Word(r"(?<!row )(?<!rows )(?<!iterations )ahead(?!(?:-| )of(?:-| ))",
         "prefetch, or in advance", "what is loaded ahead"),
    Word(r"rough", "non-monotone guard, or approximate", "a rough condition", COMPILER),
    Word(r"of no account|rare (?:stage|load|loop|axis)s?", "cold", "a load of no account"),
    Word(r"plain (?:load|operand)s?", "packable", "a plain load"),
    Word(r"(?<![Tt]here )(?:is|are) many", "truncated", "set where the loads are many"),
    Word(r"stands? still|still along|still (?:load|axis|axes)", "invariant", "it stands still"),
    Word(r"moves? (?:with|along) (?:the|an|this|its|that)", "depends on", "moves with the axis"),
    Word(rf"{BE} told|in the mode of|as told", "layout option, or given", "the layout is told"),
    Word(r"wish(?:es|ed)?", "constraint", "the wish of a sketch"),
    Word(r"readers?", "consumer", "the only reader of it", COMPILER),
    Word(r"(?:a|the|one|no|each) map|maps that|map stages?", "element-wise stage",
         "the map after it", COMPILER),
    Word(r"sums? of products|(?:axis|axes|steps?|inside|outside|around|of) (?:of )?the sum",
         "reduction, contraction", "a loop inside the sum", COMPILER),
    Word(r"vec axis|lanes? axis", "vector axis", "along the vec axis"),
    Word(r"steps together|panels in blocks", "cache block", "steps together"),
    Word(r"(?:a|the) sum in parts|sums in parts", "K-blocking (split reduction)",
         "a sum in parts"),
    Word(r"from far|(?:is|are|lies?|stays?) far"
         r"(?! (?:below|above|from|more|less|fewer|too|better|larger|apart))",
         "beyond L3, in memory", "data that is far"),
    Word(r"comes? again|comes? from (?:memory|far|L[123]|the \w+ cache)", "is loaded, is reloaded",
         "a row comes again"),
    Word(r"(?:first|second|third) caches?", "L1, L2, L3", "fits the first cache"),
    Word(r"border(?:s|ed|less)?", "padding boundary; loop partitioning", "a border of zeros",
         COMPILER),
    Word(r"what weights alone", "constant-folded, packed at load time", "what weights alone need"),
    Word(r"(?:a|is|are) deferred", "fused producer", "a stage is deferred"),
    Word(r"by turns|(?:a|one|each|every|per|its|their|next|last) turns?|turns(?! (?:into|on|off|"
         r"out|it|them))", "round, interleaved", "timed by turns"),
    Word(r"answers|answered|says|said|tells?|told", "returns, reports, states, distinguishes",
         "the function answers 0"),
    Word(r"(?:^|(?<=[.;:!?] ))[Ww]ho \w+s", "If you ..., or A user who ...",
         "Found. Who knows Halide finds it here."),
)  # fmt: skip
FOUND = [re.compile(rf"\b(?:{word.pattern})\b") for word in WORDS]

SENTENCE = 35  # words
LINE = 100  # characters

HEADINGS = {
    "What happens": "name what happens",
    "What holds": "Guarantees and limits",
    "Words": "Terms, or Glossary",
    "Again and again": "Recomputation",
}

Tree = dict[str, str]  # path from the root -> text
Found = Iterator[tuple[str, int, str]]  # path, line, what is wrong and what to write


# ---- the rules ----------------------------------------------------------------------------------


def check_words(tree: Tree) -> Found:
    """The field's words: WORDS."""
    for path, line, text in prose(tree):
        for word, pattern in zip(WORDS, FOUND):
            if word.only and not path.startswith(word.only):
                continue
            for match in pattern.finditer(text.replace("\n", " ")):
                yield (
                    path,
                    line + text.count("\n", 0, match.start()),
                    (f"'{match[0]}': write {word.instead}"),
                )


def check_dots(tree: Tree) -> Found:
    """A comment is read alone."""
    for path, line, text in prose(tree):
        if not path.endswith(".md") and re.match(r"\s*(?:\.\.\.|…)", text):
            yield path, line, "a comment begins with '...': name its subject"


def check_sentences(tree: Tree) -> Found:
    """A sentence of a document has at most SENTENCE words."""
    for path, line, text in prose(tree):
        if path.endswith(".md"):
            start = 0
            for end in sentence_ends(text):
                words = text[start:end].split()
                length = 0 if set(words) == {"code"} else len(words)  # a list of names is none
                if length > SENTENCE:
                    begin = " ".join(words[:6])
                    first = len(text[start:end]) - len(text[start:end].lstrip()) + start
                    yield (
                        path,
                        line + text.count("\n", 0, first),
                        (f"a sentence of {length} words: split '{begin} ...'"),
                    )
                start = end


def check_lines(tree: Tree) -> Found:
    """A line of a document has at most LINE characters; tables, code, marks cannot be wrapped."""
    for path, text in tree.items():
        if path.endswith(".md"):
            for number, line in enumerate(without_code(text).splitlines(), 1):
                whole = line.startswith(("|", "<!--")) or " " not in line.strip()
                if len(line) > LINE and not whole:
                    yield path, number, f"a line of {len(line)} characters: wrap at {LINE}"


def check_headings(tree: Tree) -> Found:
    """A heading names its subject."""
    for path, text in tree.items():
        if path.endswith(".md"):
            for number, line in enumerate(without_code(text).splitlines(), 1):
                heading = re.match(r"#+ (.*)", line)
                if heading and heading[1].strip() in HEADINGS:
                    better = HEADINGS[heading[1].strip()]
                    yield path, number, f"the heading '{heading[1]}': write {better}"


def check_links(tree: Tree) -> Found:
    """A link within the tree leads to a file, and its anchor to a heading there."""
    anchors = {path: set(headings(text)) for path, text in tree.items() if path.endswith(".md")}
    for path in anchors:
        text = re.sub(r"`[^`\n]*`", "", without_code(tree[path]))
        for match in re.finditer(r"\]\((?!\w+:)([^)#\s]*)(?:#([^)\s]*))?\)", text):
            line = text.count("\n", 0, match.start()) + 1
            target = posixpath.normpath(posixpath.join(posixpath.dirname(path), match[1]))
            target = target if match[1] else path
            if target not in tree and not any(p.startswith(f"{target}/") for p in tree):
                yield path, line, f"a link to '{match[1]}', which is not there"
            elif match[2] and target in anchors and match[2] not in anchors[target]:
                yield path, line, f"a link to '#{match[2]}', no heading of {target}"


def headings(text: str) -> Iterator[str]:
    """Anchors as they are made of headings: lower case, blanks as -, no other marks."""
    for match in re.finditer(r"^#+ (.*)$", without_code(text), re.M):
        yield re.sub(r"[^\w\- ]", "", plain_heading(match[1]).lower()).replace(" ", "-")


def plain_heading(text: str) -> str:
    return re.sub(r"\]\([^)]*\)", "", text).replace("[", "").replace("`", "").strip()


CHECKS = (check_words, check_dots, check_sentences, check_lines, check_headings, check_links)


# ---- reading ------------------------------------------------------------------------------------


def prose(tree: Tree) -> Iterator[tuple[str, int, str]]:
    """(path, line, text) of each comment, docstring, and paragraph of a document."""
    for path, text in tree.items():
        read = READ.get(pathlib.PurePosixPath(path).suffix)
        for line, words in read(text) if read else []:
            yield path, line, words


TOKEN = re.compile(
    r'/\*(.*?)\*/|//([^\n]*(?:\n[ \t]*//[^\n]*)*)|"(?:[^"\\\n]|\\.)*"|\'(?:[^\'\\\n]|\\.)+\'', re.S
)


@functools.cache
def c_comments(text: str) -> list[tuple[int, str]]:
    """Comments without the marks of their lines; // on lines in a row are one comment."""
    found = []
    for match in TOKEN.finditer(text):
        comment = match[1] if match[1] is not None else match[2]
        if comment is not None:
            found.append((text.count("\n", 0, match.start()) + 1, unmarked(comment)))
    return found


@functools.cache
def python_comments(text: str) -> list[tuple[int, str]]:
    """Comments, those on lines in a row as one, and docstrings."""
    found: list[tuple[int, str]] = []
    last = -1  # the line on which a comment ended that the next may continue
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            if token.start[0] == last + 1 and token.line.lstrip().startswith("#"):
                start, before = found.pop()
                found.append((start, f"{before}\n{unmarked(token.string)}"))
            else:
                found.append((token.start[0], unmarked(token.string)))
            last = token.start[0]
    for node in ast.walk(ast.parse(text)):
        kinds = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
        if isinstance(node, kinds) and ast.get_docstring(node, clean=False) is not None:
            string = node.body[0].value  # type: ignore[attr-defined]
            found.append((string.lineno, unmarked(string.value)))
    return found


def unmarked(text: str) -> str:
    """A comment without the marks of its lines; names in `backticks` are quoted, not written."""
    return re.sub(r"`[^`\n]*`", "``", re.sub(r"(?m)^[ \t]*(?:\*+|//+|#+!?)?[ \t]*", "", text))


FENCE = re.compile(r"^( *)```.*?^\1```[^\n]*$|(?<=\n\n)(?: {4}[^\n]*\n)+", re.S | re.M)
COMMENT = re.compile(r"<!--.*?-->", re.S)


def without_code(text: str) -> str:
    """The document with empty lines where its fenced or indented code stands."""
    return FENCE.sub(lambda match: "\n" * match[0].count("\n"), text)


@functools.cache
def paragraphs(text: str) -> list[tuple[int, str]]:
    """Paragraphs, list items and table cells; links and inline code are one word each at least."""
    text = COMMENT.sub(lambda match: "\n" * match[0].count("\n"), without_code(text))
    found, held = [], []
    for number, line in enumerate([*text.splitlines(), ""], 1):
        alone = line.startswith(("#", "|")) or not line.strip()
        if held and (alone or re.match(r"\s*(?:[-*+]|\d+\.) ", line)):
            found.append((number - len(held), plain("\n".join(held))))
            held = []
        if line.startswith("|"):
            for cell in re.split(r"(?<!\\)\|", line.strip("|")):
                found.append((number, plain(cell)))
        elif line.startswith("#"):
            found.append((number, plain(line.lstrip("# "))))
        elif line.strip():
            held.append(line)
    return found


def plain(text: str) -> str:
    """Markdown without indents, list marks, addresses of links, code and emphasis."""
    text = re.sub(r"(?m)^[ \t]+", "", text)
    text = re.sub(r"^(?:[-*+]|\d+\.) ", "", text)
    text = re.sub(r"`[^`]*`", lambda match: "code" + "\n" * match[0].count("\n"), text)
    text = re.sub(r"\]\([^)]*\)", "", text)
    return re.sub(r"!?\[|\*\*|(?<!\w)_|_(?!\w)", "", text)


# Not the ends of abbreviations; a full stop in brackets or quotes is followed by their ends.
END = re.compile(r"(?<!\be\.g)(?<!\bi\.e)(?<!\bal)(?<!\bvs)[.!?][\"')\]]*(?=\s|$)")


def sentence_ends(text: str) -> Iterator[int]:
    for match in END.finditer(text):
        yield match.end()
    yield len(text)


READ = {".c": c_comments, ".h": c_comments, ".py": python_comments, ".md": paragraphs}


# ---- planted violations -------------------------------------------------------------------------

LONG = "wrapped " * 13
RIGHT = f"""# How schedules are chosen

The chooser packs operands, e.g. weights, once per call. `told` is a name, and so is `asked`.
It turns off when far fewer rows are read. There are many of them, compiled ahead of time.

| a | table whose rows cannot be {LONG} |
|---|---|

```
a line of code that is longer than a hundred characters, and says what is told in words of its own
```

    a line of indented code that is longer than a hundred characters, and says what is {LONG}

<!-- a mark that a program reads {LONG} -->

1. One.
2. Two, see [this page](a/very/long/address/of/a/page/that/is/longer/than/a/hundred/characters.md).
"""
WORDY = " ".join(["word"] * 36)

# For each rule trees that it must reject and one that it must let pass.
PLANTED: dict[str, tuple[list[Tree], Tree]] = {
    "check_words": (
        [{"src/code/a.c": f"/* One line,\n * {word.planted} */\n"} for word in WORDS]
        + [
            {"src/code/a.h": "int a; // it answers 0\n"},
            {"src/code/a.h": "/* fits the first\n * cache */\n"},
            {"src/code/a.h": "// fits the first\n  // cache\n"},
            {"python/canvas/a.py": "# fits the first\n# cache\n"},
            {"python/canvas/a.py": '"""What it answers."""\n'},
            {"python/canvas/a.py": "x = 1  # what it answers\n"},
            {"python/canvas/a.py": 'def f():\n    """It\n    answers.\n    """\n'},
            {"docs/a.md": "A line,\nit answers.\n"},
            {"docs/a.md": "- An item.\n- It answers.\n"},
            {"docs/a.md": "| a | it answers |\n"},
            {"docs/a.md": "## It answers\n"},
            {"docs/a.md": "```\ncode\n```\nIt answers.\n"},
            {"README.md": "Nothing. Who knows Halide knows this.\n"},
        ],
        {
            "src/code/a.c": 'fail("it answers"); /* `told`: turned off, ahead of time */\n',
            "src/dim/a.c": "/* a reader of text */ char c = '\"'; /* an alias */\n",
            "python/canvas/a.py": 'x = "it answers"  # a reader of `told`\n',
            "docs/a.md": RIGHT,
        },
    ),
    "check_dots": (
        [
            {"src/code/a.c": "int a; /* ... of the first */\n"},
            {"src/code/a.c": "int a; //... of the first\n"},
            {"include/canvas.h": "/*\n * ... of the first */\n"},
            {"python/canvas/a.py": "a = 1  # ... of the first\n"},
            {"python/canvas/a.py": "a = 1  # … of the first\n"},
            {"python/canvas/a.py": 'def f():\n    """... of the first."""\n'},
        ],
        {
            "src/code/a.c": 'char *a = "/* ... */"; /* the first, ... the last */\n',
            "python/canvas/a.py": 'a = "# ..."\n\n\ndef f(): ...\n',
            "docs/a.md": "... and more\n",
        },
    ),
    "check_sentences": (
        [
            {"docs/a.md": f"One. {WORDY}.\n"},
            {"README.md": f"- One: {WORDY}\n"},
            {"docs/a.md": WORDY.replace(" ", "\n") + "\n"},
            {"docs/a.md": f"| a | {WORDY} |\n"},
            {"docs/a.md": f"One, e.g. {WORDY.removeprefix('word word')}\n"},
        ],
        {
            "docs/a.md": f"{RIGHT}\n{WORDY.removeprefix('word ')}. One.\n\n```\n{WORDY}\n```\n"
            f"`{WORDY}`\n\n| {'`a` ' * 40}|\n\n- {WORDY[:99]}\n- {WORDY[:99]}\n",
            "src/code/a.c": f"/* {WORDY} */\n",
        },
    ),
    "check_lines": (
        [{"docs/a.md": "ab " * 33 + "ab\n"}, {"README.md": "One.\n" + "ab " * 40 + "\n"}],
        {"docs/a.md": RIGHT + "ab " * 32 + "abcd\n", "src/code/a.c": "/* " + "ab " * 40 + "*/\n"},
    ),
    "check_links": (
        [
            {"docs/a.md": "[b](b.md)\n"},
            {"docs/a.md": "A\nline: [b](../b.md).\n", "docs/b.md": ""},
            {"docs/a.md": "[b](b.md#two)\n", "docs/b.md": "# One\n"},
            {"docs/a.md": "# One\n[b](#two)\n"},
            {"README.md": "![a picture](docs/a.svg)\n"},
        ],
        {
            "docs/a.md": "# One, `two`: three\n[b](https://b.md) [c](#one-two-three) `[d](d.md)`\n"
            "[e](../README.md#a-b) ![f](f.svg) [g](../docs)\n",
            "README.md": "# A b\n",
            "docs/f.svg": "",
        },
    ),
    "check_headings": (
        [{"docs/a.md": "# A\n\n## What holds\n"}, {"README.md": "## Words\n"}],
        {"docs/a.md": "## What was tried and left out\n\n```\n# Words\n```\n"},
    ),
}  # fmt: skip


def self_test(check: Callable[[Tree], Found]) -> Iterator[str]:
    """Each planted violation is found, each planted right text is not."""
    rejected, passed = PLANTED[check.__name__]
    for tree in rejected:
        if not list(check(tree)):
            yield f"{check.__name__} lets pass the planted {tree}"
    for path, line, violation in check(passed):
        yield f"{check.__name__} rejects what is right: {path}:{line}: {violation}"


def self_test_words() -> Iterator[str]:
    """Each row of WORDS finds its own planted line, and needs no other row for it."""
    for word, pattern in zip(WORDS, FOUND):
        if not pattern.search(word.planted):
            yield f"the row '{word.pattern}' does not find '{word.planted}'"


# ---- the tree -----------------------------------------------------------------------------------

LINTED = ("src/", "cli/", "include/", "python/", "docs/")
PROJECT_FILES = ("README.md", "HACKING.md", "CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md")


def read_tree() -> Tree:
    tree = layers.read_tree()
    for path in tree:
        if path.endswith(".md"):
            tree[path] = (layers.ROOT / path).read_text()
    return tree


def is_linted(path: str) -> bool:
    return path.startswith(LINTED) or path in PROJECT_FILES


def main(paths: list[str]) -> int:
    tree = read_tree()
    linted = {path: text for path, text in tree.items() if is_linted(path)}
    found = {check: sorted(check(linted)) for check in CHECKS if check != check_links}
    found[check_links] = sorted(check_links(tree))
    excused: collections.Counter[str] = collections.Counter()
    failed = False
    for check in CHECKS:
        wrong = list(self_test(check)) + (list(self_test_words()) if check == check_words else [])
        for path, line, violation in found[check]:
            if not path.startswith(tuple(paths or [""])):
                continue
            prefix = next((prefix for prefix in NOT_YET if path.startswith(prefix)), None)
            if check != check_links and prefix and not paths:
                excused[prefix] += 1
            else:
                wrong.append(f"{path}:{line}: {violation}")
        print(*wrong, sep="\n", end="\n" if wrong else "")
        failed |= bool(wrong)
        print(f"{'not ok' if wrong else 'ok'} prose: {check.__name__.split('_')[1]}")
    if not paths:
        stale = [prefix for prefix in NOT_YET if not excused[prefix]]
        for prefix in stale:
            print(f"tests/prose.py: '{prefix}' in NOT_YET excuses nothing: remove the line")
        failed |= bool(stale)
        print(f"{'not ok' if stale else 'ok'} prose: exceptions, {sum(excused.values())} excused")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
