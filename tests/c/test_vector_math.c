// The functions of fp32 vectors (src/emit/vector_math.c) against libm's of fp64: units in the last
// place, and what becomes of nan, infinities, denormal numbers, zeros and large arguments.
//
// CANVAS_TEST_ALL=1: 70 million numbers instead of a hundred thousand.
#define _DEFAULT_SOURCE
#include "canvas.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "check.h"

enum { N = 1 << 14 };

static const struct {
  const char *name;
  double (*exact)(double);
  double units;  // at most, as vector_math.c and docs/native.md state them
} functions[] = {
    {"abs", fabs, 0},      {"floor", floor, 0},   {"exp", exp, 1.1}, {"log", log, 1.1},
    {"tanh", tanh, 1.6},   {"erf", erf, 1.8},     {"sin", sin, 1.6}, {"cos", cos, 1.6},
    {"expm1", expm1, 1.6}, {"log1p", log1p, 1.6},
};
enum { FUNCTIONS = sizeof functions / sizeof *functions };

static char folder[64];

static int make_folder(void **state) {
  return temporary_folder(folder, sizeof folder) ? setenv("CANVAS_CACHE", folder, 1) : -1;
}

static int remove_folder(void **state) {
  char command[128];
  snprintf(command, sizeof command, "rm -rf %s", folder);
  return system(command);
}

static canvas_machine *machine_of(canvas_context *ctx, int vector_bytes) {
  char text[256];
  canvas_machine *machine;
  snprintf(text, sizeof text,
           "canvas 1\nmachine m\nvector_bytes %d\nvector_registers 16\nl1 32 KiB\nl2 1 MiB\n"
           "memory 1 GiB\ntarget native\n",
           vector_bytes);
  CHECK_INT(canvas_machine_parse(ctx, text, strlen(text), &machine), CANVAS_OK, text);
  return machine;
}

// The text in vectors of so many bytes, in which `function` stands and no call of libm.
static canvas_code *compile_text(canvas_context *ctx, const char *text, int vector_bytes,
                                 const char *function) {
  char call[32];
  canvas_program *p;
  if (canvas_program_parse(ctx, text, strlen(text), &p) != CANVAS_OK)
    fail_msg("%s", canvas_context_message(ctx));
  canvas_machine *machine = machine_of(ctx, vector_bytes);
  canvas_bound *bound;
  canvas_code *code;
  char *c;
  CHECK_INT(canvas_bound_new(ctx, p, NULL, machine, &bound), CANVAS_OK, text);
  CHECK_INT(canvas_bound_emit(ctx, bound, NULL, &c), CANVAS_OK, text);
  snprintf(call, sizeof call, "%s_V%d(V", function, vector_bytes / 4);
  CHECK(strstr(c, call), c);
  CHECK(!strstr(c, "expf") && !strstr(c, "sinf") && !strstr(c, "log1pf") && !strstr(c, "powf"), c);
  CHECK_INT(canvas_code_open(ctx, bound, &code), CANVAS_OK, canvas_context_message(ctx));
  canvas_string_free(c);
  canvas_bound_free(bound);
  canvas_machine_free(machine);
  canvas_program_free(p);
  return code;
}

// All functions of one array.
static canvas_code *compile(canvas_context *ctx, int vector_bytes) {
  char text[2048];
  int length = snprintf(text, sizeof text, "canvas 1\nprogram functions\nin X f32 [i:%d]\n", N);
  for (int f = 0; f < FUNCTIONS; f++)
    length += snprintf(text + length, sizeof text - (size_t)length, "Y%d[i:%d] = %s(X[i])\n", f, N,
                       functions[f].name);
  length += snprintf(text + length, sizeof text - (size_t)length, "out Y0");
  for (int f = 1; f < FUNCTIONS; f++)
    length += snprintf(text + length, sizeof text - (size_t)length, ", Y%d", f);
  snprintf(text + length, sizeof text - (size_t)length, "\n");
  return compile_text(ctx, text, vector_bytes, "EXP");
}

