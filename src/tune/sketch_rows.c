/* Schedules stages row by row, with each reduction along its row in vectors that are added up at
 * once, remainder included. For stages that share rows, e.g. of a norm or softmax, and for a stage
 * that reduces them.
 *
 *     M[n:12] = X[n, c] / 100 // sum c:100
 *     Y[n:12, c:100] = X[n, c] - M[n]
 *
 *     row0 =>
 *         M_v:100:vec:mask =>
 *             @M = {row0}/n // {M_v}/c
 *         Y_v:100:vec:mask =>
 *             @Y = {row0}/n, {Y_v}/c
 *
 * Partial sums of a short or odd row would add remaining lanes one by one; here they join the one
 * sum. Long rows use some vectors at a time.
 */
#include <stdlib.h>
#include <string.h>

#include "program/affine.h"
#include "tune/sketch.h"

enum { WHOLE = 8 /* vectors of the longest row that is not split */ };

/* Number of axes of a row's index: the rank of the first reduction, *first; 0: none. */
static int rows_of(const struct program *p, const struct program_tensor **first) {
  for (int i = 0; i < p->tensors.count; i++)
    if (p->tensors.data[i].reductions) {
      *first = &p->tensors.data[i];
      return p->tensors.data[i].rank;
    }
  return 0;
}

/* Whether all loads are contiguous or invariant along the last axis, and some are contiguous. */
static bool is_straight(const struct program *p, int stage) {
  struct default_layout *layouts = mem_alloc((size_t)p->tensors.count * sizeof *layouts);
  struct default_facts f;
  for (int i = 0; i < p->tensors.count; i++) default_row_major(&p->tensors.data[i], &layouts[i]);
  default_facts(p, stage, layouts, &f);
  mem_free(layouts);
  int axis = f.t->rank + f.t->reductions - 1;
  bool moves = false,
       straight = !f.truncated && !(f.guarded >> axis & 1) && f.t->axes[axis].low < 0;
  for (int i = 0; i < f.loads; i++) {
    const struct default_load *l = &f.load[i];
    straight &= !(l->non_affine >> axis & 1) && !l->block[axis] && l->stride[axis] >= 0 &&
                l->stride[axis] <= 1;
    moves |= l->stride[axis] == 1;
  }
  return straight && moves;
}

/* Whether the stage has the rows of the first reduction and at most one axis along them. */
static bool is_of_rows(const struct program *p, int stage, const struct program_tensor *first,
                       int rows) {
  const struct program_tensor *t = &p->tensors.data[stage];
  int beyond = t->rank + t->reductions - rows;
  if (t->rank < rows || beyond > 1) return false;
  for (int i = 0; i < rows; i++)
    if (t->axes[i].size != first->axes[i].size || t->axes[i].low >= 0) return false;
  return !beyond || is_straight(p, stage);
}

static void put_axes(const struct program_tensor *t, int rows, struct buf *out) {
  buf_printf(out, "@%s = ", t->name);
  for (int i = 0; i < rows; i++) buf_printf(out, "%s{row%d}/%s", i ? ", " : "", i, t->axes[i].name);
}

/* Writes loops over some vectors at a time, with a peeled remainder. */
static void put_vectors(const char *name, int64_t size, int64_t lanes, struct buf *out) {
  buf_printf(out, "    %s_o, %s_v:{", name, name);
  for (int64_t steps = 4; steps <= 16 && steps * lanes <= size; steps *= 2)
    buf_printf(out, "%s%lld", steps > 4 ? "," : "", (long long)(steps * lanes));
  buf_puts(out, "}:peel:vec =>\n        ");
}

static void put_stage(const struct program_tensor *t, int rows, const struct machine *machine,
                      struct buf *out) {
  const char *along = t->reductions ? " // " : ", ", *name = t->name;
  if (t->rank + t->reductions == rows) {
    buf_puts(out, "    ");
    put_axes(t, rows, out);
    buf_puts(out, "\n");
    return;
  }
  const struct program_axis *a = &t->axes[rows];
  int64_t lanes = machine->vector_bytes / (t->dtype == PROGRAM_F64 ? 8 : 4);
  bool split = a->size > WHOLE * lanes;
  if (split)
    put_vectors(name, a->size, lanes, out);
  else
    buf_printf(out, "    %s_v:%lld:vec%s =>\n        ", name, (long long)a->size,
               a->size % lanes ? ":mask" : "");
  put_axes(t, rows, out);
  if (split)
    buf_printf(out, "%s{%s_o, %s_v}/%s\n", along, name, name, a->name);
  else
    buf_printf(out, "%s{%s_v}/%s\n", along, name, a->name);
}

struct schedule *sketch_rows(const struct program *p, const struct machine *machine) {
  const struct program_tensor *first = NULL;
  int rows = rows_of(p, &first);
  struct buf text = {0};
  struct schedule *out = NULL;
  canvas_context ctx;
  if (!rows) return NULL;
  for (int i = 0; i < p->tensors.count; i++)
    if (!p->tensors.data[i].is_input && !is_of_rows(p, i, first, rows)) return NULL;
  for (int i = 0; i < rows; i++) buf_printf(&text, "%srow%d", i ? ", " : "", i);
  buf_puts(&text, " =>\n");
  for (int i = 0; i < p->tensors.count; i++)
    if (!p->tensors.data[i].is_input) put_stage(&p->tensors.data[i], rows, machine, &text);
  if (schedule_parse(&ctx, text.text, text.length, &out) != CANVAS_OK) out = NULL;
  buf_free(&text);
  return out;
}
