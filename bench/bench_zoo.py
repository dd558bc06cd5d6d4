"""Models that other people wrote, of torchvision and timm, against onnxruntime and OpenVINO.

    ./dev bench zoo [--size N] [--rounds N] [NAME...]

One image, fp32, one thread, default schedules. A NAME is a model of torchvision or, with "timm:"
before it, of timm; without any, all models of docs/reports/whole-networks.md are taken. Weights
are random; statistics of normalisations are as training leaves them. Every model has a process
of its own, in which the engines take turns as in `./dev bench network` after a comparison with
double precision. `compiled` is canvas.compile with an empty cache, PyTorch's export included.
The models need `pip install --no-deps -r bench/requirements-zoo.txt`, the peers
bench/requirements-network.txt.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
import types
from pathlib import Path
from typing import Any

import harness

NAMES = """
alexnet convnext_tiny densenet121 efficientnet_b0 googlenet inception_v3 maxvit_t mnasnet1_0
mobilenet_v3_large mobilenet_v3_small regnet_y_400mf resnet50 resnext50_32x4d shufflenet_v2_x1_0
squeezenet1_1 swin_t vit_b_16 timm:coatnet_nano_rw_224 timm:convmixer_768_32 timm:cspresnet50
timm:darknet53 timm:deit_tiny_patch16_224 timm:dla34 timm:edgenext_small timm:efficientformer_l1
timm:ese_vovnet19b_dw timm:fastvit_t8 timm:ghostnet_100 timm:hrnet_w18_small timm:levit_128
timm:mixer_s32_224 timm:mobileone_s0 timm:mobilevit_s timm:nfnet_l0 timm:pit_ti_224
timm:poolformer_s12 timm:repvgg_a0 timm:res2net50_26w_4s timm:resnetv2_50 timm:skresnet18
timm:tf_efficientnetv2_b0 timm:xcit_nano_12_p16_224
""".split()  # noqa: SIM905
SIZES = {"inception_v3": 299}
LIMIT = 600  # seconds of one model
Row = dict[str, Any]


# ---- one model, in a process of its own --------------------------------------------------------


def load(name: str, **options: Any) -> Any:
    """torchvision's own operators are defined but not loaded: those of CUDA builds fail."""
    import torch

    library = torch.library.Library("torchvision", "FRAGMENT")
    for operator in ("nms", "qnms"):
        try:
            library.define(f"{operator}(Tensor boxes, Tensor scores, float threshold) -> Tensor")
        except RuntimeError:
            pass  # they are there
    torch.manual_seed(0)
    if name.startswith("timm:"):
        import timm

        return timm.create_model(name.removeprefix("timm:"), pretrained=False)
    from torchvision.models import get_model

    return get_model(name, weights=None, **options)


def lively(model: Any) -> Any:
    """Random values where weights begin as zeros, as in the last layer of some."""
    import torch
    from network_cases import trained

    random = torch.Generator().manual_seed(3)
    with torch.no_grad():
        for weight in model.parameters():
            if not weight.any():
                weight.normal_(0, 0.02, generator=random)
    return trained(model).eval()


def measure(name: str, size: int, rounds: int) -> Row:
    import torch
    from harness import spread
    from network_worker import PEERS as ENGINES
    from network_worker import native, prepared, ratios, turns

    torch.set_num_threads(1)
    row: Row = {"name": name, "size": size, "errors": {}, "difference": {}}
    model = lively(load(name))
    image = torch.randn(1, 3, size, size, generator=torch.Generator().manual_seed(1))
    peers = {name: ENGINES[name] for name in PEERS}
    with torch.no_grad(), tempfile.TemporaryDirectory() as folder:
        os.environ["CANVAS_CACHE"] = f"{folder}/cache"
        start = time.perf_counter()
        native(None)(model, image, 1, Path(folder))
        row["compiled"] = time.perf_counter() - start
        options = types.SimpleNamespace(log=None, winograd=False, threads=1, folder=folder)
        engines = prepared(model, image, row, options, peers=peers)
        times = turns(engines, time.process_time, rounds)
    for engine, seconds in times.items():
        row[f"{engine} ms"] = 1e3 * statistics.median(seconds)
        row[f"{engine} spread"] = 1e3 * spread(seconds)
    rivals = [peer for peer in PEERS if peer in times]
    if "canvas" in times and rivals:
        values = ratios(times, rivals, "canvas")
        row["ratio"], row["ratio spread"] = statistics.median(values), spread(values)
    return row


