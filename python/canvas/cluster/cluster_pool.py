"""The driver's side of a cluster: an executor (workers/pool.py) whose children are on its nodes.

    node joins -> one host: versions, images, a first job -> accepted: the other hosts

A training whose host is lost begins again on another one, and so does one that failed in a way
that may be the node's fault; no message is passed on twice.  A node that cannot do the work is
left alone, with one line that gives the reason.  Networks are timed by a child of this
machine, or by hosts on nodes with a label of their own.
"""

from __future__ import annotations

import json
import math
import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ..environment import versions
from ..errors import CanvasError
from ..files import at_once
from ..workers.begun import ENDS, Begun
from ..workers.on_devices import FULL, GONE
from ..workers.pool import LOST_DATA, WAITING, Message, Pool
from .cluster import NOTHING_LOST, Cluster, HostFailed, HostLost, Node
from .host import POLL, sources
from .job_files import contents_of, digest_of

PROGRAM = ("-m", "canvas.workers.worker")
# Kinds of jobs that need a quiet core, of a search and of a fit.
TIMED = ("compile", "latency", "layers", "seconds", "network_time")
LOOK = 5.0  # seconds between two looks at the nodes
JOINING = 60.0  # seconds that a driver waits for a node where there is none
FIRST_JOB = 600.0  # seconds that it waits for the first job of one
QUIET = 5.0  # seconds after which a line reports that
SILENT = 60.0  # seconds after its POLL in which a host must answer
READY_LIMIT = 600.0  # seconds of processor time of the first job of a node
LOSSES = 3  # hosts that one job may lose
PART = 32 << 20  # bytes of images in one call
LEAST = 1e-3  # of a label that a host holds


@dataclass(eq=False)
class Slot:
    """A host for one job, the call to it that is under way, and who hears the answer."""

    node: Node
    host: Any
    timing: bool = False
    gpus: str = ""  # as CUDA_VISIBLE_DEVICES names them
    met: bool = False  # it runs
    ready: bool = False
    job: int | None = None
    ticket: Any = None
    then: Callable[[Slot, Any], None] | None = None
    asked: float = 0.0  # when, as of time.monotonic()
    has: dict[str, str] = field(default_factory=dict)  # digests of its copies, by path
    shipped: bool = False  # images were sent


@dataclass
class NodeState:
    """A node and what is known of it."""

    node: Node
    accepted: bool = False
    refused: str = ""
    most: int | None = None  # slots that it may have, after a GPU had too little memory or went


