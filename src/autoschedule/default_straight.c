/* Maps whose lanes would be loaded one by one although most of them follow each other: an image that is turned in
 * a circle, or padded with its own reflection. See default.h.
 *
 *     Y[c:64, w:56] = X[c, (w+3)%56]   ->   if w < 53 then X[c, w+3] else X[c, (w+3)%56]
 */
#include "autoschedule/default_editor.h"
#include "rewrite/program_edit.h"
#include "rewrite/program_rebuild.h"

/* A load that is twisted along the axis that is kept last, and under no condition of it, after `skip` others. */
static int twisted_load(const struct default_facts *f, int *skip) {
  int last = f->t->rank ? f->order[f->t->rank - 1] : -1;
  for (int i = 0; i < f->loads && last >= 0; i++) {
    const struct default_load *l = &f->load[i];
    if (l->twisted >> last & 1 && !(l->asked >> last & 1) && (*skip)-- == 0) return l->node;
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
    bool tiled = all->plan[i].kind == DEFAULT_TILED || all->plan[i].kind == DEFAULT_LONG;
    if (!tiled || p->tensors.data[i].reductions) continue;
    default_facts(p, i, all->kept, &f);
    if (!f.many) node = twisted_load(&f, &left);
    if (node >= 0) out = program_split_load(p, i, node, f.order[f.t->rank - 1]);
  }
  if (out)
    editor_take(e, out);
  else
    ++*skip;
  return node >= 0;
}