// How far `got` is from `exact`, in units of the last place of the nearest fp32; 1e9 for what must be
// the same: nan, infinities, zeros with their sign.
static double units_off(float got, double exact) {
  float nearest = (float)exact;
  if (isnan(nearest) || isnan(got)) return isnan(nearest) && isnan(got) ? 0 : 1e9;
  if (isinf(got) && got == nearest) return 0;
  if (isinf(got)) return nearest == copysignf(0x1.fffffep127f, got) ? 1 : 1e9;
  if (isinf(nearest)) return got == copysignf(0x1.fffffep127f, nearest) ? 1 : 1e9;
  if (exact == 0) return got == 0 && !signbit(got) == !signbit(exact) ? 0 : 1e9;
  int exponent;
  frexp(exact, &exponent);
  return fabs(got - exact) / ldexp(1, (exponent < -125 ? -125 : exponent) - 24);
}

static void compare(canvas_context *ctx, const canvas_code *code, const float *x, int count,
                    const char *what) {
  static float y[FUNCTIONS][N];
  void *out[FUNCTIONS];
  for (int f = 0; f < FUNCTIONS; f++) out[f] = y[f];
  CHECK_INT(canvas_code_call(ctx, code, (const void *[]){x}, out), CANVAS_OK, what);
  for (int f = 0; f < FUNCTIONS; f++)
    for (int i = 0; i < count; i++) {
      double units = units_off(y[f][i], functions[f].exact(x[i]));
      if (units > functions[f].units)
        fail_msg("%s(%a) is %a, %.3g units from %a, in vectors of %s", functions[f].name, x[i],
                 y[f][i], units, functions[f].exact(x[i]), what);
    }
}

// Every so manieth of all numbers, from the bits 0 to the bits 0xffffffff.
static void compare_all(canvas_context *ctx, const canvas_code *code, uint64_t step,
                        const char *what) {
  static float x[N];
  for (uint64_t bits = 0; bits < UINT64_C(1) << 32;) {
    int count = 0;
    for (; count < N && bits < UINT64_C(1) << 32; count++, bits += step) {
      uint32_t low = (uint32_t)bits;
      memcpy(&x[count], &low, sizeof low);
    }
    compare(ctx, code, x, count, what);
  }
}

// Where the pieces meet, where results overflow, vanish or are denormal, whole numbers, turns.
static void compare_edges(canvas_context *ctx, const canvas_code *code, const char *what) {
  static const float edges[] = {0,
                                0x1p-149f,
                                0x1p-126f,
                                0x1p-24f,
                                0x1p-12f,
                                0.29289323f,
                                0.34657359f,
                                0.41421357f,
                                0.625f,
                                0.70710677f,
                                1,
                                1.0397208f,
                                4,
                                17.32868f,
                                18,
                                88.72284f,
                                89,
                                87.33655f,
                                103.97208f,
                                104,
                                1.5707964f,
                                3.1415927f,
                                1.5e6f,
                                0x1p20f,
                                0x1p23f,
                                0x1.921fb6p30f,
                                0x1.6ac5b2p86f,
                                0x1.fffffep127f,
                                INFINITY,
                                NAN};
  static float x[N];
  int count = 0;
  for (size_t i = 0; i < sizeof edges / sizeof *edges; i++)
    for (int sign = -1; sign <= 1; sign += 2) {
      x[count++] = sign * edges[i];
      x[count++] = nextafterf(sign * edges[i], INFINITY);
      x[count++] = nextafterf(sign * edges[i], -INFINITY);
    }
  for (; count < N; count++) x[count] = (float)(count - N / 2) / (N / 40);
  compare(ctx, code, x, N, what);
}

// ---- pow ----

static const double pow_units = 0.52;

static void compare_pow(canvas_context *ctx, const canvas_code *code, const float *x,
                        const float *y, const char *what) {
  static float z[N];
  CHECK_INT(canvas_code_call(ctx, code, (const void *[]){x, y}, (void *[]){z}), CANVAS_OK, what);
  for (int i = 0; i < N; i++) {
    double exact = pow(x[i], y[i]), units = units_off(z[i], exact);
    if (units > pow_units)
      fail_msg("pow(%a, %a) is %a, %.3g units from %a, in vectors of %s", x[i], y[i], z[i], units,
               exact, what);
  }
}