# ---- all of them -------------------------------------------------------------------------------

PEERS = ("onnxruntime", "openvino")


def of_process(name: str, options: argparse.Namespace) -> Row:
    size = options.size or SIZES.get(name, 224)
    command = [sys.executable, __file__, "--one", name, "--size", str(size)]
    setting = {**os.environ, "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
    try:
        done = subprocess.run(
            [*command, "--rounds", str(options.rounds)],
            env=setting, capture_output=True, text=True, timeout=LIMIT,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return {"name": name, "size": size, "errors": {"model": f"not done in {LIMIT} s"}}
    lines = [line for line in done.stdout.splitlines() if line.startswith('{"name"')]
    if lines:
        return json.loads(lines[-1])
    last = (done.stderr.strip().splitlines() or ["no message"])[-1]
    return {"name": name, "size": size, "errors": {"model": last[:300]}}


def line(row: Row) -> str:
    """A row of the report's table."""
    cells = [row["name"], str(row["size"])]
    for engine in ("canvas", *PEERS):
        known = f"{engine} ms" in row
        cells.append(
            f"{row[f'{engine} ms']:.3g} +- {row[f'{engine} spread']:.2g}" if known else "-"
        )
    cells.append(f"{row['ratio']:.2f} +- {row['ratio spread']:.2f}" if "ratio" in row else "-")
    cells.append(f"{row['compiled']:.0f}" if "compiled" in row else "-")
    wrong = "".join(f"\n  {engine}: {why}" for engine, why in row["errors"].items())
    return f"| {' | '.join(cells)} |{wrong}"


def summary(rows: list[Row]) -> str:
    found = sorted(row["ratio"] for row in rows if "ratio" in row)
    if not found:
        return "nothing was compared"
    mean = statistics.geometric_mean(found)
    return (
        f"{len(found)} of {len(rows)} models: {mean:.2f} of the faster "
        f"peer's speed in the geometric mean, median {statistics.median(found):.2f}, least "
        f"{found[0]:.2f}, most {found[-1]:.2f}"
    )


def record(recorder: harness.Recorder, row: Row) -> None:
    engines = ("canvas", *PEERS)
    values: dict[str, tuple[Any, str]] = {name: (row.get(f"{name} ms"), "ms") for name in engines}
    values |= {"ratio": (row.get("ratio"), "times"), "compiled": (row.get("compiled"), "s")}
    spreads = {
        name: row[f"{name} spread"] for name in (*engines, "ratio") if f"{name} spread" in row
    }
    recorder.add("models", row["name"], values, spreads)


def main() -> None:
    parser = harness.parser(__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help="models, all of the report's")
    parser.add_argument("--size", type=int, help="of the square image (224; 299 of Inception)")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--one", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        print(json.dumps(measure(options.one, options.size, options.rounds)), flush=True)
        os._exit(0)  # engines with threads of their own have crashed at the end
    recorder = harness.Recorder("zoo", options.record)
    rows = []
    if not options.json:
        print(f"| model | image | canvas ms | {' | '.join(PEERS)} | ratio | compiled s |")
        print("|---|---|---|---|---|---|---|")
    for name in options.names or NAMES:
        rows.append(of_process(name, options))
        print(json.dumps(rows[-1]) if options.json else line(rows[-1]), flush=True)
        record(recorder, rows[-1])
    if not options.json:
        print(summary(rows))


if __name__ == "__main__":
    harness.run(main)
