"""Searches and fits on a cluster: the same as on one machine; with Ray, four nodes and kills."""

import csv
import json
import os
import random
import re
import shutil
import signal
import socket
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections import deque
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("scipy")

from machines import Threads, node  # noqa: E402

from canvas.cli import main  # noqa: E402
from canvas.cluster import cluster_pool, connect, ray_cluster  # noqa: E402
from canvas.cluster.cluster_pool import ClusterPool  # noqa: E402
from canvas.fitting import cluster_runner, fit_jobs, fit_run, menu  # noqa: E402
from canvas.workers.pool import WAITING  # noqa: E402
from canvas.workers.scratch import clear_left  # noqa: E402

PROGRAM = (str(Path(__file__).with_name("small_jobs.py")),)
NETS = '''
"""Networks and data of a test, as a user has them in a file."""
import torch
from canvas.data import Data
from small_trained import Small, images

def small(num_classes=3):
    return Small(4)

def coloured(num_classes=10):
    network = Small(4)
    network.stem = torch.nn.Conv2d(3, 4, 3, padding=1)
    network.head = torch.nn.Linear(8, num_classes)
    return network

def patterns():
    return Data("patterns", images(320, 1), images(160, 2), images(160, 3), 3, "noisy patterns")
'''


@pytest.fixture
def nets(tmp_path, monkeypatch):
    """A folder with the user's file, from which the commands are run."""
    (tmp_path / "nets_of_test.py").write_text(NETS)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.syspath_prepend(str(Path(__file__).parent))
    yield tmp_path
    sys.modules.pop("nets_of_test", None)


@pytest.fixture
def threads(tmp_path, monkeypatch):
    """Clusters of two nodes that do not see the driver's folders."""
    made = []

    def cluster(address):
        made.append(Threads(tmp_path / "caches", node("1", 1), node("2", 1)))
        return made[-1]

    monkeypatch.setattr(connect, "RayCluster", cluster)
    monkeypatch.setattr(cluster_pool, "LOOK", 0.0)
    return made


def rows(folder, *tables):
    """What a study has found, without times."""
    with sqlite3.connect(Path(folder) / "study.db") as database:
        return {columns: database.execute(f"{columns} ORDER BY 1, 2, 3").fetchall()
                for columns in tables}  # fmt: skip


def logged(folder):
    """The epochs in a log, without times and in no order."""
    with open(Path(folder) / "epochs.csv", newline="") as file:
        epochs = list(csv.DictReader(file))
    assert len(epochs) > 10
    return sorted(tuple(v for k, v in row.items() if k not in ("study", "seconds"))
                  for row in epochs)  # fmt: skip


CANDIDATES = "SELECT name, status, val_accuracy, hash, macs, reason FROM candidate"
FINALS = "SELECT candidate, seed, val_accuracy, test_accuracy, hits FROM final"
FITS = "SELECT layer, operator, steps, error, divergence, weights FROM fit"
SCREENED = "SELECT number, hash, error FROM screened"


def test_a_search_on_a_cluster_is_that_of_one_machine(nets, threads, capsys):
    """Images, the recorded layer and trainings that are left off travel."""
    words = ["search", "--model", "nets_of_test:coloured", "--data", "synthetic",
             "--images", "300", "--trials", "4", "--epochs", "3", "--grace", "1",
             "--deterministic", "--policy", "spatial", "--final-seeds", "1",
             "--budget", "macs=0.8x", "--progress", "lines", "--latency", "none"]  # fmt: skip
    here, there = (["--out", out, "--log-dir", f"log {out}"] for out in ("here", "there"))
    assert main([*words, *here, "--workers", "2"]) in (0, 1)
    assert main([*words, *there, "--executor", "ray"]) in (0, 1)
    assert logged("log here") == logged("log there")
    here, there = (rows(name, CANDIDATES, FINALS) for name in ("here", "there"))
    assert here == there and len(here[CANDIDATES]) > 8
    (cluster,) = threads
    assert {*cluster.placed} == {"1", "2"} and cluster.hosts == []
    told = capsys.readouterr().err
    assert "networks are trained on cpu of the nodes of a cluster" in told
    assert "node 10.0.0.1: up to 1 trainings at a time" in told


