// Parts of values in place: which programs only copy contiguous parts, where a plan puts these, and that networks
// compute in such an arena what they compute with memory for every value.
#include <stdio.h>

#include "base/random.h"
#include "net/copied_parts.h"
#include "net/network_interpret.h"

#include "check.h"

static canvas_context ctx;

// ---- copies ----

static const struct {
  const char *stage, *parts;  // NAME+from>to:count
} copies[] = {
    {"Y[n:2, c:8, h:4] = X[n, c, h]", "X+0>0:64"},
    {"Y[n:2, h:4, c:8] = X[n, c, h]", ""},
    {"Y[n:2, k:32] = X[n, k/4, k%4]", "X+0>0:64"},
    {"Y[k:64] = X[k/32, k/4%8, k%4]", "X+0>0:64"},
    {"Y[n:2, a:2, b:4, h:4] = X[n, a*4+b, h]", "X+0>0:64"},
    {"Y[n:2, a:2, b:4, h:4] = X[n, b*2+a, h]", ""},
    {"Y[c:8, h:4] = X[1, c, h]", "X+32>0:32"},
    {"Y[one:1, c:4, h:4] = X[one, c+2, h]", "X+8>0:16"},
    {"Y[n:2, c:4, h:4] = X[n, c, h]", ""},
    {"Y[n:2, c:8, h:4] = X[1-n, c, h]", ""},
    {"Y[n:4, c:8, h:4] = if n < 2 then X[n, c, h] else Z[n-2, c, h]", "X+0>0:64 Z+0>64:64"},
    {"Y[n:4, c:8, h:4] = if 2 <= n then X[n-2, c, h] else Z[n, c, h]", "Z+0>0:64 X+0>64:64"},
    {"Y[n:4, c:8, h:4] = if n > 1 then X[n-2, c, h] else Z[n, c, h]", "Z+0>0:64 X+0>64:64"},
    {"Y[n:4, c:8, h:4] = if 1 >= n then X[n, c, h] else Z[n-2, c, h]", "X+0>0:64 Z+0>64:64"},
    {"Y[n:4, c:8, h:4] = if 1 < n && n < 3 || n > 2 then X[n-2, c, h] else Z[n, c, h]",
     "Z+0>0:64 X+0>64:64"},
    {"Y[n:4, c:8, h:4] = if n*8+c < 16 then X[n, c, h] else Z[n-2, c, h]", "X+0>0:64 Z+0>64:64"},
    {"Y[n:4, c:8, h:4] = if n < 2 then X[n, c, h] else X[n-2, c, h]", "X+0>0:64 X+0>64:64"},
    {"Y[n:2, c:16, h:4] = if c < 8 then X[n, c, h] else Z[n, c-8, h]",
     ""},  // two images: not contiguous
    {"Y[one:1, c:16, h:4] = if c < 8 then X[one, c, h] else Z[one, c-8, h]", "X+0>0:32 Z+0>32:32"},
    {"Y[one:1, o:4, h:4, i:4] = if o*4+i < 8 then X[one, o*4+i, h] else Z[one, o*4+i-8, h]", ""},
    {"Y[one:1, o:4, h:4, i:4] = if o*4+i < 8 then B[o, h, i] else B[o-2, h, i]",
     "B+0>0:32 B+0>32:32"},
    {"Y[n:4, c:8, h:4] = if n < 2 then X[n, c, h] else 0", ""},
    {"Y[n:2, c:8, h:4] = X[n, c, h] * 1", ""},
    {"Y[n:2, c:8, h:4] = X[n, c, h] // sum k:1", ""},
    {"Y bf16 [n:2, c:8, h:4] = X[n, c, h]", ""},
    {"Y[n:2, c:8, h:4] = if h < 2 then X[n, c, h] else Z[n, c, h]", ""},
    {"Y[n:2, c:8, h:4] = if n*n < 1 then X[n, c, h] else Z[n, c, h]", ""},
    {"Y[n:2, c:8, h:4] = X[I[n], c, h]", ""},
    {"Y[n:100, h:4] = if n < 80 then X[n%2, 0, h] else X[0, 0, h]", ""},
    {"S[n:2, c:8, h:4] = X[n, c, h] + 1\nY[n:2, c:8, h:4] = S[n, c, h]", ""},
    {"Y[n:2, c:8, h:4] = if X[n, c, h] > 0 then X[n, c, h] else Z[n, c, h]", ""},
    {"Y[n:80] = X[0, 0, 0]", ""},
};

