/* Constraints of sketches on the stage with most work, and the kinds of tiles that a sketch may
 * name. A kind is a vector axis, the steps of its inner loop, and up to two axes with rows. */
#include <string.h>

#include "autoschedule/default_chooser.h"

/* Terms of a reduction, or elements of an element-wise stage. */
static double work_of(const struct program *p, int stage) {
  const struct program_tensor *t = &p->tensors.data[stage];
  double points = 1;
  for (int i = 0; i < t->rank + t->reductions; i++) points *= (double)t->axes[i].size;
  return points;
}

int default_constrained_stage(const struct program *p, const bool *needed) {
  int best = -1;
  for (int i = 0; i < p->tensors.count; i++) {
    const struct program_tensor *t = &p->tensors.data[i];
    if (t->is_input || !needed[i]) continue;
    bool sums = t->reductions > 0, best_sums = best >= 0 && p->tensors.data[best].reductions > 0;
    if (best < 0 || (sums && !best_sums) || (sums == best_sums && work_of(p, i) > work_of(p, best)))
      best = i;
  }
  return best;
}

/* ---- kinds of tiles ---- */

/* The kind of a tile. */
static void kind_of(const struct default_facts *f, const struct default_tile *tile,
                    struct default_constraint *out) {
  int rows = 0;
  *out =
      (struct default_constraint){.tile = true, .steps = tile->vector_axis < 0 ? 1 : tile->steps};
  if (tile->vector_axis >= 0) strcpy(out->lanes, f->t->axes[tile->vector_axis].name);
  for (int i = 0; i < f->t->rank && rows < 2; i++)
    if (i != tile->vector_axis && tile->rows[i] > 1) strcpy(out->rows[rows++], f->t->axes[i].name);
}

static bool same_kind(const struct default_constraint *a, const struct default_constraint *b) {
  return a->steps == b->steps && !strcmp(a->lanes, b->lanes) && !strcmp(a->rows[0], b->rows[0]) &&
         !strcmp(a->rows[1], b->rows[1]);
}

bool default_meets_constraint(const struct default_facts *f, const struct default_tile *tile,
                              const struct default_constraint *constraint) {
  struct default_constraint kind;
  if (!constraint->tile) return true;
  kind_of(f, tile, &kind);
  return same_kind(&kind, constraint);
}

bool chooser_meets_constraint(const struct chooser *c) {
  const struct default_constraint *constraint = c->options.constraint;
  return !constraint || default_meets_constraint(c->f, &c->now, constraint);
}

void chooser_keep_candidate(struct chooser *c) {
  struct default_candidates *all = c->options.constraint->candidates;
  struct default_constraint kind;
  kind_of(c->f, &c->now, &kind);
  for (int i = 0; i < all->count; i++) {
    struct default_candidate *known = &all->data[i];
    if (!same_kind(&known->constraint, &kind)) continue;
    if (c->now.cycles < known->cycles) known->cycles = c->now.cycles;
    return;
  }
  VEC_PUSH(all, ((struct default_candidate){kind, c->now.cycles}));
}
