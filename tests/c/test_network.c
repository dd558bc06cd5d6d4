// Networks: text, rules, meaning, and the memory that a plan gives them. A plan is right where the network
// computes in its arena what it computes with memory for every value: random networks say so.
#include <stdio.h>

#include "base/random.h"
#include "net/network_interpret.h"

#include "check.h"

static canvas_context ctx;

#define PROGRAMS                                 \
  "canvas 1\n"                                   \
  "network small\n"                              \
  "program relu\n"                               \
  "in X f32 [n:2, c:3]\n"                        \
  "Y[n:2, c:3] = max(X[n, c], 0)\n"              \
  "out Y\n"                                      \
  "end\n"                                        \
  "program add\n"                                \
  "in A f32 [n:2, c:3]\n"                        \
  "in B f32 [n:2, c:3]\n"                        \
  "Y[n:2, c:3] = A[n, c] + B[n, c]\n"            \
  "out Y\n"                                      \
  "end\n"                                        \
  "program linear\n"                             \
  "in X f32 [n:2, c:3]\n"                        \
  "in W f32 [o:3, c:3] const\n"                  \
  "Y[n:2, o:3] = X[n, c] * W[o, c] // sum c:3\n" \
  "out Y\n"                                      \
  "end\n"                                        \
  "program pick\n"                               \
  "in T f32 [r:5, c:3]\n"                        \
  "in I i32 [n:2] 0..5\n"                        \
  "Y[n:2, c:3] = T[I[n], c]\n"                   \
  "out Y\n"                                      \
  "end\n"                                        \
  "program both\n"                               \
  "in X f32 [n:2, c:3]\n"                        \
  "Y[n:2, c:3] = X[n, c] + 1\n"                  \
  "Z[n:2, c:3] = X[n, c] - 1\n"                  \
  "out Y\n"                                      \
  "out Z\n"                                      \
  "end\n"
#define GIVEN                                  \
  "in x f32 [2, 3]\n"                          \
  "in i i32 [2] 0..5\n"                        \
  "weight w f32 [3, 3] from layer1.0.weight\n" \
  "weight t f32 [5, 3]\n"

static struct network *network_from(const char *text) {
  struct network *n;
  CHECK_INT(network_parse(&ctx, text, strlen(text), &n), CANVAS_OK, ctx.message);
  return n;
}

// ---- text ----

static void prints_what_it_parsed(void **state) {
  static const char text[] = PROGRAMS GIVEN
      "a f32 [2, 3] = linear(x, w)\n"
      "b f32 [2, 3] = pick(t, i)\n"
      "c f32 [2, 3], d f32 [2, 3] = both(a)\n"
      "e f32 [2, 3] = add(c, b)\n"
      "out e\n"
      "out d\n";
  struct network *n = network_from(text);
  struct buf out = {0};
  network_print(n, &out);
  CHECK_TEXT(out.text, text, "canonical");
  CHECK_INT(network_find(n, "e"), 8, "by name");
  CHECK_INT(network_find(n, "f"), -1, "by name");
  CHECK_INT(network_find_program(n, "both"), 4, "by name");
  buf_free(&out);
  network_free(n);
}

