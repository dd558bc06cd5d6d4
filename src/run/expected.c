/* Computes expected outputs and compares a candidate's with them. See expected.h. */
#include "run/expected.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "program/interpret.h"
#include "rewrite/program_edit.h"
#include "run/child.h"
#include "run/places.h"
#include "run/reference.h"

#define BYTES_MOST     ((size_t)4 << 30)  /* limit of bytes of a program's inputs and outputs */
#define REFERENCE_MOST ((int64_t)3 << 30) /* limit of bytes of a reference's tensors */
#define SPOT           0.5                /* seconds of the interpreter before a reference */
#define BEHIND_INPUT   ((size_t)2048)     /* bytes to the end of the page of a timed input */
#define BEHIND_OUTPUT \
  ((size_t)1024) /* bytes for a timed output: another address modulo 4096 than inputs, against false
                    store-to-load conflicts */
enum { WHOLE = 1 << 16, SAMPLES = 4096, SECONDS = 30 };

/* ---- inputs ---------------------------------------------------------------------------------- */

/* Allocates an input. Unpacked weights seldom lie in large pages, where streaming code would run a
 * quarter faster than in a network. */
static bool new_input(const struct program *p, int tensor, struct block *b) {
  const struct program_tensor *t = &p->tensors.data[tensor];
  size_t size = (size_t)program_elements(p, tensor) * dtype_bytes(t->dtype);
  return t->constant ? block_new_small(b, size) : block_new(b, size, false);
}

/* Fills an input, rounded to its data type: in `b` for the code, as doubles for the interpreter. */
static double *fill_input(const struct program *p, int input, uint64_t seed, struct block *b) {
  int tensor = p->inputs.data[input];
  enum program_dtype dtype = p->tensors.data[tensor].dtype;
  int64_t count = program_elements(p, tensor);
  double *values = mem_try((size_t)count, sizeof *values);
  if (!values || !new_input(p, tensor, b)) {
    mem_free(values);
    return NULL;
  }
  program_fill(p, input, seed, values);
  for (int64_t i = 0; i < count; i++) {
    element_put(dtype, b->data, i, program_stored(dtype, values[i]));
    values[i] = element_get(dtype, b->data, i);
  }
  return values;
}

/* ---- values ---------------------------------------------------------------------------------- */

struct oracle {
  canvas_context *ctx;
  const struct program *program;
  const struct expected_options *options;
  const double *const *inputs;
  struct rounding rounding;
  struct interpreter *interpreter;
  double end; /* clock_wall time at which even a single element is stopped */
};

/* Evaluates value and bound of places until `count` are known, or until a time or other limit. */
static canvas_status evaluate(struct oracle *q, int output, struct expected_output *o,
                              int64_t count, double until) {
  int value = q->rounding.value[output], error = q->rounding.error[output];
  for (; o->count < count; o->count++) {
    int64_t i = o->count;
    if (i && (clock_wall() > until || child_stopped())) return CANVAS_OK;
    canvas_status status = interpreter_elements(q->interpreter, value, 1, &o->at[i], &o->want[i]);
    if (status == CANVAS_OK && error >= 0)
      status = interpreter_elements(q->interpreter, error, 1, &o->at[i], &o->bound[i]);
    if (status == CANVAS_IO && i) return CANVAS_OK;
    if (status != CANVAS_OK) return status;
  }
  return CANVAS_OK;
}

static canvas_status no_memory(canvas_context *ctx, const struct program *p) {
  return fail(ctx, CANVAS_IO, "there is no memory for the tensors of program '%.40s'", p->name);
}

/* Number of elements for the interpreter. */
static int64_t wanted_count(const struct oracle *q, const struct expected_output *o) {
  return o->elements <= q->options->whole ? o->elements : q->options->samples;
}

