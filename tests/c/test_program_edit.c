// Edits of programs: what they print, why they are rejected, and that they keep what is computed.
#include "program/interpret.h"
#include "rewrite/program_edit.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "check.h"
#include "random_program.h"

#define HEAD                                                                                  \
  "canvas 1\nprogram p\nin X f32 [n:1, c:6, h:8]\nin W f32 [o:70, c:6, k:3]\nin q i32 [i:4] " \
  "0..8\n"
#define PAD   "P[c:6, h:10] = if 1 <= h && h < 9 then X[0, c, h-1] else 0\n"
#define CONV  "Y[o:70, h:8] = P[c, h+k] * W[o, c, k] // sum c:6, k:3\n"
#define TWICE "D[h:8] = X[0, 1, h] * 2\n"
#define TAIL  "Z[o:70, h:8] = max(Y[o, h], 0)\nB bf16 [i:4] = Z[0, q[i]]\nout Z\nout B\n"
#define LAST  TWICE TAIL
#define WHOLE HEAD PAD CONV LAST

// The edit, and the program that it gives.
static const struct {
  const char *edit, *printed;
} rows[] = {
    {"cache Y as CC", HEAD PAD
     "CC[o:70, h:8] = P[c, h+k] * W[o, c, k] // sum c:6, k:3\nY[o:70, h:8] = CC[o, h]\n" LAST},
    {"cache B as BC",
     HEAD PAD CONV TWICE "Z[o:70, h:8] = max(Y[o, h], 0)\nBC bf16 [i:4] = Z[0, q[i]]\n"
                         "B bf16 [i:4] = BC[i]\nout Z\nout B\n"},
    {"cache X in P as XC",
     HEAD "XC[n:1, c:6, h:8] = X[n, c, h]\n"
          "P[c:6, h:10] = if 1 <= h && h < 9 then XC[0, c, h-1] else 0\n" CONV LAST},
    {"cache P in Y as XC",
     HEAD PAD "XC[c:6, h:10] = P[c, h]\n"
              "Y[o:70, h:8] = XC[c, h+k] * W[o, c, k] // sum c:6, k:3\n" LAST},
    {"pack W as V [o/35, c, k, o%35]",
     HEAD PAD "V[o_o:2, c:6, k:3, o_i:35] = W[o_o*35+o_i, c, k]\n"
              "Y[o:70, h:8] = P[c, h+k] * V[o/35, c, k, o%35] // sum c:6, k:3\n" LAST},
    {"pack W as V [block:o/32, k:c*3+k, o%32]", HEAD PAD
     "V[block:3, k:18, o_i:32] = if block*32+o_i < 70 then W[block*32+o_i, k/3, k%3] else 0\n"
     "Y[o:70, h:8] = P[c, h+k] * V[o/32, c*3+k, o%32] // sum c:6, k:3\n" LAST},
    {"pack W as V [o/14, o/7%2, (k*6+c)*7+o%7]",
     HEAD PAD "V[o_o:5, o_m:2, k_c_o:126] = W[o_o*14+o_m*7+k_c_o%7, k_c_o/7%6, k_c_o/42]\n"
              "Y[o:70, h:8] = P[c, h+k] * V[o/14, o/7%2, (k*6+c)*7+o%7] // sum c:6, k:3\n" LAST},
    {"pack X as V [h/100, h, c, n]",
     HEAD "V[h_o:1, h:8, c:6, n:1] = X[n, c, h]\n"
          "P[c:6, h:10] = if 1 <= h && h < 9 then V[0, h-1, c, 0] else 0\n" CONV
          "D[h:8] = V[0, h, 1, 0] * 2\n" TAIL},
    {"pack P as V [h%5, c, h/5]",
     HEAD PAD "V[h_i:5, c:6, h_o:2] = P[c, h_o*5+h_i]\n"
              "Y[o:70, h:8] = V[(h+k)%5, c, (h+k)/5] * W[o, c, k] // sum c:6, k:3\n" LAST},
    {"inline P",
     HEAD "Y[o:70, h:8] = (if 1 <= h+k && h+k < 9 then X[0, c, h+k-1] else 0) * W[o, c, k] // sum "
          "c:6, k:3\n" LAST},
    {"rfactor Y k 3 as YP",
     HEAD PAD "YP[o:70, h:8, k_i:3] = P[c, h+(k_o*3+k_i)] * W[o, c, k_o*3+k_i] // sum c:6, k_o:1\n"
              "Y[o:70, h:8] = YP[o, h, k_i] // sum k_i:3\n" LAST},
    {"rfactor Y c 2 as YP",
     HEAD PAD "YP[o:70, h:8, c_i:2] = P[c_o*2+c_i, h+k] * W[o, c_o*2+c_i, k] // sum c_o:3, k:3\n"
              "Y[o:70, h:8] = YP[o, h, c_i] // sum c_i:2\n" LAST},
    {"rfactor Y c 4 as YP", HEAD PAD
     "YP[o:70, h:8, c_i:4] = if c_o*4+c_i < 6 then P[c_o*4+c_i, h+k] * W[o, c_o*4+c_i, k] else 0 "
     "// sum c_o:2, k:3\n"
     "Y[o:70, h:8] = YP[o, h, c_i] // sum c_i:4\n" LAST},
    {"overlap P in Y h 4 as O", HEAD
     "O[h_o:2, c:6, h_i:6] = if 1 <= h_o*4+h_i && h_o*4+h_i < 9 then X[0, c, h_o*4+h_i-1] else "
     "0\nY[o:70, h:8] = O[h/4, c, h%4+k] * W[o, c, k] // sum c:6, k:3\n" LAST},
    {"overlap X in P h 4 as O", HEAD
     "O[h_o:3, n:1, c:6, h_i:4] = if 1 <= h_o*4+h_i && h_o*4+h_i < 9 then X[n, c, h_o*4+h_i-1] "
     "else 0\nP[c:6, h:10] = if 1 <= h && h < 9 then O[h/4, 0, c, h%4] else 0\n" CONV LAST},
    {"type Y bf16", HEAD PAD "Y bf16 [o:70, h:8] = P[c, h+k] * W[o, c, k] // sum c:6, k:3\n" LAST},
    {"outline Y P[c, h+k] as Q",
     HEAD PAD "Q[c:6, h:10] = P[c, h]\n"
              "Y[o:70, h:8] = Q[c, h+k] * W[o, c, k] // sum c:6, k:3\n" LAST},
    {"columns Y P[c, h+k] as Q",
     HEAD PAD "Q[c:6, h:8, k:3] = P[c, h+k]\n"
              "Y[o:70, h:8] = Q[c, h, k] * W[o, c, k] // sum c:6, k:3\n" LAST},
    {"outline Y P[c, h+k]*W[o,c,k] as Q",
     HEAD PAD "Q[c:6, h:8, k:3, o:70] = P[c, h+k] * W[o, c, k]\n"
              "Y[o:70, h:8] = Q[c, h, k, o] // sum c:6, k:3\n" LAST},
    {"turn P c as Q", HEAD "Q[h:10, c:6] = if 1 <= h && h < 9 then X[0, c, h-1] else 0\n"
                           "Y[o:70, h:8] = Q[h+k, c] * W[o, c, k] // sum c:6, k:3\n" LAST},
    {"inline P, D", HEAD "Y[o:70, h:8] = (if 1 <= h+k && h+k < 9 then X[0, c, h+k-1] else 0) * "
                         "W[o, c, k] // sum c:6, k:3\n" TAIL},
    {"type B f32 # a comment\n",
     HEAD PAD CONV TWICE "Z[o:70, h:8] = max(Y[o, h], 0)\nB[i:4] = Z[0, q[i]]\nout Z\nout B\n"},
};

