/* Two calls as one: the stages of the producer, then those of the consumer, which reads them where it read
 * the results of the call.
 *
 * Where the two meet, what only moves data or is little work is written into its reader.
 */
#ifndef CANVAS_NET_MERGE_CALLS_H
#define CANVAS_NET_MERGE_CALLS_H

#include "net/call_maker.h"

struct merged {
  struct call_maker maker; /* its first outputs are the consumer's */
  struct {
    VEC(int);
  } kept; /* results of the producer that are outputs behind them: others want them, too */
};

/* `wanted`, by tensor: somebody beside the consumer reads it. With `copy` the producer stays for them, and
 * nothing is kept. Fails where the program that it would be passes a limit. To be dropped in any case. */
canvas_status merge_calls(canvas_context *ctx, const struct network *n, int producer, int consumer,
                          bool copy, const bool *wanted, struct merged *out);
void merged_drop(struct merged *m);

/* ---- what a program does with an input, all of it or nothing (merge_kinds.c) -------------------- */

/* Each element of every output is made of the same element of the input and of other inputs. */
bool program_maps(const struct program *p, int input);
/* No stage reduces. */
bool program_is_flat(const struct program *p);
/* Each stage is one load, or a number where indices say so. */
bool program_moves(const struct program *p);
/* Each element of the stage is made of the same element of the tensor and of others. */
bool stage_maps(const struct program *p, int stage, int tensor);
/* It reduces products of what it loads, as convolutions and matrices do. */
bool stage_sums_products(const struct program *p, int stage);

#endif
