/* Memory of the values of a network: one arena, planned in advance.
 *
 * A value lives from the call that computes it through the last call that reads it. An output lives
 * to the end in memory of the caller, as inputs and weights do. A constant value is computed once
 * and kept beside the weights. Values alive at the same time do not overlap, with two exceptions:
 *
 *  - In place: a call computes a value element by element over an argument that nobody reads
 *    afterwards (in_place.c has the conditions).
 *  - Parts: a value is a contiguous part of another one. The parts of a concatenation are computed
 *    in its result; slices and reshapes read their argument. Such calls copy nothing and must be
 *    skipped (skipped[call]). A part and its whole are excluded from in-place reuse
 *    (parts_in_place.c).
 */
#ifndef CANVAS_NET_MEMORY_PLAN_H
#define CANVAS_NET_MEMORY_PLAN_H

#include "net/network.h"

enum { PLAN_ALIGNMENT = 64 };

struct planned_value {
  int64_t offset; /* bytes into the arena, a multiple of PLAN_ALIGNMENT; -1: not in the arena */
  int64_t bytes;
  int first, last; /* the calls between which it is alive, both included */
  int in_place_of; /* the argument that it overwrites; -1: none */
  int part_of;     /* the value that contains it, with the same elements; -1: none */
  int64_t within;  /* byte offset in that value, a multiple of PLAN_ALIGNMENT */
};

struct memory_plan {
  struct planned_value *values; /* by tensor */
  bool *skipped;    /* by call: not run, since its results share memory with its arguments */
  int64_t bytes;    /* size of the arena in bytes */
  int64_t unshared; /* bytes if each value had memory of its own */
  int64_t least;    /* maximum of bytes alive at the same time: a lower bound of `bytes` */
};

struct memory_plan memory_plan_of(const struct network *n);
/* As memory_plan_of; in-place results also need the consent of `may` for that output and input of
 * the call's program, by number. */
struct memory_plan memory_plan_where(const struct network *n,
                                     bool (*may)(const void *data, int call, int output, int input),
                                     const void *data);
void memory_plan_free(struct memory_plan *plan);

/* in_place.c: whether the program may write the output over the input: each element depends on the
 * same element of the input alone, and nothing reads that once it is written. */
bool program_in_place(const struct program *p, int output, int input);

/* parts_in_place.c: fills part_of, within and skipped for the values with arena[tensor]. */
void find_parts_in_place(const struct network *n, const bool *arena, struct memory_plan *plan);
/* The outermost value that contains this one, and the offset in it in bytes. */
int whole_of(const struct memory_plan *plan, int value, int64_t *within);

#endif
