/* Tuning: the search behind the public interface. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/api_call.h"
#include "api/handle.h"
#include "base/memory_call.h"
#include "run/child.h"
#include "tune/tune_many.h"

_Static_assert((int)CANVAS_FAILURES == (int)FAILURES, "the kinds of failure are the same");

canvas_tune_method canvas_tune_method_at(int i) {
  if (i < 0 || i >= method_count) return (canvas_tune_method){0};
  return (canvas_tune_method){methods[i].name, methods[i].trials, methods[i].summary};
}

/* ---- options --------------------------------------------------------------------------------- */

static canvas_status find_method(canvas_context *ctx, const char *name,
                                 const struct method **method) {
  struct buf names = {0};
  *method = method_find(name ? name : "quick");
  if (*method) return CANVAS_OK;
  for (int i = 0; i < method_count; i++) buf_printf(&names, "%s%s", i ? ", " : "", methods[i].name);
  canvas_status status = fail(
      ctx, CANVAS_BAD_INPUT, "there is no search method '%.60s', give one of %s", name, names.text);
  buf_free(&names);
  return status;
}

/* What calls back with the public struct. */
struct caller {
  const canvas_tune_options *options;
  const canvas_program *const *programs; /* of several that are measured interleaved */
  int count;
};

/* The user's functions run outside of the call. */
static bool report(const struct search *s, void *data) {
  const struct caller *c = data;
  canvas_tune_progress p = {.trials = s->trials.count,
                            .budget = s->budget.trials,
                            .best = s->best < 0 ? 0 : s->trials.data[s->best].verdict.median,
                            .seconds = clock_wall() - s->started,
                            .program = 0};
  while (p.program < c->count && program_of(c->programs[p.program]) != s->program) p.program++;
  memcpy(p.failures, s->failures, sizeof p.failures);
  struct mem_call *call = mem_outside();
  bool go_on = c->options->progress(&p, c->options->data);
  mem_inside(call);
  return go_on;
}

static bool enough(void *data) {
  const struct caller *c = data;
  struct mem_call *call = mem_outside();
  bool is_enough = c->options->enough(c->options->data);
  mem_inside(call);
  return is_enough;
}

static canvas_status read_options(canvas_context *ctx, struct caller *c, struct tune_options *out) {
  const canvas_tune_options *o = c->options;
  const struct option_number numbers[] = {
      {"trials", o->trials, COUNT_MOST},     {"seconds", o->seconds, SECONDS_MOST},
      {"patience", o->patience, COUNT_MOST}, {"timeout", o->timeout, SECONDS_MOST},
      {"together", o->together, COUNT_MOST}, {"threads", o->threads, THREADS_MOST}};
  TRY(check_numbers(ctx, numbers, sizeof numbers / sizeof *numbers));
  *out = (struct tune_options){.seed = o->seed,
                               .trials = o->trials,
                               .seconds = o->seconds,
                               .patience = o->patience,
                               .timeout = o->timeout,
                               .together = o->together,
                               .threads = o->threads,
                               .winograd = o->winograd,
                               .sketch = o->sketch,
                               .log = o->log,
                               .progress = o->progress ? report : NULL,
                               .enough = o->enough ? enough : NULL,
                               .data = c};
  return find_method(ctx, o->method, &out->method);
}

/* ---- the search ------------------------------------------------------------------------------ */

static void tell(const struct tuned *t, canvas_tuned *out) {
  *out = (canvas_tuned){.predicted = t->predicted,
                        .verdict = verdict_out(&t->verdict),
                        .before = t->beside,
                        .after = t->itself,
                        .first = t->first,
                        .sketches = t->sketches,
                        .points = t->size,
                        .images = t->images,
                        .tried = t->tried,
                        .whole = t->whole,
                        .trials = t->trials,
                        .damaged = t->damaged,
                        .seconds = t->seconds};
  memcpy(out->failures, t->failures, sizeof out->failures);
  snprintf(out->rule, sizeof out->rule, "%s", t->rule);
}

/* Takes what `t` owns, but for its rule. */
static canvas_bound *take_bound(const struct tuned *t, const struct program *of) {
  canvas_bound *out = mem_alloc(sizeof *out);
  struct program *given = program_copy(of);
  *out = (struct canvas_bound){
      .tree = t->tree, .edited = mem_alloc(sizeof *out->edited), .given = given};
  *out->edited = (struct shared_program){t->program, given, 1};
  return out;
}

#define WEIGHT_MOST 1e18
static const canvas_tune_options none;

