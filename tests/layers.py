#!/usr/bin/env python3
"""The shape of the house, checked: who may include whom, who calls whom, names of files, one core.

    tests/layers.py [--longest]

The arrows of the design are the table LAYERS, and for Python PACKAGES in tests/rooms.py; a wish
for a new arrow is a change of those tables.
Before the tree is looked at, each rule is tried on a planted violation. One line `ok NAME` or
`not ok NAME` for each rule; --longest lists the ten longest functions, as information.
"""

import ast
import pathlib
import re
import subprocess
import sys
from collections.abc import Callable, Iterator

import named_files
import rooms

ROOT = pathlib.Path(__file__).resolve().parent.parent

# layer: the layers whose headers it may include, beside its own. The public header is no layer:
# base takes the status and the context from it, api implements it.
LAYERS: dict[str, str] = {
    "base": "canvas.h",
    "program": "base",
    "rewrite": "program base",
    "operator": "program base",
    "dim": "base",
    "kernel": "dim base",
    "primitive": "kernel program dim base",
    "lower": "primitive kernel rewrite program dim base",
    "spell": "primitive kernel program dim base",
    "sample": "lower kernel dim base",
    "evolve": "sample kernel dim base",
    "budget": "lower kernel dim base",
    "schedule": "program base",
    "bind": "schedule program base",
    "autoschedule": "cost edit bind schedule rewrite program base",
    "cost": "bind schedule program base",
    "edit": "bind schedule rewrite program base",
    "prepare": "cost emit code edit bind schedule rewrite program base",
    "explain": "cost bind schedule program base",
    "code": "bind schedule program base",
    "emit": "code bind schedule program base",
    "run": "emit code bind schedule rewrite program base",
    "tune": "run prepare autoschedule cost edit emit code bind schedule rewrite program base",
    "net": "tune run prepare autoschedule cost edit emit code bind schedule rewrite program base",
}
LAYERS["api"] = " ".join(LAYERS) + " canvas.h"

# Names that tools want in several folders.
SHARED_NAMES = {
    "CMakeLists.txt",
    "README.md",
    "__init__.py",
    "__main__.py",
    "task.py",  # programs of AutoScheduler and of AutoTVM import theirs by that name
}

# A string that loads or runs the core by another road than the extension.
OTHER_ROAD = re.compile(r"\blibcanvas|\bcanvas\.(so|dll|dylib)\b")

Tree = dict[str, str]  # path from the root, with / -> text ("" for what is not C or Python)


def check_includes(tree: Tree) -> Iterator[str]:
    """A layer includes what stands beneath it; cli/ and the extension include canvas.h only."""
    for path, text in tree.items():
        folder = pathlib.PurePosixPath(path).parts
        if not path.endswith((".c", ".h")) or folder[0] not in ("src", "cli", "python"):
            continue
        for line, included in includes(text):
            if folder[0] == "src":
                violation = in_layer(folder[1], included)
            else:
                beside = str(pathlib.PurePosixPath(path).parent / included) in tree
                allowed = included == "canvas.h" or beside
                violation = None if allowed else f"{folder[0]} may include canvas.h only"
            if violation:
                yield f'{path}:{line}: {violation}, not "{included}"'


def in_layer(layer: str, included: str) -> str | None:
    if layer not in LAYERS:
        return f"layer {layer} is missing in the table of tests/layers.py"
    if included == "canvas.h":
        target = included
    elif "/" in included:
        target = included.split("/")[0]
    else:
        return "an include is written as layer/file.h"
    allowed = [layer, *LAYERS[layer].split()]
    return None if target in allowed else f"{layer} may include {' '.join(allowed)}"


def includes(text: str) -> Iterator[tuple[int, str]]:
    for number, line in enumerate(text.splitlines(), 1):
        if match := re.match(r'\s*#\s*include\s+"([^"]+)"', line):
            yield number, match[1]


