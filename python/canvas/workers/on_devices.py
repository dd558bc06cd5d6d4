"""Trainings on devices: which one each runs on, and how many share a device.

    Pool or InProcess  <-  OnDevices  <-  the driver, which sees jobs alone

One training runs on a device until it has told how much memory it takes; then as many share it as
fit.  Where memory runs out after all, fewer share the device from then on, and the training is
done again: what it had said before is not passed on twice.  The jobs of a device that does not
answer any more go to the others.  A training that is alone on its device and has too little memory
has failed.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

from ..devices import Device
from ..errors import CanvasError
from .begun import ENDS, Begun
from .pool import Executor, Message

FULL, GONE = "out_of_device_memory", "device_lost"
USED = 0.9  # of a device's memory that trainings may take
TRAINING = "accuracy"  # the kind of job that runs on a device


class OnDevices:
    """An executor whose trainings run on `devices`; `say` gets a line about what was noticed."""

    def __init__(
        self,
        pool: Executor,
        devices: Sequence[Device],
        amp: str,
        say: Callable[[str], None],
    ) -> None:
        self.pool, self.size = pool, pool.size
        self.devices = {device.name: device for device in devices}
        self.amp, self.say = amp, say
        # How many may run on each.
        self.share = {name: 1 if one.shared else pool.size for name, one in self.devices.items()}
        self.measured: set[str] = set()
        self.jobs: dict[int, Begun] = {}
        self.waiting: deque[int] = deque()  # jobs to be begun again

    @property
    def compilers(self) -> int:
        return self.pool.compilers

    def __enter__(self) -> OnDevices:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def busy(self) -> list[int]:
        """The jobs that are under way, also those that wait to be begun again."""
        return [*self.pool.busy(), *self.waiting]

    def has_room(self) -> bool:
        return not self.waiting and self.pool.has_room() and self._free() is not None

    def start(self, job: int, words: Message, limit: float, preferred: Any = None) -> Any:
        """Begin a job, a training on the device with the fewest of them."""
        if words["kind"] != TRAINING:
            return self.pool.start(job, words, limit, preferred)
        device = self._free()
        assert device is not None
        self.jobs[job] = Begun(words, limit)
        return self._begin(job, device)

    def answer(self, job: int, go: bool) -> None:
        if job not in self.jobs or self.jobs[job].answered(go):
            self.pool.answer(job, go)

    def stop(self, job: int) -> float:
        self.jobs.pop(job, None)
        if job in self.waiting:
            self.waiting.remove(job)
            return 0.0
        return self.pool.stop(job)

    def close(self) -> None:
        """End all jobs."""
        self.pool.close()

    def wait(self, seconds: float) -> list[tuple[int, Message]]:
        """What the jobs said that the driver does not know yet."""
        while self.waiting and self.pool.has_room() and (device := self._free()) is not None:
            self._begin(self.waiting.popleft(), device)
        passed = []
        for job, message in self.pool.wait(seconds):
            if self._hear(job, message):
                passed.append((job, message))
        return passed

    # ---- devices --------------------------------------------------------------------------------

    def _running(self, device: str) -> list[int]:
        return [job for job in self.pool.busy() if job in self.jobs
                and self.jobs[job].place == device]  # fmt: skip

    def _free(self) -> str | None:
        """The device with room that has the fewest trainings."""
        counts = {name: len(self._running(name)) for name in self.devices}
        free = [name for name, count in counts.items() if count < self.share[name]]
        return min(free, key=lambda name: counts[name], default=None)

    def _begin(self, job: int, device: str) -> Any:
        known = self.jobs[job]
        known.begin(device)
        words = {**known.words, "device": device, "amp": self.amp}
        return self.pool.start(job, words, known.limit)

    # ---- what a training says -------------------------------------------------------------------

    def _hear(self, job: int, message: Message) -> bool:
        """Whether the driver shall know."""
        known = self.jobs.get(job)
        if known is None:
            return True
        event = message["event"]
        if event == "epoch":
            self._measure(known.place, int(message.get("memory", 0)))
        if event == "failed" and message.get("kind") in (FULL, GONE):
            return self._device_failed(job, known, message)
        if not known.is_new(message, lambda go: self.pool.answer(job, go)):
            return False
        if event in ENDS:
            del self.jobs[job]
        return True

    def _measure(self, device: str, peak: int) -> None:
        """How many fit, from the first training that told what it takes."""
        if device in self.measured or not peak or device not in self.devices:
            return
        try:
            total = self.devices[device].memory()[1]
        except RuntimeError:  # it is gone: its trainings will tell
            return
        self.measured.add(device)
        self.share[device] = max(1, min(self.pool.size, int(USED * total / peak)))
        if self.share[device] > 1:
            self.say(f"{device}: {self.share[device]} trainings at a time, {_size(peak)} each")

    def _device_failed(self, job: int, known: Begun, message: Message) -> bool:
        device = known.place
        beside = len(self._running(device))  # without this one, which has ended
        if message["kind"] == GONE:
            if device in self.devices:
                del self.devices[device]
                self.say(f"{device} does not answer any more: {message['reason']}")
            if not self.devices:
                raise CanvasError(
                    f"no device is left: {message['reason']}; what is done is kept, the same "
                    "command goes on, also with another --device"
                )
        elif not beside:
            message |= {"kind": "out_of_memory", "reason": f"alone on {device}: "
                        f"{message['reason']}"}  # fmt: skip
            del self.jobs[job]
            return True
        elif self.share[device] > beside:
            self.share[device] = beside
            self.measured.add(device)
            self.say(f"{device} ran out of memory: {beside} trainings at a time from now on")
        self.waiting.append(job)
        return False


def _size(count: int) -> str:
    for unit in ("bytes", "KB", "MB"):
        if count < 1000:
            return f"{count} {unit}"
        count //= 1000
    return f"{count} GB"
