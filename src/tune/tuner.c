/* From a method's trials to a winner that was measured as it will run. See tuner.h. */
#include "tune/tuner.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "run/child.h"
#include "run/cold.h"
#include "tune/candidates.h"
#include "tune/journal.h"
#include "tune/search_open.h"

enum { FINALISTS = 5, CONTENDERS = 4, ROUNDS = 5, SAMPLES = 10 };
enum { SLOW_ROUNDS = 3, HEAVY_FINALISTS = 2, HEAVY_ROUNDS = 2, HEAVY_SAMPLES = 3 };

static const double SLOW = 5e-3;      /* seconds of a run, from which on there are fewer rounds */
static const double LONG = 50e-3;     /* ... from which on it is cold anyway */
static const double GAIN = 0.99;      /* of the default's time: it is beaten */
static const double FOR_FINALS = 0.3; /* of the time */
static const double PATIENCE = 60;    /* seconds that finals may take beyond the time */

/* ---- finalists ------------------------------------------------------------------------------- */

struct finalist {
  struct tune_candidate who;
  struct loop_tree *tree; /* for what trials measure */
  double times[ROUNDS];   /* medians */
  int rounds;             /* -1: it failed */
  double scale;           /* of the trial */
  struct verdict whole;   /* of all images, where the finals were for them */
};

struct finals {
  struct finalist of[FINALISTS + 1]; /* the default first */
  int count;
  double until; /* a time of clock_wall by which all ends; 0: none */
};

/* The finals are for all images from the first, as a run takes long: they are the winner's verdict, too. */
static bool is_long(const struct search *s) {
  return s->heavy && s->fewer;
}

static int finalist_of(const struct finals *f, struct tune_candidate c) {
  int i = f->count - 1;
  while (i >= 0 && !same_candidate(f->of[i].who, c)) i--;
  return i;
}

static bool is_finalist(const struct finals *f, struct tune_candidate c) {
  return finalist_of(f, c) >= 0;
}

static double scale_of(const struct search *s, struct tune_candidate c) {
  for (int i = 0; i < s->trials.count; i++)
    if (same_candidate(s->trials.data[i].candidate, c)) return s->trials.data[i].scale;
  return 1;
}

static void add_finalist(const struct search *s, struct finals *f, struct tune_candidate c) {
  struct loop_tree *tree =
      is_finalist(f, c) ? NULL : search_for_few(s, c.sketch, search_bind(s, c));
  if (tree) f->of[f->count++] = (struct finalist){.who = c, .tree = tree, .scale = scale_of(s, c)};
}

/* For few images the orders of a tile's loops are as good as the same code: another one than those of the
 * finalists comes first. */
static bool has_order(const struct search *s, const struct finals *f, struct tune_candidate c) {
  for (int i = 1; i < f->count; i++)
    if (s->sketches.data[f->of[i].who.sketch].blocks == s->sketches.data[c.sketch].blocks)
      return true;
  return false;
}

/* `fresh`: in an order that no finalist has; NULL: there is none. */
static const struct trial *next_best(const struct search *s, const struct finals *f, bool fresh) {
  const struct trial *best = NULL;
  for (int i = 0; i < s->trials.count; i++) {
    const struct trial *t = &s->trials.data[i];
    if (!isfinite(trial_time(t)) || is_finalist(f, t->candidate)) continue;
    if (fresh && has_order(s, f, t->candidate)) continue;
    if (!best || trial_time(t) < trial_time(best)) best = t;
  }
  return best;
}

static void choose_finalists(const struct search *s, struct finals *f) {
  add_finalist(s, f, (struct tune_candidate){0, 0});
  int finalists = s->heavy ? HEAVY_FINALISTS : FINALISTS;
  for (int turn = 0; turn < finalists; turn++) {
    const struct trial *best = next_best(s, f, is_long(s));
    if (!best) best = next_best(s, f, false);
    if (best && f->count <= FINALISTS) add_finalist(s, f, best->candidate);
  }
}

/* For a batch; 0: no limit. */
static double time_left(double until) {
  return until > 0 ? fmax(1, until - clock_wall()) : 0;
}