// A sum moves into the stage that does nothing but copy it: a cache undone.
static const char *const undone[] = {
    "Y[o:70, h:8] = P[c, h+k] * W[o, c, k] // sum c:6, k:3",
    "Y[o:70, h:8] = P[k, h] // max k:6",
    "Y[h:8, o:70] = W[o, c, h%3] // mean c:6",
    "Y[o:70] = 1 // sum c:q[o%4]..q[o%4]+o+1",
};

// Partial sums: the stage S[i:4], the split of its reduction, and the two stages that it becomes.
static const struct {
  const char *stage, *split, *stages;
} partial[] = {
    {"S[i:4] = R[i, k] // max k:9", "k 2",
     "SP[i:4, k_i:2] = if k_o*2+k_i < 9 then R[i, k_o*2+k_i] else -inf // max k_o:5\n"
     "S[i:4] = SP[i, k_i] // max k_i:2\n"},
    {"S[i:4] = R[i, k] // min k:9", "k 3",
     "SP[i:4, k_i:3] = R[i, k_o*3+k_i] // min k_o:3\nS[i:4] = SP[i, k_i] // min k_i:3\n"},
    {"S f64 [i:4] = R[i, k] // prod k:9", "k 4",
     "SP f64 [i:4, k_i:4] = if k_o*4+k_i < 9 then R[i, k_o*4+k_i] else 1 // prod k_o:3\n"
     "S f64 [i:4] = SP[i, k_i] // prod k_i:4\n"},
    {"S bf16 [i:4] = R[i, k] // mean k:9", "k 3",
     "SP[i:4, k_i:3] = R[i, k_o*3+k_i] // mean k_o:3\n"
     "S bf16 [i:4] = SP[i, k_i] // mean k_i:3\n"},
    {"S[i:4] = R[i, k] // mean k:9, i2:2", "k 4",
     "SP[i:4, k_i:4] = if k_o*4+k_i < 9 then R[i, k_o*4+k_i] else 0 // sum k_o:3, i2:2\n"
     "S[i:4] = SP[i, k_i] / 18 // sum k_i:4\n"},
    {"S[i:4] = R[i, k] // sum k_o:2, k:9", "k 9",
     "SP[i:4, k_i:9] = R[i, k_oo*9+k_i] // sum k_o:2, k_oo:1\nS[i:4] = SP[i, k_i] // sum k_i:9\n"},
    {"S[i:4] = R[i, e] // sum k:2, e:q[2*k]..q[2*k+1]", "k 2",
     "SP[i:4, k_i:2] = R[i, e] // sum k_o:1, e:q[2*(k_o*2+k_i)]..q[2*(k_o*2+k_i)+1]\n"
     "S[i:4] = SP[i, k_i] // sum k_i:2\n"},
    // one for each element of groups
    {"S[g:3] = R[i, g*3+k] // mean i:4, k:3", "k of g",
     "SP[g_i:9] = R[i, g_i] // mean i:4\nS[g:3] = SP[g*3+k] // mean k:3\n"},
    {"S bf16 [g:3, o:2] = R[o+i, g*2+k+3] * R[o, g] // sum k:2, i:3", "k of g",
     "SP[g_i:6, o:2] = R[o+i, g_i+3] * R[o, g_i/2] // sum i:3\n"
     "S bf16 [g:3, o:2] = SP[g*2+k, o] // sum k:2\n"},
};

// The expression of a stage before and after `border`.
static const struct {
  const char *before, *after;
} borders[] = {
    {"(if 1 <= i && i < 3 then R[i-1, 0] else 0) * R[i, 1]",
     "if 1 <= i && i < 3 then R[i-1, 0] * R[i, 1] else 0"},
    {"2 - R[i, 1] * (if i < 3 then 0 else R[i, 0])",
     "2 - (if i < 3 then 0 else R[i, 1] * R[i, 0])"},
    {"(if i < 3 then if 0 < i then R[i, 0] else 0 else 0) * R[i, 1] * 3",
     "if i < 3 then if 0 < i then R[i, 0] * R[i, 1] * 3 else 0 else 0"},
    {"(if i < 3 then R[i, 0] else 0) * (if 0 < i then R[i, 1] else 0)",
     "if i < 3 then if 0 < i then R[i, 0] * R[i, 1] else 0 else 0"},
    {"(if i < 3 then R[i, 0] * (if i == 1 then R[i, 2] else 0) else 1) * R[i, 1]",
     "(if i < 3 then if i == 1 then R[i, 0] * R[i, 2] else 0 else 1) * R[i, 1]"},
};

