// Layouts: a program with its tensors laid out otherwise computes the same elements, and so does a network whose
// values the pass lays out.
#include <stdio.h>

#include "base/random.h"
#include "net/network_interpret.h"
#include "net/passes.h"
#include "program/interpret.h"
#include "rewrite/program_relayout.h"

#include "check.h"
#include "machines.h"
#include "random_program.h"

static canvas_context ctx;

static int below(struct random *r, int count) {
  return (int)random_below(r, (uint32_t)count);
}

// ---- text ----

static const struct {
  const char *x, *y, *stage, *lines;  // the layouts of X and Y; what becomes of the stages
} rewritten[] = {
    {"[n, h, c]", NULL, "Y[n:2, c:32, h:3] = X[n, c, h] + 1",
     "in X f32 [n:2, h:3, c:32]\nin W f32 [o:4, c:32] const\nY[n:2, c:32, h:3] = X[n, h, c] + 1\n"},
    {"[n, c/16, h, c%16]", "[n, c/16, h, c%16]", "Y[n:2, c:32, h:3] = X[n, c, h] + 1",
     "in X f32 [n:2, c_o:2, h:3, c_i:16]\nin W f32 [o:4, c:32] const\n"
     "Y[n:2, c_o:2, h:3, c_i:16] = X[n, c_o, h, c_i] + 1\n"},
    {"[n, c/16, h, c%16]", "[n, h, o]", "Y[n:2, o:4, h:3] = X[n, c, h] * W[o, c] // sum c:32",
     "in X f32 [n:2, c_o:2, h:3, c_i:16]\nin W f32 [o:4, c:32] const\n"
     "Y[n:2, h:3, o:4] = X[n, c_o, h, c_i] * W[o, c_o*16+c_i] // sum c_o:2, c_i:16\n"},
    {"[n, c/16, h, c%16]", NULL, "Y[n:2, c:32] = X[n, 31-c, h] // max h:3",
     "in X f32 [n:2, c_o:2, h:3, c_i:16]\nin W f32 [o:4, c:32] const\n"
     "Y[n:2, c:32] = X[n, (31-c)/16, h, (31-c)%16] // max h:3\n"},
    {NULL, "[n, h, c]",
     "A[n:2, c:32, h:3] = X[n, c, h] * 2\nY[n:2, c:32, h:3] = A[n, c, h]\nB[n:2] = Y[n, 1, 2]",
     "in X f32 [n:2, c:32, h:3]\nin W f32 [o:4, c:32] const\nA[n:2, c:32, h:3] = X[n, c, h] * 2\n"
     "Y[n:2, h:3, c:32] = A[n, c, h]\nB[n:2] = Y[n, 2, 1]\n"},
    {"[n, h/2, c, h%2]", NULL, "Y[n:2] = X[n, 0, 0]",
     "the layout '[n, h/2, c, h%2]' of 'X' needs padding, split axes by divisors of their "
     "sizes"},
    {"[n, h]", NULL, "Y[n:2] = X[n, 0, 0]",
     "line 1, column 1: the layout has 1 of the 32 places of axis 'c'"},
};

static void rewrites_loads_and_definitions(void **state) {
  CHECK_ROWS (rewritten, row) {
    struct buf text = {0}, found = {0};
    struct program *p, *q;
    const char *layout[8] = {0};
    buf_printf(&text,
               "program p\nin X f32 [n:2, c:32, h:3]\nin W f32 [o:4, c:32] const\n%s\nout Y\n",
               row->stage);
    CHECK_INT(program_parse(&ctx, text.text, text.length, &p), CANVAS_OK, ctx.message);
    layout[0] = row->x;
    layout[program_find(p, "Y")] = row->y;
    if (program_relayout(&ctx, p, layout, &q) == CANVAS_OK) {
      buf_puts(&text, "");
      program_print(q, &found);
      const char *lines = strstr(found.text, "in X");
      CHECK(!strncmp(lines, row->lines, strlen(row->lines)), lines);
      CHECK_TEXT(lines + strlen(row->lines), "out Y\n", row->stage);
      program_free(q);
    } else
      CHECK_TEXT(ctx.message, row->lines, row->stage);
    program_free(p);
    buf_free(&text);
    buf_free(&found);
  }
  struct program *p, *q;
  static const char i32[] = "program p\nin I i32 [n:2, c:3] 0..4\nY[n:2] = real(I[n, 0])\nout Y\n";
  CHECK_INT(program_parse(&ctx, i32, strlen(i32), &p), CANVAS_OK, ctx.message);
  CHECK_INT(program_relayout(&ctx, p, (const char *[]){"[c, n]", NULL}, &q), CANVAS_BAD_INPUT,
            "i32");
  CHECK_TEXT(ctx.message, "line 1, column 1: 'I' holds indices, whose layout cannot change", "i32");
  program_free(p);
}