static canvas_status open_output(struct oracle *q, struct expected_output *o) {
  int64_t count = wanted_count(q, o);
  struct places places = {
      .rank = o->rank, .seed = q->options->seed, .whole = o->elements <= q->options->whole};
  if (!block_new(&o->memory, (size_t)o->elements * dtype_bytes(o->dtype), true) ||
      !block_new(&o->known, (size_t)count * 3 * 8, false))
    return no_memory(q->ctx, q->program);
  if (!block_new_timed(&o->memory, BEHIND_OUTPUT, &o->timed)) return no_memory(q->ctx, q->program);
  o->at = (int64_t *)(void *)o->known.data;
  o->want = (double *)(void *)(o->at + count);
  o->bound = o->want + count;
  memcpy(places.sizes, o->sizes, sizeof places.sizes);
  choose_places(q->program, &places, count, o->at);
  return CANVAS_OK;
}

/* Evaluates all outputs, each with an equal share of the seconds. */
static canvas_status evaluate_all(struct oracle *q, struct expected *e, double seconds) {
  double start = clock_wall();
  for (int i = 0; i < e->outputs; i++)
    TRY(evaluate(q, i, &e->output[i], wanted_count(q, &e->output[i]),
                 start + seconds * (i + 1) / e->outputs));
  return CANVAS_OK;
}

/* ---- the compiled reference ------------------------------------------------------------------ */

static bool near(double a, double b, double most) {
  return a == b || (isnan(a) && isnan(b)) || fabs(a - b) <= most;
}

/* Allowed share of the bound. For fp64 the interpreter's rounding is the whole bound, for fp32 it
 * is negligible. */
static double agreement(const struct program *p) {
  for (int i = 0; i < p->tensors.count; i++)
    if (p->tensors.data[i].dtype == PROGRAM_F64) return 1;
  return 1e-3;
}

static canvas_status agrees(const struct oracle *q, const struct expected_output *o,
                            const struct block *known) {
  const double *want = (const double *)(const void *)known->data, *bound = want + o->elements;
  double part = agreement(q->program);
  for (int64_t i = 0; i < o->count; i++) {
    int64_t at = o->at[i];
    if (near(want[at], o->want[i], part * o->bound[i] + ROUNDING_LEAST) &&
        near(bound[at], o->bound[i], 1e-3 * o->bound[i]))
      continue;
    return fail(q->ctx, CANVAS_IO,
                "the compiled reference gives %.9g +- %.3g for element %lld of '%.40s', the "
                "interpreter %.9g +- %.3g",
                want[at], bound[at], (long long)at, o->name, o->want[i], o->bound[i]);
  }
  return CANVAS_OK;
}

/* Takes over the values and bounds of the reference. */
static void adopt(struct expected_output *o, const struct block *known) {
  block_free(&o->known);
  o->known = *known;
  o->count = o->elements;
  o->at = NULL;
  o->want = (double *)(void *)known->data;
  o->bound = o->want + o->elements;
}

static canvas_status share_memory(const struct oracle *q, const struct expected *e,
                                  struct block *known) {
  for (int i = 0; i < e->outputs; i++)
    if (!block_new_shared(&known[i], (size_t)e->output[i].elements * 2 * sizeof(double)))
      return no_memory(q->ctx, q->program);
  return CANVAS_OK;
}

static canvas_status use_reference(struct oracle *q, struct expected *e) {
  const struct reference_limits limits = {q->options->seconds, REFERENCE_MOST};
  struct block *known = mem_alloc((size_t)e->outputs * sizeof *known);
  canvas_status status = share_memory(q, e, known);
  if (status == CANVAS_OK)
    status = reference_new(q->ctx, q->options->compiler, &q->rounding, q->inputs, &limits, known);
  for (int i = 0; status == CANVAS_OK && i < e->outputs; i++)
    status = agrees(q, &e->output[i], &known[i]);
  for (int i = 0; i < e->outputs; i++)
    if (status == CANVAS_OK)
      adopt(&e->output[i], &known[i]);
    else
      block_free(&known[i]);
  mem_free(known);
  return status;
}