// A stage before `border S as Z`, and the two stages that it becomes, or why not.
static const struct {
  const char *before, *after, *message;
} beyonds[] = {
    {"S[i:4] = (if 1 <= i+k && i+k < 5 then R[i+k-1, c] else 0) * R[k, c] // sum k:3, c:9",
     "Z[k:3] = 0 * R[k, c] // sum c:9\nS[i:4] = if 1 <= i+k && i+k < 5 then R[i+k-1, c] * R[k, c] "
     "else if c < 1 then Z[k] else 0 // sum k:3, c:9\n",
     ""},
    // own axes last; reductions that the other factor does not have
    {"S[i:4, o:2] = R[k, o+a] * (if i < 3 then 0 else if k < 2 then R[i, a+b] else 0) // sum k:4, "
     "a:2, b:3",
     "Z[k:4, o:2] = 0 * R[k, o+a] // sum a:2\nS[i:4, o:2] = if i < 3 then if a < 1 && b < 1 then "
     "Z[k, o] else 0 else if k < 2 then R[k, o+a] * R[i, a+b] else if a < 1 && b < 1 then Z[k, o] "
     "else 0 // sum k:4, a:2, b:3\n",
     ""},
    {"S[i:4] = (if i < 3 then R[i, k] else 0) * R[0, 0] // max k:9", NULL,
     "line 1, column 8: 'S' is not a sum of a zero-padded value times one without padding"},
    {"S[i:4] = (if i < 3 then R[i, k] else 0) * R[0, 0] * 2 + 1 // sum k:9", NULL,
     "line 1, column 8: 'S' is not a sum of a zero-padded value times one without padding"},
    {"S[i:4] = (if i < 3 then R[i, k] else 0) * R[0, k] // sum k:i..i+2", NULL,
     "line 1, column 8: 'S' has a reduction whose bounds depend on data"},
    {"S[i:4] = (if i+k < 3 then R[i, k] else 0) * R[0, k] // sum k:9", NULL,
     "line 1, column 8: 'S' has padding conditions on every axis that it sums over"},
};

#define SUMS "canvas 1\nprogram p\nin R f32 [i:4, k:9]\nin q i32 [r:5] 0..9 rising\n"

static struct program *parse(const char *text) {
  canvas_context ctx = {.message = ""};
  struct program *p;
  if (program_parse(&ctx, text, strlen(text), &p) != CANVAS_OK)
    fail_msg("\"%s\" for \"%s\"", ctx.message, text);
  return p;
}

static void edits_print(void **state) {
  (void)state;
  struct program *p = parse(WHOLE), *q;
  CHECK_ROWS (rows, row) {
    canvas_context ctx = {.message = ""};
    struct buf text = {0};
    if (program_edit(&ctx, p, row->edit, strlen(row->edit), &q)) fail_msg("%s", ctx.message);
    program_print(q, &text);
    CHECK_TEXT(text.text, row->printed, row->edit);
    program_free(parse(text.text));
    program_free(q);
    buf_free(&text);
  }
  program_free(p);
}

static void partial_sums_print(void **state) {
  (void)state;
  CHECK_ROWS (partial, row) {
    canvas_context ctx = {.message = ""};
    struct buf text = {0}, edit = {0}, want = {0}, got = {0};
    struct program *q;
    buf_printf(&text, SUMS "%s\nout S\n", row->stage);
    buf_printf(&edit, "rfactor S %s as SP", row->split);
    buf_printf(&want, SUMS "%sout S\n", row->stages);
    struct program *p = parse(text.text);
    if (program_edit(&ctx, p, edit.text, edit.length, &q)) fail_msg("%s", ctx.message);
    program_print(q, &got);
    CHECK_TEXT(got.text, want.text, row->stage);
    program_free(p);
    program_free(q);
    buf_free(&text);
    buf_free(&edit);
    buf_free(&want);
    buf_free(&got);
  }
}

static void borders_move(void **state) {
  (void)state;
  CHECK_ROWS (borders, row) {
    canvas_context ctx = {.message = ""};
    struct buf text = {0}, want = {0}, got = {0};
    struct program *q;
    buf_printf(&text, SUMS "S[i:4] = %s\nout S\n", row->before);
    buf_printf(&want, SUMS "S[i:4] = %s\nout S\n", row->after);
    struct program *p = parse(text.text);
    if (program_edit(&ctx, p, "border S", 8, &q)) fail_msg("%s", ctx.message);
    program_print(q, &got);
    CHECK_TEXT(got.text, want.text, row->before);
    program_free(p);
    program_free(q);
    buf_free(&text);
    buf_free(&want);
    buf_free(&got);
  }
}

static void borders_are_kept(void **state) {
  (void)state;
  CHECK_ROWS (beyonds, row) {
    canvas_context ctx = {.message = ""};
    struct buf text = {0}, want = {0}, got = {0};
    struct program *q = NULL;
    buf_printf(&text, SUMS "%s\nout S\n", row->before);
    struct program *p = parse(text.text);
    CHECK_INT(program_edit(&ctx, p, "border S as Z", 13, &q),
              row->after ? CANVAS_OK : CANVAS_BAD_INPUT, row->before);
    CHECK_TEXT(ctx.message, row->message, row->before);
    if (q) {
      buf_printf(&want, SUMS "%sout S\n", row->after);
      program_print(q, &got);
      CHECK_TEXT(got.text, want.text, row->before);
    }
    program_free(p);
    program_free(q);
    buf_free(&text);
    buf_free(&want);
    buf_free(&got);
  }
}

#define NO_GROUPS \
  "line 1, column 16: axis 'k' does not count the elements of groups along that axis"

