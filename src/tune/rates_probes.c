/* Writes the probes of a machine's rates. See rates_probes.h. */
#include "tune/rates_probes.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "code/pipeline.h"
#include "emit/emit.h"

/* ---- hand-written probes --------------------------------------------------------------------- */

static const char prelude[] =
    "typedef float probe_v __attribute__((vector_size(%d)));\n"
    "typedef float probe_u __attribute__((vector_size(%d), aligned(4)));\n"
    "typedef int probe_i __attribute__((vector_size(%d)));\n"
    "typedef int probe_w __attribute__((vector_size(%d), aligned(4), may_alias));\n"
    "typedef int probe_1 __attribute__((may_alias));\n"
    "int %s(const float *x, float *y) {\n";

/* Ten independent sums keep both units busy, whatever their latency. */
#define TEN(X)    X(0) X(1) X(2) X(3) X(4) X(5) X(6) X(7) X(8) X(9)
#define VECTOR(i) "  probe_v c" #i " = x[" #i "] - (probe_v){0};\n"
#define STEP(i)   "    c" #i " = c" #i " * a + b;\n"
#define STORED(i) "    *(probe_u *)(y + (j + " #i ") * L) = c" #i ";\n"
#define ADDED(i)  " + c" #i
#define END       "  *(probe_u *)y = c0" TEN(ADDED) ";\n  return 0;\n}\n"
#define VALUES    "  probe_v a = x[20] - (probe_v){0}, b = x[21] - (probe_v){0};\n"
#define LANES     "  enum { L = sizeof(probe_v) / 4 };\n"

/* Loaded values are combined by xor, which is faster than loading. */
#define BITS(i)   "  probe_i c" #i " = {0};\n"
#define LOADED(i) "    c" #i " ^= *(const probe_w *)(x + (j + " #i ") * L);\n"
#define SPREAD(i) "    c" #i " ^= *(const probe_1 *)(x + j + " #i ") - (probe_i){0};\n"
#define MIXED(i)  " ^ c" #i
#define BITS_END  "  *(probe_w *)y = c0" TEN(MIXED) ";\n  return 0;\n}\n"

static const char cycles_text[] =
    "  unsigned long a = (unsigned long)x[0] + 3, b = a, i;\n"
    "  for (i = 0; i < 16000; i++) {\n    a *= b;\n"
    "    __asm__ volatile(\"\" : \"+r\"(a), \"+r\"(b));\n  }\n"
    "  y[0] = (float)(a & 1);\n  return 0;\n}\n";
static const char fma_text[] =
    VALUES TEN(VECTOR) "  for (long j = 0; j < 4000; j++) {\n" TEN(STEP) "  }\n" END;
static const char latency_text[] =
    VALUES VECTOR(0) "  for (long j = 0; j < 4000; j++) {\n" STEP(0) "  }\n"
                     "  *(probe_u *)y = c0;\n  return 0;\n}\n";
static const char loads_text[] = LANES
    TEN(BITS) "  for (long i = 0; i < 100; i++)\n  for (long j = 0; j < 100; j += 10) {\n" TEN(
        LOADED) "    __asm__ volatile(\"\" ::: \"memory\");\n  }\n" BITS_END;
static const char broadcasts_text[] =
    TEN(BITS) "  for (long i = 0; i < 100; i++)\n  for (long j = 0; j < 100; j += 10) {\n" TEN(
        SPREAD) "    __asm__ volatile(\"\" ::: \"memory\");\n  }\n" BITS_END;
static const char stores_text[] = LANES
    TEN(VECTOR) "  for (long i = 0; i < 100; i++)\n  for (long j = 0; j < 100; j += 10) {\n" TEN(
        STORED) "    __asm__ volatile(\"\" ::: \"memory\");\n  }\n" END;
static const char stream_text[] = LANES TEN(
    BITS) "  for (long j = 0; j + 10 <= %lld / L; j += 10) {\n" TEN(LOADED) "  }\n" BITS_END;

static void print_prelude(int bytes, const char *name, struct buf *out) {
  buf_printf(out, prelude, bytes, bytes, bytes, bytes, name);
}

