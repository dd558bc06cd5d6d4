// Schedules that follow edits of their program: what they become, why they cannot, and that what is
// answered is legal for the program after the edit.
#include "edit/schedule_follow.h"
#include "random_edit.h"
#include "random_program.h"
#include "rewrite/program_edit.h"

#include "check.h"

#define GEMM                                                               \
  "canvas 1\nprogram gemm\nin A f32 [i:12, k:32]\nin B f32 [k:32, j:32]\n" \
  "C[i:12, j:32] = A[i, k] * B[k, j] // sum k:32\nD[i:12, j:32] = max(C[i, j], 0)\nout D\n"
#define ROWS                                                                      \
  "canvas 1\nprogram rows\nin X f32 [i:12, k:40]\nE[i:12, k:40] = exp(X[i, k])\n" \
  "S[i:12] = E[i, k] // sum k:40\nY[i:12, k:40] = E[i, k] / S[i]\nout Y\n"
#define EIGHT                                 \
  "program eight\nin X f32 [a:4, b:4, c:4]\n" \
  "Y[i:2] = X[a, b, c] // sum a:4, b:4, c:4, d:2, e:2, f:2, g:2, h:2\nout Y\n"
#define BORDER                                                                    \
  "canvas 1\nprogram border\nin X f32 [h:12, c:8]\nin W f32 [k:3, c:8]\n"         \
  "Y[h:12] = (if 1 <= h+k && h+k < 13 then X[h+k-1, c] else 0) * W[k, c] // sum " \
  "k:3, c:8\nout Y\n"
#define TWO                                                                              \
  "canvas 1\nprogram two\nin X f32 [h:16, w:16]\nA[h:14, w:16] = X[h+k, w] // sum k:3\n" \
  "Y[h:12, w:16] = A[h+k, w] // max k:3\nout Y\n"
#define SPARSE                                                             \
  "canvas 1\nprogram sparse\nin X f32 [e:9]\nin q i32 [r:9] 0..9 rising\n" \
  "A[h:8] = X[e] // sum e:q[h]..q[h+1]\nY[h:6] = A[h+k] // sum k:3\nout Y\n"
#define COPIED                                                               \
  "canvas 1\nprogram copied\nin A f32 [i:12, k:32]\nin B f32 [k:32, j:32]\n" \
  "P[i:12, j:32] = A[i, k] * B[k, j] // sum k:32\nC[y:32, x:12] = P[x, y]\n" \
  "D[x:12, y:32] = max(C[y, x], 0)\nout D\n"
#define HALVED                                        \
  "canvas 1\nprogram halved\nin A f32 [i:12, k:32]\n" \
  "P[i:12] = A[i, k] // sum k:32\nC[i:6, j:8] = P[2*i]\nout C\n"
#define FIRST                                        \
  "canvas 1\nprogram first\nin A f32 [i:12, k:32]\n" \
  "P[i:12] = A[i, k] // sum k:32\nC[i:6] = P[i]\nout C\n"
#define CHAIN                                                                     \
  "canvas 1\nprogram chain\nin X f32 [i:12, k:40]\nF[i:12, k:40] = X[i, k] * 2\n" \
  "E[i:12, k:40] = exp(F[i, k])\nS[i:12] = E[i, k] // sum k:40\nout S\n"
#define LAST "i, j =>\n    @D = i, j\n"

#define CONV                                                                       \
  "canvas 1\nprogram conv\nin X f32 [h:6, w:6, c:2]\nin W f32 [kh:3, kw:3, c:2]\n" \
  "Y[h:4, w:4] = X[h+kh, w+kw, c] * W[kh, kw, c] // sum kh:3, kw:3, c:2\nout Y\n"