static bool all_known(const struct expected *e) {
  for (int i = 0; i < e->outputs; i++)
    if (e->output[i].count < e->output[i].elements) return false;
  return true;
}

/* Interprets for a moment, then uses a reference, or else the interpreter to the end. */
static canvas_status find_values(struct oracle *q, struct expected *e) {
  double seconds = q->options->seconds, spot = fmin(seconds, q->options->spot);
  for (int i = 0; i < e->outputs; i++) TRY(open_output(q, &e->output[i]));
  if (!q->options->compiler) return evaluate_all(q, e, seconds);
  TRY(evaluate_all(q, e, spot));
  if (all_known(e) || use_reference(q, e) == CANVAS_OK) return CANVAS_OK;
  memcpy(e->without, q->ctx->message, sizeof e->without);
  return evaluate_all(q, e, seconds - spot);
}

/* ---- all of it ------------------------------------------------------------------------------- */

static void describe_output(const struct program *p, int output, struct expected_output *o) {
  const struct program_tensor *t = &p->tensors.data[p->outputs.data[output]];
  snprintf(o->name, sizeof o->name, "%s", t->name);
  o->dtype = t->dtype;
  o->rank = t->rank;
  o->elements = program_elements(p, p->outputs.data[output]);
  for (int i = 0; i < t->rank; i++) o->sizes[i] = t->axes[i].size;
}

static canvas_status check_size(canvas_context *ctx, const struct program *p, size_t *bytes) {
  double all = 0; /* double, since a tensor may have 2^40 elements */
  for (int i = 0; i < p->tensors.count; i++) {
    const struct program_tensor *t = &p->tensors.data[i];
    bool given = t->is_input;
    for (int k = 0; k < p->outputs.count; k++) given |= p->outputs.data[k] == i;
    if (given) all += (double)program_elements(p, i) * (double)dtype_bytes(t->dtype);
  }
  if (all > (double)BYTES_MOST)
    return fail(ctx, CANVAS_BAD_INPUT,
                "inputs and outputs of program '%.40s' take %.0f MiB, over the limit of %zu MiB",
                p->name, all / (1 << 20), BYTES_MOST >> 20);
  *bytes = (size_t)all;
  return CANVAS_OK;
}

static bool is_late(void *data) {
  const struct oracle *q = data;
  return clock_wall() > q->end || child_stopped();
}

static canvas_status oracle_open(struct oracle *q) {
  const struct interpreter_limits limits = {.stop = is_late, .data = q};
  q->end = clock_wall() + fmax(SECONDS, q->options->seconds);
  TRY(rounding_new(q->ctx, q->program, &q->rounding));
  return interpreter_new(q->ctx, q->rounding.program, q->inputs, &limits, &q->interpreter);
}

static void oracle_close(struct oracle *q) {
  interpreter_free(q->interpreter);
  rounding_free(&q->rounding);
}

static void outputs_free(struct expected_output *outputs, int count) {
  for (int i = 0; outputs && i < count; i++) {
    block_free_timed(&outputs[i].memory, &outputs[i].timed);
    block_free(&outputs[i].memory);
    block_free(&outputs[i].known);
  }
  mem_free(outputs);
}

/* Value and bound of the original program. */
static canvas_status given_element(struct oracle *q, int output, const struct expected_output *o,
                                   int64_t at, double *want, double *bound) {
  int error = q->rounding.error[output];
  *bound = 0;
  if (!o->at) {
    *want = o->want[at];
    *bound = o->bound[at];
    return CANVAS_OK;
  }
  TRY(interpreter_elements(q->interpreter, q->rounding.value[output], 1, &at, want));
  return error < 0 ? CANVAS_OK : interpreter_elements(q->interpreter, error, 1, &at, bound);
}

