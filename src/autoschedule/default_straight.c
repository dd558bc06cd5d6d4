/* Split element-wise loads that would be gathered, although most of their elements are contiguous: a circular
 * shift of an image, or padding by reflection.
 *
 *     Y[c:64, w:56] = X[c, (w+3)%56]   ->   if w < 53 then X[c, w+3] else X[c, (w+3)%56]
 */
#include "autoschedule/default_editor.h"
#include "rewrite/program_edit.h"
#include "rewrite/program_rebuild.h"

/* An unguarded load that is non-affine along the innermost axis, after `skip` others; -1. */
static int non_affine_load(const struct default_facts *f, int *skip) {
  int last = f->t->rank ? f->order[f->t->rank - 1] : -1;
  for (int i = 0; i < f->loads && last >= 0; i++) {
    const struct default_load *l = &f->load[i];
    if (l->non_affine >> last & 1 && !(l->guarded >> last & 1) && (*skip)-- == 0) return l->node;
  }
  return -1;
}

bool editor_straighten(struct editor *e, int *skip) {
  const struct program *p = program_of(e);
  const struct default_plans *all = editor_plans(e);
  struct program *out = NULL;
  int left = *skip, node = -1;
  for (int i = 0; i < p->tensors.count && node < 0; i++) {
    struct default_facts f;
    bool tiled = all->plan[i].kind == DEFAULT_TILED || all->plan[i].kind == DEFAULT_FLAT;
    if (!tiled || p->tensors.data[i].reductions) continue;
    default_facts(p, i, all->layout, &f);
    if (!f.truncated) node = non_affine_load(&f, &left);
    if (node >= 0) out = program_split_load(p, i, node, f.order[f.t->rank - 1]);
  }
  if (out)
    editor_take(e, out);
  else
    ++*skip;
  return node >= 0;
}