static void put_parts(const struct program *p, struct buf *out) {
  struct copied_part parts[COPIED_PARTS];
  int count = copied_parts(p, p->outputs.data[0], parts);
  for (int i = 0; i < count; i++)
    buf_printf(out, "%s%s+%d>%d:%d", i ? " " : "", p->tensors.data[parts[i].input].name,
               (int)parts[i].from, (int)parts[i].to, (int)parts[i].count);
  buf_puts(out, "");
}

static void finds_copies(void **state) {
  CHECK_ROWS (copies, row) {
    struct buf text = {0}, found = {0};
    struct program *p;
    buf_printf(&text,
               "program p\nin X f32 [n:2, c:8, h:4]\nin Z f32 [n:2, c:8, h:4]\n"
               "in I i32 [n:2] 0..2\nin B f32 [o:2, h:4, i:4]\n%s\nout Y\n",
               row->stage);
    CHECK_INT(program_parse(&ctx, text.text, text.length, &p), CANVAS_OK, ctx.message);
    put_parts(p, &found);
    CHECK_TEXT(found.text, row->parts, row->stage);
    program_free(p);
    buf_free(&found);
    buf_free(&text);
  }
}

// ---- plans ----

// Values of rows of 16 numbers, which are 64 bytes: every row may begin a part.
static void put_head(struct buf *out) {
  buf_puts(out, "canvas 1\nnetwork parts\n");
  for (int a = 1; a <= 8; a++) {
    buf_printf(
        out,
        "program grow%d\nin X f32 [n:%d, c:16]\nY[n:%d, c:16] = X[%d-n, c] * 0.5 + 1\nout Y\nend\n",
        a, a, a, a - 1);
    buf_printf(
        out,
        "program relu%d\nin X f32 [n:%d, c:16]\nY[n:%d, c:16] = max(X[n, c], 0.25)\nout Y\nend\n",
        a, a, a);
    buf_printf(out, "program flat%d\nin X f32 [n:%d, c:16]\nY[k:%d] = X[k/16, k%%16]\nout Y\nend\n",
               a, a, 16 * a);
    buf_printf(out, "program rows%d\nin X f32 [k:%d]\nY[n:%d, c:16] = X[n*16+c]\nout Y\nend\n", a,
               16 * a, a);
    for (int b = 1; a + b <= 8; b++) {
      buf_printf(out,
                 "program cat%d_%d\nin X f32 [n:%d, c:16]\nin Z f32 [n:%d, c:16]\n"
                 "Y[n:%d, c:16] = if n < %d then X[n, c] else Z[n-%d, c]\nout Y\nend\n",
                 a, b, a, b, a + b, a, a);
      buf_printf(out,
                 "program split%d_%d\nin X f32 [n:%d, c:16]\nA[n:%d, c:16] = X[n, c]\n"
                 "B[n:%d, c:16] = X[n+%d, c]\nout A, B\nend\n",
                 a, b, a + b, a, b, a);
      buf_printf(
          out, "program last%d_%d\nin X f32 [n:%d, c:16]\nY[n:%d, c:16] = X[n+%d, c]\nout Y\nend\n",
          a, b, a + b, b, a);
    }
  }
}

static struct network *network_of(const char *lines) {
  struct buf text = {0};
  struct network *n;
  put_head(&text);
  buf_puts(&text, lines);
  CHECK_INT(network_parse(&ctx, text.text, text.length, &n), CANVAS_OK, ctx.message);
  buf_free(&text);
  return n;
}

// VALUE@WHOLE+within of parts, VALUE! of what a skipped call gives.
static void put_plan(const struct network *n, const struct memory_plan *plan, struct buf *out) {
  for (int i = 0; i < n->tensors.count; i++) {
    const struct planned_value *v = &plan->values[i];
    const struct net_tensor *t = &n->tensors.data[i];
    bool skipped = t->call >= 0 && plan->skipped[t->call];
    if (v->part_of < 0 && !skipped) continue;
    buf_printf(out, "%s%s", out->length ? " " : "", t->name);
    if (v->part_of >= 0) {
      buf_printf(out, "@%s+%d", n->tensors.data[v->part_of].name, (int)v->within);
      CHECK_INT(v->offset, plan->values[v->part_of].offset + v->within, "the whole's, and within");
    }
    if (skipped) buf_puts(out, "!");
  }
  buf_puts(out, "");
}

