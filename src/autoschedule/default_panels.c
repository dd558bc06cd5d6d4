/* Pack operands that are not contiguous along the vector axis of their tile into panels.
 *
 *     pack W as W_p [co/32, ci, kh, kw, co%32]
 */
#include <stdio.h>
#include <stdlib.h>

#include "autoschedule/default_editor.h"

static void put(const struct default_facts *f, const struct default_load *l, int at,
                const char *ending, struct buf *text) {
  const char *name = f->p->tensors.data[l->tensor].axes[at].name;
  buf_printf(text, "%s%s%s", text->text[text->length - 1] == '[' ? "" : ", ", name, ending);
}

/* Axes of the tensor that are indexed by this axis of the stage; `lanes`: only those invariant within a vector. */
static void put_axes(const struct default_facts *f, const struct default_load *l, int axis,
                     bool lanes, struct buf *text) {
  for (int i = 0; i < f->p->tensors.data[l->tensor].rank; i++)
    if (l->axis_of[i] == axis && !(lanes && l->steps_each[i])) put(f, l, i, "", text);
}

/* The axis of the tensor that each step of the vector axis moves. */
static void put_lanes(const struct default_facts *f, const struct default_load *l, int axis,
                      const char *ending, struct buf *text) {
  for (int i = 0; i < f->p->tensors.data[l->tensor].rank; i++)
    if (l->axis_of[i] == axis && l->steps_each[i]) put(f, l, i, ending, text);
}

/* The text of the edit; `now` is the program in which the panel's name must be new. */
static void pack_text(const struct program *now, const struct default_facts *f,
                      const struct default_load *l, const struct default_tile *tile,
                      struct buf *text) {
  char name[PROGRAM_NAME], ending[PROGRAM_NAME];
  const struct program_tensor *w = &f->p->tensors.data[l->tensor];
  int64_t size = l->block[tile->vector_axis] ? l->block[tile->vector_axis]
                                             : f->t->axes[tile->vector_axis].size;
  bool panels = tile->steps < size || l->inner >> tile->vector_axis & 1;
  editor_name(now, w->name, "_p", name);
  buf_printf(text, "pack %s as %s [", w->name, name);
  put_axes(f, l, -1, false, text);
  for (int i = 0; i < f->t->rank; i++)
    if (i != tile->vector_axis) put_axes(f, l, i, false, text);
  put_axes(f, l, tile->vector_axis, true, text);
  snprintf(ending, sizeof ending, "/%lld", (long long)tile->steps);
  if (panels) put_lanes(f, l, tile->vector_axis, ending, text);
  for (int i = 0; i < f->t->reductions; i++)
    put_axes(f, l, tile->order[f->t->rank + i], false, text);
  snprintf(ending, sizeof ending, "%%%lld", (long long)tile->steps);
  put_lanes(f, l, tile->vector_axis, panels ? ending : "", text);
  buf_puts(text, "]");
}

/* The program with one more panel; unchanged if the edit fails. */
static struct program *packed(const struct editor *e, struct program *so_far,
                              const struct default_facts *f, const struct default_load *l,
                              const struct default_tile *tile) {
  const struct program *now = so_far ? so_far : program_of(e);
  struct buf text = {0};
  pack_text(now, f, l, tile, &text);
  struct program *out = editor_edited(e, now, text.text);
  buf_free(&text);
  if (!out) return so_far;
  program_free(so_far);
  return out;
}

/* Each tensor is packed at most once per round, because its other loads may use the same panel. */
bool editor_pack(struct editor *e) {
  const struct program *p = program_of(e);
  const struct default_plans *all = editor_plans(e);
  struct program *out = NULL;
  bool *done = mem_alloc((size_t)p->tensors.count + 1);
  for (int i = 0; i < p->tensors.count; i++) {
    const struct default_plan *plan = &all->plan[i];
    struct default_facts f;
    if ((plan->kind != DEFAULT_TILED && plan->kind != DEFAULT_FUSED_PRODUCER) || !plan->tile.packed)
      continue;
    if (all->constant[i]) continue; /* it is constant-folded at load time */
    default_facts(p, i, all->layout, &f);
    for (int j = 0; j < f.loads; j++) {
      if (!(plan->tile.packed >> j & 1) || done[f.load[j].tensor]) continue;
      out = packed(e, out, &f, &f.load[j], &plan->tile);
      done[f.load[j].tensor] = true;
    }
  }
  mem_free(done);
  if (out) editor_take(e, out);
  return out != NULL;
}
