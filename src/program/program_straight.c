/* A load whose index goes straight through most of an axis becomes two: one that moves by one with each step,
 * for vectors, and what it was for the other places. See program_edit.h.
 *
 *     Y[w:58] = X[min(max(max(1-w, w-1), 0), 55-max(w-56, 0))]
 *
 *     Y[w:58] = if 1 <= w && w < 57 then X[w-1] else X[min(max(max(1-w, w-1), 0), 55-max(w-56, 0))]
 */
#include "program/program_edit.h"
#include "program/program_rebuild.h"

enum { MOST = 4096 }; /* steps of an axis that are looked at */

/* The index where the axis, which is the only one in it, is at `place`. */
static bool index_at(struct program *scratch, const struct program *p, int index, int axis,
                     int64_t place, int64_t *value) {
  int at[PROGRAM_AXES];
  for (int i = 0; i < PROGRAM_AXES; i++) at[i] = px_int(scratch, i == axis ? place : 0);
  const struct px_map map = {.axis = at};
  int copy = px_copy(scratch, p, index, &map);
  if (scratch->failed || scratch->nodes.data[copy].op != PX_INT) return false;
  *value = scratch->nodes.data[copy].integer;
  return true;
}

/* The longest run of places in which the index is one more with each step. */
static bool find_run(const struct program *p, int index, int axis, int64_t size,
                     struct straight *out) {
  struct program *scratch = program_new("scratch");
  int64_t begin = 0, before = 0, value = 0;
  bool known = true;
  out->low = out->high = 0;
  for (int64_t i = 0; i < size && known; i++) {
    known = index_at(scratch, p, index, axis, i, &value);
    if (i && value != before + 1) begin = i;
    before = value;
    if (i + 1 - begin <= out->high - out->low) continue;
    out->low = begin;
    out->high = i + 1;
    out->step = value - i;
  }
  program_free(scratch);
  return known;
}

/* The index of the load that depends on the axis, and on nothing else; -1. */
static int index_of(const struct program *p, int node, int axis) {
  const struct px_node *n = &p->nodes.data[node];
  int found = -1;
  for (int i = 0; i < p->tensors.data[n->tensor].rank; i++) {
    struct px_range range = px_range(p, p->indices.data[n->first + i]);
    if (!(range.axes >> axis & 1)) continue;
    if (found >= 0 || range.axes != 1u << axis || range.data) return -1;
    found = i;
  }
  return found;
}

struct program *program_straight(const struct program *p, int stage, int node, int axis) {
  const struct program_tensor *t = &p->tensors.data[stage];
  struct change c = change_open(CHANGE_STRAIGHT, p);
  struct program *out = NULL;
  canvas_context ctx;
  int64_t size = t->axes[axis].size;
  c.tensor = -1;
  c.reader = stage;
  c.node = node;
  c.straight.axis = axis;
  c.straight.at = index_of(p, node, axis);
  bool some = c.straight.at >= 0 && size <= MOST &&
              find_run(p, p->indices.data[p->nodes.data[node].first + c.straight.at], axis, size,
                       &c.straight);
  int64_t run = c.straight.high - c.straight.low;
  if (some && run < size && 4 * run >= 3 * size) {
    if (change_finish(&ctx, &c, &out) != CANVAS_OK) return NULL;
    return out;
  }
  change_close(&c);
  program_free(c.to);
  return NULL;
}
