/* Predicts, binds and measures candidates within a budget. See search.h. */
#include "tune/search.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/saturating.h"
#include "rewrite/program_edit.h"
#include "run/child.h"
#include "tune/candidates.h"
#include "tune/journal.h"

enum { DRAWS = 1000, BATCH = 20, FIRST = 4 };

static const double UNLIKE = 0.7; /* least trial.scale: below, few images do not represent all */
static const double HUNG = 60;    /* seconds of a batch that hangs */
static const double OPENING = 5;  /* seconds for the first trials, however short the budget is */
static const double LEAST = 0.1, MOST = 0.6; /* minimum and maximum share of the time for finals */
static const double SHARED_AFTER = 0.3;      /* processor seconds before load is estimated */
static const double SHARED_MOST = 4;         /* maximum slowdown by load */

double search_spent(const struct search *s) {
  if (s->clock) return s->clock(s->data);
  return fmax(clock_wall() - s->started, clock_processor() - s->processor);
}

double search_seconds(const struct search *s, double seconds) {
  double processor = clock_processor() - s->processor;
  if (s->clock || !(processor > SHARED_AFTER)) return seconds;
  return seconds * fmin(SHARED_MOST, fmax(1, (clock_wall() - s->started) / processor));
}

/* Seconds of the budget reserved for finals. */
static double kept_back(const struct search *s) {
  double total = s->budget.seconds, runs = s->budget.runs * s->run;
  return fmin(MOST * total, fmax(LEAST * total, s->budget.finals + search_seconds(s, runs)));
}

/* Seconds of the budget left for trials; below 0: over. */
static double time_left(const struct search *s) {
  return s->budget.seconds - kept_back(s) - search_spent(s);
}

/* Whether the time is over. The first trials run in any case, since the time before them depends on
 * the machine's load. */
static bool is_late(const struct search *s) {
  return s->budget.seconds > 0 && s->begun >= FIRST && time_left(s) <= 0;
}

bool search_over(const struct search *s) {
  if (s->stopped || s->spent || child_stopped() || s->trials.count >= s->budget.trials) return true;
  if (s->budget.patience && s->trials.count - s->since >= s->budget.patience) return true;
  return is_late(s);
}

/* ---- candidates ------------------------------------------------------------------------------ */

struct loop_tree *search_bind(const struct search *s, struct tune_candidate c) {
  const struct space *space = s->spaces[c.sketch];
  canvas_context ctx;
  struct loop_tree *tree;
  if (c.sketch || c.point) return space_legal(space, c.point);
  return space_bind(&ctx, space, c.point, &tree) == CANVAS_OK ? tree : NULL;
}

struct loop_tree *search_for_few(const struct search *s, int sketch, struct loop_tree *tree) {
  struct loop_tree *out;
  canvas_context ctx;
  if (!tree || !s->few[sketch]) return tree;
  struct schedule *schedule = schedule_copy(tree->schedule);
  loop_tree_free(tree);
  if (loop_tree_bind(&ctx, s->few[sketch], schedule, &s->machine, &out) == CANVAS_OK) {
    out->made = schedule;
    return out;
  }
  schedule_free(schedule);
  return NULL;
}

canvas_status search_was_stopped(const struct search *s) {
  return fail(s->ctx, CANVAS_NONE, "the search was stopped");
}

double search_predict_anyway(const struct search *s, struct tune_candidate c) {
  canvas_context ctx;
  struct schedule_cost cost;
  struct loop_tree *tree = search_bind(s, c);
  bool known = tree && cost_of(&ctx, tree, &s->rates, &cost) == CANVAS_OK;
  loop_tree_free(tree);
  return known ? cost.seconds : INFINITY;
}

double search_predict(const struct search *s, struct tune_candidate c) {
  return child_stopped() ? INFINITY : search_predict_anyway(s, c);
}

static bool is_legal(const struct search *s, struct tune_candidate c) {
  struct loop_tree *tree = search_bind(s, c);
  loop_tree_free(tree);
  return tree != NULL;
}

static int64_t random_point(struct search *s, int64_t size) {
  return (int64_t)(random_u64(&s->random) >> 2) % size;
}

bool search_draw(struct search *s, struct tune_candidate *out) {
  for (int i = 0; i < DRAWS && !child_stopped(); i++) {
    out->sketch = (int)random_below(&s->random, (uint32_t)s->sketches.count);
    out->point = random_point(s, s->spaces[out->sketch]->size);
    if (is_legal(s, *out)) return true;
  }
  return false;
}

bool search_neighbour(const struct search *s, struct tune_candidate c, int knob, int step,
                      struct tune_candidate *out) {
  const struct space *space = s->spaces[c.sketch];
  int digits[SPACE_KNOBS];
  space_digits(space, c.point, digits);
  digits[knob] += step;
  if (digits[knob] < 0 || digits[knob] >= space->knobs[knob].count) return false;
  *out = (struct tune_candidate){c.sketch, space_point(space, digits)};
  return true;
}