static const struct {
  const char *lines, *message;
} bad[] = {
    {"", "network 'small' has no output, say 'out' and a value"},
    {"out x\n", "'x' is not computed, an output is what a call gives"},
    {"a f32 [2, 3] = relu(x)\nout a\nout a\n", "'a' is an output twice"},
    {"a f32 [2, 3] = relu(y)\nout a\n", "line 37, column 21: unknown tensor 'y'"},
    {"a f32 [2, 3] = relu(a)\nout a\n", "line 37, column 1: 'a' is read before it is computed"},
    {"a f32 [2, 3] = rely(x)\nout a\n", "line 37, column 16: unknown program 'rely'"},
    {"a f32 [2, 3] = relu(x, x)\nout a\n",
     "line 37, column 1: program 'relu' has 1 input, this call has 2"},
    {"a f32 [2, 3], b f32 [2, 3] = relu(x)\nout a\n",
     "line 37, column 1: program 'relu' has 1 output, this call has 2"},
    {"a f32 [3, 2] = relu(x)\nout a\n",
     "line 37, column 1: tensor 'a' is f32 [3, 2], but 'Y' of program 'relu' is f32 [2, 3]"},
    {"a bf16 [2, 3] = relu(x)\nout a\n",
     "line 37, column 1: tensor 'a' is bf16 [2, 3], but 'Y' of program 'relu' is f32 [2, 3]"},
    {"a f32 [2, 3] = relu(w)\nout a\n",
     "line 37, column 1: tensor 'w' is f32 [3, 3], but 'X' of program 'relu' is f32 [2, 3]"},
    {"in v f32 [3, 3]\na f32 [2, 3] = linear(x, v)\nout a\n",
     "line 38, column 1: 'W' of program 'linear' is constant, 'v' has to be a weight or computed "
     "of "
     "weights alone"},
    {"a f32 [2, 3] = pick(t, i)\nprogram l\nin X f32 [n:2, c:3]\nin V f32 [n:2, c:3] const\n"
     "Y[n:2, c:3] = X[n, c] * V[n, c]\nout Y\nend\nb f32 [2, 3] = l(x, a)\nout b\n",
     "line 44, column 1: 'V' of program 'l' is constant, 'a' has to be a weight or computed of "
     "weights alone"},
    {"in j i32 [2] 0..6\na f32 [2, 3] = pick(t, j)\nout a\n",
     "line 38, column 1: tensor 'j' ranges over 0..6, 'I' of program 'pick' takes 0..5"},
    {"in j i32 [2] 5..5\n", "line 37, column 14: the range of 'j' is empty or leaves i32"},
    {"in j i32 [2]\n",
     "line 37, column 13: expected the range of a tensor of i32, 'LOW..HIGH', found the end of the "
     "line"},
    {"in x f32 [2]\n", "line 37, column 4: 'x' is defined twice, first on line 33"},
    {"in y f32 [0]\n",
     "tensor 'y' has the size 0, sizes are positive and their product is at most "
     "2^40"},
    {"in y f32 [1048576, 1048577]\n",
     "tensor 'y' has the size 1048577, sizes are positive and their product is at most 2^40"},
    {"in y f16 [2]\n",
     "line 37, column 6: expected a data type (f32, f64, bf16 or i32), found 'f16'"},
    {"in y f32 [a]\n", "line 37, column 11: expected a size, found 'a'"},
    {"in y f32 [2] from z\n",
     "line 37, column 14: 'y' is an input, only a weight comes from a name"},
    {"weight y f32 [2] from\n",
     "line 37, column 22: expected where the weight comes from, found the end of the line"},
    {"a i32 [2, 3] = relu(x)\nout a\n",
     "line 37, column 1: tensor 'a' is i32 [2, 3], but 'Y' of program 'relu' is f32 [2, 3]"},
    {"in end f32 [2]\n", "'end' is a word of the language, rename the tensor"},
    {"[",
     "line 37, column 1: expected 'program', 'in', 'weight', 'out' or the name of a value, "
     "found '['"},
    {"program add\nin X f32 [n:2]\nY[n:2] = X[n]\nout Y\nend\n",
     "line 37, column 1: two programs have the name 'add', rename one"},
    {"program s\nin X f32 [n:2]\nY[n:2] = X[n]\nout Y\n",
     "line 41, column 1: expected 'end' after the program, found the end of the text"},
    {"program s.t\nin X f32 [n:2]\nY[n:2] = X[n]\nout Y\nend\na f32 [2, 3] = relu(x)\nout a\n",
     "'s.t' cannot name a program, take letters, digits and _, at most 128"},
    {"program s\nin X f32 [n:2]\nY[n:2] = Z[n]\nout Y\nend\n",
     "line 39, column 10: unknown tensor 'Z', define it on an earlier line"},
    {"f16\n",
     "line 37, column 4: expected a data type (f32, f64, bf16 or i32), found the end of the line"},
    {"in 3\n", "line 37, column 4: expected the name of a tensor, found '3'"},
    {"in y f32 2\n", "line 37, column 10: expected '[' and the sizes, found '2'"},
    {"in y f32 [2\n",
     "line 37, column 12: expected ']' after the sizes, found the end of the line"},
    {"in y f32 [2] 3\n",
     "line 37, column 14: expected the end of the line after the tensor, found '3'"},
    {"a f32 [2, 3] relu(x)\n",
     "line 37, column 14: expected '=' and the program that computes it, found 'relu'"},
    {"a f32 [2, 3] = relu x\n", "line 37, column 21: expected '(' and the arguments, found 'x'"},
    {"a f32 [2, 3] = relu(x x)\n",
     "line 37, column 23: expected ')' after the arguments, found 'x'"},
    {"a f32 [2, 3] = relu(x) x\n",
     "line 37, column 24: expected the end of the line after the call, found 'x'"},
    {"a f32 [2, 3] = 3\n", "line 37, column 16: expected the name of a program, found '3'"},
    {"out x x\n", "line 37, column 7: expected the end of the line after the outputs, found 'x'"},
    {"in y f32 [1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1]\n",
     "line 37, column 75: more than 32 sizes"},
    {"program s\nin X f32 [n:2]\nY[n:2] = X[n]\nout Y\nend 3\n",
     "line 41, column 5: expected '[' and the axes of a stage, or a line that begins with 'in' or "
     "'out', found '3'"},
    {"program rise\nin P i32 [n:3] 0..4 rising\nY[n:3] = real(P[n])\nout Y\nend\n"
     "in p i32 [3] 0..4\na f32 [3] = rise(p)\nout a\n",
     "line 43, column 1: 'P' of program 'rise' rises from 0 to 3, so has 'p' to"},
    {"program end\nin X f32 [n:2]\nY[n:2] = X[n]\nout Y\nend\na f32 [2, 3] = relu(x)\nout a\n",
     "'end' is a word of the language, rename the program"},
};

