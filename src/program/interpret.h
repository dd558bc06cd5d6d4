/* The interpreter: it defines the meaning of a program.
 *
 * It computes in double precision, and every reduction in row-major order of its axes. It evaluates
 * single elements on demand and caches them, so that some thousand elements of a large layer cost
 * only what they depend on. A load is evaluated only if control reaches it: a branch of a select
 * that is not taken may index out of range.
 *
 * max and min (reducers and functions) return nan if any operand is nan. Elements of f32 and f64
 * are not rounded. An element of bf16 is rounded to nearest even when it is stored or read from an
 * input; accumulators are not rounded.
 */
#ifndef CANVAS_PROGRAM_INTERPRET_H
#define CANVAS_PROGRAM_INTERPRET_H

#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"
#include "program/program.h"

struct interpreter;

struct interpreter_limits {
  size_t bytes;   /* memory for cached elements; 0: 1 GiB */
  uint64_t steps; /* elementary operations in all calls together; 0: 2^36 (some minutes) */
  bool (*stop)(void *data); /* polled during an evaluation: true ends it; may be NULL */
  void *data;               /* argument of `stop` */
};

/* The value after rounding to the data type of a tensor. */
double program_stored(enum program_dtype dtype, double value);

/* program_inputs.c: checks that every element of an i32 input is whole and within its range, and
 * that they rise if declared so. Other types allow any value. Borrows `values`: the whole tensor
 * p->inputs[input], row-major. */
canvas_status program_check_input(canvas_context *ctx, const struct program *p, int input,
                                  const double *values);
/* Draws values for an input, a pure function of (seed, input, program). They are standard normal;
 * every input but the first is divided by the root of its fan-in, the product of its sizes but the
 * first. Elements of i32 are uniform within their range. They are sorted if they rise, and within
 * each row of compressed sparse rows, where a reduction runs over ptr[r]..ptr[r+1]. */
void program_fill(const struct program *p, int input, uint64_t seed, double *values);
/* The same for a tensor with this number in place of the input's; number 0 is not divided. */
void tensor_fill(const struct program_tensor *t, int number, uint64_t seed, double *values);

/* Borrows `p`, which must not change, and the inputs: inputs[i] is the whole tensor p->inputs[i],
 * row-major; elements of i32 are whole numbers. `limits` may be NULL. Checks program and inputs
 * first. */
canvas_status interpreter_new(canvas_context *ctx, const struct program *p,
                              const double *const *inputs, const struct interpreter_limits *limits,
                              struct interpreter **out);
void interpreter_free(struct interpreter *in); /* NULL is fine */

/* Computes one element of any tensor. Fails on an index out of range, here or in a load (the error
 * message names stage, load and values), and when a limit is reached. It can be called again after
 * a failure. */
canvas_status interpreter_element(struct interpreter *in, int tensor, const int64_t *index,
                                  double *out);

/* out[i] = element flat[i] (row-major) of the tensor; flat NULL = elements 0 .. count-1. */
canvas_status interpreter_elements(struct interpreter *in, int tensor, int64_t count,
                                   const int64_t *flat, double *out);

#endif
