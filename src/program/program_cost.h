/* What a program costs, stage by stage, whatever the schedule: operations and the bytes that have to
 * move at least. */
#ifndef CANVAS_PROGRAM_PROGRAM_COST_H
#define CANVAS_PROGRAM_PROGRAM_COST_H

#include "program/program.h"

/* The expression of a stage is evaluated at points * reduction points; where the bounds of a reduction
 * axis are `ptr[r]..ptr[r+1]` over all rows of a rising ptr, at as many as there are in all rows
 * together, and with other bounds at most at so many.
 *
 * flops: per evaluation one for each operation on values (+ - * / min max, signs, functions,
 * comparisons; of a select the larger branch) and one for the reducer, so a multiply-add is 2; one
 * per element for the division of a mean. Index arithmetic is free.
 * read: of each tensor that is loaded, the elements that its indices can reach, once. */
struct program_cost {
  int64_t points;        /* elements of the stage */
  int64_t reduction;     /* points of the reduction for one of them, at most; 1 without */
  int64_t flops;         /* of the whole stage */
  int64_t read, written; /* bytes */
};

/* Fails where a number passes 2^62. The program is verified. */
canvas_status program_cost(canvas_context *ctx, const struct program *p, int stage,
                           struct program_cost *out);

/* flops of all stages, those left out of which a number passes 2^62: a measure of its size. */
double program_flops(const struct program *p);

int program_dtype_bytes(enum program_dtype dtype); /* of one element: 4, 8, 2, 4 */

#endif