// ---- random programs ----

// A permutation of the axes, of which one may be in two parts.
struct form {
  int count, axis[PROGRAM_AXES];
  int64_t divisor[PROGRAM_AXES], size[PROGRAM_AXES];  // index of a place: axis / divisor % size
};

static struct form random_form(struct random *r, const struct program_tensor *t) {
  struct form f = {0};
  int split = below(r, t->rank + 1);
  for (int i = 0; i < t->rank; i++) {
    int64_t size = t->axes[i].size, block = 1;
    for (int64_t b = 2; i == split && b < size; b++)
      if (size % b == 0) block = b;
    f.axis[f.count] = i, f.divisor[f.count] = block, f.size[f.count++] = size / block;
    if (block > 1) f.axis[f.count] = i, f.divisor[f.count] = 1, f.size[f.count++] = block;
  }
  for (int i = f.count - 1; i > 0; i--) {
    int k = below(r, i + 1), axis = f.axis[i];
    int64_t divisor = f.divisor[i], size = f.size[i];
    f.axis[i] = f.axis[k], f.divisor[i] = f.divisor[k], f.size[i] = f.size[k];
    f.axis[k] = axis, f.divisor[k] = divisor, f.size[k] = size;
  }
  return f;
}

static void put_form(const struct form *f, const struct program_tensor *t, struct buf *out) {
  for (int i = 0; i < f->count; i++) {
    const struct program_axis *a = &t->axes[f->axis[i]];
    buf_printf(out, "%s%s", i ? ", " : "[", a->name);
    if (f->size[i] == a->size) continue;
    if (f->divisor[i] > 1)
      buf_printf(out, "/%d", (int)f->divisor[i]);
    else
      buf_printf(out, "%%%d", (int)f->size[i]);
  }
  buf_puts(out, "]");
}

// Where the element with this row-major number is in the layout.
static int64_t place_of(const struct form *f, const struct program_tensor *t, int64_t element) {
  int64_t index[PROGRAM_AXES], place = 0;
  for (int i = t->rank - 1; i >= 0; i--) {
    index[i] = element % t->axes[i].size;
    element /= t->axes[i].size;
  }
  for (int i = 0; i < f->count; i++)
    place = place * f->size[i] + index[f->axis[i]] / f->divisor[i] % f->size[i];
  return place;
}

enum { TENSORS = 64, PROGRAMS = 400 };

static double *values_of(const struct program *p, int output, double *const *inputs) {
  struct interpreter *in;
  int64_t count = program_elements(p, output);
  double *out = calloc((size_t)count, sizeof *out);
  CHECK_INT(interpreter_new(&ctx, p, (const double *const *)inputs, NULL, &in), CANVAS_OK,
            ctx.message);
  CHECK_INT(interpreter_elements(in, output, count, NULL, out), CANVAS_OK, ctx.message);
  interpreter_free(in);
  return out;
}

static bool same(double a, double b) {
  return a == b || (isnan(a) && isnan(b));
}

