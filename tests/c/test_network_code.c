// Networks as C: random small ones, all in one file for the compiler, give what the interpreter gives. They
// are compiled as this test is: sanitized if it is. CANVAS_TEST_ALL=1: 200 of them.
#define _DEFAULT_SOURCE
#include <dlfcn.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/random.h"
#include "net/network_compile.h"
#include "net/network_interpret.h"
#include "net/passes.h"
#include "run/cache.h"

#include "check.h"
#include "sanitized.h"

static canvas_context ctx;
static struct compiler *compiler;

#ifdef __clang__
#define CC "clang"
#else
#define CC "gcc"
#endif
static const char *const command_here =
    SANITIZED ? CC " -fsanitize=address,undefined -fno-sanitize-recover=all" : CC;

static struct network *network_from(const char *text) {
  struct network *n;
  CHECK_INT(network_parse(&ctx, text, strlen(text), &n), CANVAS_OK, text);
  return n;
}

static int below(struct random *r, int count) {
  return (int)random_below(r, (uint32_t)count);
}

// ---- random networks ----

// Programs over images [1, 6, s, s], s of 4 and 7, and what pools them.
static void put_programs(int s, struct buf *out) {
  static const char text[] =
      "program conv@\nin X f32 [n:1, c:6, h:@, w:@]\nin W f32 [o:6, c:6, kh:3, kw:3] const\n"
      "in B f32 [o:6]\n"
      "Z[n:1, o:6, h:@, w:@] = if 1 <= h+kh && h+kh < @+1 && 1 <= w+kw && w+kw < @+1 then "
      "X[n, c, h+kh-1, w+kw-1] * W[o, c, kh, kw] else 0 // sum c:6, kh:3, kw:3\n"
      "Y[n:1, o:6, h:@, w:@] = max(Z[n, o, h, w] + B[o], 0)\nout Y\nend\n"
      "program add@\nin A f32 [n:1, c:6, h:@, w:@]\nin B f32 [n:1, c:6, h:@, w:@]\n"
      "Y[n:1, c:6, h:@, w:@] = A[n, c, h, w] * 0.5 + B[n, c, h, w]\nout Y\nend\n"
      "program tanh@\nin A f32 [n:1, c:6, h:@, w:@]\n"
      "Y[n:1, c:6, h:@, w:@] = tanh(A[n, c, h, w]) * A[n, c, h, w]\nout Y\nend\n"
      "program scale@\nin X f32 [n:1, c:6, h:@, w:@]\nin S f32 [c:6] const\n"
      "Y[n:1, c:6, h:@, w:@] = X[n, c, h, w] * S[c]\nout Y\nend\n"
      "program both@\nin X f32 [n:1, c:6, h:@, w:@]\nY[n:1, c:6, h:@, w:@] = X[n, 5-c, h, w] + 1\n"
      "Z[n:1, c:6, h:@, w:@] = X[n, c, h, w] - 1\nout Y\nout Z\nend\n"
      "program flip@\nin X f32 [n:1, c:6, h:@, w:@]\n"
      "Y[n:1, c:6, h:@, w:@] = X[n, c, @-1-h, w]\nout Y\nend\n";
  for (const char *p = text; *p; p++) {
    if (*p == '@')
      buf_printf(out, "%d", s);
    else
      buf_bytes(out, p, 1);
  }
}

