/* Tunes a program: from a method's trials to a winner, measured as it will run. See tuner.h. */
#include "tune/tuner.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "rewrite/program_edit.h"
#include "run/child.h"
#include "run/cold.h"
#include "tune/candidates.h"
#include "tune/finals.h"
#include "tune/journal.h"
#include "tune/search_open.h"

enum { WHOLE_SAMPLES = 1024 /* elements for all images evaluated by the interpreter */ };

static const double LONG = 50e-3;  /* seconds of a run whose data is cold anyway */
static const double PATIENCE = 60; /* seconds that finals may exceed the budget */
static const double WHOLE =
    0.05; /* share of the time for the interpreter on all images, at most 1 s */

/* ---- the winner ------------------------------------------------------------------------------ */

/* Binds a candidate's schedule for a program that outlives the search. */
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
  double predicted = search_predict_anyway(s, who);
  out->predicted = isfinite(predicted) ? predicted : 0;
  out->rule = mem_strdup(sketch->rule);
  out->program = program_copy(sketch->program);
  return bind_again(s, who, out->program, &out->tree);
}

/* Measures the winner for all images as `canvas run` does, comparing some elements with the
 * interpreter. It keeps its position among the finalists, at which it was compiled. */
static canvas_status measure_winner(const struct search *s, const struct compiler *compiler,
                                    const struct expected *whole, const struct finals *f, int at,
                                    struct tuned *out) {
  const struct loop_tree *trees[FINALS] = {NULL};
  struct verdict verdicts[FINALS];
  const int threads = s->measuring.limits.threads;
  double run = out->itself;
  if (!out->whole) run *= (double)s->images / (double)s->tried;
  struct batch_options how = {
      .seconds = finals_left(f), .separate = true, .limits = {.timing = 0.5, .threads = threads}};
  trees[at] = out->tree;
  if (run < LONG) how.limits.cold = cold_bytes(&s->machine, threads);
  if (s->heavy) how.limits.repeats = 1;
  how.limits.seconds = 10 + 100 * run;
  canvas_status status =
      candidates_measure(s->ctx, compiler, whole, s->program, trees, at + 1, &how, verdicts);
  if (status == CANVAS_OK) out->verdict = verdicts[at];
  return status;
}

static canvas_status log_winner(const struct search *s, const struct compiler *compiler,
                                const struct tuned *t) {
  if (!s->journal) return CANVAS_OK;
  struct buf schedule = {0};
  schedule_print(t->tree->schedule, &schedule);
  const struct journal_entry entry = {.rule = t->rule,
                                      .edits = program_edits_since(t->program, s->program),
                                      .schedule = schedule.text,
                                      .compiler = compiler_text(compiler)};
  canvas_status status = journal_add(s->ctx, s->journal, &entry, &t->verdict);
  buf_free(&schedule);
  return status;
}

static canvas_status none_correct(const struct search *s, const char *why) {
  if (!*why) why = s->trials.count ? s->trials.data[0].verdict.message : "the time was too short";
  return fail(s->ctx, CANVAS_NONE, "no schedule of '%.60s' was correct and could be timed: %.800s",
              s->program->name, why);
}

/* Seconds in the finals of the best trial; 0: failed there. */
static double first_time(const struct search *s, const struct finals *f) {
  int i = s->best < 0 ? -1 : finals_find(f, s->trials.data[s->best].candidate);
  double time = i < 0 ? INFINITY : finals_time(f, i);
  return isfinite(time) ? time : 0;
}

static void drop_winner(struct tuned *out) {
  loop_tree_free(out->tree);
  program_free(out->program);
  mem_free(out->rule);
  out->tree = NULL;
  out->program = NULL;
  out->rule = NULL;
}

