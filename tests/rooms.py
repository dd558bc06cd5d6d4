"""The structure of the Python package, checked by tests/layers.py: which package may import which,
no cycles between files, SQL in one package, no public function with the name of a package.

The table PACKAGES lists the packages in data-flow order.
"""

import ast
import pathlib
import re
from collections.abc import Iterator

Tree = dict[str, str]  # path from the root, with / -> text

PACKAGE = "python/canvas/"

# package: the packages that it may import, beside itself. "base" are the files beside the
# packages; FACES of them are what users import, and may name everything.
PACKAGES: dict[str, str] = {
    "base": "",
    "study": "base",
    "nn": "study base",
    "te": "nn base",
    "autotvm": "te nn base",
    "autoscheduler": "te base",
    "aten": "nn base",
    "inference": "aten nn base",
    "data": "base",
    "devices": "base",
    "tasks": "data devices base",
    "training": "tasks data devices base",
    "workers": "training tasks data devices inference nn base",
    "cluster": "workers data devices base",
    "reporting": "study base",
    "fitting": "cluster reporting study workers training tasks data devices inference nn base",
    "runner": "cluster reporting study workers training tasks data devices inference nn base",
    "deploy": "reporting study training tasks data devices inference nn base",
    "cli": "fitting deploy runner reporting study workers training data inference base",
}
FACES = {"__init__", "__main__", "models"}

SQL = re.compile(r"\b(SELECT\s.+\sFROM|INSERT INTO|UPDATE\s+\w+\s+SET|DELETE FROM|PRAGMA)\b", re.S)


def check_packages(tree: Tree) -> Iterator[str]:
    """A package imports what stands above it in the table."""
    for path in files(tree):
        package = package_of(path)
        if package is None:
            continue
        if package not in PACKAGES:
            yield f"{path}: package {package} is missing in the table of tests/rooms.py"
            continue
        allowed = [package, *PACKAGES[package].split()]
        for line, other in imports(tree, path):
            named = package_of(other)
            if named not in allowed:
                yield f"{path}:{line}: {package} may import {' '.join(allowed)}, not {other}"


def check_cycles(tree: Tree) -> Iterator[str]:
    """The imports of the files have no cycle; imports under TYPE_CHECKING count."""
    graph = {path: {other for _, other in imports(tree, path)} for path in files(tree)}
    done: set[str] = set()
    for path in graph:
        cycle = cycle_from(path, graph, [], done)
        if cycle:
            yield "a cycle of imports: " + " -> ".join(cycle)
            return


def cycle_from(
    path: str, graph: dict[str, set[str]], trail: list[str], done: set[str]
) -> list[str]:
    if path in trail:
        return [*trail[trail.index(path) :], path]
    if path in done:
        return []
    for other in sorted(graph.get(path, ())):
        if cycle := cycle_from(other, graph, [*trail, path], done):
            return cycle
    done.add(path)
    return []


def check_sql(tree: Tree) -> Iterator[str]:
    """Only the package `study` speaks SQL."""
    for path in files(tree):
        if package_of(path) == "study":
            continue
        for node in ast.walk(ast.parse(tree[path], path)):
            if isinstance(node, ast.Constant) and SQL.search(str(node.value)):
                yield f"{path}:{node.lineno}: SQL belongs to the package study"


def check_public(tree: Tree) -> Iterator[str]:
    """No public name of canvas is the name of a package or file: an import would replace it."""
    init = PACKAGE + "__init__.py"
    if init not in tree:
        return
    taken = {path.removeprefix(PACKAGE).split("/")[0].removesuffix(".py") for path in files(tree)}
    for node in ast.parse(tree[init], init).body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__":
            for name in ast.literal_eval(node.value):
                if name in taken:
                    yield f"{init}:{node.lineno}: '{name}' is a package or file, too"


# ---- reading ------------------------------------------------------------------------------------


def files(tree: Tree) -> list[str]:
    return [path for path in tree if path.startswith(PACKAGE) and path.endswith(".py")]


