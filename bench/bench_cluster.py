"""How many trainings a second the driver of a search on a Ray cluster can hand out and record.

    ./dev bench cluster [--jobs N] [--trials N] [--hosts N] [--json] [--record]

The hosts are on this machine, and their workers do nothing: what counts is the processor time of
the driver's process.  `hand out` gives N jobs of one message to the hosts; `search` is what N
trials of two epochs cost more than N / 4 in a search without tests and timing: kernels are drawn,
every epoch is a row of the study, finds are written.  `busy` is how many GPUs such a driver keeps
busy if each finishes a training every 18 seconds (200 first rungs an hour).
"""

from __future__ import annotations

import json
import os
import tempfile
import time
from functools import partial
from pathlib import Path
from typing import Any

import harness

import canvas
from canvas.cluster import cluster_pool
from canvas.cluster.cluster_pool import ClusterPool
from canvas.cluster.ray_cluster import RayCluster
from canvas.runner import driver
from canvas.study import Study

PROGRAM = (str(Path(__file__).with_name("instant_worker.py")),)
RUNG = 18.0  # seconds in which a GPU finishes one: 200 first rungs an hour


def hand_out(address: str, jobs: int) -> tuple[float, float]:
    """Processor seconds of this process, and seconds, for so many jobs without epochs."""
    cluster = RayCluster(address)
    images = {"name": "none", "seal": ""}
    with ClusterPool(cluster, images, {}, lambda line: None, program=PROGRAM) as pool:
        for _ in range(50):
            pool.wait(0.1)  # until all hosts are there
        began, used = time.monotonic(), time.process_time()
        left, done = jobs, 0
        while done < jobs:
            while left and pool.has_room():
                left -= 1
                pool.start(left, {"kind": "accuracy", "pack": None, "epochs": 0}, 60.0)
            done += sum(message["event"] == "done" for _, message in pool.wait(0.5))
        return time.process_time() - used, time.monotonic() - began


def whole_search(address: str, trials: int, folder: Path) -> tuple[float, float, int]:
    """The same of a search, and its trainings."""
    used, began = time.process_time(), time.monotonic()
    report = canvas.search(
        "resnet8", "synthetic", images=200, width=4, budget="macs=0.5x", trials=trials, epochs=2,
        prune="none", pretests="no", finalists=0, latency="none", lag=64, out=folder,
        executor=f"ray={address}", say=lambda line: None,
    )  # fmt: skip
    found = time.process_time() - used, time.monotonic() - began
    with Study.open(report.folder, False) as study:
        return *found, len(study.select(status="done"))


def main() -> None:
    parser = harness.parser(__doc__)
    parser.add_argument("--jobs", type=int, default=2000, metavar="N")
    parser.add_argument("--trials", type=int, default=400, metavar="N")
    parser.add_argument("--hosts", type=int, default=8, metavar="N")
    given = parser.parse_args()
    from ray.cluster_utils import Cluster

    recorder = harness.Recorder("cluster", given.record)
    # The paths of sockets below it must be short.
    with tempfile.TemporaryDirectory(prefix="cb-", dir="/tmp") as folder:
        os.environ["RAY_TMPDIR"] = folder
        words: dict[str, Any] = {"num_cpus": given.hosts, "object_store_memory": 100 << 20}
        words["include_dashboard"] = False
        cluster = Cluster(initialize_head=True, head_node_args=words)
        try:
            driver.ClusterPool = partial(ClusterPool, program=PROGRAM)  # type: ignore[misc]
            cluster_pool.LOOK = 1.0
            plain = hand_out(cluster.address, given.jobs)
            few, many = (
                whole_search(cluster.address, trials, Path(folder, f"study-{trials}"))
                for trials in (given.trials // 4, given.trials)
            )
            search = [more - less for less, more in zip(few, many, strict=True)]
        finally:
            cluster.shutdown()
    for case, used, seconds, count in (("hand out", *plain, given.jobs), ("search", *search)):
        each = used / count
        found = {"each": 1e3 * each, "rate": 1 / each, "wall": count / seconds}
        found["busy"] = 1 / each * RUNG
        units = {"each": "ms", "rate": "1/s", "wall": "1/s", "busy": "GPUs"}
        if given.json:
            print(json.dumps({"case": case, **found}))
        else:
            words_of = ", ".join(
                f"{name} {value:.3g} {units[name]}" for name, value in found.items()
            )
            print(f"{case}: {words_of}")
        recorder.add(
            "cluster", case, {name: (value, units[name]) for name, value in found.items()}
        )


if __name__ == "__main__":
    main()