static const char common[] =
    "program pool\nin X f32 [n:1, c:6, h:7, w:7]\n"
    "Y[n:1, c:6, h:4, w:4] = X[n, c, min(2*h+kh, 6), min(2*w+kw, 6)] // max kh:2, kw:2\nout "
    "Y\nend\n"
    "program root\nin V f32 [c:6]\nin M f32 [c:6]\nS[c:6] = M[c] / sqrt(V[c] * V[c] + 0.1)\n"
    "out S\nend\n"
    "program fold\nin W f32 [o:6, c:6, kh:3, kw:3]\nin S f32 [o:6]\n"
    "Y[o:6, c:6, kh:3, kw:3] = W[o, c, kh, kw] * S[o]\nout Y\nend\n"
    "program mean\nin X f32 [n:1, c:6, h:4, w:4]\nY[n:1, c:6] = X[n, c, h, w] // mean h:4, w:4\n"
    "out Y\nend\n"
    "program join\nin A f32 [n:1, c:6, h:4, w:4]\nin B f32 [n:1, c:6, h:4, w:4]\n"
    "Y[n:1, c:12, h:4, w:4] = if c < 6 then A[n, c, h, w] else B[n, c-6, h, w]\nout Y\nend\n"
    "program middle\nin X f32 [n:1, c:12, h:4, w:4]\nY[n:1, c:6, h:4, w:4] = X[n, c+3, h, w]\n"
    "out Y\nend\n"
    "program linear\nin X f32 [n:1, c:6]\nin W f32 [o:40, c:6] const\nin B f32 [o:40]\n"
    "V[c:6, o:40] = W[o, c]\nZ[n:1, o:40] = X[n, c] * V[c, o] // sum c:6\n"
    "Y[n:1, o:40] = Z[n, o] + B[o]\nout Y\nend\n"
    "program wide\nin L f32 [o:40, c:6]\nS[o:40] = L[o, c] // sum c:6\nout S\nend\n"
    "program plus\nin A f32 [n:1, o:40]\nin B f32 [n:1, o:40]\n"
    "Y[n:1, o:40] = A[n, o] - B[n, o]\nout Y\nend\n"
    "program soft\nin X f32 [n:1, o:40]\nM[n:1] = X[n, o] // max o:40\n"
    "E[n:1, o:40] = exp(X[n, o] - M[n])\nS[n:1] = E[n, o] // sum o:40\n"
    "Y[n:1, o:40] = E[n, o] / S[n]\nout Y\nend\n";

static const char given[] =
    "in x f32 [1, 6, 7, 7]\nin y f32 [1, 6, 7, 7]\n"
    "weight w0 f32 [6, 6, 3, 3]\nweight w1 f32 [6, 6, 3, 3] from layer.weight\n"
    "weight s0 f32 [6]\nweight s1 f32 [6]\nweight l f32 [40, 6]\n"
    "weight k f32 [40, 6]\nbl f32 [40] = wide(l)\n"
    "b0 f32 [6] = root(s0, s1)\nb1 f32 [6] = root(s1, b0)\n"
    "f0 f32 [6, 6, 3, 3] = fold(w0, b0)\nf1 f32 [6, 6, 3, 3] = fold(f0, b1)\n";

enum { VALUES = 12 };

struct made {
  int size[VALUES + 4];
  char name[VALUES + 4][16];
  int count;
};

static void add_value(struct made *m, const char *name, int size) {
  snprintf(m->name[m->count], sizeof m->name[0], "%s", name);
  m->size[m->count++] = size;
}

// A value of the size, one of the last ones more often.
static const char *pick(struct random *r, const struct made *m, int size) {
  int at = -1, seen = 0;
  for (int i = 0; i < m->count; i++)
    if (m->size[i] == size && below(r, ++seen) < 2) at = i;
  return at < 0 ? NULL : m->name[at];
}

static void put_call(struct random *r, struct made *m, int number, struct buf *out) {
  static const char *const weights[] = {"w0", "w1", "f0", "f1"}, *const vectors[] = {"s0", "s1",
                                                                                     "b0", "b1"};
  int size = below(r, 2) ? 7 : 4;
  const char *a = pick(r, m, size), *b = pick(r, m, size);
  char v[16], u[16], type[40];
  snprintf(v, sizeof v, "v%d", number);
  snprintf(u, sizeof u, "u%d", number);
  if (!a) size = 7, a = pick(r, m, 7), b = pick(r, m, 7);
  snprintf(type, sizeof type, "f32 [1, 6, %d, %d]", size, size);
  int what = below(r, 7);
  switch (what == 6 && size == 4 ? 7 : what) {
    case 0:
      buf_printf(out, "%s %s = conv%d(%s, %s, %s)\n", v, type, size, a, weights[below(r, 4)],
                 vectors[below(r, 4)]);
      break;
    case 1: buf_printf(out, "%s %s = add%d(%s, %s)\n", v, type, size, a, b); break;
    case 2: buf_printf(out, "%s %s = tanh%d(%s)\n", v, type, size, a); break;
    case 3:
      buf_printf(out, "%s %s = scale%d(%s, %s)\n", v, type, size, a, vectors[below(r, 4)]);
      break;
    case 4:
      buf_printf(out, "%s %s, %s %s = both%d(%s)\n", v, type, u, type, size, a);
      if (below(r, 2)) add_value(m, u, size);
      break;
    case 5: buf_printf(out, "%s %s = flip%d(%s)\n", v, type, size, a); break;
    case 6:
      buf_printf(out, "%s f32 [1, 6, 4, 4] = pool(%s)\n", v, a);
      size = 4;
      break;
    default:
      buf_printf(out, "%s f32 [1, 12, 4, 4] = join(%s, %s)\n%s %s = middle(%s)\n", u, a, b, v, type,
                 u);
  }
  add_value(m, v, size);
}

