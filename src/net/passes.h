/* Passes: rewrite a network into an equivalent one that is smaller or faster. See docs/networks.md.
 *
 * Each is a file pass_NAME.c and a row of the table in passes.c. A pass keeps the inputs, weights
 * and outputs of the network with their names, types and order, and its result passes
 * network_verify. The head of its file states its effect on rounding.
 */
#ifndef CANVAS_NET_PASSES_H
#define CANVAS_NET_PASSES_H

#include "net/fuse_cost.h"
#include "net/network.h"

struct network_pass {
  const char *name;
  canvas_status (*run)(canvas_context *ctx, struct network *n);
  /* The alternative to `run` for a pass that compares predicted times. */
  canvas_status (*choose)(canvas_context *ctx, struct network *n, struct fuse_costs *costs);
  const char *summary;
};

extern const struct network_pass network_passes[];
extern const int network_pass_count;

/* Runs the named passes, separated by commas or blanks, in that order; NULL: all but Winograd's. A
 * second run of these changes little. The network is verified after each pass. Times are predicted
 * for the machine. */
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

/* ---- changing a network (network_change.c) --------------------------------------------------- */

/* Updates which call defines each value and which values are constant, after calls were changed. */
void network_settle(struct network *n);
/* Removes these calls and their results; renumbers tensors and calls. */
void network_drop_calls(struct network *n, const bool *dropped);
/* Removes programs that no call uses. */
void network_drop_programs(struct network *n);
/* Moves the program and arguments of the last call, which has no results, to this call and removes
 * the last one. */
void network_replace_call(struct network *n, int call);
/* Moves calls that depend on weights alone to the front. */
void network_constants_first(struct network *n);
/* pass_duplicates.c: merges programs that differ only in their names, removes unused ones. */
void network_join_programs(struct network *n);

#endif