def test_a_fit_on_a_cluster_is_that_of_one_machine(nets, threads, capsys, monkeypatch):
    monkeypatch.setattr(menu, "CONTROLS", menu.CONTROLS[:4])
    monkeypatch.setattr(fit_run, "KNOWN", menu.CONTROLS)
    words = ["fit", "--model", "nets_of_test:small", "--data", "nets_of_test:patterns",
             "--teacher-epochs", "8", "--draws", "2", "--epochs", "1", "--longer", "1",
             "--final-seeds", "2", "--policy", "spatial", "--budget", "macs=0.5x",
             "--budget", "latency=0.9x", "--latency", "native"]  # fmt: skip
    one = [*words[: words.index("latency=0.9x") - 1], "--latency", "none"]
    one += ["--progress", "lines"]
    here, there = (["--out", out, "--log-dir", f"log {out}"] for out in ("here", "there"))
    assert main([*one, *here, "--workers", "2"]) in (0, 1)
    assert main([*one, *there, "--executor", "ray"]) in (0, 1)
    assert logged("log here") == logged("log there")
    columns = (CANDIDATES, FITS, SCREENED, FINALS)
    here = rows("here", *columns)
    assert here == rows("there", *columns) and len(here[FITS]) > 20 and len(here[FINALS]) > 3
    capsys.readouterr()
    # With a budget of latency every item, layer and network is timed where the label is.

    def never(*words):
        raise AssertionError("timed on this machine")

    monkeypatch.setattr(Threads, "nodes", lambda self: [*self.there, node("3", 1, quiet=1)])
    monkeypatch.setattr(cluster_runner, "seconds_of", never)
    monkeypatch.setattr(fit_jobs, "native_code", never)
    words += ["--draws", "0", "--final-seeds", "1", "--timing-on", "quiet"]
    assert main([*words, "--out", "timed", "--executor", "ray", "--progress", "lines"]) in (0, 1)
    assert "3" in threads[-1].placed
    with sqlite3.connect("timed/study.db") as database:
        query = "SELECT count(*), count(native_seconds) FROM fit WHERE steps < 300"
        every, timed = database.execute(query).fetchone()
    assert every == timed > 20


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--executor", "dask"], "--executor takes local, ray or ray=HOST:PORT, not 'dask'"),
        (["--executor", "ray=;rm"], "--executor takes local, ray or ray=HOST:PORT"),
        (["--executor", "ray", "--timing-on", "a b"], "--timing-on takes the name of a resource"),
        (["--executor", "ray=h:99999"], "--executor takes local, ray or ray=HOST:PORT"),
        (["--executor", "ray", "--timing-on", "CPU"], "--timing-on takes the name of a resource"),
        (["--executor", "ray", "--timing-on", "memory"], "a resource of your own, such as"),
        (["--timing-on", "quiet"], "--timing-on names nodes of a cluster: give --executor ray"),
        (["--executor", "ray", "--device", "cuda:0"], "a cluster hands out its GPUs itself"),
        (["--executor", "ray", "--device", "cuda"], "no node of the cluster has a GPU"),
        (["--executor", "ray", "--timing-on", "q"], "no node of the cluster has the resource 'q'"),
        (["--executor", "ray", "--timing-on", "q", "--latency", "none"], "times nothing"),
    ],
)
@pytest.mark.parametrize("command", ["search", "fit"])
def test_what_cannot_be(nets, threads, capsys, command, words, message):
    data = ["--model", "resnet8", "--data", "synthetic", "--width", "4"]
    if command == "fit":
        data += ["--teacher-epochs", "1", "--budget", "macs=0.5x"]
    assert main([command, *data, *words, "--out", "o"]) == 2
    assert message in capsys.readouterr().err


def test_objects_stay_at_home(nets, threads):
    import canvas

    with pytest.raises(canvas.CanvasError, match="the model cannot be imported by name, as the"):
        canvas.search(
            lambda: torch.nn.Sequential(
                torch.nn.Conv2d(3, 4, 3, padding=1), torch.nn.Conv2d(4, 4, 3, padding=1),
                torch.nn.Flatten(), torch.nn.LazyLinear(10),
            ), "synthetic", executor="ray", out="o", say=print,
        )  # fmt: skip


# ---- Ray ----------------------------------------------------------------------------------------


