"""Whether a child process can import the model or task of a search: checked before anything is
read or written, as a child's failure would come after the study was begun.

    module   a child finds the same file under its own sys.path, which ends with this process's
    name     where it was not defined by its module as a file says, a child imports it for once
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from ..errors import CanvasError
from ..imports import find_by_name, is_given
from ..nn.built_in import BUILT_IN
from ..nn.load_model import find_model

LONGEST = 120.0  # seconds for imports in the child

# Prints the file of a top-level module, without an import; null where there is none.
FIND = """
import importlib.util, json, sys
words = json.load(sys.stdin)
sys.path += [folder for folder in words["path"] if folder not in sys.path]
spec = importlib.util.find_spec(words["module"])
print(json.dumps(spec and [spec.origin, list(spec.submodule_search_locations or [])]))
"""
# Prints why a name cannot be imported; "" where it can.
IMPORT = """
import json, os, sys
words = json.load(sys.stdin)
answers = os.fdopen(os.dup(1), "w")
os.dup2(2, 1)
sys.path += [folder for folder in words["path"] if folder not in sys.path]
from canvas.errors import CanvasError
from canvas.imports import find_by_name
try:
    find_by_name(words["name"], words["what"])
    why = ""
except CanvasError as error:
    why = str(error)
print(json.dumps(why), file=answers)
"""
HELP = "save it in a module that can be imported, and name that as module:callable"


def check_child_import(name: str, what: str = "model") -> None:
    """Raises CanvasError where a child process cannot import the model, or `what` it is, called
    `name`.
    """
    module = name.partition(":")[0]
    if name in BUILT_IN or is_given(name):
        return
    if module.partition(".")[0] == "__main__":
        raise CanvasError(
            f"{what} '{name}' is defined in the script or session that runs, and child processes "
            f"cannot import that: {HELP}"
        )
    target = find_model(name) if what == "model" else find_by_name(name, what)
    try:
        _check_file(name, module.partition(".")[0], what)
        words = {"name": name, "what": what}
        why = "" if _is_of_file(module, target) else _in_child(IMPORT, words, name, what)
    except OSError:
        return  # no child can be started: the check of the start says why
    if why:
        raise CanvasError(f"{why} (in a child process): {HELP}")


def _check_file(name: str, top: str, what: str) -> None:
    """Compares the file that this process has imported with the one that a child finds."""
    spec = getattr(sys.modules[top], "__spec__", None)
    there = _in_child(FIND, {"module": top}, name, what)
    here = spec and [spec.origin, list(spec.submodule_search_locations or [])]
    if not here or not there:
        raise CanvasError(f"{what} '{name}': child processes find no module '{top}': {HELP}")
    if _real(here) != _real(there):
        raise CanvasError(
            f"{what} '{name}': module '{top}' is '{_shown(here)}', but child processes import "
            f"'{_shown(there)}': give the module another name"
        )


def _real(place: Any) -> Any:
    origin, folders = place
    return origin and os.path.realpath(origin), [os.path.realpath(folder) for folder in folders]


def _shown(place: Any) -> str:
    origin, folders = place
    return str(origin or next(iter(folders), ""))


def _is_of_file(module: str, target: Any) -> bool:
    """Whether the module's file defines the target, as far as both tell."""
    loaded = sys.modules.get(module)
    spec = getattr(loaded, "__spec__", None)
    return spec is not None and getattr(target, "__module__", None) != "__main__"


def _in_child(program: str, words: dict[str, Any], name: str, what: str) -> Any:
    """What a child of the same kind as those that train prints, as JSON. OSError: none starts."""
    package = str(Path(__file__).absolute().parents[2])
    known = os.environ.get("PYTHONPATH")
    environment = {
        **os.environ,
        "PYTHONPATH": package + (os.pathsep + known if known else ""),
    }
    safe = ["-P"] if sys.version_info >= (3, 11) else []
    try:
        done = subprocess.run(
            [sys.executable, *safe, "-c", program],
            input=json.dumps({**words, "path": list(map(str, sys.path))}),
            capture_output=True,
            text=True,
            timeout=LONGEST,
            env=environment,
        )
        return json.loads(done.stdout.splitlines()[-1])
    except (ValueError, IndexError, subprocess.TimeoutExpired):
        raise CanvasError(
            f"{what} '{name}': a child process that imports it fails: {HELP}"
        ) from None
