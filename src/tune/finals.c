/* Chooses, compiles and times finalists. See finals.h. */
#include "tune/finals.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/saturating.h"
#include "program/program_cost.h"
#include "run/child.h"
#include "tune/candidates.h"

enum { CONTENDERS = 5, SAMPLES = 5, HEAVY_FINALISTS = 2, LEAST_ROUNDS = 3, LONG_ROUNDS = 3 };
enum { RUNS = 9, WHOLE_RUNS = 8 }; /* runs of a finalist on average; of a contender on all images */

static const double GAIN = 0.99;    /* ratio to the default's time below which a finalist wins */
static const double LONG = 0.1;     /* seconds of a run from which few rounds suffice */
static const double TIMING = 0.25;  /* seconds of a finalist's rounds, approximately */
static const double ELEMENT = 2e-8; /* seconds to make one input element */
static const double CHECK = 4e-9;   /* seconds to poison, keep and compare one output element */
static const double WINNER = 0.7;   /* seconds to time the winner once more */

bool finals_are_long(const struct search *s) {
  return s->heavy && s->fewer;
}

double finals_left(const struct finals *f) {
  return f->until > 0 ? fmax(1, f->until - clock_wall()) : 0;
}

int finals_find(const struct finals *f, struct tune_candidate c) {
  int i = f->count - 1;
  while (i >= 0 && !same_candidate(f->of[i].who, c)) i--;
  return i;
}

/* ---- cost of finals -------------------------------------------------------------------------- */

static double elements_of(const struct program *p, bool inputs) {
  double elements = 0;
  for (int i = 0; inputs && i < p->inputs.count; i++)
    elements += (double)program_elements(p, p->inputs.data[i]);
  for (int i = 0; !inputs && i < p->outputs.count; i++)
    elements += (double)program_elements(p, p->outputs.data[i]);
  return elements;
}

/* Cost of that many finalists and the default without compiling: processor seconds, and runs on all
 * images. */
static void cost_of_finals(const struct search *s, int finalists, double *seconds, double *runs) {
  double part = (double)s->tried / (double)s->images, whole = 0;
  *runs = RUNS * part * (1 + finalists);
  if (finals_are_long(s)) *runs = LEAST_ROUNDS * (1 + finalists);
  if (s->fewer) whole = finals_are_long(s) ? 1 + finalists : fmin(CONTENDERS, 1 + finalists);
  *seconds = finals_are_long(s) ? 0 : WINNER;
  *seconds += (s->fewer ? ELEMENT : 0) * elements_of(s->program, true);
  *seconds += CHECK * elements_of(s->program, false) *
              (whole + (finals_are_long(s) ? 0 : part * (1 + finalists)));
  if (!finals_are_long(s)) *runs += WHOLE_RUNS * whole;
}

static int most_finalists(const struct search *s) {
  return s->heavy ? HEAVY_FINALISTS : FINALISTS;
}

/* Seconds of the budget that finals need. */
static double seconds_of_finals(const struct search *s, int finalists) {
  double seconds, runs;
  cost_of_finals(s, finalists, &seconds, &runs);
  return search_seconds(s, seconds + runs * s->run);
}

/* Compiles a finalist; *seconds of the budget, almost 0 if it was cached. */
static canvas_status compile(const struct search *s, const struct compiler *compiler, int at,
                             const struct loop_tree *tree, double *seconds) {
  double began = search_spent(s);
  canvas_status status = candidate_compile(s->ctx, compiler, s->expected, tree, at);
  *seconds = search_spent(s) - began;
  return status;
}

/* The tree that runs in the finals: for all images if they are long. It belongs to the finalist, or
 * is *own. */
static const struct loop_tree *final_tree(const struct search *s, const struct finalist *who,
                                          struct loop_tree **own) {
  *own = finals_are_long(s) ? search_bind(s, who->who) : NULL;
  return *own ? *own : who->tree;
}

static void add_finalist(const struct search *s, struct finals *f, struct tune_candidate c);

/* Reserves time for finals. Until something is measured, a run takes the predicted time. If the
 * time of compilers is unknown, no less is reserved than before. */