// Splits of a reduction that there are not.
static const struct {
  const char *stage, *split, *message;
} whole[] = {
    {"S[i:4] = R[i, k] // sum k:9", "k 10",
     "line 1, column 13: axis 'k' has 9 places, give 2 partial sums to that many"},
    {"S[i:4] = R[i, k] // sum k:9", "k 1",
     "line 1, column 13: axis 'k' has 9 places, give 2 partial sums to that many"},
    {"S[i:4] = R[i, e] // sum e:q[i]..q[i+1]", "e 2",
     "line 1, column 13: axis 'e' has bounds that depend on data"},
    {"S[i:4] = R[i, e] // mean k:2, e:q[i]..q[i+1]", "k 2",
     "line 1, column 13: axis 'k' belongs to a mean over a number of points that depends on data"},
    {"S[i:4] = R[i, e] // sum k:3, e:q[k]..q[k+1]", "k 2",
     "line 1, column 13: axis 'k' stands beside an axis with bounds that depend on data: choose "
     "a divisor of its size"},
    {"S[g:3] = R[i, g*3+k] // sum i:4, k:3", "k of h", "line 1, column 16: 'S' has no axis 'h'"},
    {"S[g:3] = R[i, g*3+k] // sum i:4, k:3", "k of 3",
     "line 1, column 16: expected the axis of the groups, found '3'"},
    {"S[g:3] = R[0, g*3+k] // sum k:3", "k of g",
     "line 1, column 16: axis 'k' is the only reduction"},
    {"S[g:3] = R[i, g*2+k] // sum i:4, k:3", "k of g", NO_GROUPS},
    {"S[g:2] = R[i, g*3+k*2] // sum i:4, k:3", "k of g", NO_GROUPS},
    {"S[g:3] = if k < 2 then R[i, g*3+k] else 0 // sum i:4, k:3", "k of g", NO_GROUPS},
    {"S[g:3] = R[i, g*3+k] * real(k) // sum i:4, k:3", "k of g", NO_GROUPS},
    {"S[g:3] = R[i, g*3+k] * R[k, g] // sum i:4, k:3", "k of g", NO_GROUPS},
    {"S[g:3] = R[i, g*3] // sum i:4, k:3", "k of g", NO_GROUPS},
    {"S[g:3] = R[g, e] // sum k:3, e:q[g]..q[g+1]", "k of g",
     "line 1, column 16: axis 'k' belongs to a reduction with bounds that depend on data"},
};

static void sums_stay_whole(void **state) {
  (void)state;
  CHECK_ROWS (whole, row) {
    canvas_context ctx = {.message = ""};
    struct buf text = {0}, edit = {0};
    struct program *q;
    buf_printf(&text, SUMS "%s\nout S\n", row->stage);
    buf_printf(&edit, "rfactor S %s as SP", row->split);
    struct program *p = parse(text.text);
    CHECK_INT(program_edit(&ctx, p, edit.text, edit.length, &q), CANVAS_BAD_INPUT, row->stage);
    CHECK_TEXT(ctx.message, row->message, row->stage);
    program_free(p);
    buf_free(&text);
    buf_free(&edit);
  }
}

static void caches_are_undone(void **state) {
  (void)state;
  CHECK_ROWS (undone, row) {
    canvas_context ctx = {.message = ""};
    struct buf text = {0}, back = {0};
    struct program *cached, *inlined = NULL;
    buf_printf(&text, HEAD PAD "%s\nout Y\n", *row);
    struct program *p = parse(text.text);
    if (program_edit(&ctx, p, "cache Y as C", 12, &cached) ||
        program_edit(&ctx, cached, "inline C", 8, &inlined))
      fail_msg("\"%s\" for \"%s\"", ctx.message, *row);
    program_print(inlined, &back);
    CHECK_TEXT(back.text, text.text, *row);
    buf_free(&text);
    buf_free(&back);
    program_free(p);
    program_free(cached);
    program_free(inlined);
  }
}

// The axes of a sum that moves get other names where the copy has these for its own.
static void names_of_sums(void **state) {
  (void)state;
  canvas_context ctx = {.message = ""};
  struct buf text = {0};
  struct program *q, *p = parse(
                         "program p\nin X f32 [i:4, j:5, k:6]\n"
                         "S[i:4] = X[i, j, k] // sum j:5, k:6\nY[j:2, k:2] = S[j*2+k]\nout Y\n");
  if (program_edit(&ctx, p, "inline S", 8, &q)) fail_msg("%s", ctx.message);
  program_print(q, &text);
  assert_string_equal(text.text,
                      "canvas 1\nprogram p\nin X f32 [i:4, j:5, k:6]\n"
                      "Y[j:2, k:2] = X[j*2+k, j2, k2] // sum j2:5, k2:6\nout Y\n");
  buf_free(&text);
  program_free(p);
  program_free(q);
}

#define ALL_EDITS                                                                     \
  "cache, pack, inline, type, rfactor, border, overlap, winograd, outline, columns, " \
  "reciprocal, straight, turn, merge or normalize"