static void says_what_is_wrong(void **state) {
  CHECK_ROWS (bad, row) {
    struct buf text = {0};
    struct network *n;
    buf_printf(&text, "%s%s%s", PROGRAMS, GIVEN, row->lines);
    CHECK_INT(network_parse(&ctx, text.text, text.length, &n), CANVAS_BAD_INPUT, row->lines);
    CHECK_TEXT(ctx.message, row->message, row->lines);
    buf_free(&text);
  }
}

static void wants_a_header(void **state) {
  static const struct {
    const char *text, *message;
  } rows[] = {
      {"", "line 1, column 1: expected 'network' and its name, found the end of the text"},
      {"canvas 2\n", "line 1, column 8: unknown version '2', this is version 1"},
      {"canvas x\n", "line 1, column 8: expected the version, 'canvas 1', found 'x'"},
      {"network 3\n", "line 1, column 9: expected the name of the network, found '3'"},
      {"network a b\n",
       "line 1, column 11: expected the end of the line after the name of the network, found 'b'"},
  };
  struct network *n;
  CHECK_ROWS (rows, row) {
    CHECK_INT(network_parse(&ctx, row->text, strlen(row->text), &n), CANVAS_BAD_INPUT, row->text);
    CHECK_TEXT(ctx.message, row->message, row->text);
  }
}