def package_of(path: str) -> str | None:
    """The package that a file belongs to; None for what users import."""
    first, _, rest = path.removeprefix(PACKAGE).partition("/")
    if rest:
        return first
    return None if first.removesuffix(".py") in FACES else "base"


def imports(tree: Tree, path: str) -> Iterator[tuple[int, str]]:
    """(line, file of the package) of each import, also inside functions and under TYPE_CHECKING.
    The __init__.py of a file's own package is left out.
    """
    for node in ast.walk(ast.parse(tree[path], path)):
        if isinstance(node, ast.ImportFrom) and node.level:
            folder = pathlib.PurePosixPath(path)
            for _ in range(node.level):
                folder = folder.parent
            for alias in node.names:
                words = [*(node.module or "").split("."), alias.name]
                for other in targets(tree, str(folder), [word for word in words if word]):
                    if other != str(pathlib.PurePosixPath(path).parent / "__init__.py"):
                        yield node.lineno, other


def targets(tree: Tree, folder: str, words: list[str]) -> Iterator[str]:
    """The files that Python reads for `from FOLDER.WORDS[:-1] import WORDS[-1]`."""
    for number in range(1, len(words) + 1):
        place = "/".join([folder, *words[:number]])
        if f"{place}.py" in tree:
            yield f"{place}.py"
        elif f"{place}/__init__.py" in tree:
            yield f"{place}/__init__.py"


CHECKS = (check_packages, check_cycles, check_sql, check_public)

HERE = {"python/canvas/errors.py": "", "python/canvas/nn/a.py": "", "python/canvas/nn/b.py": ""}

# For each rule trees that it must reject and one that it must let pass.
PLANTED: dict[str, tuple[list[Tree], Tree]] = {
    "check_packages": (
        [
            {**HERE, "python/canvas/data/c.py": "from ..nn.a import b\n"},
            {**HERE, "python/canvas/data/c.py": "def f():\n    from ..nn import a\n"},
            {**HERE, "python/canvas/errors.py": "from .nn import a\n"},
            {"python/canvas/attic/a.py": ""},
        ],
        {
            **HERE,
            "python/canvas/nn/a.py": "from . import b\nfrom ..errors import c\nimport json\n",
            "python/canvas/workers/c.py": "from ..nn import a\nfrom ..nn.b import d\n",
            "python/canvas/models.py": "from .nn.a import b\n",
        },
    ),
    "check_cycles": (
        [
            {"python/canvas/nn/a.py": "from .b import c\n",
             "python/canvas/nn/b.py": "def f():\n    from .a import d\n"},
            {"python/canvas/nn/a.py": "from . import a\n"},
            {"python/canvas/nn/__init__.py": "from .a import b\n",
             "python/canvas/nn/a.py": "from ..data.c import d\n",
             "python/canvas/data/c.py": "from ..nn import b\n"},
            {"python/canvas/nn/a.py": "if TYPE_CHECKING:\n    from .b import c\n",
             "python/canvas/nn/b.py": "def f():\n    from .a import d\n"},
        ],
        {
            "python/canvas/nn/__init__.py": "from .a import b\n",
            "python/canvas/nn/a.py": "if TYPE_CHECKING:\n    from .b import c\n",
            "python/canvas/nn/b.py": "from ..data.c import e\n",
            "python/canvas/data/c.py": "",
        },
    ),
    "check_sql": (
        [
            {"python/canvas/runner/a.py": "rows('SELECT id FROM candidate')\n"},
            {"python/canvas/cli/a.py": "rows(f'''UPDATE candidate\\nSET x = {y}''')\n"},
        ],
        {"python/canvas/study/a.py": "rows('SELECT id FROM candidate')\n",
         "python/canvas/cli/a.py": "'what you select from a table'\n"},
    ),
    "check_public": (
        [
            {"python/canvas/__init__.py": "__all__ = ['search']\n",
             "python/canvas/search/a.py": ""},
            {"python/canvas/__init__.py": "__all__ = ['replay']\n", "python/canvas/replay.py": ""},
        ],
        {"python/canvas/__init__.py": "__all__ = ['search']\n", "python/canvas/runner/a.py": ""},
    ),
}  # fmt: skip
