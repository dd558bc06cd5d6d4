"""Where the functions of C and of Python are, and where a pattern of tokens is in one of them.

White space and comments do not count, so a pattern is found however the code is laid out. Macros,
tables, structs, classes and the constants of an enum are found by name, too. A definition of C
begins in the first column of a line, as clang-format writes it.
"""

import ast
import functools
import pathlib
import re
from collections.abc import Iterator
from dataclasses import dataclass

ROOT = pathlib.Path(__file__).resolve().parent.parent
FOLDERS = ("src", "cli", "python")

WORD = r"[A-Za-z_]\w*"
TOKEN = re.compile(
    rf"{WORD}|\.?\d(?:[eEpP][+-]|[\w.])*"
    r"|<<=|>>=|\.\.\.|->|\+\+|--|<<|>>|<=|>=|==|!=|&&|\|\||\*\*|//|:=|[-+*/%&|^]=|\S"
)
STRING = r'"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\''
# The parts of a text that are no code. The words of a string are tokens like all others.
C_PARTS = re.compile(rf"(?P<comment>/\*.*?\*/|//[^\n]*|\\\n)|{STRING}", re.DOTALL)
PYTHON_PARTS = re.compile(
    rf'"""(?:\\.|.)*?"""|\'\'\'(?:\\.|.)*?\'\'\'|{STRING}|(?P<comment>#[^\n]*)', re.DOTALL
)
C_BEGINS = re.compile(r"^(?=[A-Za-z_]|/[/*]|#define)", re.MULTILINE)
C_NAMES = [
    re.compile(rf"#define ({WORD})"),
    re.compile(  # a function; where it is a macro, see below
        rf"(?!typedef)(?:__attribute__\(\([^)]*\)\)|[^({{=;])*?\b(?!__attribute__)({WORD})\("
    ),
    re.compile(rf"^\}} ({WORD})(?:\[[^\n=]*)?(?: =|;)", re.MULTILINE),  # ... of an unnamed struct
    re.compile(rf"[^={{(]*?({WORD})(?:\[[^={{]*)? ="),
    re.compile(rf"(?:typedef )?(?:struct|union|enum) ({WORD}) \{{"),
]
API_NAME = re.compile(rf"[A-Z_]+\([^(]*?({WORD}),\s*\(")  # of a function of canvas.h: API_VALUE
ENUM_NAME = re.compile(rf"(?:[{{,]|\*/)\s*({WORD})")
PYTHON_NAME = re.compile(
    rf"^[ \t]*(?:(?:async )?def|class) ({WORD})|^[ \t]*({WORD})(?::[^=\n]*)? =", re.MULTILINE
)


@dataclass(frozen=True)
class Function:
    """Also a macro, a table, a struct or a class; `begin` and `end` are places in the file."""

    path: pathlib.Path
    name: str
    begin: int
    end: int


@dataclass(frozen=True)
class Token:
    text: str
    begin: int
    end: int


# ---- the text -----------------------------------------------------------------------------------


@functools.cache
def text_of(path: pathlib.Path) -> str:
    return path.read_text()


@functools.cache
def sources() -> list[pathlib.Path]:
    paths = (path for folder in FOLDERS for path in sorted((ROOT / folder).rglob("*")))
    return [path for path in paths if path.suffix in (".c", ".h", ".py")]


def split(text: str, begin: int = 0) -> Iterator[Token]:
    for match in TOKEN.finditer(text):
        yield Token(match[0], begin + match.start(), begin + match.end())


@functools.cache
def tokens_of(function: Function) -> list[Token]:
    text = text_of(function.path)[function.begin : function.end]
    parts = PYTHON_PARTS if function.path.suffix == ".py" else C_PARTS
    tokens: list[Token] = []
    at = 0
    for part in parts.finditer(text):
        tokens += split(text[at : part.start()], function.begin + at)
        if part.lastgroup != "comment":
            tokens += split(part[0], function.begin + part.start())
        at = part.end()
    return [*tokens, *split(text[at:], function.begin + at)]


def find(function: Function, pattern: str) -> list[tuple[int, int]]:
    """Every place of the pattern in the function: begin and end in the file."""
    own, wanted = tokens_of(function), [token.text for token in split(pattern)]
    texts, count = [token.text for token in own], len(wanted)
    return [
        (own[i].begin, own[i + count - 1].end)
        for i in range(len(own) - count + 1)
        if count and texts[i : i + count] == wanted
    ]


# ---- by name ------------------------------------------------------------------------------------


def functions_named(name: str) -> list[Function]:
    """All of that name, which is NAME, CLASS.NAME or FILE:NAME.

    A method is found by its name alone where no function outside of classes has that name.
    """
    file, _, name = name.rpartition(":")
    found = list(c_functions().get(name, []))
    for path in python_files().get(name.rpartition(".")[2], []):
        found += [f for f in python_functions(path) if f".{f.name}".endswith(f".{name}")]
    found = [function for function in found if file in ("", function.path.name)]
    return [function for function in found if function.name == name] or found


@functools.cache
def c_functions() -> dict[str, list[Function]]:
    found: dict[str, list[Function]] = {}
    for path in sources():
        if path.suffix == ".py":
            continue
        text = text_of(path)
        begins = [match.start() for match in C_BEGINS.finditer(text)]
        for begin, end in zip(begins, [*begins[1:], len(text)]):
            for name in c_names(text[begin:end].rstrip()):
                found.setdefault(name, []).append(Function(path, name, begin, end))
    return found


def c_names(text: str) -> set[str]:
    """What a part of a file defines: one name, of an enum also those of its constants."""
    names: set[str] = set()
    if text.startswith("/"):
        return names
    match = next((match for names in C_NAMES if (match := names.match(text))), None)
    if not match:
        match = C_NAMES[2].search(text)
    elif match.re is C_NAMES[1]:
        if text[match.end() :].partition("{")[0].count(";"):  # a declaration
            return names
        if match[1].isupper():
            match = API_NAME.match(text)
    if match:
        names.add(match[1])
    if text.startswith("enum"):
        names.update(ENUM_NAME.findall(text))
    return names


@functools.cache
def python_files() -> dict[str, list[pathlib.Path]]:
    """The files that may define a name."""
    found: dict[str, list[pathlib.Path]] = {}
    for path in sources():
        if path.suffix == ".py":
            pairs = PYTHON_NAME.findall(text_of(path))
            for name in {name or other for name, other in pairs}:
                found.setdefault(name, []).append(path)
    return found


@functools.cache
def python_functions(path: pathlib.Path) -> list[Function]:
    text = text_of(path)
    lines = text.splitlines(keepends=True)
    begins = [0]
    for line in lines:
        begins.append(begins[-1] + len(line))

    def visit(body: list[ast.stmt], outer: str) -> Iterator[Function]:
        for node in body:
            inner = outer
            for name in python_names(node):
                decorators = getattr(node, "decorator_list", [])
                first = min(line.lineno for line in [node, *decorators])
                begin, end = begins[first - 1], begins[node.end_lineno or first]
                yield Function(path, outer + name, begin, end)
                inner = f"{outer}{name}."
            yield from visit(getattr(node, "body", []), inner)

    return list(visit(ast.parse(text).body, ""))


def python_names(node: ast.stmt) -> list[str]:
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        return [node.name]
    targets: list[ast.expr] = []
    if isinstance(node, ast.Assign):
        targets = node.targets
    elif isinstance(node, ast.AnnAssign):
        targets = [node.target]
    return [target.id for target in targets if isinstance(target, ast.Name)]
