/* The end of an axis that tiles do not divide. See build_parts.h.
 *
 * Stores to memory are guarded: rows by an `if`, vectors by storing their first lanes. Register
 * tiles are private, so they are computed whole, as long as no load leaves its tensor. If ranges do
 * not prove that, a vector load takes its first lanes, and an axis that is the same in all lanes is
 * clamped to its last element, so that the last row is computed again:
 *
 *     acc_1 += A[LEAST_OF(it*2 + 1, 8)*64 + k] * LOAD_V16(B[k*19 + jt*16], 19 - jt*16)
 */
#include "code/build_parts.h"

static const struct px_node *node_of(const struct builder *b, int expr) {
  return &b->px->nodes.data[expr];
}

bool build_decided(const struct builder *b, int condition, bool value) {
  const struct px_node *n = node_of(b, condition);
  return n->op == PX_BOOL && n->integer == value;
}

/* ---- active lanes and rows ---- */

/* The number of lanes of the vector that are below `size`; -1 if the lanes do not ascend. */
static int lanes_below(struct builder *b, int value, int64_t size) {
  int64_t stride;
  if (!build_stride(b, value, b->lane, &stride) || stride < 1) return -1;
  int left = px_sub(b->px, px_int(b->px, size), build_at_zero(b, value, b->lane));
  if (stride == 1) return left;
  return px_div(b->px, px_add(b->px, left, px_int(b->px, stride - 1)), px_int(b->px, stride));
}

static void fewer_lanes(struct builder *b, struct beyond *beyond, int lanes) {
  if (px_range(b->px, lanes).low >= b->lanes) return;
  beyond->active_lanes =
      beyond->active_lanes < 0 ? lanes : px_min(b->px, beyond->active_lanes, lanes);
}

static void add_axis(struct builder *b, struct beyond *beyond, int axis, bool reduces, int value,
                     int64_t size) {
  int within = px_compare(b->px, PX_LT, value, px_int(b->px, size));
  if (b->px->failed || build_decided(b, within, true)) return;
  if (b->lane >= 0 && px_mentions(b->px, value, b->lane)) {
    int lanes = lanes_below(b, value, size);
    beyond->lanes |= (uint64_t)1 << axis;
    if (lanes >= 0)
      fewer_lanes(b, beyond, lanes);
    else
      beyond->each = beyond->each < 0 ? within : px_and(b->px, beyond->each, within);
  } else if (reduces) {
    beyond->always = px_and(b->px, beyond->always, within);
  } else {
    beyond->axes |= (uint64_t)1 << axis;
    beyond->rows = px_and(b->px, beyond->rows, within);
  }
}

struct beyond build_beyond(struct builder *b, int stage, bool reductions) {
  const struct bound_stage *bound = &b->tree->stages[stage];
  const struct program_tensor *t = &b->program->tensors.data[bound->tensor];
  int yes = px_bool(b->px, true);
  struct beyond beyond = {.always = yes, .rows = yes, .each = -1, .active_lanes = -1};
  for (int i = 0; i < t->rank + (reductions ? t->reductions : 0); i++) {
    if (!bound->tail[i] || b->guarded[stage] >> i & 1) continue;
    int value = space_axis(&b->space, bound, i);
    if (value >= 0) add_axis(b, &beyond, i, i >= t->rank, value, t->axes[i].size);
  }
  if (b->lane_steps < b->lanes) fewer_lanes(b, &beyond, px_int(b->px, b->lane_steps));
  return beyond;
}

/* ---- computing beyond the end ---- */

bool build_is_private(const struct stored *to) {
  return to->at.kind == STORAGE_NAMED;
}

static bool within(const struct builder *b, int node, int around) {
  while (node > 0 && node != around) node = build_node(b, node)->parent;
  return node == around;
}