static struct probe *add(struct probes *p, const char *name, double units, double *rate,
                         bool cycles) {
  struct probe *probe = &p->list[p->count++];
  *probe = (struct probe){.units = units, .rate = rate, .cycles = cycles};
  snprintf(probe->name, sizeof probe->name, "probe_%s", name);
  return probe;
}

static void add_hand(struct probes *p, int bytes, const char *name, const char *body, double units,
                     double *rate, bool cycles) {
  struct probe *probe = add(p, name, units, rate, cycles);
  struct buf text = {0};
  print_prelude(bytes, probe->name, &text);
  buf_puts(&text, body);
  probe->text = buf_take(&text);
}

static void add_stream(struct probes *p, const struct machine *m, const char *name, int64_t bytes,
                       double *rate) {
  struct probe *probe = add(p, name, (double)bytes, rate, false);
  struct buf text = {0};
  print_prelude(m->vector_bytes, probe->name, &text);
  buf_printf(&text, stream_text, (long long)(bytes / 4));
  probe->text = buf_take(&text);
  probe->bytes = bytes;
}

static int64_t least(int64_t a, int64_t b) {
  return a < b ? a : b;
}

static void add_streams(struct probes *p, const struct machine *m, struct rates *r) {
  int64_t most = m->memory / 8;
  int64_t beyond_l3 = 4 * (m->l3 ? m->l3 : m->l2);
  add_stream(p, m, "l2", least(m->l2 / 2, most), &r->l2);
  if (m->l3) add_stream(p, m, "l3", least(least(m->l3 / 2, 4 * m->l2), most), &r->l3);
  add_stream(p, m, "memory", least(least(beyond_l3, INT64_C(96) << 20), most), &r->memory);
}

/* ---- emitted probes -------------------------------------------------------------------------- */

static const char map_text[] =
    "canvas 1\nprogram probe\nin X f32 [i:1024]\nY[i:1024] = %s\nout Y\n";
static const char gather_text[] =
    "canvas 1\nprogram probe\nin X f32 [j:64, i:64]\nY[i:64, j:64] = X[j, i]\nout Y\n";

static const char *const calls[RATE_CALL_COUNT] = {
    [RATE_DIV] = "0.5 / X[i]",   [RATE_SQRT] = "sqrt(X[i])", [RATE_EXP] = "exp(X[i])",
    [RATE_LOG] = "log(X[i])",    [RATE_SIN] = "sin(X[i])",   [RATE_COS] = "cos(X[i])",
    [RATE_TANH] = "tanh(X[i])",  [RATE_ERF] = "erf(X[i])",   [RATE_POW] = "pow(X[i], 1.3)",
    [RATE_FLOOR] = "floor(X[i])"};

static canvas_status emitted(canvas_context *ctx, const struct machine *m, const char *program,
                             const char *schedule, const char *name, char **out) {
  const struct emit_options options = {.function = name};
  struct program *p = NULL;
  struct schedule *s = NULL;
  struct loop_tree *tree = NULL;
  struct code *code = NULL;
  struct buf text = {0};
  canvas_status status = program_parse(ctx, program, strlen(program), &p);
  if (status == CANVAS_OK) status = schedule_parse(ctx, schedule, strlen(schedule), &s);
  if (status == CANVAS_OK) status = loop_tree_bind(ctx, p, s, m, &tree);
  if (status == CANVAS_OK) status = pipeline_run(ctx, tree, NULL, &code);
  if (status == CANVAS_OK) status = emit_c(ctx, code, tree, &options, &text);
  code_free(code);
  loop_tree_free(tree);
  schedule_free(s);
  program_free(p);
  *out = buf_take(&text);
  return status;
}

static canvas_status add_call(canvas_context *ctx, struct probes *p, const struct machine *m,
                              int call, bool lanes, double *rate) {
  char program[256], name[32];
  snprintf(program, sizeof program, map_text, calls[call]);
  snprintf(name, sizeof name, "%s%d", lanes ? "vector" : "single", call);
  struct probe *probe = add(p, name, lanes ? 1024.0 * 4 / m->vector_bytes : 1024, rate, true);
  return emitted(ctx, m, program, lanes ? "i:vec => @Y = i\n" : "i => @Y = i\n", probe->name,
                 &probe->text);
}

