/* The predicted time of a bound schedule, without the part that is computed at load time. */
#ifndef CANVAS_PREPARE_PREPARE_COST_H
#define CANVAS_PREPARE_PREPARE_COST_H

#include "bind/loop_tree.h"
#include "cost/schedule_cost.h"

/* The tree has no open holes. CANVAS_BAD_INPUT for a program with a count above 2^62. */
canvas_status prepare_cost(canvas_context *ctx, const struct loop_tree *tree,
                           const struct rates *rates, struct cost_parts *out);

#endif