/* Inside a reduction whose accumulators are private, unless data bound the reduction. */
bool build_computes_beyond(const struct builder *b, int stage, int node) {
  const struct bound_stage *bound = &b->tree->stages[stage];
  if (bound->start < 0 || node == bound->start || !within(b, node, bound->start)) return false;
  for (int i = 0; i < bound->steps; i++)
    if (bound->path[i].dyn) return false;
  return build_is_private(bound->accumulates_in_value ? &b->stages[stage].value
                                                      : &b->stages[stage].sum);
}

/* ---- loads ---- */

/* Buffers of the tree get up to this many more elements, so that their last rows are loaded in
 * whole vectors. */
enum { MORE_ELEMENTS = CODE_LANES };

bool build_place_inside(struct builder *b, const struct stored *h, int place) {
  struct px_range r = px_range(b->px, place);
  int64_t *elements = &b->code->variables.data[h->variable].count;
  bool own = (h->at.kind == STORAGE_STACK || h->at.kind == STORAGE_HEAP) && !h->at.per_lane;
  if (h->at.kind == STORAGE_NAMED) return true;
  if (r.data || r.overflow || r.low < 0) return false;
  if (own && r.high >= *elements && r.high < h->at.elements + MORE_ELEMENTS) *elements = r.high + 1;
  return r.high < *elements;
}

/* No load of the expression leaves its tensor, whatever its conditions; with `uniform` only loads
 * that are the same in all lanes are checked. */
bool build_loads_inside(struct builder *b, int expr, bool uniform) {
  if (expr < 0) return true;
  const struct px_node n = *node_of(b, expr); /* a copy: the scratch program may grow */
  if (n.op != PX_LOAD)
    return build_loads_inside(b, n.arg[0], uniform) && build_loads_inside(b, n.arg[1], uniform) &&
           build_loads_inside(b, n.arg[2], uniform);
  int place = b->px->indices.data[n.first];
  struct stored input;
  const struct stored *h = build_stored_of(b, n.tensor, &input);
  bool lanes = uniform && b->lane >= 0 && px_mentions(b->px, place, b->lane);
  return (lanes || build_place_inside(b, h, place)) && build_loads_inside(b, place, uniform);
}

/* Variables are read by number, so their indices must still be sums of axes. */
static bool names_stand(struct builder *b, int expr) {
  if (expr < 0) return true;
  const struct px_node n = *node_of(b, expr);
  if (n.op != PX_LOAD)
    return names_stand(b, n.arg[0]) && names_stand(b, n.arg[1]) && names_stand(b, n.arg[2]);
  int place = b->px->indices.data[n.first];
  struct stored input;
  struct affine at;
  if (build_stored_of(b, n.tensor, &input)->at.kind != STORAGE_NAMED) return names_stand(b, place);
  if (!affine_of(b->px, place, &at)) return false;
  for (int i = 0; i < at.count; i++)
    if (node_of(b, at.term[i].expr)->op != PX_AXIS) return false;
  return true;
}

/* The body with axes clamped to their last elements, as few of `beyond->axes` as loads need; lanes
 * are not clamped. False if there is no such body. */
bool build_body_beyond(struct builder *b, int stage, const struct beyond *beyond, int *body) {
  const struct bound_stage *bound = &b->tree->stages[stage];
  uint64_t kept = beyond->axes;
  if (!kept || *body < 0) return true;
  int whole = b->program->tensors.data[bound->tensor].body;
  for (int i = 0; i < PROGRAM_AXES; i++) {
    uint64_t fewer = kept & ~((uint64_t)1 << i);
    int tried =
        fewer == kept ? -1 : space_expr_within(&b->space, bound, whole, fewer | beyond->lanes);
    if (fewer != kept && !b->px->failed && build_loads_inside(b, tried, false)) kept = fewer;
  }
  int within = space_expr_within(&b->space, bound, whole, kept);
  if (b->px->failed || !names_stand(b, within)) return false;
  *body = within;
  return true;
}