/* A tile of 4 rows and 2 vectors as emitted: some compilers reload a vector for each row. */
static canvas_status add_tile(canvas_context *ctx, struct probes *p, const struct machine *m,
                              double *rate) {
  char program[300], schedule[200];
  int columns = m->vector_bytes / 2, steps = 4096 / columns;
  snprintf(program, sizeof program,
           "canvas 1\nprogram probe\nin A f32 [k:%d, j:%d]\n"
           "Y[n:16, i:4, j:%d] = A[k, i] * A[k, j] // sum k:%d\nout Y\n",
           steps, columns, columns, steps);
  snprintf(schedule, sizeof schedule, "n, k, i:unroll, j:vec => @Y = n, i, j // k\n");
  struct probe *probe = add(p, "tile", 16.0 * 8 * steps, rate, true);
  return emitted(ctx, m, program, schedule, probe->name, &probe->text);
}

enum { NARROW = 16 /* bytes of a narrow vector */ };

/* Loads of all lanes but one of an axis' last vector. Some compilers assemble it in memory, where
 * loading what was stored in parts stalls. */
static canvas_status add_partial(canvas_context *ctx, struct probes *p, const struct machine *m,
                                 const char *name, int lanes, double *rate) {
  char program[200], schedule[100];
  int steps = PROBE_FLOATS / lanes;
  snprintf(program, sizeof program,
           "canvas 1\nprogram probe\nin X f32 [k:%d, j:%d]\n"
           "Y[n:16, j:%d] = X[k, j] // sum k:%d\nout Y\n",
           steps, lanes - 1, lanes - 1, steps);
  snprintf(schedule, sizeof schedule, "n, k, j:%d:mask:vec => @Y = n, j // k\n", lanes);
  struct probe *probe = add(p, name, 16.0 * steps, rate, true);
  return emitted(ctx, m, program, schedule, probe->name, &probe->text);
}

canvas_status probes_open(canvas_context *ctx, const struct machine *m, struct rates *r,
                          struct probes *p) {
  int bytes = m->vector_bytes;
  *p = (struct probes){.count = 0};
  add_hand(p, bytes, "cycles", cycles_text, 3 * 16000, &r->hertz,
           false); /* a product takes three cycles */
  add_hand(p, bytes, "fma", fma_text, 10 * 4000, &r->fma, false);
  add_hand(p, bytes / 2, "half", fma_text, 10 * 4000, &r->half, false);
  add_hand(p, bytes / 2, "half_stores", stores_text, 100 * 100, &r->half_stores, false);
  add_hand(p, bytes, "latency", latency_text, 4000, &r->latency, true);
  add_hand(p, bytes, "loads", loads_text, 100 * 100, &r->loads, false);
  add_hand(p, bytes, "broadcasts", broadcasts_text, 100 * 100, &r->broadcasts, false);
  add_hand(p, bytes, "stores", stores_text, 100 * 100, &r->stores, false);
  add_streams(p, m, r);
  TRY(add_tile(ctx, p, m, &r->tile));
  TRY(add_partial(ctx, p, m, "partial", bytes / 4, &r->partial));
  if (bytes > NARROW) TRY(add_partial(ctx, p, m, "narrow", NARROW / 4, &r->narrow));
  struct probe *gather = add(p, "gather", 64 * 64, &r->gather, true);
  TRY(emitted(ctx, m, gather_text, "i, j:vec => @Y = i, j\n", gather->name, &gather->text));
  for (int i = 0; i < RATE_CALL_COUNT; i++) {
    TRY(add_call(ctx, p, m, i, true, &r->vector[i]));
    TRY(add_call(ctx, p, m, i, false, &r->single[i]));
  }
  return CANVAS_OK;
}

void probes_close(struct probes *p) {
  for (int i = 0; i < p->count; i++) mem_free(p->list[i].text);
}