static void check_relayout(uint64_t world, int *moved) {
  struct random r;
  struct program *p = random_program(world), *q;
  struct form form[TENSORS];
  struct buf text[TENSORS] = {0};
  const char *layout[TENSORS] = {0};
  double *one[TENSORS] = {0}, *two[TENSORS] = {0};
  random_open(&r, 11, RANDOM_TEST, world);
  CHECK(p->tensors.count <= TENSORS, "there is room");
  for (int i = 0; i < p->tensors.count; i++) {
    const struct program_tensor *t = &p->tensors.data[i];
    form[i] = random_form(&r, t);
    if (t->dtype == PROGRAM_I32 || !t->rank || below(&r, 4) == 0) continue;
    put_form(&form[i], t, &text[i]);
    layout[i] = text[i].text;
    ++*moved;
  }
  CHECK_INT(program_relayout(&ctx, p, layout, &q), CANVAS_OK, ctx.message);
  for (int k = 0; k < p->inputs.count; k++) {
    int i = p->inputs.data[k];
    int64_t count = program_elements(p, i);
    one[k] = calloc((size_t)count, sizeof(double));
    two[k] = calloc((size_t)count, sizeof(double));
    program_fill(p, k, world, one[k]);
    for (int64_t e = 0; e < count; e++)
      two[k][layout[i] ? place_of(&form[i], &p->tensors.data[i], e) : e] = one[k][e];
  }
  for (int k = 0; k < p->outputs.count; k++) {
    int i = p->outputs.data[k];
    double *a = values_of(p, i, one), *b = values_of(q, q->outputs.data[k], two);
    for (int64_t e = 0; e < program_elements(p, i); e++) {
      int64_t at = layout[i] ? place_of(&form[i], &p->tensors.data[i], e) : e;
      if (!same(a[e], b[at])) {
        struct buf shown = {0};
        program_print(p, &shown);
        program_print(q, &shown);
        fail_msg("element %d is %g, not %g, of\n%s", (int)e, b[at], a[e], shown.text);
      }
    }
    free(a);
    free(b);
  }
  for (int i = 0; i < TENSORS; i++) {
    buf_free(&text[i]);
    free(one[i]);
    free(two[i]);
  }
  program_free(p);
  program_free(q);
}

static void keeps_what_random_programs_compute(void **state) {
  int moved = 0;
  for (uint64_t world = 0; world < PROGRAMS; world++) check_relayout(world, &moved);
  CHECK(moved > PROGRAMS, "tensors are laid out");
}

// ---- random networks ----

#define IMAGE "[n:1, c:32, h:5, w:5]"
static const char programs[] =
    "canvas 1\nnetwork images\n"
    "program first\nin X f32 [n:1, c:3, h:11, w:11]\nin W f32 [o:32, c:3, kh:3, kw:3] const\n"
    "Y[n:1, o:32, h:5, w:5] = X[n, c, 2*h+kh, 2*w+kw] * W[o, c, kh, kw] // sum c:3, kh:3, kw:3\n"
    "out Y\nend\n"
    "program conv\nin X f32 " IMAGE "\nin W f32 [o:32, c:32] const\nin R f32 " IMAGE
    "\n"
    "Z" IMAGE " = X[n, k, h, w] * W[c, k] // sum k:32\nY" IMAGE
    " = max(Z[n, c, h, w] + R[n, c, h, w], 0)\n"
    "out Y\nend\n"
    "program depth\nin X f32 " IMAGE
    "\nin W f32 [c:32, kh:3, kw:3] const\n"
    "Y" IMAGE
    " = if 1 <= h+kh && h+kh < 6 && 1 <= w+kw && w+kw < 6 then X[n, c, h+kh-1, w+kw-1] * "
    "W[c, kh, kw] else 0 // sum kh:3, kw:3\nout Y\nend\n"
    "program pool\nin X f32 " IMAGE
    "\n"
    "P[n:1, c:32, h:7, w:7] = if 1 <= h && h < 6 && 1 <= w && w < 6 then X[n, c, h-1, w-1] else "
    "-9\n"
    "Y" IMAGE
    " = P[n, c, h+kh, w+kw] // max kh:3, kw:3\nout Y\nend\n"
    "program both\nin X f32 " IMAGE "\nY" IMAGE " = X[n, c, h, w] * 0.5\nZ" IMAGE
    " = X[n, 31-c, w, h] + 1\nout Y\nout Z\nend\n"
    "program join\nin A f32 " IMAGE "\nin B f32 " IMAGE
    "\n"
    "Y[n:1, c:64, h:5, w:5] = if c < 32 then A[n, c, h, w] else B[n, c-32, h, w]\nout Y\nend\n"
    "program narrow\nin X f32 [n:1, c:64, h:5, w:5]\nin W f32 [o:32, c:64] const\n"
    "Y[n:1, o:32, h:5, w:5] = X[n, c, h, w] * W[o, c] // sum c:64\nout Y\nend\n"
    "program half\nin X f32 [n:1, c:64, h:5, w:5]\nY" IMAGE
    " = X[n, c+16, h, w]\nout Y\nend\n"
    "program mean\nin X f32 " IMAGE
    "\nY[n:1, c:32] = X[n, c, h, w] // mean h:5, w:5\nout Y\nend\n"
    "in image f32 [1, 3, 11, 11]\nin other f32 [1, 32, 5, 5]\nweight w3 f32 [32, 3, 3, 3]\n"
    "weight w1 f32 [32, 32]\nweight wd f32 [32, 3, 3]\nweight wn f32 [32, 64]\n"
    "v0 f32 [1, 32, 5, 5] = first(image, w3)\n";

