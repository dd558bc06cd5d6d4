/* A genetic algorithm as in AutoTVM's GATuner: a population of 100, three elites, parents drawn by
 * speed, one-point crossover of their numbers, each number redrawn with probability 0.1, no model.
 * A gene is the sketch, then its digits. With parents of two sketches the child has the first one's
 * sketch, and the digits of the other that fit. See method.h. */
#include <math.h>
#include <stdlib.h>

#include "tune/method.h"

enum { POPULATION = 100, ELITES = 3, TRIES = 50 };
static const uint32_t MUTATION = 10; /* percent of digits */

struct population {
  struct tune_candidate who[POPULATION];
  double speed[POPULATION]; /* 1/seconds; 0: failed */
  int count;
};

static canvas_status score(struct search *s, struct population *p) {
  TRY(search_measure(s, p->who, p->count));
  for (int i = 0; i < p->count; i++) p->speed[i] = 1 / search_time(s, p->who[i]);
  return CANVAS_OK;
}

static int parent(struct search *s, const struct population *p) {
  double all = 0;
  for (int i = 0; i < p->count; i++) all += p->speed[i];
  double at = all * (random_u32(&s->random) / 4294967296.0);
  for (int i = 0; i < p->count; i++) {
    at -= p->speed[i];
    if (at < 0) return i;
  }
  return (int)random_below(&s->random, (uint32_t)p->count);
}

static struct tune_candidate child_of(struct search *s, struct tune_candidate a,
                                      struct tune_candidate b) {
  const struct space *space = s->spaces[a.sketch], *other = s->spaces[b.sketch];
  int digits[SPACE_KNOBS], from[SPACE_KNOBS];
  space_digits(space, a.point, digits);
  space_digits(other, b.point, from);
  int cut = (int)random_below(&s->random, (uint32_t)space->count + 1);
  for (int i = cut; i < space->count && i < other->count; i++)
    if (from[i] < space->knobs[i].count) digits[i] = from[i];
  for (int i = 0; i < space->count; i++)
    if (random_below(&s->random, 100) < MUTATION)
      digits[i] = (int)random_below(&s->random, (uint32_t)space->knobs[i].count);
  return (struct tune_candidate){a.sketch, space_point(space, digits)};
}

/* A legal child that was not measured, else a random candidate; false: none. */
static bool breed(struct search *s, const struct population *p, struct tune_candidate *out) {
  for (int i = 0; i < TRIES; i++) {
    *out = child_of(s, p->who[parent(s, p)], p->who[parent(s, p)]);
    if (!search_known(s, *out) && isfinite(search_predict(s, *out))) return true;
  }
  return search_draw(s, out);
}

static void keep_elites(const struct population *p, struct population *next) {
  bool taken[POPULATION] = {false};
  for (int e = 0; e < ELITES && e < p->count; e++) {
    int best = -1;
    for (int i = 0; i < p->count; i++)
      if (!taken[i] && (best < 0 || p->speed[i] > p->speed[best])) best = i;
    taken[best] = true;
    next->who[next->count++] = p->who[best];
  }
}

canvas_status method_ga(struct search *s) {
  struct population now = {.who = {{0, 0}}, .count = 1}, next;
  while (now.count < POPULATION && search_draw(s, &now.who[now.count])) now.count++;
  for (int idle = 0; !search_over(s) && idle < 10;) {
    int before = s->trials.count;
    TRY(score(s, &now));
    next = (struct population){.count = 0};
    keep_elites(&now, &next);
    while (next.count < POPULATION && breed(s, &now, &next.who[next.count])) next.count++;
    now = next;
    idle = s->trials.count == before ? idle + 1 : 0;
  }
  return CANVAS_OK;
}