API_STATUS(canvas_tune,
           (canvas_context * ctx, const canvas_program *program, const canvas_machine *machine,
            const canvas_tune_options *options, canvas_bound **out, canvas_tuned *tuned),
           (ctx, program, machine, options, out, tuned)) {
  NEED(program);
  NEED(machine);
  NEED(out);
  struct caller c = {options ? options : &none, NULL, 0};
  struct tune_options how;
  struct tuned t;
  TRY(read_options(ctx, &c, &how));
  TRY(tune(ctx, program_of(program), machine_of(machine), &how, &t));
  *out = take_bound(&t, program_of(program));
  if (tuned) tell(&t, tuned);
  mem_free(t.rule);
  return CANVAS_OK;
}

static void tell_task(struct tune_task *t, canvas_tuned *tuned) {
  if (t->status == CANVAS_OK) {
    tell(&t->tuned, tuned);
    mem_free(t->tuned.rule);
  } else {
    *tuned = (canvas_tuned){.verdict = {.failure = CANVAS_FAILED_CHECK}};
    memcpy(tuned->verdict.message, t->message, sizeof tuned->verdict.message);
  }
}

static canvas_status check_weights(canvas_context *ctx, const double *weights, int count) {
  for (int i = 0; weights && i < count; i++)
    if (!(weights[i] >= 0 && weights[i] <= WEIGHT_MOST))
      return fail(ctx, CANVAS_BAD_INPUT, "'weights' holds %g, give 0 to %g", weights[i],
                  WEIGHT_MOST);
  return CANVAS_OK;
}

API_STATUS(canvas_tune_many,
           (canvas_context * ctx, const canvas_program *const *programs, const double *weights,
            int count, const canvas_machine *machine, const canvas_tune_options *options,
            canvas_bound **out, canvas_tuned *tuned),
           (ctx, programs, weights, count, machine, options, out, tuned)) {
  NEED(machine);
  struct caller c = {options ? options : &none, programs, count};
  struct tune_options how;
  TRY(need_each(ctx, "programs", programs, count));
  TRY(need_count(ctx, "out", out, count));
  TRY(need_count(ctx, "tuned", tuned, count));
  TRY(check_weights(ctx, weights, count));
  TRY(read_options(ctx, &c, &how));
  struct tune_task *tasks = mem_alloc((size_t)count * sizeof *tasks + 1);
  for (int i = 0; i < count; i++) {
    tasks[i].program = program_of(programs[i]);
    tasks[i].weight = weights ? weights[i] : 1;
  }
  canvas_status status = tune_many(ctx, tasks, count, machine_of(machine), &how);
  canvas_bound **made = mem_alloc((size_t)count * sizeof *made + 1);
  for (int i = 0; i < count; i++) {
    bool won = status == CANVAS_OK && tasks[i].status == CANVAS_OK;
    if (won) made[i] = take_bound(&tasks[i].tuned, tasks[i].program);
    if (status != CANVAS_OK) tuned_free(&tasks[i].tuned);
  }
  for (int i = 0; status == CANVAS_OK && i < count; i++) { /* nothing is allocated any more */
    out[i] = made[i];
    tell_task(&tasks[i], &tuned[i]);
  }
  mem_free(made);
  mem_free(tasks);
  return status;
}

/* ---- the space ------------------------------------------------------------------------------- */

static void print_space(const struct sketch *sketch, const struct space *space, int points,
                        struct buf *out) {
  buf_printf(out, "# %s: %lld point%s\n", sketch->rule, (long long)space->size,
             space->size == 1 ? "" : "s");
  schedule_print(sketch->schedule, out);
  for (int64_t i = 0; i < points && i < space->size; i++) {
    struct loop_tree *tree = space_legal(space, i);
    buf_printf(out, "# %lld: ", (long long)i);
    space_print(space, i, out);
    buf_puts(out, tree ? "\n" : " (not legal)\n");
    loop_tree_free(tree);
  }
}

API_STATUS(canvas_tune_space,
           (canvas_context * ctx, const canvas_program *program, const canvas_machine *machine,
            const canvas_tune_options *options, int points, char **out),
           (ctx, program, machine, options, points, out)) {
  NEED(program);
  NEED(machine);
  NEED(out);
  struct caller c = {options ? options : &none, NULL, 0};
  struct tune_options how;
  struct sketches sketches;
  struct space **spaces;
  struct buf text = {0};
  if (points < 0)
    return fail(ctx, CANVAS_BAD_INPUT, "the number of points is %d, give 0 or more", points);
  TRY(read_options(ctx, &c, &how));
  TRY(tune_spaces(ctx, program_of(program), machine_of(machine), &how, &sketches, &spaces));
  for (int i = 0; i < sketches.count; i++) print_space(&sketches.data[i], spaces[i], points, &text);
  tune_spaces_free(&sketches, spaces);
  *out = buf_take(&text);
  return CANVAS_OK;
}
