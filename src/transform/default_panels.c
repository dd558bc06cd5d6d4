/* Operands that are not contiguous along the lanes of their tile are packed into panels. See
 * default.h.
 */
#include <stdio.h>

#include "program/affine.h"
#include "transform/default_editor.h"

/* The axis of the tensor that is this axis of the stage, in a plain load; -1. */
static int tensor_axis(const struct default_facts *f, const struct default_load *l, int axis) {
  const struct px_node *n = &f->p->nodes.data[l->node];
  for (int i = 0; i < f->p->tensors.data[l->tensor].rank; i++)
    if (px_mentions(f->p, f->p->indices.data[n->first + i], axis)) return i;
  return -1;
}

static void put_tensor_axis(const struct default_facts *f, const struct default_load *l, int at,
                            const char *ending, struct buf *text) {
  const char *name = f->p->tensors.data[l->tensor].axes[at].name;
  buf_printf(text, "%s%s%s", text->text[text->length - 1] == '[' ? "" : ", ", name, ending);
}

static void put_axis(const struct default_facts *f, const struct default_load *l, int axis,
                     const char *ending, struct buf *text) {
  int at = tensor_axis(f, l, axis);
  if (at >= 0) put_tensor_axis(f, l, at, ending, text);
}

/* Axes at which the stage reads one place only. */
static void put_still_axes(const struct default_facts *f, const struct default_load *l,
                           struct buf *text) {
  const struct px_node *n = &f->p->nodes.data[l->node];
  for (int i = 0; i < f->p->tensors.data[l->tensor].rank; i++)
    if (!px_range(f->p, f->p->indices.data[n->first + i]).axes) put_tensor_axis(f, l, i, "", text);
}

/* pack W as W_p [co/32, ci, kh, kw, co%32] */
static void pack_text(const struct default_facts *f, const struct default_load *l,
                      const struct default_tile *tile, struct buf *text) {
  char name[PROGRAM_NAME], ending[32];
  const struct program_tensor *w = &f->p->tensors.data[l->tensor];
  bool panels = tile->steps < f->t->axes[tile->vec].size;
  editor_name(f->p, w->name, "_p", name);
  buf_printf(text, "pack %s as %s [", w->name, name);
  put_still_axes(f, l, text);
  for (int i = 0; i < f->t->rank; i++)
    if (i != tile->vec) put_axis(f, l, i, "", text);
  snprintf(ending, sizeof ending, "/%lld", (long long)tile->steps);
  if (panels) put_axis(f, l, tile->vec, ending, text);
  for (int i = 0; i < f->t->reductions; i++) put_axis(f, l, tile->order[f->t->rank + i], "", text);
  snprintf(ending, sizeof ending, "%%%lld", (long long)tile->steps);
  put_axis(f, l, tile->vec, panels ? ending : "", text);
  buf_puts(text, "]");
}

bool editor_pack(struct editor *e) {
  struct default_plans all;
  const struct program *p = program_of(e);
  struct buf text = {0};
  default_plan_all(&all, p, e->machine, true);
  for (int i = 0; i < p->tensors.count && !text.length; i++) {
    const struct default_plan *plan = &all.plan[i];
    struct default_facts f;
    if ((plan->kind != DEFAULT_TILED && plan->kind != DEFAULT_DEFERRED) || !plan->tile.packed)
      continue;
    default_facts(p, i, all.kept, &f);
    for (int j = 0; j < f.loads && !text.length; j++)
      if (plan->tile.packed >> j & 1) pack_text(&f, &f.load[j], &plan->tile, &text);
  }
  default_plan_free(&all);
  bool packed = text.length && editor_edit(e, text.text);
  buf_free(&text);
  return packed;
}
