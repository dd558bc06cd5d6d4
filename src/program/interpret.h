/* The interpreter: what a program means.
 *
 * Double precision, every sum in row-major order of its reduction axes, no cleverness. It evaluates
 * single elements on demand and remembers each element of each stage, so that some thousands of
 * elements of a large layer cost what they need and no more. A load is evaluated only if control
 * reaches it: the branch of a select that is not taken may index out of range.
 *
 * max and min (reducers and functions) give nan if any operand is nan. f32 and f64 do not round;
 * an element of bf16 is rounded to nearest even when it is stored or read in, sums are not.
 */
#ifndef CANVAS_PROGRAM_INTERPRET_H
#define CANVAS_PROGRAM_INTERPRET_H

#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"
#include "program/program.h"

struct interpreter;

struct interpreter_limits {
  size_t bytes;             /* memory for remembered elements; 0 = 1 GiB */
  uint64_t steps;           /* elementary operations over its life; 0 = 2^36 (some minutes) */
  bool (*stop)(void *data); /* asked now and then within an element: true ends it; or NULL */
  void *data;
};

/* What a tensor of this type holds of the value. */
double program_stored(enum program_dtype dtype, double value);

/* program_inputs.c. Every element of an i32 input is whole, within its range, and rises if it has
 * to; anything goes for the others. Borrows `values`: the whole tensor p->inputs[input], row-major. */
canvas_status program_check_input(canvas_context *ctx, const struct program *p, int input,
                                  const double *values);
/* Values for an input, a pure function of (seed, input, program): standard normal numbers, of every
 * input but the first divided by the root of the product of its sizes but the first (a fan-in);
 * elements of i32 are uniform within their range, sorted if they rise, or in each row of those that a sum
 * ptr[r]..ptr[r+1] tells apart (compressed sparse rows). */
void program_fill(const struct program *p, int input, uint64_t seed, double *values);
/* The same for a tensor with a number of its own; number 0 is not divided. */
void tensor_fill(const struct program_tensor *t, int number, uint64_t seed, double *values);

/* Borrows `p`, which must not change, and the inputs: inputs[i] is the whole tensor p->inputs[i],
 * row-major, whole numbers of i32. `limits` may be NULL. Program and inputs are checked first. */
canvas_status interpreter_new(canvas_context *ctx, const struct program *p,
                              const double *const *inputs, const struct interpreter_limits *limits,
                              struct interpreter **out);
void interpreter_free(struct interpreter *in); /* NULL is fine */

/* One element of any tensor. Fails on an index out of range, here or in a load (the error message names
 * stage, load and values), and where a limit is reached; it can be called again afterwards. */
canvas_status interpreter_element(struct interpreter *in, int tensor, const int64_t *index,
                                  double *out);

/* out[i] = element flat[i] (row-major) of the tensor; flat NULL = elements 0 .. count-1. */
canvas_status interpreter_elements(struct interpreter *in, int tensor, int64_t count,
                                   const int64_t *flat, double *out);

#endif