enum { VALUES = 8, NETWORKS = 24 };

static void put_call(struct random *r, int number, struct buf *out) {
  int a = below(r, number), b = below(r, number + 1) - 1;
  char second[16] = "other";
  if (b >= 0) snprintf(second, sizeof second, "v%d", b);
  if (below(r, 3)) a = number - 1;
  switch (below(r, 6)) {
    case 0:
      buf_printf(out, "v%d f32 [1, 32, 5, 5] = conv(v%d, w1, %s)\n", number, a, second);
      break;
    case 1: buf_printf(out, "v%d f32 [1, 32, 5, 5] = depth(v%d, wd)\n", number, a); break;
    case 2: buf_printf(out, "v%d f32 [1, 32, 5, 5] = pool(v%d)\n", number, a); break;
    case 3:
      buf_printf(out, "v%d f32 [1, 32, 5, 5], u%d f32 [1, 32, 5, 5] = both(v%d)\n", number, number,
                 a);
      break;
    default:
      buf_printf(out, "j%d f32 [1, 64, 5, 5] = join(v%d, %s)\n", number, a, second);
      if (below(r, 2))
        buf_printf(out, "v%d f32 [1, 32, 5, 5] = narrow(j%d, wn)\n", number, number);
      else
        buf_printf(out, "v%d f32 [1, 32, 5, 5] = half(j%d)\n", number, number);
  }
}

static struct network *random_network(uint64_t world) {
  struct random r;
  struct buf text = {0};
  struct network *n;
  random_open(&r, 13, RANDOM_TEST, world);
  buf_puts(&text, programs);
  for (int i = 1; i < VALUES; i++) put_call(&r, i, &text);
  buf_printf(&text, "m f32 [1, 32] = mean(v%d)\nout m\nout v%d\n", VALUES - 1,
             1 + below(&r, VALUES - 1));
  CHECK_INT(network_parse(&ctx, text.text, text.length, &n), CANVAS_OK, ctx.message);
  buf_free(&text);
  return n;
}

enum { GIVEN = 6 };

// Inputs and weights, which come first, with room for the values of any pass.
static double **given_of(const struct network *n) {
  double **given = calloc(256, sizeof *given);
  for (int i = 0; i < GIVEN; i++) {
    given[i] = calloc((size_t)network_elements(&n->tensors.data[i]), sizeof(double));
    network_fill(n, i, 5, given[i]);
  }
  return given;
}

static void free_given(double **given) {
  for (int i = 0; i < GIVEN; i++) free(given[i]);
  free(given);
}

static void evaluate(const struct network *n, double *const *given, const struct memory_plan *plan,
                     double *mean, double *image) {
  CHECK_INT(
      network_interpret(&ctx, n, (const double *const *)given, plan, (double *[]){mean, image}),
      CANVAS_OK, ctx.message);
}

static void computes_the_same_in_other_layouts(void **state) {
  int last = 0, blocked = 0, converted = 0, skipped = 0;
  for (uint64_t world = 0; world < NETWORKS; world++) {
    struct network *n = random_network(world);
    double mean[2][32], image[2][32 * 25];
    struct buf text = {0};
    double **given = given_of(n);
    evaluate(n, given, NULL, mean[0], image[0]);
    CHECK_INT(network_optimize(&ctx, n, world % 2 ? "layout" : "layout dead",
                               machine_model(world % MACHINES)),
              CANVAS_OK, ctx.message);
    network_print(n, &text);
    for (int i = 0; i < n->tensors.count; i++) {
      const struct net_tensor *t = &n->tensors.data[i];
      if (t->kind != NET_VALUE) continue;
      last += t->rank == 4 && t->sizes[3] == 32;
      blocked += t->rank == 5;
      converted += !strncmp(n->programs.data[n->calls.data[t->call].program]->name, "convert", 7);
    }
    struct memory_plan plan = memory_plan_of(n);
    for (int c = 0; c < n->calls.count; c++) skipped += plan.skipped[c];
    evaluate(n, given, &plan, mean[1], image[1]);
    CHECK(!memcmp(mean[0], mean[1], sizeof mean[0]), text.text);
    CHECK(!memcmp(image[0], image[1], sizeof image[0]), text.text);
    memory_plan_free(&plan);
    free_given(given);
    network_free(n);
    buf_free(&text);
  }
  CHECK(last > 10 && blocked > 0 && converted > 0 && skipped > 0, "all of it occurs");
}

