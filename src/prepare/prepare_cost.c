/* See prepare_cost.h. */
#include "prepare/prepare_cost.h"

#include "prepare/prepare.h"

canvas_status prepare_cost(canvas_context *ctx, const struct loop_tree *tree,
                           const struct rates *rates, struct cost_parts *out) {
  struct prepared *prepared = NULL;
  struct schedule_cost cost;
  TRY(prepare_split(ctx, tree, &prepared));
  canvas_status status = cost_of(ctx, prepared ? prepared->rest.tree : tree, rates, &cost);
  prepare_free(prepared);
  if (status == CANVAS_OK) *out = cost.all;
  return status;
}