/* ---- rankings -------------------------------------------------------------------------------- */

void ranking_add(struct ranking *r, const struct search *s, struct tune_candidate c) {
  struct ranked new = {c, search_predict(s, c)};
  if (isfinite(new.predicted)) VEC_PUSH(r, new);
}

static int by_prediction(const void *a, const void *b) {
  const struct ranked *x = a, *y = b;
  if (x->predicted != y->predicted) return x->predicted < y->predicted ? -1 : 1;
  if (x->candidate.sketch != y->candidate.sketch)
    return x->candidate.sketch < y->candidate.sketch ? -1 : 1;
  return (x->candidate.point > y->candidate.point) - (x->candidate.point < y->candidate.point);
}

void ranking_sort(struct ranking *r) {
  int kept = 0;
  if (r->count) qsort(r->data, (size_t)r->count, sizeof *r->data, by_prediction);
  for (int i = 0; i < r->count; i++)
    if (!kept || !same_candidate(r->data[kept - 1].candidate, r->data[i].candidate))
      r->data[kept++] = r->data[i];
  r->count = kept;
}

/* ---- trials ---------------------------------------------------------------------------------- */

static const struct trial *trial_of(const struct search *s, struct tune_candidate c) {
  for (int i = 0; i < s->trials.count; i++)
    if (same_candidate(s->trials.data[i].candidate, c)) return &s->trials.data[i];
  return NULL;
}

double search_time(const struct search *s, struct tune_candidate c) {
  const struct trial *t = trial_of(s, c);
  return t ? trial_time(t) : INFINITY;
}

bool search_known(const struct search *s, struct tune_candidate c) {
  return trial_of(s, c) != NULL;
}

/* A candidate without a verdict yet. */
struct pending {
  struct trial trial;
  char *program, *schedule; /* texts of the sketch's program and of the schedule */
  const char *edits;        /* edits of the sketch's program */
  struct loop_tree *tree;   /* bound for the images of trials */
  bool recalled;
};

static char *schedule_text(const struct schedule *s) {
  struct buf text = {0};
  schedule_print(s, &text);
  return buf_take(&text);
}

static char *program_text(const struct program *p) {
  struct buf text = {0};
  program_print(p, &text);
  return buf_take(&text);
}

/* Computes trial.scale. */
static double scale_of(const struct search *s, const struct pending *p) {
  struct schedule_cost few;
  canvas_context ctx;
  if (!s->few[p->trial.candidate.sketch] || !p->tree) return 1;
  if (cost_of(&ctx, p->tree, &s->rates, &few) != CANVAS_OK) return 1;
  double scale = p->trial.predicted / few.seconds * (double)s->tried / (double)s->images;
  return scale > 0 && isfinite(scale) ? scale : 1;
}

/* Prepares a candidate; false: illegal, or one of the same text was measured or is pending. */
static bool pending_open(const struct search *s, struct tune_candidate c,
                         const struct pending *others, int count, struct pending *out) {
  struct loop_tree *tree = search_known(s, c) ? NULL : search_bind(s, c);
  *out = (struct pending){0};
  if (!tree) return false;
  *out = (struct pending){.trial = {.candidate = c, .predicted = search_predict_anyway(s, c)}};
  out->program = program_text(s->sketches.data[c.sketch].program);
  out->edits = program_edits_since(s->sketches.data[c.sketch].program, s->program);
  out->schedule = schedule_text(tree->schedule);
  out->trial.text = journal_hash(out->program, out->schedule);
  out->tree = search_for_few(s, c.sketch, tree);
  out->trial.scale = scale_of(s, out);
  bool known = !out->tree || out->trial.scale < UNLIKE;
  for (int i = 0; i < s->trials.count; i++) known |= s->trials.data[i].text == out->trial.text;
  for (int i = 0; i < count; i++) known |= others[i].trial.text == out->trial.text;
  return !known;
}

static void pending_close(struct pending *p) {
  loop_tree_free(p->tree);
  mem_free(p->program);
  mem_free(p->schedule);
}

static struct journal_entry entry_of(const struct search *s, const struct pending *p) {
  return (struct journal_entry){.rule = s->sketches.data[p->trial.candidate.sketch].rule,
                                .edits = p->edits,
                                .schedule = p->schedule,
                                .compiler = compiler_text(s->compiler),
                                .screened = true};
}

canvas_status search_expect(struct search *s) {
  return s->expected ? CANVAS_OK : expected_new(s->ctx, s->measured, &s->expecting, &s->expected);
}

