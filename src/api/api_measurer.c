/* Candidates of one program: compiled, compared with the interpreter, timed. */
#include <stdlib.h>
#include <string.h>

#include "api/api_call.h"
#include "api/handle.h"
#include "base/memory.h"
#include "run/child.h"
#include "run/cold.h"
#include "tune/candidates.h"
#include "program/program_facts.h"

_Static_assert((int)CANVAS_FAILED_RUN == (int)FAILED_RUN, "the kinds of failure are the same");
_Static_assert(sizeof((canvas_verdict *)0)->message == MESSAGE_SIZE, "and so are messages");

struct canvas_measurer {
  const struct program *program; /* borrowed */
  struct compiler *compiler;
  struct expected *expected;
  struct batch_options options;
};

const char *canvas_failure_name(canvas_failure failure) {
  return is_index((int)failure, FAILURES) ? failure_name((enum failure)failure) : NULL;
}

static canvas_status check_options(canvas_context *ctx, const canvas_run_options *o) {
  const struct option_number numbers[] = {{"seconds", o->seconds, SECONDS_MOST},
                                          {"total_seconds", o->total_seconds, SECONDS_MOST},
                                          {"repeats", o->repeats, COUNT_MOST},
                                          {"threads", o->threads, THREADS_MOST}};
  return check_numbers(ctx, numbers, sizeof numbers / sizeof *numbers);
}

API_STATUS(canvas_measurer_new,
           (canvas_context * ctx, const canvas_program *program, const canvas_run_options *options,
            canvas_measurer **out),
           (ctx, program, options, out)) {
  NEED(program);
  NEED(out);
  const canvas_run_options how = options ? *options : (canvas_run_options){.seed = 1};
  struct expected_options inputs = {.seed = how.seed, .winograd = how.winograd};
  TRY(check_options(ctx, &how));
  if (how.winograd) TRY(winograd_check_tile(ctx, how.winograd));
  struct canvas_measurer *m = mem_alloc(sizeof *m);
  m->program = program_of(program);
  m->options = (struct batch_options){.seconds = how.total_seconds,
                                      .limits = {.seconds = how.seconds,
                                                 .repeats = how.repeats,
                                                 .threads = how.threads,
                                                 .early = how.screen}};
  const struct machine here = machine_here();
  if (how.cold) m->options.limits.cold = cold_bytes(&here, how.threads);
  const struct compiler_options compiler = {.quick = how.screen};
  canvas_status status = compiler_open(ctx, &compiler, &m->compiler);
  inputs.compiler = m->compiler;
  if (status == CANVAS_OK) status = expected_new(ctx, m->program, &inputs, &m->expected);
  if (status == CANVAS_OK)
    *out = m;
  else
    canvas_measurer_free(m);
  return status;
}

void canvas_measurer_free(canvas_measurer *measurer) {
  if (!measurer) return;
  compiler_close(measurer->compiler);
  expected_free(measurer->expected);
  mem_free(measurer);
}

const char *canvas_measurer_compiler(const canvas_measurer *measurer) {
  if (!measurer) return NULL;
  return compiler_text(measurer->compiler);
}

const char *canvas_measurer_no_reference(const canvas_measurer *measurer) {
  if (!measurer) return "";
  return measurer->expected->without;
}

void canvas_stop_when(bool (*asked)(void *data), void *data) {
  child_stop_when(asked, data);
}

/* ---- candidates ------------------------------------------------------------------------------ */

canvas_verdict verdict_out(const struct verdict *v) {
  canvas_verdict out = {.failure = (canvas_failure)v->failure,
                        .compared = v->compared,
                        .worst = v->worst,
                        .repeats = v->repeats,
                        .median = v->median,
                        .lower = v->lower,
                        .upper = v->upper,
                        .cold = v->cold};
  memcpy(out.message, v->message, sizeof out.message);
  return out;
}

API_STATUS(canvas_measurer_run,
           (canvas_context * ctx, canvas_measurer *measurer, const canvas_bound *const *candidates,
            int count, canvas_verdict *out),
           (ctx, measurer, candidates, count, out)) {
  NEED(measurer);
  TRY(need_each(ctx, "candidates", candidates, count));
  TRY(need_count(ctx, "out", out, count));
  struct canvas_measurer *m = measurer;
  const struct loop_tree **trees = mem_alloc((size_t)count * sizeof *trees + 1);
  struct verdict *verdicts = mem_alloc((size_t)count * sizeof *verdicts + 1);
  for (int i = 0; i < count; i++) trees[i] = candidates[i]->tree;
  canvas_status status = candidates_measure(ctx, m->compiler, m->expected, m->program, trees, count,
                                            &m->options, verdicts);
  for (int i = 0; status == CANVAS_OK && i < count; i++) {
    out[i] = verdict_out(&verdicts[i]);
    measure_best(&m->options.limits, &verdicts[i]);
  }
  mem_free(verdicts);
  mem_free(trees);
  return status;
}