// What a builder may do and no text can say.
static void verifies_what_was_built(void **state) {
  struct network *n = network_from(PROGRAMS GIVEN "a f32 [2, 3] = relu(x)\nout a\n");
  network_result(n, network_call(n, 0), network_find(n, "a"));
  network_argument(n, 1, network_find(n, "x"));
  CHECK_INT(network_verify(&ctx, n), CANVAS_BAD_INPUT, "two calls give a");
  CHECK_TEXT(ctx.message, "'a' is computed twice, each call gives new values", "twice");
  network_free(n);
  n = network_from(PROGRAMS GIVEN "a f32 [2, 3] = relu(x)\nout a\n");
  n->tensors.data[network_find(n, "a")].dtype = PROGRAM_I32;
  CHECK_INT(network_verify(&ctx, n), CANVAS_BAD_INPUT, "a value of i32");
  CHECK_TEXT(ctx.message, "'a' is of i32, which only inputs and weights may be", "i32");
  network_free(n);
  n = network_from(PROGRAMS GIVEN "a f32 [2, 3] = relu(x)\nout a\n");
  for (int i = 0; i <= NETWORK_CALLS; i++) network_call(n, 0);
  CHECK_INT(network_verify(&ctx, n), CANVAS_BAD_INPUT, "many calls");
  CHECK_TEXT(ctx.message,
             "network 'small' is too large, at most 4096 programs, 16384 tensors and 8192 calls",
             "many calls");
  network_free(n);
}

// A line NETWORK_x times is the last that is taken.
static void is_bounded(void **state) {
  static const struct {
    const char *line, *message;
    int times;
  } rows[] = {
      {"program p%d\nin X f32 [n:1]\nY[n:1] = X[n]\nout Y\nend\n",
       "line 20483, column 1: more than 4096 programs", NETWORK_PROGRAMS},
      {"in t%d f32 []\n", "line 16387, column 4: more than 16384 tensors", NETWORK_TENSORS},
  };
  CHECK_ROWS (rows, row) {
    struct buf text = {0};
    struct network *n;
    buf_puts(&text, "canvas 1\nnetwork n\n");
    for (int i = 0; i <= row->times; i++) buf_printf(&text, row->line, i);
    CHECK_INT(network_parse(&ctx, text.text, text.length, &n), CANVAS_BAD_INPUT, row->line);
    CHECK_TEXT(ctx.message, row->message, row->line);
    buf_free(&text);
  }
  struct buf text = {0};
  struct network *n;
  buf_puts(&text,
           "network n\nprogram p\nin X f32 [n:1]\nY[n:1] = X[n]\nout Y\nend\nin x f32 [1]\n");
  for (int i = 0; i <= NETWORK_CALLS; i++) buf_printf(&text, "v%d f32 [1] = p(x)\n", i);
  CHECK_INT(network_parse(&ctx, text.text, text.length, &n), CANVAS_BAD_INPUT, "calls");
  CHECK_TEXT(ctx.message, "line 8200, column 1: more than 8192 calls", "calls");
  buf_free(&text);
}

// ---- meaning ----

static void computes_call_by_call(void **state) {
  struct network *n = network_from(PROGRAMS GIVEN
                                   "a f32 [2, 3] = linear(x, w)\n"
                                   "b f32 [2, 3] = pick(t, i)\n"
                                   "c f32 [2, 3], d f32 [2, 3] = both(a)\n"
                                   "e f32 [2, 3] = add(c, b)\n"
                                   "out d\n"
                                   "out e\n");
  const double x[] = {1, 2, 3, 4, 5, 6}, i[] = {4, 0}, w[] = {0, 1, 0, 1, 0, 0, 0, 0, 2};
  double t[15], d[6], e[6];
  for (int k = 0; k < 15; k++) t[k] = 100 + k;
  const double *given[9] = {x, i, w, t};
  double *out[] = {d, e};
  CHECK_INT(network_interpret(&ctx, n, given, NULL, out), CANVAS_OK, ctx.message);
  static const double a[] = {2, 1, 6, 5, 4, 12}, b[] = {112, 113, 114, 100, 101, 102};
  for (int k = 0; k < 6; k++) {
    CHECK(d[k] == a[k] - 1, "d");
    CHECK(e[k] == a[k] + 1 + b[k], "e");
  }
  const double outside[] = {4, 5};
  given[1] = outside;
  CHECK_INT(network_interpret(&ctx, n, given, NULL, out), CANVAS_BAD_INPUT, "an index too large");
  CHECK_TEXT(ctx.message, "element 1 of input 'I' is 5, it has to be a whole number from 0 to 4",
             "an index");
  network_free(n);
}