/* Measures the candidates that the log does not have. */
static canvas_status measure_new(struct search *s, struct pending *p, int count) {
  const struct loop_tree **trees = mem_alloc((size_t)count * sizeof *trees + 1);
  struct verdict *verdicts = mem_alloc((size_t)count * sizeof *verdicts + 1);
  int fresh = 0;
  for (int i = 0; i < count; i++)
    if (!p[i].recalled) trees[fresh++] = p[i].tree;
  canvas_status status = CANVAS_OK;
  if (s->budget.seconds > 0)
    s->measuring.seconds = fmax(s->begun < FIRST ? OPENING : 1, time_left(s));
  if (fresh) status = search_expect(s);
  if (fresh && status == CANVAS_OK)
    status = candidates_measure(s->ctx, s->compiler, s->expected, s->measured, trees, fresh,
                                &s->measuring, verdicts);
  for (int i = 0, next = 0; status == CANVAS_OK && i < count; i++)
    if (!p[i].recalled) p[i].trial.verdict = verdicts[next++];
  mem_free(verdicts);
  mem_free(trees);
  return status;
}

static canvas_status add_trial(struct search *s, struct pending *p) {
  const struct verdict *v = &p->trial.verdict;
  if (s->journal && !p->recalled) {
    const struct journal_entry entry = entry_of(s, p);
    TRY(journal_add(s->ctx, s->journal, &entry, v));
  }
  VEC_PUSH(&s->trials, p->trial);
  s->failures[v->failure]++;
  measure_best(&s->measuring.limits, v);
  if (trial_time(&p->trial) < (s->best < 0 ? INFINITY : trial_time(&s->trials.data[s->best]))) {
    s->best = s->trials.count - 1;
    s->since = s->trials.count;
    s->run = trial_time(&p->trial) * (double)s->images / (double)s->tried;
  }
  return CANVAS_OK;
}

/* Whether the candidate only ran out of time, so that it is no trial. */
static bool was_cut(const struct search *s, const struct pending *p) {
  bool over = s->budget.seconds > 0 && time_left(s) <= 0;
  return p->trial.verdict.failure == FAILED_TIMEOUT && !p->recalled && (over || s->stopped);
}

/* Size of the next batch. The first few show what a trial takes and give a first best one; near the
 * end of the time batches are smaller, so that none is cut off. */
static int batch_room(const struct search *s) {
  int room = s->budget.trials - s->trials.count;
  int patient = s->since + s->budget.patience - s->trials.count;
  if (s->budget.patience && room > patient) room = patient;
  if (room > BATCH) room = BATCH;
  if (s->begun < FIRST) return room < FIRST - s->begun ? room : FIRST - s->begun;
  if (s->budget.seconds <= 0) return room;
  double fit = fmax(2, time_left(s) / s->each / 2);
  return fit >= room ? room : (int)fit;
}

/* Whether a whole batch failed to compile in more time than one file may take: the next would,
 * too. */
static bool all_hung(const struct pending *p, int count, double seconds) {
  int fresh = 0, failed = 0;
  for (int i = 0; i < count; i++) {
    fresh += !p[i].recalled;
    failed += !p[i].recalled && p[i].trial.verdict.failure == FAILED_COMPILE;
  }
  return fresh && failed == fresh && seconds > HUNG;
}

static canvas_status measure_batch(struct search *s, struct pending *p, int count) {
  for (int i = 0; i < count && s->journal; i++) {
    const struct journal_entry entry = entry_of(s, &p[i]);
    p[i].recalled = journal_recall(s->journal, &entry, &p[i].trial.verdict);
  }
  double began = clock_wall(), spent = search_spent(s);
  TRY(measure_new(s, p, count));
  s->begun += count;
  int fresh = 0;
  for (int i = 0; i < count; i++) fresh += !p[i].recalled;
  if (fresh) s->each = (search_spent(s) - spent) / fresh;
  s->stopped = child_stopped();
  for (int i = 0; i < count; i++)
    if (!was_cut(s, &p[i])) TRY(add_trial(s, &p[i]));
  if (s->progress && count && !s->progress(s, s->data)) s->stopped = true;
  if (all_hung(p, count, clock_wall() - began) || (s->enough && s->enough(s->data)))
    s->spent = true;
  return CANVAS_OK;
}

canvas_status search_measure(struct search *s, const struct tune_candidate *c, int count) {
  canvas_status status = CANVAS_OK;
  for (int i = 0; i < count && status == CANVAS_OK && !search_over(s);) {
    struct pending p[BATCH];
    if (s->may_measure && !s->may_measure(s, s->data)) {
      s->spent = true;
      break;
    }
    int room = batch_room(s), used = 0;
    for (; i < count && used < room; i++) {
      if (pending_open(s, c[i], p, used, &p[used]))
        used++;
      else
        pending_close(&p[used]);
    }
    status = measure_batch(s, p, used);
    while (used) pending_close(&p[--used]);
  }
  return status;
}
