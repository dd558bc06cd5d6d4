/* Counts operations and bytes of a program. See program_cost.h. Numbers saturate at 2^62, and the
 * end reports that as a failure. */
#include "program/program_cost.h"

#include <stdlib.h>

#include "base/saturating.h"

int program_dtype_bytes(enum program_dtype dtype) {
  static const int bytes[] = {4, 8, 2, 4};
  return bytes[dtype];
}

/* ---- operations ---------------------------------------------------------------------------- */

static int64_t operations(const struct program *p, int expr) {
  const struct px_node *n = &p->nodes.data[expr];
  int64_t arg[3] = {0, 0, 0};
  if (n->sort == PX_INDEX || n->op == PX_LOAD || n->op == PX_REAL) return 0;
  for (int i = 0; i < 3; i++)
    if (n->arg[i] >= 0) arg[i] = operations(p, n->arg[i]);
  if (n->op == PX_SELECT) return saturating_add(arg[0], int_max(arg[1], arg[2]));
  bool counted = scalar_ops[n->op].counted && p->nodes.data[n->arg[0]].sort != PX_INDEX;
  return saturating_add(saturating_add(arg[0], arg[1]), counted);
}

/* The axis that the index consists of; -1 if it is anything else. */
static int lone_axis(const struct program *p, int expr) {
  const struct px_node *n = &p->nodes.data[expr];
  return n->op == PX_AXIS ? (int)n->integer : -1;
}

static bool is_next(const struct program *p, int expr, int axis) {
  const struct px_node *n = &p->nodes.data[expr];
  if (n->op != PX_ADD || lone_axis(p, n->arg[0]) != axis) return false;
  const struct px_node *one = &p->nodes.data[n->arg[1]];
  return one->op == PX_INT && one->integer == 1;
}

/* Recognises the bounds ptr[r]..ptr[r+1] over all rows r of a rising ptr. Returns the axis r, and
 * in *total the number of entries of all rows; -1 for other bounds. */
static int row_axis(const struct program *p, const struct program_tensor *t,
                    const struct program_axis *a, int64_t *total) {
  const struct px_node *low = &p->nodes.data[a->low], *high = &p->nodes.data[a->high];
  if (low->op != PX_LOAD || high->op != PX_LOAD || low->tensor != high->tensor) return -1;
  const struct program_tensor *ptr = &p->tensors.data[low->tensor];
  if (!ptr->rising || ptr->rank != 1) return -1;
  int row = lone_axis(p, p->indices.data[low->first]);
  if (row < 0 || !is_next(p, p->indices.data[high->first], row)) return -1;
  if (t->axes[row].low >= 0 || t->axes[row].size != ptr->axes[0].size - 1) return -1;
  *total = ptr->most - ptr->least;
  return row;
}

/* The maximum number of evaluations of the expression. */
static int64_t evaluations(const struct program *p, const struct program_tensor *t) {
  bool counted[PROGRAM_AXES] = {false}; /* with the rows of another axis */
  int64_t n = 1, total;
  for (int i = t->rank; i < t->rank + t->reductions; i++) {
    int row = t->axes[i].low < 0 ? -1 : row_axis(p, t, &t->axes[i], &total);
    if (row < 0 || counted[row]) continue;
    counted[row] = counted[i] = true;
    n = saturating_mul(n, total);
  }
  for (int i = 0; i < t->rank + t->reductions; i++)
    if (!counted[i]) n = saturating_mul(n, t->axes[i].size);
  return n;
}

double program_bounded_share(const struct program *p, int stage) {
  const struct program_tensor *t = &p->tensors.data[stage];
  double most = 1;
  for (int i = 0; i < t->rank + t->reductions; i++) most *= (double)t->axes[i].size;
  return (double)evaluations(p, t) / most;
}

/* ---- bytes --------------------------------------------------------------------------------- */

/* The elements that the loads of one tensor reach: the box around all, and the sum over the
 * loads. */
struct reach {
  int tensor;
  int64_t low[PROGRAM_AXES], high[PROGRAM_AXES];
  int64_t sum;
};

struct reaches {
  VEC(struct reach);
};

static struct reach *reach_of(struct reaches *all, int tensor) {
  for (int i = 0; i < all->count; i++)
    if (all->data[i].tensor == tensor) return &all->data[i];
  struct reach fresh = {.tensor = tensor};
  for (int i = 0; i < PROGRAM_AXES; i++) fresh.low[i] = PROGRAM_ELEMENTS;
  VEC_PUSH(all, fresh);
  return &all->data[all->count - 1];
}