def test_without_ray_or_a_cluster_there_is_one_message(nets, capsys, monkeypatch):
    words = ["search", "--model", "resnet8", "--data", "synthetic", "--out", "o", "--executor"]
    with monkeypatch.context() as patch:
        patch.setattr(ray_cluster, "RAY", "ray_that_is_not_there")
        assert main([*words, "ray"]) == 2
    assert "--executor ray needs Ray: pip install 'canvas-kas[ray]'" in capsys.readouterr().err
    pytest.importorskip("ray")
    began = time.monotonic()
    assert main([*words, "ray=127.0.0.1:1"]) == 2
    assert "nothing answers at '127.0.0.1:1'" in capsys.readouterr().err
    assert main([*words, "ray=[::1]:1"]) == 2
    assert "nothing answers at '[::1]:1' (ConnectionRefused" in capsys.readouterr().err
    assert time.monotonic() - began < 10
    # Something that listens and never answers.
    monkeypatch.setattr(ray_cluster, "CONNECTING", 5.0)
    with socket.create_server(("127.0.0.1", 0)) as server:
        place = f"127.0.0.1:{server.getsockname()[1]}"
        assert main([*words, f"ray={place}"]) == 2
        told = capsys.readouterr().err
        assert f"no Ray cluster at '{place}': nothing there has answered as a head" in told
        monkeypatch.setenv("RAY_ADDRESS", place)
        assert main([*words, "ray"]) == 2
        assert f"no Ray cluster at RAY_ADDRESS={place}: nothing" in capsys.readouterr().err


@pytest.fixture(scope="module")
def four():
    """A cluster of four nodes on this machine, and what removes and adds one."""
    ray = pytest.importorskip("ray")
    from ray.cluster_utils import Cluster

    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    # The paths of its sockets must be short.
    folder = os.environ["RAY_TMPDIR"] = tempfile.mkdtemp(prefix="r-", dir="/tmp")
    small = {"num_cpus": 1, "object_store_memory": 80 << 20}
    made = Cluster(initialize_head=True, head_node_args={**small, "include_dashboard": False})
    nodes = [made.add_node(**small, resources={"quiet": 1} if n == 2 else {}) for n in range(3)]

    class Four:
        address = made.address

        def exchange(self):
            """A node goes, another one comes."""
            made.remove_node(nodes.pop(0), allow_graceful=False)
            nodes.append(made.add_node(**small))

    yield Four()
    ray.shutdown()
    for one in nodes:
        made.remove_node(one)
    made.shutdown()
    del os.environ["RAY_TMPDIR"]
    clear_left()  # of hosts that were killed
    shutil.rmtree(folder, ignore_errors=True)


def hosts_of_ray():
    """Process ids of the hosts that Ray runs here."""
    found = []
    for entry in Path("/proc").iterdir():
        try:
            if entry.name.isdigit() and b"ray::Host" in (entry / "cmdline").read_bytes():
                found.append(int(entry.name))
        except OSError:
            continue
    return found


@pytest.mark.nightly
def test_200_tasks_on_four_nodes_of_which_some_are_killed(four, monkeypatch):
    """Each task is told once and in order, whatever dies: children, hosts, two whole nodes."""
    from canvas.cluster.ray_cluster import RayCluster

    monkeypatch.setattr(cluster_pool, "LOOK", 0.5)
    monkeypatch.setattr(cluster_pool, "LOSSES", 50)
    chance, lines = random.Random(1), []
    left, heard = deque(range(200)), {job: [] for job in range(200)}
    kills = dict.fromkeys(("host", "node"), 0)
    cluster = RayCluster(four.address)
    with ClusterPool(
        cluster, {"name": "none", "seal": ""}, {"kind": "ready"}, lines.append, program=PROGRAM
    ) as pool:
        began, ended = time.monotonic(), 0
        while left or pool.busy():
            assert time.monotonic() < began + 240, (len(left), pool.busy(), lines[-5:])
            while left and pool.has_room():
                job = left.popleft()
                words = {"kind": "sum", "numbers": [job, 1, 2], "seconds": 0.01}
                pool.start(job, words, 60.0)
            for job, message in pool.wait(0.5):
                heard[job].append((message["event"], message.get("total")))
                if message["event"] in WAITING:
                    pool.answer(job, True)
                ended += message["event"] == "done"
            if kills["host"] < ended // 20 and (hosts := hosts_of_ray()):
                os.kill(chance.choice(hosts), signal.SIGKILL)
                kills["host"] += 1
            if kills["node"] < ended // 80:
                four.exchange()
                kills["node"] += 1
    expected = {
        job: [("built", 0), ("epoch", job), ("epoch", job + 1), ("epoch", job + 3),
              ("done", job + 3)]
        for job in range(200)
    }  # fmt: skip
    assert heard == expected
    assert kills["host"] >= 8 and kills["node"] == 2
    assert any("is lost" in line for line in lines)