/* Replaces values of the Winograd program by those of the original; adds the bounds. */
static canvas_status widen(struct oracle *q, const struct expected *e,
                           struct expected_output *wide) {
  for (int i = 0; i < e->outputs; i++) {
    struct expected_output *o = &wide[i];
    for (int64_t k = 0; k < o->count; k++) {
      double bound;
      TRY(given_element(q, i, &e->output[i], o->at ? o->at[k] : k, &o->want[k], &bound));
      o->bound[k] += bound;
    }
  }
  return CANVAS_OK;
}

static void share_outputs(const struct expected *e, struct expected_output *wide) {
  for (int i = 0; i < e->outputs; i++) {
    block_free_timed(&wide[i].memory, &wide[i].timed);
    block_free(&wide[i].memory);
    wide[i].memory = e->output[i].memory;
    wide[i].timed = e->output[i].timed;
  }
}

static canvas_status permit_winograd(struct oracle *given, struct expected *e) {
  struct program *p = program_with_winograd(given->program, given->options->winograd);
  if (!p) return CANVAS_OK;
  struct oracle q = {
      .ctx = given->ctx, .program = p, .options = given->options, .inputs = given->inputs};
  struct expected wide = {.outputs = e->outputs};
  wide.output = mem_alloc((size_t)e->outputs * sizeof *wide.output);
  for (int i = 0; i < e->outputs; i++) describe_output(p, i, &wide.output[i]);
  canvas_status status = oracle_open(&q);
  if (status == CANVAS_OK) status = find_values(&q, &wide);
  oracle_close(&q);
  program_free(p);
  if (status == CANVAS_OK) status = widen(given, e, wide.output);
  if (status != CANVAS_OK) {
    outputs_free(wide.output, e->outputs);
    return status;
  }
  share_outputs(e, wide.output);
  e->wide = wide.output;
  return CANVAS_OK;
}

static canvas_status fill_outputs(canvas_context *ctx, const struct program *p,
                                  double *const *inputs, const struct expected_options *options,
                                  struct expected *e) {
  struct oracle q = {
      .ctx = ctx, .program = p, .options = options, .inputs = (const double *const *)inputs};
  canvas_status status = oracle_open(&q);
  if (status == CANVAS_OK) status = find_values(&q, e);
  if (status == CANVAS_OK && options->winograd) status = permit_winograd(&q, e);
  oracle_close(&q);
  return status;
}

static canvas_status fill(canvas_context *ctx, const struct program *p,
                          const struct expected_options *options, struct expected *e) {
  double **inputs = mem_alloc(((size_t)e->inputs + 1) * sizeof *inputs);
  canvas_status status = CANVAS_OK;
  for (int i = 0; status == CANVAS_OK && i < e->inputs; i++) {
    inputs[i] = fill_input(p, i, options->seed, &e->input[i]);
    if (!inputs[i] || !block_new_timed(&e->input[i], BEHIND_INPUT, &e->timed[i]))
      status = no_memory(ctx, p);
  }
  if (status == CANVAS_OK) status = fill_outputs(ctx, p, inputs, options, e);
  for (int i = 0; i < e->inputs; i++) mem_free(inputs[i]);
  mem_free(inputs);
  return status;
}

canvas_status expected_new(canvas_context *ctx, const struct program *p,
                           const struct expected_options *options, struct expected **out) {
  struct expected_options o = options ? *options : (struct expected_options){0};
  size_t bytes = 0;
  if (o.whole <= 0) o.whole = WHOLE;
  if (o.samples <= 0) o.samples = SAMPLES;
  if (o.seconds <= 0) o.seconds = SECONDS;
  if (o.spot <= 0) o.spot = SPOT;
  TRY(check_size(ctx, p, &bytes));
  struct expected *e = mem_alloc(sizeof *e);
  *e = (struct expected){.inputs = p->inputs.count,
                         .outputs = p->outputs.count,
                         .winograd = o.winograd,
                         .bytes = bytes};
  e->input = mem_alloc(((size_t)e->inputs + 1) * sizeof *e->input);
  e->timed = mem_alloc(((size_t)e->inputs + 1) * sizeof *e->timed);
  e->output = mem_alloc(((size_t)e->outputs + 1) * sizeof *e->output);
  for (int i = 0; i < e->outputs; i++) describe_output(p, i, &e->output[i]);
  canvas_status status = fill(ctx, p, &o, e);
  if (status == CANVAS_OK)
    *out = e;
  else
    expected_free(e);
  return status;
}

