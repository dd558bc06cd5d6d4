/* The cost of a program, stage by stage, without a schedule: operations, and the bytes that have to
 * be moved at least. */
#ifndef CANVAS_PROGRAM_PROGRAM_COST_H
#define CANVAS_PROGRAM_PROGRAM_COST_H

#include "program/program.h"

/* A stage evaluates its expression points * reduction times. A reduction over `ptr[r]..ptr[r+1]`,
 * for all rows of a rising ptr, counts the entries of all rows together; other data-dependent
 * bounds count their maximum.
 *
 * flops: each evaluation counts one for each operation on values (+ - * / min max, signs,
 * functions, comparisons; the larger branch of a select) and one for the reducer, so a multiply-add
 * is 2. A mean adds one division per element. Index arithmetic is free. read: each loaded tensor
 * counts the elements that its indices can reach, once. */
struct program_cost {
  int64_t points;    /* elements of the stage */
  int64_t reduction; /* maximum number of reduction points of one element; 1 without a reduction */
  int64_t flops;     /* of the whole stage */
  int64_t read, written; /* bytes */
};

/* Fails if a number exceeds 2^62. The program has to be verified. */
canvas_status program_cost(canvas_context *ctx, const struct program *p, int stage,
                           struct program_cost *out);

/* Evaluations of the stage's expression, as a share of points * reduction: below 1 if data bounds a reduction. */
double program_bounded_share(const struct program *p, int stage);

/* The flops of all stages, without stages whose numbers exceed 2^62: a measure of size. */
double program_flops(const struct program *p);

int program_dtype_bytes(enum program_dtype dtype); /* of one element: 4, 8, 2, 4 */

#endif
