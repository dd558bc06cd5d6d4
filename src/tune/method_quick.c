/* Methods led by the model: `oneshot` returns its first choice; `quick` measures the best predicted
 * candidates, then their neighbours.
 *
 * All points of a small space are considered; of a large one random points, and from the best of
 * them neighbours as long as the prediction falls. The shortlist has the default, results of
 * similar programs, and the best predicted of each sketch in turn. From the best measured points
 * all neighbours that are not predicted much slower are measured, the most promising first, until
 * none is better.
 */
#include <math.h>
#include <stdlib.h>

#include "tune/method.h"

enum {
  SMALL = 200,   /* largest space, in points, that is considered as a whole */
  SAMPLES = 100, /* random points of a larger space */
  DESCENTS = 2,  /* best random points from which to descend */
  SHORTLIST = 24,
  STEP = 8,  /* neighbours measured in one batch */
  STARTS = 3 /* points whose neighbours are measured */
};

static const double WORSE = 1.3;   /* predicted ratio to the point, to be measured */
static const double BETTER = 0.99; /* measured ratio to the point, to be taken */
static const double NEARLY = 0.92; /* predicted ratio to the default, to replace it */

/* ---- candidates by the model ----------------------------------------------------------------- */

/* Moves to the best predicted neighbour as long as it is better. */
static void descend(struct search *s, struct ranked from, struct ranking *seen) {
  struct ranked now, best = from;
  const struct space *space = s->spaces[from.candidate.sketch];
  do {
    now = best;
    for (int i = 0; i < 2 * space->count; i++) {
      struct ranked next;
      if (!search_neighbour(s, now.candidate, i / 2, i % 2 ? 1 : -1, &next.candidate)) continue;
      next.predicted = search_predict(s, next.candidate);
      if (isfinite(next.predicted)) VEC_PUSH(seen, next);
      if (next.predicted < best.predicted) best = next;
    }
  } while (best.predicted < now.predicted);
}

static void consider_sketch(struct search *s, int sketch, struct ranking *all) {
  int64_t size = s->spaces[sketch]->size;
  struct ranking seen = {0};
  for (int64_t i = 0; i < (size <= SMALL ? size : SAMPLES); i++) {
    int64_t point = i;
    if (size > SMALL) point = (int64_t)(random_u64(&s->random) >> 2) % size;
    ranking_add(&seen, s, (struct tune_candidate){sketch, point});
  }
  ranking_sort(&seen);
  for (int i = 0, count = seen.count; size > SMALL && i < DESCENTS && i < count; i++)
    descend(s, seen.data[i], &seen);
  for (int i = 0; i < seen.count; i++) VEC_PUSH(all, seen.data[i]);
  mem_free(seen.data);
}

static void consider(struct search *s, struct ranking *all) {
  for (int i = 0; i < s->sketches.count; i++) consider_sketch(s, i, all);
  ranking_sort(all);
}

/* Takes the best of each sketch, then the second of each, and so on, up to twice the best
 * prediction. */
static void take_in_turn(const struct search *s, const struct ranking *all, struct ranking *out) {
  int *taken = mem_alloc((size_t)s->sketches.count * sizeof *taken);
  for (int turn = 0; out->count < SHORTLIST && turn < SHORTLIST; turn++)
    for (int i = 0; i < all->count && out->count < SHORTLIST; i++) {
      int k = all->data[i].candidate.sketch;
      bool known = false;
      for (int j = 0; j < out->count && !known; j++)
        known = same_candidate(out->data[j].candidate, all->data[i].candidate);
      if (known || taken[k] > turn) continue;
      if (all->data[i].predicted > 2 * all->data[0].predicted) break;
      taken[k]++;
      VEC_PUSH(out, all->data[i]);
    }
  mem_free(taken);
}

/* Takes the best of each loop order, for when there is time for few trials. */
static void take_orders(const struct search *s, const struct ranking *all, struct ranking *out) {
  uint32_t taken = 0;
  for (int i = 0; i < all->count; i++) {
    uint32_t order = 1u << s->sketches.data[all->data[i].candidate.sketch].blocks;
    if (!(taken & order)) VEC_PUSH(out, all->data[i]);
    taken |= order;
  }
}

/* Keeps the model's favourite, which may need more images than trials have, for the finals. */
static void keep_favourite(struct search *s, const struct ranking *all) {
  if (!s->fewer || !all->count) return;
  s->favourite = all->data[0].candidate;
  int sketch = s->favourite.sketch;
  struct loop_tree *tree = search_for_few(s, sketch, search_bind(s, s->favourite));
  s->for_all = !tree;
  loop_tree_free(tree);
}

