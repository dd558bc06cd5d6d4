/* The machines that tests bind for: those of examples/machines/ by the numbers that matter. */
#ifndef CANVAS_TESTS_MACHINES_H
#define CANVAS_TESTS_MACHINES_H

#include "bind/machine.h"

static const struct machine machine_avx512 = {.name = "avx512",
                                              .target = "native",
                                              .vector_bytes = 64,
                                              .registers = 32,
                                              .fma = 1,
                                              .line = 64,
                                              .l1 = 48 << 10,
                                              .l2 = 2 << 20,
                                              .cores = 1,
                                              .memory = INT64_C(4) << 30};
static const struct machine machine_avx2 = {.name = "avx2",
                                            .target = "native",
                                            .vector_bytes = 32,
                                            .registers = 16,
                                            .fma = 1,
                                            .line = 64,
                                            .l1 = 32 << 10,
                                            .l2 = 1 << 20,
                                            .cores = 1,
                                            .memory = INT64_C(4) << 30};
static const struct machine machine_sse = {.name = "sse",
                                           .target = "native",
                                           .vector_bytes = 16,
                                           .registers = 16,
                                           .line = 64,
                                           .l1 = 32 << 10,
                                           .l2 = 256 << 10,
                                           .cores = 1,
                                           .memory = INT64_C(4) << 30};
enum { MACHINES = 3 };
static inline const struct machine *machine_model(int i) {
  return i == 0 ? &machine_avx512 : i == 1 ? &machine_avx2 : &machine_sse;
}

#endif