// Each with each other, both signs, and their neighbours.
static void compare_pow_edges(canvas_context *ctx, const canvas_code *code, const char *what) {
  static const float edges[] = {0,        0x1p-149f, 0x1p-126f, 0x1p-24f,
                                0.25f,    1.0f / 3,  0.5f,      0.7071f,
                                1,        1.5f,      2,         3,
                                5,        10,        127,       128,
                                149,      150,       0x1p23f,   0x1.000002p23f,
                                0x1p24f,  0x1p31f,   0x1p62f,   0x1.fffffep127f,
                                INFINITY, NAN};
  enum { EDGES = sizeof edges / sizeof *edges };
  static float values[6 * EDGES], x[N], y[N];
  int count = 0, at = 0;
  for (int i = 0; i < EDGES; i++)
    for (int sign = -1; sign <= 1; sign += 2) {
      values[count++] = sign * edges[i];
      values[count++] = nextafterf(sign * edges[i], INFINITY);
      values[count++] = nextafterf(sign * edges[i], -INFINITY);
    }
  for (int i = 0; i < count * count; i++) {
    x[at] = values[i / count];
    y[at++] = values[i % count];
    if (at < N && i + 1 < count * count) continue;
    for (; at < N; at++) x[at] = y[at] = 1;
    compare_pow(ctx, code, x, y, what);
    at = 0;
  }
}

static uint32_t next_bits(uint64_t *state) {
  *state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
  return (uint32_t)(*state >> 32);
}

// Any bits; then such that the result is a number, most often.
static void compare_pow_random(canvas_context *ctx, const canvas_code *code, int rounds,
                               const char *what) {
  static float x[N], y[N];
  uint64_t state = 1;
  for (int round = 0; round < rounds; round++) {
    for (int i = 0; i < N; i++) {
      uint32_t a = next_bits(&state), b = next_bits(&state);
      memcpy(&x[i], &a, sizeof a);
      memcpy(&y[i], &b, sizeof b);
      if (round % 4 == 0 || !(fabsf(x[i]) > 0)) continue;
      y[i] = ((float)b * 0x1p-31f - 1) * 160 / (fabsf(log2f(fabsf(x[i]))) + 1e-3f);
      if (round % 4 == 1) y[i] = rintf(y[i]);
      if (round % 4 == 2) x[i] = 1 + (float)a * 0x1p-34f;
      if (round % 4 > 1) x[i] = fabsf(x[i]);
    }
    compare_pow(ctx, code, x, y, what);
  }
}

static void compare_pow_at(canvas_context *ctx, int vector_bytes, const char *what) {
  char text[256];
  snprintf(text, sizeof text,
           "canvas 1\nprogram powers\nin X f32 [i:%d]\nin Y f32 [i:%d]\nZ[i:%d] = pow(X[i], Y[i])\n"
           "out Z\n",
           N, N, N);
  canvas_code *code = compile_text(ctx, text, vector_bytes, "POW");
  compare_pow_edges(ctx, code, what);
  compare_pow_random(ctx, code, getenv("CANVAS_TEST_ALL") ? 2000 : 8, what);
  canvas_code_close(code);
}

// ---- all of them ----

static void compare_lengths(void) {
  static const int vector_bytes[] = {16, 32, 64};
  canvas_context *ctx = canvas_context_new();
  CHECK_ROWS (vector_bytes, bytes) {
    char what[32];
    snprintf(what, sizeof what, "%d bytes", *bytes);
    canvas_code *code = compile(ctx, *bytes);
    compare_edges(ctx, code, what);
    compare_all(ctx, code, getenv("CANVAS_TEST_ALL") ? 61 : 40009, what);
    canvas_code_close(code);
    compare_pow_at(ctx, *bytes, what);
  }
  canvas_context_free(ctx);
}

static void as_libm_has_them(void **state) {
  unsetenv("CANVAS_CC");
  compare_lengths();
}

static void without_fused_multiply_add(void **state) {
  setenv("CANVAS_CC", "cc -ffp-contract=off", 1);
  compare_lengths();
}

static void of_the_other_compiler(void **state) {
  if (!getenv("CANVAS_TEST_ALL") || system("clang --version >/dev/null 2>&1")) skip();
  setenv("CANVAS_CC", "clang", 1);
  compare_lengths();
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(as_libm_has_them),
                                     cmocka_unit_test(without_fused_multiply_add),
                                     cmocka_unit_test(of_the_other_compiler)};
  return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