static canvas_status one_round(const struct search *s, const struct compiler *compiler,
                               struct finals *f) {
  const struct loop_tree *trees[FINALISTS + 1];
  struct verdict verdicts[FINALISTS + 1];
  int of[FINALISTS + 1], count = 0;
  struct batch_options options = {.limits = {.repeats = s->heavy ? HEAVY_SAMPLES : SAMPLES,
                                             .timing = 0.2,
                                             .threads = s->measuring.limits.threads}};
  options.seconds = time_left(f->until);
  for (int i = 0; i < f->count; i++) {
    if (f->of[i].rounds < 0) continue;
    of[count] = i;
    trees[count++] = f->of[i].tree;
  }
  TRY(candidates_measure(s->ctx, compiler, s->expected, s->measured, trees, count, &options,
                         verdicts));
  for (int i = 0; i < count; i++) {
    struct finalist *who = &f->of[of[i]];
    if (verdicts[i].failure == FAILED_NOT)
      who->times[who->rounds++] = verdicts[i].median;
    else
      who->rounds = -1;
  }
  return CANVAS_OK;
}

static int by_time(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

/* The median of its rounds; INFINITY: it failed. */
static double time_of(struct finalist *f) {
  if (f->rounds <= 0) return INFINITY;
  qsort(f->times, (size_t)f->rounds, sizeof *f->times, by_time);
  return f->times[f->rounds / 2] * f->scale;
}

static int winner_of(struct finals *f) {
  int best = 0;
  double least = GAIN * time_of(&f->of[0]);
  for (int i = 1; i < f->count; i++)
    if (time_of(&f->of[i]) < least || !isfinite(least)) {
      least = time_of(&f->of[i]);
      best = i;
    }
  return isfinite(time_of(&f->of[best])) ? best : -1;
}

static canvas_status hold_finals(const struct search *s, const struct compiler *compiler,
                                 struct finals *f) {
  bool slow = s->best >= 0 && s->trials.data[s->best].verdict.median > SLOW;
  int rounds = s->heavy ? HEAVY_ROUNDS : slow ? SLOW_ROUNDS : ROUNDS;
  for (int i = 0; i < rounds; i++) TRY(one_round(s, compiler, f));
  return CANVAS_OK;
}

/* ---- finals on all images -------------------------------------------------------------------- */

/* The default, the best two and what the model likes best; all where there were no finals before. */
static int choose_contenders(const struct search *s, struct finals *f, int of[CONTENDERS]) {
  int best = winner_of(f), second = -1, liked = -1, count = 0;
  for (int i = 0; s->heavy && i < f->count; i++) of[count++] = i;
  if (s->heavy) return count;
  for (int i = 0; i < f->count; i++) {
    if (!isfinite(time_of(&f->of[i]))) continue;
    if (i != best && (second < 0 || time_of(&f->of[i]) < time_of(&f->of[second]))) second = i;
    if (liked < 0 || search_predict(s, f->of[i].who) < search_predict(s, f->of[liked].who))
      liked = i;
  }
  const int chosen[CONTENDERS] = {0, best, second, liked};
  for (int i = 0; i < CONTENDERS; i++) {
    bool there = chosen[i] < 0;
    for (int k = 0; k < count; k++) there |= of[k] == chosen[i];
    if (!there) of[count++] = chosen[i];
  }
  return count;
}

/* In the unit of the finals' times: that of few images. Where none is right, what was there stays. How many
 * are right. */
static int keep_whole_times(const struct search *s, struct finals *f, const int *of, int count,
                            const struct verdict *verdicts) {
  struct finalist kept[FINALISTS + 1];
  int right = 0;
  for (int i = 0; i < count; i++) f->of[of[i]].whole = verdicts[i];
  memcpy(kept, f->of, sizeof kept);
  for (int i = 0; i < f->count; i++) f->of[i].rounds = -1;
  for (int i = 0; i < count; i++) {
    struct finalist *who = &f->of[of[i]];
    if (verdicts[i].failure != FAILED_NOT) continue;
    who->scale = 1;
    who->rounds = 1;
    who->times[0] = verdicts[i].median * (double)s->tried / (double)s->images;
    right++;
  }
  if (!right) memcpy(f->of, kept, sizeof kept);
  return right;
}

/* That a candidate may take on all images. */
static double seconds_for(const struct search *s) {
  double run = s->best < 0 ? 0 : s->trials.data[s->best].verdict.median;
  return 10 + 100 * run * (double)s->images / (double)s->tried;
}

/* What is scaled by the model is a guess: the best of few images run once more, on all. */
static canvas_status hold_whole_finals(struct search *s, const struct compiler *compiler,
                                       const struct expected *whole, struct finals *f, int *right) {
  const struct batch_options how = {.seconds = time_left(f->until),
                                    .limits = {.seconds = seconds_for(s),
                                               .repeats = s->heavy ? 1 : SAMPLES,
                                               .timing = 0.2,
                                               .threads = s->measuring.limits.threads}};
  const struct loop_tree *trees[CONTENDERS];
  struct verdict verdicts[CONTENDERS];
  int of[CONTENDERS], found = choose_contenders(s, f, of), count = 0;
  for (int i = 0; i < found; i++)
    if ((trees[count] = search_bind(s, f->of[of[i]].who))) of[count++] = of[i];
  canvas_status status =
      candidates_measure(s->ctx, compiler, whole, s->program, trees, count, &how, verdicts);
  if (status == CANVAS_OK) *right = keep_whole_times(s, f, of, count, verdicts);
  for (int i = 0; i < count; i++) loop_tree_free((struct loop_tree *)trees[i]);
  return status;
}

/* ---- the winner ------------------------------------------------------------------------------ */

/* The schedule of a candidate, bound for a program that outlives the search. */
static canvas_status bind_again(struct search *s, struct tune_candidate who,
                                const struct program *p, struct loop_tree **out) {
  struct loop_tree *tree;
  TRY(space_bind(s->ctx, s->spaces[who.sketch], who.point, &tree));
  struct schedule *schedule = schedule_copy(tree->schedule);
  loop_tree_free(tree);
  canvas_status status = loop_tree_bind(s->ctx, p, schedule, &s->machine, out);
  if (status == CANVAS_OK)
    (*out)->made = schedule;
  else
    schedule_free(schedule);
  return status;
}

static canvas_status take_winner(struct search *s, struct tune_candidate who, struct tuned *out) {
  const struct sketch *sketch = &s->sketches.data[who.sketch];
  out->predicted = search_predict(s, who);
  out->rule = mem_strdup(sketch->rule);
  out->program = program_copy(sketch->program);
  return bind_again(s, who, out->program, &out->tree);
}

/* For all images, as `canvas run` does; of many, some elements are compared with the interpreter. */
static canvas_status measure_winner(const struct search *s, const struct compiler *compiler,
                                    const struct expected *whole, double until, struct tuned *out) {
  const struct loop_tree *tree = out->tree;
  const int threads = s->measuring.limits.threads;
  double run = out->itself;
  if (!out->whole) run *= (double)s->images / (double)s->tried;
  struct batch_options how = {.seconds = time_left(until),
                              .limits = {.timing = 0.5, .threads = threads}};
  if (run < LONG) how.limits.cold = cold_bytes(&s->machine, threads);
  if (s->heavy) how.limits.repeats = 1;
  how.limits.seconds = 10 + 100 * run;
  return candidates_measure(s->ctx, compiler, whole, s->program, &tree, 1, &how, &out->verdict);
}

static canvas_status log_winner(const struct search *s, const struct compiler *compiler,
                                const struct tuned *t) {
  if (!s->journal) return CANVAS_OK;
  struct buf program = {0}, schedule = {0};
  program_print(t->program, &program);
  schedule_print(t->tree->schedule, &schedule);
  const struct journal_entry entry = {.rule = t->rule,
                                      .edited = program.text,
                                      .schedule = schedule.text,
                                      .compiler = compiler_text(compiler)};
  canvas_status status = journal_add(s->ctx, s->journal, &entry, &t->verdict);
  buf_free(&program);
  buf_free(&schedule);
  return status;
}

static canvas_status was_stopped(const struct search *s) {
  return fail(s->ctx, CANVAS_NONE, "the search was stopped");
}

static canvas_status none_correct(const struct search *s, const char *why) {
  if (!*why) why = s->trials.count ? s->trials.data[0].verdict.message : "the time was too short";
  return fail(s->ctx, CANVAS_NONE, "no schedule of '%.60s' was correct and could be timed: %.800s",
              s->program->name, why);
}

/* Of the trial that seemed best, in the finals; 0: it failed there. */
static double first_time(const struct search *s, struct finals *f) {
  int i = s->best < 0 ? -1 : finalist_of(f, s->trials.data[s->best].candidate);
  double time = i < 0 ? INFINITY : time_of(&f->of[i]);
  return isfinite(time) ? time : 0;
}

static void drop_winner(struct tuned *out) {
  loop_tree_free(out->tree);
  program_free(out->program);
  free(out->rule);
  out->tree = NULL;
  out->program = NULL;
  out->rule = NULL;
}

/* The winner, or the next one, where one is right for few images and not for all. */
static canvas_status finish_whole(struct search *s, const struct compiler *compiler,
                                  const struct expected *whole, struct finals *f,
                                  struct tuned *out) {
  if (s->fewer) TRY(hold_whole_finals(s, compiler, whole, f, &out->whole));
  double all = out->whole ? (double)s->images / (double)s->tried : 1;
  out->verdict = f->of[0].whole;
  out->first = all * first_time(s, f);
  out->beside = isfinite(time_of(&f->of[0])) ? all * time_of(&f->of[0]) : 0;
  for (int winner; (winner = winner_of(f)) >= 0; f->of[winner].rounds = -1) {
    out->itself = all * time_of(&f->of[winner]);
    drop_winner(out);
    TRY(take_winner(s, f->of[winner].who, out));
    out->verdict = f->of[winner].whole;
    if (!is_long(s)) TRY(measure_winner(s, compiler, whole, f->until, out));
    if (child_stopped()) return was_stopped(s);
    TRY(log_winner(s, compiler, out));
    if (out->verdict.failure == FAILED_NOT) return CANVAS_OK;
  }
  return none_correct(s, out->verdict.message);
}

static canvas_status finish_measured(struct search *s, const struct compiler *compiler,
                                     struct finals *f, struct tuned *out) {
  struct expected_options options = {
      .seed = 1, .seconds = s->heavy ? 1 : 2, .winograd = s->expected->winograd};
  struct expected *whole = s->expected;
  choose_finalists(s, f);
  if (!is_long(s)) TRY(hold_finals(s, compiler, f));
  if (s->fewer) TRY(expected_new(s->ctx, s->program, &options, &whole));
  canvas_status status = finish_whole(s, compiler, whole, f, out);
  if (s->fewer) expected_free(whole);
  return status;
}

static canvas_status finish_compiled(struct search *s, double seconds, struct tuned *out) {
  struct finals f = {.until = seconds > 0 ? clock_wall() + seconds + PATIENCE : 0};
  struct compiler *compiler;
  TRY(compiler_open(s->ctx, NULL, &compiler));
  canvas_status status = finish_measured(s, compiler, &f, out);
  compiler_close(compiler);
  for (int i = 0; i < f.count; i++) loop_tree_free(f.of[i].tree);
  return status;
}

/* Without finals. */
static canvas_status take_best(struct search *s, struct tuned *out) {
  const struct tune_candidate first = {0, 0};
  drop_winner(out);
  if (s->best < 0) return take_winner(s, first, out);
  out->verdict = s->trials.data[s->best].verdict;
  return take_winner(s, s->trials.data[s->best].candidate, out);
}

static canvas_status finish(struct search *s, double seconds, struct tuned *out) {
  if (!s->compiler) return take_best(s, out);
  canvas_status status = s->stopped ? was_stopped(s) : finish_compiled(s, seconds, out);
  bool kept = status != CANVAS_OK && child_stopped() && s->best >= 0;
  return kept ? take_best(s, out) : status;
}

/* ---- the whole ------------------------------------------------------------------------------- */

static struct tune_options completed(const struct tune_options *options) {
  struct tune_options o = *options;
  if (!o.method) o.method = method_find("quick");
  if (o.trials <= 0) o.trials = o.method->trials;
  if (o.threads <= 0) o.threads = 1;
  return o;
}

canvas_status tune(canvas_context *ctx, const struct program *p, const struct machine *machine,
                   const struct tune_options *options, struct tuned *out) {
  struct tune_options how = completed(options);
  struct search s;
  *out = (struct tuned){0};
  double total = how.seconds;
  how.seconds = total * (1 - FOR_FINALS);
  canvas_status status = search_open(ctx, p, machine, &how, &s);
  if (status == CANVAS_OK) status = how.method->run(&s);
  if (status == CANVAS_OK) status = finish(&s, total, out);
  out->sketches = s.sketches.count;
  out->size = s.size;
  out->images = s.images;
  out->tried = s.tried;
  out->trials = s.compiler ? s.trials.count : 0;
  out->damaged = s.journal ? journal_damaged(s.journal) : 0;
  memcpy(out->failures, s.failures, sizeof out->failures);
  out->seconds = clock_wall() - s.started;
  search_close(&s);
  if (status != CANVAS_OK) tuned_free(out);
  return status;
}

void tuned_free(struct tuned *t) {
  drop_winner(t);
  *t = (struct tuned){0};
}