def check_guards(tree: Tree) -> Iterator[str]:
    """src/kernel/primitive.h is guarded by CANVAS_KERNEL_PRIMITIVE_H."""
    for path, text in tree.items():
        if path.startswith("src/") and path.endswith(".h"):
            guard = "CANVAS_" + re.sub(r"[/.]", "_", path.removeprefix("src/")).upper()
            if f"#ifndef {guard}\n#define {guard}\n" not in text:
                yield f"{path}: the include guard is not {guard}"


def check_names(tree: Tree) -> Iterator[str]:
    """A file is found by its name alone."""
    seen: dict[str, str] = {}
    for path in sorted(tree):
        name = path.rsplit("/", 1)[-1]
        if name in seen and name not in SHARED_NAMES:
            yield f"{path}: the name is taken by {seen[name]}"
        seen.setdefault(name, path)


def check_calls(tree: Tree) -> Iterator[str]:
    """No C files that call each other in a circle; a function may call back within its file.

    The inline functions of a header NAME.h belong to NAME.c, as their callers need its types. A
    file calls the tables of other files that it names. Not seen: names that a macro pastes, as in
    the table by which kernel/ finds the families of primitive/.
    """
    sources = {
        path: without_comments(text)
        for path, text in tree.items()
        if path.startswith(("src/", "cli/")) and path.endswith((".c", ".h"))
    }
    for path in sources:
        if path.endswith(".h"):  # not its declarations
            sources[path] = "".join(INLINE_WHOLE.findall(sources[path]))
    homes = {
        name: path
        for path, text in sources.items()
        for name in (DEFINED if path.endswith(".c") else INLINE).findall(text)
    }
    tables = {
        name: path
        for path, text in sources.items()
        if path.endswith(".c")
        for name in TABLE.findall(text)
    }
    calls: dict[str, set[str]] = {}
    for path, text in sources.items():
        named = {homes[name] for name in set(NAMED.findall(text)) - own(text) if name in homes}
        named |= {tables[name] for name in set(re.findall(r"\w+", text)) & set(tables)}
        source = source_of(path, tree)
        calls.setdefault(source, set()).update(source_of(other, tree) for other in named)
    for arrows in calls.values():
        arrows &= set(calls)
    for circle in circles(calls):
        yield f"{' -> '.join(circle)}: these files call each other in a circle"


# A function that other files may call, where it is defined, in a header or not; a table that other
# files may read; a function of the file's own; and whatever is called or named.
DEFINED = re.compile(r"^(?!static\b)[a-z][\w *]*?\b(\w+)\([^;{}]*\) \{$", re.M)
INLINE = re.compile(r"^static inline [\w *]*?\b(\w+)\(", re.M)
INLINE_WHOLE = re.compile(r"^static inline .*?^\}\n", re.M | re.S)
TABLE = re.compile(r"^(?!static\b|extern\b)[a-z][\w *]*?\b(\w+)(?:\[[^\]]*\])+ = \{", re.M)
OWN = re.compile(r"^static (?!inline\b)[\w *]*?\b(\w+)\(", re.M)
NAMED = re.compile(r"\b[a-z]\w+\b(?=\()|(?<=&)[a-z]\w+\b|(?<=[ (,{])[a-z]\w+(?=[,)}])")


def own(text: str) -> set[str]:
    return set(OWN.findall(text))


def source_of(path: str, tree: Tree) -> str:
    """NAME.c for its header, too."""
    source = path[:-1] + "c"
    return source if path.endswith(".h") and source in tree else path


def without_comments(text: str) -> str:
    return re.sub(r'/\*.*?\*/|//[^\n]*|"(?:[^"\\\n]|\\.)*"', "", text, flags=re.S)


def circles(arrows: dict[str, set[str]]) -> Iterator[list[str]]:
    """One circle for each knot of the graph, its nodes in order."""
    done: set[str] = set()
    for start in sorted(arrows):
        if start not in done and (found := path_back(arrows, start)):
            yield [*found, start]
            done.update(found)


