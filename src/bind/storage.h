/* Where the values of a stage live, settled once for explain, cost models and code.
 *
 * A buffer whose places are all constants once what is unrolled is unrolled, where it is written
 * and wherever it is read, is no array but a variable for each of its elements or vectors:
 * compilers keep those in registers. What else is small and lives within a loop is an array on the
 * stack, the rest is allocated.
 *
 * Within a vec loop one element to a lane is a vector to all: such storage is `per_lane`.
 */
#ifndef CANVAS_BIND_STORAGE_H
#define CANVAS_BIND_STORAGE_H

#include <stdbool.h>
#include <stdint.h>

#include "program/program.h"

enum {
  MOST_LANES = 64,              /* of a vector */
  UNROLLED_VECTORS = 8,         /* of a vec loop; more of them are a loop */
  NAMED_VARIABLES = 64,         /* of one buffer */
  PEELED_LOOPS = 5,             /* in one another: each doubles the code */
  UNROLLED_STATEMENTS = 1024,   /* of one unrolled loop, with what is in it */
  MOST_STATEMENTS = 4096,       /* of all unrolled loops together */
  MOST_OPERATIONS = 256 * 1024, /* of expressions in the copies of stages */
  STACK_BUFFER = 64 << 10,      /* bytes of one array on the stack ... */
  STACK_BYTES = 256 << 10       /* ... and of all */
};

enum storage_kind {
  STORAGE_NONE,   /* there are no such values, or nothing that reaches an output reads them */
  STORAGE_OUTPUT, /* the caller's memory */
  STORAGE_NAMED,  /* variables: in registers, if there are enough */
  STORAGE_STACK,  /* an array */
  STORAGE_HEAP    /* allocated by `region` */
};

struct storage {
  enum storage_kind kind;
  enum program_dtype dtype; /* of an element; of variables and per lane the type computed in */
  int64_t elements;
  int lanes;           /* elements of each variable: 1, or of a vector's length */
  int64_t lane_stride; /* named: from one lane to the next */
  bool per_lane;       /* it lives within a vec loop: each element is a vector */
  int region;          /* heap: the parallel loop whose threads allocate it; 0: the function */
};

int64_t storage_variables(const struct storage *s); /* of a named one */
int64_t storage_bytes(const struct storage *s);

#endif
