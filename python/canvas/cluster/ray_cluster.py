"""Ray as a cluster (cluster.py): a host is an actor that is bound to its node."""

from __future__ import annotations

import importlib
import logging
import os
import socket
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from typing import Any

from ..errors import CanvasError, one_line
from .cluster import NOTHING_LOST, HostFailed, HostLost, Node
from .host import Host

RAY = "ray"  # the package
REACHABLE = 5.0  # seconds for a first connection
CONNECTING = 40.0  # seconds for Ray's own
CLOSING = 3.0  # seconds that hosts get to tidy up
HEADLESS = 15.0  # seconds without the head after which it is lost
HOW = "`ray start --head` begins one on this machine, docs/cluster.md has the rest"


class RayCluster:
    """The cluster at `address` (host:port of its head), "" for the one that this machine
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
            _check_answers(address)
            try:
                self.ray.init(
                    address or "auto", log_to_driver=False, logging_level=logging.ERROR,
                    configure_logging=False,
                )  # fmt: skip
            except Exception as error:  # Ray has no class of its own for what can go wrong here
                raise _no_cluster(address, one_line(error)) from None
        self.head = str(self.ray.get_runtime_context().gcs_address)
        self.heard, self.lost = time.monotonic(), False
        self.hosts: list[Any] = []
        self.known: list[Node] = []
        self.Host = self.ray.remote(Host)

    def nodes(self) -> list[Node]:
        if self._head_answers():  # or Ray would wait for it
            self.known = [
                Node(node["NodeID"], node["NodeManagerAddress"], dict(node["Resources"]))
                for node in self.ray.nodes()
                if node["Alive"]
            ]
        return self.known

    def _head_answers(self) -> bool:
        """Raises CanvasError before Ray ends this process, which it does a minute after it has
        lost the head.
        """
        try:
            _connect(self.head)
            self.heard = time.monotonic()
            return True
        except OSError as error:
            if time.monotonic() > self.heard + HEADLESS:
                self.lost = True
                raise CanvasError(
                    f"the head of the Ray cluster at {self.head} does not answer any more "
                    f"({one_line(error)}); {NOTHING_LOST}"
                ) from None
            return False

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
        if self.lost:  # nobody hears: Ray waits for its head until it ends this process
            self.hosts.clear()
            return
        closing = [host.close.remote() for host in self.hosts]
        if closing:
            self.ray.wait(closing, num_returns=len(closing), timeout=CLOSING)
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
    if not address:
        return
    try:
        _connect(address)
    except OSError as error:
        raise CanvasError(
            f"nothing answers at '{address}' ({one_line(error)}): --executor ray=HOST:PORT takes "
            f"the address that `ray start --head` printed; {HOW}"
        ) from None


def _connect(address: str) -> None:
    host, _, port = address.rpartition(":")
    socket.create_connection((host.strip("[]"), int(port)), REACHABLE).close()


def _check_answers(address: str) -> None:
    """Raise CanvasError where Ray does not connect, in a process of its own: to something that
    listens and is no head of Ray it tries forever.
    """
    program = f"import ray, sys; ray.init({address or 'auto'!r}, logging_level='ERROR')"
    words = [sys.executable, "-c", program]
    try:
        done = subprocess.run(words, capture_output=True, text=True, timeout=CONNECTING)
    except subprocess.TimeoutExpired:
        why = f"nothing there has answered as a head of Ray within {CONNECTING:.0f} s"
        raise _no_cluster(address, why) from None
    if done.returncode:
        lines = done.stderr.strip().splitlines() or [f"exit code {done.returncode}"]
        raise _no_cluster(address, lines[-1].partition(": ")[2] or lines[-1])


def _no_cluster(address: str, why: str) -> CanvasError:
    where = f"at '{address}'" if address else "on this machine"
    if not address and os.environ.get("RAY_ADDRESS"):
        where = f"at RAY_ADDRESS={os.environ['RAY_ADDRESS']}"
    return CanvasError(f"no Ray cluster {where}: {why}; {HOW}")
