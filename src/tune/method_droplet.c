/* Coordinate descent as in AutoTVM's DropletTuner. From the best of the model's guesses, one or two
 * numbers are changed by a step, sixteen candidates at a time. A step is taken only if a t-test of
 * the two timings confirms it. See method.h. */
#include <math.h>
#include <stdlib.h>

#include "tune/method.h"

enum { BATCH = 16 };
static const double CRITICAL = 1.83; /* one-sided, p = 0.05, nine degrees of freedom */

static const struct verdict *verdict_of(const struct search *s, struct tune_candidate c) {
  for (int i = 0; i < s->trials.count; i++)
    if (same_candidate(s->trials.data[i].candidate, c)) return &s->trials.data[i].verdict;
  return NULL;
}

/* Variance of the mean, from quartiles, which are 1.349 standard deviations from each other. */
static double variance(const struct verdict *v) {
  double sigma = (v->upper - v->lower) / 1.349;
  return sigma * sigma / v->repeats;
}

static bool is_faster(const struct verdict *a, const struct verdict *b) {
  if (!a || a->failure != FAILED_NOT) return false;
  if (!b || b->failure != FAILED_NOT) return true;
  double spread = sqrt(variance(a) + variance(b)) + 1e-3 * b->median;
  return (b->median - a->median) / spread > CRITICAL;
}

struct moves {
  VEC(struct tune_candidate);
};

/* One knob changed by a step, then pairs of knobs. */
static void find_moves(struct search *s, struct tune_candidate from, struct moves *out) {
  int knobs = s->spaces[from.sketch]->count;
  struct tune_candidate one, two;
  for (int pairs = 0; pairs < 2; pairs++)
    for (int a = 0; a < 2 * knobs; a++) {
      if (!search_neighbour(s, from, a / 2, a % 2 ? 1 : -1, &one)) continue;
      if (!pairs) VEC_PUSH(out, one);
      for (int b = 2 * (a / 2 + 1); pairs && b < 2 * knobs; b++)
        if (search_neighbour(s, one, b / 2, b % 2 ? 1 : -1, &two)) VEC_PUSH(out, two);
    }
}

/* Moves *at to the best candidate of the first batch with a faster one; *moved: there is one. */
static canvas_status take_step(struct search *s, struct tune_candidate *at, bool *moved) {
  struct moves m = {0};
  canvas_status status = CANVAS_OK;
  struct tune_candidate best = *at;
  find_moves(s, *at, &m);
  *moved = false;
  for (int i = 0; i < m.count && !*moved && status == CANVAS_OK && !search_over(s); i += BATCH) {
    int count = m.count - i < BATCH ? m.count - i : BATCH;
    status = search_measure(s, m.data + i, count);
    for (int j = i; j < i + count; j++)
      if (search_time(s, m.data[j]) < search_time(s, best)) best = m.data[j];
    *moved = is_faster(verdict_of(s, best), verdict_of(s, *at));
  }
  if (*moved) *at = best;
  mem_free(m.data);
  return status;
}

canvas_status method_droplet(struct search *s) {
  struct ranking first = {0};
  struct tune_candidate c[BATCH];
  int count = 0;
  method_shortlist(s, &first);
  while (count < first.count && count < BATCH) {
    c[count] = first.data[count].candidate;
    count++;
  }
  mem_free(first.data);
  TRY(search_measure(s, c, count));
  for (int start = 0; s->best >= 0 && !search_over(s) && start < 100; start++) {
    struct tune_candidate at = s->trials.data[s->best].candidate;
    if (start && !search_draw(s, &at)) break;
    TRY(search_measure(s, &at, 1));
    for (bool moved = true; moved && !search_over(s);) TRY(take_step(s, &at, &moved));
  }
  return CANVAS_OK;
}
