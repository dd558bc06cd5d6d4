/* Merges two calls: the stages of the producer, then those of the consumer, which reads the
 * producer's stages instead of its results.
 *
 * Data movement and cheap stages between the two are inlined into their consumer.
 */
#ifndef CANVAS_NET_MERGE_CALLS_H
#define CANVAS_NET_MERGE_CALLS_H

#include "net/call_maker.h"

struct merged {
  struct call_maker maker; /* its first outputs are those of the consumer */
  struct {
    VEC(int);
  } kept; /* results of the producer that other calls read: the outputs after them */
};

/* wanted[tensor]: a call other than the consumer reads it. With `copy` the producer stays for these
 * calls, and no result is kept. Fails if the merged program exceeds a limit. Free with merged_drop
 * in any case. */
canvas_status merge_calls(canvas_context *ctx, const struct network *n, int producer, int consumer,
                          bool copy, const bool *wanted, struct merged *out);
void merged_drop(struct merged *m);

/* ---- kinds of programs (merge_kinds.c) ------------------------------------------------------- */

/* Element-wise in the input: each element of an output reads only the same element of the input. */
bool program_is_elementwise(const struct program *p, int input);
/* No stage has a reduction. */
bool program_is_flat(const struct program *p);
/* Data movement only: each stage is one load, or a number under an index condition. */
bool program_moves_data(const struct program *p);
/* The stage is element-wise in the tensor and has no reduction. */
bool stage_is_elementwise(const struct program *p, int stage, int tensor);
/* The stage is a contraction, e.g. a convolution or matrix product. */
bool stage_is_contraction(const struct program *p, int stage);

#endif