// A part of a RepVGG. As they came is the best layout of all values, but value by value what begins with channels last
// gets better than that.
static const char part[] =
    "canvas 1\n"
    "network n\n"
    "program strided\n"
    "in X f32 [n:1, c:96, h:28, w:28]\n"
    "in W f32 [o:192, c:96, kh:3, kw:3] const\n"
    "in B f32 [c:192] const\n"
    "in A f32 [n:1, c:192, h:14, w:14]\n"
    "pad[n:1, c:96, h:30, w:30] = if 1 <= h && h < 29 && 1 <= w && w < 29 then X[n, c, h-1, w-1] "
    "else 0\n"
    "Y[n:1, o:192, h:14, w:14] = pad[n, c, h*2+kh, w*2+kw] * W[o, c, kh, kw] // sum c:96, kh:3, "
    "kw:3\n"
    "Y_2[n:1, c:192, h:14, w:14] = max(A[n, c, h, w] + (Y[n, c, h, w] + B[c]), 0)\n"
    "out Y_2\n"
    "end\n"
    "program single\n"
    "in X f32 [n:1, c:192, h:14, w:14]\n"
    "in W f32 [o:192, c:192, kh:1, kw:1] const\n"
    "Y[n:1, o:192, h:14, w:14] = X[n, c, h, w] * W[o, c, 0, 0] // sum c:192\n"
    "in B f32 [c:192] const\n"
    "Y_2[n:1, c:192, h:14, w:14] = Y[n, c, h, w] + B[c]\n"
    "out Y_2\n"
    "end\n"
    "program sums\n"
    "in X f32 [n:1, c:192, h:14, w:14]\n"
    "in A f32 [c:192] const\n"
    "in B f32 [c:192] const\n"
    "in W f32 [o:192, c:192, kh:3, kw:3] const\n"
    "in B_2 f32 [c:192] const\n"
    "in A_2 f32 [n:1, c:192, h:14, w:14]\n"
    "pad[n:1, c:192, h:16, w:16] = if 1 <= h && h < 15 && 1 <= w && w < 15 then X[n, c, h-1, w-1] "
    "else 0\n"
    "Y_2[n:1, o:192, h:14, w:14] = pad[n, c, h+kh, w+kw] * W[o, c, kh, kw] // sum c:192, kh:3, "
    "kw:3\n"
    "Y[n:1, c:192, h:14, w:14] = max(A_2[n, c, h, w] + (Y_2[n, c, h, w] + B_2[c]) + (X[n, c, h, w] "
    "* A[c] + B[c]), 0)\n"
    "out Y\n"
    "end\n"
    "weight w0 f32 [192, 96, 3, 3]\n"
    "weight w1 f32 [192]\n"
    "weight w2 f32 [192]\n"
    "weight w3 f32 [192]\n"
    "weight w4 f32 [192, 192, 1, 1]\n"
    "weight w5 f32 [192]\n"
    "weight w6 f32 [192, 192, 3, 3]\n"
    "weight w7 f32 [192]\n"
    "in x f32 [1, 96, 28, 28]\n"
    "in z f32 [1, 192, 14, 14]\n"
    "a f32 [1, 192, 14, 14] = strided(x, w0, w1, z)\n"
    "b f32 [1, 192, 14, 14] = single(a, w4, w5)\n"
    "y f32 [1, 192, 14, 14] = sums(a, w2, w3, w6, w7, b)\n"
    "out y\n";

static void begins_with_every_layout_that_is_nearly_best(void **state) {
  struct network *n;
  CHECK_INT(network_parse(&ctx, part, sizeof part - 1, &n), CANVAS_OK, ctx.message);
  CHECK_INT(network_optimize(&ctx, n, "layout", &machine_avx2), CANVAS_OK, ctx.message);
  CHECK_INT((int)n->tensors.data[network_find(n, "a")].sizes[3], 192, "channels are last");
  network_free(n);
}

CHECK_MAIN(cmocka_unit_test(rewrites_loads_and_definitions),
           cmocka_unit_test(keeps_what_random_programs_compute),
           cmocka_unit_test(computes_the_same_in_other_layouts),
           cmocka_unit_test(begins_with_every_layout_that_is_nearly_best))