// After the edit; or the error message.
static const struct {
  const char *program, *edit, *before, *after;
} rows[] = {
    {CONV, "winograd Y 2", "h, w, kh, kw, c =>\n    @Y = h, w // kh, kw, c\n",
     "the schedule of a convolution does not fit its transforms: use the default schedule of the "
     "edited program"},
    {GEMM, "rfactor C k 16 as CP", "i, j, k =>\n    @C = i, j // k\n" LAST,
     "i, j =>\n    k, k_i:16:vec =>\n        @CP = i, j, k_i // {k}/k_o\n"
     "    k_i:vec =>\n        @C = i, j // k_i\n" LAST},
    // around a vector the lanes are rows of it
    {GEMM, "rfactor C k 16 as CP", "i, k, j:vec =>\n    @C:heap = i, j // k\n" LAST,
     "i =>\n    k, k_i:16, j:vec =>\n        @CP = i, j, k_i // {k}/k_o\n"
     "    k_i, j:vec =>\n        @C:heap = i, j // k_i\n" LAST},
    // what an unrolled loop was is one again, a parallel one stays around both
    {GEMM, "rfactor C k 8 as CP", "i:para, k, j:unroll =>\n    @C[j][i] = i, j // k\n" LAST,
     "i:para =>\n    k, j:unroll, k_i:8:vec =>\n        @CP = i, j, k_i // {k}/k_o\n"
     "    j:unroll, k_i:vec =>\n        @C[j][i] = i, j // k_i\n" LAST},
    // of as many steps already
    {GEMM, "rfactor C k 8 as CP", "i, j, ko, ki:8 =>\n    @C = i, j // {ko, ki}/k\n" LAST,
     "i, j =>\n    ko, ki:8:vec =>\n        @CP = i, j, {ki}/k_i // {ko}/k_o\n"
     "    ki:vec =>\n        @C = i, j // {ki}/k_i\n" LAST},
    {GEMM, "rfactor C k 16 as CP", "i, j, ko, ki:8 =>\n    @C = i, j // {ko, ki}/k\n" LAST,
     "2 loops cover axis 'k' of 'C' and the innermost is not of 16 steps: merge them, or give it "
     "that many"},
    // 24 are no multiple of the lanes
    {GEMM, "rfactor C k 24 as CP", "i, j, k =>\n    @C = i, j // k\n" LAST,
     "i, j =>\n    k, k_i:24 =>\n        @CP = i, j, k_i // {k}/k_o\n"
     "    k_i =>\n        @C = i, j // k_i\n" LAST},
    // what is computed for each step of k is computed for each of its lanes
    {ROWS, "rfactor S k 8 as SP",
     "i =>\n    k =>\n        @E = i, k\n        @S = i // k\n    k =>\n        @Y = i, k\n",
     "i =>\n    k, k_i:8:vec =>\n        @E = i, {k, k_i}/k\n        @SP = i, k_i // {k}/k_o\n"
     "    k_i:vec =>\n        @S = i // k_i\n    k, k_i =>\n        @Y = i, {k, k_i}/k\n"},
    {ROWS, "rfactor S k 16 as SP",
     "i =>\n    k =>\n        @E = i, k\n        @S = i // k\n    k =>\n        @Y = i, k\n",
     "i =>\n    k, k_i:16:mask:vec =>\n        @E = i, {k, k_i}/k\n        @SP = i, k_i // "
     "{k}/k_o\n"
     "    k_i:vec =>\n        @S = i // k_i\n    k, k_i =>\n        @Y = i, {k, k_i}/k\n"},
    // loops of that name elsewhere stay as they are
    {ROWS, "rfactor S k 16 as SP",
     "i, k =>\n    @E = i, k\ni, k =>\n    @S = i // k\ni, k =>\n    @Y = i, k\n",
     "i, k =>\n    @E = i, k\ni =>\n    SP_k, k_i:16:vec =>\n        @SP = i, k_i // {SP_k}/k_o\n"
     "    k_i:vec =>\n        @S = i // k_i\ni, k =>\n    @Y = i, k\n"},
    {EIGHT, "rfactor Y a 2 as YP",
     "i, {a, b, c, d, e, f, g, h}:fold =>\n    @Y = i // a, b, c, d, e, f, g, h\n",
     "there is no room for one more loop of 'Y'"},
    {TWO, "overlap A in Y h 4 as AO",
     "h, w, k =>\n    @A = h, w // k\ny, w, k =>\n    @Y = {y}/h, w // k\n",
     "y =>\n    h_i, AO_w, AO_k =>\n        @AO = {y}/h_o, h_i, {AO_w}/w // {AO_k}/k\n"
     "    y_i:4, w, k =>\n        @Y = {y, y_i}/h, w // k\n"},
    // what is beyond a border, with its sum
    {BORDER, "border Y as Z", "h:para, k, c =>\n    @Y = h // k, c\n",
     "Z_k, Z_c =>\n    @Z = {Z_k}/k // {Z_c}/c\nh:para, k, c =>\n    @Y = h // k, c\n"},
    // 5 rows are no divisor of 12; tiles that there are
    {TWO, "overlap A in Y h 5 as AO",
     "h, w, k =>\n    @A = h, w // k\ny, w, k =>\n    @Y = {y}/h, w // k\n",
     "y =>\n    h_i, AO_w, AO_k =>\n        @AO = {y}/h_o, h_i, {AO_w}/w // {AO_k}/k\n"
     "    y_i:5:mask, w, k =>\n        @Y = {y, y_i}/h, w // k\n"},
    {TWO, "overlap A in Y h 4 as AO",
     "h, w, k =>\n    @A = h, w // k\nyo:para, yi:2, ym:2, w, k =>\n    @Y = {yo, yi, ym}/h, w // "
     "k\n",
     "yo:para =>\n    h_i, AO_w, AO_k =>\n        @AO = {yo}/h_o, h_i, {AO_w}/w // {AO_k}/k\n"
     "    yi:2, ym:2, w, k =>\n        @Y = {yo, yi, ym}/h, w // k\n"},
    // 6 rows are no tile of the loops, so that all of them are computed first
    {TWO, "overlap A in Y h 6 as AO",
     "h, w, k =>\n    @A = h, w // k\nk, w, yo, yi:4 =>\n    @Y = {yo, yi}/h, w // k\n",
     "h_o, h_i, AO_w, AO_k =>\n    @AO = h_o, h_i, {AO_w}/w // {AO_k}/k\n"
     "k, w, yo, yi:4 =>\n    @Y = {yo, yi}/h, w // k\n"},
    {SPARSE, "overlap A in Y h 2 as AO",
     "h, e:dyn(h) =>\n    @A = h // e\ny, k =>\n    @Y = {y}/h // k\n",
     "the reduction of 'A' has bounds that depend on data: place its tiles in the schedule"},
    {GEMM, "cache D as DC", "i, j, k =>\n    @C = i, j // k\n" LAST,
     "i, j, k =>\n    @C = i, j // k\ni, j =>\n    @DC = i, j\n    @D = i, j\n"},
    {GEMM, "cache C as CC", "i, k, j:vec =>\n    @C:heap = i, j // k\n" LAST,
     "i =>\n    k, j:vec =>\n        @CC = i, j // k\n    j:vec =>\n        @C:heap = i, j\n" LAST},
    {GEMM, "cache B in C as BC", "i, k, j:vec =>\n    @C = i, j // k\n" LAST,
     "BC_k, BC_j =>\n    @BC = {BC_k}/k, {BC_j}/j\ni, k, j:vec =>\n    @C = i, j // k\n" LAST},
    {GEMM, "pack B as BP [j/8, k, j%8]", "i, k, j =>\n    @C = i, j // k\n" LAST,
     "j_o, BP_k, j_i =>\n    @BP = j_o, {BP_k}/k, j_i\ni, k, j =>\n    @C = i, j // k\n" LAST},
    {ROWS, "inline E",
     "i =>\n    k =>\n        @E = i, k\n        @S = i // k\n    k =>\n        @Y = i, k\n",
     "i =>\n    k =>\n        @S = i // k\n    k =>\n        @Y = i, k\n"},
    // a copy that sums has the loops of what it copied ...
    {COPIED, "inline P",
     "i =>\n    k, j:vec =>\n        @P = i, j // k\n    j =>\n        @C[x][y]:heap = {j}/y, "
     "{i}/x\n"
     "x, y =>\n    @D = x, y\n",
     "i, k, j:vec =>\n    @C[x][y]:heap = {j}/y, {i}/x // k\nx, y =>\n    @D = x, y\n"},
    {COPIED, "inline P",
     "io, ii:4, k, j:vec =>\n    @P[j][i] = {io, ii}/i, j // k\n"
     "y, x =>\n    @C[x][y]:heap = y, x\nx, y =>\n    @D = x, y\n",
     "io, ii:4, k, j:vec =>\n    @C[x][y]:heap = {j}/y, {io, ii}/x // k\nx, y =>\n    @D = x, y\n"},
    {FIRST, "inline P", "i, k =>\n    @P = i // k\nC_i =>\n    @C = {C_i}/i\n",
     "i, k =>\n    @C = i // k\n"},
    // ... where these fit
    {FIRST, "inline P", "i:4, i_:3, k =>\n    @P = {i, i_}/i // k\nC_i =>\n    @C = {C_i}/i\n",
     "C_i, k =>\n    @C = {C_i}/i // k\n"},
    {HALVED, "inline P", "i, k =>\n    @P = i // k\nC_i, j:vec =>\n    @C = {C_i}/i, j\n",
     "C_i, j, k =>\n    @C = {C_i}/i, j // k\n"},
    // what was a vector with lanes to spare is a loop of as many steps as it needs
    {ROWS, "inline E",
     "i, k:48:mask:vec =>\n    @E = i, k\ni, S_k =>\n    @S = i // {S_k}/k\ni, k =>\n    @Y = i, "
     "k\n",
     "i, S_k =>\n    @S = i // {S_k}/k\ni, k:mask =>\n    @Y = i, k\n"},
    // what is copied whole is computed whole
    {CHAIN, "pack E as EP [k/8, i, k%8]",
     "i, k =>\n    @F = i, k\n    @E = i, k\n    @S = i // k\n",
     "i, k =>\n    @F = i, k\ni, k =>\n    @E = i, k\nk_o, EP_i, k_i =>\n    @EP = k_o, {EP_i}/i, "
     "k_i\n"
     "i, k =>\n    @S = i // k\n"},
    {CHAIN, "cache E in S as EC",
     "i =>\n    k =>\n        @F = i, k\n    k:unroll =>\n        @E[k] = i, k\n    k =>\n"
     "        @S = i // k\n",
     "i, k =>\n    @F = i, k\ni, k:unroll =>\n    @E = i, k\nEC_i, EC_k =>\n    @EC = {EC_i}/i, "
     "{EC_k}/k\ni, k =>\n    @S = i // k\n"},
    {GEMM, "type C bf16", "i, j, k =>\n    @C = i, j // k\n" LAST,
     "i, j, k =>\n    @C = i, j // k\n" LAST},
    {GEMM, "inline C", "i, j, k =>\n    @C = i, j // k\n" LAST,
     "line 1, column 8: 'C' reduces: it can only be inlined into a stage that does nothing but "
     "copy it"},
    {GEMM, "outline C A[i, k] as Z", "i, j, k =>\n    @C = i, j // k\n" LAST,
     "no schedule follows the edit 'outline C A[i, k] as Z': use the default schedule of the "
     "edited program"},
    {GEMM, "normalize conditions", "i, j, k =>\n    @C = i, j // k\n" LAST,
     "no schedule follows the edit 'of all axes or conditions': use the default schedule of the "
     "edited program"},
    {GEMM, "type C bf16", "i, j, k, k_i:? =>\n    @C = i, j // {k, k_i}/k\n" LAST,
     "the schedule has 1 holes without a number, give them with --set"},
};

