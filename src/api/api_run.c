/* Programs as machine code: compiled, checked against the interpreter, timed. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/handle.h"
#include "base/memory.h"
#include "emit/emit.h"
#include "run/batch.h"

_Static_assert((int)CANVAS_FAILED_RUN == (int)FAILED_RUN, "the kinds of failure are the same");
_Static_assert(sizeof((canvas_verdict *)0)->message == MESSAGE_SIZE, "and so are sentences");

const char *canvas_failure_name(canvas_failure failure) {
  return failure_name((enum failure)failure);
}

char *canvas_compiler_name(canvas_context *ctx) {
  struct compiler *c;
  if (compiler_open(ctx, NULL, &c) != CANVAS_OK) return NULL;
  char *text = mem_strdup(compiler_text(c));
  compiler_close(c);
  return text;
}

/* ---- an object to keep ----------------------------------------------------------------------- */

static canvas_status compile_text(canvas_context *ctx, const struct source *source,
                                  const char *target, char **out) {
  const struct compiler_options options = {.target = target};
  struct compiler *c;
  struct object object;
  TRY(compiler_open(ctx, &options, &c));
  canvas_status status = compiler_build(ctx, c, source, 1, 1, 0, &object);
  compiler_close(c);
  if (status != CANVAS_OK) return status;
  if (!object.path) return fail(ctx, CANVAS_IO, "it does not compile: %.900s", object.message);
  *out = object.path;
  return CANVAS_OK;
}

canvas_status canvas_bound_compile(canvas_context *ctx, const canvas_bound *bound,
                                   const canvas_emit_options *options, char **out) {
  const struct program *p = bound->tree->program;
  canvas_emit_options how = options ? *options : (canvas_emit_options){0};
  char *text, *name = NULL;
  how.header = false;
  if (!how.function) how.function = name = emit_c_function(p->name);
  canvas_status status = canvas_bound_emit(ctx, bound, &how, &text);
  if (status == CANVAS_OK) {
    const struct source source = {text, how.function, p->inputs.count + p->outputs.count};
    status = compile_text(ctx, &source, bound->tree->machine.target, out);
    free(text);
  }
  free(name);
  return status;
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

struct field {
  struct contender *candidates;
  char (*names)[32];
  struct verdict *verdicts;
  int count;
};

static void field_open(struct field *f, int count) {
  f->count = count;
  f->candidates = mem_alloc((size_t)count * sizeof *f->candidates);
  f->names = mem_alloc((size_t)count * sizeof *f->names);
  f->verdicts = mem_alloc((size_t)count * sizeof *f->verdicts);
}

static void field_close(struct field *f) {
  for (int i = 0; i < f->count; i++) free((char *)(uintptr_t)f->candidates[i].text);
  free(f->candidates);
  free(f->names);
  free(f->verdicts);
}

/* The C of one schedule's text, NULL for the default one. What it fails at is its verdict. */
static void write_candidate(canvas_context *ctx, const canvas_program *program,
                            const canvas_machine *machine, const char *text, struct field *f,
                            int i) {
  canvas_schedule *schedule = NULL;
  canvas_bound *bound = NULL;
  char *code;
  snprintf(f->names[i], sizeof f->names[i], "candidate_%d", i);
  const canvas_emit_options options = {.function = f->names[i]};
  if (text && canvas_schedule_parse(ctx, text, strlen(text), &schedule) != CANVAS_OK) {
    verdict_fail(&f->verdicts[i], FAILED_PARSE, "%s", ctx->message);
    return;
  }
  canvas_status status = canvas_bound_new(ctx, program, schedule, machine, &bound);
  if (status == CANVAS_OK) status = canvas_bound_emit(ctx, bound, &options, &code);
  if (status != CANVAS_OK)
    verdict_fail(&f->verdicts[i], FAILED_CHECK, "%s", ctx->message);
  else
    f->candidates[i] = (struct contender){code, f->names[i]};
  canvas_bound_free(bound);
  canvas_schedule_free(schedule);
}

static bool any_written(const struct field *f) {
  for (int i = 0; i < f->count; i++)
    if (f->candidates[i].text) return true;
  return false;
}

static canvas_status judge(canvas_context *ctx, const canvas_program *program,
                           const canvas_run_options *options, struct field *f) {
  const struct expected_options inputs = {.seed = options->seed};
  const struct batch_options how = {
      .seconds = options->total_seconds,
      .limits = {.seconds = options->seconds, .repeats = options->repeats}};
  struct compiler *c;
  struct expected *e;
  if (!any_written(f)) return CANVAS_OK;
  TRY(compiler_open(ctx, NULL, &c));
  canvas_status status = expected_new(ctx, program_of(program), &inputs, &e);
  if (status == CANVAS_OK) {
    status = batch_run(ctx, c, e, f->candidates, f->count, &how, f->verdicts);
    expected_free(e);
  }
  compiler_close(c);
  return status;
}

canvas_status canvas_program_run(canvas_context *ctx, const canvas_program *program,
                                 const canvas_machine *machine, const char *const *schedules,
                                 int count, const canvas_run_options *options,
                                 canvas_verdict *out) {
  const canvas_run_options standard = {.seed = 1};
  struct field f;
  field_open(&f, count);
  for (int i = 0; i < count; i++)
    write_candidate(ctx, program, machine, schedules ? schedules[i] : NULL, &f, i);
  canvas_status status = judge(ctx, program, options ? options : &standard, &f);
  for (int i = 0; status == CANVAS_OK && i < count; i++) out[i] = verdict_out(&f.verdicts[i]);
  field_close(&f);
  return status;
}
