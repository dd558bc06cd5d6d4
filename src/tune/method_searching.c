/* AutoScheduler's `searching`. From a measured point, drawn as in simulated annealing, all
 * neighbours in every direction are measured. A point without a better neighbour is a local minimum
 * and not drawn again. Before each round some random points are added.
 *
 * Two things differ on purpose: 20 random points precede the first round instead of 400, and the
 * budget ends the search, not a difference in milliseconds. See method.h.
 */
#include <math.h>
#include <stdlib.h>

#include "tune/method.h"

enum { WARM_UP = 20, ROUND = 8 };

struct stored {
  struct tune_candidate who;
  double time;
  bool minimum; /* a local minimum */
};
struct memory {
  VEC(struct stored);
};

/* Stores correct trials since `from`, accepted as in the Metropolis algorithm. */
static void store_trials(struct search *s, int from, struct memory *m, double best) {
  for (int i = from; i < s->trials.count; i++) {
    const struct trial *t = &s->trials.data[i];
    double u = random_u32(&s->random) / 4294967296.0;
    if (t->verdict.failure != FAILED_NOT) continue;
    if (trial_time(t) > best && u > exp(-0.5 * (trial_time(t) - best) / best)) continue;
    VEC_PUSH(m, ((struct stored){t->candidate, trial_time(t), false}));
  }
}

static canvas_status warm_up(struct search *s, int count) {
  struct tune_candidate c[WARM_UP];
  int drawn = 0;
  while (drawn < count && search_draw(s, &c[drawn])) drawn++;
  return search_measure(s, c, drawn);
}

static struct stored *best_stored(struct memory *m) {
  struct stored *best = NULL;
  for (int i = 0; i < m->count; i++)
    if (!m->data[i].minimum && (!best || m->data[i].time < best->time)) best = &m->data[i];
  return best;
}

static struct stored *draw_stored(struct search *s, struct memory *m) {
  struct stored *best = best_stored(m);
  if (!best) return NULL;
  struct stored *e = &m->data[random_below(&s->random, (uint32_t)m->count)];
  double u = random_u32(&s->random) / 4294967296.0;
  return !e->minimum && u < exp(-0.5 * (e->time - best->time) / best->time) ? e : best;
}

static canvas_status walk_all(struct search *s, struct tune_candidate from) {
  struct tune_candidate c[2 * SPACE_KNOBS];
  int count = 0;
  for (int i = 0; i < 2 * s->spaces[from.sketch]->count; i++)
    count += search_neighbour(s, from, i / 2, i % 2 ? 1 : -1, &c[count]);
  return search_measure(s, c, count);
}

static double best_time(const struct search *s) {
  return s->best < 0 ? INFINITY : trial_time(&s->trials.data[s->best]);
}

static canvas_status one_round(struct search *s, struct memory *m) {
  struct stored *e = draw_stored(s, m);
  int from = s->trials.count;
  double before = best_time(s);
  if (e) {
    TRY(walk_all(s, e->who));
    e->minimum = !(best_time(s) < before);
  }
  TRY(warm_up(s, ROUND));
  store_trials(s, from, m, best_time(s));
  return CANVAS_OK;
}

canvas_status method_searching(struct search *s) {
  const struct tune_candidate first = {0, 0};
  struct memory m = {0};
  canvas_status status = search_measure(s, &first, 1);
  if (status == CANVAS_OK) status = warm_up(s, WARM_UP);
  store_trials(s, 0, &m, best_time(s));
  for (int idle = 0; !search_over(s) && idle < 20 && status == CANVAS_OK;) {
    int before = s->trials.count;
    status = one_round(s, &m);
    idle = s->trials.count == before ? idle + 1 : 0;
  }
  mem_free(m.data);
  return status;
}