/* The number of combinations of values of these axes. */
static int64_t axes_product(const struct program_tensor *t, uint32_t axes) {
  int64_t n = 1;
  for (int i = 0; i < t->rank + t->reductions; i++)
    if (axes >> i & 1) n = saturating_mul(n, t->axes[i].size);
  return n;
}

static void reach_load(const struct program *p, const struct program_tensor *t,
                       const struct px_node *n, struct reaches *all) {
  const struct program_tensor *from = &p->tensors.data[n->tensor];
  struct reach *reach = reach_of(all, n->tensor);
  int64_t box = 1;
  uint32_t axes = 0;
  for (int i = 0; i < from->rank; i++) {
    struct px_range r = px_range(p, p->indices.data[n->first + i]);
    int64_t low = int_max(r.low, 0), high = int_min(r.high, from->axes[i].size - 1);
    if (low > high) return; /* a load that is never evaluated */
    reach->low[i] = int_min(reach->low[i], low);
    reach->high[i] = int_max(reach->high[i], high);
    box = saturating_mul(box, int_min(high - low + 1, axes_product(t, r.axes)));
    axes |= r.axes;
  }
  reach->sum = saturating_add(reach->sum, int_min(box, axes_product(t, axes)));
}

static void reach_expr(const struct program *p, const struct program_tensor *t, int expr,
                       struct reaches *all) {
  const struct px_node *n = &p->nodes.data[expr];
  for (int i = 0; i < 3; i++)
    if (n->arg[i] >= 0) reach_expr(p, t, n->arg[i], all);
  if (n->op != PX_LOAD) return;
  for (int i = 0; i < p->tensors.data[n->tensor].rank; i++)
    reach_expr(p, t, p->indices.data[n->first + i], all);
  reach_load(p, t, n, all);
}

static int64_t bytes_read(const struct program *p, const struct program_tensor *t) {
  struct reaches all = {.count = 0};
  int64_t bytes = 0;
  reach_expr(p, t, t->body, &all);
  for (int i = t->rank; i < t->rank + t->reductions; i++) {
    if (t->axes[i].low < 0) continue;
    reach_expr(p, t, t->axes[i].low, &all);
    reach_expr(p, t, t->axes[i].high, &all);
  }
  for (int i = 0; i < all.count; i++) {
    const struct reach *r = &all.data[i];
    const struct program_tensor *from = &p->tensors.data[r->tensor];
    int64_t box = 1;
    for (int k = 0; k < from->rank; k++)
      box = saturating_mul(box, r->low[k] > r->high[k] ? 0 : r->high[k] - r->low[k] + 1);
    bytes = saturating_add(bytes,
                           saturating_mul(int_min(box, r->sum), program_dtype_bytes(from->dtype)));
  }
  mem_free(all.data);
  return bytes;
}

canvas_status program_cost(canvas_context *ctx, const struct program *p, int stage,
                           struct program_cost *out) {
  const struct program_tensor *t = &p->tensors.data[stage];
  struct program_cost c = {.points = program_elements(p, stage), .reduction = 1};
  for (int i = 0; i < t->reductions; i++) c.reduction *= t->axes[t->rank + i].size;
  int64_t each = saturating_add(operations(p, t->body), t->reductions ? 1 : 0);
  c.flops = saturating_add(saturating_mul(evaluations(p, t), each),
                           t->reducer == REDUCE_MEAN ? c.points : 0);
  c.read = bytes_read(p, t);
  c.written = saturating_mul(c.points, program_dtype_bytes(t->dtype));
  if (c.flops >= SATURATED || c.read >= SATURATED)
    return fail(ctx, CANVAS_BAD_INPUT, "stage '%.40s' takes more than 2^62 operations", t->name);
  *out = c;
  return CANVAS_OK;
}

double program_flops(const struct program *p) {
  canvas_context ctx;
  double flops = 0;
  for (int i = 0; i < p->tensors.count; i++) {
    struct program_cost cost;
    if (p->tensors.data[i].is_input) continue;
    if (program_cost(&ctx, p, i, &cost) == CANVAS_OK) flops += (double)cost.flops;
  }
  return flops;
}