static struct network *random_network(int seed) {
  struct random r;
  struct made m = {0};
  struct buf text = {0};
  random_open(&r, 5, RANDOM_TEST, (uint64_t)seed);
  int values = 2 + below(&r, VALUES / 2 - 1);
  buf_printf(&text, "canvas 1\nnetwork random%d\n%s", seed, common);
  put_programs(4, &text);
  put_programs(7, &text);
  buf_puts(&text, given);
  add_value(&m, "x", 7);
  add_value(&m, "y", 7);
  for (int i = 0; i < values; i++) put_call(&r, &m, i, &text);
  const char *last = m.name[m.count - 1], *end = last;
  if (m.size[m.count - 1] == 7) {
    buf_printf(&text, "p f32 [1, 6, 4, 4] = pool(%s)\n", last);
    end = "p";
  }
  buf_printf(&text, "q f32 [1, 6] = mean(%s)\nt f32 [1, 40] = linear(q, l, bl)\n", end);
  buf_puts(&text,
           "s f32 [1, 40] = linear(q, k, bl)\nd f32 [1, 40] = plus(t, s)\n"
           "z f32 [1, 40] = soft(d)\nout z\n");
  if (below(&r, 3) == 0) buf_puts(&text, "out b1\n");
  if (below(&r, 3) == 0 && m.count > 2) buf_printf(&text, "out %s\n", m.name[2]);
  struct network *n = network_from(text.text);
  buf_free(&text);
  return n;
}

// ---- running ----

typedef int (*load_function)(const void *const *, void *);
typedef int (*run_function)(const void *const *, const void *, const void *const *, void *const *,
                            void *);

static void *function_of(void *object, const char *name, const char *suffix) {
  char symbol[80];
  snprintf(symbol, sizeof symbol, "%s%s", name, suffix);
  void *found = dlsym(object, symbol);
  if (!found) fail_msg("no %s", symbol);
  return found;
}

// What a network is run on: numbers, and the same as floats.
struct data {
  double **number;  // by tensor
  void **memory;    // by tensor; of an output what the code writes
  const void *inputs[8], *weights[8];
  void *outputs[8];
};

static struct data data_new(const struct network *n) {
  size_t tensors = (size_t)n->tensors.count + 1;
  struct data d = {
      calloc(tensors, sizeof *d.number), calloc(tensors, sizeof *d.memory), {0}, {0}, {0}};
  int inputs = 0, weights = 0;
  for (int i = 0; i < n->tensors.count; i++) {
    const struct net_tensor *t = &n->tensors.data[i];
    size_t elements = (size_t)network_elements(t);
    d.number[i] = calloc(elements, sizeof(double));
    d.memory[i] = calloc(elements, sizeof(float));
    if (t->kind == NET_VALUE) continue;
    network_fill(n, i, 3, d.number[i]);
    for (size_t k = 0; k < elements; k++)
      d.number[i][k] = ((float *)d.memory[i])[k] = (float)d.number[i][k];
    if (t->kind == NET_INPUT) d.inputs[inputs++] = d.memory[i];
    if (t->kind == NET_WEIGHT) d.weights[weights++] = d.memory[i];
  }
  for (int i = 0; i < n->outputs.count; i++) d.outputs[i] = d.memory[n->outputs.data[i]];
  return d;
}

static void data_free(const struct network *n, struct data *d) {
  for (int i = 0; i < n->tensors.count; i++) {
    free(d->number[i]);
    free(d->memory[i]);
  }
  free(d->number);
  free(d->memory);
}

