/* Passes: a network becomes another that computes the same, with less or faster. See docs/networks.md.
 *
 * Each is a file pass_NAME.c and a row of the table in passes.c. A pass keeps the inputs, the weights and
 * the outputs of the network, their names, types and order; it leaves a network that network_verify takes,
 * and what it says of rounding stands at its head.
 */
#ifndef CANVAS_NET_PASSES_H
#define CANVAS_NET_PASSES_H

#include "net/fuse_cost.h"
#include "net/network.h"

struct network_pass {
  const char *name;
  canvas_status (*run)(canvas_context *ctx, struct network *n);
  /* ... or, of a pass that chooses what is predicted to be faster: */
  canvas_status (*choose)(canvas_context *ctx, struct network *n, struct fuse_costs *costs);
  const char *summary;
};

extern const struct network_pass network_passes[];
extern const int network_pass_count;

/* Runs the passes that are named, with commas or blanks between, in that order; where `names` is NULL those
 * that leave the sums as they are; a second time these change next to nothing. After each the network is verified.
 * What is faster is predicted for the machine. */
canvas_status network_optimize(canvas_context *ctx, struct network *n, const char *names,
                               const struct machine *machine);

canvas_status pass_constants(canvas_context *ctx, struct network *n);
canvas_status pass_duplicates(canvas_context *ctx, struct network *n);
canvas_status pass_windows(canvas_context *ctx, struct network *n);
canvas_status pass_concat(canvas_context *ctx, struct network *n);
canvas_status pass_compose(canvas_context *ctx, struct network *n);
canvas_status pass_batchnorm(canvas_context *ctx, struct network *n);
canvas_status pass_split(canvas_context *ctx, struct network *n, struct fuse_costs *costs);
canvas_status pass_fuse(canvas_context *ctx, struct network *n, struct fuse_costs *costs);
canvas_status pass_layout(canvas_context *ctx, struct network *n, struct fuse_costs *costs);
canvas_status pass_dead(canvas_context *ctx, struct network *n);
canvas_status pass_winograd(canvas_context *ctx, struct network *n, struct fuse_costs *costs);
canvas_status pass_winograd4(canvas_context *ctx, struct network *n, struct fuse_costs *costs);

/* ---- what passes change a network with (network_change.c) ------------------------------------- */

/* After calls were changed by hand: which call defines each value, and which values are constant. */
void network_settle(struct network *n);
/* Takes these calls away, and the values that they give; tensors and calls have other numbers afterwards. */
void network_drop_calls(struct network *n, const bool *dropped);
/* Takes the programs away that no call names. */
void network_drop_programs(struct network *n);
/* The call becomes what the last one is, whose program and arguments it takes; the last one, which has no
 * results, is gone. */
void network_replace_call(struct network *n, int call);
/* Calls of weights alone stand before all others. */
void network_constants_first(struct network *n);
/* pass_duplicates.c: programs that say the same are one, and each is called. */
void network_join_programs(struct network *n);

#endif
