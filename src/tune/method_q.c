/* AutoScheduler's `q`: for each sketch a network learns the value of changing one number by a step
 * (deep Q-learning: an online and a target network). The search follows it from points drawn as in
 * `searching`, sometimes in a random direction. See method.h.
 *
 *     state   the digits, each from 0 to 1          direction   2 * knob + (up ? 1 : 0)
 *     reward  tanh(gain), gain = reduction of the time relative to the time before, 0 if slower
 *     value   reward + 0.9 * the best value of the target network at the new point
 *     chance of a random direction   max(0.8 exp(-0.01 t), 0.1) in round t
 */
#include <math.h>
#include <stdlib.h>

#include "tune/method.h"
#include "tune/mlp.h"

enum { WARM_UP = 20, WALKS = 8, LEARN = 5, EPOCHS = 5, SAMPLES = 1000 };
static const double DISCOUNT = 0.9;

struct move {
  struct tune_candidate from, to;
  int direction;
  float reward;
};

struct walker {
  struct mlp *online, *target; /* NULL until the sketch is used */
};

struct learner {
  struct search *s;
  struct walker *walkers; /* by sketch */
  struct {
    VEC(struct move);
  } moves;
};

static void state_of(const struct search *s, struct tune_candidate c, float state[SPACE_KNOBS]) {
  const struct space *space = s->spaces[c.sketch];
  int digits[SPACE_KNOBS];
  space_digits(space, c.point, digits);
  for (int i = 0; i < space->count; i++)
    state[i] =
        space->knobs[i].count > 1 ? (float)digits[i] / (float)(space->knobs[i].count - 1) : 0;
}

static struct walker *walker_of(struct learner *l, int sketch) {
  struct walker *w = &l->walkers[sketch];
  int knobs = l->s->spaces[sketch]->count;
  if (!w->online && knobs) {
    w->online = mlp_new(knobs, 2 * knobs, &l->s->random);
    w->target = mlp_new(knobs, 2 * knobs, &l->s->random);
    mlp_copy(w->target, w->online);
  }
  return w;
}

static float best_value(struct learner *l, struct tune_candidate at) {
  float state[SPACE_KNOBS], value[2 * SPACE_KNOBS], best = 0;
  state_of(l->s, at, state);
  mlp_run(walker_of(l, at.sketch)->target, state, value);
  for (int i = 0; i < 2 * l->s->spaces[at.sketch]->count; i++)
    if (value[i] > best) best = value[i];
  return best;
}

static void learn(struct learner *l) {
  int count = l->moves.count < SAMPLES ? l->moves.count : SAMPLES;
  for (int i = 0; i < EPOCHS * count; i++) {
    const struct move *m = &l->moves.data[random_below(&l->s->random, (uint32_t)l->moves.count)];
    float state[SPACE_KNOBS];
    state_of(l->s, m->from, state);
    float wanted = m->reward + (float)DISCOUNT * best_value(l, m->to);
    mlp_learn(walker_of(l, m->from.sketch)->online, state, m->direction, wanted);
  }
  for (int i = 0; i < l->s->sketches.count; i++)
    if (l->walkers[i].online) mlp_copy(l->walkers[i].target, l->walkers[i].online);
}

/* The direction to a new point that the network, or chance, chooses; false: none. */
static bool choose(struct learner *l, struct tune_candidate from, double chance, struct move *out) {
  struct search *s = l->s;
  int knobs = s->spaces[from.sketch]->count, best = -1;
  float state[SPACE_KNOBS], value[2 * SPACE_KNOBS];
  if (!knobs) return false;
  bool random = random_u32(&s->random) / 4294967296.0 < chance;
  state_of(s, from, state);
  mlp_run(walker_of(l, from.sketch)->online, state, value);
  for (int i = 0; i < 2 * knobs; i++) {
    struct tune_candidate to;
    if (random) value[i] = (float)random_below(&s->random, 1 << 20);
    if (best >= 0 && value[i] <= value[best]) continue;
    if (!search_neighbour(s, from, i / 2, i % 2 ? 1 : -1, &to) || search_known(s, to)) continue;
    if (!isfinite(search_predict(s, to))) continue;
    best = i;
    *out = (struct move){from, to, i, 0};
  }
  return best >= 0;
}

/* Draws a correct trial, as in simulated annealing. */
static struct tune_candidate start_of(struct search *s) {
  const struct trial *best = &s->trials.data[s->best];
  const struct trial *t = &s->trials.data[random_below(&s->random, (uint32_t)s->trials.count)];
  double u = random_u32(&s->random) / 4294967296.0;
  double worse = (trial_time(t) - trial_time(best)) / trial_time(best);
  return t->verdict.failure == FAILED_NOT && u < exp(-0.5 * worse) ? t->candidate : best->candidate;
}

static canvas_status one_round(struct learner *l, int round) {
  struct search *s = l->s;
  struct tune_candidate c[WALKS];
  struct move moves[WALKS];
  int count = 0;
  double chance = fmax(0.8 * exp(-0.01 * round), 0.1);
  for (int i = 0; i < WALKS; i++) {
    if (choose(l, start_of(s), chance, &moves[count])) {
      c[count] = moves[count].to;
      count++;
    }
  }
  TRY(search_measure(s, c, count));
  for (int i = 0; i < count; i++) {
    double from = search_time(s, moves[i].from), to = search_time(s, moves[i].to);
    moves[i].reward = (float)tanh(to < from ? (from - to) / from : 0);
    if (search_known(s, moves[i].to)) VEC_PUSH(&l->moves, moves[i]);
  }
  if (round % LEARN == LEARN - 1 && l->moves.count) learn(l);
  return CANVAS_OK;
}

static canvas_status warm_up(struct search *s) {
  struct tune_candidate c[WARM_UP] = {{0, 0}};
  int count = 1;
  while (count < WARM_UP && search_draw(s, &c[count])) count++;
  return search_measure(s, c, count);
}

canvas_status method_q(struct search *s) {
  struct learner l = {.s = s};
  l.walkers = mem_alloc((size_t)s->sketches.count * sizeof *l.walkers + 1);
  canvas_status status = warm_up(s);
  for (int round = 0, idle = 0; s->best >= 0 && !search_over(s) && idle < 30 && status == CANVAS_OK;
       round++) {
    int before = s->trials.count;
    status = one_round(&l, round);
    idle = s->trials.count == before ? idle + 1 : 0;
    if (idle && status == CANVAS_OK) status = warm_up(s);
  }
  for (int i = 0; i < s->sketches.count; i++) {
    mlp_free(l.walkers[i].online);
    mlp_free(l.walkers[i].target);
  }
  mem_free(l.walkers);
  mem_free(l.moves.data);
  return status;
}