static void *noise(int64_t bytes) {
  size_t behind = SANITIZED ? 0 : 64;  // the sanitizer looks after the end of what was allocated
  void *memory = aligned_alloc(64, bytes || behind ? (size_t)bytes + behind : 64);
  if (!memory) fail_msg("no memory");
  memset(memory, 0xa5, (size_t)bytes + behind);
  return memory;
}

static void compare(const struct network *n, struct data *d, const char *name) {
  double *out[8];
  for (int i = 0; i < n->outputs.count; i++) out[i] = d->number[n->outputs.data[i]];
  CHECK_INT(network_interpret(&ctx, n, (const double *const *)d->number, NULL, out), CANVAS_OK,
            name);
  for (int i = 0; i < n->outputs.count; i++) {
    int64_t elements = network_elements(&n->tensors.data[n->outputs.data[i]]);
    const float *got = d->outputs[i];
    for (int64_t k = 0; k < elements; k++)
      if (!(fabs(got[k] - out[i][k]) <= 1e-4 * (1 + fabs(out[i][k]))))
        fail_msg("%s: element %d of output %d is %g, not %g", name, (int)k, i, got[k], out[i][k]);
  }
}

// What is behind the arena and the packed memory stays as it was.
static void check_end(const void *memory, int64_t bytes, const char *name) {
  const unsigned char *end = (const unsigned char *)memory + bytes;
  for (int i = 0; i < (SANITIZED ? 0 : 64); i++) CHECK(end[i] == 0xa5, name);
}

static void run_and_compare(void *object, const struct network *n,
                            const struct network_code *code) {
  struct data d = data_new(n);
  void *packed = noise(code->packed_bytes), *arena = noise(code->arena_bytes);
  load_function load = (load_function)function_of(object, code->name, "_load");
  run_function run = (run_function)function_of(object, code->name, "_run");
  CHECK_INT(load(d.weights, packed), 0, code->name);
  for (int twice = 0; twice < 2; twice++)
    CHECK_INT(run(d.weights, packed, d.inputs, d.outputs, arena), 0, code->name);
  check_end(packed, code->packed_bytes, code->name);
  check_end(arena, code->arena_bytes, code->name);
  compare(n, &d, code->name);
  free(packed);
  free(arena);
  data_free(n, &d);
}

// ---- many in one file ----

enum { TOGETHER = 16 };

struct batch {
  struct network *n[TOGETHER];
  struct network_code *code[TOGETHER];
  struct buf text;
};

// Every second one after all passes; threads are told of in the text, and there is one.
static void add_network(struct batch *b, int at, int seed) {
  char name[16];
  snprintf(name, sizeof name, "net%d", at);
  const struct machine machine = machine_here();
  const struct network_options options = {
      .machine = &machine, .threads = 1, .name = name, .local = true};
  b->n[at] = random_network(seed);
  if (seed % 2) CHECK_INT(network_optimize(&ctx, b->n[at], NULL, &machine), CANVAS_OK, ctx.message);
  CHECK_INT(network_code_new(&ctx, b->n[at], &options, &b->code[at]), CANVAS_OK, ctx.message);
  network_text(b->code[at], NETWORK_TEXT, &b->text);
}

static void check_batch(int first, int count) {
  struct batch b = {0};
  struct object made;
  for (int i = 0; i < count; i++) add_network(&b, i, first + i);
  const struct linked whole = {.text = b.text.text};
  CHECK_INT(compiler_link(&ctx, compiler, &whole, &made), CANVAS_OK, ctx.message);
  if (!made.path) fail_msg("%s", made.message);
  void *object = dlopen(made.path, RTLD_NOW | RTLD_LOCAL);
  if (!object) fail_msg("%s", dlerror());
  for (int i = 0; i < count; i++) {
    run_and_compare(object, b.n[i], b.code[i]);
    network_code_free(b.code[i]);
    network_free(b.n[i]);
  }
  dlclose(object);
  free(made.path);
  buf_free(&b.text);
}

