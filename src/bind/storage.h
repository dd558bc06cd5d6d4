/* The storage of a stage's values and accumulators, decided once for explain, cost models and code.
 *
 * If all indices of a buffer are constants after unrolling, in every store and load, the buffer
 * becomes one variable per element or vector: compilers keep variables in registers. Other small
 * buffers inside loops are arrays on the stack; the rest is allocated on the heap.
 *
 * Storage that lives inside a vec loop is `per_lane`: each element is a vector, one value per lane.
 */
#ifndef CANVAS_BIND_STORAGE_H
#define CANVAS_BIND_STORAGE_H

#include <stdbool.h>
#include <stdint.h>

#include "program/program.h"

enum {
  MOST_LANES = 64,              /* of a vector */
  UNROLLED_VECTORS = 8,         /* of a vec loop that is unrolled; more vectors stay a loop */
  NAMED_VARIABLES = 64,         /* of one buffer */
  PEELED_LOOPS = 5,             /* nested: each doubles the code */
  UNROLLED_STATEMENTS = 1024,   /* of one unrolled loop with all loops inside */
  MOST_STATEMENTS = 4096,       /* of all unrolled loops together */
  MOST_OPERATIONS = 256 * 1024, /* of all copies of stages beyond the first */
  STACK_BUFFER = 64 << 10,      /* bytes of one array on the stack */
  STACK_BYTES = 256 << 10       /* bytes of all arrays on the stack */
};

enum storage_kind {
  STORAGE_NONE,   /* no values, or dead code */
  STORAGE_OUTPUT, /* the caller's memory */
  STORAGE_NAMED,  /* variables: in registers, if there are enough */
  STORAGE_STACK,  /* an array on the stack */
  STORAGE_HEAP    /* allocated by `region` */
};

struct storage {
  enum storage_kind kind;
  enum program_dtype dtype; /* of an element; of variables and per_lane storage the compute type */
  int64_t elements;
  int lanes;           /* elements per variable: 1 or a vector */
  int64_t lane_stride; /* named: elements from one lane to the next */
  bool per_lane;       /* inside a vec loop: each element is a vector */
  int region; /* heap: node of the parallel loop whose threads allocate it; 0: the function */
};

int64_t storage_variables(const struct storage *s); /* number of variables, of STORAGE_NAMED */
int64_t storage_bytes(const struct storage *s);

#endif
