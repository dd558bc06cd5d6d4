"""Export a compiled network as a folder of C that builds and runs without Python:

NAME.c, NAME.h   the network, as the core emits it
main.c           runs the network on the example and compares the outputs
weights.bin      the weights in the order of NAME.h, each aligned to 64 bytes
example.bin      inputs and PyTorch's outputs, aligned in the same way
network.txt      the text of the network, as `canvas network` reads it
README.md        how to build it
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path

import torch
from torch import Tensor

from .. import _core
from ..arguments import shown
from ..errors import CanvasError
from ..files import folder_at_once
from .huge_pages import ALIGNMENT
from .native_network import NativeNetwork

MAIN = r"""/* Runs the network '%(name)s' on example.bin and compares the outputs: see README.md */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "%(name)s.h"

enum {
  WEIGHTS = %(name)s_weights_count,
  INPUTS = %(name)s_inputs_count,
  OUTPUTS = %(name)s_outputs_count
};
static const double BOUND = 1e-3; /* largest difference, relative to the largest output */
static const size_t weight_bytes[] = %(name)s_weights_bytes;
static const size_t input_bytes[] = %(name)s_inputs_bytes;
static const size_t output_bytes[] = %(name)s_outputs_bytes;

static size_t rounded(size_t bytes) { return (bytes + 63) / 64 * 64; }

static void *memory(size_t bytes) {
  void *p = aligned_alloc(64, rounded(bytes) + 64);
  if (!p) fprintf(stderr, "out of memory\n"), exit(1);
  return p;
}

static FILE *opened(const char *path) {
  FILE *file = fopen(path, "rb");
  if (!file) fprintf(stderr, "'%%s' cannot be opened in this folder\n", path), exit(1);
  return file;
}

/* A tensor of a file in which each starts at a multiple of 64 bytes. */
static void *tensor(FILE *file, size_t bytes) {
  char *p = memory(bytes);
  if (fread(p, 1, rounded(bytes), file) != rounded(bytes))
    fprintf(stderr, "weights.bin or example.bin ends too early\n"), exit(1);
  return p;
}

int main(void) {
  FILE *weights_file = opened("weights.bin"), *example = opened("example.bin");
  const void *weights[WEIGHTS + 1], *inputs[INPUTS + 1];
  void *outputs[OUTPUTS];
  int wrong = 0;
  for (int i = 0; i < WEIGHTS; i++) weights[i] = tensor(weights_file, weight_bytes[i]);
  for (int i = 0; i < INPUTS; i++) inputs[i] = tensor(example, input_bytes[i]);
  for (int i = 0; i < OUTPUTS; i++) outputs[i] = memory(output_bytes[i]);
  void *packed = memory(%(name)s_packed_bytes), *arena = memory(%(name)s_arena_bytes);
  if (%(name)s_load(weights, packed) || %(name)s_run(weights, packed, inputs, outputs, arena)) {
    fprintf(stderr, "out of memory\n");
    return 1;
  }
  for (int i = 0; i < OUTPUTS; i++) {
    const float *got = outputs[i], *wanted = tensor(example, output_bytes[i]);
    double off = 0, largest = 0;
    for (size_t k = 0; k < output_bytes[i] / sizeof(float); k++) {
      int same = got[k] == wanted[k] || (isnan(got[k]) && isnan(wanted[k]));
      double apart = same ? 0 : fabs((double)got[k] - wanted[k]);
      if (!(apart <= off)) off = apart; /* nan, too */
      largest = fmax(largest, fabs((double)wanted[k]));
    }
    printf("output %%d: %%zu bytes, ", i, output_bytes[i]);
    printf("largest difference %%g, largest value %%g\n", off, largest);
    wrong |= !(off <= BOUND * largest);
    free((void *)wanted);
  }
  for (int i = 0; i < WEIGHTS; i++) free((void *)weights[i]);
  for (int i = 0; i < INPUTS; i++) free((void *)inputs[i]);
  for (int i = 0; i < OUTPUTS; i++) free(outputs[i]);
  free(packed);
  free(arena);
  fclose(weights_file);
  fclose(example);
  if (wrong) fprintf(stderr, "larger than rounding: was the code compiled with -ffast-math?\n");
  return wrong;
}
"""

README = """# {name}

A network as C, written by Canvas {version} for the machine on which it was compiled. `{name}.h`
declares its functions; tensors are dense, row-major, of 32 bits per element.

    cc {flags} -o {name} main.c {name}.c -lm
    ./{name}

runs it on `example.bin` (inputs, then PyTorch's outputs) and prints the largest difference of each
output. The exit status is 1 if a difference is larger than rounding explains. `weights.bin` holds
the weights in the order of the header, each aligned to 64 bytes.
`network.txt` is the text that `canvas network` reads.
"""


def save_network(
    network: NativeNetwork,
    weights: Sequence[Tensor],
    example: Sequence[Tensor],
    wanted: Sequence[Tensor],
    folder: str | os.PathLike[str],
    name: str,
) -> Path:
    """Write a new folder, all of it or, after an error, nothing.

    Raises CanvasError where `folder` exists, cannot be written, or `name` is no name of a C
    function.
    """
    out = Path(folder)
    if not re.fullmatch(r"[A-Za-z]\w{0,99}", name, re.ASCII):
        raise CanvasError(
            "name must be the name of a C function: at most 100 letters, digits and _, a letter "
            f"first, not {shown(name)}"
        )
    if out.exists():
        raise CanvasError(f"'{out}' already exists: give a folder that does not exist")
    try:
        with suppress(FileExistsError):  # a file: opening it as a folder fails later
            out.parent.mkdir(parents=True, exist_ok=True)
        with folder_at_once(out) as part:
            source = network.source(name)
            name = next(file[:-2] for file in source if file.endswith(".h"))  # int becomes int_
            for file, text in {**source, **_texts(network, name)}.items():
                (part / file).write_text(text)
            (part / "weights.bin").write_bytes(_together(weights))
            (part / "example.bin").write_bytes(_together([*example, *wanted]))
    except OSError as error:
        raise CanvasError(f"cannot write '{out}': {error.strerror}") from None
    return out


def _texts(network: NativeNetwork, name: str) -> dict[str, str]:
    flags = "-O2 -march=native" + (" -fopenmp" if network.threads > 1 else "")
    readme = README.format(name=name, version=_core.version(), flags=flags)
    return {"main.c": MAIN % {"name": name}, "network.txt": network.text, "README.md": readme}


def _together(tensors: Iterable[Tensor]) -> bytes:
    parts = []
    for tensor in tensors:
        data = tensor.detach().contiguous().reshape(-1).view(torch.uint8).numpy().tobytes()
        parts.append(data + b"\0" * (-len(data) % ALIGNMENT))
    return b"".join(parts)