static void schedules_follow(void **state) {
  (void)state;
  CHECK_ROWS (rows, row) {
    canvas_context ctx = {.message = ""};
    struct program *p;
    struct schedule *s, *after;
    struct loop_tree *tree;
    struct buf text = {0};
    CHECK_INT(program_parse(&ctx, row->program, strlen(row->program), &p), CANVAS_OK, ctx.message);
    CHECK_INT(schedule_parse(&ctx, row->before, strlen(row->before), &s), CANVAS_OK, ctx.message);
    CHECK_INT(loop_tree_bind(&ctx, p, s, &machine_avx512, &tree), CANVAS_OK, ctx.message);
    if (schedule_follow(&ctx, tree, row->edit, strlen(row->edit), &after) == CANVAS_OK) {
      schedule_print(after, &text);
      schedule_free(after);
      CHECK_TEXT(text.text + strlen("canvas 1\n"), row->after, row->edit);
    } else {
      CHECK_TEXT(ctx.message, row->after, row->edit);
    }
    loop_tree_free(tree);
    schedule_free(s);
    program_free(p);
    buf_free(&text);
  }
}

// Some edit of the program; right or wrong.
static void some_edit(struct random *r, const struct program *p, struct buf *text) {
  const struct program_tensor *t = &p->tensors.data[edit_below(r, p->tensors.count)];
  const struct program_tensor *other = &p->tensors.data[edit_below(r, p->tensors.count)];
  int axis = edit_below(r, t->rank + t->reductions + !(t->rank + t->reductions));
  switch (edit_below(r, 7)) {
    case 6:
      buf_printf(text, "pack %s as NEW [", t->name);
      for (int i = t->rank - 1; i >= 0; i--)
        buf_printf(text, "%s%s", t->axes[i].name, i ? ", " : "]");
      break;
    case 5:
      buf_printf(text, "overlap %s in %s %s %d as NEW", t->name, other->name,
                 other->axes[edit_below(r, other->rank + !other->rank)].name, 1 + edit_below(r, 5));
      break;
    case 0: buf_printf(text, "cache %s as NEW", t->name); break;
    case 1: buf_printf(text, "cache %s in %s as NEW", t->name, other->name); break;
    case 2: buf_printf(text, "inline %s", t->name); break;
    default:
      buf_printf(text, "rfactor %s %s %d as NEW", t->name, t->axes[axis].name,
                 2 + edit_below(r, 7));
  }
}