static const struct {
  const char *edit, *message;
} rejected[] = {
    {"", "line 1, column 1: expected an edit (" ALL_EDITS "), found the end of the text"},
    {"melt Y", "line 1, column 1: expected an edit (" ALL_EDITS "), found 'melt'"},
    {"cache", "line 1, column 6: expected the tensor to cache, found the end of the text"},
    {"cache Q as C", "line 1, column 7: the program has no tensor 'Q'"},
    {"cache Y",
     "line 1, column 8: expected 'as' and the name of the new stage, found the end of the "
     "text"},
    {"cache Y as",
     "line 1, column 11: expected the name of the new stage, found the end of the text"},
    {"cache Y as W", "line 1, column 12: there is a 'W' already, choose another name"},
    {"cache Y as if", "'if' is a word of the language, choose another name"},
    {"cache Y as C C", "line 1, column 14: expected the end of the edit, found 'C'"},
    {"cache X as XC",
     "line 1, column 7: 'X' is an input: say for which stage, 'cache X in STAGE as NAME'"},
    {"cache X in",
     "line 1, column 11: expected the stage that reads it, found the end of the text"},
    {"cache X in Y as XC", "line 1, column 12: 'Y' does not load 'X'"},
    {"cache q in B as QC",
     "line 1, column 7: 'q' is of i32: only inputs hold indices, so it stays one"},
    {"pack", "line 1, column 5: expected the tensor to pack, found the end of the text"},
    {"pack B as C [i]", "line 1, column 6: no stage loads 'B', there is nothing to pack it for"},
    {"pack W as V",
     "line 1, column 12: expected '[' and the axes of the layout, found the end of the "
     "text"},
    {"pack W as V []", "line 1, column 14: expected an expression, found ']'"},
    {"pack W as V [o, c, k",
     "line 1, column 21: expected ']' or ',' after an axis of the layout, found the end of the "
     "text"},
    {"pack W as V [o, c, j]", "line 1, column 20: unknown axis 'j' of stage 'W'"},
    {"pack W as V [o, c]", "line 1, column 13: the layout has 1 of the 3 places of axis 'k'"},
    {"pack W as V [o%32, c, k]",
     "line 1, column 13: the layout has 32 of the 70 places of axis 'o'"},
    {"pack W as V [o/32, o%16, c, k]",
     "line 1, column 13: the parts of axis 'o' in the layout do not fit together"},
    {"pack W as V [o, o, c, k]",
     "line 1, column 13: the parts of axis 'o' in the layout do not fit together"},
    {"pack W as V [o+1, c, k]",
     "line 1, column 14: an index of a layout is a sum of axes, axis/N and axis%N, each times the "
     "product of those after it"},
    {"pack W as V [o, c*2+k, k]",
     "line 1, column 17: an index of a layout is a sum of axes, axis/N and axis%N, each times the "
     "product of those after it"},
    {"pack W as V [o, c*k]",
     "line 1, column 17: an index of a layout is a sum of axes, axis/N and axis%N, each times the "
     "product of those after it"},
    {"pack W as V [o%14/4, o%4, o/14, c, k]",
     "line 1, column 14: an index of a layout is a sum of axes, axis/N and axis%N, each times the "
     "product of those after it"},
    {"pack W as V [o/0, c, k]",
     "line 1, column 14: an index of a layout is a sum of axes, axis/N and axis%N, each times the "
     "product of those after it"},
    {"pack W as V [o, c, q[k]]",
     "line 1, column 20: unknown tensor 'q', define it on an earlier line"},
    {"pack W as V [a:o, a:c, k]", "axis 'a' of 'V' is named twice"},
    {"pack W as V [1:o, c, k]",
     "line 1, column 14: an index of a layout is a sum of axes, axis/N and axis%N, each times the "
     "product of those after it"},
    {"pack W as V [o, c, k*9223372036854775807]",
     "line 1, column 20: an index of a layout is a sum of axes, axis/N and axis%N, each times the "
     "product of those after it"},
    {"inline", "line 1, column 7: expected the stage to inline, found the end of the text"},
    {"inline X", "line 1, column 8: 'X' is an input, it has no expression"},
    {"inline Y",
     "line 1, column 8: 'Y' reduces: it can only be inlined into a stage that does nothing but "
     "copy it"},
    {"inline Z", "line 1, column 8: 'Z' is an output, it has to be stored"},
    {"inline B", "line 1, column 8: 'B' is of bf16, which rounds where it is stored"},
    {"overlap", "line 1, column 8: expected the tensor that is read, found the end of the text"},
    {"overlap P",
     "line 1, column 10: expected 'in' and the stage that reads it, found the end of "
     "the text"},
    {"overlap P in Z h 2 as O", "line 1, column 14: 'Z' does not load 'P'"},
    {"overlap P in Y",
     "line 1, column 15: expected an axis of the stage that reads it, found the end of the text"},
    {"overlap P in Y c 2 as O", "line 1, column 16: 'Y' has no axis 'c'"},
    {"overlap P in Y o 2 as O", "line 1, column 16: 'P' is read without that axis"},
    {"overlap P in Y h as O", "line 1, column 18: expected the size of a tile, found 'as'"},
    {"overlap P in Y h 9 as O", "line 1, column 18: a tile of axis 'h' has 1 to 8 places"},
    {"rfactor",
     "line 1, column 8: expected the stage whose reduction is split, found the end of the text"},
    {"rfactor Z h 2 as ZP", "line 1, column 9: 'Z' does not reduce, there is nothing to split"},
    {"rfactor Y",
     "line 1, column 10: expected a reduction axis of the stage, found the end of the "
     "text"},
    {"rfactor Y h 2 as YP", "line 1, column 11: 'Y' has no reduction axis 'h'"},
    {"rfactor Y k as YP", "line 1, column 13: expected the number of partial sums, found 'as'"},
    {"rfactor Y k 3 as Z", "line 1, column 18: there is a 'Z' already, choose another name"},
    {"border",
     "line 1, column 7: expected the stage with the padded product, found the end of the text"},
    {"border X",
     "line 1, column 8: 'X' multiplies no zero-padded value: inline the padding stage first"},
    {"border Y",
     "line 1, column 8: 'Y' multiplies no zero-padded value: inline the padding stage first"},
    {"outline Y P[c, h] as Q", "line 1, column 11: the expression of 'Y' has no such value"},
    {"outline X P[c, h] as Q", "line 1, column 9: 'X' is an input, it has no expression"},
    {"outline Y P[c, h+k] as D", "line 1, column 24: there is a 'D' already, choose another name"},
    {"outline Y Z[o, h] as Q",
     "line 1, column 11: unknown tensor 'Z', define it on an earlier line"},
    {"reciprocal Y P[c, h+k] as Q", "line 1, column 12: 'Y' does not divide by that"},
    {"straight Y P[c, h+k] h",
     "line 1, column 10: no index of the load depends on that axis alone in a few long affine "
     "pieces"},
    {"straight Z max(Y[o, h], 0) h", "line 1, column 10: the value is not a load of a tensor"},
    {"turn Y o as Q", "line 1, column 6: 'Y' reduces, so its axes keep their order"},
    {"turn P k as Q", "line 1, column 8: 'P' has no axis 'k'"},
    {"merge all",
     "line 1, column 7: expected 'axes' after what is done to all of them, found 'all'"},
    {"normalize conditions", "the edit changes nothing in the program"},
    {"type",
     "line 1, column 5: expected the tensor whose data type changes, found the end of the text"},
    {"type X", "line 1, column 7: expected f32, f64 or bf16, found the end of the text"},
    {"type X i32", "line 1, column 8: expected f32, f64 or bf16, found 'i32'"},
    {"type q f32", "line 1, column 6: 'q' is of i32: only inputs hold indices, so it stays one"},
};

static void edits_reject(void **state) {
  (void)state;
  struct program *p = parse(WHOLE), *q;
  CHECK_ROWS (rejected, row) {
    canvas_context ctx = {.message = ""};
    CHECK_INT(program_edit(&ctx, p, row->edit, strlen(row->edit), &q), CANVAS_BAD_INPUT, row->edit);
    CHECK_TEXT(ctx.message, row->message, row->edit);
  }
  program_free(p);
}

