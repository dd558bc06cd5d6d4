"""Core runs are short and the same every time; CANVAS_TEST_ALL=1 (./dev test --all) looks longer.

Tests marked `nightly` run only there.
"""

import atexit
import os
import shutil
import tempfile

import hypothesis
import pytest

ALL = os.environ.get("CANVAS_TEST_ALL") == "1"

# One thread for each of the two pytest processes; before anything imports torch or numpy.
os.environ.setdefault("OMP_NUM_THREADS", "1")

# What the tests compile is kept for them alone.
if "CANVAS_CACHE" not in os.environ:
    os.environ["CANVAS_CACHE"] = tempfile.mkdtemp(prefix="canvas-cache-")
    atexit.register(shutil.rmtree, os.environ["CANVAS_CACHE"], ignore_errors=True)

hypothesis.settings.register_profile(
    "core", max_examples=50, derandomize=True, database=None, deadline=None
)
hypothesis.settings.register_profile("all", max_examples=2000, deadline=None)
hypothesis.settings.load_profile("all" if ALL else "core")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Deselect what is marked nightly, unless all was asked for."""
    if ALL:
        return
    late = [item for item in items if item.get_closest_marker("nightly")]
    config.hook.pytest_deselected(items=late)
    items[:] = [item for item in items if not item.get_closest_marker("nightly")]
