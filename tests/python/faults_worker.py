"""A worker that trains nothing: it answers at once, as the real one would, with figures that are a
function of the job.  So the driver's side of a fault can be tried hundreds of times.

    python faults_worker.py DRIVER MEMORY      as canvas.workers.worker, see there

With CANVAS_FAULTS its trainings misbehave by turns, see faults_misdeeds.py.
"""

import hashlib
import json
import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parent))

import faults_misdeeds

from canvas import _core
from canvas.errors import one_line
from canvas.workers import worker

BASELINE_MACS = 60064  # of faults_models:build on digits
CONTROLS = (
    *("identity", "pointwise", "depthwise_separable", "spatially_separable", "bottleneck"),
    "grouped",
)


def serve(job, tell, answers):
    try:
        KINDS[job["kind"]](job, tell, answers)
    except Exception as error:
        tell("failed", kind="error", reason=one_line(error), log="")


def train(job, tell, answers):
    pack, seed = job["pack"], job["recipe"]["seed"]
    macs = BASELINE_MACS if pack is None else json.loads(_core.cost(pack))["macs"]
    tell("built", macs=macs, params=macs // 30)
    if is_find(pack) and not job["test"] and (misdeed := faults_misdeeds.next_one()):
        faults_misdeeds.do(misdeed)
    for number in range(job["epochs"]):
        figure = share(pack, seed, number)
        tell("epoch", number=number, accuracy=figure, loss=1 - figure, seconds=0.001)
        verdict = answers.readline()
        if not verdict or not json.loads(verdict)["go"]:
            tell("stopped")
            return
    tell("done", **({"hits": hits(pack, seed)} if job["test"] else {}))


def hits(*what):
    """A bit for each of the 360 test images of digits; they depend on nothing else."""
    return hashlib.sha512(repr(what).encode()).digest()[:45].hex()


def is_find(pack):
    return pack is not None and pack.split()[3] not in CONTROLS


def compile_engines(job, tell, answers):
    each = dict.fromkeys(job["engines"], 0.1)
    tell("done", seconds=each, processor=each)


def time(job, tell, answers):
    figures = {
        "ms": 1.0,
        "spread_ms": 0.1,
        "speedup": 1.0,
        "against": "eager",
        "speedup_spread": 0.1,
        "seconds": 0.1,
        "processor": 0.1,
    }
    tell("done", timed=dict.fromkeys(job["engines"], figures), missing={})


KINDS = {"accuracy": train, "compile": compile_engines, "latency": time}


def share(*what):
    """A number in 0..1 that depends on nothing else."""
    return hashlib.sha256(repr(what).encode()).digest()[0] / 255


worker.serve = serve
sys.exit(worker.main())
