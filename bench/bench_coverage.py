"""Which share of a network's MACs is in layers that kernels can replace.

    ./dev bench coverage [--size N] [--json] [--record] [NAME...]

A NAME is a model of torchvision or, with "timm:" before it, of timm; without any, the models of
docs/reports/coverage.md are taken. Weights are random. `share` is that of `canvas.convert` as it
is, `spatial` with policy="spatial", `linear` with linear=True, `all` with depthwise=True and
policy="all", too. `left` are the reasons of the largest layers that stay, with their share. The
models need `pip install --no-deps -r bench/requirements-zoo.txt`.
"""

from __future__ import annotations

import json
import warnings
from typing import Any

import harness
import torch
from bench_zoo import SIZES, load

import canvas

NAMES = """
resnet18 resnet34 resnet50 wide_resnet50_2 resnext50_32x4d regnet_x_800mf regnet_y_400mf vgg16_bn
alexnet densenet121 densenet161 googlenet inception_v3 mobilenet_v2 mobilenet_v3_large mnasnet1_0
shufflenet_v2_x1_0 squeezenet1_1 timm:ghostnet_100 efficientnet_b0 efficientnet_v2_s convnext_tiny
swin_t vit_b_16 timm:vit_base_patch16_224 timm:nfnet_l0 timm:repvgg_a0 timm:cspdarknet53 timm:dla34
timm:resnetv2_50 timm:hrnet_w18_small timm:mobilenetv4_conv_small timm:mixnet_s fcn_resnet50
deeplabv3_mobilenet_v3_large
""".split()  # noqa: SIM905
CHOICES: dict[str, dict[str, Any]] = {
    "share": {},
    "spatial": {"policy": "spatial"},
    "linear": {"linear": True},
    "all": {"linear": True, "depthwise": True, "policy": "all"},
}
SEGMENTATION = ("fcn_resnet50", "deeplabv3_mobilenet_v3_large")  # their parts have weights, too
SHOWN = 2  # reasons


def rows_of(name: str, size: int) -> dict[str, Any]:
    """The shares of one model, in percent; 0 where nothing is replaced."""
    more = {"weights_backbone": None} if name in SEGMENTATION else {}
    model = load(name, **more).eval().to("meta")
    example = torch.zeros(1, 3, size, size, device="meta")
    row: dict[str, Any] = {"model": name.removeprefix("timm:"), "left": ""}
    for choice, options in CHOICES.items():
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                found = canvas.convert(model, example, **options)
        except canvas.CanvasError as error:
            row[choice] = 0.0
            row.setdefault("why", str(error))
            continue
        row[choice] = 100 * found.covered
        row["gmacs"] = found.macs / 1e9
        if choice == "share":
            row["left"] = left(found)
    return row


def left(found: Any) -> str:
    """Why the largest layers stay, each reason with its share of the network's MACs."""
    lost: dict[str, int] = {}
    for layer in found.table:
        if layer.status != "replaced":
            reason = kind(layer.reason)
            lost[reason] = lost.get(reason, 0) + layer.macs
    lost["no convolution"] = found.macs - sum(layer.macs for layer in found.table)
    most = sorted(lost.items(), key=lambda item: -item[1])[:SHOWN]
    shares = [(reason, 100 * macs / found.macs) for reason, macs in most]
    return ", ".join(f"{reason} {share:.1f}" for reason, share in shares if share >= 0.1)


def kind(reason: str) -> str:
    """A reason without the numbers of its layer."""
    for word, short in (
        ("first", "first convolution"), ("depth-wise", "depth-wise"), ("one pixel", "one pixel"),
        ("common divisor", "common divisor"), ("reach", "not reached"),
    ):  # fmt: skip
        if word in reason:
            return short
    return reason


def line(row: dict[str, Any]) -> str:
    shares = "  ".join(f"{row[choice]:5.1f}" for choice in CHOICES)
    return f"{row['model']:32} {row.get('gmacs', 0):7.2f}  {shares}  {row['left']}"


def main() -> None:
    parser = harness.parser(__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME")
    parser.add_argument("--size", type=int, default=224, metavar="N")
    given = parser.parse_args()
    recorder = harness.Recorder("coverage", given.record)
    for name in given.names or NAMES:
        try:
            row = rows_of(name, SIZES.get(name, given.size))
        except (ImportError, RuntimeError, ValueError) as error:  # no library, no such model
            print(f"{name}: {error}", flush=True)
            continue
        print(json.dumps(row) if given.json else line(row), flush=True)
        columns = {"GMACs": ("gmacs", ""), **{choice: (choice, "%") for choice in CHOICES}}
        recorder.add("coverage", row["model"], harness.pick(row, columns), {})


if __name__ == "__main__":
    harness.run(main)