static const struct {
  const char *lines, *plan;
} plans[] = {
    // a concatenation of what calls give, of one that is read elsewhere, too
    {"a f32 [2, 16] = grow2(x)\nb f32 [2, 16] = relu2(x)\nc f32 [4, 16] = cat2_2(a, b)\n"
     "d f32 [2, 16] = relu2(a)\ne f32 [4, 16] = cat2_2(d, d)\nf f32 [4, 16] = relu4(c)\nout e\nout "
     "f\n",
     "a@c+0 b@c+128 c!"},
    // an input, an output and the same value twice are copied
    {"a f32 [2, 16] = grow2(x)\nc f32 [4, 16] = cat2_2(a, x)\nd f32 [4, 16] = relu4(c)\nout d\n",
     ""},
    {"a f32 [2, 16] = grow2(x)\nb f32 [2, 16] = relu2(x)\nc f32 [4, 16] = cat2_2(a, b)\n"
     "d f32 [4, 16] = relu4(c)\nout d\nout b\n",
     ""},
    {"a f32 [2, 16] = grow2(x)\nc f32 [4, 16] = cat2_2(a, a)\nd f32 [4, 16] = relu4(c)\nout d\n",
     ""},
    {"a f32 [2, 16] = grow2(x)\nb f32 [2, 16] = relu2(x)\nc f32 [4, 16] = cat2_2(a, b)\nout c\n",
     ""},
    // the first concatenation has the value
    {"a f32 [2, 16] = grow2(x)\nb f32 [2, 16] = relu2(x)\nc f32 [4, 16] = cat2_2(a, b)\n"
     "d f32 [4, 16] = cat2_2(b, a)\ne f32 [4, 16] = relu4(c)\nf f32 [4, 16] = relu4(d)\nout e\nout "
     "f\n",
     "a@c+0 b@c+128 c!"},
    // one within another
    {"a f32 [2, 16] = grow2(x)\nb f32 [2, 16] = relu2(x)\nc f32 [4, 16] = cat2_2(a, b)\n"
     "d f32 [1, 16] = last1_1(x)\ne f32 [1, 16] = relu1(d)\nf f32 [5, 16] = cat1_4(e, c)\n"
     "g f32 [5, 16] = relu5(f)\nout g\n",
     "a@c+0 b@c+128 c@f+64! e@f+0 f!"},
    // split, slice and reshape
    {"a f32 [2, 16] = grow2(x)\nb f32 [1, 16], c f32 [1, 16] = split1_1(a)\nd f32 [16] = flat1(c)\n"
     "e f32 [1, 16] = rows1(d)\nf f32 [1, 16] = relu1(e)\ng f32 [1, 16] = relu1(b)\nout f\nout g\n",
     "b@a+0! c@a+64! d@c+0! e@d+0!"},
    // what is all of another value takes it along; a slice does not
    {"a f32 [2, 16] = grow2(x)\nb f32 [32] = flat2(a)\nc f32 [2, 16] = rows2(b)\nd f32 [1, 16] = "
     "relu1(y)\n"
     "e f32 [3, 16] = cat2_1(c, d)\nf f32 [3, 16] = relu3(e)\nout f\n",
     "a@e+0 b@a+0! c@b+0! d@e+128 e!"},
    {"a f32 [2, 16] = grow2(x)\nb f32 [1, 16] = last1_1(a)\nd f32 [1, 16] = relu1(y)\n"
     "e f32 [2, 16] = cat1_1(b, d)\nf f32 [2, 16] = relu2(e)\nout f\n",
     "b@a+64!"},
    // one of two results is an output
    {"a f32 [2, 16] = grow2(x)\nb f32 [1, 16], c f32 [1, 16] = split1_1(a)\nout b\n", ""},
    // what weights give is elsewhere
    {"a f32 [1, 16] = relu1(w)\nb f32 [16] = flat1(a)\nc f32 [1, 16] = rows1(b)\nd f32 [2, 16] = "
     "cat1_1(c, y)\n"
     "out d\n",
     ""},
};

static void puts_parts_in_place(void **state) {
  CHECK_ROWS (plans, row) {
    struct buf lines = {0}, found = {0};
    buf_printf(&lines, "in x f32 [2, 16]\nin y f32 [1, 16]\nweight w f32 [1, 16]\n%s", row->lines);
    struct network *n = network_of(lines.text);
    struct memory_plan plan = memory_plan_of(n);
    put_plan(n, &plan, &found);
    CHECK_TEXT(found.text, row->plan, row->lines);
    memory_plan_free(&plan);
    network_free(n);
    buf_free(&lines);
    buf_free(&found);
  }
}

// A part that does not begin at a multiple of the alignment is copied.
static void keeps_the_alignment(void **state) {
  struct network *n = network_of(
      "program half\nin X f32 [n:2, c:16]\nY[k:24] = X[(k+8)/16, (k+8)%16]\nout Y\nend\n"
      "program two\nin X f32 [k:24]\nY[k:24] = X[k] * 2\nout Y\nend\n"
      "in x f32 [2, 16]\na f32 [2, 16] = grow2(x)\nb f32 [24] = half(a)\nc f32 [24] = two(b)\nout "
      "c\n");
  struct memory_plan plan = memory_plan_of(n);
  CHECK_INT(plan.skipped[1], false, "32 bytes");
  memory_plan_free(&plan);
  network_free(n);
}

