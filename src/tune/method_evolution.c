/* Ansor's evolutionary search with the closed-form model instead of the learned one. A fifth of the
 * population comes from the best measured candidates. In four rounds members are chosen by
 * predicted speed and mutated with probability 0.85. The 60 best predicted of all seen are
 * measured, plus 4 random ones. See method.h. */
#include <math.h>
#include <stdlib.h>

#include "tune/method.h"

enum { POPULATION = 512, ROUNDS = 4, MEASURED = 60, RANDOM = 4, KEPT = POPULATION / 5 };
static const uint32_t MUTATION = 85; /* percent */

static void start_population(struct search *s, struct ranking *p) {
  struct tune_candidate c;
  for (int i = s->trials.count - 1; i >= 0 && p->count < KEPT; i--) {
    const struct trial *t = &s->trials.data[i];
    if (t->verdict.failure == FAILED_NOT &&
        trial_time(t) < 1.5 * trial_time(&s->trials.data[s->best]))
      ranking_add(p, s, t->candidate);
  }
  for (int i = 0; i < 2 * POPULATION && p->count < POPULATION && search_draw(s, &c); i++)
    ranking_add(p, s, c);
}

static const struct ranked *chosen(struct search *s, const struct ranking *p, double all) {
  double at = all * (random_u32(&s->random) / 4294967296.0);
  for (int i = 0; i < p->count; i++) {
    at -= 1 / p->data[i].predicted;
    if (at < 0) return &p->data[i];
  }
  return &p->data[0];
}

/* Changes one number: with probability 1/2 to its neighbour, else to any. */
static struct tune_candidate mutated(struct search *s, struct tune_candidate c) {
  const struct space *space = s->spaces[c.sketch];
  struct tune_candidate out = c;
  int digits[SPACE_KNOBS];
  if (!space->count) return c;
  int knob = (int)random_below(&s->random, (uint32_t)space->count);
  if (random_below(&s->random, 2) &&
      search_neighbour(s, c, knob, random_below(&s->random, 2) ? 1 : -1, &out))
    return out;
  space_digits(space, c.point, digits);
  digits[knob] = (int)random_below(&s->random, (uint32_t)space->knobs[knob].count);
  out.point = space_point(space, digits);
  return out;
}

static void next_round(struct search *s, struct ranking *p, struct ranking *seen) {
  struct ranking next = {0};
  double all = 0;
  for (int i = 0; i < p->count; i++) all += 1 / p->data[i].predicted;
  for (int i = 0; i < POPULATION; i++) {
    struct tune_candidate c = chosen(s, p, all)->candidate;
    if (random_below(&s->random, 100) < MUTATION) c = mutated(s, c);
    ranking_add(&next, s, c);
  }
  for (int i = 0; i < next.count; i++) VEC_PUSH(seen, next.data[i]);
  mem_free(p->data);
  *p = next;
}

static int pick_measured(struct search *s, struct ranking *seen, struct tune_candidate *c) {
  int count = 0;
  ranking_sort(seen);
  for (int i = 0; i < seen->count && count < MEASURED; i++)
    if (!search_known(s, seen->data[i].candidate)) c[count++] = seen->data[i].candidate;
  for (int i = 0; i < RANDOM && search_draw(s, &c[count]); i++) count++;
  return count;
}

canvas_status method_evolution(struct search *s) {
  const struct tune_candidate first = {0, 0};
  canvas_status status = search_measure(s, &first, 1);
  for (int idle = 0; !search_over(s) && idle < 5 && status == CANVAS_OK;) {
    struct ranking p = {0}, seen = {0};
    struct tune_candidate c[MEASURED + RANDOM];
    int before = s->trials.count;
    start_population(s, &p);
    for (int i = 0; i < p.count; i++) VEC_PUSH(&seen, p.data[i]);
    for (int i = 0; i < ROUNDS && p.count; i++) next_round(s, &p, &seen);
    status = search_measure(s, c, pick_measured(s, &seen, c));
    idle = s->trials.count == before ? idle + 1 : 0;
    mem_free(p.data);
    mem_free(seen.data);
  }
  return status;
}
