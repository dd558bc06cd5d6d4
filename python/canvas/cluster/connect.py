"""The cluster that the options of a search or a fit name, and what they mean there."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from ..devices import Device
from ..errors import CanvasError
from ..options import LOCAL
from .cluster import Cluster
from .ray_cluster import RayCluster

SHARING = 4  # trainings on each GPU
MOST = 1024  # workers, as --workers takes them


@contextmanager
def cluster_of(options: Mapping[str, Any]) -> Iterator[Cluster | None]:
    """The cluster that the options name, None for this machine; raises CanvasError where there is
    none, or with options that mean nothing there.
    """
    cluster = _cluster_of(options)
    try:
        yield cluster
    finally:
        if cluster is not None:
            cluster.close()


def _cluster_of(options: Mapping[str, Any]) -> Cluster | None:
    kind, _, address = options["executor"].partition("=")
    if kind == LOCAL:
        if options["timing_on"] is not None:
            raise CanvasError("--timing-on names nodes of a cluster: give --executor ray, too")
        return None
    if options["latency"] == "none" and options["timing_on"] is not None:
        raise CanvasError("--latency none times nothing: leave --timing-on out")
    if options["latency"] == "cuda":
        raise CanvasError(
            "--latency cuda times on a GPU of this machine, --executor ray on processors: give "
            "--latency native or none"
        )
    if ":" in options["device"]:
        raise CanvasError(
            f"--device {options['device']}: a cluster hands out its GPUs itself, give --device "
            f"{options['device'].partition(':')[0]}"
        )
    return RayCluster(address)


def device_of_cluster(cluster: Cluster, text: str) -> Device:
    """Where trainings run; raises CanvasError where no node has such a device."""
    gpus = sum(node.resources.get("GPU", 0) for node in cluster.nodes())
    if text == "auto":
        text = "cuda" if gpus else "cpu"
    if text != "cpu" and not gpus:
        raise CanvasError(f"--device {text}: no node of the cluster has a GPU")
    return Device(text)


def workers_of_cluster(cluster: Cluster, device: Device) -> int:
    """Trainings at a time on all its nodes."""
    kind, each = ("CPU", 1) if device.name == "cpu" else ("GPU", SHARING)
    count = sum(int(node.resources.get(kind, 0)) for node in cluster.nodes())
    return max(1, min(MOST, each * count))
