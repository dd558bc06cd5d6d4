"""A model that a child process cannot import is refused before a search writes anything."""

import sys
import types

import pytest

from canvas.errors import CanvasError
from canvas.runner.child_import import check_child_import
from canvas.runner.driver import search

NET = """
from torch import nn
def net(): return nn.Identity()
"""


@pytest.fixture
def modules(tmp_path, monkeypatch):
    """One that can be imported, and some that cannot."""
    folder = tmp_path / "modules"
    (folder / "in_a_package").mkdir(parents=True)
    for name in ("child_net", "idlelib", "in_a_package/nets"):
        (folder / f"{name}.py").write_text(NET)
    monkeypatch.syspath_prepend(str(folder))
    for name in ("idlelib", "child_net"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    made = types.ModuleType("made_here")
    made.net = lambda: None
    monkeypatch.setitem(sys.modules, "made_here", made)
    monkeypatch.setattr(sys.modules["__main__"], "Net", lambda: None, raising=False)


def put_here():
    """As a definition that a session puts into a module."""


put_here.__module__ = "__main__"


@pytest.mark.parametrize("name", ["child_net:net", "in_a_package.nets:net", "resnet8"])
def test_a_module_of_a_file_is_fine(modules, name):
    check_child_import(name)


@pytest.mark.parametrize(
    ("name", "words"),
    [
        (
            "__main__:Net",
            "is defined in the script or session that runs, and child processes cannot",
        ),
        ("__main__:Net.inner", "is defined in the script or session that runs"),
        ("made_here:net", "child processes find no module 'made_here': save it in a module"),
        ("idlelib:net", "modules/idlelib.py', but child processes import '.*: give the module"),
        (":net", "not of the form package.module:callable"),
        ("child_net:", "not of the form package.module:callable"),
        (":", "not of the form package.module:callable"),
        ("child_net:a..b", "not of the form package.module:callable"),
        ("child_net:net.", "not of the form package.module:callable"),
        ("child_net::net", "not of the form package.module:callable"),
        ("in_a_package..nets:net", "not of the form package.module:callable"),
        ("child_net:<lambda>", "not of the form package.module:callable"),
        ("child_net.py:net", "there is no module 'child_net.py'"),
        (lambda: None, "returned an object of type NoneType"),
        (types.ModuleType, "cannot be built: TypeError"),
        ("", "--model takes a line of text, not ''"),
    ],
)
def test_others_are_refused_at_once(modules, tmp_path, name, words):
    out = tmp_path / "study"
    with pytest.raises(CanvasError, match=words) as told:
        search(name, "digits", out=out)
    assert "\n" not in str(told.value) and not out.exists()


def test_what_a_session_put_into_a_module_is_refused(modules, monkeypatch):
    check_child_import("child_net:net")
    monkeypatch.setattr(sys.modules["child_net"], "own", put_here, raising=False)
    with pytest.raises(
        CanvasError, match=r"has no 'own' \(in a child process\): save it in a mod"
    ):
        check_child_import("child_net:own")