// Of weights alone, by way of calls: it may be constant to a program, and is not in the arena.
static void knows_what_is_constant(void **state) {
  static const char text[] =
      "network n\nprogram twice\nin X f32 [n:3]\nY[n:3] = X[n] * 2\nout Y\nend\n"
      "program scale\nin X f32 [n:3]\nin W f32 [n:3] const\nY[n:3] = X[n] * W[n]\nout Y\nend\n"
      "program one\nY[n:3] = real(n)\nout Y\nend\n"
      "in x f32 [3]\nweight w f32 [3]\n"
      "a f32 [3] = twice(w)\nb f32 [3] = twice(a)\nc f32 [3] = scale(x, b)\nd f32 [3] = one()\n"
      "e f32 [3] = scale(c, d)\nf f32 [3] = twice(e)\nout f\nout b\n";
  static const bool constant[] = {false, true, true, true, false, true, false, false};
  struct network *n = network_from(text);
  struct memory_plan plan = memory_plan_of(n);
  for (int i = 0; i < n->tensors.count; i++) {
    CHECK_INT(network_constant(n, i), constant[i], n->tensors.data[i].name);
    CHECK_INT(plan.values[i].offset >= 0, i == 4 || i == 6, n->tensors.data[i].name);
  }
  const double x[] = {1, 2, 3}, w[] = {5, 6, 7}, *given[8] = {x, w};
  double f[3], b[3], *out[] = {f, b};
  for (int planned = 0; planned < 2; planned++) {
    CHECK_INT(network_interpret(&ctx, n, given, planned ? &plan : NULL, out), CANVAS_OK, "run");
    for (int k = 0; k < 3; k++) {
      CHECK(b[k] == 4 * w[k], "b");
      CHECK(f[k] == 2 * k * x[k] * b[k], "f");
    }
  }
  memory_plan_free(&plan);
  network_free(n);
}

static void wants_memory_that_is_there(void **state) {
  struct network *n = network_from(
      "network n\nprogram grow\nin X f32 [n:1]\nY[n:1099511627776] = X[0]\nout Y\nend\n"
      "program take\nin X f32 [n:1099511627776]\nY[n:1] = X[0]\nout Y\nend\n"
      "in x f32 [1]\ny f32 [1099511627776] = grow(x)\nz f32 [1] = take(y)\nout z\n");
  double x = 1, z;
  struct memory_plan plan = memory_plan_of(n);
  CHECK_INT(network_interpret(&ctx, n, (const double *[]){&x, NULL, NULL}, NULL, (double *[]){&z}),
            CANVAS_IO, "8 TB");
  CHECK_TEXT(ctx.message, "network 'n' needs more memory than there is", "8 TB");
  CHECK_INT(network_interpret(&ctx, n, (const double *[]){&x, NULL, NULL}, &plan, (double *[]){&z}),
            CANVAS_IO, "8 TB in an arena");
  memory_plan_free(&plan);
  network_free(n);
}

