"""Products of matrices whose sums are longer than their rows and columns: as of a Gram matrix of
many samples, of a layer with many inputs, of few pixels with many channels.
"""

from __future__ import annotations

from defaults_cases import Case

from canvas import _core


def product(rows: int, columns: int, steps: int, transposed: str = "") -> Case:
    """`transposed`: "a", "b" or "": which of the two stands in memory the other way round."""
    a, b = transposed == "a", transposed == "b"
    program = _core.operator_program(
        "gemm", f"m={rows} n={columns} k={steps} transpose_a={int(a)} transpose_b={int(b)}"
    )
    name = f"{rows}x{steps}x{columns}" + (f" {transposed}^T" if transposed else "")
    return Case(name, program, lambda x: (x[0].T if a else x[0]) @ (x[1].T if b else x[1]))


def gram(samples: int, features: int) -> Case:
    program = (
        f"canvas 1\nprogram gram\nin X f32 [k:{samples}, i:{features}]\n"
        f"Y[i:{features}, j:{features}] = X[k, i] * X[k, j] // sum k:{samples}\nout Y\n"
    )
    return Case(f"gram {samples}x{features}", program, lambda x: x[0].T @ x[0])


def long_sums() -> list[Case]:
    return [
        gram(100000, 64),
        gram(4096, 256),
        product(64, 64, 100000),
        product(64, 64, 100000, "b"),
        product(64, 64, 4096),
        product(128, 128, 1024),
        product(128, 128, 2048),
        product(128, 128, 8192),
        product(96, 100, 3001),
        product(49, 128, 2048),
        product(32, 32, 20000, "a"),
        product(512, 512, 8192, "a"),
        product(256, 1024, 16384),
    ]