void expected_free(struct expected *e) {
  if (!e) return;
  for (int i = 0; i < e->inputs; i++) {
    block_free_timed(&e->input[i], &e->timed[i]);
    block_free(&e->input[i]);
  }
  for (int i = 0; e->wide && i < e->outputs; i++)
    e->wide[i].memory = e->wide[i].timed = (struct block){0};
  outputs_free(e->wide, e->outputs);
  outputs_free(e->output, e->outputs);
  mem_free(e->input);
  mem_free(e->timed);
  mem_free(e);
}

void expected_seal(const struct expected *e) {
  for (int i = 0; i < e->inputs; i++) {
    block_seal(&e->input[i]);
    block_seal(&e->timed[i]);
  }
  for (int i = 0; i < e->outputs; i++) block_seal(&e->output[i].known);
  for (int i = 0; e->wide && i < e->outputs; i++) block_seal(&e->wide[i].known);
}

/* ---- comparing ------------------------------------------------------------------------------- */

void expected_poison(const struct expected *e, int pattern) {
  for (int i = 0; i < e->outputs; i++) {
    const struct expected_output *o = &e->output[i];
    block_poison(&o->memory, o->dtype, pattern);
    if (o->timed.map != o->memory.map) block_poison(&o->timed, o->dtype, pattern);
  }
}

void expected_take_timed(const struct expected *e) {
  for (int i = 0; i < e->outputs; i++) {
    const struct expected_output *o = &e->output[i];
    if (o->timed.map != o->memory.map) memcpy(o->memory.data, o->timed.data, o->memory.size);
  }
}

/* Writes "Y[0, 3, 5]". got - want| / bound, 0 if they are equal; => |got - want| / bound; 0 if
 * equal, wrong beyond 1. If fp32 overflows, infinity is right. A NaN must be a NaN. */
static const char *place_text(const struct expected_output *o, int64_t flat, char *text,
                              size_t size) {
  int64_t at[PROGRAM_AXES];
  for (int i = o->rank - 1; i >= 0; i--) {
    at[i] = flat % o->sizes[i];
    flat /= o->sizes[i];
  }
  int used = snprintf(text, size, "%.40s[", o->name);
  for (int i = 0; i < o->rank && (size_t)used < size; i++)
    used += snprintf(text + used, size - (size_t)used, "%s%lld", i ? ", " : "", (long long)at[i]);
  if ((size_t)used < size) snprintf(text + used, size - (size_t)used, "]");
  return text;
}

static bool check_zones(const struct expected_output *o, struct verdict *v) {
  int64_t harm = block_harm(&o->memory);
  if (!harm && o->timed.map != o->memory.map) harm = block_harm(&o->timed);
  if (!harm) return true;
  verdict_fail(v, FAILED_WRONG, "it writes outside its output: %lld bytes %s '%.40s'",
               (long long)(harm < 0 ? -harm : harm), harm < 0 ? "before" : "past the end of",
               o->name);
  return false;
}

/* |got - want| / bound, 0 if they are equal; beyond 1 it is wrong. Where fp32 ends, infinite is
 * right; a nan has to be one. */
static double miss(enum program_dtype dtype, double got, double want, double bound) {
  if (got == want || (isnan(got) && isnan(want))) return 0;
  double most = dtype == PROGRAM_F64 ? DBL_MAX : (double)FLT_MAX;
  if (isinf(got) && fabs(want) + bound >= most && (got > 0) == (want > 0)) return 1;
  double ratio = fabs(got - want) / (bound + ROUNDING_LEAST);
  return ratio <= HUGE_VAL ? ratio : HUGE_VAL; /* also for a NaN */
}