// A chain of stages that each load the one before twice: the last expression would be of 2^40 loads.
static void expressions_that_grow(void **state) {
  (void)state;
  struct buf text = {0};
  canvas_context ctx = {.message = ""};
  buf_puts(&text, "program p\nin S0 f32 [i:2]\n");
  for (int i = 1; i <= 40; i++)
    buf_printf(&text, "S%d[i:2] = S%d[i] + S%d[1-i]\n", i, i - 1, i - 1);
  buf_puts(&text, "out S40\n");
  struct program *p = parse(text.text), *q;
  canvas_status status = CANVAS_OK;
  for (int i = 1; i < 40 && status == CANVAS_OK; i++) {
    char edit[32];
    snprintf(edit, sizeof edit, "inline S%d", i);
    status = program_edit(&ctx, p, edit, strlen(edit), &q);
    if (status != CANVAS_OK) break;
    program_free(p);
    p = q;
  }
  CHECK_INT(status, CANVAS_BAD_INPUT, "inlining again and again");
  CHECK_TEXT(ctx.message, "expressions have more than 262144 operations", "again and again");
  program_free(p);
  buf_free(&text);
}

// ---- what is computed ---------------------------------------------------------------------------

// All elements of all outputs, one after another, on the seeded inputs of a program whose tensors are the same in memory.
static double *evaluate_on(const struct program *given, const struct program *p, int64_t *count) {
  canvas_context ctx = {.message = ""};
  double *inputs[16], *out;
  struct interpreter *in;
  *count = 0;
  for (int i = 0; i < p->inputs.count; i++) {
    inputs[i] = malloc((size_t)program_elements(given, given->inputs.data[i]) * sizeof(double));
    program_fill(given, i, 5, inputs[i]);
  }
  for (int i = 0; i < p->outputs.count; i++) *count += program_elements(p, p->outputs.data[i]);
  out = malloc((size_t)*count * sizeof *out);
  if (interpreter_new(&ctx, p, (const double *const *)inputs, NULL, &in))
    fail_msg("%s", ctx.message);
  double *next = out;
  for (int i = 0; i < p->outputs.count; i++) {
    int64_t n = program_elements(p, p->outputs.data[i]);
    if (interpreter_elements(in, p->outputs.data[i], n, NULL, next)) fail_msg("%s", ctx.message);
    next += n;
  }
  interpreter_free(in);
  for (int i = 0; i < p->inputs.count; i++) free(inputs[i]);
  return out;
}

static double *evaluate(const struct program *p, int64_t *count) {
  return evaluate_on(p, p, count);
}

// Some index per axis that gives it back, in a random order.
static void random_layout(struct random *r, const struct program_tensor *t, struct buf *text) {
  char parts[3 * PROGRAM_AXES][48];  // a longer name is cut off, and rejected
  int count = 0;
  for (int i = 0; i < t->rank; i++) {
    const char *name = t->axes[i].name;
    int block = 2 + (int)random_below(r, 5);
    switch (random_below(r, 3)) {
      case 0: snprintf(parts[count++], sizeof *parts, "%s", name); break;
      case 1:
        snprintf(parts[count++], sizeof *parts, "%s/%d", name, block);
        snprintf(parts[count++], sizeof *parts, "%s%%%d", name, block);
        break;
      default:
        snprintf(parts[count++], sizeof *parts, "%s/%d", name, 2 * block);
        snprintf(parts[count++], sizeof *parts, "%s/2%%%d", name, block);
        snprintf(parts[count++], sizeof *parts, "%s%%2", name);
    }
  }
  for (int i = count - 1; i > 0; i--) {
    char part[48];
    int j = (int)random_below(r, (uint32_t)i + 1);
    memcpy(part, parts[i], sizeof part);
    memcpy(parts[i], parts[j], sizeof part);
    memcpy(parts[j], part, sizeof part);
  }
  buf_puts(text, "[");
  for (int i = 0; i < count; i++) buf_printf(text, "%s%s", i ? ", " : "", parts[i]);
  buf_puts(text, "]");
}

// The same bits; after a split, which sums in another order, the same but for rounding.
static bool same_values(const double *x, const double *y, int64_t count, bool exactly) {
  if (exactly) return memcmp(x, y, (size_t)count * sizeof *x) == 0;
  for (int64_t i = 0; i < count; i++) {
    bool near = fabs(x[i] - y[i]) <= 1e-9 * (1 + fabs(x[i])) || x[i] == y[i];
    if (!near && !(isnan(x[i]) && isnan(y[i]))) return false;
  }
  return true;
}

// Of the next stage that reduces.
static void random_split(struct random *r, const struct program *p, int from, int number,
                         struct buf *text) {
  for (int i = 0; i < p->tensors.count; i++) {
    const struct program_tensor *t = &p->tensors.data[(from + i) % p->tensors.count];
    if (!t->reductions) continue;
    int axis = t->rank + (int)random_below(r, (uint32_t)t->reductions);
    buf_printf(text, "rfactor %s %s %d as E%d", t->name, t->axes[axis].name,
               2 + (int)random_below(r, 5), number);
    return;
  }
  buf_puts(text, "rfactor");
}

// A value of the stage's expression; -1: it is an input.
static int value_in(struct random *r, const struct program *p, int stage) {
  int expr = p->tensors.data[stage].is_input ? -1 : p->tensors.data[stage].body;
  while (expr >= 0 && random_below(r, 3)) {
    const struct px_node *n = &p->nodes.data[expr];
    int arg = n->op == PX_LOAD ? -1 : n->arg[random_below(r, 3)];
    if (arg < 0 || p->nodes.data[arg].sort != PX_VALUE) break;
    expr = arg;
  }
  return expr;
}

// `outline E3 X[c] + 1 as E7` and its like
static void random_part(struct random *r, const struct program *p, int stage, int number,
                        struct buf *text) {
  static const char *const words[] = {"outline", "columns", "reciprocal", "straight"};
  const struct program_tensor *t = &p->tensors.data[stage];
  const char *axis = t->rank ? t->axes[random_below(r, (uint32_t)t->rank)].name : "none";
  const char *word = words[random_below(r, 4)];
  int value = value_in(r, p, stage);
  if (value < 0) {
    buf_printf(text, "turn %s %s as E%d", t->name, axis, number);
    return;
  }
  buf_printf(text, "%s %s ", word, t->name);
  program_print_expr(p, value, text);
  if (word == words[3])
    buf_printf(text, " %s", axis);
  else
    buf_printf(text, " as E%d", number);
}