// What is answered is bound by schedule_follow itself; here: by what its text says.
static void random_schedules_follow(void **state) {
  (void)state;
  int done = 0, programs = getenv("CANVAS_TEST_ALL") ? 2000 : 200;
  for (int i = 0; i < programs; i++) {
    canvas_context ctx = {.message = ""};
    struct random r;
    random_open(&r, (uint64_t)i, RANDOM_TEST, 9);
    struct program *p = random_program((uint64_t)i);
    struct schedule *s = random_schedule(p, &r, 8), *after, *again;
    struct loop_tree *tree, *bound;
    CHECK_INT(loop_tree_bind(&ctx, p, s, &machine_avx512, &tree), CANVAS_OK, ctx.message);
    for (int j = 0; j < 20; j++) {
      struct buf edit = {0}, text = {0};
      struct program *q;
      some_edit(&r, p, &edit);
      ctx.message[0] = '\0';
      if (schedule_follow(&ctx, tree, edit.text, edit.length, &after) == CANVAS_OK) {
        CHECK_INT(program_edit(&ctx, p, edit.text, edit.length, &q), CANVAS_OK, ctx.message);
        schedule_print(after, &text);
        CHECK_INT(schedule_parse(&ctx, text.text, text.length, &again), CANVAS_OK, text.text);
        CHECK_INT(loop_tree_bind(&ctx, q, again, &machine_avx512, &bound), CANVAS_OK, ctx.message);
        loop_tree_free(bound);
        schedule_free(after);
        schedule_free(again);
        program_free(q);
        done++;
      } else {
        CHECK(ctx.message[0], edit.text);
      }
      buf_free(&edit);
      buf_free(&text);
    }
    loop_tree_free(tree);
    schedule_free(s);
    program_free(p);
  }
  print_message("             %d schedules followed\n", done);
  CHECK(done > programs, "too few followed mean little");
}

CHECK_MAIN(cmocka_unit_test(schedules_follow), cmocka_unit_test(random_schedules_follow))