// ---- random networks ----

enum { VALUES = 16, WORLDS = 400 };

static int below(struct random *r, int count) {
  return (int)random_below(r, (uint32_t)count);
}

// Values by their rows; negative: flat.
struct made {
  int rows[2 * VALUES + 2], count;
};

static void put_value(struct made *m, int rows, struct buf *out) {
  if (rows < 0)
    buf_printf(out, "v%d f32 [%d]", m->count, -16 * rows);
  else
    buf_printf(out, "v%d f32 [%d, 16]", m->count, rows);
  m->rows[m->count++] = rows;
}

static void put_unary(struct made *m, const char *program, int from, int rows, struct buf *out) {
  int k = m->rows[from] < 0 ? -m->rows[from] : m->rows[from];
  put_value(m, rows, out);
  buf_printf(out, " = %s%d(v%d)\n", program, k, from);
}

static void put_call(struct random *r, struct made *m, struct buf *out) {
  int from = m->count - 1 - below(r, m->count < 5 ? m->count : 5), rows = m->rows[from];
  int other = below(r, m->count), what = below(r, 7), more = m->rows[other];
  if (rows < 0)
    put_unary(m, "rows", from, -rows, out);
  else if (what < 3 && more > 0 && rows + more <= 8) {
    put_value(m, rows + more, out);
    buf_printf(out, " = cat%d_%d(v%d, v%d)\n", rows, more, from, other);
  } else if (what == 3 && rows > 1) {
    int first = 1 + below(r, rows - 1);
    put_value(m, first, out);
    buf_puts(out, ", ");
    put_value(m, rows - first, out);
    buf_printf(out, " = split%d_%d(v%d)\n", first, rows - first, from);
  } else if (what == 4 && rows > 1) {
    int first = 1 + below(r, rows - 1);
    put_value(m, rows - first, out);
    buf_printf(out, " = last%d_%d(v%d)\n", first, rows - first, from);
  } else if (what == 5)
    put_unary(m, "flat", from, -rows, out);
  else
    put_unary(m, below(r, 2) ? "relu" : "grow", from, rows, out);
}

static void make_random(struct random *r, struct buf *out) {
  struct made m = {{2, 1}, 2};
  buf_puts(out, "in v0 f32 [2, 16]\nin v1 f32 [1, 16]\n");
  for (int i = 0; i < VALUES; i++) put_call(r, &m, out);
  int last = m.count - 1;
  buf_printf(out, "out v%d\nout v%d\n", last, 2 + below(r, last - 2));
}

static void run_both(const struct network *n, const struct memory_plan *plan, uint64_t world,
                     const char *text) {
  double x[32], y[16], one[2][128], two[2][128];
  const double *given[2 * VALUES + 2] = {x, y};
  network_fill(n, 0, world, x);
  network_fill(n, 1, world, y);
  CHECK_INT(network_interpret(&ctx, n, given, NULL, (double *[]){one[0], one[1]}), CANVAS_OK, text);
  CHECK_INT(network_interpret(&ctx, n, given, plan, (double *[]){two[0], two[1]}), CANVAS_OK, text);
  for (int k = 0; k < 2; k++) {
    int64_t elements = network_elements(&n->tensors.data[n->outputs.data[k]]);
    CHECK(!memcmp(one[k], two[k], (size_t)elements * sizeof(double)), text);
  }
}

static void plans_of_random_networks(void **state) {
  int parts = 0, skipped = 0, in_place = 0;
  for (uint64_t world = 0; world < WORLDS; world++) {
    struct random r;
    struct buf text = {0};
    random_open(&r, 7, RANDOM_TEST, world);
    make_random(&r, &text);
    struct network *n = network_of(text.text);
    struct memory_plan plan = memory_plan_of(n);
    for (int i = 0; i < n->tensors.count; i++) {
      parts += plan.values[i].part_of >= 0;
      in_place += plan.values[i].in_place_of >= 0;
    }
    for (int c = 0; c < n->calls.count; c++) skipped += plan.skipped[c];
    run_both(n, &plan, world, text.text);
    memory_plan_free(&plan);
    network_free(n);
    buf_free(&text);
  }
  CHECK(parts > WORLDS && skipped > WORLDS && in_place > WORLDS / 4, "all of it occurs");
}

CHECK_MAIN(cmocka_unit_test(finds_copies), cmocka_unit_test(puts_parts_in_place),
           cmocka_unit_test(keeps_the_alignment), cmocka_unit_test(plans_of_random_networks))