// A slice that is read where it is, behind the first 64 bytes; and values of two concatenations, which lie in the
// first of them and are copied to the other.
static void parts_lie_within(void **state) {
  static const char text[] =
      "network n\nprogram twice\nin X f32 [n:32]\nY[n:32] = X[n] * 2\nout Y\nend\n"
      "program low\nin X f32 [n:32]\nY[n:16] = X[n]\nout Y\nend\n"
      "program high\nin X f32 [n:32]\nY[n:16] = X[n+16]\nout Y\nend\n"
      "program less\nin A f32 [n:16]\nin B f32 [n:16]\nY[n:16] = A[n] - B[n] * 3\nout Y\nend\n"
      "program cat\nin A f32 [n:16]\nin B f32 [n:16]\n"
      "Y[n:32] = if n < 16 then A[n] else B[n-16]\nout Y\nend\n"
      "in x f32 [32]\na f32 [32] = twice(x)\nb f32 [16] = low(a)\nc f32 [16] = high(a)\n"
      "d f32 [16] = less(b, c)\ne f32 [16] = less(c, b)\nf f32 [32] = cat(d, e)\n"
      "g f32 [32] = cat(e, d)\nh f32 [32] = twice(f)\ni f32 [32] = twice(g)\nout h\nout i\n";
  struct network *n = network_from(text);
  struct memory_plan plan = memory_plan_of(n);
  const struct planned_value *v = plan.values;  // x, a, b, c, d, ..
  CHECK_INT(v[2].part_of == 1 && v[3].part_of == 1, true, "slices");
  CHECK_INT(v[3].offset - v[1].offset, 64, "the second half");
  CHECK_INT(v[4].part_of == 6 && v[5].part_of == 6, true, "in the first concatenation");
  CHECK_INT(plan.skipped[5] && !plan.skipped[6], true, "the second one copies");
  double x[32], h[32], i[32], *out[] = {h, i};
  const double *given[10] = {x};
  for (int k = 0; k < 32; k++) x[k] = k * k;
  for (int planned = 0; planned < 2; planned++) {
    CHECK_INT(network_interpret(&ctx, n, given, planned ? &plan : NULL, out), CANVAS_OK, "run");
    for (int k = 0; k < 16; k++) {
      CHECK(h[k] == 4 * (x[k] - 3 * x[k + 16]) && h[k + 16] == 4 * (x[k + 16] - 3 * x[k]), "h");
      CHECK(i[k] == h[k + 16] && i[k + 16] == h[k], "i");
    }
  }
  memory_plan_free(&plan);
  network_free(n);
}

// ---- in place ----

static const struct {
  const char *text;
  bool legal; /* of the last output in the place of X */
} places[] = {
    {"Y[n:2, c:3] = max(X[n, c], 0)\nout Y\n", true},
    {"Y[n:2, c:3] = X[n, c] * Z[c, n] + X[n, c]\nout Y\n", true},
    {"Y[n:2, c:3] = X[1-n, c]\nout Y\n", false},
    {"Y[n:2, c:3] = X[n, c] + X[n, 0]\nout Y\n", false},
    {"Y bf16 [n:2, c:3] = X[n, c]\nout Y\n", false},
    {"Y[c:3, n:2] = X[n, c]\nout Y\n", false},
    {"S[n:2] = X[n, c] // sum c:3\nY[n:2, c:3] = X[n, c] - S[n]\nout Y\n", false},
    {"S[c:3] = Z[c, n] // sum n:2\nY[n:2, c:3] = X[n, c] - S[c]\nout Y\n", true},
    {"Y[n:2, c:3] = X[n, c] * Z[k, n] // sum k:3\nout Y\n", false},
    {"Y[n:2, c:3] = X[n, c] + 1\nV[n:2] = Y[n, c] // sum c:3\nout V\nout Y\n", false},
    {"V[n:2] = X[n, 0]\nY[n:2, c:3] = X[n, c] + 1\nout V\nout Y\n", false},
    {"Y[n:2, c:3] = if n < 1 then X[n, c] else X[n, 2-c]\nout Y\n", false},
    {"Y[n:2, c:3] = Z[c, n]\nout Y\n", true},  // it is not read at all
};

static void is_in_place_element_by_element(void **state) {
  CHECK_ROWS (places, row) {
    struct buf text = {0};
    struct program *p;
    buf_printf(&text, "canvas 1\nprogram p\nin X f32 [n:2, c:3]\nin Z f32 [c:3, n:2]\n%s",
               row->text);
    CHECK_INT(program_parse(&ctx, text.text, text.length, &p), CANVAS_OK, ctx.message);
    int output = p->outputs.data[p->outputs.count - 1];
    CHECK_INT(program_in_place(p, output, p->inputs.data[0]), row->legal, row->text);
    program_free(p);
    buf_free(&text);
  }
}

// ---- memory ----

