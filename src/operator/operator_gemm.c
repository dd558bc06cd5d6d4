/* Matrix products: Y[m, n] = sum over k of A[m, k] * B[k, n], with either transposed, in batches, with a
 * vector, or as a layer with weights [out_features, in_features]; and products of three.
 */
#include "operator/operator_build.h"

/* Y[y] = sum over k of A[a] * B[b]; the stage, left open for a bias where `biased`. */
static int product(struct build *b, int left, const char *a, int right, const char *c,
                   const char *y, bool biased) {
  int stage = biased ? build_stage(b, "product", b->wide, y) : build_stage(b, "Y", b->type, y);
  build_reduce(b, stage, REDUCE_SUM, "k");
  program_define(b->p, stage, px_mul(b->p, build_load(b, left, a), build_load(b, right, c)));
  return stage;
}

static void matrix_axes(struct build *b) {
  build_axis(b, 'm', "m", build_number(b, ARG_M, 0));
  build_axis(b, 'k', "k", build_number(b, ARG_K, 0));
  build_axis(b, 'n', "n", build_number(b, ARG_N, 0));
}

static canvas_status two(struct build *b, const char *left, const char *a, const char *right,
                         const char *c, const char *y) {
  int x = build_input(b, left, a), w = build_input(b, right, c);
  product(b, x, a, w, c, y, false);
  return CANVAS_OK;
}

canvas_status build_gemm(struct build *b) {
  matrix_axes(b);
  return two(b, "A", build_number(b, ARG_TRANSPOSE_A, 0) ? "km" : "mk", "B",
             build_number(b, ARG_TRANSPOSE_B, 0) ? "nk" : "kn", "mn");
}

canvas_status build_batch_gemm(struct build *b) {
  matrix_axes(b);
  build_axis(b, 'b', "b", build_number(b, ARG_BATCH, 0));
  return two(b, "A", build_number(b, ARG_TRANSPOSE_A, 0) ? "bkm" : "bmk", "B",
             build_number(b, ARG_TRANSPOSE_B, 0) ? "bnk" : "bkn", "bmn");
}

canvas_status build_gemv(struct build *b) {
  build_axis(b, 'm', "m", build_number(b, ARG_M, 0));
  build_axis(b, 'k', "k", build_number(b, ARG_K, 0));
  return two(b, "A", build_number(b, ARG_TRANSPOSE_A, 0) ? "km" : "mk", "X", "k", "m");
}

canvas_status build_linear(struct build *b) {
  bool biased = build_number(b, ARG_BIAS, 0);
  build_axis(b, 'n', "n", build_number(b, ARG_BATCH, 0));
  build_axis(b, 'k', "i", build_number(b, ARG_IN_FEATURES, 0));
  build_axis(b, 'o', "o", build_number(b, ARG_OUT_FEATURES, 0));
  int x = build_input(b, "X", "nk"), w = build_input(b, "W", "ok");
  int bias = biased ? build_input(b, "B", "o") : -1;
  int y = product(b, x, "nk", w, "ok", "no", biased);
  if (biased) build_bias(b, y, "no", bias, "o");
  return CANVAS_OK;
}

/* Y[n, o] = sum over i and j of X1[n, i] * W[o, i, j] * X2[n, j]. */
canvas_status build_bilinear(struct build *b) {
  struct program *p = b->p;
  bool biased = build_number(b, ARG_BIAS, 0);
  build_axis(b, 'n', "n", build_number(b, ARG_BATCH, 0));
  build_axis(b, 'i', "i", build_number(b, ARG_IN1_FEATURES, 0));
  build_axis(b, 'j', "j", build_number(b, ARG_IN2_FEATURES, 0));
  build_axis(b, 'o', "o", build_number(b, ARG_OUT_FEATURES, 0));
  int x1 = build_input(b, "X1", "ni"), x2 = build_input(b, "X2", "nj");
  int w = build_input(b, "W", "oij"), bias = biased ? build_input(b, "B", "o") : -1;
  int y = biased ? build_stage(b, "product", b->wide, "no") : build_stage(b, "Y", b->type, "no");
  build_reduce(b, y, REDUCE_SUM, "ij");
  int left = px_mul(p, build_load(b, x1, "ni"), build_load(b, w, "oij"));
  program_define(p, y, px_mul(p, left, build_load(b, x2, "nj")));
  if (biased) build_bias(b, y, "no", bias, "o");
  return CANVAS_OK;
}

/* Y[m, n] = sum over k and l of A[m, k, l] * B[k, n] * C[l, n]. */
canvas_status build_mttkrp3d(struct build *b) {
  struct program *p = b->p;
  matrix_axes(b);
  build_axis(b, 'l', "l", build_number(b, ARG_L, 0));
  int a = build_input(b, "A", "mkl"), c = build_input(b, "B", "kn"), d = build_input(b, "C", "ln");
  int y = build_stage(b, "Y", b->type, "mn");
  build_reduce(b, y, REDUCE_SUM, "kl");
  int left = px_mul(p, build_load(b, a, "mkl"), build_load(b, c, "kn"));
  program_define(p, y, px_mul(p, left, build_load(b, d, "ln")));
  return CANVAS_OK;
}