// Buffers that are too large for the stack lie in the arena, beside what is alive: E is read and written from the
// other end.
static void keeps_workspaces_apart(void **state) {
  static const char text[] =
      "network n\nprogram soft\nin X f32 [i:20000]\nM[a:1] = X[i] // max i:20000\n"
      "E[i:20000] = exp(X[19999-i] - M[0])\nS[a:1] = E[i] // sum i:20000\n"
      "Y[i:20000] = E[19999-i] / S[0] * 20000 + X[i]\nout Y\nend\n"
      "program add\nin A f32 [i:20000]\nin B f32 [i:20000]\nY[i:20000] = A[i] - 2 * B[i]\nout "
      "Y\nend\n"
      "in x f32 [20000]\na f32 [20000] = soft(x)\nb f32 [20000] = soft(a)\n"
      "c f32 [20000] = add(a, b)\nd f32 [20000] = soft(c)\ne f32 [20000] = add(d, c)\nout e\n";
  const struct machine machine = machine_here();
  const struct network_options options = {.machine = &machine, .threads = 1, .local = true};
  struct network *n = network_from(text);
  struct network_code *code;
  struct buf out = {0};
  struct object made;
  CHECK_INT(network_code_new(&ctx, n, &options, &code), CANVAS_OK, ctx.message);
  CHECK(code->arena_bytes >= 3 * 80000, "two values and a buffer");
  network_text(code, NETWORK_TEXT, &out);
  const struct linked whole = {.text = out.text};
  CHECK_INT(compiler_link(&ctx, compiler, &whole, &made), CANVAS_OK, ctx.message);
  if (!made.path) fail_msg("%s", made.message);
  void *object = dlopen(made.path, RTLD_NOW | RTLD_LOCAL);
  run_and_compare(object, n, code);
  dlclose(object);
  free(made.path);
  buf_free(&out);
  network_code_free(code);
  network_free(n);
}

static void computes_what_the_interpreter_does(void **state) {
  int count = getenv("CANVAS_TEST_ALL") ? 200 : SANITIZED ? 3 : TOGETHER;
  for (int i = 0; i < count; i += TOGETHER)
    check_batch(i, count - i < TOGETHER ? count - i : TOGETHER);
}

// ---- schedules ----

// Of a tuning log the best record of what says the same, whatever its name; of records that pass.
static void takes_schedules_of_a_log(void **state) {
  static char program[] =
      "canvas 1\nprogram other\nin X f32 [n:40]\nY[n:40] = max(X[n], 0)\nout Y\n";
  static char slow[] = "n =>\n    @Y = n\n",
              fast[] = "n_o, n_m:2, n_i:4:unroll =>\n    @Y = {n_o, n_m, n_i}/n\n";
  const struct machine machine = machine_here();
  struct buf here = {0};
  machine_print(&machine, &here);
  struct record r = {.program = program,
                     .schedule = slow,
                     .rule = "",
                     .method = "",
                     .message = "",
                     .median = 2,
                     .threads = 1,
                     .machine = here.text,
                     .processor = "",
                     .compiler = "",
                     .version = ""};
  struct records log = {0};
  records_add(&log, &r);
  r.schedule = fast;
  r.median = 1;
  records_add(&log, &r);
  struct network *n = network_from(
      "network n\nprogram relu\nin X f32 [n:40]\nY[n:40] = max(X[n], 0)\nout Y\nend\n"
      "program one\nin X f32 [n:40]\nY[n:40] = X[n] + 1\nout Y\nend\n"
      "in x f32 [40]\na f32 [40] = relu(x)\nb f32 [40] = one(a)\nout b\n");
  for (int threads = 1; threads <= 2; threads++) {
    const struct record_filter filter = {.threads = threads};
    const struct network_options options = {
        .machine = &machine, .log = &log, .filter = &filter, .threads = 1};
    struct network_code *code;
    CHECK_INT(network_code_new(&ctx, n, &options, &code), CANVAS_OK, ctx.message);
    CHECK_INT(code->forms.data[0].tuned, threads == 1, "of the log");
    CHECK_INT(code->forms.data[1].tuned, false, "not in the log");
    CHECK_INT(code->forms.data[0].schedule->levels.count == 3, threads == 1, "the faster one");
    network_code_free(code);
  }
  network_free(n);
  records_free(&log);
  buf_free(&here);
}

// ---- the cache ----

static char folder[64];