def path_back(arrows: dict[str, set[str]], start: str) -> list[str]:
    """The shortest way from a node to itself, breadth first; [] if there is none."""
    ways = [[start]]
    seen: set[str] = set()
    for way in ways:
        for node in sorted(arrows.get(way[-1], set()) - ({way[-1]} if len(way) > 1 else {start})):
            if node == start:
                return way
            if node not in seen:
                seen.add(node)
                ways.append([*way, node])
    return []


def check_package(tree: Tree) -> Iterator[str]:
    """canvas._core is the package's only core."""
    for path, text in tree.items():
        if not (path.startswith("python/canvas/") and path.endswith(".py")):
            continue
        for node in ast.walk(ast.parse(text, path)):
            if isinstance(node, ast.Constant) and OTHER_ROAD.search(str(node.value)):
                yield f"{path}:{node.lineno}: {node.value!r} goes round canvas._core"
            for module in imported(node):
                last = module.rpartition(".")[2]
                roads = ("canvas._core", "." * (path.count("/") - 1) + "_core")
                if last.startswith("_core") and module not in roads:
                    yield f"{path}:{node.lineno}: the core is canvas._core, not {module}"


def imported(node: ast.AST) -> list[str]:
    """The modules an import statement names; relative ones with one dot."""
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    if isinstance(node, ast.ImportFrom):
        module = "." * node.level + (node.module or "")
        joint = "" if module.endswith(".") else "."
        return [module] + [module + joint + alias.name for alias in node.names]
    return []


CHECKS = (
    check_includes,
    check_guards,
    check_names,
    check_calls,
    check_package,
    *rooms.CHECKS,
    *named_files.CHECKS,
)

# For each rule trees that it must reject and one that it must let pass.
PLANTED: dict[str, tuple[list[Tree], Tree]] = {
    "check_includes": (
        [
            {"src/base/a.c": '#include "dim/b.h"\n'},
            {"src/dim/a.c": '#include "program/b.h"\n'},
            {"src/sample/a.c": '  #  include "budget/b.h"\n'},
            {"src/kernel/a.c": '#include "primitive/b.h"\n'},
            {"src/kernel/a.c": '#include "canvas.h"\n'},
            {"src/kernel/a.c": '#include "kernel.h"\n'},
            {"src/attic/a.c": '#include "base/b.h"\n'},
            {"cli/a.c": '#include "base/b.h"\n'},
            {"python/ext/a.c": '#include "api/b.h"\n'},
        ],
        {
            "src/kernel/a.c": '#include "kernel/b.h"\n#include "dim/b.h"\n#include <math.h>\n',
            "src/api/a.c": '#include "canvas.h"\n#include "budget/b.h"\n',
            "cli/a.c": '#include "canvas.h"\n#include "b.h"\n',
            "cli/b.h": "",
            "tests/c/a.c": '#include "base/b.h"\n',
        },
    ),
    "check_guards": (
        [{"src/base/a.h": "#ifndef A_H\n#define A_H\n#endif\n"}, {"src/base/a.h": ""}],
        {"src/base/a.h": "// idea\n#ifndef CANVAS_BASE_A_H\n#define CANVAS_BASE_A_H\n#endif\n"},
    ),
    "check_names": (
        [{"src/dim/a.c": "", "src/base/a.c": ""}],
        {"tests/CMakeLists.txt": "", "CMakeLists.txt": "", "src/base/a.c": "", "src/base/a.h": ""},
    ),
    "check_calls": (
        [
            {
                "src/dim/a.c": "int one(int x) {\n  return two(x);\n}\n",
                "src/dim/b.c": "int two(int x) {\n  return one(x);\n}\n",
            },
            {
                "src/dim/a.c": "int one(int x) {\n  return two(x);\n}\n",
                "src/dim/b.c": "int two(int x) {\n  return three(x);\n}\n",
                "cli/c.c": "int three(int x) {\n  return each(x, one);\n}\n",
            },
            {
                "src/dim/a.c": "int one(int x) {\n  return two(x);\n}\n",
                "src/dim/a.h": "static inline int half(int x) {\n  return x / 2;\n}\n",
                "src/dim/b.c": "int two(int x) {\n  return half(x);\n}\n",
            },
            {
                "src/dim/a.c": "int one(int x) {\n  return row(x)->two;\n}\n",
                "src/dim/b.c": "const struct row rows[COUNT] = {{one}};\n",
                "src/dim/c.c": "int row(int x) {\n  return rows[x];\n}\n",
            },
        ],
        {
            "src/dim/a.c": "int one(int x) {\n  return x ? one(x - 1) : two(x);\n}\n",
            "src/dim/b.c": "int two(int x) {  // one(x)\n  return x;\n}\n",
            "src/dim/c.c": "static int two(int x) {\n  return one(x);\n}\n",
            "src/dim/d.h": "static inline int half(int x) {\n  return x / 2;\n}\n",
        },
    ),
    "check_package": (
        [
            {"python/canvas/a.py": "core = ctypes.CDLL('libcanvas.so.0')\n"},
            {"python/canvas/a.py": "import _core\n"},
            {"python/canvas/a.py": "from canvas_core import _core\n"},
            {"python/canvas/nn/a.py": "from ._core import draw\n"},
        ],
        {"python/canvas/a.py": "from canvas import _core\nfrom ._core import draw\nimport json\n"},
    ),
    **rooms.PLANTED,
    **named_files.PLANTED,
}


