"""The C that `canvas network FILE --emit` writes of random networks, under sanitizers, beside
PyTorch.

Every tensor is a block of its own of exactly its bytes, and the memory that the code works in
holds NaN before, so that what is read beyond an end or before it is written shows.
"""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
import torch
from conftest import ALL
from random_networks import draw

from canvas import aten

DRIVER = """
#include "%(name)s.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void *memory(size_t bytes) {
  void *found = NULL;
  if (posix_memalign(&found, 64, bytes ? bytes : 1)) exit(3);
  return memset(found, 0xff, bytes);
}

static void *tensor(FILE *file, size_t bytes) {
  void *found = malloc(bytes);
  if (!found || fread(found, 1, bytes, file) != bytes) exit(4);
  return found;
}

int main(void) {
  const size_t weight_bytes[] = {%(weights)s 0}, input_bytes[] = {%(inputs)s 0};
  const size_t output_bytes[] = {%(outputs)s 0};
  const void *weights[%(weight_count)d + 1] = {0}, *inputs[%(input_count)d + 1] = {0};
  void *outputs[%(output_count)d + 1] = {0};
  FILE *file = fopen("given.bin", "rb");
  if (!file) return 5;
  for (int i = 0; i < %(weight_count)d; i++) weights[i] = tensor(file, weight_bytes[i]);
  for (int i = 0; i < %(input_count)d; i++) inputs[i] = tensor(file, input_bytes[i]);
  for (int i = 0; i < %(output_count)d; i++) outputs[i] = memory(output_bytes[i]);
  void *packed = memory(%(name)s_packed_bytes), *arena = memory(%(name)s_arena_bytes);
  if (%(name)s_load(weights, packed)) return 6;
  for (int turn = 0; turn < 2; turn++) /* of nothing, and of what the first run left */
    if (%(name)s_run(weights, packed, inputs, outputs, arena)) return 7;
  for (int i = 0; i < %(output_count)d; i++)
    if (fwrite(outputs[i], 1, output_bytes[i], stdout) != output_bytes[i]) return 8;
  for (int i = 0; i < %(weight_count)d; i++) free((void *)weights[i]);
  for (int i = 0; i < %(input_count)d; i++) free((void *)inputs[i]);
  for (int i = 0; i < %(output_count)d; i++) free(outputs[i]);
  free(packed);
  free(arena);
  fclose(file);
  return 0;
}
"""
CHECKS = ["-fsanitize=address,undefined", "-fno-sanitize-recover=all", "-fno-omit-frame-pointer"]
COMPILERS = [name for name in ("clang", "gcc") if shutil.which(name)]
ENOUGH = 1e-4  # of an output's largest element, as `canvas network --run` has it


def run(command: list[str], folder: Path) -> bytes:
    done = subprocess.run(command, cwd=folder, capture_output=True, timeout=300)
    assert not done.returncode, (command, done.stderr.decode()[-3000:])
    return done.stdout


def listed(tensors: list[np.ndarray]) -> str:
    return "".join(f"{tensor.nbytes}, " for tensor in tensors)


def check(seed: int, folder: Path, compiler: str, options: list[str]) -> None:
    model, x = draw(seed)
    with torch.no_grad():
        wanted = model(x).numpy()
        imported = aten.import_graph(aten.export(model, (x,)), name="drawn")
    weights = [w.detach().contiguous().numpy() for w in imported.weights.values()]
    (folder / "drawn.net").write_text(imported.text)
    (folder / "given.bin").write_bytes(b"".join(a.tobytes() for a in [*weights, x.numpy()]))
    lists = {"weight": weights, "input": [x.numpy()], "output": [wanted]}
    words: dict[str, object] = {"name": "drawn"}
    for name, tensors in lists.items():
        words |= {f"{name}s": listed(tensors), f"{name}_count": len(tensors)}
    (folder / "driver.c").write_text(DRIVER % words)
    run(["canvas", "network", "drawn.net", "--emit", ".", *options], folder)
    sources = ["driver.c", "drawn.c", "-lm", "-o", "drawn"]
    run([compiler, "-std=gnu11", "-O1", "-g", "-march=native", *CHECKS, *sources], folder)
    got = np.frombuffer(run(["./drawn"], folder), np.float32).reshape(wanted.shape)
    largest = float(np.abs(wanted).max())
    assert float(np.abs(got - wanted).max()) <= ENOUGH * max(largest, 1.0)


@pytest.mark.skipif(not COMPILERS, reason="no compiler")
@pytest.mark.parametrize("seed", range(200 if ALL else 2))
def test_a_random_network(seed: int, tmp_path: Path) -> None:
    options = ["--optimize"] if seed % 4 else []
    check(seed, tmp_path, COMPILERS[seed % len(COMPILERS)], options)