static void plans_by_hand(void **state) {
  struct network *n = network_from(PROGRAMS GIVEN
                                   "a f32 [2, 3] = linear(x, w)\n"  // 0
                                   "b f32 [2, 3] = relu(a)\n"       // 1: in the place of a
                                   "c f32 [2, 3] = linear(b, w)\n"  // 2
                                   "d f32 [2, 3] = add(c, b)\n"     // 3: of c, or of b
                                   "e f32 [2, 3] = add(d, d)\n"     // 4: given twice: not of d
                                   "f f32 [2, 3] = relu(e)\n"       // 5: an output
                                   "out f\n");
  struct memory_plan plan = memory_plan_of(n);
  const struct planned_value *v = plan.values + 4;
  CHECK_INT(v[1].in_place_of, 4, "b");
  CHECK_INT(v[2].in_place_of, -1, "c reads b, which lives on");
  CHECK_INT(v[3].in_place_of, 6, "d");
  CHECK_INT(v[4].in_place_of, -1, "e");
  CHECK_INT(v[5].offset, -1, "an output is the caller's");
  CHECK_INT(plan.values[0].offset, -1, "so is an input");
  CHECK_INT(v[0].last, 1, "a");
  CHECK_INT(v[1].last, 3, "b");
  CHECK_INT(plan.unshared, 5 * PLAN_ALIGNMENT, "apart");
  CHECK_INT(plan.least, 2 * PLAN_ALIGNMENT, "least");
  CHECK_INT(plan.bytes, 2 * PLAN_ALIGNMENT, "planned");
  memory_plan_free(&plan);
  network_free(n);
}

enum { CHAIN = 12, WORLDS = 200 };

static int below(struct random *r, int count) {
  return (int)random_below(r, (uint32_t)count);
}

// Two values of an arena that live at once overlap only where one takes the other's place.
static void check_apart(const struct network *n, const struct memory_plan *plan, const char *text) {
  for (int a = 0; a < n->tensors.count; a++)
    for (int b = 0; b < a; b++) {
      const struct planned_value *x = &plan->values[a], *y = &plan->values[b];
      if (x->offset < 0 || y->offset < 0 || x->first > y->last || y->first > x->last) continue;
      bool apart = x->offset + x->bytes <= y->offset || y->offset + y->bytes <= x->offset;
      CHECK(apart || (x->in_place_of == b && x->first == y->last), text);
    }
}

// Sizes differ: rows are doubled and halved.
static void make_random(struct random *r, struct buf *text) {
  int rows[CHAIN + 1] = {4}, most = 0;
  buf_puts(text, "canvas 1\nnetwork random\n");
  for (int rows_of = 1; rows_of <= 16; rows_of *= 2) {
    int k = rows_of;
    buf_printf(text,
               "program relu%d\nin X f32 [n:%d, c:5]\nY[n:%d, c:5] = max(X[n, c], -0.5)\n"
               "out Y\nend\n",
               k, k, k);
    buf_printf(text,
               "program add%d\nin A f32 [n:%d, c:5]\nin B f32 [n:%d, c:5]\n"
               "Y[n:%d, c:5] = A[n, c] * 2 + B[n, c]\nout Y\nend\n",
               k, k, k, k);
    buf_printf(text,
               "program turn%d\nin X f32 [n:%d, c:5]\nY[n:%d, c:5] = X[%d-n, 4-c] + 1\n"
               "out Y\nend\n",
               k, k, k, k - 1);
    if (k < 16)
      buf_printf(text,
                 "program twice%d\nin X f32 [n:%d, c:5]\nY[n:%d, c:5] = X[n/2, c] + real(n%%2)\n"
                 "out Y\nend\n",
                 k, k, 2 * k);
    if (k > 1)
      buf_printf(text,
                 "program half%d\nin X f32 [n:%d, c:5]\n"
                 "Y[n:%d, c:5] = X[n*2+k, c] // sum k:2\nout Y\nend\n",
                 k, k, k / 2);
  }
  buf_puts(text, "in v0 f32 [4, 5]\n");
  for (int i = 1; i <= CHAIN; i++) {
    int from = i - 1 - below(r, i < 4 ? i : 4), other = below(r, i), k = rows[from];
    int what = below(r, 5);
    rows[i] = what == 3 && k < 16 ? 2 * k : what == 4 && k > 1 ? k / 2 : k;
    buf_printf(text, "v%d f32 [%d, 5] = ", i, rows[i]);
    if (what == 0 && rows[other] == k)
      buf_printf(text, "add%d(v%d, v%d)\n", k, from, other);
    else if (rows[i] > k)
      buf_printf(text, "twice%d(v%d)\n", k, from);
    else if (rows[i] < k)
      buf_printf(text, "half%d(v%d)\n", k, from);
    else
      buf_printf(text, "%s%d(v%d)\n", what == 1 ? "turn" : "relu", k, from);
    most = i;
  }
  buf_printf(text, "out v%d\nout v%d\n", most, 1 + below(r, CHAIN - 1));
}

