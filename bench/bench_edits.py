"""What single edits gain: the same program before and after one of them, by turns.

    ./dev bench edits [--json] [--rounds N]

Each is timed by `canvas run`, which checks it first: one core, processor time of the thread, the
median of its 30 samples; then the median over the rounds.
"""

from __future__ import annotations

import argparse
import json
import re
import statistics
import subprocess
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from native_programs import Conv, bordered, conv, image

HERE = Path(__file__).resolve().parent


def canvas(*words: str, text: str | None = None) -> str:
    done = subprocess.run(["canvas", *words], input=text, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(done.stderr.strip())
    return done.stdout


@dataclass
class Side:
    program: str
    schedule: str
    values: str = ""

    def seconds(self, folder: Path) -> float:
        (folder / "p.program").write_text(self.program)
        (folder / "s.schedule").write_text(self.schedule)
        words = ["run", str(folder / "p.program"), "--schedule", str(folder / "s.schedule")]
        words += ["--set", self.values] if self.values else []
        found: float = json.loads(canvas(*words, "--json"))["median"]
        return found


def hand(name: str) -> str:
    return (HERE / "native" / f"{name}.schedule").read_text()


def prepare() -> tuple[Side, Side]:
    plain = canvas("operator", "gemm", "m=64", "k=1024", "n=1024")
    packed = canvas("edit", "-", "pack", "B", "as", "BP", "[n/32, k, n%32]", text=plain)
    constant = re.sub(r"^(in B.*)$", r"\1 const", packed, flags=re.M)
    schedule = (
        "bo, bk, bi:vec =>\n    @BP = bo/n_o, bk/k, bi/n_i\n"
        "mo, no, k, mi:8:unroll, ni:32:vec =>\n    @Y = {mo, mi}/m, {no, ni}/n // k\n"
    )
    return Side(packed, schedule), Side(constant, schedule)


def prefetch() -> tuple[Side, Side]:
    program = conv(Conv(64, 56, 64, groups=4, batch=16), 16)
    schedule = hand("conv_points")
    without = schedule.replace(":pf(1)", "")
    return Side(program, without, "wi=14"), Side(program, schedule, "wi=14")


def overlap() -> tuple[Side, Side]:
    program = (
        "canvas 1\nprogram windows\nin X f32 [h:2052, w:2048]\n"
        "A[h:2050, w:2048] = X[h+k, w] // sum k:3\n"
        "Y[h:2048, w:2048] = A[h+k, w] // max k:3\nout Y\n"
    )
    words = ("overlap", "A", "in", "Y", "h", "16", "as", "AO")
    root = (
        "ah, wo, ak:unroll, wi:64:vec =>\n    @A = ah/h, {wo, wi}/w // ak/k\n"
        "h, wo, k:unroll, wi:vec =>\n    @Y = h, {wo, wi}/w // k\n"
    )
    tiled = (
        "ho, wo =>\n"
        "    hb, ak:unroll, wi:64:vec =>\n        @AO = ho/h_o, hb/h_i, {wo, wi}/w // ak/k\n"
        "    hi, k:unroll, wi:vec =>\n        @Y = {ho, hi}/h, {wo, wi}/w // k\n"
    )
    return Side(program, root), Side(canvas("edit", "-", *words, text=program), tiled)


def border() -> tuple[Side, Side]:
    c = Conv(256, 14, 256)
    inside = re.sub(r" \* W\[[^]]*\]", "", bordered(c, "W[o, kh, kw, c, v]"))
    program = (
        f"canvas 1\nprogram conv\n{image(c)}in W f32 [o:8, kh:3, kw:3, c:256, v:32]\n"
        f"Y[n:1, h:14, w:14, o:8, v:32] = ({inside}) * W[o, kh, kw, c, v]"
        " // sum kh:3, kw:3, c:256\nout Y\n"
    )
    schedule = hand("conv_rows")
    edited = canvas("edit", "-", "border", "Y", text=program)
    return Side(program, schedule, "wi=14"), Side(edited, schedule, "wi=14")


EDITS: dict[str, Callable[[], tuple[Side, Side]]] = {
    "`const`: B of gemm 64x1024x1024 is packed by NAME_prepare, before in every call": prepare,
    "`pf(1)`: the rows that the next 14 points of a grouped 3x3 read (64@56, batch 16)": prefetch,
    "`overlap`: a sum and a maximum of 3 rows each, 2048x2048, in tiles of 16 rows": overlap,
    "`border`: 3x3 256@14, its padding is not multiplied": border,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", action="store_true", help="one object per edit")
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    if not options.json:
        print("| edit | before | after | times as fast |\n|---|---|---|---|")
    for name, sides in EDITS.items():
        before, after = sides()
        with tempfile.TemporaryDirectory() as folder:
            place = Path(folder)
            pairs = [(before.seconds(place), after.seconds(place)) for _ in range(options.rounds)]
        old, new = (statistics.median(side) * 1e6 for side in zip(*pairs))
        gain = statistics.median(a / b for a, b in pairs)
        if options.json:
            print(json.dumps({"edit": name, "before_us": old, "after_us": new, "gain": gain}))
        else:
            print(f"| {name} | {old:.0f} us | {new:.0f} us | {gain:.2f} |", flush=True)


if __name__ == "__main__":
    main()