#define RELU "program relu\nin X f32 [n:40]\nY[n:40] = max(X[n], 0)\nout Y\nend\n"
#define RECT "program rect\nin X f32 [n:40]\nY[n:40] = max(X[n], 0)\nout Y\nend\n"
#define ONE  "program one\nin X f32 [n:40]\nY[n:40] = X[n] + 1\nout Y\nend\n"
#define TWO  "program two\nin X f32 [n:40]\nY[n:40] = X[n] + 2\nout Y\nend\n"
#define IN   "in x f32 [40]\n"

static struct compiler *compiler_in_folder(const char *command, double seconds) {
  const struct compiler_options options = {
      .command = command, .cache = folder, .seconds = seconds, .wall = seconds};
  struct compiler *c;
  if (compiler_open(&ctx, &options, &c) != CANVAS_OK) fail_msg("%s", ctx.message);
  return c;
}

static canvas_status compile(const struct compiler *c, const char *text,
                             struct network_object *out) {
  const struct machine machine = machine_here();
  const struct network_options options = {.machine = &machine, .threads = 1};
  struct network *n = network_from(text);
  struct network_code *code;
  CHECK_INT(network_code_new(&ctx, n, &options, &code), CANVAS_OK, ctx.message);
  canvas_status status = network_compile(&ctx, code, c, out);
  network_code_free(code);
  network_free(n);
  return status;
}

/* A program whose C is long enough for a file of its own: it adds `number` again and again. */
static void put_long(const char *name, int number, struct buf *out) {
  buf_printf(out, "program %s\nin X f32 [n:40]\nA0[n:40] = X[n] + %d\n", name, number);
  for (int i = 1; i < 80; i++)
    buf_printf(out, "A%d[n:40] = max(A%d[n], X[n]) + %d\n", i, i - 1, number);
  buf_puts(out, "out A79\nend\n");
}

// What is the same, under whatever name, in whatever network, is compiled once; what is little is so
// with all that is little beside it.
static const struct {
  const char *name, *programs; /* long ones, by what they add */
  const char *text;
  int made, found;
  bool cached;
} networks[] = {
    {"a", "12", IN "a f32 [40] = p1(x)\nb f32 [40] = p2(a)\nout b\n", 2, 0, false},
    {"a", "12", IN "a f32 [40] = p1(x)\nb f32 [40] = p2(a)\nout b\n", 0, 2, true},
    {"b", "13", IN "a f32 [40] = p1(x)\nb f32 [40] = p3(a)\nout b\n", 1, 1, false},
    {"c", "12", IN "a f32 [40] = p2(x)\nb f32 [40] = p1(a)\nc f32 [40] = p2(b)\nout c\n", 0, 2,
     false},
    {"d", "", RELU ONE IN "a f32 [40] = relu(x)\nb f32 [40] = one(a)\nout b\n", 2, 0, false},
    {"e", "1", RECT ONE IN "a f32 [40] = p1(x)\nb f32 [40] = rect(a)\nc f32 [40] = one(b)\nout c\n",
     2, 1, false},  // rect is in the place of a
    {"f", "3", RELU ONE IN "a f32 [40] = relu(x)\nb f32 [40] = one(a)\nc f32 [40] = p3(b)\nout c\n",
     2, 1, false},
    {"g", "", RECT TWO IN "a f32 [40] = rect(x)\nb f32 [40] = two(a)\nout b\n", 2, 0, false},
    {"h", "", RECT RELU IN "a f32 [40] = rect(x)\nb f32 [40] = relu(x)\nout a\nout b\n", 1, 0,
     false},
};

static void compiles_programs_once(void **state) {
  struct compiler *c = compiler_in_folder(NULL, 0);
  CHECK_ROWS (networks, row) {
    struct network_object object;
    struct buf text = {0};
    buf_printf(&text, "network %s\n", row->name);
    for (const char *p = row->programs; *p; p++)
      put_long((const char[]){'p', *p, '\0'}, *p - '0', &text);
    buf_puts(&text, row->text);
    CHECK_INT(compile(c, text.text, &object), CANVAS_OK, ctx.message);
    CHECK_INT(object.made, row->made, row->text);
    CHECK_INT(object.found, row->found, row->text);
    CHECK_INT(object.cached, row->cached, row->text);
    buf_free(&text);
    free(object.path);
  }
  compiler_close(c);
}

