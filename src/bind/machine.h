/* The machine that a schedule is bound for and code is written for: what a schedule may count on.
 *
 * It has a text, one `key value` per line in any order, sizes in bytes or with KiB, MiB, GiB:
 *
 *     canvas 1
 *     machine avx512
 *     vector_bytes 64
 *     vector_registers 32
 *     ...
 *
 * machine_text.c holds the table of its keys. Every bind names its machine: there is no other.
 */
#ifndef CANVAS_BIND_MACHINE_H
#define CANVAS_BIND_MACHINE_H

#include "base/buf.h"

enum { MACHINE_NAME = 40 }; /* bytes of a name, the NUL included */

/* Instructions on bf16: one bit each. */
enum machine_bf16 { BF16_CONVERT = 1, BF16_DOT = 2 };
/* What tiles of matrix registers multiply: one bit each. */
enum machine_tiles { TILES_INT8 = 1, TILES_BF16 = 2, TILES_FP16 = 4 };

struct machine {
  char name[MACHINE_NAME];
  char target[MACHINE_NAME]; /* what -march is given; "native": the machine that compiles */
  int vector_bytes;          /* of a vector register: 64 (AVX-512), 32 (AVX2), 16 (SSE, NEON) */
  int registers;             /* vector registers that a kernel may fill: 32 or 16 */
  int fma;                   /* 1: a*b + c is one instruction */
  int bf16;                  /* enum machine_bf16 */
  int tiles;                 /* enum machine_tiles */
  int line;                  /* bytes of a cache line */
  int64_t l1, l2;            /* bytes of one core's data caches */
  int64_t l3;                /* bytes of the cache that cores share; 0: none */
  int cores;                 /* that this process may use */
  int64_t memory;            /* bytes that the buffers of one kernel may take */
};

/* machine.c: this machine, as far as the processor and the system say. Where they do not: 32-byte
 * vectors, 16 registers, 32 KiB, 1 MiB, no L3, one core, 4 GiB. */
struct machine machine_here(void);

/* machine_text.c: the only machine of a text. Errors name line and column. */
canvas_status machine_parse(canvas_context *ctx, const char *text, size_t length,
                            struct machine *out);
/* Every key, in the order of the table; parses back to the same machine. */
void machine_print(const struct machine *machine, struct buf *out);

#endif