// ... of the program, of two stages
static void random_whole(struct random *r, const struct program *p, int stage, int number,
                         struct buf *text) {
  const struct program_tensor *t = &p->tensors.data[stage];
  switch (random_below(r, 6)) {
    case 0: buf_puts(text, "merge axes"); break;
    case 1: buf_puts(text, "normalize conditions"); break;
    case 2:
    case 3:
      buf_printf(text, "inline %s, %s", t->name,
                 p->tensors.data[random_below(r, (uint32_t)p->tensors.count)].name);
      break;
    default:
      buf_printf(text, "turn %s %s as E%d", t->name,
                 t->rank ? t->axes[random_below(r, (uint32_t)t->rank)].name : "none", number);
  }
}

static void random_edit(struct random *r, const struct program *p, int number, struct buf *text) {
  int tensor = (int)random_below(r, (uint32_t)p->tensors.count);
  int reader = (int)random_below(r, (uint32_t)p->tensors.count);
  const struct program_tensor *t = &p->tensors.data[tensor];
  const char *other = p->tensors.data[reader].name;
  const struct program_tensor *other_tensor = &p->tensors.data[reader];
  switch (random_below(r, 10)) {
    case 9:
    case 8:
    case 7: random_part(r, p, tensor, number, text); break;
    case 6: random_whole(r, p, tensor, number, text); break;
    case 5:
      buf_printf(
          text, "overlap %s in %s %s %d as E%d", t->name, other,
          other_tensor->axes[random_below(r, (uint32_t)other_tensor->rank + !other_tensor->rank)]
              .name,
          1 + (int)random_below(r, 5), number);
      break;
    case 4: random_split(r, p, tensor, number, text); break;
    case 0: buf_printf(text, "cache %s as E%d", t->name, number); break;
    case 1: buf_printf(text, "cache %s in %s as E%d", t->name, other, number); break;
    case 2: buf_printf(text, "inline %s", t->name); break;
    default: buf_printf(text, "pack %s as E%d ", t->name, number); random_layout(r, t, text);
  }
}

// The edits that were made, made again of the text of the first program, make the same text.
static void check_replay(const struct program *given, const struct program *p) {
  canvas_context ctx = {.message = ""};
  const struct replay_rules rules = {0};
  struct buf text = {0}, wanted = {0}, got = {0};
  struct program *again;
  program_print(given, &text);
  program_print(p, &wanted);
  struct program *read = parse(text.text);
  const char *edits = program_edits_since(p, given);
  CHECK_INT(program_replay(&ctx, read, edits, &rules, &again), CANVAS_OK, ctx.message);
  program_print(again, &got);
  CHECK_TEXT(got.text, wanted.text, edits);
  program_free(again);
  program_free(read);
  buf_free(&text);
  buf_free(&wanted);
  buf_free(&got);
}

// Edits by the word that they begin with; of caches those of what a stage reads first.
static const char *const kinds[] = {"cache ",     "pack ",    "inline ",  "rfactor ",
                                    "overlap ",   "outline ", "columns ", "turn ",
                                    "normalize ", "merge ",   "straight "};
enum { KINDS = sizeof kinds / sizeof *kinds, SPLIT = 3, RARE = 8 };

static int kind_of(const char *edit) {
  int i = 0;
  while (i < KINDS && strncmp(edit, kinds[i], strlen(kinds[i])) != 0) i++;
  return i;
}

static void edits_keep_values(void **state) {
  (void)state;
  struct random r;
  random_open(&r, 11, RANDOM_TEST, 0);
  int seen[KINDS + 1] = {0}, rounds = getenv("CANVAS_TEST_ALL") ? 5000 : 400;
  for (int round = 0; round < rounds; round++) {
    struct program *given = random_program((uint64_t)round), *p = program_copy(given), *q;
    int64_t count, again;
    double *before = evaluate(p, &count);
    bool exactly = true;
    for (int i = 0; i < 16; i++) {
      canvas_context ctx = {.message = ""};
      struct buf edit = {0};
      random_edit(&r, p, i, &edit);
      if (program_edit(&ctx, p, edit.text, edit.length, &q) == CANVAS_OK) {
        int kind = kind_of(edit.text);
        seen[kind]++;
        exactly = exactly && kind != SPLIT;
        struct buf text = {0};
        double *after = evaluate_on(given, q, &again);
        program_print(q, &text);
        CHECK_INT(again, count, edit.text);
        if (!same_values(before, after, count, exactly))
          fail_msg("round %d: '%s' changes what is computed, it gives\n%s", round, edit.text,
                   text.text);
        program_free(parse(text.text));
        buf_free(&text);
        free(after);
        program_free(p);
        p = q;
      } else {
        CHECK(ctx.message[0], edit.text);
      }
      buf_free(&edit);
    }
    check_replay(given, p);
    free(before);
    program_free(p);
    program_free(given);
  }
  for (int i = 0; i < KINDS; i++) print_message("%s%s%d", i ? ", " : "", kinds[i], seen[i]);
  print_message("\n");
  for (int i = 0; i < RARE; i++)
    CHECK(seen[i] > rounds / 20, "too few edits of a kind mean little");
}

// ---- merged axes ----