void method_shortlist(struct search *s, struct ranking *out) {
  struct ranking all = {0};
  consider(s, &all);
  keep_favourite(s, &all);
  ranking_add(out, s, (struct tune_candidate){0, 0});
  for (int i = 0; i < s->hints.count; i++) ranking_add(out, s, s->hints.data[i]);
  if (s->heavy) take_orders(s, &all, out);
  for (int i = 0; !s->heavy && i < SHORTLIST / 2 && i < all.count; i++) VEC_PUSH(out, all.data[i]);
  take_in_turn(s, &all, out);
  mem_free(all.data);
}

/* ---- oneshot --------------------------------------------------------------------------------- */

/* The minimum of many predictions is biased: the default is preferred if it is nearly as good. */
canvas_status method_oneshot(struct search *s) {
  struct ranking all = {0};
  consider(s, &all);
  for (int i = 0; i < s->hints.count; i++) ranking_add(&all, s, s->hints.data[i]);
  ranking_sort(&all);
  if (all.count) {
    struct ranked best = all.data[0],
                  plain = {{0, 0}, search_predict(s, (struct tune_candidate){0, 0})};
    if (best.predicted > NEARLY * plain.predicted) best = plain;
    VEC_PUSH(&s->trials,
             ((struct trial){.candidate = best.candidate, .predicted = best.predicted}));
    s->best = 0;
  }
  mem_free(all.data);
  return CANVAS_OK;
}

/* ---- quick ----------------------------------------------------------------------------------- */

static void find_neighbours(const struct search *s, struct tune_candidate from,
                            struct ranking *out) {
  double least = WORSE * search_predict(s, from);
  for (int i = 0; i < 2 * s->spaces[from.sketch]->count; i++) {
    struct tune_candidate next;
    if (!search_neighbour(s, from, i / 2, i % 2 ? 1 : -1, &next) || search_known(s, next)) continue;
    ranking_add(out, s, next);
    if (out->count && out->data[out->count - 1].predicted > least) out->count--;
  }
  ranking_sort(out);
}

/* Measures neighbours of `from` in batches until one is better, *to. */
static canvas_status improve(struct search *s, struct tune_candidate from,
                             struct tune_candidate *to, bool *better) {
  struct ranking near = {0};
  canvas_status status = CANVAS_OK;
  *better = false;
  find_neighbours(s, from, &near);
  for (int i = 0; i < near.count && !*better && status == CANVAS_OK; i += STEP) {
    struct tune_candidate c[STEP];
    int count = 0;
    for (int j = i; j < near.count && count < STEP; j++) c[count++] = near.data[j].candidate;
    status = search_measure(s, c, count);
    *to = from;
    for (int j = 0; j < count; j++)
      if (search_time(s, c[j]) < search_time(s, *to)) *to = c[j];
    *better = search_time(s, *to) < BETTER * search_time(s, from);
  }
  mem_free(near.data);
  return status;
}

static int by_time(const void *a, const void *b) {
  const struct ranked *x = a, *y = b;
  return (x->predicted > y->predicted) - (x->predicted < y->predicted);
}

/* The correct trials with their times, fastest first. */
static void measured_best(const struct search *s, struct ranking *out) {
  for (int i = 0; i < s->trials.count; i++)
    if (s->trials.data[i].verdict.failure == FAILED_NOT)
      VEC_PUSH(out, ((struct ranked){s->trials.data[i].candidate, trial_time(&s->trials.data[i])}));
  if (out->count) qsort(out->data, (size_t)out->count, sizeof *out->data, by_time);
}

canvas_status method_quick(struct search *s) {
  struct ranking first = {0}, starts = {0};
  method_shortlist(s, &first);
  canvas_status status = CANVAS_OK;
  struct tune_candidate *c = mem_alloc((size_t)first.count * sizeof *c + 1);
  for (int i = 0; i < first.count; i++) c[i] = first.data[i].candidate;
  status = search_measure(s, c, first.count);
  mem_free(c);
  mem_free(first.data);
  measured_best(s, &starts);
  for (int i = 0; i < STARTS && i < starts.count && status == CANVAS_OK; i++) {
    struct tune_candidate now = starts.data[i].candidate;
    for (bool better = true; better && !search_over(s) && status == CANVAS_OK;) {
      struct tune_candidate next;
      status = improve(s, now, &next, &better);
      if (better) now = next;
    }
  }
  mem_free(starts.data);
  return status;
}
