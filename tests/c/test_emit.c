// Emitted C against the interpreter: many functions are written, compiled by one run of the compiler
// that this test was compiled with (sanitized if it is), loaded, and each is called in a child on
// seeded random inputs. What it may differ by is bounded by src/run/rounding.h, element by element.
//
// CANVAS_TEST_ALL=1: more sampled kernels and more schedules.
#define _DEFAULT_SOURCE  // MAP_ANONYMOUS
#include "machines.h"
#include "check.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "emit_tree.h"
#include "program/interpret.h"
#include "rewrite/program_edit.h"
#include "operator_calls.h"
#include "random_edit.h"
#include "random_program.h"
#include "row_programs.h"
#include "run/rounding.h"
#include "sanitized.h"
#include "autoschedule/default.h"
#include "edit/schedule_follow.h"

static canvas_context ctx;

#if defined(__clang__)
#define COMPILER "clang"
#else
// gcc takes a vector of 2 doubles that is filled lane by lane for one that may be uninitialized, and with -O1 one of 4
// numbers under conditions for one that is. What is read is checked where tests are sanitized.
#define COMPILER "gcc -Wno-maybe-uninitialized -Wno-uninitialized"
#endif
#if SANITIZED
#define SANITIZE "-g -fsanitize=address,undefined -fno-sanitize-recover=all"
#else
#define SANITIZE ""
#endif
#define FLAGS "-std=gnu11 -Wall -Wextra -Werror -shared -fPIC " SANITIZE

// The second compiler of the same texts: half of the random ones.
#if defined(__clang__)
enum { SHARE = 2 };
#else
enum { SHARE = 1 };
#endif

#if SANITIZED || defined(__clang__)
#define THREADS ""
#else
#define THREADS " -fopenmp"
#endif

static bool all(void) {
  return getenv("CANVAS_TEST_ALL") != NULL;
}

// ---- batches ----

enum { BATCH = 64, POINTERS = 64 };

struct candidate {
  struct program *p;
  struct program *meant;  // what is compared with, of the same inputs and outputs; NULL: p
  struct schedule *s;
  struct loop_tree *tree;
  char name[24];
  char label[48];  // what a failure is told of
};

struct batch {
  struct candidate list[BATCH];
  int count;
  struct buf text;
  int done, rejected;   // over all flushes
  const char *options;  // of flushes where it is full
};

static void batch_flush(struct batch *b, const char *options);

static struct program *parsed(const char *text) {
  struct program *p;
  CHECK_INT(program_parse(&ctx, text, strlen(text), &p), CANVAS_OK, ctx.message);
  return p;
}

// Input 1 has an infinity of either sign and a nan.
static bool not_finite;

// Of the machine that schedules are bound for.
static int vector_bytes = 64, registers = 32;

static struct program *copied(const struct program *p) {
  struct buf text = {0};
  program_print(p, &text);
  struct program *copy = parsed(text.text);
  buf_free(&text);
  return copy;
}

// Takes the schedule; the programs are copied. False if the schedule is rejected.
enum { LONG_TEXT = 24000 };  // bytes of C of one candidate, in the core tests

static bool batch_add_meant(struct batch *b, const struct program *p, const struct program *meant,
                            struct schedule *s, const char *label) {
  struct candidate *c = &b->list[b->count];
  struct machine machine = machine_avx512;
  machine.vector_bytes = vector_bytes;
  machine.registers = registers;
  *c = (struct candidate){.p = copied(p), .s = s};
  snprintf(c->label, sizeof c->label, "%s", label);
  if (loop_tree_bind(&ctx, c->p, s, &machine, &c->tree) != CANVAS_OK) {
    program_free(c->p);
    schedule_free(s);
    b->rejected++;
    return false;
  }
  snprintf(c->name, sizeof c->name, "f%d", b->done + b->count);
  struct emit_options options = {.function = c->name};
  size_t before = b->text.length;
  CHECK_INT(emit_tree(&ctx, c->tree, &options, &b->text), CANVAS_OK, ctx.message);
  if (!all() && b->text.length - before > LONG_TEXT) {  // takes the compiler seconds
    b->text.length = before;
    b->text.text[before] = '\0';
    loop_tree_free(c->tree);
    program_free(c->p);
    schedule_free(s);
    return true;
  }
  if (meant) c->meant = copied(meant);
  if (++b->count == BATCH) batch_flush(b, b->options ? b->options : "-O1");
  return true;
}

static bool batch_add(struct batch *b, const struct program *p, struct schedule *s,
                      const char *label) {
  return batch_add_meant(b, p, NULL, s, label);
}

// ---- inputs ----

static size_t element_size(enum program_dtype dtype) {
  return dtype == PROGRAM_F64 ? 8 : dtype == PROGRAM_BF16 ? 2 : 4;
}

