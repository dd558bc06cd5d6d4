"""What a pool needs of a cluster: nodes, hosts on them, calls whose results come later.

Ray gives it (ray_cluster.py); tests have one without processes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

NOTHING_LOST = "what is done is kept, the same command goes on"


class HostLost(Exception):
    """The host of a call, or its node, is gone."""


class HostFailed(Exception):
    """A host could not do what it was called for, as where its disk is full."""


@dataclass(frozen=True)
class Node:
    """A machine of the cluster: `resources` has CPU, GPU and the labels that its owner gave it."""

    id: str
    address: str
    resources: Mapping[str, float]


class Cluster(Protocol):
    """Every call returns once; calls to one host are done one after the other."""

    def nodes(self) -> list[Node]:
        """Those that are there now."""

    def place(
        self, node: Node, resources: Mapping[str, float], arguments: Mapping[str, Any]
    ) -> Any:
        """A new Host(**arguments) on this node, which holds these resources of it."""

    def call(self, host: Any, method: str, *words: Any) -> Any:
        """Call a method of a host: a ticket for `answered` and `result`."""

    def store(self, data: bytes) -> Any:
        """Bytes that several calls may have as a word."""

    def answered(self, tickets: Sequence[Any], seconds: float) -> list[Any]:
        """The tickets whose calls are done; waits up to `seconds` for the first one."""

    def result(self, ticket: Any) -> Any:
        """What the call returned.  Raises HostLost or HostFailed with the reason."""

    def end(self, host: Any) -> None:
        """End a host and what it does."""

    def close(self) -> None:
        """End all hosts and leave the cluster."""