static void keep_time(struct search *s, const struct finals *f) {
  double seconds, predicted = search_predict(s, (struct tune_candidate){0, 0});
  s->run = isfinite(predicted) ? predicted : 0;
  cost_of_finals(s, most_finalists(s), &seconds, &s->budget.runs);
  seconds = search_seconds(s, seconds) + 2 * f->compile;
  if (!(f->compile > 0)) seconds = fmax(seconds, s->budget.finals - s->budget.runs * s->run);
  s->budget.finals = seconds;
}

canvas_status finals_open(struct search *s, const struct compiler *compiler, struct finals *f) {
  static const double FOUND = 10e-3;
  double total = s->budget.seconds;
  struct loop_tree *own;
  add_finalist(s, f, (struct tune_candidate){0, 0});
  if (!(total > 0) || !f->count) return CANVAS_OK;
  TRY(search_expect(s));
  const struct loop_tree *tree = final_tree(s, &f->of[0], &own);
  canvas_status status = compile(s, compiler, 0, tree, &f->compile);
  loop_tree_free(own);
  if (f->compile < FOUND) f->compile = 0;
  keep_time(s, f);
  return status;
}

void finals_close(struct finals *f) {
  for (int i = 0; i < f->count; i++) loop_tree_free(f->of[i].tree);
}

/* ---- choosing finalists ---------------------------------------------------------------------- */

static double scale_of(const struct search *s, struct tune_candidate c) {
  for (int i = 0; i < s->trials.count; i++)
    if (same_candidate(s->trials.data[i].candidate, c)) return s->trials.data[i].scale;
  return 1;
}

static void add_finalist(const struct search *s, struct finals *f, struct tune_candidate c) {
  struct loop_tree *tree =
      finals_find(f, c) >= 0 ? NULL : search_for_few(s, c.sketch, search_bind(s, c));
  if (tree) f->of[f->count++] = (struct finalist){.who = c, .tree = tree, .scale = scale_of(s, c)};
}

/* Whether a finalist has the candidate's loop order. With few images different orders often give
 * the same code, so new orders come first. */
static bool has_order(const struct search *s, const struct finals *f, struct tune_candidate c) {
  for (int i = 1; i < f->count; i++)
    if (s->sketches.data[f->of[i].who.sketch].blocks == s->sketches.data[c.sketch].blocks)
      return true;
  return false;
}

/* The best trial that is no finalist, with `fresh` in an order that no finalist has; NULL: none. */
static const struct trial *next_best(const struct search *s, const struct finals *f, bool fresh) {
  const struct trial *best = NULL;
  for (int i = 0; i < s->trials.count; i++) {
    const struct trial *t = &s->trials.data[i];
    if (!isfinite(trial_time(t)) || finals_find(f, t->candidate) >= 0) continue;
    if (fresh && has_order(s, f, t->candidate)) continue;
    if (!best || trial_time(t) < trial_time(best)) best = t;
  }
  return best;
}

static void choose_finalists(const struct search *s, struct finals *f) {
  int finalists = most_finalists(s);
  if (f->count) f->of[0].scale = scale_of(s, f->of[0].who);
  for (int i = 0; i < finalists; i++) {
    const struct trial *best = next_best(s, f, finals_are_long(s));
    if (!best) best = next_best(s, f, false);
    if (best && f->count <= FINALISTS) add_finalist(s, f, best->candidate);
  }
  if (s->for_all && !finals_are_long(s) && f->count && finals_find(f, s->favourite) < 0)
    f->of[f->count++] = (struct finalist){.who = s->favourite, .scale = 1};
}

/* Compiles the best finalist, and others while there is time. */
static canvas_status compile_finalists(const struct search *s, const struct compiler *compiler,
                                       struct finals *f) {
  double last = f->compile;
  for (int i = 1; i < f->count; i++) {
    if (!f->of[i].tree) continue;
    struct loop_tree *own;
    double left = s->budget.seconds - search_spent(s) - seconds_of_finals(s, i);
    bool late = s->budget.seconds > 0 && last > left;
    if (i > 1 && late) {
      while (f->count > i) loop_tree_free(f->of[--f->count].tree);
      break;
    }
    const struct loop_tree *tree = final_tree(s, &f->of[i], &own);
    canvas_status status = compile(s, compiler, i, tree, &last);
    loop_tree_free(own);
    TRY(status);
  }
  return CANVAS_OK;
}

/* ---- interleaved rounds ---------------------------------------------------------------------- */

