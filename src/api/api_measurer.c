/* Candidates of one program: compiled, compared with the interpreter, timed. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/handle.h"
#include "base/memory.h"
#include "run/batch.h"

_Static_assert((int)CANVAS_FAILED_RUN == (int)FAILED_RUN, "the kinds of failure are the same");
_Static_assert(sizeof((canvas_verdict *)0)->message == MESSAGE_SIZE, "and so are messages");

struct canvas_measurer {
  const struct program *program; /* borrowed */
  struct compiler *compiler;
  struct expected *expected;
  struct batch_options options;
};

const char *canvas_failure_name(canvas_failure failure) {
  return failure_name((enum failure)failure);
}

canvas_status canvas_measurer_new(canvas_context *ctx, const canvas_program *program,
                                  const canvas_run_options *options, canvas_measurer **out) {
  const canvas_run_options how = options ? *options : (canvas_run_options){.seed = 1};
  struct expected_options inputs = {.seed = how.seed};
  struct canvas_measurer *m = mem_alloc(sizeof *m);
  m->program = program_of(program);
  m->options = (struct batch_options){.seconds = how.total_seconds,
                                      .limits = {.seconds = how.seconds,
                                                 .repeats = how.repeats,
                                                 .threads = how.threads,
                                                 .early = how.screen}};
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
  free(measurer);
}

const char *canvas_measurer_compiler(const canvas_measurer *measurer) {
  return compiler_text(measurer->compiler);
}

/* ---- candidates ------------------------------------------------------------------------------ */

static canvas_verdict verdict_out(const struct verdict *v) {
  canvas_verdict out = {.failure = (canvas_failure)v->failure,
                        .compared = v->compared,
                        .worst = v->worst,
                        .repeats = v->repeats,
                        .median = v->median,
                        .lower = v->lower,
                        .upper = v->upper};
  memcpy(out.message, v->message, sizeof out.message);
  return out;
}

static bool same_tensor(const struct program_tensor *a, const struct program_tensor *b) {
  if (a->dtype != b->dtype || a->rank != b->rank) return false;
  for (int i = 0; i < a->rank; i++)
    if (a->axes[i].size != b->axes[i].size) return false;
  return a->least == b->least && a->most == b->most && a->rising == b->rising;
}

static bool same_tensors(const struct program *p, const struct program *q, bool inputs) {
  int count = inputs ? p->inputs.count : p->outputs.count;
  const int *of_p = inputs ? p->inputs.data : p->outputs.data;
  const int *of_q = inputs ? q->inputs.data : q->outputs.data;
  if (count != (inputs ? q->inputs.count : q->outputs.count)) return false;
  for (int i = 0; i < count; i++)
    if (!same_tensor(&p->tensors.data[of_p[i]], &q->tensors.data[of_q[i]])) return false;
  return true;
}

struct batch_texts {
  struct batch_candidate *candidates;
  char (*names)[32];
  canvas_prepared *prepared;
  struct measure_prepare *prepare; /* the same, for those that have something */
  struct verdict *verdicts;
  int count;
};

static void texts_open(struct batch_texts *t, int count) {
  t->count = count;
  t->candidates = mem_alloc((size_t)count * sizeof *t->candidates + 1);
  t->names = mem_alloc((size_t)count * sizeof *t->names + 1);
  t->verdicts = mem_alloc((size_t)count * sizeof *t->verdicts + 1);
  t->prepared = mem_alloc((size_t)count * sizeof *t->prepared + 1);
  t->prepare = mem_alloc((size_t)count * sizeof *t->prepare + 1);
}

static void texts_close(struct batch_texts *t) {
  for (int i = 0; i < t->count; i++) {
    free((char *)(uintptr_t)t->candidates[i].text);
    canvas_prepared_free(&t->prepared[i]);
  }
  free(t->prepared);
  free(t->prepare);
  free(t->candidates);
  free(t->names);
  free(t->verdicts);
}

static const struct measure_prepare *prepare_of(struct batch_texts *t, int i) {
  const canvas_prepared *p = &t->prepared[i];
  t->prepare[i] = (struct measure_prepare){p->bytes, p->prepare, p->rest};
  return p->bytes ? &t->prepare[i] : NULL;
}

/* The C of one candidate. What it fails at is its verdict. */
static void write_candidate(canvas_context *ctx, const canvas_measurer *m,
                            const canvas_bound *bound, struct batch_texts *t, int i) {
  const struct program *p = bound->tree->program;
  char *code;
  snprintf(t->names[i], sizeof t->names[i], "candidate_%d", i);
  const canvas_emit_options options = {.function = t->names[i], .prepare = true};
  if (!same_tensors(p, m->program, true) || !same_tensors(p, m->program, false))
    verdict_fail(&t->verdicts[i], FAILED_CHECK,
                 "program '%.100s' has not the inputs and outputs of '%.100s', which is measured",
                 p->name, m->program->name);
  else if (canvas_bound_emit(ctx, bound, &options, &code) != CANVAS_OK ||
           canvas_bound_prepared(ctx, bound, &t->prepared[i]) != CANVAS_OK)
    verdict_fail(&t->verdicts[i], FAILED_CHECK, "%s", ctx->message);
  else
    t->candidates[i] = (struct batch_candidate){code, t->names[i], prepare_of(t, i)};
}

canvas_status canvas_measurer_run(canvas_context *ctx, canvas_measurer *measurer,
                                  const canvas_bound *const *candidates, int count,
                                  canvas_verdict *out) {
  struct canvas_measurer *m = measurer;
  struct batch_texts t;
  texts_open(&t, count);
  for (int i = 0; i < count; i++) write_candidate(ctx, m, candidates[i], &t, i);
  canvas_status status =
      batch_run(ctx, m->compiler, m->expected, t.candidates, count, &m->options, t.verdicts);
  for (int i = 0; status == CANVAS_OK && i < count; i++) {
    out[i] = verdict_out(&t.verdicts[i]);
    measure_best(&m->options.limits, &t.verdicts[i]);
  }
  texts_close(&t);
  return status;
}