static void makes_damaged_objects_anew(void **state) {
  struct compiler *c = compiler_in_folder(NULL, 0);
  struct network_object object;
  char command[160];
  snprintf(command, sizeof command, "for f in %s/objects/*/*.so; do echo x >$f; done", folder);
  CHECK_INT(system(command), 0, command);
  static const char text[] =
      "network d\n" RELU TWO IN "a f32 [40] = two(x)\nb f32 [40] = relu(a)\nout b\n";
  CHECK_INT(compile(c, text, &object), CANVAS_OK, ctx.message);
  void *loaded = dlopen(object.path, RTLD_NOW | RTLD_LOCAL);
  CHECK(loaded && dlsym(loaded, "d_run"), text);
  dlclose(loaded);
  free(object.path);
  compiler_close(c);
}

// Compilers that work, until they see a program, or a network.
static const struct {
  const char *script, *message;
} misdeeds[] = {
    {"echo unit.c:9:9: error: tired; exit 1",
     "program 'six' of the network does not compile: '@' ended with status 1: unit.c:9:9: error: "
     "tired"},
    {"kill -9 $$",
     "program 'six' of the network does not compile: '@' was ended by SIGKILL, perhaps for lack of "
     "memory"},
    {"exit 0", "program 'six' of the network does not compile: '@' ended well but wrote no file"},
    {"exec sleep 1000",
     "program 'six' of the network does not compile: '@' ran longer than 1 s by the clock"},
    {"case $* in *@objects*) echo error: no linking today; exit 1;; esac",
     "the network does not compile: '@' ended with status 1: error: no linking today"},
};

static void put_script(const char *path, int number) {
  struct buf text = {0};
  buf_printf(&text, "#!/bin/sh\n# %d\nif grep -q 'layer_' unit.c 2>/dev/null; then\n%s\nfi\n",
             number, misdeeds[number].script);
  buf_puts(&text, "exec cc \"$@\"\n");
  CHECK_INT(file_write(&ctx, path, text.text, text.length), CANVAS_OK, path);
  chmod(path, 0755);
  buf_free(&text);
}

static void tells_what_a_compiler_does(void **state) {
  char path[128], wanted[512];
  for (size_t i = 0; i < sizeof misdeeds / sizeof *misdeeds; i++) {
    struct network_object object;
    snprintf(path, sizeof path, "%s/cc%d", folder, (int)i);
    put_script(path, (int)i);
    struct compiler *c = compiler_in_folder(path, i == 3 ? 1 : 20);
    CHECK_INT(compile(c,
                      "network e\nprogram six\nin X f32 [n:40]\nY[n:40] = X[n] + 6\n"
                      "out Y\nend\n" IN "a f32 [40] = six(x)\nout a\n",
                      &object),
              CANVAS_IO, misdeeds[i].script);
    const char *at = strchr(misdeeds[i].message, '@');
    snprintf(wanted, sizeof wanted, "%.*s%s%s", (int)(at - misdeeds[i].message),
             misdeeds[i].message, path, at + 1);
    CHECK_TEXT(ctx.message, wanted, misdeeds[i].script);
    CHECK(i == 4 ? !object.failed : object.failed[0], "a simpler schedule may do");
    mem_free(object.failed);
    compiler_close(c);
  }
}

static int open_compiler(void **state) {
  const struct compiler_options options = {
      .command = command_here, .cache = folder, .seconds = 600};
  return !temporary_folder(folder, sizeof folder) ||
         compiler_open(&ctx, &options, &compiler) != CANVAS_OK;
}

static int close_compiler(void **state) {
  char command[128];
  compiler_close(compiler);
  snprintf(command, sizeof command, "rm -rf %s", folder);
  return system(command);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(computes_what_the_interpreter_does),
      cmocka_unit_test(keeps_workspaces_apart),
      cmocka_unit_test(takes_schedules_of_a_log),
      cmocka_unit_test(compiles_programs_once),
      cmocka_unit_test(makes_damaged_objects_anew),
      cmocka_unit_test(tells_what_a_compiler_does),
  };
  return cmocka_run_group_tests(tests, open_compiler, close_compiler);
}