class ClusterPool:
    """At most `size` trainings at a time (0: as many as the cluster has cores, or GPUs by
    `per_gpu`).

    `images`: of the jobs, as their words have them; `ready`: words of the first job on each node;
    `device`: cpu, or cuda (or another kind that shares); `amp`: its 16 bits; `label`: the resource
    of the nodes that time, "" for this machine; `say` gets lines; after `deadline`
    (time.monotonic()) nothing waits for nodes.
    """

    compilers = 1  # networks that are compiled at a time before they are timed

    def __init__(
        self,
        cluster: Cluster,
        images: Mapping[str, Any],
        ready: Message,
        say: Callable[[str], None],
        size: int = 0,
        device: str = "cpu",
        amp: str = "no",
        label: str = "",
        per_gpu: int = 1,
        program: tuple[str, ...] = PROGRAM,
        deadline: float = math.inf,
    ) -> None:
        self.cluster, self.images, self.first, self.say = cluster, images, ready, say
        self.most, self.device, self.amp = size, device, amp
        self.label, self.per_gpu, self.program = label, per_gpu, program
        self.deadline = deadline
        self.nodes: dict[str, NodeState] = {}
        self.slots: list[Slot] = []
        self.jobs: dict[int, Begun] = {}
        self.queue: deque[int] = deque()  # jobs that wait for a slot
        self.avoid: dict[int, str] = {}  # the node on which a job failed
        self.losses: dict[int, int] = {}
        self.messages: list[tuple[int, Message]] = []
        self.stored: dict[str, Any] = {}  # contents that calls may have as a word, by digest
        self.looked = 0.0
        self.untimed = time.monotonic()  # since when no node times
        self.timing = None if label else Pool(1, 0, program)
        try:
            if label and not any(node.resources.get(label) for node in cluster.nodes()):
                raise CanvasError(
                    f"no node of the cluster has the resource '{label}', so that nothing can be "
                    f"timed: start one with --resources='{{\"{label}\": 1}}', or leave "
                    "--timing-on out to time on this machine"
                )
            self._await_slot()
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> ClusterPool:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    @property
    def size(self) -> int:
        """Trainings that can run now."""
        return max(1, sum(slot.ready and not slot.timing for slot in self.slots))

    # ---- as an executor -------------------------------------------------------------------------

    def busy(self) -> list[int]:
        """The jobs that are under way, also those that wait for a slot."""
        here = self.timing.busy() if self.timing else []
        return [*here, *(slot.job for slot in self.slots if slot.job is not None), *self.queue]

    def has_room(self) -> bool:
        if self.queue:
            return False
        if self._idle() is None and not self.busy():
            self._await_slot()
        return self._idle() is not None

    def start(self, job: int, words: Message, limit: float, preferred: Any = None) -> None:
        """Begin a job: on a node, or where networks are timed."""
        if words.get("layers") and words["kind"] not in TIMED:
            timed = {**words["layers"], "kind": "layers", "pack": words["pack"]}
            timed |= {name: words[name] for name in ("path", "deterministic") if name in words}
            self.jobs[job] = Begun({**timed, "training": words}, limit)
        else:
            self.jobs[job] = Begun(words, limit)
        self.queue.append(job)
        self._begin_queued()

    def answer(self, job: int, go: bool) -> None:
        """Tell a job that waits for a verdict whether to go on; one that has failed meanwhile does
        not hear it.
        """
        known = self.jobs.get(job)
        if known is not None and known.answered(go):
            for slot in self.slots:
                if slot.job == job and slot.ticket is None:
                    self._ask(slot, self._heard, "go", job, go)

    def stop(self, job: int) -> float:
        """End a job at once, without a message."""
        self._forget(job)
        self.messages = [(other, message) for other, message in self.messages if other != job]
        if job in self.queue:
            self.queue.remove(job)
        for slot in [slot for slot in self.slots if slot.job == job]:
            self._remove(slot)
        return self.timing.stop(job) if self.timing else 0.0

    def wait(self, seconds: float) -> list[tuple[int, Message]]:
        """The messages of jobs that the driver does not know yet."""
        self._look()
        self._begin_queued()
        until = time.monotonic() + seconds
        while not self.messages:
            self._check_timing()
            if not self._trains() and any(self._needs_node(job) for job in self.queue):
                self._await_slot()
            left = max(0.0, until - time.monotonic())
            timed = self.timing is not None and bool(self.timing.busy())
            if timed and self.timing is not None:
                waits = any(slot.ticket for slot in self.slots)
                self._hear_timing(self.timing.wait(min(left, 0.1) if waits else left))
            self._take(0.0 if timed else left)
            self._begin_queued()
            if time.monotonic() >= until:
                break
        told, self.messages = self.messages, []
        return told

    def close(self) -> None:
        """End all jobs and leave the cluster."""
        if self.timing is not None:
            self.timing.close()
        self.slots.clear()
        self.cluster.close()

    # ---- nodes ----------------------------------------------------------------------------------

    def _look(self) -> None:
        """See which nodes are there, and make slots on them; at most every LOOK seconds."""
        if time.monotonic() < self.looked + LOOK:
            return
        there = {node.id: node for node in self.cluster.nodes()}
        self.looked = time.monotonic()
        for node in there.values():
            state = self.nodes.setdefault(node.id, NodeState(node))
            if not state.refused:
                self._make_slots(state)
        for slot in list(self.slots):
            if slot.node.id not in there:
                self._lost(slot, "its node has left the cluster")
            elif slot.ready and slot.ticket and time.monotonic() > slot.asked + POLL + SILENT:
                self._lost(slot, f"it did not answer for {POLL + SILENT:.0f} s")

    def _make_slots(self, state: NodeState) -> None:
        """Make the slots that a node lacks: one first, all once that was accepted."""
        own = [slot for slot in self.slots if slot.node.id == state.node.id]
        for timing in (False, True):
            wanted = self._slots_of(state.node, timing)
            if not state.accepted:
                wanted = min(wanted, 0 if own else 1)
            for _ in range(wanted - sum(slot.timing == timing for slot in own)):
                count = sum(not slot.timing for slot in self.slots)
                if not timing and self.most and count >= self.most:
                    break
                if state.most is not None and len(own) >= state.most:
                    break
                slot = Slot(state.node, self._host(state.node, timing), timing)
                self.slots.append(slot)
                own.append(slot)
                self._ask(slot, self._met, "hello")

    def _slots_of(self, node: Node, timing: bool) -> int:
        resources = node.resources
        if self.label and bool(resources.get(self.label)) != timing:
            return 0  # a node that times does nothing else
        if timing:
            return int(bool(self.label))
        if self.device != "cpu":
            return int(resources.get("GPU", 0)) * self.per_gpu
        return int(resources.get("CPU", 0))

    def _host(self, node: Node, timing: bool) -> Any:
        held: dict[str, float] = {"CPU": 1}
        if timing:
            held[self.label] = LEAST
        elif self.device != "cpu":
            held["GPU"] = 1 / self.per_gpu
        beside = 0 if self.device == "cuda" else max(1, self._slots_of(node, timing))
        words = {"program": self.program, "beside": beside}
        return self.cluster.place(node, held, words)

    def _await_slot(self) -> None:
        """Wait until a training can begin; raises CanvasError where no node can do it."""
        began, told = time.monotonic(), False
        while self._idle() is None:
            self._look()
            self._take(0.5)
            waited = time.monotonic() - began
            met = any(slot.met for slot in self.slots if not slot.timing)
            late = waited > (FIRST_JOB if met else JOINING) or time.monotonic() > self.deadline
            refused = all(
                state.refused or not self._slots_of(state.node, False)
                for state in self.nodes.values()
            )
            if not self._trains() and (late or (self.nodes and refused and not self._grows())):
                self._nowhere()
            if not told and waited > QUIET:
                self.say("waiting for nodes of the cluster")
                told = True

    def _check_timing(self) -> None:
        """Raise CanvasError where a job waits for a node that times and none has come back."""
        there = any(slot.ready and slot.timing for slot in self.slots)
        if not self.label or there or not any(self._is_timed(job) for job in self.queue):
            self.untimed = time.monotonic()
        elif time.monotonic() > self.untimed + JOINING:
            raise CanvasError(
                f"no node with the resource '{self.label}' is there any more, so that nothing can "
                f"be timed; {NOTHING_LOST}"
            )

    def _is_timed(self, job: int) -> bool:
        return self.jobs[job].words["kind"] in TIMED

    def _grows(self) -> bool:
        """Whether a node without a slot for trainings may be followed by others."""
        return not any(state.refused for state in self.nodes.values()) and not self.label

    def _trains(self) -> bool:
        """Whether there is a host for trainings."""
        return any(slot.ready and not slot.timing for slot in self.slots)

    def _nowhere(self) -> None:
        """Raise CanvasError with what is known of the nodes."""
        reasons = {}
        for state in self.nodes.values():
            own = [slot for slot in self.slots if slot.node.id == state.node.id]
            if state.refused:
                reasons[state.refused] = state.node.address
            elif self.label and state.node.resources.get(self.label):
                why = f"it has the resource '{self.label}' and does nothing but time"
                reasons[why] = state.node.address
            elif any(slot.met for slot in own):
                why = "its first job, which reads the data and builds the network, has not ended"
                reasons[why] = state.node.address
        free = "core" if self.device == "cpu" else "GPU"
        why = "; ".join(f"{address}: {why}" for why, address in reasons.items())
        why = why or f"none of {len(self.nodes)} nodes has a free {free}"
        raise CanvasError(f"no node of the cluster can do the work: {why}; {NOTHING_LOST}")

    # ---- a node that joins ----------------------------------------------------------------------

    def _met(self, slot: Slot, text: str) -> None:
        """A host has described itself."""
        slot.met = True
        facts = json.loads(text)
        slot.gpus = facts["gpus"]
        state = self.nodes[slot.node.id]
        if state.accepted:
            slot.ready = True
            return
        ours = {name: versions()[name] for name in ("canvas", "torch")}
        for name, version in ours.items():
            if _public(facts[name]) != _public(version):
                self._refuse(state, f"it has {name} {facts[name]}, this machine {version}")
                return
        if facts["sources"] != sources():
            self._refuse(state, "its canvas has other files than that of this machine")
        elif "folder" in self.images:
            self._ask(slot, self._has_images, "has_images", dict(self.images))
        else:
            self._try(slot)

    def _has_images(self, slot: Slot, why: str) -> None:
        if not why:
            self._try(slot)
        elif why == "lacks" and not slot.shipped:
            slot.shipped = True
            for name, start, data in self._parts():
                self.cluster.call(slot.host, "take_images", self.images["seal"], name, start, data)
            self._ask(slot, self._has_images, "has_images", dict(self.images))
        else:
            why = "the images that it was sent are damaged" if why == "lacks" else why
            self._refuse(self.nodes[slot.node.id], why)

    def _parts(self) -> Iterable[tuple[str, int, Any]]:
        """The files of the stored images in parts that all nodes share."""
        for path in sorted(Path(self.images["folder"]).iterdir()):
            if path.suffix not in (".npy", ".json"):
                continue
            with open(path, "rb") as file:
                start = 0
                while (data := file.read(PART)) or not start:
                    yield path.name, start, self._stored(data)
                    start += len(data)
                    if not data:
                        break

    def _stored(self, data: bytes) -> Any:
        digest = digest_of(data)
        if digest not in self.stored:
            self.stored[digest] = self.cluster.store(data)
        return self.stored[digest]

    def _try(self, slot: Slot) -> None:
        """A first job, which shows whether trainings can run on the node."""
        words = {**self.first, "kind": "ready", **self._device_words(slot)}
        copies = self._copied(slot, words)
        self._ask(slot, self._tried, "work", 0, json.dumps(words), READY_LIMIT, copies)

    def _tried(self, slot: Slot, heard: list[tuple[str, Any]]) -> None:
        for text, _ in heard:
            message = json.loads(text)
            state = self.nodes[slot.node.id]
            if message["event"] == "failed":
                self._refuse(state, str(message["reason"]))
            else:
                state.accepted = slot.ready = True
                count = self._slots_of(state.node, slot.timing)
                what = "times networks" if slot.timing else f"up to {count} trainings at a time"
                self.say(f"node {state.node.address}: {what}")
                self._make_slots(state)
            return
        self._ask(slot, self._tried, "more")

    def _refuse(self, state: NodeState, why: str) -> None:
        """Leave a node alone from now on."""
        if not state.refused:
            state.refused = why
            self.say(f"node {state.node.address} is not used: {why}")
        for slot in [slot for slot in self.slots if slot.node.id == state.node.id]:
            self._again(slot)
            self._remove(slot)

    # ---- jobs -----------------------------------------------------------------------------------

    def _idle(self, timing: bool = False, avoid: str = "") -> Slot | None:
        free = [s for s in self.slots if s.ready and s.job is None and s.timing == timing]
        others = [slot for slot in free if slot.node.id != avoid]
        if avoid and not others and len({s.node.id for s in self.slots if s.ready}) > 1:
            return None  # another node will be free
        return next(iter(others or free), None)

    def _begin_queued(self) -> None:
        """Begin what waits, each job where it belongs."""
        for job in list(self.queue):
            timed = self._is_timed(job)
            if self.timing is not None and timed:
                if self.timing.has_room():
                    self.queue.remove(job)
                    self.jobs[job].begin("")
                    self.timing.start(job, self._told_words(job), self.jobs[job].limit)
            elif (slot := self._idle(timed, self.avoid.get(job, ""))) is not None:
                self.queue.remove(job)
                self._begin(slot, job)

    def _needs_node(self, job: int) -> bool:
        return not self._is_timed(job)

    def _told_words(self, job: int) -> Message:
        words = self.jobs[job].words
        return {name: value for name, value in words.items() if name != "training"}

    def _begin(self, slot: Slot, job: int) -> None:
        known = self.jobs[job]
        known.begin(slot.node.id)
        slot.job = job
        words = {**self._told_words(job), **self._device_words(slot)}
        copies = self._copied(slot, words)
        self._ask(slot, self._heard, "work", job, json.dumps(words), known.limit, copies)

    def _copied(self, slot: Slot, words: Message) -> dict[str, str]:
        """The digests, by path, of the files that a job may read, which its host has now."""
        digests = {}
        for path, data in contents_of(words).items():
            digests[path] = digest = digest_of(data)
            if slot.has.get(path) != digest:
                self.cluster.call(slot.host, "take_file", path, digest, self._stored(data))
                slot.has[path] = digest
        return digests

    def _device_words(self, slot: Slot) -> Message:
        """Where a job of this slot runs: a host sees its own GPU alone."""
        if slot.timing or self.device == "cpu":
            return {"device": "cpu", "amp": self.amp}
        return {"device": f"{self.device}:0", "amp": self.amp}

    def _heard(self, slot: Slot, heard: list[tuple[str, dict[str, bytes]]]) -> None:
        """Messages of the job of a host have come."""
        job = slot.job
        assert job is not None
        waits = False
        for text, files in heard:
            message = json.loads(text)
            known = self.jobs[job]
            if message["event"] == "failed" and self._node_failed(slot, job, message):
                return
            for path, data in files.items():
                slot.has[path] = digest_of(data)
                _write(Path(path), data)
            waits = message["event"] in WAITING
            sent: list[bool] = []
            if known.is_new(message, sent.append):
                self.messages.append((job, message))
            if sent:
                self._ask(slot, self._heard, "go", job, sent[0])
                return
            if message["event"] in ENDS:
                slot.job = None
                self._forget(job)
                if known.words.get("training") is not None:
                    self._timed(job, known, message)
                return
        if not waits:
            self._ask(slot, self._heard, "more")

    def _hear_timing(self, told: list[tuple[int, Message]]) -> None:
        for job, message in told:
            known = self.jobs[job]
            self.messages.append((job, message))
            if message["event"] in ENDS:
                self._forget(job)
                if known.words.get("training") is not None:
                    self._timed(job, known, message)

    def _timed(self, job: int, known: Begun, message: Message) -> None:
        """The layers of a training are timed: it can begin; a failure is that of the training."""
        if message["event"] == "done":
            self.messages.remove((job, message))
            layers = {name: message[name] for name in ("share", "missing")}
            self.jobs[job] = Begun(
                {**known.words["training"], "timed_layers": layers}, known.limit
            )
            self.queue.append(job)

    def _forget(self, job: int) -> None:
        for facts in (self.jobs, self.avoid, self.losses):
            facts.pop(job, None)

    def _node_failed(self, slot: Slot, job: int, message: Message) -> bool:
        """Whether a failure may be the node's, so that the job is begun again elsewhere."""
        kind, reason = str(message["kind"]), str(message["reason"])
        beside = [
            other for other in self.slots
            if other is not slot and other.node.id == slot.node.id and other.gpus == slot.gpus
        ]  # fmt: skip
        if kind == LOST_DATA:
            self._refuse(self.nodes[slot.node.id], reason)
        elif kind == GONE:
            self.say(f"a GPU of node {slot.node.address} does not answer any more: {reason}")
            for other in [slot, *beside]:
                self._again(other)
                self._remove(other, gone=True)
        elif kind == FULL and beside:
            self.say(f"a GPU of node {slot.node.address} ran out of memory: one training less")
            self._again(slot)
            self._remove(slot, gone=True)
        elif kind == FULL:
            message |= {"kind": "out_of_memory", "reason": f"alone on its GPU: {reason}"}
            return False
        elif kind in ("timeout", "crashed(SIGKILL)") and job not in self.avoid:
            if len({other.node.id for other in self.slots if other.ready}) < 2:
                return False
            self.avoid[job] = slot.node.id
            self._again(slot)
            slot.job = None
        else:
            return False
        return True

    def _again(self, slot: Slot) -> None:
        """The job of a slot, if it has one, is to be begun again."""
        if slot.job is not None and slot.job in self.jobs:
            self.queue.append(slot.job)
            slot.job = None

    def _lost(self, slot: Slot, why: str) -> None:
        """A host is gone, and perhaps all of its node."""
        if slot not in self.slots:
            return
        job = slot.job
        if slot.ready or job is not None:
            again = "" if job is None else ", its training begins again elsewhere"
            self.say(f"a worker on node {slot.node.address} is lost ({why}){again}")
        if job is not None:
            self.losses[job] = self.losses.get(job, 0) + 1
            if self.losses[job] >= LOSSES:
                reason = f"{LOSSES} workers were lost while it ran, the last: {why}"
                message = {"event": "failed", "kind": "crashed", "reason": reason, "log": ""}
                self.messages.append((job, message))
                self._forget(job)
                slot.job = None
        self._again(slot)
        self._remove(slot)

    def _remove(self, slot: Slot, gone: bool = False) -> None:
        """End a host; another one follows it unless it is `gone` for good."""
        if slot not in self.slots:
            return
        self.slots.remove(slot)
        slot.job = slot.ticket = None
        self.cluster.end(slot.host)
        self.looked = 0.0
        if gone:
            left = sum(other.node.id == slot.node.id for other in self.slots)
            self.nodes[slot.node.id].most = left
            if not left:
                self.nodes[slot.node.id].refused = "none of its GPUs answers any more"

    # ---- calls ----------------------------------------------------------------------------------

    def _ask(
        self, slot: Slot, then: Callable[[Slot, Any], None], method: str, *words: Any
    ) -> None:
        slot.ticket = self.cluster.call(slot.host, method, *words)
        slot.then, slot.asked = then, time.monotonic()

    def _take(self, seconds: float) -> None:
        """Take the results that come within `seconds`, or as soon as one is there."""
        waiting = {slot.ticket: slot for slot in self.slots if slot.ticket is not None}
        if not waiting:
            if seconds:
                time.sleep(min(seconds, 0.2))
            return
        for ticket in self.cluster.answered(list(waiting), seconds):
            slot = waiting[ticket]
            if slot not in self.slots or slot.ticket != ticket:
                continue
            slot.ticket, then = None, slot.then
            try:
                value = self.cluster.result(ticket)
            except HostLost as error:
                self._lost(slot, str(error))
            except HostFailed as error:
                self._refuse(self.nodes[slot.node.id], str(error))
            else:
                assert then is not None
                then(slot, value)


def _public(version: str) -> str:
    """A version without what it was built for: 2.13.0+cpu and 2.13.0+cu126 compute the same."""
    return version.partition("+")[0]


def _write(path: Path, data: bytes) -> None:
    """A file that a job left; one that cannot be written is made again one day."""
    with suppress(OSError), at_once(path, through_link=False) as file:
        file.write(data)
