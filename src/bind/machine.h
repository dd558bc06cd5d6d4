/* The machine that schedules are bound and code is written for: its instructions, caches and
 * memory.
 *
 * Its text has one `key value` per line in any order, sizes in bytes or with KiB, MiB, GiB:
 *
 *     canvas 1
 *     machine avx512
 *     vector_bytes 64
 *     vector_registers 32
 *     ...
 *
 * machine_text.c has the table of the keys. Every call that binds a schedule names the machine.
 */
#ifndef CANVAS_BIND_MACHINE_H
#define CANVAS_BIND_MACHINE_H

#include "base/buf.h"

enum { MACHINE_NAME = 40 }; /* bytes of a name, with the NUL */

/* Instructions on bf16, one bit each. */
enum machine_bf16 { BF16_CONVERT = 1, BF16_DOT = 2 };
/* Data types that matrix registers multiply, one bit each. */
enum machine_tiles { TILES_INT8 = 1, TILES_BF16 = 2, TILES_FP16 = 4 };

#define BYTES_MOST (INT64_C(1) << 50) /* of a size in the text */

/* Facts that no system reports. Each is optional in the text. If it is missing, its field is 0, and
 * its default is computed from other fields of `m`. machine_NAME(m) returns the stated or default
 * value.
 *
 *   name, kind in the text, default, least, most, meaning */
/* clang-format off */
#define MACHINE_FACTS(X) \
  X(few_registers, CHOICE, m->registers < 32 ? MACHINE_YES : MACHINE_NO, MACHINE_NO, MACHINE_YES, \
    "default schedules share fewer loads in a tile, and prefetch less") \
  X(l1_way, POWER, 4096, 1024, 1 << 20, \
    "bytes from one L1 line to the next of the same set") \
  X(l1_ways, NUMBER, 8, 1, 64, \
    "lines of one L1 set that a default schedule counts on") \
  X(l3_share, BYTES, 8 * m->l2, 1, BYTES_MOST, \
    "bytes of L3 that one core counts on: larger tensors are in memory") \
  X(l3_line, NUMBER, 8, 1, 10000, \
    "cycles that a tile waits for a single line from L3") \
  X(memory_line, NUMBER, 24, 1, 10000, \
    "cycles that a tile waits for a single line from memory") \
  X(prefetch_distance, BYTES, 8192, 1, 1 << 20, \
    "bytes between a prefetch in the code and the read that it is for") \
  X(prefetch_stride, BYTES, 1024, 64, 1 << 20, \
    "bytes: the processor prefetches no access pattern of this stride or more")
/* clang-format on */

enum { MACHINE_NO = 1, MACHINE_YES = 2 }; /* 0: by default */

struct machine {
  char name[MACHINE_NAME];
  char target[MACHINE_NAME]; /* the argument of -march; "native": the machine that compiles */
  int vector_bytes;          /* of a vector register: 64 (AVX-512), 32 (AVX2), 16 (SSE, NEON) */
  int registers;             /* vector registers available to a kernel: 32 or 16 */
  int fma;                   /* 1: a*b + c is one instruction */
  int bf16;                  /* enum machine_bf16 */
  int tiles;                 /* enum machine_tiles */
  int line;                  /* bytes of a cache line */
  int64_t l1, l2;            /* bytes of the data caches of one core */
  int64_t l3;                /* bytes of the shared cache; 0: none */
  int cores;                 /* available to this process */
  int64_t memory;            /* bytes available for the buffers of one kernel */
#define X(fact, ...) int64_t fact; /* 0: by default */
  MACHINE_FACTS(X)
#undef X
};

#define X(fact, kind, otherwise, ...)                                   \
  static inline int64_t machine_usual_##fact(const struct machine *m) { \
    (void)m;                                                            \
    return otherwise;                                                   \
  }                                                                     \
  static inline int64_t machine_##fact(const struct machine *m) {       \
    return m->fact ? m->fact : machine_usual_##fact(m);                 \
  }
MACHINE_FACTS(X)
#undef X

static inline bool machine_has_few_registers(const struct machine *m) {
  return machine_few_registers(m) == MACHINE_YES;
}

/* machine.c: this machine, as reported by the processor and the system. The defaults are 32-byte
 * vectors, 16 registers, 32 KiB, 1 MiB, no L3, one core, 4 GiB. */
struct machine machine_here(void);

/* machine_text.c: parses a text with one machine. Errors give line and column. */
canvas_status machine_parse(canvas_context *ctx, const char *text, size_t length,
                            struct machine *out);
/* Prints every key in the order of the table, except facts with their default value. Parses back to
 * the same machine. */
void machine_print(const struct machine *machine, struct buf *out);

#endif
