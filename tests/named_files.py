"""Files that comments name, checked by tests/layers.py: each of them is in the tree.

A name alone finds a file, as names are unique; a path may leave out leading folders.
"""

import ast
import io
import re
import tokenize
from collections.abc import Iterator

Tree = dict[str, str]  # path from the root, with / -> text

FOLDERS = ("src/", "cli/", "python/", "include/", "tests/")

# Sources by any path, documents and what else tests have by their folder.
NAMED = re.compile(
    r"(?<![\w./<>*-])((?:[\w-]+/)*[\w-]+\.(?:c|h|py)|(?:docs|tests)/(?:[\w-]+/)*[\w-]+\.\w+)"
    r"(?![\w/*]|\.\w)"
)
PLACEHOLDER = re.compile(r"(?<![A-Z])(NAME|FAMILY|DIR)(?![A-Z])")

# Files of users, and files that programs write.
OTHERS = {
    "gemm.py",  # of TVM's users: the example of te/
    "kernel.py",  # in an exported find
    "unit.c",  # of the compiler's work folder
}

COMMENT = re.compile(r"/\*.*?\*/|//[^\n]*|\"(?:[^\"\\\n]|\\.)*\"", re.S)


def check_named(tree: Tree) -> Iterator[str]:
    """A file that a comment or a docstring names is in the tree."""
    known = {path[start:] for path in tree for start in starts(path)}
    for path, text in tree.items():
        if not path.startswith(FOLDERS):
            continue
        for line, comment in comments(path, text):
            for match in NAMED.finditer(comment):
                name = match[1]
                if name in known or name in OTHERS or PLACEHOLDER.search(name):
                    continue
                at = line + comment.count("\n", 0, match.start())
                yield f"{path}:{at}: the comment names {name}, which is not in the tree"


def starts(path: str) -> list[int]:
    """Where the path begins, without none, one or more of its leading folders."""
    return [0, *(match.end() for match in re.finditer("/", path))]


def comments(path: str, text: str) -> Iterator[tuple[int, str]]:
    """(line, text) of each comment and docstring."""
    if path.endswith((".c", ".h")):
        for match in COMMENT.finditer(text):
            if match[0][0] == "/":
                yield text.count("\n", 0, match.start()) + 1, match[0]
    elif path.endswith(".py"):
        for token in tokenize.generate_tokens(io.StringIO(text).readline):
            if token.type == tokenize.COMMENT:
                yield token.start[0], token.string
        for node in ast.walk(ast.parse(text, path)):
            kinds = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
            if isinstance(node, kinds) and (told := ast.get_docstring(node, clean=False)):
                yield node.body[0].lineno, told


CHECKS = (check_named,)

PLANTED: dict[str, tuple[list[Tree], Tree]] = {
    "check_named": (
        [
            {"src/dim/a.c": "/* See b.c. */\n"},
            {"src/dim/a.c": "int a; // base/c.h says why\n", "src/dim/c.h": ""},
            {"python/canvas/a.py": '"""What b.py does."""\n'},
            {"python/canvas/a.py": "x = 1  # docs/of_this.md\n"},
            {"tests/a.py": "def f():\n    '''Rows of tests/golden/b.txt.'''\n"},
            {"include/a.h": "/* NAMELESS.c */\n"},
        ],
        {
            "src/dim/a.c": '/* See a.h, dim/a.h, docs/a.md, pass_NAME.c. */\nchar b[] = "b.c";\n',
            "src/dim/a.h": "#include <math.h>\n",
            "docs/a.md": "of b.c",
            "python/canvas/a.py": '"""An exported kernel.py, see docs/a.md."""\nx = "b.py"\n',
        },
    ),
}
