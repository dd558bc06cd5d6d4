/* Programs whose stages share the loop over rows by default, where L1 is as small as that of `small_cache`.
 *
 * They have odd sizes, f64, rows of two axes, of an axis that is not the first, and of one that has another name in
 * another stage. Stages are read elsewhere, or stand between and read none of them.
 */
#ifndef CANVAS_TESTS_ROW_PROGRAMS_H
#define CANVAS_TESTS_ROW_PROGRAMS_H

#include "machines.h"

static inline struct machine small_cache(const struct machine *machine) {
  struct machine small = *machine;
  small.l1 = 4 << 10;
  return small;
}

#define ROWS_BEGIN "canvas 1\nprogram p\n"
#define SOFTMAX(n, c, type)                                                                  \
  ROWS_BEGIN "in X " type " [n:" n ", c:" c "]\nL[n:" n "] = X[n, c] // max c:" c "\nE[n:" n \
             ", c:" c "] = exp(X[n, c] - L[n])\nS[n:" n "] = E[n, c] // sum c:" c            \
             "\n"                                                                            \
             "Y[n:" n ", c:" c "] = E[n, c] / S[n]\nout Y\n"

static const struct {
  const char *program;
  double most; /* microseconds, as in default_programs.h, on one machine_avx512 of small_cache */
  const char *shows; /* part of the schedule; NULL: any */
} row_programs[] = {
    {SOFTMAX("24", "128", "f32"), 2.618,
     "\nn:para =>\n    c_o, c_i:vec =>\n        @L_r = n, c_i // c_o"},
    {ROWS_BEGIN "in X f32 [n:33, k:3, c:67]\nL[n:33, c:67] = X[n, k, c] // max k:3\n"
                "E[n:33, k:3, c:67] = exp(X[n, k, c] - L[n, c])\n"
                "S[n:33, c:67] = E[n, k, c] // sum k:3\n"
                "Y[n:33, k:3, c:67] = E[n, k, c] / S[n, c]\nout Y\n",
     5.973, NULL},
    {SOFTMAX("31", "128", "f64"), 3.571, NULL},
    {ROWS_BEGIN
     "in X f32 [n:3, t:5, c:512]\nin G f32 [c:512]\nM[n:3, t:5] = X[n, t, c] // mean c:512\n"
     "V[n:3, t:5] = (X[n, t, c] - M[n, t]) * (X[n, t, c] - M[n, t]) // mean c:512\n"
     "R[n:3, t:5] = 1 / sqrt(V[n, t] + 0.00001)\n"
     "Y[n:3, t:5, c:512] = (X[n, t, c] - M[n, t]) * R[n, t] * G[c]\nout Y\n",
     1.809, NULL},
    {ROWS_BEGIN
     "in X f32 [a:3, r:40, c:192]\nM[r:40] = X[a, r, c] // max a:3, c:192\n"
     "E[a:3, r:40, c:192] = exp(X[a, r, c] - M[r])\nZ[r:40] = E[a, r, c] // sum a:3, c:192\n"
     "Y[a:3, r:40, c:192] = E[a, r, c] / Z[r]\nout Y, Z\n",
     19.28, NULL},
    {ROWS_BEGIN "in X f32 [i:256, j:256]\nS[i:256] = X[i, j] // mean j:256\n"
                "E[j:256, i:256] = exp(X[j, i] - S[j])\nT[j:256] = E[j, i] // sum i:256\n"
                "Y[j:256, i:256] = E[j, i] * T[j]\nout Y\n",
     33.86, NULL},
    {ROWS_BEGIN "in X f32 [n:40, c:256]\nin Z f32 [c:256, k:64]\nM[n:40] = X[n, c] // max c:256\n"
                "W[c:256] = Z[c, k] // sum k:64\nE[n:40, c:256] = exp(X[n, c] - M[n]) * W[c]\n"
                "S[n:40] = E[n, c] // sum c:256\nY[n:40, c:256] = E[n, c] * S[n]\n"
                "A[n:40, c:256] = E[(n+1)%40, c] + M[(n+3)%40]\nout Y, A\n",
     8.793, NULL},
    {ROWS_BEGIN "in X f32 [n:16, t:4, c:64]\nL[n:16, t:4] = X[n, t, c] // max c:64\n"
                "E[n:16, t:4, c:64] = exp(X[n, t, c] - L[n, t])\n"
                "D[t:4, n:16, c:64] = E[n, t, c] - E[n, (t+1)%4, c]\nout D\n",
     2.273, NULL},
    // fused producer: what a tile of rows reads is computed before it
    {ROWS_BEGIN
     "in X f32 [n:2, h:17, w:29, c:16]\nin V f32 [k:3, c:16]\nin W f32 [c:16, o:85]\n"
     "T[n:2, h:17, w:29, c:16] = (if w < 1 then X[n, h, w+28, c] else X[n, h, w-1, c]) + "
     "(if 1 <= h then X[n, h-1, w, c] * V[0, c] else 0) + X[n, h, w, c] * V[1, c]\n"
     "Y[n:2, h:17, w:29, o:85] = T[n, h, w, c] * W[c, o] // sum c:16\nout Y\n",
     34.1, NULL},
    // an element-wise consumer of the reduction is in the tile, too
    {ROWS_BEGIN "in X f32 [t:67, g:3, c:16]\nin B f32 [o:48]\nin W f32 [g:3, c:16, o:48]\n"
                "G[t:67, g:3, c:16] = X[t, g, c] / (1 + exp(-X[t, g, c]))\n"
                "S[t:67, o:48] = G[t, g, c] * W[g, c, o] // sum g:3, c:16\n"
                "Y[t:67, o:48] = max(S[t, o] + B[o], 0)\nout Y\n",
     4.45, "@G = {t_o, t_i}/t, g, c"},
    // no fusion where other stages read the producer
    {ROWS_BEGIN "in X f32 [t:67, c:48]\nin W f32 [c:48, o:48]\n"
                "G[t:67, c:48] = X[t, c] / (1 + exp(-X[t, c]))\n"
                "Y[t:67, o:48] = G[t, c] * W[c, o] // sum c:48\nout Y, G\n",
     4.055, NULL},
};

#endif