/* Processor seconds that a candidate may take. */
static double seconds_for(const struct search *s, bool whole) {
  double run = s->best < 0 ? 0 : s->trials.data[s->best].verdict.median;
  return 10 + 100 * run * (whole ? (double)s->images / (double)s->tried : 1);
}

static int rounds_for(double run) {
  double rounds = run > LONG ? LONG_ROUNDS : TIMING / fmax(run, 1e-9);
  return (int)fmax(LEAST_ROUNDS, fmin(FINAL_ROUNDS - 1, rounds));
}

/* clock_wall time by which rounds must end to leave time for what follows. 0: no limit. */
static double end_of_rounds(const struct search *s, bool whole) {
  double seconds = 0, runs = 0;
  if (!(s->budget.seconds > 0) || s->clock) return 0;
  if (!finals_are_long(s)) seconds = WINNER;
  if (s->fewer && !whole) {
    seconds += ELEMENT * elements_of(s->program, true);
    seconds += CHECK * elements_of(s->program, false) * CONTENDERS;
    runs = CONTENDERS * WHOLE_RUNS;
  }
  double after = search_seconds(s, seconds + runs * s->run);
  return clock_wall() + s->budget.seconds - search_spent(s) - after;
}

static int by_time(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

static double median_of(const double *values, int count) {
  double sorted[FINAL_ROUNDS];
  memcpy(sorted, values, (size_t)count * sizeof *values);
  qsort(sorted, (size_t)count, sizeof *sorted, by_time);
  return count % 2 ? sorted[count / 2] : 0.5 * (sorted[count / 2 - 1] + sorted[count / 2]);
}

/* Takes the times of rounds, or the median of earlier samples if there are none. For long runs that
 * median counts as one more round. */
static void take_times(struct finalist *who, const struct verdict *v, const double *times,
                       int rounds, double run) {
  who->rounds = 0;
  for (int i = 0; i < rounds; i++)
    if (isfinite(times[i])) who->times[who->rounds++] = times[i];
  if (!who->rounds || run > LONG) who->times[who->rounds++] = v->median;
}

/* Runs finalists interleaved. trees[i] belongs to finalist i, NULL: it does not run. If one fails,
 * the others run again without it. */
static canvas_status time_rounds(const struct search *s, const struct compiler *compiler,
                                 const struct expected *expected, const struct program *program,
                                 const struct loop_tree **trees, int count, bool whole,
                                 struct finals *f, struct verdict *verdicts) {
  double times[FINALS * FINAL_ROUNDS];
  double run = s->run * (whole ? 1 : (double)s->tried / (double)s->images);
  int rounds = rounds_for(run);
  bool again = true;
  while (again) {
    const struct batch_options how = {.seconds = finals_left(f),
                                      .separate = true,
                                      .limits = {.seconds = seconds_for(s, whole),
                                                 .repeats = s->heavy ? 1 : SAMPLES,
                                                 .timing = 0.1,
                                                 .threads = s->measuring.limits.threads,
                                                 .rounds = rounds,
                                                 .rounds_least = run > LONG ? 0 : LEAST_ROUNDS,
                                                 .rounds_until = end_of_rounds(s, whole),
                                                 .times = times}};
    for (int i = 0; i < f->count * rounds; i++) times[i] = NAN;
    TRY(candidates_measure(s->ctx, compiler, expected, program, trees, f->count, &how, verdicts));
    if (child_stopped()) return search_was_stopped(s);
    again = false;
    for (int i = 0; i < f->count; i++) {
      if (!trees[i]) continue;
      f->of[i].whole = verdicts[i];
      if (verdicts[i].failure == FAILED_NOT) {
        take_times(&f->of[i], &verdicts[i], times + i * rounds, rounds, verdicts[i].median);
        continue;
      }
      f->of[i].rounds = -1;
      trees[i] = NULL;
      again = --count > 1;
    }
  }
  return CANVAS_OK;
}

canvas_status finals_hold(struct search *s, const struct compiler *compiler, struct finals *f) {
  const struct loop_tree *trees[FINALS] = {NULL};
  struct verdict verdicts[FINALS];
  int count = 0;
  choose_finalists(s, f);
  TRY(compile_finalists(s, compiler, f));
  if (finals_are_long(s)) return CANVAS_OK;
  for (int i = 0; i < f->count; i++) {
    trees[i] = f->of[i].tree;
    count += trees[i] != NULL;
  }
  return time_rounds(s, compiler, s->expected, s->measured, trees, count, false, f, verdicts);
}

/* ---- the winner ------------------------------------------------------------------------------ */

double finals_time(const struct finals *f, int i) {
  const struct finalist *who = &f->of[i];
  return who->rounds > 0 ? median_of(who->times, who->rounds) * who->scale : INFINITY;
}

double finals_ratio(const struct finals *f, int i) {
  const struct finalist *who = &f->of[i], *first = &f->of[0];
  double ratios[FINAL_ROUNDS];
  if (first->rounds <= 0 || who->rounds <= 0 || who->rounds != first->rounds)
    return finals_time(f, i) / finals_time(f, 0);
  for (int r = 0; r < who->rounds; r++) ratios[r] = who->times[r] / first->times[r];
  return median_of(ratios, who->rounds) * who->scale / first->scale;
}

void finals_times(const struct finals *f, int i, double *beside, double *itself) {
  *beside = f->of[0].rounds > 0 ? finals_time(f, 0) : 0;
  *itself = *beside > 0 ? *beside * finals_ratio(f, i) : finals_time(f, i);
}

int finals_winner(struct finals *f) {
  bool right = f->count && f->of[0].rounds > 0;
  int best = right ? 0 : -1;
  double least = right ? GAIN : INFINITY;
  for (int i = 1; i < f->count; i++) {
    if (f->of[i].rounds <= 0) continue;
    double score = right ? finals_ratio(f, i) : finals_time(f, i);
    if (score < least) {
      least = score;
      best = i;
    }
  }
  return best;
}

/* ---- on all images --------------------------------------------------------------------------- */

/* Chooses contenders on all images: the default, the best two, and the model's favourites; all
 * finalists if there were no finals on few images. */
static void choose_contenders(const struct search *s, struct finals *f, bool of[FINALS]) {
  int best = finals_winner(f), second = -1, liked = -1;
  for (int i = 0; i < f->count; i++) of[i] = finals_are_long(s);
  if (finals_are_long(s)) return;
  for (int i = 0; i < f->count; i++) {
    of[i] = !f->of[i].tree;
    if (f->of[i].rounds <= 0) continue;
    if (i != best && (second < 0 || finals_time(f, i) < finals_time(f, second))) second = i;
    if (liked < 0 || search_predict(s, f->of[i].who) < search_predict(s, f->of[liked].who))
      liked = i;
  }
  of[0] = true;
  if (best >= 0) of[best] = true;
  if (second >= 0) of[second] = true;
  if (liked >= 0) of[liked] = true;
}

/* Replaces the median and quartiles of a long run by those of its rounds. */
static void report_rounds(struct finalist *who) {
  if (who->rounds <= 1 || !(who->whole.median > LONG)) return;
  double sorted[FINAL_ROUNDS];
  memcpy(sorted, who->times, sizeof sorted);
  qsort(sorted, (size_t)who->rounds, sizeof *sorted, by_time);
  who->whole.median = median_of(sorted, who->rounds);
  who->whole.lower = sorted[(who->rounds - 1) / 4];
  who->whole.upper = sorted[who->rounds - 1 - (who->rounds - 1) / 4];
  who->whole.repeats = who->rounds;
}

canvas_status finals_hold_whole(struct search *s, const struct compiler *compiler,
                                const struct expected *whole, struct finals *f, int *right) {
  const struct loop_tree *trees[FINALS] = {NULL};
  struct loop_tree *bound[FINALS] = {NULL};
  struct verdict verdicts[FINALS];
  struct finalist before[FINALS];
  bool of[FINALS] = {false};
  int count = 0;
  memcpy(before, f->of, sizeof before);
  choose_contenders(s, f, of);
  for (int i = 0; i < f->count; i++) {
    if (of[i]) bound[i] = search_bind(s, f->of[i].who);
    trees[i] = bound[i];
    count += bound[i] != NULL;
    f->of[i].rounds = -1;
    f->of[i].scale = 1;
  }
  canvas_status status =
      time_rounds(s, compiler, whole, s->program, trees, count, true, f, verdicts);
  *right = 0;
  for (int i = 0; i < f->count; i++) {
    *right += f->of[i].rounds > 0;
    report_rounds(&f->of[i]);
    before[i].whole = f->of[i].whole;
    loop_tree_free(bound[i]);
  }
  if (!*right) memcpy(f->of, before, sizeof before);
  return status;
}