@pytest.mark.nightly
def test_a_search_on_ray_times_where_the_label_is(four, nets, capsys):
    words = ["search", "--model", "nets_of_test:coloured", "--data", "synthetic",
             "--images", "300", "--trials", "1", "--epochs", "1", "--policy", "spatial",
             "--finalists", "0", "--pretests", "no",
             "--budget", "macs=0.8x", "--compile", "no", "--progress", "lines", "--out", "o",
             "--executor", f"ray={four.address}", "--timing-on", "quiet"]  # fmt: skip
    assert main(words) in (0, 1)
    told = capsys.readouterr()
    assert ": times networks" in told.err and "x +-" in told.out
    with sqlite3.connect("o/study.db") as database:
        options = json.loads(database.execute("SELECT options FROM study").fetchone()[0])
    assert options["executor"] == f"ray={four.address}" and options["timing_on"] == "quiet"


@pytest.mark.nightly
def test_the_example_of_the_page_runs(four, nets):
    page = (Path(__file__).parents[2] / "docs" / "cluster.md").read_text()
    (example,) = re.findall(r"^```python\n(.*?)^```", page, re.S | re.M)
    done = subprocess.run(
        [sys.executable, "-c", example], env={**os.environ, "RAY_ADDRESS": four.address},
        capture_output=True, text=True, timeout=200,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "trainings at a time" in done.stderr and done.stdout


@pytest.mark.nightly
def test_a_lag_follows_the_workers_of_a_cluster(nets, threads, monkeypatch):
    """A study keeps it, also where it goes on without the cluster."""
    monkeypatch.setattr(Threads, "nodes", lambda self: [node("1", 9)])
    words = ["search", "--model", "nets_of_test:coloured", "--data", "synthetic", "--images",
             "200", "--trials", "1", "--epochs", "1", "--finalists", "0", "--policy", "spatial",
             "--latency", "none", "--pretests", "no", "--progress", "lines",
             "--out", "o"]  # fmt: skip
    assert main([*words, "--executor", "ray"]) in (0, 1)
    with sqlite3.connect("o/study.db") as database:
        options = json.loads(database.execute("SELECT options FROM study").fetchone()[0])
    assert options["lag"] == options["workers"] == 9
    assert main([*words, "--trials", "2"]) in (0, 1)


def kill_what_has(folder):
    """What a cluster without its head leaves running, by their environments."""
    for _ in range(20):
        found = []
        for entry in Path("/proc").iterdir():
            try:
                other = entry.name.isdigit() and int(entry.name) != os.getpid()
                if other and folder.encode() in (entry / "environ").read_bytes():
                    os.kill(int(entry.name), signal.SIGKILL)
                    found.append(entry)
            except OSError:
                continue
        if not found:
            return
        time.sleep(0.2)


ONE_NODE = """
import sys
from ray.cluster_utils import Cluster
words = {"num_cpus": 1, "include_dashboard": False, "object_store_memory": 80 << 20}
cluster = Cluster(initialize_head=True, head_node_args=words)
(head,) = cluster.head_node.all_processes["gcs_server"]
print(cluster.address, head.process.pid, flush=True)
sys.stdin.read()
cluster.shutdown()
"""


def test_a_cluster_whose_head_is_killed(nets):
    """Ray would end the process a minute later, with its own message and exit code 1."""
    pytest.importorskip("ray")
    folder = tempfile.mkdtemp(prefix="r-", dir="/tmp")  # Ray's sockets need a short path
    words = [sys.executable, "-c", ONE_NODE]
    search = [sys.executable, "-m", "canvas", "search", "--model", "resnet8", "--data",
              "synthetic", "--width", "4", "--trials", "50", "--epochs", "2", "--finalists", "0",
              "--pretests", "no", "--latency", "none", "--progress", "lines", "--out",
              "o"]  # fmt: skip
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    with subprocess.Popen(words, env={**os.environ, "RAY_TMPDIR": folder}, **pipes) as cluster:
        try:
            address, head = cluster.stdout.readline().split()
            driver = subprocess.Popen(
                [*search, "--executor", f"ray={address}"], stderr=subprocess.PIPE, text=True
            )
            while "done" not in (told := driver.stderr.readline()):
                assert told
            os.kill(int(head), signal.SIGKILL)
            _, told = driver.communicate(timeout=150)
            assert driver.returncode == 2, told
            last = told.strip().splitlines()[-1]
            assert "the head of the Ray cluster" in last and "what is done is kept" in last
        finally:
            cluster.kill()
            kill_what_has(folder)
    shutil.rmtree(folder, ignore_errors=True)
    clear_left()
    assert rows("o", "SELECT count(*), 0, 0 FROM candidate WHERE status = 'done'")
