"""Clusters without Ray: machines that follow a script, and hosts in threads of this process."""

import json
import queue
import threading
import time
from collections import deque

from canvas.cluster.cluster import HostFailed, HostLost, Node
from canvas.cluster.host import Host, sources
from canvas.environment import versions
from canvas.workers.pool import WAITING

ENDS = ("done", "failed", "stopped")


def node(name, cpus=2, **resources):
    return Node(name, f"10.0.0.{name}", {"CPU": cpus, **resources})


class Ticket(dict):
    """An answer to come; each is itself."""

    __hash__ = object.__hash__
    __eq__ = object.__eq__


class ScriptedHost:
    """`says`: lists of messages by job, one list for each time that it is begun."""

    def __init__(self, cluster, node):
        self.cluster, self.node = cluster, node
        self.dead = False
        self.left = deque()
        self.taken, self.parts = {}, []

    def hello(self):
        facts = {name: versions()[name] for name in ("canvas", "torch")}
        facts |= {"sources": sources(), "gpus": "", "name": "n", "processor": "p"}
        return json.dumps(facts | self.cluster.facts.get(self.node.id, {}))

    def has_images(self, words):
        return self.cluster.images.get(self.node.id, deque([""])).popleft()

    def take_images(self, *words):
        self.parts.append(words)

    def take_file(self, path, digest, data):
        self.taken[path] = data

    def work(self, job, text, limit, known):
        words = json.loads(text)
        assert set(known) <= set(self.taken)
        if words["kind"] == "ready":
            return [(json.dumps(self.cluster.ready.get(self.node.id, {"event": "done"})), {})]
        self.cluster.begun.append((job, self.node.id, words))
        self.left = deque(self.cluster.says[job].popleft())
        return self.more()

    def go(self, job, verdict):
        self.cluster.verdicts.append((job, verdict))
        if not verdict:
            self.left = deque([{"event": "stopped"}])
        return self.more()

    def more(self):
        """Messages up to the next one that waits, or the last one."""
        told = []
        while self.left:
            message = self.left.popleft()
            if message == "dies":
                self.dead = True
                return told
            if message == "fails":
                raise OSError("No space left on device")
            message = dict(message)
            files = message.pop("files", {})
            told.append((json.dumps(message), files))
            if message["event"] in (*WAITING, *ENDS):
                break
        return told


class Scripted:
    """A cluster whose hosts answer at once, but for those of the nodes in `silent`."""

    def __init__(self, *nodes, says=None):
        self.there = list(nodes)
        self.says = {job: deque(lists) for job, lists in (says or {}).items()}
        self.facts, self.images, self.ready = {}, {}, {}
        self.begun, self.verdicts, self.ended, self.placed = [], [], [], []
        self.silent, self.pending = set(), set()
        self.closed = False

    def nodes(self):
        return list(self.there)

    def place(self, node, resources, arguments):
        host = ScriptedHost(self, node)
        self.placed.append((node.id, dict(resources)))
        return host

    def call(self, host, method, *words):
        ticket = Ticket(host=host)
        try:
            ticket["value"] = None if host.dead else getattr(host, method)(*words)
        except OSError as error:
            ticket["value"] = error
        return ticket

    def store(self, data):
        return data

    def answered(self, tickets, seconds):
        found = [t for t in tickets if t["host"].node.id not in self.silent | self.pending]
        if not found and seconds:
            time.sleep(min(seconds, 0.01))
        return found

    def result(self, ticket):
        if ticket["host"].dead:
            raise HostLost("the actor died")
        if isinstance(ticket["value"], OSError):
            raise HostFailed(str(ticket["value"]))
        return ticket["value"]

    def end(self, host):
        self.ended.append(host.node.id)

    def close(self):
        self.closed = True


class FarHost(Host):
    """A host that does not see the folders of the driver."""

    def has_images(self, words):
        return super().has_images({**words, "folder": "/nowhere"})


class Threads:
    """A cluster of real hosts, each in a thread, with `cache` in the place of the user's."""

    def __init__(self, cache, *nodes, host=FarHost):
        self.cache, self.there, self.Host = cache, list(nodes), host
        self.hosts = []
        self.placed = []

    def nodes(self):
        return list(self.there)

    def place(self, node, resources, arguments):
        host = self.Host(**arguments, cache=str(self.cache / node.id))
        host.calls, host.node = queue.SimpleQueue(), node
        host.thread = threading.Thread(target=self._serve, args=(host,), daemon=True)
        host.thread.start()
        self.hosts.append(host)
        self.placed.append(node.id)
        return host

    def _serve(self, host):
        while (job := host.calls.get()) is not None:
            method, words, answer = job
            try:
                answer["value"] = getattr(host, method)(*words)
            except OSError as error:
                answer["value"] = error
            answer["done"].set()

    def call(self, host, method, *words):
        ticket = Ticket(done=threading.Event())
        host.calls.put((method, words, ticket))
        return ticket

    def store(self, data):
        return data

    def answered(self, tickets, seconds):
        until = time.monotonic() + seconds
        while not (found := [t for t in tickets if t["done"].is_set()]):
            if time.monotonic() > until:
                break
            time.sleep(0.005)
        return found

    def result(self, ticket):
        if isinstance(ticket["value"], OSError):
            raise HostFailed(str(ticket["value"]))
        return ticket["value"]

    def end(self, host):
        if host in self.hosts:
            self.hosts.remove(host)
            host.calls.put(None)
            for child in list(host.pool.children):
                child.process.kill()
            host.thread.join()
            host.close()

    def close(self):
        for host in list(self.hosts):
            self.end(host)
