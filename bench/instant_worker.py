"""A worker whose trainings take no time: python instant_worker.py DRIVER MEMORY

It speaks as canvas.workers.worker does; accuracies follow from the text of the kernel.
"""

import hashlib
import json
import sys


def tell(event: str, **facts: object) -> None:
    print(json.dumps({"event": event, **facts}), flush=True)


def main() -> None:
    for line in sys.stdin:
        job = json.loads(line)
        if job["kind"] == "ready":
            tell("done")
            continue
        tell("built", macs=1000, params=100, memory_format="contiguous")
        digest = hashlib.sha256(str(job["pack"]).encode()).digest()
        go = True
        for number in range(job.get("until") or job["epochs"]):
            accuracy = digest[number % 32] / 256
            tell("epoch", number=number, accuracy=accuracy, loss=1.0, seconds=0.1, processor=0.1)
            go = json.loads(sys.stdin.readline())["go"]
            if not go:
                break
        tell("done" if go else "stopped")


main()