/* Takes the winner, or the next one if it is correct for few images but not for all. */
static canvas_status finish_whole(struct search *s, const struct compiler *compiler,
                                  const struct expected *whole, struct finals *f,
                                  struct tuned *out) {
  if (s->fewer) TRY(finals_hold_whole(s, compiler, whole, f, &out->whole));
  if (f->count) out->verdict = f->of[0].whole;
  out->first = first_time(s, f);
  for (int winner; (winner = finals_winner(f)) >= 0; f->of[winner].rounds = -1) {
    finals_times(f, winner, &out->beside, &out->itself);
    drop_winner(out);
    TRY(take_winner(s, f->of[winner].who, out));
    out->verdict = f->of[winner].whole;
    if (!finals_are_long(s)) TRY(measure_winner(s, compiler, whole, f, winner, out));
    if (child_stopped()) return search_was_stopped(s);
    TRY(log_winner(s, compiler, out));
    if (out->verdict.failure == FAILED_NOT) return CANVAS_OK;
  }
  return none_correct(s, out->verdict.message);
}

static canvas_status finish_measured(struct search *s, const struct compiler *compiler,
                                     struct finals *f, struct tuned *out) {
  double total = s->budget.seconds;
  struct expected_options options = {.seed = 1,
                                     .samples = WHOLE_SAMPLES,
                                     .seconds = total > 0 ? fmin(1, WHOLE * total) : 1,
                                     .winograd = s->expecting.winograd};
  TRY(search_expect(s));
  struct expected *whole = s->expected;
  TRY(finals_hold(s, compiler, f));
  if (s->fewer) TRY(expected_new(s->ctx, s->program, &options, &whole));
  canvas_status status = finish_whole(s, compiler, whole, f, out);
  if (s->fewer) expected_free(whole);
  return status;
}

static canvas_status finish_compiled(struct search *s, const struct compiler *compiler,
                                     struct finals *f, struct tuned *out) {
  if (s->budget.seconds > 0) f->until = clock_wall() + s->budget.seconds + PATIENCE;
  return finish_measured(s, compiler, f, out);
}

/* Takes the best trial without finals; numbers of interrupted finals are dropped. A trial of few
 * images has no time for all. */
static canvas_status take_best(struct search *s, struct tuned *out) {
  const struct tune_candidate first = {0, 0};
  drop_winner(out);
  *out = (struct tuned){0};
  if (s->best < 0) return take_winner(s, first, out);
  const struct trial *best = &s->trials.data[s->best];
  if (!s->fewer) out->verdict = best->verdict;
  return take_winner(s, best->candidate, out);
}

static canvas_status finish(struct search *s, const struct compiler *compiler, struct finals *f,
                            struct tuned *out) {
  bool unmeasured = !s->compiler || (s->may_measure && !s->trials.count); /* it never ran a batch */
  if (unmeasured) return child_stopped() ? search_was_stopped(s) : take_best(s, out);
  canvas_status status = s->stopped ? search_was_stopped(s) : finish_compiled(s, compiler, f, out);
  bool kept = status != CANVAS_OK && child_stopped() && s->best >= 0;
  return kept ? take_best(s, out) : status;
}

/* ---- tuning ---------------------------------------------------------------------------------- */

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
  double began = clock_wall();
  *out = (struct tuned){0};
  struct compiler *compiler = NULL;
  struct finals f = {.count = 0};
  canvas_status status = search_open(ctx, p, machine, &how, &s);
  if (status == CANVAS_OK && s.compiler) status = compiler_open(ctx, NULL, &compiler);
  if (status == CANVAS_OK && s.compiler) status = finals_open(&s, compiler, &f);
  if (status == CANVAS_OK) status = how.method->run(&s);
  if (status == CANVAS_OK) status = finish(&s, compiler, &f, out);
  if (status != CANVAS_OK && child_stopped()) status = search_was_stopped(&s);
  finals_close(&f);
  compiler_close(compiler);
  out->sketches = s.sketches.count;
  out->size = s.size;
  out->images = s.images;
  out->tried = s.tried;
  out->trials = s.compiler ? s.trials.count : 0;
  out->damaged = s.journal ? journal_damaged(s.journal) : 0;
  memcpy(out->failures, s.failures, sizeof out->failures);
  out->seconds = clock_wall() - began;
  search_close(&s);
  if (status != CANVAS_OK) tuned_free(out);
  return status;
}

void tuned_free(struct tuned *t) {
  drop_winner(t);
  *t = (struct tuned){0};
}
