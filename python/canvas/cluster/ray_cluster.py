"""Ray as a cluster (cluster.py): a host is an actor that is bound to its node."""

from __future__ import annotations

import importlib
import logging
import os
import socket
from collections.abc import Mapping, Sequence
from typing import Any

from ..errors import CanvasError, one_line
from .cluster import HostFailed, HostLost, Node
from .host import Host

RAY = "ray"  # the package
REACHABLE = 5.0  # seconds for a first connection
HOW = "`ray start --head` begins one on this machine, docs/cluster.md has the rest"


class RayCluster:
    """The cluster at `address` (host:port or ray://host:port), "" for the one that this machine
    belongs to.

    Raises CanvasError where there is none, or Ray is not installed.
    """

    def __init__(self, address: str = "") -> None:
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
        os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
        try:
            self.ray = importlib.import_module(RAY)
        except ImportError as error:
            raise CanvasError(
                f"--executor ray needs Ray: pip install 'canvas-kas[ray]' ({one_line(error)})"
            ) from None
        self.errors = importlib.import_module("ray.exceptions")
        strategies = importlib.import_module("ray.util.scheduling_strategies")
        self.affinity = strategies.NodeAffinitySchedulingStrategy
        self.own = not self.ray.is_initialized()
        if self.own:
            _check_reachable(address)
            try:
                self.ray.init(
                    address or "auto", log_to_driver=False, logging_level=logging.ERROR,
                    configure_logging=False,
                )  # fmt: skip
            except Exception as error:  # Ray has no class of its own for what can go wrong here
                where = f"at '{address}'" if address else "on this machine"
                raise CanvasError(f"no Ray cluster {where}: {one_line(error)}; {HOW}") from None
        self.hosts: list[Any] = []
        self.Host = self.ray.remote(Host)

    def nodes(self) -> list[Node]:
        return [
            Node(node["NodeID"], node["NodeManagerAddress"], dict(node["Resources"]))
            for node in self.ray.nodes()
            if node["Alive"]
        ]

    def place(
        self, node: Node, resources: Mapping[str, float], arguments: Mapping[str, Any]
    ) -> Any:
        others = {name: value for name, value in resources.items() if name not in ("CPU", "GPU")}
        host = self.Host.options(
            num_cpus=resources.get("CPU", 0),
            num_gpus=resources.get("GPU", 0),
            resources=others,
            scheduling_strategy=self.affinity(node.id, soft=False),
            max_restarts=0,
        ).remote(**arguments)
        self.hosts.append(host)
        return host

    def call(self, host: Any, method: str, *words: Any) -> Any:
        return getattr(host, method).remote(*words)

    def store(self, data: bytes) -> Any:
        return self.ray.put(data)

    def answered(self, tickets: Sequence[Any], seconds: float) -> list[Any]:
        done, _ = self.ray.wait(list(tickets), num_returns=1, timeout=seconds)
        if done:
            done, _ = self.ray.wait(list(tickets), num_returns=len(tickets), timeout=0)
        return list(done)

    def result(self, ticket: Any) -> Any:
        try:
            return self.ray.get(ticket)
        except self.errors.RayTaskError as error:
            raise HostFailed(_last_line(error)) from None
        except self.errors.RayError as error:
            raise HostLost(_last_line(error)) from None

    def end(self, host: Any) -> None:
        if host in self.hosts:
            self.hosts.remove(host)
        self.ray.kill(host)

    def close(self) -> None:
        for host in list(self.hosts):
            self.end(host)
        if self.own:
            self.ray.shutdown()


def _last_line(error: BaseException) -> str:
    """Of the traceback that Ray puts into its errors, the last line."""
    cause = getattr(error, "cause", None)
    if cause is not None:
        return one_line(cause)
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[0] if lines else type(error).__name__


def _check_reachable(address: str) -> None:
    """Raise CanvasError at once where nothing listens, which Ray notices after half a minute."""
    place = address.removeprefix("ray://")
    if not place:
        return
    host, _, port = place.rpartition(":")
    try:
        socket.create_connection((host.strip("[]"), int(port)), REACHABLE).close()
    except (OSError, ValueError) as error:
        raise CanvasError(
            f"nothing answers at '{address}' ({one_line(error)}): --executor ray=HOST:PORT takes "
            f"the address that `ray start --head` printed; {HOW}"
        ) from None