#define MERGE "canvas 1\nprogram p\nin X f32 [n:2, c:4, h:3, w:5]\n"
// The program and what it is with merged axes; NULL: there are none.
static const struct {
  const char *program, *merged;
} merges[] = {
    // pixels, of a window of one of them, too
    {MERGE "in W f32 [o:6, c:4, kh:1, kw:1]\n"
           "Y[n:2, o:6, h:3, w:5] = X[n, c, h+kh, w+kw] * W[o, c, kh, kw] // sum c:4, kh:1, kw:1\n"
           "out Y\n",
     "canvas 1\nprogram p\nin X f32 [n:2, c:4, h_w:15]\nin W f32 [o:6, c:4, kh:1, kw:1]\n"
     "Y[n:2, o:6, h_w:15] = X[n, c, h_w] * W[o, c, 0, 0] // sum c:4, kh:1, kw:1\nout Y\n"},
    // what stands beside them stays, weights are weights
    {MERGE "in C f32 [h:3, w:5] const\nM[n:2] = X[n, c, h, w] // mean c:4, h:3, w:5\n"
           "Y[n:2, c:4, h:3, w:5] = X[n, c, h, w] * C[h, w] - M[n]\nout Y\n",
     "canvas 1\nprogram p\nin X f32 [n:2, c:4, h_w:15]\nin C f32 [h_w:15] const\n"
     "M[n:2] = X[n, c, h_w] // mean c:4, h_w:15\nY[n:2, c:4, h_w:15] = X[n, c, h_w] * C[h_w] - "
     "M[n]\nout Y\n"},
    // three axes
    {MERGE "Y[n:2] = X[n, c, h, w] // max c:4, h:3, w:5\nout Y\n",
     "canvas 1\nprogram p\nin X f32 [n:2, c_h_w:60]\n"
     "Y[n:2] = X[n, c_h_w] // max c_h_w:60\nout Y\n"},
    // the first lines
    {MERGE "Y[n:2, h:2, w:5] = X[n, 0, h, w]\nout Y\n",
     "canvas 1\nprogram p\nin X f32 [n:2, c:4, h_w:15]\nY[n:2, h_w:10] = X[n, 0, h_w]\nout Y\n"},
    // a name that the stage has
    {MERGE "Y[n:2, h:3, w:5] = X[n, h_w, h, w] // sum h_w:4\nout Y\n",
     "canvas 1\nprogram p\nin X f32 [n:2, c:4, h_w:15]\n"
     "Y[n:2, h_w_:15] = X[n, h_w, h_w_] // sum h_w:4\nout Y\n"},
    // between what data say
    {"canvas 1\nprogram p\nin P i32 [n:3] 0..4 rising\nin X f32 [k:4, h:3, w:5]\n"
     "Y[n:2, h:3, w:5] = X[k, h, w] // sum k:P[n]..P[n+1]\nout Y\n",
     "canvas 1\nprogram p\nin P i32 [n:3] 0..4 rising\nin X f32 [k:4, h_w:15]\n"
     "Y[n:2, h_w:15] = X[k, h_w] // sum k:P[n]..P[n+1]\nout Y\n"},
    // in another order, shifted, twice, as numbers, under conditions, one of them alone
    {MERGE "Y[n:2, h:3, w:5] = X[n, 0, 2-h, w]\nout Y\n", NULL},
    {MERGE "Y[n:2, h:3, w:4] = X[n, 0, h, w+1]\nout Y\n", NULL},
    {MERGE "Y[n:2, w:5, h:3, c:4] = X[n, c, h, w]\nout Y\n", NULL},
    {MERGE "Y[n:2, h:3, w:5] = X[n, h, h, w]\nout Y\n", NULL},
    {MERGE "Y[n:2, h:3, w:5] = X[n, 0, h, w] * real(w)\nout Y\n", NULL},
    {MERGE "Y[n:2, h:3, w:5] = if w < 3 then X[n, 0, h, w] else 0\nout Y\n", NULL},
    {MERGE "B[h:3] = X[0, 0, h, 0]\nY[n:2, h:3, w:5] = X[n, 0, h, w] * B[h]\nout Y\n", NULL},
    // sizes that differ; images
    {MERGE "Y[n:2, h:3, w:4] = X[n, 0, h, w]\nout Y\n", NULL},
    {MERGE "Y[h:3, w:5] = X[1, 2, h, w]\nout Y\n", NULL},
};

// The merged program gives the same.
static void check_merged(const struct program *p, const struct program *q, const char *label) {
  int64_t count, again;
  CHECK(program_same_tensors(p, q), label);
  double *x = evaluate(p, &count), *y = evaluate_on(p, q, &again);
  CHECK_INT(again, count, label);
  CHECK(same_values(x, y, count, false), label);
  free(x);
  free(y);
}

static void axes_merge(void **state) {
  CHECK_ROWS (merges, row) {
    struct program *p = parse(row->program), *q = program_merge_axes(p);
    struct buf text = {0};
    if (q) program_print(q, &text);
    CHECK_TEXT(q ? text.text : "", row->merged ? row->merged : "", row->program);
    if (q) check_merged(p, q, row->program);
    buf_free(&text);
    program_free(q);
    program_free(p);
  }
}

static void axes_of_random_programs_merge(void **state) {
  int merged = 0, rounds = getenv("CANVAS_TEST_ALL") ? 20000 : 2000;
  for (int round = 0; round < rounds; round++) {
    struct program *p = random_program((uint64_t)round), *q = program_merge_axes(p);
    char label[32];
    snprintf(label, sizeof label, "random program %d", round);
    if (q) check_merged(p, q, label);
    merged += q != NULL;
    program_free(q);
    program_free(p);
  }
  printf("             %d of %d programs have axes that merge\n", merged, rounds);
  CHECK(merged > 0, "some have axes that merge");
}

// Tensors of other sizes are not taken for merged ones.
static void merged_tensors(void **state) {
  struct program *p = parse(MERGE "Y[n:2, c:4] = X[n, c, 0, 0]\nout Y\n");
  static const char *const others[] = {"[n:4, c:2, h_w:15]", "[n:2, c:4, h_w:16]",
                                       "[n_c:8, h:5, w:3]", "[n:2, c:4, h:3]",
                                       "[n:2, c:4, h:3, w:5, d:2]"};
  char text[256];
  CHECK_ROWS (others, other) {
    snprintf(text, sizeof text,
             "canvas 1\nprogram p\nin X f32 %s\nin Z f32 [n:2, c:4]\nY[n:2, c:4] = Z[n, c]\n"
             "out Y\n",
             *other);
    struct program *q = parse(text);
    CHECK(!program_same_tensors(p, q), *other);
    program_free(q);
  }
  program_free(p);
}

CHECK_MAIN(cmocka_unit_test(axes_merge), cmocka_unit_test(axes_of_random_programs_merge),
           cmocka_unit_test(merged_tensors), cmocka_unit_test(edits_print),
           cmocka_unit_test(partial_sums_print), cmocka_unit_test(borders_move),
           cmocka_unit_test(borders_are_kept), cmocka_unit_test(sums_stay_whole),
           cmocka_unit_test(caches_are_undone), cmocka_unit_test(names_of_sums),
           cmocka_unit_test(edits_reject), cmocka_unit_test(expressions_that_grow),
           cmocka_unit_test(edits_keep_values))
