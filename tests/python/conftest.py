"""Core runs are short and the same every time; CANVAS_TEST_ALL=1 (./dev test --all) looks longer.

Tests marked `nightly` run only there, those that are SLOW there and under CANVAS_TEST_SLOW=1
(./dev test --ci), and where their file is named on the command line.  Every process of a run has
a temporary folder of its own, and what is still in it at the end fails the last test.
"""

import atexit
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import hypothesis
import pytest

ALL = os.environ.get("CANVAS_TEST_ALL") == "1"

# One thread for each of the pytest processes; before anything imports torch or numpy.
os.environ.setdefault("OMP_NUM_THREADS", "1")

# Temporary files, of pytest too, and what the tests compile; pytest-xdist's processes inherit the
# environment and make theirs in the first one's.
TEMPORARY = Path(tempfile.mkdtemp(prefix="canvas-tests-"))
os.environ["TMPDIR"] = str(TEMPORARY)
tempfile.tempdir = None  # so that it is read again
atexit.register(shutil.rmtree, TEMPORARY, ignore_errors=True)
os.environ["CANVAS_CACHE"] = str(TEMPORARY / "cache")
OURS = ("cache", "pytest-of-*", "canvas-tests-*")

# torch.compile takes seconds for each network: what it made is kept from run to run.
BUILD = Path(__file__).resolve().parent.parent.parent / "build"
os.environ.setdefault("TORCHINDUCTOR_CACHE_DIR", str(BUILD / "inductor-cache"))

hypothesis.settings.register_profile(
    "core", max_examples=50, derandomize=True, database=None, deadline=None
)
hypothesis.settings.register_profile("all", max_examples=2000, deadline=None)
hypothesis.settings.load_profile("all" if ALL else "core")


# What the tests of these files share takes seconds to make: one process runs them all.
TOGETHER = (
    "test_callbacks",
    "test_cmd_train",
    "test_devices",
    "test_export",
    "test_faults",
    "test_fit_study",
    "test_install",
    "test_replay",
    "test_search",
    "test_trainer",
    "test_wheel",
)
# What takes longest runs first, so that no process waits for the last one: files and tests.
LONG = (
    "test_faults",
    "test_search",
    "test_walk",
    "test_fit_study",
    "test_a_fit_on_a_cluster_is_that_of_one_machine",
    "test_devices",
    "test_replay",
    "test_wheel",
    "test_paths_with_a_blank_are_no_obstacle",
    "test_cmd_train",
)


# Whole searches, fits and builds: what takes long, and of which something else tests the parts.
SLOW = (
    "test_a_killed_fit_goes_on_with_every_row",
    "test_a_whole_model_and_torch_compile",
    "test_accuracy",
    "test_aten_networks",
    "test_callbacks",
    "test_cluster_runs",
    "test_cmd_train",
    "test_compile_models",
    "test_devices",
    "test_epoch_log",
    "test_export",
    "test_faults",
    "test_file_images",
    "test_install",
    "test_kill_9_and_ctrl_c_lose_nothing_and_the_end_is_the_same",
    "test_native_network",
    "test_network_finals",
    "test_network_sanitized",
    "test_own_loops",
    "test_python_runs",
    "test_pytorch_computes_a_model_of_which_nothing_compiles",
    "test_replay",
    "test_search_tasks",
    "test_tasks",
    "test_tune_attacks",
    "test_tuned",
    "test_walk",
    "test_weights_that_are_gone_or_changed_are_computed_again",
    "test_wheel",
    "test_whole_networks_keep_to_a_budget_of_latency",
)


def is_of(item: pytest.Item, name: str) -> bool:
    """Whether the test has this name, or its file."""
    return item.path.stem == name or item.name.startswith(name)


def is_late(config: pytest.Config, item: pytest.Item) -> bool:
    """Whether the test is for longer runs than this one."""
    named = any(item.path.stem in word for word in config.args)
    wanted = named or os.environ.get("CANVAS_TEST_SLOW") == "1"
    slow = not wanted and any(is_of(item, name) for name in SLOW)
    return not ALL and (slow or item.get_closest_marker("nightly") is not None)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Deselect what is for longer runs; groups and order for xdist."""
    late = [item for item in items if is_late(config, item)]
    if late:
        config.hook.pytest_deselected(items=late)
        items[:] = [item for item in items if item not in late]
    for item in items:
        if item.path.stem in TOGETHER:
            item.add_marker(pytest.mark.xdist_group(item.path.stem))
    items.sort(key=turn)


def turn(item: pytest.Item) -> int:
    """Its place among what takes long; the others keep their order behind."""
    for place, name in enumerate(LONG):
        if is_of(item, name):
            return place
    return len(LONG)


@pytest.fixture(scope="session", autouse=True)
def nothing_is_left_behind() -> Iterator[None]:
    """The temporary folder of this process is as empty after its tests as before."""
    yield
    from canvas.workers.scratch import clear_left

    clear_left()  # of drivers that tests have killed: the next search would do it
    left = [path.name for path in TEMPORARY.iterdir() if not any(map(path.match, OURS))]
    assert not left, f"left in the temporary directory: {', '.join(sorted(left))}"