def self_test(check: Callable[[Tree], Iterator[str]]) -> Iterator[str]:
    name = check.__name__
    rejected, passed = PLANTED[name]
    for tree in rejected:
        if not list(check(tree)):
            yield f"{name} lets pass the planted {tree}"
    for violation in check(passed):
        yield f"{name} rejects what is right: {violation}"


def read_tree() -> Tree:
    """Every file that git tracks or would track; without git, every file of our folders."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    if listed.returncode == 0:
        paths = [ROOT / path for path in listed.stdout.split("\0") if path]
    else:
        ours = ("include", "src", "cli", "python", "tests", "bench", "docs", "examples")
        paths = [path for folder in ours for path in (ROOT / folder).rglob("*")]
        paths = [path for path in paths if "__pycache__" not in path.parts]
    return {
        path.relative_to(ROOT).as_posix(): read(path) for path in sorted(paths) if path.is_file()
    }


def read(path: pathlib.Path) -> str:
    return path.read_text(errors="replace") if path.suffix in (".c", ".h", ".py") else ""


def longest_functions(tree: Tree) -> list[tuple[int, str]]:
    """(lines, where) of every function, longest first; C by its braces in column 1."""
    found = []
    for path, text in tree.items():
        if path.endswith(".py"):
            for node in ast.walk(ast.parse(text, path)):
                if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
                    lines = (node.end_lineno or node.lineno) - node.lineno + 1
                    found.append((lines, f"{path}:{node.lineno} {node.name}"))
        elif path.endswith((".c", ".h")):
            found += [(lines, f"{path}:{where}") for lines, where in c_functions(text)]
    return sorted(found, reverse=True)


def c_functions(text: str) -> Iterator[tuple[int, str]]:
    start, name, heading = 0, "", ""
    for number, line in enumerate(text.splitlines(), 1):
        if line == "}" and name:
            yield number - start + 1, f"{start} {name}"
            name = ""
        elif re.match(r"[A-Za-z_]", line):
            start, heading = number, line
        elif line.startswith("   ") and not name:
            heading += line  # a signature may go on
        if line.endswith(") {") and not name and heading:
            called = re.search(r"(\w+)\(", heading)
            name = called[1] if called else ""


def main(arguments: list[str]) -> int:
    tree = read_tree()
    if "--longest" in arguments:
        for lines, where in longest_functions(tree)[:10]:
            print(f"{lines:5d} {where}")
        return 0
    failed = False
    for check in CHECKS:
        violations = list(self_test(check)) or list(check(tree))
        for violation in violations:
            print(violation)
        failed |= bool(violations)
        print(("not ok" if violations else "ok") + f" layers: {check.__name__.split('_')[1]}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
