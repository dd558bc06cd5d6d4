/* The machine that a schedule is checked for and code is written for: a few numbers. */
#ifndef CANVAS_BIND_MACHINE_H
#define CANVAS_BIND_MACHINE_H

#include <stdint.h>

struct machine {
  int vector_bytes; /* of a vector register: 64 (AVX-512), 32 (AVX2), 16 (SSE, NEON) */
  int registers;    /* vector registers that a kernel may fill: 32 or 16 */
  int64_t l1, l2;   /* bytes of one core's data caches */
  int64_t memory;   /* bytes that the buffers of one kernel may take */
};

/* This machine. Where it does not say: 32-byte vectors, 16 registers, 32 KiB, 1 MiB. */
struct machine machine_here(void);

/* The same everywhere, for tests and for text that is compared: 64, 32, 48 KiB, 2 MiB, 4 GiB. */
struct machine machine_model(void);

#endif