struct tally {
  int64_t first, wrong; /* first wrong index of known elements; number of wrong ones */
};

static int64_t place_of(const struct expected_output *o, int64_t known) {
  return o->at ? o->at[known] : known;
}

/* Whether the element can be judged. With an infinite bound only an expected NaN or the same
 * infinity can. */
static bool can_be_judged(double got, double want, double bound) {
  if (isinf(bound)) return isnan(want) || (isinf(want) && got == want);
  return !isnan(bound) || !isfinite(want);
}

static struct tally compare_output(const struct expected_output *o, struct verdict *v) {
  struct tally t = {-1, 0};
  for (int64_t i = 0; i < o->count; i++) {
    double got = element_get(o->dtype, o->memory.data, place_of(o, i));
    double want = o->want[i], bound = o->bound[i];
    if (!can_be_judged(got, want, bound)) continue;
    double ratio = miss(o->dtype, got, want, bound);
    v->compared++;
    v->worst = fmax(v->worst, ratio);
    if (ratio <= 1) continue;
    if (!t.wrong++ || place_of(o, i) < place_of(o, t.first)) t.first = i;
  }
  return t;
}

static void report_wrong(const struct expected_output *o, struct tally t, int pattern,
                         struct verdict *v) {
  char place[256];
  int64_t at = place_of(o, t.first);
  double got = element_get(o->dtype, o->memory.data, at);
  place_text(o, at, place, sizeof place);
  if (element_poisoned(o->dtype, o->memory.data, at, pattern))
    verdict_fail(v, FAILED_WRONG, "%s is never written; %lld of %lld elements are wrong", place,
                 (long long)t.wrong, (long long)o->count);
  else
    verdict_fail(v, FAILED_WRONG,
                 "%s is %.9g, not %.9g (rounding explains %.2g); %lld of %lld elements are wrong",
                 place, got, o->want[t.first], o->bound[t.first], (long long)t.wrong,
                 (long long)o->count);
}

void expected_compare(const struct expected *e, int pattern, bool winograd, struct verdict *v) {
  for (int i = 0; i < e->outputs; i++) {
    const struct expected_output *o = winograd && e->wide ? &e->wide[i] : &e->output[i];
    if (!check_zones(o, v)) return;
    struct tally t = compare_output(o, v);
    if (!t.wrong) continue;
    report_wrong(o, t, pattern, v);
    return;
  }
  if (!v->compared)
    verdict_fail(v, FAILED_WRONG, "no element can be checked, rounding has no bound for any");
}

static bool same_again(const struct expected_output *o, const unsigned char *first,
                       struct verdict *v) {
  size_t bytes = dtype_bytes(o->dtype);
  char place[256];
  if (!memcmp(first, o->memory.data, (size_t)o->elements * bytes)) return true;
  for (int64_t i = 0; i < o->elements; i++) {
    const unsigned char *a = first + (size_t)i * bytes, *b = o->memory.data + (size_t)i * bytes;
    if (!memcmp(a, b, bytes)) continue;
    place_text(o, i, place, sizeof place);
    if (element_poisoned(o->dtype, first, i, 0) && element_poisoned(o->dtype, o->memory.data, i, 1))
      verdict_fail(v, FAILED_WRONG, "%s is never written", place);
    else
      verdict_fail(v, FAILED_WRONG, "%s is %.9g in one run and %.9g in the next", place,
                   element_get(o->dtype, first, i), element_get(o->dtype, o->memory.data, i));
    return false;
  }
  return true;
}

void expected_repeat(const struct expected *e, unsigned char *const *first, struct verdict *v) {
  for (int i = 0; i < e->outputs; i++)
    if (!check_zones(&e->output[i], v) || !same_again(&e->output[i], first[i], v)) return;
}