static uint16_t to_bf16(double value) {
  float f = (float)value;
  uint32_t bits;
  memcpy(&bits, &f, 4);
  return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

static double from_bf16(uint16_t half) {
  uint32_t bits = (uint32_t)half << 16;
  float f;
  memcpy(&f, &bits, 4);
  return f;
}

static int compare_doubles(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

// Values that the type holds exactly: random normals, or integers of the range that an i32 declares.
static double *fill(const struct program *p, int tensor, uint64_t seed) {
  const struct program_tensor *t = &p->tensors.data[tensor];
  int64_t n = program_elements(p, tensor);
  double *x = mem_alloc((size_t)n * sizeof *x);
  struct random random;
  random_open(&random, seed, RANDOM_TEST, (uint64_t)tensor);
  for (int64_t i = 0; i < n; i++) {
    if (t->dtype == PROGRAM_I32)
      x[i] =
          (double)(t->least + (int64_t)(random_u64(&random) % (uint64_t)(t->most - t->least + 1)));
    else if (t->dtype == PROGRAM_BF16)
      x[i] = from_bf16(to_bf16(random_normal(&random)));
    else
      x[i] = t->dtype == PROGRAM_F64 ? random_normal(&random) : (float)random_normal(&random);
  }
  if (!t->rising) return x;
  int64_t row = t->axes[t->rank - 1].size;
  for (int64_t i = 0; i < n; i += row) {
    qsort(x + i, (size_t)row, sizeof *x, compare_doubles);
    x[i] = (double)t->least;
    x[i + row - 1] = (double)t->most;
  }
  return x;
}

static void store(enum program_dtype dtype, const double *from, int64_t n, void *to) {
  for (int64_t i = 0; i < n; i++) switch (dtype) {
      case PROGRAM_F32: ((float *)to)[i] = (float)from[i]; break;
      case PROGRAM_F64: ((double *)to)[i] = from[i]; break;
      case PROGRAM_BF16: ((uint16_t *)to)[i] = to_bf16(from[i]); break;
      default: ((int32_t *)to)[i] = (int32_t)from[i];
    }
}

static double element(enum program_dtype dtype, const void *from, int64_t i) {
  switch (dtype) {
    case PROGRAM_F32: return ((const float *)from)[i];
    case PROGRAM_F64: return ((const double *)from)[i];
    default: return from_bf16(((const uint16_t *)from)[i]);
  }
}

// ---- one candidate in a child ----

typedef int entry(void *const *);

static void show(const struct candidate *c, const char *what) {
  struct buf text = {0};
  program_print(c->p, &text);
  schedule_print(c->s, &text);
  struct buf code = {0};
  struct emit_options options = {.function = c->name};
  if (emit_tree(&ctx, c->tree, &options, &code) == CANVAS_OK && getenv("SHOW_C"))
    buf_puts(&text, code.text);
  print_error("%s: %s\n%s\n", c->label, what, text.text);
  buf_free(&text);
  buf_free(&code);
}

// The outputs are compared in the child: nothing has to come back but a yes.
static bool equals(const struct candidate *c, const double *const *inputs, void *const *arguments) {
  const struct program *p = c->meant ? c->meant : c->p;
  struct rounding bound;
  struct interpreter *in;
  CHECK_INT(rounding_new(&ctx, p, &bound), CANVAS_OK, ctx.message);
  CHECK_INT(interpreter_new(&ctx, bound.program, inputs, NULL, &in), CANVAS_OK, ctx.message);
  for (int i = 0; i < p->outputs.count; i++) {
    int tensor = p->outputs.data[i];
    int64_t n = program_elements(p, tensor);
    for (int64_t j = 0; j < n; j++) {
      double want, error = 0,
                   got = element(p->tensors.data[tensor].dtype, arguments[p->inputs.count + i], j);
      char what[160];
      CHECK_INT(interpreter_elements(in, bound.value[i], 1, &j, &want), CANVAS_OK, ctx.message);
      if (bound.error[i] >= 0)
        CHECK_INT(interpreter_elements(in, bound.error[i], 1, &j, &error), CANVAS_OK, ctx.message);
      // A bound that is no number, of what infinities cancelled in, bounds nothing finite.
      bool unbounded = isnan(error) && isfinite(want) && !isnan(got);
      bool near = fabs(got - want) <= error + ROUNDING_LEAST || unbounded;
      if (got == want || near || (isnan(got) && isnan(want))) continue;
      snprintf(what, sizeof what, "%s[%lld] is %.9g, not %.9g +- %.3g",
               p->tensors.data[tensor].name, (long long)j, got, want, error);
      show(c, what);
      return false;
    }
  }
  interpreter_free(in);
  rounding_free(&bound);
  return true;
}

// Between two pages that cannot be touched, at the one or the other.
static void *between_guards(size_t bytes, bool front) {
  size_t page = (size_t)sysconf(_SC_PAGESIZE), size = (bytes + page - 1) / page * page;
  char *at = mmap(NULL, size + 2 * page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  CHECK(at != MAP_FAILED && !mprotect(at + page, size, PROT_READ | PROT_WRITE), "mmap");
  return at + page + (front ? 0 : size - bytes);
}

// The arguments of a call, inputs filled; no output is a number yet.
static void fill_arguments(const struct program *p, bool front, const double **inputs,
                           void **arguments) {
  for (int i = 0; i < p->inputs.count + p->outputs.count; i++) {
    bool input = i < p->inputs.count;
    int tensor = input ? p->inputs.data[i] : p->outputs.data[i - p->inputs.count];
    enum program_dtype dtype = p->tensors.data[tensor].dtype;
    int64_t n = program_elements(p, tensor);
    size_t bytes = (size_t)n * element_size(dtype);
    arguments[i] = between_guards(bytes, front);
    memset(arguments[i], 0xff, bytes);  // nan
    if (!input) continue;
    double *values = fill(p, tensor, 7);
    if (not_finite && i == 1) {
      values[n / 3] = INFINITY;
      values[n / 2] = -INFINITY;
      values[n - 1] = NAN;
    }
    store(dtype, values, n, arguments[i]);
    inputs[i] = values;
  }
}

static int call(const struct candidate *c, void *library) {
  char name[40];
  const struct program *p = c->p;
  const double *inputs[POINTERS];
  void *arguments[POINTERS];
  snprintf(name, sizeof name, "call_%s", c->name);
  entry *function = (entry *)dlsym(library, name);
  if (!function) return 2;
  fill_arguments(p, true, inputs, arguments);
  if (function(arguments) != 0) return 3;
  fill_arguments(p, false, inputs, arguments);
  if (function(arguments) != 0) return 3;
  return equals(c, inputs, arguments) ? 0 : 4;
}

static void write_callers(const struct batch *b, struct buf *out) {
  for (int i = 0; i < b->count; i++) {
    const struct program *p = b->list[i].p;
    const char *name = b->list[i].name;
    int pointers = p->inputs.count + p->outputs.count;
    buf_printf(out, "\nint call_%s(void *const *a);\nint call_%s(void *const *a) {\n  return %s(",
               name, name, name);
    for (int j = 0; j < pointers; j++) buf_printf(out, "%sa[%d]", j ? ", " : "", j);
    buf_puts(out, ");\n}\n");
  }
}

static void batch_compile(struct batch *b, const char *folder, const char *options) {
  char path[200], command[800];
  write_callers(b, &b->text);
  snprintf(path, sizeof path, "%s/batch.c", folder);
  FILE *file = fopen(path, "w");
  CHECK(file && fwrite(b->text.text, 1, b->text.length, file) == b->text.length, path);
  fclose(file);
  snprintf(command, sizeof command, COMPILER " " FLAGS " %s -o %s/batch.so %s/batch.c -lm",
           SANITIZED ? "-O0" : options, folder, folder);
  CHECK_INT(system(command), 0, command);
}

static void batch_flush(struct batch *b, const char *options) {
  char folder[64], path[200];
  if (!b->count) return;
  CHECK(temporary_folder(folder, sizeof folder), "a temporary folder");
  batch_compile(b, folder, options);
  snprintf(path, sizeof path, "%s/batch.so", folder);
  void *library = dlopen(path, RTLD_NOW);
  CHECK(library, dlerror());
  for (int i = 0; i < b->count; i++) {
    struct candidate *c = &b->list[i];
    int status = 0;
    fflush(NULL);
    pid_t child = fork();
    CHECK(child >= 0, "fork");
    if (!child) {
      alarm(60);
      _exit(call(c, library));
    }
    CHECK_INT(waitpid(child, &status, 0), child, c->label);
    if (status) {
      show(c, WIFSIGNALED(status) ? "it crashed" : "it is wrong");
      fail_msg("%s, see %s", c->label, path);
    }
    loop_tree_free(c->tree);
    schedule_free(c->s);
    program_free(c->p);
    program_free(c->meant);
  }
  dlclose(library);
  unlink(path);
  snprintf(path, sizeof path, "%s/batch.c", folder);
  unlink(path);
  rmdir(folder);
  buf_free(&b->text);
  b->done += b->count;
  b->count = 0;
}

// ---- programs ----

// The kernels of examples/, small.
static const struct {
  const char *file, *at;
} kernels[] = {
    {"convolution", "C=8,H=6,W=5"},         {"depthwise_separable", "C=8,H=6,W=5"},
    {"figure6", "C=8,H=6,W=5,G=2"},         {"figure8_shift", "C=8,H=6,W=5,G=2"},
    {"figure8_window", "C=8,H=6,W=5,G=2"},  {"figure9_a", "C=8,H=6,W=5,G=2"},
    {"figure9_b", "C=8,H=6,W=5,G=2,x0=4"},  {"grouped", "C=8,H=6,W=5,G=2"},
    {"involution", "C=8,H=6,W=5,G=2,x0=4"}, {"pointwise", "C=8,H=6,W=5"},
    {"residual", "C=8,H=6,W=5,x0=4"},       {"spatially_separable", "C=8,H=6,W=5,x0=4"},
    {"squeeze_excite", "C=8,H=6,W=5,x0=4"},
};

static char *read_text(const char *path) {
  static char text[1 << 16];
  FILE *file = fopen(path, "r");
  CHECK(file, path);
  size_t length = fread(text, 1, sizeof text - 1, file);
  text[length] = '\0';
  fclose(file);
  return text;
}

static struct program *lowered(canvas_kernel *kernel, const char *at) {
  canvas_pack *pack;
  canvas_program *program;
  CHECK_INT(canvas_kernel_bind(&ctx, kernel, at, strlen(at), &pack), CANVAS_OK, ctx.message);
  CHECK_INT(canvas_pack_lower(&ctx, pack, 0, 2, &program), CANVAS_OK, ctx.message);
  canvas_pack_free(pack);
  return (struct program *)program;
}

static struct program *example(const char *file, const char *at) {
  char path[400];
  canvas_kernel *kernel;
  snprintf(path, sizeof path, "%s/examples/kernels/%s.kernel", CANVAS_SOURCE, file);
  const char *text = read_text(path);
  CHECK_INT(canvas_kernel_parse(&ctx, text, strlen(text), &kernel), CANVAS_OK, ctx.message);
  struct program *p = lowered(kernel, at);
  canvas_kernel_free(kernel);
  return p;
}

static void add_defaults(struct batch *b, const struct program *p, const char *label) {
  const struct machine machine = machine_avx512;
  CHECK(batch_add(b, p, schedule_default(p, false, &machine_avx512), label), ctx.message);
  CHECK(batch_add(b, p, schedule_default(p, true, &machine), label), ctx.message);
}

static void examples(void **state) {
  struct batch b = {.options = "-O2 -march=native"};
  CHECK_ROWS (kernels, k) {
    struct program *p = example(k->file, k->at);
    add_defaults(&b, p, k->file);
    program_free(p);
  }
  batch_flush(&b, b.options);
}

// ---- schedules by hand ----

#define PRODUCT                                                               \
  "canvas 1\nprogram product\nin A f32 [i:24, k:20]\nin B f32 [k:20, j:40]\n" \
  "P[i:24, j:40] = A[i, k] * B[k, j] // sum k:20\nY[i:24, j:40] = max(P[i, j], 0)\nout Y\n"

// Each row: what the emitter has a way of its own for.
static const struct {
  const char *what, *program, *schedule;
} rows[] = {
    {"a tile of registers", PRODUCT,
     "io, jo => \n    k, ii:6:unroll, ji:16:vec:mask =>\n"
     "        @P = {io, ii}/i, {jo, ji}/j // k\n"
     "    ii:unroll, ji:vec =>\n        @Y = {io, ii}/i, {jo, ji}/j\n"},
    {"rows and columns as one loop", PRODUCT,
     "{io, jo}:fold =>\n    k, ii:5:unroll:mask, ji:8:vec =>\n"
     "        @P = {io, ii}/i, {jo, ji}/j // k\n"
     "    ii:unroll, ji:vec =>\n        @Y = {io, ii}/i, {jo, ji}/j\n"},
    {"a rest of its own", PRODUCT,
     "io:peel, jo:peel =>\n    k, ii:7:unroll, ji:16:vec =>\n"
     "        @P = {io, ii}/i, {jo, ji}/j // k\n"
     "    ii:unroll, ji:vec =>\n        @Y = {io, ii}/i, {jo, ji}/j\n"},
    {"a heap for each thread",
     "program sums\nin A f32 [i:6, j:20000]\nB[i:6, j:20000] = A[i, j] * 2\n"
     "Y[i:6] = B[i, j] // max j:20000\nout Y\n",
     "i:para =>\n    jo, ji:16:vec =>\n        @B = i, {jo, ji}/j\n    j =>\n        @Y = i // "
     "j\n"},
    {"an edge one lane before a vector's end",
     "program edge\nin X f32 [i:23, h:3]\nY[h:3, i:23] = X[i, h] * 2\nout Y\n",
     "io, h, ii:8:vec:mask =>\n    @Y = h, {io, ii}/i\n"},
    {"vectors of several registers, and the least",
     "program least\nin X f32 [k:5, i:48]\nY[i:48] = X[k, i] // min k:5\nout Y\n",
     "k, i:vec =>\n    @Y = i // k\n"},
    {"a window across two registers",
     "program window\nin X f32 [i:32]\nP[i:32] = X[i] * 2\n"
     "Y[i:16] = P[i+k] // sum k:17\nout Y\n",
     "p:vec =>\n    @P = {p}/i\nk:unroll, i:vec =>\n    @Y = i // k\n"},
    {"ahead inside a vector", PRODUCT,
     "k, j:vec:mask, io:3:pf(1), ii:8:pf(2) => @P = {io, ii}/i, j // k\n"
     "jo, ji:32:vec:mask, io:3:pf(1), ii:8:pf(2) => @Y = {io, ii}/i, {jo, ji}/j\n"},
    {"ahead in pieces", PRODUCT,
     "io:2:pf(1), jo, k, ji:16:vec:mask, ii:unroll => @P = {io, ii}/i, {jo, ji}/j // k\n"
     "jx:pf(3), iy:4:peel, ix:pf(1), jy:8:vec:mask => @Y = {ix, iy}/i, {jx, jy}/j\n"},
    {"ahead of a group", PRODUCT,
     "{i, j}:para:pf(4), k => @P = i, j // k\n{i, j}:fold:pf(2) => @Y = i, j\n"},
    {"a vector of rows and columns", PRODUCT,
     "k, {i, j}:fold:vec => @P = i, j // k\n{i, j}:fold:vec => @Y = i, j\n"},
    {"a vector longer than its axis",
     "program wider\nin X f32 [h:7, w:15]\nP[h:7, w:15] = X[h, w] * 2\n"
     "Y[h:7, w:15] = P[h, 14-w] - 1\nout Y\n",
     "h, yw:16:vec:mask => @P = h, yw/w\nh, w:64:vec:mask => @Y = h, w\n"},
    {"lanes along a reduction",
     "program across\nin X f32 [i:6, k:64]\n"
     "A[i:6] = X[i, k] // sum k:64\nB[i:6] = X[i, k] // max k:64\nC[i:6] = X[i, k] // min k:64\n"
     "D[i:6] = X[i, k] // prod k:64\nE[i:6] = X[i, k]*real(k) // mean k:64\n"
     "out A\nout B\nout C\nout D\nout E\n",
     "i, k:vec => @A = i // k\ni, ko, ki:16:vec => @B = i // {ko, ki}/k\n"
     "kv, i:unroll, kw:32:vec => @C = i // {kv, kw}/k\ni, {kx, ky:8}:fold:vec => @D = i // {kx, "
     "ky}/k\nk:vec, i:unroll => @E = i // k\n"},
    {"lanes along a reduction, of other types and under a condition",
     "program across\nin X f64 [i:6, k:24]\nin Z bf16 [i:6, k:23]\n"
     "A f64 [i:6] = X[i, k] // max k:24\nB bf16 [i:6] = Z[i, k] // sum k:23\n"
     "P f64 [i:6, l:8] = X[i, k*8+l] // sum k:3\nC f64 [i:6] = P[i, l] // sum l:8\n"
     "D[i:6] = if Z[i, k] > 0 then Z[i, k] else 1 // min k:23\nE[i:6] = 2 // sum k:23\n"
     "out A\nout B\nout C\nout D\nout E\n",
     "i, k:vec => @A = i // k\ni, ko, ki:16:vec:mask => @B = i // {ko, ki}/k\n"
     "i =>\n  kp, l:vec => @P = i, l // kp/k\n  l:vec => @C = i // l\n"
     "i, kd:32:vec:mask => @D = i // kd/k\ni, ko, ki:16:vec:mask => @E = i // {ko, ki}/k\n"},
    {"the rest of a vector along a reduction, where a lane that is not there would change it",
     "program rest\nin X f32 [i:6, k:29]\nin Z f64 [i:6, k:46]\nin H bf16 [i:6, k:31]\n"
     "in b i32 [k:29] 0..29\n"
     "A[i:6] = 1 / X[i, k] // sum k:29\nB[i:6] = X[i, k] - 3 // max k:29\n"
     "C[i:6] = X[i, k] + 3 // min k:29\nD[i:6] = X[i, k] / X[i, k] + 0.5 // prod k:29\n"
     "E f64 [i:6] = exp(Z[i, k]) // sum k:46\nF[i:6] = X[i, b[k]] * X[i, k] + 1 // sum k:27\n"
     "G[i:6] = X[i, k] + real(k) // mean k:18\nU bf16 [i:6] = H[i, k] + 1 // sum k:31\n"
     "out A\nout B\nout C\nout D\nout E\nout F\nout G\nout U\n",
     "i, ao, ai:16:peel:vec => @A = i // {ao, ai}/k\n"
     "i, bo, bi:32:peel:vec => @B = i // {bo, bi}/k\n"
     "i, co, ci:8:peel:vec => @C = i // {co, ci}/k\ni, dx, dk:16:peel:vec => @D = i // {dx, dk}/k\n"
     "i, eo, ei:16:peel:vec => @E = i // {eo, ei}/k\n"
     "i, fo, fi:16:peel:vec => @F = i // {fo, fi}/k\n"
     "go, gi:16:peel:vec, i:unroll => @G = i // {go, gi}/k\n"
     "i, uo, ui:16:peel:vec => @U = i // {uo, ui}/k\n"},
    {"rounding to bf16", "program halves\nin X f32 [i:64]\nY bf16 [i:64] = X[i]\nout Y\n",
     "i:vec =>\n    @Y = i\n"},
    {"a vector of one number, rounded to bf16",
     "program halves\nin X f32 [i:17]\nY bf16 [i:48] = if i < 17 then X[i] else -2\nout Y\n",
     "io, ii:16:vec =>\n    @Y = {io, ii}/i\n"},
    {"clamps of single numbers, and of nan",
     "program clamps\nin X f32 [i:64]\nA[i:64] = min(max(X[i], -0.25), 0.5)\n"
     "B[i:64] = min(max(X[i], 0.5), -0.25)\nC[i:64] = min(max(log(X[i]), -0.5), 0)\n"
     "out A\nout B\nout C\n",
     "i =>\n    @A = i\ni =>\n    @B = i\ni =>\n    @C = i\n"},
    {"extrema of vectors: nan on either side, of numbers on either side, of two lanes, of fp64",
     "program extrema\nin X f32 [i:64]\nA[i:64] = max(log(X[i]), 0.25)\nB[i:64] = max(0.25, "
     "log(X[i]))\nC[i:64] = min(log(X[i]), -0.5)\nD[i:64] = max(log(X[i]), log(-X[i]))\n"
     "E[i:64] = min(log(-X[i]), log(X[i]))\nF f64 [i:64] = max(log(X[i]), min(X[i], 0.5))\n"
     "G[i:64] = min(max(log(X[i]), log(-X[i])), X[i])\nout A\nout B\nout C\nout D\nout E\n"
     "out F\nout G\n",
     "i:vec =>\n    @A = i\n    @B = i\n    @C = i\n    @D = i\n    @E = i\n    @F = i\n"
     "io, ii:2:vec =>\n    @G = {io, ii}/i\n"},
    {"words of C",
     "program main\nin int f32 [i:24, k:20]\nin for bf16 [k:20, j:40]\n"
     "double[i:24, j:40] = int[i, k] * for[k, j] // sum k:20\n"
     "x_ bf16 [i:24, j:40] = max(double[i, j], 0)\nout x_\n",
     "{long, volatile}:fold =>\n    k, ii:6:unroll, ji:16:vec:mask =>\n"
     "        @double = {long, ii}/i, {volatile, ji}/j // k\n"
     "    ii:unroll, ji:vec =>\n        @x_ = {long, ii}/i, {volatile, ji}/j\n"},
    {"a mean of as many as the data say",
     "program means\nin ptr i32 [r:5] 0..30 rising\nin X f32 [k:29, j:8]\n"
     "Y[r:4, j:8] = 1 + X[k, j] // mean k:ptr[r]..ptr[r+1]\nout Y\n",
     "r, k:dyn(r), j:vec =>\n    @Y = r, j // k\n"},
    {"means of as many as axes that they sum over say, whole and in parts",
     "program triangles\nin ptr i32 [r:8] 0..30 rising\nin X f32 [k:29, j:8]\n"
     "Y[j:8] = X[k, j] // mean l:2, r:7, k:ptr[r]..ptr[r+1]\n"
     "Z[i:5, j:8] = X[k, j] * X[m, j] // mean l:3, k:0..i+l+1, q:2, m:k..8\nout Y\nout Z\n",
     "l, ro, ri:3:mask, k:dyn(r), j:vec =>\n    @Y = j // l, {ro, ri}/r, k\n"
     "lz:unroll, i, kz:dyn(l), q, m:dyn(k), j:vec =>\n    @Z = i, j // lz/l, kz/k, q, m\n"},
    {"one iteration of a fused group, unrolled: what it declares is read after it",
     "program once\nin X f32 [r:6]\nS[x:1] = X[r] // sum r:6\nY[] = S[r] // max r:1\nout Y\n",
     "{x, u:1}:fold:unroll, {r, ri:2}:fold:unroll =>\n    @S = {x, u}/x // {r, ri}/r\n"
     "k:peel =>\n    @Y = // {k}/r\n"},
    {"indices past 32 bits",
     "program wide\nin a i32 [i:64] 0..1000000\nin b i32 [i:64] 0..2147483647\n"
     "in c i32 [i:64] -2147483648..2147483647\nin X f32 [x:10]\n"
     "Y[i:64] = X[a[i]*b[i]%10] + X[(b[i]+b[i]+c[i])%10] + X[-c[i]/3%10]\n"
     "Z[i:64] = real(b[i]+a[i]) + (if b[i]+a[i] < 3*a[i] then 1 else X[(if a[i] < 5 then b[i] "
     "else b[i])*a[i]%10]) + real(b[i]%1000000*(a[i]%9999)) + real(min(b[i]+1, a[i]+b[i]))\n"
     "out Y\nout Z\n",
     "io, ii:8:vec =>\n    @Y = {io, ii}/i\n    @Z = {io, ii}/i\n"},
    {"loads under conditions that prove nothing",
     "program guarded\nin X f32 [x:32]\nin a i32 [i:32] -40..40\nin b i32 [i:32] 0..32\n"
     "Y[i:32] = if X[i] > 100 then X[i*20] else 1\n"
     "V[i:32] = if X[i] > 100 then X[i+7] else X[i]\n"
     "Z[i:32] = if (if 0 <= a[i] && a[i] < 30 then 1 else 0) == 1 then X[a[i]+2] else X[b[i]]\n"
     "U[i:32] = if X[i] > 100 then real(a[i*30]) + X[a[i*9]] else 2\n"
     "out Y\nout V\nout Z\nout U\n",
     "io, ii:8:vec =>\n    @Y = {io, ii}/i\n    @V = {io, ii}/i\n    @Z = {io, ii}/i\n"
     "    @U = {io, ii}/i\n"},
    {"a remainder that comes round once, which clang 14 does not see",
     "program round\nin X f32 [x:64]\nin Z f32 [x:64]\nY[a:17] = X[a*3%32] + X[a+11]\n"
     "W[b:2, a:48] = X[(a*5+b)%64] + Z[a+b]\nV[a:33] = (if a*6%64 < 9 then 1 else Z[a]) * "
     "X[a*3%64]\n"
     "out Y\nout W\nout V\n",
     "a =>\n    @Y = a\nb, aw =>\n    @W = b, aw/a\nao, ai:33 =>\n    @V = {ao, ai}/a\n"},
    {"lanes past 32 bits",
     "program lanes\nin X f32 [x:10]\nY[i:16] = X[i*700000000%7] + real(i*400000000)\nout Y\n",
     "i:16:vec =>\n    @Y = i\n"},
};

static struct schedule *scheduled(const char *text) {
  struct schedule *s;
  CHECK_INT(schedule_parse(&ctx, text, strlen(text), &s), CANVAS_OK, ctx.message);
  return s;
}

static void constructs(void **state) {
  struct batch b = {0};
  CHECK_ROWS (rows, row) {
    struct program *p = parsed(row->program);
    CHECK(batch_add(&b, p, scheduled(row->schedule), row->what), ctx.message);
    program_free(p);
  }
  batch_flush(&b, "-O2" THREADS);
}

// ---- lanes that are permuted ----

// Blocks of one and two vectors, vectors that overlap, a few places; of which none leaves its tensor.
static const struct {
  const char *program, *schedule;
} permuted[] = {
    {"program blocks\nin X f32 [w:7, c:16]\nin W f32 [o:8, k:4]\n"
     "Y[w:7, o:8] = X[w, o/2*4+k] * W[o, k] // sum k:4\nout Y\n",
     "w, k:unroll, o:vec =>\n    @Y = w, o // k\n"},
    {"program overlap\nin X f32 [w:7, c:16]\nin W f32 [o:8, k:4]\n"
     "Y[w:7, o:8] = X[w, o/2*4+k] * W[o, k] // sum k:4\nout Y\n",
     "w, k, o:vec =>\n    @Y = w, o // k\n"},
    {"program places\nin X f32 [w:40]\nY[w:5, o:32] = X[w + o/8*9 + o/16*7]\nout Y\n",
     "w, o:vec =>\n    @Y = w, o\n"},
    {"program thirds\nin X f32 [w:30]\nY[w:5, o:16] = X[w + o/6*11]\nout Y\n",
     "w, o:vec =>\n    @Y = w, o\n"},
    {"program apart\nin X f32 [i:65]\nY[i:32] = X[2*i+1] + X[2*i] + X[64-2*i]\nout Y\n",
     "i:vec =>\n    @Y = i\n"},
    {"program backward\nin X f32 [w:5, o:32]\nY[w:5, o:32] = X[w, 31-o]\nout Y\n",
     "w, o:vec =>\n    @Y = w, o\n"},
    {"program twelve\nin X f32 [w:5, c:32]\nin W f32 [o:48, k:8]\n"
     "Y[w:5, o:48] = X[w, o/12*8+k] * W[o, k] // sum k:8\nout Y\n",
     "w, k:unroll, o:vec =>\n    @Y = w, o // k\n"},
    {"program wide\nin X f64 [w:7, c:16]\nY f64 [w:7, o:16] = X[w, o/2*2] + X[w, o%4*3]\nout Y\n",
     "w, o:vec =>\n    @Y = w, o\n"},
    {"program turned\nin X f32 [w:4, c:16]\nY[w:4, o:16] = X[w, o%4*4+o/4]\nout Y\n",
     "w, o:vec =>\n    @Y = w, o\n"},
    {"program short\nin X f32 [w:4, c:22]\nY[w:4, o:11] = X[w, 2*o] + X[w, o/3]\nout Y\n",
     "w, o:16:vec:mask =>\n    @Y = w, o\n"},
    {"program halves\nin X bf16 [w:4, c:16]\nY[w:4, o:16] = X[w, o/2*2]\nout Y\n",
     "w, o:vec =>\n    @Y = w, o\n"},
};

static void permuted_lanes(void **state) {
  struct batch b = {.options = "-O2 -march=native"};
  CHECK_ROWS (permuted, row)
    for (int bytes = 16; bytes <= 64; bytes *= 2) {
      struct program *p = parsed(row->program);
      vector_bytes = bytes;
      CHECK(batch_add(&b, p, scheduled(row->schedule), p->name), ctx.message);
      program_free(p);
    }
  vector_bytes = 64;
  batch_flush(&b, b.options);
}

// ---- every annotation beside every other ----

#define NARROW                                                  \
  "program narrow\nin A f32 [i:6, k:5]\nin B f32 [k:5, j:12]\n" \
  "P[i:6, j:12] = A[i, k] * B[k, j] // sum k:5\nY[i:6, j:12] = max(P[i, j], 0)\nout Y\n"
#define HALVES                                                                                   \
  "program halves\nin A bf16 [i:6, k:5]\nin B f32 [k:5, j:12]\n"                                 \
  "P f64 [i:6, j:12] = A[i, k] * B[k, 11-j] // mean k:5\nY bf16 [i:6, j:12] = P[i, j] + 1\nout " \
  "Y\n"
static const char *const annotated[] = {NARROW, HALVES};

// Each * is a place for annotations.
static const char *const nests[] = {
    "io*, ii:4*, j*, k* =>\n    @P = {io, ii}/i, j // k\ni*, j* =>\n    @Y = i, j\n",
    "k:5*, jo*, ji:16*, ii:4*, io:2* =>\n    @P = {io, ii}/i, {jo, ji}/j // k\n"
    "j*, i* =>\n    @Y = i, j\n",
    "j*, io* =>\n    k*, ii:4* =>\n        @P = {io, ii}/i, j // k\n"
    "    ii* =>\n        @Y = {io, ii}/i, j\n",
    "io*, jo* =>\n    k:5*, ii:4*, ji:8* =>\n        @P = {io, ii}/i, {jo, ji}/j // k\n"
    "    ii*, ji* =>\n        @Y = {io, ii}/i, {jo, ji}/j\n",
    "{i, j}:fold*, k:5* =>\n    @P = i, j // k\n{j, i}:fold* =>\n    @Y = i, j\n",
    "k:5*, {io, j}:para*, ii:4* =>\n    @P = {io, ii}/i, j // k\n{j, i}:para* =>\n    @Y = i, j\n",
    "{io, jo}:fold* =>\n    ko*, ki:3*, {ii:4, ji:8}:fold* =>\n"
    "        @P = {io, ii}/i, {jo, ji}/j // {ko, ki}/k\n"
    "    {ii, ji}:fold* =>\n        @Y = {io, ii}/i, {jo, ji}/j\n",
    "io* =>\n    {ii:4, j}:para*, k* =>\n        @P = {io, ii}/i, j // k\n"
    "    {ii, j}:fold:para* =>\n        @Y = {io, ii}/i, j\n",
};

// No annotation, one, or two of them.
static const char *const annotations[] = {":para", ":vec", ":unroll", ":pf(2)", ":mask", ":peel"};
enum { ALONE = sizeof annotations / sizeof *annotations, BESIDE = 1 + ALONE + ALONE * ALONE };

static void put_annotations(int which, struct buf *out) {
  if (which == 0) return;
  if (which <= ALONE) {
    buf_puts(out, annotations[which - 1]);
    return;
  }
  which -= 1 + ALONE;
  if (which / ALONE < which % ALONE)
    buf_printf(out, "%s%s", annotations[which / ALONE], annotations[which % ALONE]);
}

// Up to three places have annotations, all of them 0 .. BESIDE-1, drawn.
static struct schedule *annotated_nest(struct random *r, const char *nest) {
  int places = 0, at = 0, which[16] = {0};
  for (const char *c = nest; *c; c++) places += *c == '*';
  for (int i = 0; i < 3; i++) {
    int place = edit_below(r, places);
    which[place] = edit_below(r, BESIDE);
  }
  struct buf text = {0};
  struct schedule *s = NULL;
  for (const char *c = nest; *c; c++) {
    if (*c == '*')
      put_annotations(which[at++], &text);
    else
      buf_bytes(&text, c, 1);
  }
  canvas_status status = schedule_parse(&ctx, text.text, text.length, &s);
  buf_free(&text);
  return status == CANVAS_OK ? s : NULL;
}

static void annotations_together(void **state) {
  static const int bytes[] = {64, 16, 32};
  struct batch b = {0};
  struct random r;
  int draws = all() ? 60000 : SANITIZED ? 600 : 1500 / SHARE;
  random_open(&r, 10, RANDOM_TEST, 3);
  for (int i = 0; i < draws; i++) {
    int nest = i % (int)(sizeof nests / sizeof *nests);
    struct schedule *s = annotated_nest(&r, nests[nest]);
    if (!s) continue;
    struct program *p = parsed(annotated[edit_below(&r, 2)]);
    char label[40];
    snprintf(label, sizeof label, "draw %d of nest %d", i, nest);
    vector_bytes = bytes[i / 8 % 3];
    registers = 8 << i / 24 % 3;
    batch_add(&b, p, s, label);
    program_free(p);
  }
  batch_flush(&b, "-O1" THREADS);
  vector_bytes = 64;
  registers = 32;
  print_message("%d accepted, %d rejected\n", b.done, b.rejected);
}

// ---- tiles that do not divide their axes ----

// What lies beyond is computed and never seen, and no load leaves its tensor.
static const char *const ragged[] = {
    "program product\nin A f32 [i:9, k:7]\nin B f32 [k:7, j:19]\n"
    "Y[i:9, j:19] = A[i, k] * B[k, j] // sum k:7\nout Y\n",
    "program mixed\nin A bf16 [i:9, k:7]\nin B f64 [k:7, j:19]\n"
    "Y bf16 [i:9, j:19] = A[i, k] * B[k, 18-j] // mean k:7\nout Y\n",
    "program halves\nin A f32 [i:9, k:7]\nin B bf16 [k:7, j:19]\n"
    "Y bf16 [i:9, j:19] = A[i, k] + B[k, j] // max k:7\nout Y\n",
    "program stride\nin A f32 [k:7, i:20]\nin B f32 [k:7, j:40]\n"
    "Y[i:9, j:19] = A[k, 2*i+1] * B[k, 2*j] + B[k, j+3] // sum k:7\nout Y\n",
    "program table\nin A f32 [n:30, k:7]\nin a i32 [i:9] 0..29\nin b i32 [j:19] 0..29\n"
    "Y[i:9, j:19] = A[a[i], k] * A[b[j], k] + real(a[i]) // sum k:7\nout Y\n",
    "program folded\nin A f32 [i:3, k:7]\nin B f32 [k:7, j:5]\nin C f32 [j:19]\n"
    "Y[i:9, j:19] = A[i/3, k] * B[k, j/4] + C[j] // sum k:7\nout Y\n",
    "program rows\nin A f32 [n:30, k:24]\nin a i32 [i:3] 0..29\nin b i32 [j:5] 0..4\n"
    "Y[i:9, j:19] = A[a[i/3], k] * A[k, b[j/4]+j] // sum k:7\nout Y\n",
    "program border\nin A f32 [i:9, k:7]\nin B f32 [j:19]\n"
    "Y[i:9, j:19] = (if 0 <= i+k-3 && i+k-3 < 9 then A[i+k-3, k] else 1) * "
    "(if 0 <= j+k-3 && j+k-3 < 19 then B[j+k-3] else 2) // sum k:7\nout Y\n",
    "program hidden\nin A f32 [i:9, k:7]\nin B f32 [j:19, k:7]\n"
    "Y[i:9, j:19] = (if A[i, k] > 0 then A[i, 6-k] else B[j, k]) / exp(B[j, 6-k]) // sum k:7\n"
    "out Y\n",
    "program across\nin A f32 [i:9, k:7]\nin B f32 [k:7, j:19]\n"
    "Y[j:19, i:9] = A[i, k] * B[k, j] // sum k:7\nout Y\n",
};

// # is a number, % a larger one, ~ what becomes of the last tile.
static const char *const ragged_nests[] = {
    "io, jo, k, ii:#:unroll~, ji:%:vec~ =>\n    @Y = {io, ii}/i, {jo, ji}/j // k\n",
    "jo, io, k, ji:%:vec~, ii:#:unroll~ =>\n    @Y = {io, ii}/i, {jo, ji}/j // k\n",
    "i, jo, ko, j1:#:unroll~, ki:#~, ji:%:vec~ =>\n    @Y = i, {jo, j1, ji}/j // {ko, ki}/k\n",
    "{io, jo}:para, k, ii:#~, ji:%:vec~ =>\n    @Y = {io, ii}/i, {jo, ji}/j // k\n",
    "io, jo, ji:%:vec~, ii:#:unroll~, k:7 =>\n    @Y = {io, ii}/i, {jo, ji}/j // k\n",
    "jo, ji:#:unroll~, io, k, ii:%:vec~ =>\n    @Y = {io, ii}/i, {jo, ji}/j // k\n",
    "k, io, ii:#:unroll~, j:vec:mask =>\n    @Y = {io, ii}/i, j // k\n",
    "i, k, {jo, ji:%:mask}:fold:vec =>\n    @Y = i, {jo, ji}/j // k\n",
};

static struct schedule *ragged_nest(struct random *r, const char *nest) {
  static const char *const tails[] = {":mask", ":peel", ":mask"};
  struct buf text = {0};
  struct schedule *s = NULL;
  for (const char *c = nest; *c; c++) {
    if (*c == '#')
      buf_printf(&text, "%d", 2 + edit_below(r, 4));
    else if (*c == '%')
      buf_printf(&text, "%d", edit_below(r, 2) ? 4 << edit_below(r, 4) : 3 + edit_below(r, 22));
    else if (*c == '~')
      buf_puts(&text, tails[edit_below(r, 3)]);
    else
      buf_bytes(&text, c, 1);
  }
  CHECK_INT(schedule_parse(&ctx, text.text, text.length, &s), CANVAS_OK, text.text);
  buf_free(&text);
  return s;
}

// The program with a stage between what is summed and what is seen: with registers of its own.
static struct program *with_epilogue(const char *program) {
  struct buf text = {0};
  const char *stage = strstr(program, "\nY");
  buf_bytes(&text, program, (size_t)(stage - program));
  buf_puts(&text, "\nS");
  buf_puts(&text, stage + 2);
  text.length = (size_t)(strstr(text.text, "\nout") - text.text);
  buf_puts(&text, "\nY[i:9, j:19] = max(S[i, j], 0) / (1 + B[j%7, 0])\nout Y\n");
  struct program *p = parsed(text.text);
  buf_free(&text);
  return p;
}

static void add_epilogue(struct batch *b, struct random *r, const char *label) {
  struct program *p = with_epilogue(ragged[edit_below(r, 2) ? 0 : 3]);
  static const char *const nests_of_two[] = {
      "io, jo =>\n    k, ii:#:unroll~, ji:%:vec~ =>\n        @S = {io, ii}/i, {jo, ji}/j // k\n"
      "    ii:unroll, ji:vec =>\n        @Y = {io, ii}/i, {jo, ji}/j\n",
      "jo =>\n    i, k, ji:%:vec~ =>\n        @S = i, {jo, ji}/j // k\n"
      "    i, ji:vec =>\n        @Y = i, {jo, ji}/j\n"};
  batch_add(b, p, ragged_nest(r, nests_of_two[edit_below(r, 2)]), label);
  program_free(p);
}

static void ragged_tiles(void **state) {
  static const int bytes[] = {64, 16, 32};
  enum { PROGRAMS = sizeof ragged / sizeof *ragged };
  enum { NESTS = sizeof ragged_nests / sizeof *ragged_nests };
  struct batch b = {.options = "-O2 -march=native" THREADS};
  struct random r;
  int draws = all()       ? 20 * PROGRAMS * NESTS
              : SANITIZED ? PROGRAMS * NESTS
                          : 2 * PROGRAMS * NESTS / SHARE;
  random_open(&r, 14, RANDOM_TEST, 3);
  for (int i = 0; i < draws; i++) {
    struct program *p = parsed(ragged[i % PROGRAMS]);
    int nest = i / PROGRAMS % NESTS;
    char label[40];
    snprintf(label, sizeof label, "draw %d of ragged nest %d", i, nest);
    vector_bytes = bytes[edit_below(&r, 3)];
    registers = vector_bytes / 2;
    batch_add(&b, p, ragged_nest(&r, ragged_nests[nest]), label);
    if (i % 8 == 0) add_epilogue(&b, &r, label);
    program_free(p);
  }
  batch_flush(&b, b.options);
  vector_bytes = 64;
  registers = 32;
  print_message("%d accepted, %d rejected\n", b.done, b.rejected);
  CHECK(b.done > 2 * b.rejected, "most schedules are legal");
}

// Of a group that runs in parallel a loop has one step in what an outer one leaves over.
static void groups_of_one_step(void **state) {
  struct batch b = {.options = "-O2 -march=native" THREADS};
  struct program *p = parsed(
      "program rest\nin X f32 [i:5, j:7, k:3]\n"
      "Y[i:5, j:7] = X[i, j, k] // sum k:3\nout Y\n");
  CHECK(batch_add(&b, p, scheduled("jo, {i, ji:2:peel}:para, k => @Y = i, {jo, ji}/j // k\n"),
                  "two loops"),
        ctx.message);
  CHECK(batch_add(&b, p,
                  scheduled("jo, {io, ii:2:mask, ji:3:peel}:para, k => "
                            "@Y = {io, ii}/i, {jo, ji}/j // k\n"),
                  "three loops"),
        ctx.message);
  program_free(p);
  // what a folded group of one step makes is read behind it
  p = parsed(
      "program one\nin X f32 [n:1, c:4, k:8]\nm[n:1, c:1] = X[n, c, k] // max k:8\n"
      "Y[n:1, c:4, h:6] = m[n, 0] - X[n, c, h]\nout Y\n");
  static const char *const marks[] = {"", ":para", ":unroll"};
  for (int i = 0; i < 3; i++) {
    char text[160];
    snprintf(text, sizeof text,
             "{n, m_c}:fold%s, k => @m[n][m_c] = n, {m_c}/c // k\nn, c, h => @Y = n, c, h\n",
             marks[i]);
    CHECK(batch_add(&b, p, scheduled(text), "one step"), ctx.message);
  }
  program_free(p);
  batch_flush(&b, b.options);
}

// ---- what cannot be written ----

static void rejections(void **state) {
  const struct machine machine = machine_avx512;
  struct loop_tree *tree;
  struct buf out = {0}, text = {0};
  struct program *p = parsed(PRODUCT);
  struct schedule *s = scheduled("i, j, k => @P = i, j // k\ni, jo, ji:? => @Y = i, {jo, ji}/j\n");
  CHECK_INT(loop_tree_bind(&ctx, p, s, &machine, &tree), CANVAS_OK, ctx.message);
  CHECK_INT(emit_tree(&ctx, tree, NULL, &out), CANVAS_BAD_INPUT, "a hole");
  CHECK_TEXT(ctx.message, "the schedule has 1 holes without a number, give them with --set",
             "a hole");
  loop_tree_free(tree);
  schedule_free(s);
  program_free(p);

  // An expression as deep as they may be, of an index that becomes deeper.
  buf_puts(&text, "program deep\nin X f32 [i:64]\nY[i:64] = ");
  for (int i = 0; i < PROGRAM_DEPTH - 2; i++) buf_puts(&text, "abs(");
  buf_puts(&text, "X[i]");
  for (int i = 0; i < PROGRAM_DEPTH - 2; i++) buf_puts(&text, ")");
  buf_puts(&text, "\nout Y\n");
  p = parsed(text.text);
  s = scheduled("a:2, b:2, c:2, d:2, e => @Y = {a, b, c, d, e}/i\n");
  CHECK_INT(loop_tree_bind(&ctx, p, s, &machine, &tree), CANVAS_OK, ctx.message);
  CHECK_INT(emit_tree(&ctx, tree, NULL, &out), CANVAS_BAD_INPUT, "too deep");
  CHECK(strstr(ctx.message, "an expression is too long once loops stand in it: expression nests"),
        ctx.message);
  CHECK(!out.length, "nothing is written");
  loop_tree_free(tree);
  schedule_free(s);
  program_free(p);
  buf_free(&text);
}

static void put_sum_of_loads(struct buf *text, int loads) {
  if (loads == 1) {
    buf_puts(text, "W[k, c]");
    return;
  }
  buf_puts(text, "(");
  put_sum_of_loads(text, loads / 2);
  buf_puts(text, " + ");
  put_sum_of_loads(text, loads - loads / 2);
  buf_puts(text, ")");
}

// Of so many loads that there is no room for all places, which are written while lanes are.
static void too_many_loads(void **state) {
  struct buf out = {0}, text = {0};
  struct default_bound made;
  buf_puts(&text,
           "program many\nin X f32 [h:56, c:512]\nin W f32 [k:3, c:512] const\nY[h:56, c:512] = "
           "X[h, c] * ");
  put_sum_of_loads(&text, 16000);
  buf_puts(&text, " // sum k:3\nout Y\n");
  struct program *p = parsed(text.text);
  CHECK_INT(default_bind(&ctx, p, &machine_avx512, &made), CANVAS_OK, ctx.message);
  CHECK_INT(emit_tree(&ctx, made.tree, NULL, &out), CANVAS_BAD_INPUT, "too many loads");
  CHECK(strstr(ctx.message, "an expression is too long once loops stand in it: expressions have"),
        ctx.message);
  loop_tree_free(made.tree);
  schedule_free(made.schedule);
  program_free(made.edited);
  program_free(p);
  buf_free(&text);
}

// 32 stages of 300 loads, each index of eight loops with the longest names, one of them unrolled;
// products are not named.
static void long_text(void **state) {
  enum { RANK = 8, STAGES = 32, LOADS = 300 };
  const struct machine machine = machine_avx512;
  struct loop_tree *tree;
  struct buf out = {0}, text = {0}, loops = {0};
  char name[SCHEDULE_NAME - 1] = "";
  memset(name, 'x', sizeof name - 2);
  buf_puts(&text, "program long\nin X f32 [a:2, b:2, c:2, d:2, e:2, f:2, g:2, h:2]\n");
  for (int stage = 0; stage < STAGES; stage++) {
    buf_printf(&text, "Y%d[a:2, b:2, c:2, d:2, e:2, f:2, g:2, h:2] = 1", stage);
    for (int i = 0; i < LOADS; i++)
      buf_printf(&text, "%s + X[a*a, b*b, c*c, d*d, e*e, f*f, g*g, h*h]", i % 100 ? "" : " * (1");
    buf_printf(&text, ")))\nout Y%d\n", stage);
    for (int i = 0; i < RANK; i++)
      buf_printf(&loops, "%s%s%c%s", i ? ", " : "", name, 'a' + i, i ? "" : ":unroll");
    buf_printf(&loops, " =>\n    @Y%d = ", stage);
    for (int i = 0; i < RANK; i++)
      buf_printf(&loops, "%s{%s%c}/%c", i ? ", " : "", name, 'a' + i, 'a' + i);
    buf_puts(&loops, "\n");
  }
  struct program *p = parsed(text.text);
  struct schedule *s = scheduled(loops.text);
  CHECK_INT(loop_tree_bind(&ctx, p, s, &machine, &tree), CANVAS_OK, ctx.message);
  CHECK_INT(emit_tree(&ctx, tree, NULL, &out), CANVAS_BAD_INPUT, "too long");
  CHECK_TEXT(ctx.message, "the C text is longer than 32 MiB, unroll less", "too long");
  CHECK(!out.length, "nothing is written");
  loop_tree_free(tree);
  schedule_free(s);
  program_free(p);
  buf_free(&loops);
  buf_free(&text);
}

// ---- the schedules of examples/ ----

static const struct {
  const char *program, *schedule;
} written[] = {
    {"conv_nchwc", "e1_values"},         {"conv_nchwc", "e2_values"}, {"conv_im2col", "e3_values"},
    {"conv_im2col_packed", "e3_packed"}, {"conv_bsr", "e4_values"},   {"sparse_dense", "e5_values"},
    {"conv_nhwc", "e6_values"},          {"product", "holes_values"},
};

static void schedules_of_examples(void **state) {
  struct batch b = {0};
  CHECK_ROWS (written, row) {
    char path[400];
    snprintf(path, sizeof path, "%s/examples/programs/%s.program", CANVAS_SOURCE, row->program);
    struct program *p = parsed(read_text(path));
    snprintf(path, sizeof path, "%s/examples/schedules/%s.schedule", CANVAS_SOURCE, row->schedule);
    CHECK(batch_add(&b, p, scheduled(read_text(path)), row->schedule), ctx.message);
    add_defaults(&b, p, row->program);
    program_free(p);
  }
  batch_flush(&b, "-O2 -march=native" THREADS);
}

// ---- the operator library ----

static void operators(void **state) {
  struct batch b = {.options = "-O1 -march=native"};
  struct random r;
  random_open(&r, 6, RANDOM_TEST, 3);
  for (int i = 0; i < OPERATOR_CALLS; i++) {
    struct program *p;
    CHECK_INT(operator_called(&ctx, operator_calls[i], &p), CANVAS_OK, ctx.message);
    add_defaults(&b, p, p->name);
    for (int j = 0; j < (all() ? 20 : 1); j++)
      CHECK(batch_add(&b, p, random_schedule(p, &r, 20), p->name), ctx.message);
    program_free(p);
  }
  batch_flush(&b, b.options);
}

// Weights that are not finite, beside a border: what they make of its zeros, nan, is there wherever the program has it.
#define WEIGHTS "height=6 width=5 kernel=3 padding=1 "
static const char *const padded[] = {
    "conv2d_nhwc in_channels=64 out_channels=64 weights=hwio " WEIGHTS,
    "conv2d_nchw in_channels=32 out_channels=20 " WEIGHTS,
    "conv2d_nhwc in_channels=32 out_channels=32 groups=4 " WEIGHTS,
    "conv2d_nchw in_channels=8 out_channels=8 groups=2 stride=2 " WEIGHTS,
    "conv2d_nhwc in_channels=32 out_channels=32 groups=32 " WEIGHTS,
    "depthwise_conv2d_nchw in_channels=20 stride=2 " WEIGHTS,
    "conv2d_nhwc in_channels=3 height=8 width=14 out_channels=20 kernel=7 padding=3 stride=2",
    "conv2d_nhwc in_channels=20 out_channels=20 dilation=2 height=6 width=5 kernel=3 padding=2",
};

// The default schedule of p on `machine`, with or without the edits of the default, which keep the meaning of p.
static void add_default_on(struct batch *b, struct program *p, const struct machine *machine,
                           bool edits, const char *label) {
  struct program *edited = edits ? default_program(p, machine) : NULL;
  struct program *q = edited ? edited : p;
  vector_bytes = machine->vector_bytes;
  registers = machine->registers;
  CHECK(batch_add_meant(b, q, p, schedule_default(q, true, machine), label), ctx.message);
  vector_bytes = 64;
  registers = 32;
  program_free(edited);
}

static void weights_not_finite(void **state) {
  struct batch b = {.options = "-O2 -march=native"};
  not_finite = true;
  CHECK_ROWS (padded, call)
    for (int i = 0; i < 2 * MACHINES; i++) {
      struct program *p;
      CHECK_INT(operator_called(&ctx, *call, &p), CANVAS_OK, ctx.message);
      p->tensors.data[p->inputs.data[1]].constant = i % 2;
      add_default_on(&b, p, machine_model(i / 2), true, *call);
      program_free(p);
    }
  batch_flush(&b, b.options);
  not_finite = false;
}

// Sums whose terms come and go with a remainder: the default splits its loops by it. Periods that do not divide
// the result or the window, no term at all for a phase, stages made by the edits before it.
static const char *const phased[] = {
    "conv_transpose2d_nchw in_channels=5 height=6 width=7 out_channels=20 kernel=4 stride=2 "
    "padding=1",
    "conv_transpose2d_nchw in_channels=4 height=5 width=6 out_channels=6 kernel=3 stride=3x2 "
    "bias=1 "
    "output_padding=1 padding=1 groups=2",
    "conv_transpose2d_nchw in_channels=3 height=4 width=5 out_channels=8 kernel=2 stride=3 ",
    "conv_transpose2d_nchw in_channels=3 height=4 width=9 out_channels=4 kernel=3 stride=2 "
    "dilation=2",
    "conv_transpose2d_nchw in_channels=2 height=4 width=5 out_channels=8 kernel=9 stride=2 "
    "padding=4",
    "conv_transpose1d in_channels=20 length=33 out_channels=33 kernel=5 stride=3 dilation=2 "
    "padding=3",
    "conv_transpose1d in_channels=3 length=40 out_channels=1 kernel=4 stride=2",
    "conv_transpose3d_ncdhw in_channels=4 depth=3 height=4 width=5 out_channels=18 kernel=3 "
    "stride=2 "
    "padding=1",
    "conv_transpose3d_ncdhw in_channels=4 depth=3 height=4 width=5 out_channels=6 kernel=4 "
    "stride=2 "
    "padding=1",
};

static void phases(void **state) {
  struct batch b = {.options = "-O2 -march=native"};
  CHECK_ROWS (phased, call)
    for (int i = 0; i < 3; i++) {
      struct program *p;
      CHECK_INT(operator_called(&ctx, *call, &p), CANVAS_OK, ctx.message);
      add_default_on(&b, p, machine_model(i), false, *call);
      add_default_on(&b, p, machine_model(i), true, *call);
      program_free(p);
    }
  batch_flush(&b, b.options);
}

// Rows that stages share.
static void shared_rows(void **state) {
  struct batch b = {.options = "-O2 -march=native"};
  CHECK_ROWS (row_programs, row)
    for (int i = 0; i < MACHINES; i++) {
      struct machine machine = small_cache(machine_model(i));
      struct program *p;
      CHECK_INT(program_parse(&ctx, row->program, strlen(row->program), &p), CANVAS_OK,
                ctx.message);
      add_default_on(&b, p, &machine, true, row->program);
      program_free(p);
    }
  batch_flush(&b, b.options);
}

// ---- random schedules ----

// A reduction of the program in partial sums, at random, and the schedule that follows the default one;
// both are the caller's. False where the stage that is picked has none that may be split.
static bool random_rfactor(struct random *r, const struct program *p, struct program **q,
                           struct schedule **s) {
  const struct machine machine = machine_avx512;
  const struct program_tensor *t = &p->tensors.data[edit_below(r, p->tensors.count)];
  struct buf edit = {0};
  struct loop_tree *tree;
  if (!t->reductions) return false;
  int axis = t->rank + edit_below(r, t->reductions), most = (int)t->axes[axis].size;
  int lanes = edit_below(r, 2) && most >= 8 ? 8 : 2 + edit_below(r, most > 2 ? most - 1 : 1);
  buf_printf(&edit, "rfactor %s %s %d as PARTS", t->name, t->axes[axis].name, lanes);
  bool edited = program_edit(&ctx, p, edit.text, edit.length, q) == CANVAS_OK;
  if (edited) {
    struct schedule *plain = schedule_default(p, edit_below(r, 2), &machine);
    CHECK_INT(loop_tree_bind(&ctx, p, plain, &machine, &tree), CANVAS_OK, ctx.message);
    if (loop_tree_stage(tree, (int)(t - p->tensors.data)) < 0) {
      program_free(*q);
      edited = false;
    } else {
      CHECK_INT(schedule_follow(&ctx, tree, edit.text, edit.length, s), CANVAS_OK, ctx.message);
    }
    loop_tree_free(tree);
    schedule_free(plain);
  }
  if (!edited) *q = NULL;
  buf_free(&edit);
  return edited;
}

// Random schedules are legal for vectors of 64 bytes: shorter ones may be too many in an unrolled loop.
static bool is_too_long(void) {
  return vector_bytes < 64 && strstr(ctx.message, " statements, at most ");
}

static void random_schedules(void **state) {
  int partial = 0;
  struct batch b = {.options = "-O2 -march=native" THREADS};
  int programs = all() ? 1500 : SANITIZED ? 30 : 80;
  for (int i = 0; i < programs; i++) {
    struct random r;
    char label[32];
    random_open(&r, (uint64_t)i, RANDOM_TEST, 3);
    struct program *p = random_program_with((uint64_t)i, LOOSE);
    struct program *meant = random_program_with((uint64_t)i, LOOSE_MEANT);
    CHECK_INT(program_verify(&ctx, p), CANVAS_OK, ctx.message);
    snprintf(label, sizeof label, "random program %d", i);
    vector_bytes = 16 << i % 3;
    registers = 8 << i / 3 % 3;
    for (int j = 0; j < 2; j++) {
      struct program *q = NULL;
      struct schedule *s = NULL;
      bool split = j == 1 && random_rfactor(&r, p, &q, &s);
      partial += split;
      if (!split || i % 2) {
        schedule_free(s);
        s = random_schedule(split ? q : p, &r, 4 + 8 * j);
      }
      bool legal = batch_add_meant(&b, split ? q : p, meant, s, label);
      CHECK(legal || is_too_long() || (split && i % 2 == 0),
            ctx.message); /* bound for a machine of 64 bytes */
      if (split) program_free(q);
    }
    program_free(p);
    program_free(meant);
  }
  CHECK(partial > programs / 8, "too few partial sums mean little");
  vector_bytes = 64;
  registers = 32;
  batch_flush(&b, b.options);
}

// Loops that are split at the borders of images, for machines of 16, 32 and 64 bytes.
static void borders(void **state) {
  struct batch b = {.options = "-O1 -march=native" THREADS};
  int programs = all() ? 1000 : SANITIZED ? 24 : 48 / SHARE;
  for (int i = 0; i < programs; i++) {
    struct random r;
    char label[32];
    random_open(&r, (uint64_t)i, RANDOM_TEST, 4);
    struct program *p = random_border_program((uint64_t)i);
    CHECK_INT(program_verify(&ctx, p), CANVAS_OK, ctx.message);
    snprintf(label, sizeof label, "random border %d", i);
    vector_bytes = 16 << i % 3;
    const struct machine machine = machine_avx512;
    CHECK(batch_add(&b, p, schedule_default(p, i % 2, &machine), label), ctx.message);
    for (int j = 0; j < 3; j++)
      CHECK(batch_add(&b, p, random_schedule(p, &r, 4 + 8 * j), label) || is_too_long(),
            ctx.message);
    program_free(p);
  }
  vector_bytes = 64;
  batch_flush(&b, b.options);
}

// ---- sampled kernels ----

#define TARGETS "a 64 64 56 56 3 1 1\nb 64 128 56 56 3 2 1\nc 128 64 28 28 5x3 1 1\n"

// The kernel at the smallest sizes it can have: NULL if there are none.
static struct program *small(const canvas_kernel *kernel, int64_t groups) {
  static const int grains[] = {2, 3, 4, 6, 8, 12, 16, 24, 32};
  const canvas_solve_options options = {.groups = groups, .exempt = true};
  struct program *p = NULL;
  canvas_budget *budget;
  CHECK_INT(canvas_budget_parse(&ctx, "macs=none,params=none", 21, &budget), CANVAS_OK,
            ctx.message);
  for (int i = 0; i < 9 && !p; i++) {
    char text[80];
    canvas_targets *targets;
    canvas_program *program;
    canvas_pack *pack;
    int channels = (int)groups * grains[i], wider = i % 2 ? 2 : 1;
    if (channels < 4) continue;
    int length = snprintf(text, sizeof text, "small %d %d 6 5 3 1 1\n", channels, channels * wider);
    CHECK_INT(canvas_targets_parse(&ctx, text, (size_t)length, &targets), CANVAS_OK, ctx.message);
    if (canvas_kernel_solve(&ctx, kernel, targets, budget, &options, &pack) == CANVAS_OK) {
      CHECK_INT(canvas_pack_lower(&ctx, pack, 0, 1, &program), CANVAS_OK, ctx.message);
      canvas_pack_free(pack);
      p = (struct program *)program;
    }
    canvas_targets_free(targets);
  }
  canvas_budget_free(budget);
  return p;
}

// Its outputs cost the interpreter little.
static bool is_cheap(const struct program *p) {
  double points = 0;
  for (int i = 0; i < p->tensors.count; i++) {
    double n = (double)program_elements(p, i);
    for (int j = 0; j < p->tensors.data[i].reductions; j++)
      n *= (double)p->tensors.data[i].axes[p->tensors.data[i].rank + j].size;
    points += n;
  }
  return points < 1e6;
}

static void check_sampled(const char *options, int wanted) {
  struct batch b = {.options = "-O1 -march=native"};
  struct random r;
  canvas_targets *targets;
  canvas_sampler *sampler;
  const struct machine machine = machine_avx512;
  int found = 0;
  random_open(&r, 11, RANDOM_TEST, 3);
  CHECK_INT(canvas_targets_parse(&ctx, TARGETS, strlen(TARGETS), &targets), CANVAS_OK, ctx.message);
  CHECK_INT(canvas_sampler_new(&ctx, targets, options, strlen(options), 11, &sampler), CANVAS_OK,
            ctx.message);
  for (uint64_t i = 0; found < wanted && i < 4 * (uint64_t)wanted; i++) {
    canvas_kernel *kernel;
    int64_t groups;
    if (canvas_sampler_draw(&ctx, sampler, i, &kernel, &groups) != CANVAS_OK) continue;
    struct program *p = small(kernel, groups);
    canvas_kernel_free(kernel);
    if (!p) continue;
    if (is_cheap(p)) {
      char label[40];
      snprintf(label, sizeof label, "sampled kernel %d", (int)i);
      for (int j = 0; j < 2; j++)  // the plain one of every other
        if (j || all() || found % 2)
          CHECK(batch_add(&b, p, schedule_default(p, j, &machine), label), ctx.message);
      CHECK(batch_add(&b, p, random_schedule(p, &r, 15), label), ctx.message);
      found++;
    }
    program_free(p);
  }
  batch_flush(&b, b.options);
  CHECK_INT(found, wanted, options);
  canvas_sampler_free(sampler);
  canvas_targets_free(targets);
}

// Free sizes are as large as they may be, and the interpreter is slow.
static void sampled_kernels(void **state) {
  check_sampled("free_size=0", all() ? 300 : SANITIZED ? 12 : 60);
}

static void sampled_wide_kernels(void **state) {
  check_sampled("free_size=0 space=wide", all() ? 500 : SANITIZED ? 12 : 60);
}

static void random_schedules_of_kernels(void **state) {
  struct batch b = {.options = "-O1 -march=native"};
  struct random r;
  random_open(&r, 5, RANDOM_TEST, 3);
  CHECK_ROWS (kernels, k) {
    struct program *p = example(k->file, k->at);
    for (int i = 0; i < (all() ? 20 : 3); i++)
      CHECK(batch_add(&b, p, random_schedule(p, &r, 20), k->file), ctx.message);
    program_free(p);
  }
  batch_flush(&b, b.options);
}

CHECK_MAIN(cmocka_unit_test(examples), cmocka_unit_test(constructs),
           cmocka_unit_test(permuted_lanes), cmocka_unit_test(annotations_together),
           cmocka_unit_test(ragged_tiles), cmocka_unit_test(groups_of_one_step),
           cmocka_unit_test(rejections), cmocka_unit_test(too_many_loads),
           cmocka_unit_test(long_text), cmocka_unit_test(schedules_of_examples),
           cmocka_unit_test(operators), cmocka_unit_test(phases),
           cmocka_unit_test(weights_not_finite), cmocka_unit_test(shared_rows),
           cmocka_unit_test(random_schedules), cmocka_unit_test(borders),
           cmocka_unit_test(random_schedules_of_kernels), cmocka_unit_test(sampled_kernels),
           cmocka_unit_test(sampled_wide_kernels))