static void plans_of_random_networks(void **state) {
  int shared = 0, in_place = 0;
  for (uint64_t world = 0; world < WORLDS; world++) {
    struct random r;
    struct buf text = {0};
    random_open(&r, 5, RANDOM_TEST, world);
    make_random(&r, &text);
    struct network *n = network_from(text.text);
    struct memory_plan plan = memory_plan_of(n);
    check_apart(n, &plan, text.text);
    CHECK(plan.least <= plan.bytes && plan.bytes <= plan.unshared, text.text);
    shared += plan.bytes < plan.unshared;
    for (int i = 0; i < n->tensors.count; i++) in_place += plan.values[i].in_place_of >= 0;
    double x[20], one[2][80], two[2][80];
    network_fill(n, 0, world, x);
    const double *given[CHAIN + 1] = {x};
    CHECK_INT(network_interpret(&ctx, n, given, NULL, (double *[]){one[0], one[1]}), CANVAS_OK,
              ctx.message);
    CHECK_INT(network_interpret(&ctx, n, given, &plan, (double *[]){two[0], two[1]}), CANVAS_OK,
              ctx.message);
    for (int k = 0; k < 2; k++) {
      int64_t elements = network_elements(&n->tensors.data[n->outputs.data[k]]);
      CHECK(!memcmp(one[k], two[k], (size_t)elements * sizeof(double)), text.text);
    }
    memory_plan_free(&plan);
    network_free(n);
    buf_free(&text);
  }
  CHECK(shared > WORLDS / 2 && in_place > WORLDS, "memory is shared");
}

// ---- inputs ----

static void fills_are_of_the_seed(void **state) {
  struct network *n = network_from(PROGRAMS GIVEN "a f32 [2, 3] = linear(x, w)\nout a\n");
  double a[9], b[9], i[2];
  network_fill(n, 2, 7, a);
  network_fill(n, 2, 7, b);
  CHECK(!memcmp(a, b, sizeof a), "the same");
  network_fill(n, 2, 8, b);
  CHECK(memcmp(a, b, sizeof a) != 0, "another seed");
  network_fill(n, 1, 7, i);
  CHECK(i[0] >= 0 && i[0] < 5 && i[1] >= 0 && i[1] < 5 && i[0] == (int)i[0], "whole numbers");
  network_free(n);
}

CHECK_MAIN(cmocka_unit_test(prints_what_it_parsed), cmocka_unit_test(says_what_is_wrong),
           cmocka_unit_test(wants_a_header), cmocka_unit_test(verifies_what_was_built),
           cmocka_unit_test(is_bounded), cmocka_unit_test(wants_memory_that_is_there),
           cmocka_unit_test(computes_call_by_call), cmocka_unit_test(knows_what_is_constant),
           cmocka_unit_test(parts_lie_within), cmocka_unit_test(is_in_place_element_by_element),
           cmocka_unit_test(plans_by_hand), cmocka_unit_test(plans_of_random_networks),
           cmocka_unit_test(fills_are_of_the_seed))
